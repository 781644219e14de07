"""A deny list of system calls that no agent needs, as a seccomp program for x86-64.

The namespaces are the boundary; this narrows the kernel's surface behind it. Other architectures
number their calls differently and run without the list.
"""

from __future__ import annotations

import platform
import struct

# Numbers: arch/x86/entry/syscalls/syscall_64.tbl of Linux.
_DENIED = {
    "ptrace": 101,
    "syslog": 103,
    "personality": 135,
    "pivot_root": 155,
    "acct": 163,
    "mount": 165,
    "umount2": 166,
    "swapon": 167,
    "swapoff": 168,
    "reboot": 169,
    "iopl": 172,
    "ioperm": 173,
    "init_module": 175,
    "delete_module": 176,
    "quotactl": 179,
    "kexec_load": 246,
    "add_key": 248,
    "request_key": 249,
    "keyctl": 250,
    "unshare": 272,
    "move_pages": 279,
    "perf_event_open": 298,
    "setns": 308,
    "finit_module": 313,
    "kexec_file_load": 320,
    "bpf": 321,
    "userfaultfd": 323,
    "io_uring_setup": 425,
    "io_uring_enter": 426,
    "io_uring_register": 427,
    "open_tree": 428,
    "move_mount": 429,
    "fsopen": 430,
    "fsconfig": 431,
    "fsmount": 432,
    "fspick": 433,
    "mount_setattr": 442,
}
_SOCKET = 41
_FAMILIES = (1, 2, 10, 16)
"""AF_UNIX, AF_INET, AF_INET6, AF_NETLINK (which getifaddrs asks)."""

_AUDIT_ARCH_X86_64 = 0xC000003E
_X32 = 0x40000000
_LOAD, _EQUAL, _GREATER_EQUAL, _RETURN = 0x20, 0x15, 0x35, 0x06
_NUMBER, _ARCH, _ARGUMENT_0 = 0, 4, 16
"""Offsets in `struct seccomp_data`."""
_ALLOW, _KILL, _EPERM, _EAFNOSUPPORT = 0x7FFF0000, 0x80000000, 0x00050001, 0x00050061


def program() -> bytes | None:
    """The filter as `struct sock_filter[]`, or None on another architecture."""
    if platform.machine() != "x86_64":
        return None
    code = [
        _op(_LOAD, _ARCH),
        _op(_EQUAL, _AUDIT_ARCH_X86_64, 1, 0),
        _op(_RETURN, _KILL),
        _op(_LOAD, _NUMBER),
        _op(_GREATER_EQUAL, _X32, 0, 1),
        _op(_RETURN, _EPERM),
    ]
    for number in sorted(_DENIED.values()):
        code += [_op(_EQUAL, number, 0, 1), _op(_RETURN, _EPERM)]
    code += [_op(_EQUAL, _SOCKET, 1, 0), _op(_RETURN, _ALLOW), _op(_LOAD, _ARGUMENT_0)]
    for family in _FAMILIES:
        code += [_op(_EQUAL, family, 0, 1), _op(_RETURN, _ALLOW)]
    code.append(_op(_RETURN, _EAFNOSUPPORT))
    return b"".join(code)


def _op(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("HBBI", code, if_true, if_false, value)
