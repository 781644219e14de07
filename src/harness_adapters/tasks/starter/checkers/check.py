"""Verifier of a starter task: `python3 -I check.py WORKDIR REWARD_FILE`.

Runs every check of `expected.json` (beside this file) on the working directory, prints what is
wrong and writes 1 (all hold) or 0. Needs nothing but the standard library.
"""

import importlib
import json
import sys
import traceback
from pathlib import Path


def problems(workdir: Path, tests: Path) -> list[str]:
    """What is wrong with the working directory; empty when the task is solved."""
    sys.path.insert(0, str(tests))  # -I leaves it out; the agent can't write there
    found: list[str] = []
    for check in json.loads((tests / "expected.json").read_text(encoding="utf-8")):
        kind = check.pop("kind")
        found += importlib.import_module(kind).check(workdir, **check)
    return found


def main() -> None:
    """Check, explain, write the reward."""
    workdir, reward = Path(sys.argv[1]), Path(sys.argv[2])
    try:
        found = problems(workdir, Path(__file__).resolve().parent)
    except Exception:
        found = [f"the check itself failed:\n{traceback.format_exc()}"]
    for problem in found:
        print(f"FAILED: {problem}")
    print("not solved" if found else "solved")
    reward.write_text("0\n" if found else "1\n")


if __name__ == "__main__":
    main()
