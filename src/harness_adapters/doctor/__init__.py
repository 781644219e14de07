"""Doctor: what this machine can and can't do, as small independent checks.

A check looks and changes nothing that stays. `run_checks` is all of them, in the order in which a
new machine would meet them. Torch and vLLM are looked up, never imported, so it takes a second.
"""

from harness_adapters.doctor.check import Check, Importance
from harness_adapters.doctor.checks import run_checks

__all__ = ["Check", "Importance", "run_checks"]
