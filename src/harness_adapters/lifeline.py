"""Helper processes end with the process that started them, however that one ends.

Used by the processes themselves, as the first thing they do: a killed run leaves neither a server
nor a learner behind. Linux only, as everything here.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1
"""From Linux's <sys/prctl.h>."""


def end_with(parent: int, wanted: signal.Signals = signal.SIGKILL) -> None:
    """Ask the kernel for `wanted` to this process when the process `parent` ends.

    Exits at once when `parent` is gone already: it may die between its fork and this call. What
    counts is the thread of `parent` that started this process, so that must be one that stays.
    """
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, wanted)
    if os.getppid() != parent:
        sys.exit(f"the process {parent} that wanted this one is gone")
