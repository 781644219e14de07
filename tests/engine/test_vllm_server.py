"""The real server on a tiny model: one for the whole file, which its last test kills."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
import pytest_asyncio

from harness_adapters.config import EngineSettings
from harness_adapters.engine import Sampling
from harness_adapters.engine.canary import canary
from harness_adapters.engine.models import load_chat_format
from harness_adapters.engine.start import start_engine
from harness_adapters.engine.vllm_options import ServerOptions
from harness_adapters.engine.vllm_server import VllmEngine
from harness_adapters.errors import EngineError

from . import checks
from .conftest import END_IDS

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def engine(
    tiny: Path, adapters: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[VllmEngine]:
    said: list[str] = []
    engine = await start_engine(
        # As many slots as adapters: vLLM's fault in mixed batches needs the last one used.
        EngineSettings(kind="vllm", max_context=1024, kv_cache_gib=1.0, max_loras=3),
        tiny,
        log_dir=tmp_path_factory.mktemp("logs"),
        progress=said.append,
        dtype="float32",
    )
    assert isinstance(engine, VllmEngine)
    assert said[0] == "engine: vLLM on the CPU, 2 thread(s), float32, context 1024"
    for name, directory in adapters.items():
        await engine.load_adapter(name, directory)
    yield engine
    await engine.close()


async def test_mixed_batch(engine: VllmEngine, tiny: Path, adapters: dict[str, Path]) -> None:
    await checks.mixed_batch_is_right(engine, tiny, adapters, ["pi-v1", "hermes-v1"])


async def test_temperature_scales_the_logprobs(engine: VllmEngine, tiny: Path) -> None:
    """Reported log-probabilities are of the distribution that was sampled from."""
    ids = checks.prompt(21)
    answer = await engine.generate(ids, sampling=Sampling(0.5, 10))
    import torch
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(tiny, dtype=torch.float32)
    with torch.inference_mode():
        logits = model(input_ids=torch.tensor([ids + answer.output_ids])).logits[0]
    table = (logits[len(ids) - 1 : -1] / 0.5).log_softmax(-1)
    expected = [float(table[i, token]) for i, token in enumerate(answer.output_ids)]
    assert answer.logprobs == pytest.approx(expected, abs=1e-3)


async def test_new_version_under_new_name(engine: VllmEngine) -> None:
    await checks.version_changes_output(engine, "pi-v1", "pi-v2")


async def test_a_slot_that_was_used_before_has_its_new_weights(
    engine: VllmEngine, tiny: Path, adapters: dict[str, Path]
) -> None:
    """One adapter more than there are slots, so that each in turn takes another one's place."""
    await engine.load_adapter("pi-v3", adapters["hermes-v1"])
    places = {**adapters, "pi-v3": adapters["hermes-v1"]}
    for name in [*places, *reversed(places)]:
        ids = checks.prompt(31)
        answer = await engine.generate(ids, adapter=name, sampling=checks.SAMPLED)
        assert checks.worst_difference(tiny, places[name], ids, answer) < 1e-3, name
    await engine.unload_adapter("pi-v3")


async def test_prefix_cache(engine: VllmEngine, tiny: Path) -> None:
    await checks.prefix_is_cached_and_right(engine, tiny)


async def served(engine: VllmEngine) -> list[str]:
    async with httpx.AsyncClient(trust_env=False) as http:
        models = (await http.get(f"{engine.url}/v1/models")).json()["data"]
    return [model["id"] for model in models]


async def test_end_token_and_attach(
    engine: VllmEngine, tiny: Path, adapters: dict[str, Path], tmp_path: Path
) -> None:
    ids, end = await checks.greedy_end(engine)
    attached = await VllmEngine.attach(f"{engine.url}/v1/", tiny, end_ids=[end])
    assert attached.max_context == engine.max_context
    await checks.end_token_is_included(attached, ids, end)
    # Beside the engine's own adapter of that name, and gone with its engine.
    await attached.load_adapter("pi-v1", adapters["pi-v2"])
    answer = await attached.generate(ids, adapter="pi-v1", sampling=checks.SAMPLED)
    assert checks.worst_difference(tiny, adapters["pi-v2"], ids, answer) < 1e-3
    assert len(await served(engine)) == 5
    await attached.close()
    assert len(await served(engine)) == 4
    await engine.generate(ids, adapter="pi-v1", sampling=checks.GREEDY)
    with pytest.raises(EngineError, match=f"wants {tmp_path}"):
        await VllmEngine.attach(engine.url, tmp_path, end_ids=[end])


async def test_errors(engine: VllmEngine, adapters: dict[str, Path], tmp_path: Path) -> None:
    chosen = (adapters["pi-v1"], adapters["pi-v2"])
    await checks.errors_are_clear(engine, tmp_path, "pi-v1", *chosen)


async def test_an_adapter_leaves_after_its_last_request(
    engine: VllmEngine, adapters: dict[str, Path]
) -> None:
    await checks.an_adapter_leaves_after_its_last_request(engine, "busy-v1", adapters["pi-v1"])


