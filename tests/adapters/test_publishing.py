"""From a run to a directory that a stranger can use."""

import json
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

from harness_adapters.adapters import hub
from harness_adapters.adapters.card import publish
from harness_adapters.adapters.merge import merge
from harness_adapters.adapters.prompt import matches_prompt, prompt_sha256
from harness_adapters.adapters.serving import base_of, serving, serving_settings
from harness_adapters.adapters.source import find_adapter
from harness_adapters.cli.main import app
from harness_adapters.errors import ModelError
from harness_adapters.harness import Profile
from harness_adapters.harness.registry import get_harness
from harness_adapters.progress import Quiet
from harness_adapters.rollout.opening import Opening

from .conftest import save_adapter


@pytest.fixture
def published(trained: Path, tmp_path: Path) -> Path:
    return publish(trained, tmp_path / "published", Quiet())


def test_a_published_adapter_says_what_it_is(published: Path, trained: Path) -> None:
    shutil.rmtree(trained)
    adapter = find_adapter(published)
    assert adapter.base() == published / "base"
    assert adapter.origin is not None and adapter.origin.card is not None
    card = adapter.origin.card
    assert card["weights_sha256"] == adapter.sha256
    assert card["harness"]["name"] == "pi"
    assert len(card["harness"]["prompt_sha256"]) == 64
    assert card["evaluation"] is None
    assert adapter.origin.settings.budget.max_turns == 2
    assert {one.split for one in adapter.origin.trained_on} == {"train", "validation"}
    readme = (published / "README.md").read_text()
    assert "Not evaluated yet" in readme
    # Nothing of this machine goes out.
    for file in published.glob("*.[jm][sd]*"):
        assert str(trained.parent) not in file.read_text()
    assert matches_prompt(adapter, get_harness("pi"), Profile.LEAN) == ""
    other = matches_prompt(adapter, get_harness("hermes"), Profile.LEAN)
    assert "was trained in pi, not in hermes" in other


def test_another_prompt_than_that_of_the_training_is_said_in_one_line(published: Path) -> None:
    pi = get_harness("pi")
    note = matches_prompt(find_adapter(published), pi, Profile.STOCK)
    assert note.startswith("pi-v2 was trained on the lean profile of pi, not on stock")
    file = published / "adapter_card.json"
    card = json.loads(file.read_text())
    card["harness"] |= {"prompt_sha256": "0123456789" * 6 + "abcd", "version": "1.5.0"}
    file.write_text(json.dumps(card))
    note = matches_prompt(find_adapter(published), pi, Profile.LEAN)
    assert note.startswith("pi 1.6.0 sends another prompt (")
    assert note.endswith("pi-v2 was trained against (01234567, pi 1.5.0): expect less of it")
    assert "\n" not in note


def test_a_prompts_hash_is_the_same_tomorrow_and_on_another_kernel() -> None:
    words = "You are on {} ({}). Today is {}. Version {}."
    kernel = platform.release()

    def prompt(*values: str) -> Opening:
        return Opening([{"role": "system", "content": words.format(*values)}], [])

    one = prompt_sha256(prompt("Linux", kernel, "Tue Dec 01 2026", "1.6.0"))
    for date in ("Wed Dec 02 2026", "2027-01-31", "Monday, January 4, 2027", "4 January 2027"):
        assert prompt_sha256(prompt("Linux", kernel, date, "1.6.0")) == one, date
    assert prompt_sha256(prompt("Linux", kernel, "Tue Dec 01 2026", "1.6.1")) != one
    assert prompt_sha256(prompt("Darwin", kernel, "Tue Dec 01 2026", "1.6.0")) != one


def test_a_strangers_card_opens_no_door(published: Path) -> None:
    """What a card says may not run code, reach a server, or switch a place of this machine in."""
    file = published / "adapter_card.json"
    card = json.loads(file.read_text())
    card["settings"]["model"]["trust_remote_code"] = True
    card["settings"]["engine"]["url"] = "http://127.0.0.1:1"
    card["settings"]["tasks"]["dataset"] = "/etc"
    card["name"] = "../\x1b[31mred"
    file.write_text(json.dumps(card))
    adapter = find_adapter(published)
    settings = serving_settings([adapter], [])
    assert not settings.model.trust_remote_code
    assert settings.engine.url is None
    assert settings.tasks.dataset == "etc"
    assert adapter.label == "published"
    file.write_text("{}")
    with pytest.raises(ModelError, match=r"adapter_card.json and trained_on.json can't be read"):
        find_adapter(published)


