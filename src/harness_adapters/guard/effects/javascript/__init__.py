"""JavaScript: `program.py` walks statements, `expressions.py` works out their values.

`library.py` knows Node and nested tools.
"""

from __future__ import annotations

from harness_adapters.guard.effects.javascript.program import printing, run_javascript

__all__ = ["printing", "run_javascript"]
