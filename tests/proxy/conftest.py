import pytest


@pytest.fixture
def log(tmp_path):
    return tmp_path / "audit.jsonl"
