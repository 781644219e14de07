from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import pytest

from harness_adapters.errors import SandboxError
from harness_adapters.paths import scratch_dir
from harness_adapters.sandbox import Bind, BwrapSandbox, Limits

from .conftest import out, sh


def alive(marker: str) -> list[str]:
    """Host processes whose command line starts with `marker`."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and (entry / "cmdline").read_bytes().startswith(
                marker.encode()
            ):
                found.append(entry.name)
        except OSError:
            continue
    return [pid for pid in found if int(pid) != os.getpid()]


def descriptors() -> list[str]:
    """This process's open descriptors; the one that lists them always has the same number."""
    return sorted(entry.name for entry in Path("/proc/self/fd").iterdir())


async def test_overlay_shows_lowers_and_never_writes_them(lower: Path) -> None:
    async with BwrapSandbox([lower]) as box:
        assert await out(box, "pwd; cat data.txt; ls") == "/app\none\ntwo\ndata.txt\nold.txt\nsub\n"
        await out(box, "echo three >> data.txt; rm old.txt; echo new > sub/new.txt")
        # The workspace lives on from one command to the next.
        assert await out(box, "cat data.txt; ls . sub") == (
            "one\ntwo\nthree\n.:\ndata.txt\nsub\n\nsub:\ninner.txt\nnew.txt\n"
        )
    assert (lower / "data.txt").read_text() == "one\ntwo\n"
    assert (lower / "old.txt").exists() and not (lower / "sub" / "new.txt").exists()


async def test_later_lowers_lie_on_top(lower: Path, tmp_path: Path) -> None:
    top = tmp_path / "top"
    top.mkdir()
    (top / "data.txt").write_text("top\n")
    async with BwrapSandbox([lower, top]) as box:
        assert await out(box, "cat data.txt old.txt") == "top\nold\n"


