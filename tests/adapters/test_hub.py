"""Pushing to a Hub and using what lies there, by the real client and the real command line."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness_adapters.adapters.card import publish
from harness_adapters.paths import data_dir
from harness_adapters.progress import Quiet

from .hub_server import TOKEN, Hub, running_hub

MAIN = "from harness_adapters.cli.main import main; main()"
FIND = """
import sys
from pathlib import Path
from harness_adapters.adapters.source import find_adapter
from harness_adapters.errors import HarnessAdaptersError
try:
    found = find_adapter(Path(sys.argv[1]))
    print(found.path, found.label, found.sha256, found.base())
except HarnessAdaptersError as error:
    print(error, file=sys.stderr)
    sys.exit(error.exit_code)
"""


@pytest.fixture
def hub() -> Iterator[Hub]:
    with running_hub() as hub:
        yield hub


@pytest.fixture
def published(trained: Path, tmp_path: Path) -> Path:
    return publish(trained, tmp_path / "published", Quiet())


def run(
    hub: Hub, home: Path, *words: str, code: str = MAIN, token: str = TOKEN
) -> subprocess.CompletedProcess[str]:
    """A process of its own: the client reads the Hub's address when it is imported."""
    env = {
        **os.environ, "HF_ENDPOINT": hub.address, "HF_HOME": str(home), "HF_TOKEN": token,
        "HF_HUB_DISABLE_TELEMETRY": "1", "HF_HUB_DISABLE_XET": "1",
        "HARNESS_ADAPTERS_HOME": str(data_dir()),
        # Machines that test are busy.
        "HF_HUB_ETAG_TIMEOUT": "120", "HF_HUB_DOWNLOAD_TIMEOUT": "120",
    }  # fmt: skip
    return subprocess.run(
        [sys.executable, "-c", code, *words], env=env, capture_output=True, text=True, timeout=250
    )


def test_what_is_pushed_comes_back_whole(hub: Hub, published: Path, tmp_path: Path) -> None:
    done = run(hub, tmp_path / "mine", "push", str(published), "me/adapter", "--private")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == f"{hub.address}/me/adapter"
    assert hub.commits == [("me/adapter", "Adapter with its card")]
    assert hub.private == {"me/adapter"}
    here = {str(p.relative_to(published)): p.read_bytes() for p in published.rglob("*.*")}
    assert hub.repositories["me/adapter"] == here
    assert "base/model.safetensors" in here

    found = run(hub, tmp_path / "theirs", "me/adapter", code=FIND)
    assert found.returncode == 0, found.stderr
    path, label, sha256, base = found.stdout.split()
    assert str(tmp_path / "theirs") in path
    assert label == "pi-v2"
    assert base == f"{path}/base"
    for name, content in here.items():
        assert Path(path, name).read_bytes() == content
    assert len(sha256) == 64


def test_what_the_hub_refuses_is_one_line(hub: Hub, published: Path, tmp_path: Path) -> None:
    wrong = run(hub, tmp_path, "push", str(published), "me/adapter", token="hf_wrong")
    assert wrong.returncode == 2
    assert wrong.stderr.startswith("harness-adapters: me/adapter: not uploaded: ")
    assert wrong.stderr.rstrip().endswith("check HF_TOKEN and the name")
    assert len(wrong.stderr.splitlines()) == 1
    assert hub.repositories == {}
    name = run(hub, tmp_path, "push", str(published), "me/not a name")
    assert name.returncode == 2
    assert len(name.stderr.splitlines()) == 1
    missing = run(hub, tmp_path / "theirs", "me/nothing", code=FIND)
    assert missing.returncode == 2
    assert "me/nothing: neither a directory nor a repository that can be had" in missing.stderr


def test_a_broken_upload_leaves_the_last_one(hub: Hub, published: Path, tmp_path: Path) -> None:
    assert run(hub, tmp_path, "push", str(published), "me/adapter").returncode == 0
    before = dict(hub.repositories["me/adapter"])
    (published / "README.md").write_text("# changed\n")
    hub.broken = True
    done = run(hub, tmp_path, "push", str(published), "me/adapter")
    assert done.returncode == 2
    assert "not uploaded" in done.stderr
    assert hub.repositories["me/adapter"] == before
    hub.broken = False
    assert run(hub, tmp_path, "push", str(published), "me/adapter").returncode == 0
    assert hub.repositories["me/adapter"]["README.md"] == b"# changed\n"
    assert hub.repositories["me/adapter"].keys() == before.keys()
