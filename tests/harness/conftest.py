from functools import partial
from pathlib import Path

import pytest

from gateway.support import make_gateway, spec
from harness_adapters.harness import Profile
from harness_adapters.harness.install import install
from harness_adapters.harness.pi import Pi
from harness_adapters.sandbox import BwrapSandbox


@pytest.fixture(scope="session")
def pi() -> Pi:
    """The real pi, installed where users have it."""
    install("pi")
    return Pi()


@pytest.fixture
def play(pi, tmp_path):
    """Play one session of the real pi in a real sandbox on a script; see `run`."""

    async def run(
        script,
        *,
        files=None,
        prompt="Do it.",
        profile=Profile.LEAN,
        policy=None,
        session="s1",
        timeout=60,
        gateway=None,
        **changes,
    ):
        """Returns the tape, how pi says it ended, and what it left in its directory."""
        lower = tmp_path / f"files-{session}"
        lower.mkdir(exist_ok=True)
        for name, text in (files or {}).items():
            (lower / name).parent.mkdir(parents=True, exist_ok=True)
            (lower / name).write_text(text)
        gateway = gateway or make_gateway(tmp_path, {}, policy=policy)
        gateway.engine.script(session, script)
        tape = gateway.open(spec(session, **changes))
        launch = pi.launch(
            prompt, base_url="http://127.0.0.1:8080/v1", profile=profile, max_context=4096
        )
        async with BwrapSandbox(
            [lower], "/app", home_files=launch.home_files, binds=launch.binds
        ) as box:
            result = await box.exec(
                launch.argv,
                env=launch.env,
                timeout=timeout,
                stdin=launch.stdin,
                serve=partial(gateway.serve, tape),
            )
            with box.freeze() as frozen:
                left = {
                    path.name: path.read_text()
                    for path in Path(frozen.layer).iterdir()
                    if path.is_file()
                }
        return tape, pi.end(result, model_calls=len(tape.turns)), left, result

    return run