async def test_host_files_are_out_of_sight(lower: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("s3cret")
    async with BwrapSandbox([lower]) as box:
        result = await sh(box, f"cat {secret} /etc/shadow; ls / /etc /home; ls {tmp_path}")
        shown = result.stdout.decode()
        assert "s3cret" not in shown
        assert {"root", "work", "srv", "sys", "boot", "shadow"}.isdisjoint(shown.split())
        assert "tests" not in shown.split() and "solution" not in shown.split()


async def test_nothing_outside_the_workspace_is_writable(lower: Path) -> None:
    places = "/x /etc/x /usr/x /dev/x /bin/x /run/x /var/x /tests /etc/ld.so.preload /proc/sys/x"
    async with BwrapSandbox([lower]) as box:
        result = await sh(box, f"for p in {places}; do echo hi > $p && echo wrote $p; done; true")
        assert result.stdout == b""
        core = "echo x > /proc/sys/kernel/core_pattern || echo refused"
        assert await out(box, core) == "refused\n"


async def test_user_capabilities_and_namespaces(lower: Path) -> None:
    async with BwrapSandbox([lower]) as box:
        assert await out(box, "id -un; id -u; id -G") == "agent\n1000\n1000\n"
        status = await out(box, "cat /proc/self/status")
        assert "CapEff:\t0000000000000000" in status and "NoNewPrivs:\t1" in status
        for command in ("unshare -U true", "mount -t tmpfs x /tmp", "chroot / true"):
            assert (await sh(box, command)).returncode != 0, command
        host_uid = await out(box, "cat /proc/self/uid_map")
        assert "1000" in host_uid.split()


async def test_sandboxed_processes_are_not_root_on_the_host(lower: Path) -> None:
    async with BwrapSandbox([lower]) as box:
        running = asyncio.create_task(sh(box, "exec sleep 3.14159"))
        for _ in range(200):
            if pids := alive("sleep\x003.14159"):
                break
            await asyncio.sleep(0.02)
        owner = {Path(f"/proc/{pid}").stat().st_uid for pid in pids}
        assert owner and 0 not in owner
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert not alive("sleep\x003.14159")


async def test_environment_is_minimal_and_does_not_leak(
    lower: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("API_KEY", "leaked-secret")
    async with BwrapSandbox([lower]) as box:
        result = await box.exec(
            ["/bin/bash", "-c", "env; cat /proc/*/environ /proc/*/cmdline"],
            env={"EXTRA": "yes", "TERM": "xterm"},
            timeout=20,
        )
        shown = result.stdout.decode()
        assert "leaked-secret" not in shown
        assert "EXTRA=yes" in shown and "TERM=xterm" in shown and "HOME=/home/agent" in shown
        assert str(scratch_dir()) not in shown.split("EXTRA=yes")[0]


async def test_only_the_sandboxs_processes_and_descriptors_are_visible(lower: Path) -> None:
    async with BwrapSandbox([lower]) as box:
        pids = await out(box, "cd /proc; echo [0-9]*")
        assert len(pids.split()) <= 3
        descriptors = await out(box, "ls /proc/self/fd")
        assert set(descriptors.split()) <= {"0", "1", "2", "3"}


async def test_there_is_no_network(lower: Path) -> None:
    async with BwrapSandbox([lower]) as box:
        assert (await out(box, "tail -n +3 /proc/net/dev | cut -d: -f1")).split() == ["lo"]
        result = await sh(box, "echo x > /dev/tcp/127.0.0.1/22")
        assert result.returncode != 0 and b"refused" in result.stderr
        assert b"unreachable" in (await sh(box, "echo x > /dev/tcp/10.1.2.3/80")).stderr


async def test_network_true_shares_the_hosts(lower: Path) -> None:
    server = await asyncio.start_server(lambda r, w: w.close(), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, BwrapSandbox([lower]) as box:
        argv = ["/bin/bash", "-c", f"exec 3<>/dev/tcp/127.0.0.1/{port}"]
        assert (await box.exec(argv, env={}, timeout=10)).returncode != 0
        assert (await box.exec(argv, env={}, timeout=10, network=True)).returncode == 0


async def test_home_files_and_binds(lower: Path, tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir(mode=0o755)
    (tools / "hello").write_text("#!/bin/sh\necho hello\n")
    (tools / "hello").chmod(0o755)
    home = {".config/agent.json": "{}", "note": "hi"}
    async with BwrapSandbox(
        [lower], "/workspace", home_files=home, binds=[Bind(tools, "/opt/tools")]
    ) as box:
        script = "pwd; cat ~/note ~/.config/agent.json; /opt/tools/hello; echo kept > ~/.config/x"
        assert await out(box, script) == "/workspace\nhi{}hello\n"
        assert (await sh(box, "echo > /opt/tools/x")).returncode != 0
        assert await out(box, "cat ~/.config/x") == "kept\n"


async def test_stdin_exit_codes_and_both_streams(lower: Path) -> None:
    async with BwrapSandbox([lower]) as box:
        big = b"x" * 300_000
        result = await box.exec(["/bin/cat"], env={}, timeout=20, stdin=big)
        assert result.stdout == big and result.returncode == 0
        assert (await sh(box, "cat")).stdout == b""
        result = await sh(box, "echo out; echo err >&2; exit 7")
        assert (result.returncode, result.stdout, result.stderr) == (7, b"out\n", b"err\n")
        assert (await sh(box, "kill -9 $$")).returncode == 137


async def test_output_is_capped_without_stopping_the_command(lower: Path) -> None:
    async with BwrapSandbox([lower], limits=Limits(output_bytes=1000)) as box:
        result = await sh(box, "head -c 400000 /dev/zero | tr '\\0' x; echo end > done")
        assert result.truncated and result.stdout == b"x" * 1000
        assert await out(box, "cat done") == "end\n"


async def test_timeout_kills_and_keeps_what_was_printed(lower: Path) -> None:
    async with BwrapSandbox([lower]) as box:
        started = time.monotonic()
        result = await sh(box, "echo begun; trap '' TERM INT; sleep 271828", timeout=0.5)
        assert time.monotonic() - started < 5
        assert result.timed_out and result.returncode == 137 and result.stdout == b"begun\n"
        assert not alive("sleep\x00271828")
        assert await out(box, "echo again") == "again\n"


async def test_daemons_die_with_their_command(lower: Path) -> None:
    async with BwrapSandbox([lower]) as box:
        started = time.monotonic()
        daemon = "setsid nohup bash -c 'exec sleep 161803' >/dev/null 2>&1 & echo started"
        assert await out(box, daemon) == "started\n"
        # One that keeps the output pipe open must not hold the result back either.
        assert await out(box, "sleep 161803 & echo held") == "held\n"
        assert time.monotonic() - started < 5
        assert not alive("sleep\x00161803")


async def test_cancellation_kills_and_leaves_nothing(lower: Path) -> None:
    before = len(descriptors())
    async with BwrapSandbox([lower]) as box:
        running = asyncio.create_task(sh(box, "sleep 141421 & sleep 141421"))
        for _ in range(200):
            if len(alive("sleep\x00141421")) == 2:
                break
            await asyncio.sleep(0.02)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert not alive("sleep\x00141421")
        assert await out(box, "echo usable") == "usable\n"
    assert len(descriptors()) <= before + 1


@pytest.mark.parametrize("delay", [0.0, 0.002, 0.004, 0.006, 0.008, 0.01, 0.013, 0.017, 0.03])
async def test_cancellation_at_any_moment_leaves_nothing(lower: Path, delay: float) -> None:
    async def session() -> None:
        async with BwrapSandbox([lower]) as box:
            await sh(box, "sleep 173205")

    await asyncio.to_thread(lambda: None)
    before = descriptors()
    running = asyncio.create_task(session())
    await asyncio.sleep(delay)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert descriptors() == before
    assert not alive("sleep\x00173205")
    assert not list(scratch_dir().glob(f"box-{os.getpid()}-*"))


async def test_one_failure_among_many_ends_all_of_them(lower: Path) -> None:
    async def one(number: int) -> None:
        async with BwrapSandbox([lower]) as box:
            if number == 7:
                raise ValueError("seven")
            await sh(box, "sleep 244948")

    with pytest.raises(ExceptionGroup):
        async with asyncio.timeout(20), asyncio.TaskGroup() as group:
            for number in range(16):
                group.create_task(one(number))
    assert not alive("sleep\x00244948")
    assert not list(scratch_dir().glob(f"*-{os.getpid()}-*"))


async def test_fork_bomb_is_limited(lower: Path) -> None:
    async with BwrapSandbox([lower], limits=Limits(processes=32)) as box:
        result = await sh(box, "for i in $(seq 100); do sleep 223606 & done; jobs -p | wc -l", 2)
        assert b"Resource temporarily unavailable" in result.stderr
        await sh(box, "b() { b | b & }; b; sleep 0.3", 1)
        assert await out(box, "echo fine") == "fine\n"
    assert not alive("sleep\x00223606")


async def test_memory_is_limited_and_counted(lower: Path) -> None:
    async with BwrapSandbox([lower], limits=Limits(memory_mb=64)) as box:
        result = await sh(box, "head -c 300m /dev/zero | tail -c 250m | wc -c")
        assert result.stdout != b"262144000\n"
        if box.usage.peak_mb is not None:
            assert box.usage.oom and 32 < box.usage.peak_mb <= 65
        if box.usage.cpu_seconds is not None:
            assert 0 < box.usage.cpu_seconds < 20


async def test_files_are_limited(lower: Path) -> None:
    async with BwrapSandbox([lower], limits=Limits(file_mb=1, temporary_mb=4)) as box:
        assert (await sh(box, "head -c 2m /dev/zero > big")).returncode != 0
        fill = "for i in $(seq 8); do head -c 1000000 /dev/zero > /tmp/$i || exit 9; done"
        assert (await sh(box, fill)).returncode == 9


async def test_sixteen_at_once(lower: Path) -> None:
    async def one(number: int) -> str:
        async with BwrapSandbox([lower]) as box:
            return await out(box, f"echo {number} > mine; sleep 0.2; cat mine")

    outputs = await asyncio.gather(*(one(number) for number in range(16)))
    assert outputs == [f"{number}\n" for number in range(16)]
    assert not list(scratch_dir().glob(f"*-{os.getpid()}-*"))


async def test_the_event_loop_stays_free(lower: Path) -> None:
    gaps: list[float] = []

    async def tick() -> None:
        while True:
            before = time.monotonic()
            await asyncio.sleep(0.001)
            gaps.append(time.monotonic() - before)

    ticker = asyncio.create_task(tick())
    async with BwrapSandbox([lower], limits=Limits(output_bytes=1 << 16)) as box:
        await sh(box, "timeout 1 yes")
    ticker.cancel()
    # The median is free of the machine's other work.
    assert sorted(gaps)[len(gaps) // 2] < 0.02


async def test_errors_are_one_clear_line(lower: Path, tmp_path: Path) -> None:
    async with BwrapSandbox([lower]) as box:
        with pytest.raises(SandboxError, match="nosuch: No such file"):
            await box.exec(["nosuch"], env={}, timeout=5)
        with pytest.raises(SandboxError, match="NUL"):
            await box.exec(["a\0b"], env={}, timeout=5)
    with pytest.raises(SandboxError, match="not open"):
        await box.exec(["true"], env={}, timeout=5)
    with pytest.raises(SandboxError, match="missing is not a directory"):
        await BwrapSandbox([tmp_path / "missing"]).__aenter__()
    with pytest.raises(SandboxError, match="does not exist"):
        await BwrapSandbox([lower], binds=[Bind(tmp_path / "no", "/x")]).__aenter__()
    with pytest.raises(SandboxError, match="not a path inside the home"):
        await BwrapSandbox([lower], home_files={"../x": ""}).__aenter__()
    with pytest.raises(SandboxError, match="absolute path"):
        BwrapSandbox([lower], "app")
    assert not list(scratch_dir().glob(f"*-{os.getpid()}-*"))
