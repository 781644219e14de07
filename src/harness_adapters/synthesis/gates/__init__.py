"""Gates: each looks at one property of a candidate and passes it, or drops it with a reason code.

A gate is a function from a `Trial` to a `Verdict`. The cheap ones come first; the first that drops
ends the trial. All that runs, runs in sandboxes without a network.
"""

from harness_adapters.synthesis.gates.trial import (
    Contents,
    Gate,
    Trial,
    Verdict,
    drop,
    passed,
)

__all__ = ["Contents", "Gate", "Trial", "Verdict", "drop", "passed"]
