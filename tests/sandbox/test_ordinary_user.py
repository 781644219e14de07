from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import harness_adapters
from harness_adapters.sandbox.trees import reachable

USER = 61_234


def python_for(uid: int) -> str:
    """An interpreter that `uid` can run and that has this one's version."""
    own = Path(sys.executable).resolve()
    if reachable(own, uid):
        return str(own)
    other = shutil.which(f"python3.{sys.version_info.minor}", path="/usr/bin")
    if other is None:
        pytest.skip(f"no Python of this version that uid {uid} can run")
    return other


@pytest.mark.skipif(os.geteuid() != 0, reason="an ordinary user runs all other tests as one")
def test_a_whole_session_without_root(machine: None, tmp_path: Path) -> None:
    packages = [str(Path(harness_adapters.__file__).parents[1]), sysconfig.get_path("purelib")]
    script = Path(__file__).with_name("ordinary_user.py")
    if not all(reachable(Path(path) / "x", USER) for path in [*packages, str(script.parent)]):
        pytest.skip("this checkout lies in a directory of root's own")
    argv = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "--no-new-privs"]
    env = {"PATH": "/usr/bin:/bin", "HOME": "/", "PYTHONPATH": os.pathsep.join(packages)}
    env["PYTHONDONTWRITEBYTECODE"] = "1"
    done = subprocess.run(
        [*argv, python_for(USER), str(script)], env=env, cwd="/", capture_output=True, timeout=60
    )
    shutil.rmtree(f"/dev/shm/harness-adapters-{USER}", ignore_errors=True)
    assert done.returncode == 0, done.stderr.decode()
    report = json.loads(done.stdout)
    assert report["uid"] == USER and report["problems"] == []
    assert report["stdout"] == "1000\nheard hello\n"
    assert report["kept"] == ["0o100400", []]
    assert report["score"] == 1.0 and report["left"] == []
    if report["process_limit"] != "none":
        assert "Resource temporarily unavailable" in report["stderr"]