def test_what_would_be_pushed_is_listed(published: Path, stray: Path) -> None:
    listed = CliRunner().invoke(app, ["push", str(published), "me/adapter", "--dry-run"])
    names = {line.split()[-1] for line in listed.output.splitlines()}
    assert {"README.md", "adapter_card.json", "trained_on.json"} <= names
    assert {"adapter_config.json", "adapter_model.safetensors", "base/config.json"} <= names
    with pytest.raises(ModelError, match=r"no adapter_card.json; .* writes what can be pushed"):
        hub.files_of(stray)


def test_a_directory_with_something_else_is_left_alone(trained: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("precious")
    with pytest.raises(ModelError, match="holds something else"):
        publish(trained, tmp_path / "mine", Quiet())


def test_a_merged_model_is_base_plus_adapter(tiny: Path, stray: Path, tmp_path: Path) -> None:
    import torch
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    out = merge(find_adapter(stray), tiny, tmp_path / "merged")
    ids = torch.tensor([[1, 500, 900, 42]])
    base = AutoModelForCausalLM.from_pretrained(tiny, dtype=torch.float32)
    merged = AutoModelForCausalLM.from_pretrained(out, dtype=torch.float32)
    with torch.no_grad():
        plain = base(ids).logits
        wanted = PeftModel.from_pretrained(base, str(stray))(ids).logits
        assert torch.allclose(merged(ids).logits, wanted, atol=1e-4)
    assert not torch.allclose(plain, wanted, atol=1e-2)
    assert (out / "chat_template.jinja").is_file()
    with pytest.raises(ModelError, match="is not empty"):
        merge(find_adapter(stray), tiny, out)


async def test_the_endpoint_serves_every_adapter_by_name(
    trained: Path, tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HARNESS_ADAPTERS_HOME", str(tmp_path / "home"))
    adapters = [find_adapter(trained), find_adapter(save_adapter(tiny, tmp_path / "other", 5))]
    assert base_of([adapters[0]], print) == tiny
    settings = serving_settings(adapters, [])
    async with (
        serving(adapters, tiny, settings, Quiet()) as served,
        httpx.AsyncClient(base_url=served.address, timeout=120) as client,
    ):
        models = (await client.get("/models")).json()["data"]
        assert [m["id"] for m in models] == served.models == ["pi-v2", "other", "base"]
        for model in ("pi-v2", "other", "base", "model"):
            body = {
                "model": model,
                "messages": [{"role": "user", "content": "Say hi."}],
                "max_tokens": 4,
            }
            answer = (await client.post("/chat/completions", json=body)).json()
            assert answer["usage"]["completion_tokens"] in (1, 2, 3, 4)
            assert answer["usage"]["prompt_tokens"] > 5
        wrong = await client.post("/chat/completions", json={**body, "model": "gpt"})
        assert wrong.status_code == 404
        assert "there are pi-v2, other, base" in wrong.text


@pytest.mark.heavy
@pytest.mark.timeout(900)
def test_a_stranger_uses_a_published_adapter(
    published: Path, trained: Path, tmp_path: Path
) -> None:
    """From the directory alone: the real pi, the real engine, in a directory of the user's."""
    shutil.rmtree(trained)
    work = tmp_path / "work"
    work.mkdir()
    command = "from harness_adapters.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", command, "use", "pi", "--adapter", str(published),
         "--set", "engine.kind=transformers", "--",
         "--mode", "json", "--no-session", "-p", "Say hi."],
        cwd=work, capture_output=True, text=True, timeout=800, stdin=subprocess.DEVNULL,
        env={**os.environ, "HOME": str(tmp_path), "XDG_DATA_HOME": ""} | real_home(),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    events = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    answers = [
        e["message"]
        for e in events
        if e.get("type") == "message_end" and e["message"]["role"] == "assistant"
    ]
    assert answers
    assert answers[-1].get("stopReason") not in ("error", "aborted"), answers[-1]
    assert "pi 1.6.0 on pi-v2" in done.stderr


def real_home() -> dict[str, str]:
    """Where the agents are installed, whatever HOME says."""
    from harness_adapters.paths import data_dir

    return {"HARNESS_ADAPTERS_HOME": str(data_dir())}
