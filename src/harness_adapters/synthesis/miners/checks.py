"""Checks that agents run: which commands test a Python project, and how they ended."""

from __future__ import annotations

import json
import re

from harness_adapters.synthesis.miners.timeline import Step
from harness_adapters.synthesis.traces.session import ToolKind

_TESTS = re.compile(
    r"\bpython3?(?:\.\d+)?\s+(?:-\w\s+)*-m\s+(?:unittest|pytest)\b|(?:^|[\s;&|(])pytest\b"
)
_SCRIPT = re.compile(
    r"\bpython3?(?:\.\d+)?\s+(?!-)(?P<path>[\w./-]*(?:test_\w+|\w+_test|tests?)\.py)\b"
)
_FAILED = re.compile(
    r"^FAILED\b|\b\d+ (?:failed|error)|^Traceback \(most recent|^ERROR\b|\(failures=|\(errors=",
    re.MULTILINE,
)
_PASSED = re.compile(r"^OK\b|\b\d+ passed\b", re.MULTILINE)


def is_test_run(step: Step) -> bool:
    """Whether a call runs a Python project's tests."""
    call = step.call
    return (
        call.kind is ToolKind.SHELL
        and bool(call.command)
        and bool(_TESTS.search(call.command or "") or _SCRIPT.search(call.command or ""))
    )


def output_of(step: Step) -> str:
    """What a command printed; some agents wrap it in JSON."""
    text = step.call.result.text if step.call.result else ""
    if text.startswith("{"):
        try:
            found = json.loads(text)
        except ValueError:
            return text
        if isinstance(found, dict) and isinstance(found.get("output"), str):
            return str(found["output"])
    return text


def passed(step: Step) -> bool | None:
    """How a test run ended, by its words first: `| tail` hides the exit code. None: unknown."""
    result = step.call.result
    if result is None or result.running or result.interrupted:
        return None
    text = output_of(step)
    if _FAILED.search(text):
        return False
    if _PASSED.search(text):
        return True
    if result.exit_code is not None and "|" not in (step.call.command or ""):
        return result.exit_code == 0
    return None
