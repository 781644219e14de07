"""Every miner, in the order in which they look at a session."""

from __future__ import annotations

from collections.abc import Sequence

from harness_adapters.synthesis.miners import Miner
from harness_adapters.synthesis.miners.elsewhere import repairs_elsewhere
from harness_adapters.synthesis.miners.projects import build, extend
from harness_adapters.synthesis.miners.questions import facts, questions
from harness_adapters.synthesis.miners.repairs import repairs

MINERS: Sequence[Miner] = (repairs, repairs_elsewhere, build, extend, questions, facts)
