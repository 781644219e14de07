"""Does a server that somebody else started serve the model that a run wants?"""

from __future__ import annotations

import re
from pathlib import Path

from harness_adapters.errors import EngineError

_SNAPSHOT = re.compile(r"models--([^/]+?)--([^/]+)/snapshots/")
"""Where the Hub's cache keeps a repository: `models--<owner>--<name>/snapshots/<commit>`."""


def check_served(url: str, served: str, model_dir: Path) -> None:
    """Raise EngineError when `served`, the server's `root`, is another model than `model_dir`.

    A directory of this machine has to be the very one: two with equal configs may hold different
    weights (a model and its warm-started copy do). Of two Hub repositories the names have to agree.
    What remains (a path of another machine or container, a name made up) can't tell, and passes.
    """
    if _other_directory(Path(served), model_dir) or _other_repository(served, model_dir):
        raise EngineError(
            f"{url} serves {served}, but this run wants {model_dir}: start the server on that "
            "directory, or leave engine.url out"
        )


def _other_directory(served: Path, model_dir: Path) -> bool:
    try:
        return served.is_absolute() and served.is_dir() and not served.samefile(model_dir)
    except OSError:  # not ours to look at: can't tell
        return False


def _other_repository(served: str, model_dir: Path) -> bool:
    wanted, found = _repository(str(model_dir)), _repository(served)
    return None not in (wanted, found) and wanted != found


def _repository(model: str) -> str | None:
    """`owner/name` in lower case, for a snapshot in the Hub's cache or a repository's name."""
    if match := _SNAPSHOT.search(model):
        return f"{match[1]}/{match[2]}".lower()
    is_name = re.fullmatch(r"[\w.-]+/[\w.-]+", model) and not model.startswith(".")
    return model.lower() if is_name else None
