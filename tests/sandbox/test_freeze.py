from __future__ import annotations

import asyncio
import os
import stat
from pathlib import Path

import pytest

from harness_adapters.errors import SandboxError, WorkspaceError
from harness_adapters.paths import scratch_dir
from harness_adapters.sandbox import BwrapSandbox, Frozen
from harness_adapters.sandbox.trees import copy_tree, remove_tree

from .conftest import out, sh


async def freeze(lower: Path, script: str) -> Frozen:
    async with BwrapSandbox([lower]) as box:
        await out(box, script)
        return box.freeze()


async def test_changes_and_deletions_reach_the_next_sandbox(lower: Path) -> None:
    script = """
    rm old.txt; echo changed > data.txt; mkdir -p new/deep; echo x > new/deep/file
    rm -rf sub; mkdir sub; echo other > sub/other.txt; ln -s data.txt link; ln -s ../data.txt new/up
    """
    with await freeze(lower, script) as frozen:
        assert frozen.removed == 0 and frozen.files > 5
        for _ in range(2):  # the layer itself never changes
            async with BwrapSandbox([lower, frozen.layer]) as box:
                listing = await out(box, "find . -printf '%P\\n' | sort | xargs; cat link new/up")
                names = "data.txt link new new/deep new/deep/file new/up sub sub/other.txt"
                assert listing == f"{names}\nchanged\nchanged\n"
                await out(box, "rm -rf sub new; echo hi > old.txt")
    assert not frozen.layer.exists()


async def test_the_layer_outlives_its_sandbox_and_is_discarded_once(lower: Path) -> None:
    frozen = await freeze(lower, "echo x > kept")
    assert (frozen.layer / "kept").read_text() == "x\n"
    frozen.discard()
    frozen.discard()
    assert not list(scratch_dir().glob(f"*-{os.getpid()}-*"))


async def test_only_plain_files_survive(lower: Path) -> None:
    script = """
    mkfifo pipe; rm data.txt; mkfifo data.txt
    python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("socket")'
    echo x > tool; chmod 6755 tool; mkdir closed; echo y > closed/in; chmod 000 closed
    """
    with await freeze(lower, script) as frozen:
        assert frozen.removed == 3
        kinds = {entry.name: entry.lstat().st_mode for entry in frozen.layer.iterdir()}
        assert "pipe" not in kinds and "socket" not in kinds
        # It shadowed a file of the task: it stays deleted rather than come back.
        assert stat.S_ISCHR(kinds["data.txt"])
        assert stat.S_IMODE(kinds["tool"]) == 0o755
        async with BwrapSandbox([lower, frozen.layer]) as box:
            assert await out(box, "ls; cat closed/in") == "closed\nold.txt\nsub\ntool\ny\n"


@pytest.mark.parametrize(
    "target",
    [
        "/tests/expected.txt",
        "../tests/expected.txt",
        "sub/../../tests/expected.txt",
        "inside/../../tests/expected.txt",
        "/app/../tests/expected.txt",
        "/proc/self/root/tests/expected.txt",
        "/application/x",
    ],
)
async def test_escaping_links_are_dropped(lower: Path, target: str) -> None:
    script = f"mkdir -p a/b; ln -s ../.. a/b/inside; ln -s {target} bad; ln -s /app/sub good"
    with await freeze(lower, script) as frozen:
        names = {entry.name for entry in frozen.layer.iterdir()}
        assert "bad" not in names and "good" in names
        assert frozen.removed == 1


async def test_a_link_that_counts_on_another_link_is_dropped(lower: Path) -> None:
    # Read as text, a/b/up/../tests is inside; followed, a/b/up is the top and .. is its parent.
    script = "mkdir -p a/b; ln -s ../.. a/b/up; ln -s a/b/up/../tests bad"
    with await freeze(lower, script) as frozen:
        assert frozen.removed == 1 and not os.path.lexists(frozen.layer / "bad")


