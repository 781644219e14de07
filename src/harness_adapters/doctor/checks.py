"""All checks, in the order in which a new machine would meet them."""

from __future__ import annotations

from harness_adapters.doctor.check import Check
from harness_adapters.doctor.hardware import (
    check_accelerator,
    check_cores,
    check_disk,
    check_memory,
    check_scratch,
)
from harness_adapters.doctor.isolation import check_sandbox, check_tools
from harness_adapters.doctor.software import (
    check_engine,
    check_harness,
    check_model,
    check_npm,
    check_python,
    check_torch,
)


def run_checks() -> list[Check]:
    """Look at everything; a fault in one place does not hide another."""
    from harness_adapters.harness.registry import known_harnesses

    harnesses = [check_harness(name) for name in known_harnesses()]
    checks = [check_python(), check_tools(), *check_sandbox(), check_torch(), check_engine()]
    if any(harness.blocks for harness in harnesses):
        checks.append(check_npm())  # only an installation needs it
    checks += [*harnesses, check_model()]
    checks += [check_cores(), check_memory(), check_disk(), check_scratch(), check_accelerator()]
    return checks
