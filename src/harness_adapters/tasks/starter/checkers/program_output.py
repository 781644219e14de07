"""A Python script prints the expected texts."""

from pathlib import Path
from typing import Any

import confined
from reading import UnreadableError, lines_of, read, short

_SECONDS = 5.0
_RUNNER = """
import os, runpy, sys
sys.argv = sys.argv[1:]
sys.path.insert(0, os.path.dirname(os.path.abspath(sys.argv[0])))
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def check(workdir: Path, path: str, runs: list[dict[str, Any]]) -> list[str]:
    """One message for the first run that goes wrong, or none."""
    try:
        read(workdir, path)
        for run in runs:
            printed = confined.run(workdir, _RUNNER, [path, *run["arguments"]], "", _SECONDS)
            if lines_of(printed) != lines_of(run["stdout"]):
                shown = " ".join([path, *run["arguments"]])
                return [f"{shown}: expected {short(run['stdout'])}, printed {short(printed)}"]
    except UnreadableError as error:
        return [str(error)]
    except confined.RefusedError as error:
        return [f"{path}: {error}"]
    return []