async def test_unload(engine: VllmEngine, adapters: dict[str, Path]) -> None:
    await checks.unloaded_is_unknown(engine, "gone-v1", adapters["pi-v1"])


async def test_deleted_directory_does_not_kill_the_server(
    engine: VllmEngine, adapters: dict[str, Path], tmp_path: Path
) -> None:
    import shutil

    directory = tmp_path / "short-lived"
    shutil.copytree(adapters["pi-v1"], directory)
    await engine.load_adapter("short-v1", directory)
    shutil.rmtree(directory)
    with pytest.raises(EngineError, match="is gone"):
        await engine.generate(checks.prompt(0), adapter="short-v1", sampling=checks.GREEDY)
    await engine.unload_adapter("short-v1")
    await engine.generate(checks.prompt(0), sampling=checks.GREEDY)


async def test_too_large_a_rank_is_refused_and_survived(
    engine: VllmEngine, tiny: Path, tmp_path: Path
) -> None:
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(tiny, dtype=torch.float32)
    get_peft_model(model, LoraConfig(r=64, target_modules="all-linear")).save_pretrained(tmp_path)
    with pytest.raises(EngineError, match=r"refused.*rank"):
        await engine.load_adapter("large-v1", tmp_path)
    await engine.generate(checks.prompt(0), sampling=checks.GREEDY)


async def running_requests(engine: VllmEngine) -> int:
    """Requests in the server now, running or waiting."""
    async with httpx.AsyncClient(trust_env=False) as http:
        text = (await http.get(f"{engine.url}/metrics")).text
    names = ("vllm:num_requests_running", "vllm:num_requests_waiting{")
    lines = [line for line in text.splitlines() if line.startswith(names)]
    return sum(int(float(line.rsplit(" ", 1)[1])) for line in lines)


async def test_cancelled_request_is_aborted_in_the_server(engine: VllmEngine) -> None:
    long = asyncio.create_task(engine.generate(checks.prompt(1), sampling=Sampling(1.0, 980)))
    for _ in range(1000):
        await asyncio.sleep(0.02)
        if await running_requests(engine) == 1:
            break
    assert await running_requests(engine) == 1
    long.cancel()
    for _ in range(1000):
        await asyncio.sleep(0.02)
        if await running_requests(engine) == 0:
            break
    assert await running_requests(engine) == 0


async def test_canary(engine: VllmEngine, tiny: Path, adapters: dict[str, Path]) -> None:
    chat = load_chat_format(tiny)
    chosen = {name: adapters[name] for name in ("pi-v1", "hermes-v1")}
    report = await canary(engine, chat, checks.reference(tiny, "float32"), chosen, dtype="float32")
    assert report.max_difference < 1e-3


async def test_broken_model_fails_with_the_log_line(tiny: Path, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "nonsense", "architectures": ["No"]}')
    with pytest.raises(EngineError, match=r"ended while starting \(exit 1\).*nonsense"):
        await VllmEngine.start(
            tmp_path, ServerOptions(), end_ids=END_IDS, log_file=tmp_path / "vllm.log"
        )


async def test_no_server_at_all(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="can't be reached"):
        await VllmEngine.attach("http://127.0.0.1:9", tmp_path, end_ids=END_IDS)


def alive(process_id: int) -> bool:
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{process_id}/stat").read_text().rsplit(")", 1)[1].split()[0]
    return state != "Z"


async def test_server_ends_when_its_parent_is_killed(tiny: Path, tmp_path: Path) -> None:
    script = (
        "import asyncio, sys\n"
        "from pathlib import Path\n"
        "from harness_adapters.engine import vllm_server as v\n"
        "create = asyncio.create_subprocess_exec\n"
        "async def told(*command, **options):\n"
        "    process = await create(*command, **options)\n"
        "    print(process.pid, flush=True)\n"
        "    return process\n"
        "v.asyncio.create_subprocess_exec = told\n"
        "log = Path(sys.argv[2])\n"
        "asyncio.run(v.VllmEngine.start(Path(sys.argv[1]), v.ServerOptions(), end_ids=[2],"
        " log_file=log))\n"
    )
    command = [sys.executable, "-c", script, str(tiny), str(tmp_path / "vllm.log")]
    parent = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    assert parent.stdout is not None
    server = int(await parent.stdout.readline())
    await asyncio.sleep(2.0)
    assert alive(server)
    parent.kill()
    await parent.wait()
    for _ in range(100):
        if not alive(server):
            break
        await asyncio.sleep(0.1)
    assert not alive(server)


async def test_dead_server_says_so(engine: VllmEngine) -> None:
    """Last: it kills the server that the other tests use."""
    waiting = asyncio.create_task(engine.generate(checks.prompt(1), sampling=Sampling(1.0, 980)))
    await asyncio.sleep(0.2)
    assert engine.process_id is not None
    os.killpg(engine.process_id, signal.SIGKILL)
    with pytest.raises(EngineError, match=r"died \(exit -9\); end of .*vllm\.log"):
        await waiting
    with pytest.raises(EngineError, match="died"):
        await engine.generate(checks.prompt(1), sampling=checks.GREEDY)
