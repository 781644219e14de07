"""Processes, namespaces, containers, schedulers and other powers over the machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness_adapters.guard.effects.holes import ANY, OPAQUE, as_written, known
from harness_adapters.guard.effects.kinds import Kind
from harness_adapters.guard.effects.shell.commands.table import command, nested, options

if TYPE_CHECKING:
    from harness_adapters.guard.effects.shell.run import Shell


FOUND = ANY + "process-found-by:"
"""What `pgrep` and a filtered `ps` print, so that `kill $(pgrep NAME)` is a kill by name."""


@command("pgrep", "pidof")
def pgrep(shell: Shell, argv: list[str], stdin: str) -> str:
    """Numbers of processes by name."""
    _, operands = options(argv, ["-u", "-t", "-g", "-P", "-d"])
    return "".join(f"{FOUND}{operand.replace(' ', '.')}\n" for operand in operands)


@command("ps")
def ps(shell: Shell, argv: list[str], stdin: str) -> str:
    """Lists processes; asked for parents, it may print the agent's own number."""
    return OPAQUE if any("ppid" in word for word in argv) else FOUND + ".\n"


@command("kill")
def kill(shell: Shell, argv: list[str], stdin: str) -> str:
    """Signals to processes by number or job."""
    words = list(argv)
    if words[:1] and words[0][:1] == "-" and len(words) > 1:
        words = words[2:] if words[0] in ("-s", "-n") else words[1:]
    for word in words:
        if word in ("-1", "0") or (word == "--"):
            shell.world.emit(Kind.PROCESS, "kill-all")
        elif word[:1] not in "%-l":
            for pid in word.split():
                if OPAQUE in pid:
                    shell.world.emit(Kind.PROCESS, "kill-parent")
                elif pid.startswith(FOUND):
                    shell.world.emit(Kind.PROCESS, f"kill-line:{as_written(pid[len(FOUND) :])}")
                else:
                    shell.world.emit(Kind.PROCESS, f"kill:{pid}")
    return ""


@command("pkill", "killall", "killall5", "skill")
def pkill(shell: Shell, argv: list[str], stdin: str) -> str:
    """Signals to processes by name; -f looks at whole command lines."""
    flags, operands = options(argv, ["-u", "-t", "-g", "-P", "-s", "--signal"])
    whole = "line" if "-f" in flags else "name"
    for operand in operands:
        shell.world.emit(Kind.PROCESS, f"kill-{whole}:{operand}")
    if not operands and ("-u" in flags or "killall5" in argv):
        shell.world.emit(Kind.PROCESS, "kill-all")
    return ""


@command("fuser", "lsof")
def fuser(shell: Shell, argv: list[str], stdin: str) -> str:
    """Looks for users of files and ports; `fuser -k` ends them."""
    flags, operands = options(argv, ["-n", "-i", "-p"])
    if "-k" in flags or "--kill" in flags:
        for operand in operands:
            shell.world.emit(Kind.PROCESS, f"kill-port:{operand.split('/')[0]}")
    return ANY


@command("shutdown", "reboot", "halt", "poweroff", "init", "telinit")
def halt(shell: Shell, argv: list[str], stdin: str) -> str:
    """Ends everything."""
    shell.world.emit(Kind.PROCESS, "kill-all")
    return ""


_COMPOSE_LOOKS = ("ps", "ls", "images", "top", "port", "logs", "version")
"""Verbs that show a project's containers and run nothing. `config` would print `.env`."""


