"""Enter a network namespace and listen there. Also a script: `netns.py PID PORT SOCKET_FD`.

Imports nothing of this package, so that the script starts in milliseconds.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import sys

_CLONE_NEWNET = 0x40000000
_CLONE_NEWUSER = 0x10000000
_NS_GET_USERNS = 0xB701
"""ioctl_ns(2): the user namespace that owns another namespace."""
_IP_FREEBIND = 15
"""ip(7): bind an address before its interface is up."""


def listen(pid: int, port: int, *, enter_owner: bool = False) -> socket.socket:
    """Listen on loopback in the network namespace of `pid`. **Moves the calling thread there.**

    With `enter_owner` enters the owning user namespace first, which the kernel allows only to
    processes with one thread. PermissionError where that would be needed.
    """
    namespace = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        if enter_owner:
            owner = fcntl.ioctl(namespace, _NS_GET_USERNS)
            try:
                _setns(owner, _CLONE_NEWUSER)
            finally:
                os.close(owner)
        _setns(namespace, _CLONE_NEWNET)
    finally:
        os.close(namespace)
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.IPPROTO_IP, _IP_FREEBIND, 1)
        listener.bind(("127.0.0.1", port))
        listener.listen(128)
        listener.setblocking(False)
    except BaseException:
        listener.close()
        raise
    return listener


def _setns(namespace: int, kind: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(namespace, kind) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"setns: {os.strerror(number)}")


if __name__ == "__main__":
    made = listen(int(sys.argv[1]), int(sys.argv[2]), enter_owner=True)
    with socket.socket(fileno=int(sys.argv[3])) as channel:
        socket.send_fds(channel, [b"x"], [made.fileno()])