async def test_forged_overlay_attributes_do_not_survive(lower: Path) -> None:
    script = """python3 -c '
import os
os.mkdir("d"); open("d/f", "w").close()
for name in ("user.note", "user.overlay.opaque", "user.overlay.redirect", "user.overlay.metacopy"):
    for path in ("d", "d/f", "sub"):
        try: os.setxattr(path, name, b"y")
        except OSError: pass
'"""
    with await freeze(lower, script) as frozen:
        for path in (frozen.layer / "d", frozen.layer / "d" / "f", frozen.layer / "sub"):
            assert set(os.listxattr(path)) <= {"user.overlay.opaque"}
        async with BwrapSandbox([lower, frozen.layer]) as box:
            assert await out(box, "cat sub/inner.txt") == "inner\n"


async def test_a_workspace_beyond_the_limits_is_refused(lower: Path) -> None:
    for script, limits, message in (
        ("for i in $(seq 30); do echo > f$i; done", {"max_files": 20}, "more than 20"),
        ("head -c 3m /dev/zero > big", {"max_bytes": 1 << 20}, "more than 1 MB"),
        ("mkdir -p a/b/c/d/e", {"max_depth": 3}, "deeper than 3"),
    ):
        async with BwrapSandbox([lower]) as box:
            await out(box, script)
            with pytest.raises(WorkspaceError, match=message):
                box.freeze(**limits)  # type: ignore[arg-type]
    assert not list(scratch_dir().glob(f"*-{os.getpid()}-*"))


DEEP = """
import os
for _ in range(3000):
    os.mkdir("d" * 20); os.chdir("d" * 20)
open("end", "w").close()
"""


async def test_a_deep_tree_is_refused_and_removed(lower: Path) -> None:
    async with BwrapSandbox([lower]) as box:
        result = await box.exec(["/usr/bin/python3", "-c", DEEP], env={}, timeout=60)
        assert result.returncode == 0, result.stderr
        result = await box.exec(
            ["/usr/bin/python3", "-c", "import os; os.chdir('/home/agent')\n" + DEEP],
            env={},
            timeout=60,
        )
        assert result.returncode == 0, result.stderr
        with pytest.raises(WorkspaceError, match="deeper than 64"):
            box.freeze()
    assert not list(scratch_dir().glob(f"*-{os.getpid()}-*"))


async def test_a_frozen_sandbox_is_spent(lower: Path) -> None:
    async with BwrapSandbox([lower]) as box:
        running = asyncio.create_task(sh(box, "sleep 30"))
        await asyncio.sleep(0.1)
        with pytest.raises(SandboxError, match="still running") as early:
            box.freeze()
        assert not isinstance(early.value, WorkspaceError)  # the caller's mistake, not the agent's
        running.cancel()
        await asyncio.wait([running])
        box.freeze().discard()
        with pytest.raises(SandboxError, match="frozen"):
            await sh(box, "true")
        with pytest.raises(SandboxError, match="frozen"):
            box.freeze()


def test_remove_tree_follows_no_link_and_needs_no_permission(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("safe")
    tree = tmp_path / "tree"
    (tree / "closed" / "in").mkdir(parents=True)
    (tree / "closed" / "in" / "x").write_text("x")
    (tree / "link").symlink_to(outside)
    (tree / "closed" / "up").symlink_to("../..")
    (tree / "closed").chmod(0)
    remove_tree(tree)
    remove_tree(tree)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["outside"]
    assert (outside / "file").read_text() == "safe"
    (tmp_path / "link").symlink_to(outside)
    remove_tree(tmp_path / "link")
    assert (outside / "file").exists() and not os.path.lexists(tmp_path / "link")


def test_copy_tree_keeps_what_matters(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    (source / "d").mkdir(parents=True)
    (source / "d" / "tool").write_text("x")
    (source / "d" / "tool").chmod(0o4750)
    (source / "link").symlink_to("d/tool")
    os.utime(source / "d" / "tool", (1000, 2000))
    os.mkfifo(source / "pipe")
    copy_tree(source, target, os.getuid())
    info = (target / "d" / "tool").stat()
    assert (stat.S_IMODE(info.st_mode), info.st_mtime) == (0o750, 2000)
    assert (target / "link").readlink() == Path("d/tool")
    assert not (target / "pipe").exists()
