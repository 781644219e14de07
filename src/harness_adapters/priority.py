"""Who gets the processor first where engine, learner and agents share it.

Everything waits for the engine: agents for its answers, the learner for their sessions. Yet Linux
gives each session (`setsid`) an equal share (autogroups, sched(7)), whatever the nice values in it,
and sixteen agents are sixteen sessions against the engine's one. So they are set back, and so is
the learner, but less. Raising a nice value needs no privilege.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

LEARNER = 5
"""Nice value of a learner: a third of the engine's weight."""

AGENT = 15
"""Nice value of each sandbox: a thirtieth of the engine's weight."""


def set_back(pid: int, nice: int) -> None:
    """Give the process `pid`, a session leader, and all it starts, the weight of `nice`.

    Best effort: a kernel may have no autogroups, and the process may be gone.
    """
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, pid, nice)
    with contextlib.suppress(OSError):
        Path(f"/proc/{pid}/autogroup").write_text(str(nice))
