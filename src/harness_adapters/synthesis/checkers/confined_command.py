"""Runs a command on what an agent left, confined: it may write the working directory and a scratch
directory, read these and the system, and nothing else (Landlock; see `confined.py`).
"""

import contextlib
import os
import resource
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

OUTPUT_BYTES = 4 << 20
_FILE_BYTES = 64 << 20
_PATIENCE = 4
"""So many seconds may pass for each second of the processor: a reward must not depend on what else
the machine does."""


@dataclass(frozen=True)
class Done:
    """How the command ended."""

    returncode: int
    stdout: str
    complaint: str
    """The last line on standard error."""
    problem: str
    """It ran too long or printed too much; else empty."""
    cpu_seconds: float


def run(workdir: Path, scratch: str, argv: list[str], stdin: str, seconds: float) -> Done:
    """Run `argv` in the working directory; all of its processes are dead at the end.

    `seconds` are the processor's, for each process.
    """
    environment = {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "HOME": scratch,
        "TMPDIR": scratch,
        "PYTHONHASHSEED": os.environ.get("PYTHONHASHSEED", "0"),
        "PYTHONPYCACHEPREFIX": f"{scratch}/pycache",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONNOUSERSITE": "1",
    }
    problem = ""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = subprocess.Popen(
            [sys.executable, "-I", __file__, str(workdir), scratch, str(int(seconds)), *argv],
            stdin=subprocess.PIPE,
            stdout=out,
            stderr=err,
            cwd=workdir,
            env=environment,
            start_new_session=True,
        )
        try:
            child.communicate(stdin.encode(), timeout=_PATIENCE * seconds)
        except subprocess.TimeoutExpired:
            problem = f"still running after {_PATIENCE * seconds:g} seconds"
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
        if child.returncode == -signal.SIGXCPU:
            problem = f"still running after {seconds:g} seconds of the processor"
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        out.seek(0)
        printed = out.read(OUTPUT_BYTES + 1)
        if len(printed) > OUTPUT_BYTES:
            problem = problem or f"printed more than {OUTPUT_BYTES} bytes"
        err.seek(0, os.SEEK_END)
        err.seek(max(0, err.tell() - 2000))
        complaint = err.read().decode("utf-8", "replace").strip().splitlines()
    last = complaint[-1] if complaint else f"exit code {child.returncode}"
    cpu_seconds = round(used.ru_utime + used.ru_stime, 2)
    return Done(child.returncode, printed.decode("utf-8", "replace"), last, problem, cpu_seconds)


def main() -> None:
    """The child: confine, limit, become the command."""
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    from confined import confine

    workdir, scratch, seconds, *argv = sys.argv[1:]
    confine(workdir, workdir, scratch)
    resource.setrlimit(resource.RLIMIT_FSIZE, (_FILE_BYTES, _FILE_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds) + 5))
    os.execvp(argv[0], argv)


if __name__ == "__main__":
    main()
