"""What a harness sends first, measured on the real program."""

import dataclasses

import pytest
from typer.testing import CliRunner

from harness_adapters.cli.harness import app
from harness_adapters.errors import HarnessError
from harness_adapters.harness import Launch, Profile, registry
from harness_adapters.harness.install import install
from harness_adapters.harness.pi import LEAN_SYSTEM_PROMPT, Pi
from harness_adapters.rollout.opening import play_opening


@pytest.fixture
def pi() -> Pi:
    install("pi")
    return Pi()


async def test_an_opening_is_what_every_session_starts_with(pi: Pi) -> None:
    lean, again, stock = [
        await play_opening(pi, profile) for profile in (Profile.LEAN, Profile.LEAN, Profile.STOCK)
    ]
    assert lean == again and lean.sha256 == again.sha256 != stock.sha256
    assert len(lean.sha256) == 64
    assert [message["role"] for message in lean.messages] == ["system"]
    assert lean.messages[0]["content"].startswith(LEAN_SYSTEM_PROMPT)
    assert [tool["function"]["name"] for tool in lean.tools] == ["read", "bash", "edit", "write"]


@dataclasses.dataclass(frozen=True)
class Silent(Pi):
    """Ends before it asks anything."""

    def launch(self, prompt: str, **options: object) -> Launch:
        return Launch(["/bin/sh", "-c", "echo no model >&2; exit 3"], {}, b"", {})


async def test_a_harness_that_asks_nothing_is_an_error() -> None:
    with pytest.raises(HarnessError, match=r"pi 1\.6\.0 asked the model nothing: no model"):
        await play_opening(Silent(), Profile.LEAN)


def test_the_list_shows_sizes_and_hashes(pi, smollm2, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_KNOWN", {"pi": Pi})
    listed = CliRunner().invoke(app, ["list", "--measure", "--model", str(smollm2)])
    assert listed.exit_code == 0, listed.output
    head, *rows = listed.output.splitlines()
    assert head.startswith("pi 1.6.0  /")
    assert [row.split()[0] for row in rows] == list(Profile)
    tokens = {row.split()[0]: int(row.split()[1].replace(",", "")) for row in rows}
    assert 500 < tokens["lean"] < tokens["stock"] < 2000
    assert all(len(row.split()[-1]) == 64 for row in rows)
