import shutil
from pathlib import Path

import pytest

from .synthetic import make_run


@pytest.fixture(scope="session")
def finished_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with training, raw model, base and adapter on 45 test tasks. Read only."""
    return make_run(tmp_path_factory.mktemp("runs") / "finished", steps=6, tasks=45, groups=3)


@pytest.fixture(scope="session")
def chromium() -> str:
    """A browser to load the page in; tests that need one are skipped where none is installed."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if path := shutil.which(name):
            return path
    pytest.skip("no chromium here: the page was not loaded in a browser")
