"""Who gets the processor first where engine, learner and agents share it.

Agents and engine count alike, on purpose. An engine's step takes nearly as long for one request as
for many, so what it needs are agents that reach it together: set behind it, they start one by one,
and it decodes for two or three at a time. Only the learner is set back: it waits for sessions, and
would take the processor from both.

Linux gives each session (`setsid`) an equal share (autogroups, sched(7)), whatever the nice values
in it, so it is the session that is set back. Raising a nice value needs no privilege.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

LEARNER = 5
"""Nice value of a learner: a third of an agent's or the engine's weight."""


def set_back(pid: int, nice: int) -> None:
    """Give the process `pid`, a session leader, and all it starts, the weight of `nice`.

    Best effort: a kernel may have no autogroups, and the process may be gone.
    """
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, pid, nice)
    with contextlib.suppress(OSError):
        Path(f"/proc/{pid}/autogroup").write_text(str(nice))
