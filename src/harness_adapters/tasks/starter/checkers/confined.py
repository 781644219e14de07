"""Runs an agent's code in a confined child process, never in the verifier's own.

The child reads the system and the working directory and nothing else: by Landlock (Linux 5.13 or
newer; needs no privilege, passes to its children) it can neither read the expected values nor
write a reward, open a TCP port or trace its parent. Without Landlock nothing is run: no reward is
better than a forged one.
"""

import contextlib
import ctypes
import os
import resource
import signal
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

PYTHON = "/usr/bin/python3"
OUTPUT_BYTES = 1 << 20
_SYSTEM = ("/usr", "/lib", "/lib64", "/bin", "/etc", "/dev/null", "/dev/urandom")
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_READ_FILE, _READ_DIR, _EXECUTE, _WRITE_FILE = 1 << 2, 1 << 3, 1 << 0, 1 << 1
_PR_SET_NO_NEW_PRIVS = 38


class RefusedError(Exception):
    """The candidate ran too long, printed too much or can't be confined on this machine."""


def run(workdir: Path, code: str, arguments: list[str], stdin: str, seconds: float) -> str:
    """Standard output of trusted `code`, which may import or run the candidate's.

    Raises RefusedError with one line for people, standard error's last line included.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = subprocess.Popen(
            [PYTHON, "-I", __file__, str(workdir), code, *arguments],
            stdin=subprocess.PIPE,
            stdout=out,
            stderr=err,
            cwd=workdir,
            env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"},
            start_new_session=True,
        )
        try:
            child.communicate(stdin.encode(), timeout=seconds)
        except subprocess.TimeoutExpired:
            raise RefusedError(f"still running after {seconds:g} seconds") from None
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
        out.seek(0)
        printed = out.read(OUTPUT_BYTES + 1)
        err.seek(0, os.SEEK_END)
        err.seek(max(0, err.tell() - 2000))
        complaint = err.read().decode("utf-8", "replace").strip().splitlines()
    if child.returncode != 0:
        raise RefusedError(complaint[-1] if complaint else f"exit code {child.returncode}")
    if len(printed) > OUTPUT_BYTES:
        raise RefusedError(f"printed more than {OUTPUT_BYTES} bytes")
    return printed.decode("utf-8", "replace")


def confine(readable: str, *writable: str) -> None:
    """Give up everything but reading `readable` and the system, for itself and its children.

    Below the directories `writable` all is allowed.
    """
    libc = ctypes.CDLL(None, use_errno=True)

    def call(number: int, *arguments: object) -> int:
        result = libc.syscall(ctypes.c_long(number), *arguments)
        if result < 0:
            raise OSError(ctypes.get_errno(), "Landlock is not available")
        return result

    version = call(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint(1))
    rights = (1 << (13 + (version >= 2) + (version >= 3) + (version >= 5))) - 1
    network = 0b11 if version >= 4 else 0
    scopes = 0b11 if version >= 6 else 0
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    attributes = ctypes.create_string_buffer(
        struct.pack("QQQ", rights, network, scopes)[:size], size
    )
    ruleset = call(_CREATE_RULESET, attributes, ctypes.c_size_t(size), ctypes.c_uint(0))
    for path in (*_SYSTEM, readable, *writable):
        try:
            handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except FileNotFoundError:
            continue
        allowed = _READ_FILE | _EXECUTE | (_READ_DIR if Path(path).is_dir() else _WRITE_FILE)
        allowed = rights if path in writable else allowed
        rule = ctypes.create_string_buffer(struct.pack("<Qi", allowed, handle), 12)
        call(_ADD_RULE, ctypes.c_int(ruleset), ctypes.c_int(1), rule, ctypes.c_uint(0))
        os.close(handle)
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "no_new_privs")
    call(_RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint(0))
    os.close(ruleset)


def main() -> None:
    """The child: confine, limit, then run the trusted code given as an argument."""
    workdir, code, *arguments = sys.argv[1:]
    confine(workdir)
    resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
    resource.setrlimit(resource.RLIMIT_FSIZE, (OUTPUT_BYTES * 2, OUTPUT_BYTES * 2))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.execv(PYTHON, [PYTHON, "-I", "-B", "-c", code, *arguments])


if __name__ == "__main__":
    main()
