"""Functions of a Python file return the expected values."""

import json
from pathlib import Path
from typing import Any

import confined
from reading import UnreadableError, read, short

_SECONDS = 5.0
# Runs in the confined child. It knows the inputs and never the expected values; results come back
# as JSON, so an object with its own __eq__ or __repr__ is worth nothing.
_RUNNER = """
import importlib.util, json, os, sys
path = sys.argv[1]
out = os.dup(1)
os.dup2(2, 1)
calls = json.loads(sys.stdin.read())
sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
spec = importlib.util.spec_from_file_location("candidate", path)
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
results = []
for name, arguments in calls:
    try:
        results.append({"value": getattr(module, name)(*arguments)})
    except Exception as error:
        results.append({"error": f"{type(error).__name__}: {error}"[:200]})
with os.fdopen(out, "w") as file:
    json.dump(results, file)
"""


def check(workdir: Path, path: str, calls: list[dict[str, Any]]) -> list[str]:
    """One message for each call that goes wrong, at most five."""
    try:
        read(workdir, path)
        inputs = json.dumps([[call["function"], call["arguments"]] for call in calls])
        results = json.loads(confined.run(workdir, _RUNNER, [path], inputs, _SECONDS))
        if not isinstance(results, list) or len(results) != len(calls):
            raise ValueError("wrong number of results")
    except (UnreadableError, confined.RefusedError) as error:
        return [f"{path}: {error}" if isinstance(error, confined.RefusedError) else str(error)]
    except ValueError:
        return [f"{path}: gave no readable results"]
    compared = (_compare(call, result) for call, result in zip(calls, results, strict=True))
    return [problem for problem in compared if problem][:5]


def _compare(call: dict[str, Any], result: Any) -> str:
    shown = f"{call['function']}({', '.join(map(repr, call['arguments']))})"
    if not isinstance(result, dict) or "value" not in result:
        return (
            f"{shown} raised {short(result.get('error') if isinstance(result, dict) else result)}"
        )
    value, expected = result["value"], call["expected"]
    if value == expected and isinstance(value, bool) == isinstance(expected, bool):
        return ""
    return f"{shown}: expected {short(expected)}, got {short(value)}"