@command(
    *("nsenter", "unshare", "chroot", "pivot_root", "mount", "umount", "bwrap", "firejail"),
    *("docker", "podman", "nerdctl", "ctr", "crictl", "runc", "lxc", "lxc-attach", "vagrant"),
    *("machinectl", "systemd-nspawn", "insmod", "modprobe", "rmmod", "kexec", "debugfs"),
    *("losetup", "fusermount", "sshfs", "setcap", "capsh", "nsjail", "proot", "pdeathsig"),
    *("ip6tables", "iptables", "nft", "tc", "brctl", "qemu-system-x86_64", "virsh"),
)
def escape(shell: Shell, argv: list[str], stdin: str) -> str:
    """Another root, namespace or machine, from which paths mean something else."""
    if (
        not argv
        or argv[-1] == "version"
        or argv[0] in ("--version", "-V", "--help", "version", "images", "ps", "info")
        or (argv[0] == "compose" and argv[1:2] and argv[1] in _COMPOSE_LOOKS)
    ):
        return ANY
    shell.world.emit(Kind.ESCAPE, "namespace")
    words = [w for w in argv if w[:1] != "-"]
    while words and ("/" not in words[0] or words[0].startswith("/")) and words[0] not in ("sh",):
        if words[0] in ("cat", "bash", "ls"):
            break
        words = words[1:]
    return nested(shell, words, stdin) if words else ANY


@command("umount", "gcore", "reptyr", "dlv", "rr", "bpftrace", "perf")
def debugger(shell: Shell, argv: list[str], stdin: str) -> str:
    """Reaches into other processes."""
    if argv[:1] in (["stat"], ["record"], ["report"], ["debug"], ["test"]):
        return ANY
    shell.world.emit(Kind.ESCAPE, "ptrace")
    return ANY


@command("crontab", "atq", "batch", "systemd-run", "anacron", "launchctl")
def schedule(shell: Shell, argv: list[str], stdin: str) -> str:
    """Work for later, outside the session."""
    if argv not in (["-l"], ["list"]):
        shell.world.emit(Kind.SCHEDULE, "cron")
    return ANY


@command("at")
def at(shell: Shell, argv: list[str], stdin: str) -> str:
    """Work at a time."""
    shell.world.emit(Kind.SCHEDULE, "at")
    if known(stdin) and stdin:
        shell.run(stdin)
    return ANY


@command("systemctl", "service", "supervisorctl", "rc-service")
def services(shell: Shell, argv: list[str], stdin: str) -> str:
    """Services of the machine; looking is free."""
    looking = ("status", "is-active", "list-units", "show", "cat", "is-enabled", "list-timers")
    if not any(a in looking for a in argv):
        shell.world.emit(Kind.SCHEDULE, "service")
    return ANY


@command("mkfs", "mkfs.ext4", "fdisk", "parted", "wipefs", "mkswap", "blkdiscard", "sgdisk")
def disks(shell: Shell, argv: list[str], stdin: str) -> str:
    """Writes to whole devices."""
    for word in argv:
        if word.startswith("/"):
            shell.world.emit(Kind.WRITE, shell.world.path(word), existing=True)
    return ANY


@command("alias")
def alias(shell: Shell, argv: list[str], stdin: str) -> str:
    """Another name for a command; its text is judged as if it were run."""
    for word in argv:
        _, equals, text = word.partition("=")
        if equals and known(text):
            shell.run(text)
        elif equals:
            shell.world.emit(Kind.UNRESOLVED, "code")
    return ""


@command("tmux", "screen", "dtach", "abduco")
def multiplexer(shell: Shell, argv: list[str], stdin: str) -> str:
    """A terminal that others are run in, or typed into."""
    _flags, operands = options(argv, ["-S", "-t", "-s", "-c", "-n", "-L", "-X", "-p"], stop=False)
    verbs = ("new-session", "new", "send-keys", "send", "new-window", "split-window", "attach")
    _, words = options(argv, ["-S", "-t", "-s", "-c", "-n", "-L", "-X", "-p"], stop=True)
    if len(words) > 1 and words[0] not in verbs:
        nested(shell, words, stdin)
    texts = [o for o in operands if o not in verbs and o not in ("Enter", "C-m", "stuff", "ls")]
    for text in texts:
        if known(text):
            shell.run(text.replace("^M", "\n"))
        else:
            shell.world.emit(Kind.UNRESOLVED, "code")
    return ANY
