from __future__ import annotations

import json
import math
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as property_settings
from hypothesis import strategies as st

from harness_adapters.config import Settings, dump, known_kinds, load
from harness_adapters.errors import ConfigError
from harness_adapters.tasks import starter


def test_kinds_are_known_for_the_default_model_agent_and_suite_alone() -> None:
    kinds = known_kinds(load())
    assert len(kinds) >= 20 and set(kinds) <= set(starter.kinds(load().tasks.families))
    assert {kind.partition("/")[0] for kind in kinds} == set(load().tasks.families)
    assert known_kinds(load(None, ["tasks.seed=3", "train.seed=1", "eval.tasks=9"])) == kinds
    for other in (
        "model.path=other",
        "harness.name=opencode",
        "harness.profile=stock",
        "warm_start.steps=0",
        "budget.max_turns=9",
        'tasks.families=["csv_sum"]',
        "tasks.dataset=here",
    ):
        assert known_kinds(load(None, [other])) == []


def test_defaults_alone() -> None:
    settings = load()
    assert settings == Settings()
    assert settings.harness.name == "pi"


def test_file_overlays_defaults_and_set_overlays_the_file(tmp_path: Path) -> None:
    file = tmp_path / "run.toml"
    file.write_text('concurrency = 4\n[train]\nsteps = 3\nseed = 9\n[model]\npath = "x"\n')
    settings = load(file, ["train.steps=5", "model.path=qwen-coder"])
    assert (settings.concurrency, settings.train.steps, settings.train.seed) == (4, 5, 9)
    assert settings.model.path == "qwen-coder"
    assert settings.train.groups == Settings().train.groups


@pytest.mark.parametrize(
    ("override", "value"),
    [
        ('lora.targets=["q_proj", "v_proj"]', ["q_proj", "v_proj"]),
        ("lora.targets=all-linear", "all-linear"),
        ('lora.targets="all-linear"', "all-linear"),
    ],
)
def test_set_reads_toml_and_takes_anything_else_as_text(override: str, value: object) -> None:
    assert load(None, [override]).lora.targets == value


def test_later_set_wins() -> None:
    assert load(None, ["train.seed=1", "train.seed=2"]).train.seed == 2


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("train.stepz=3", ["train.stepz", "Extra"]),
        ("train.steps=many", ["train.steps", "integer", "many"]),
        ("train.loss=ppo", ["train.loss", "cispo"]),
        ("budget.max_turns=0", ["budget.max_turns", "greater than or equal to 1"]),
        ("steps", ["steps", "section.key=value"]),
        ("=3", ["section.key=value"]),
        ("concurrency.x=3", ["concurrency"]),
    ],
)
def test_bad_setting_is_one_line_that_names_the_key(override: str, words: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        load(None, [override])
    message = str(caught.value)
    assert "\n" not in message
    for word in words:
        assert word in message


def test_set_below_a_value_of_the_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "run.toml"
    file.write_text("concurrency = 3\n")
    with pytest.raises(ConfigError, match="concurrency is not a table"):
        load(file, ["concurrency.x=3"])


def test_bad_files(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no config file"):
        load(tmp_path / "missing.toml")
    broken = tmp_path / "broken.toml"
    broken.write_text("[train\n")
    with pytest.raises(ConfigError, match="not TOML"):
        load(broken)
    broken.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="not TOML"):
        load(broken)
    with pytest.raises(ConfigError, match="can't be read"):
        load(tmp_path)


def test_settings_do_not_change_after_loading() -> None:
    with pytest.raises(ValueError, match="frozen"):
        load().train.steps = 3  # type: ignore[misc]  # the mistake under test


TEXT = st.text(st.characters(blacklist_categories=("Cs",)), max_size=30)


@property_settings(deadline=None)  # it writes a file, on a machine that may be busy
@given(
    path=TEXT,
    url=st.none() | TEXT,
    rate=st.floats(0, 1e6, exclude_min=True),
    targets=TEXT | st.lists(TEXT, max_size=3),
    synchronous=st.booleans(),
)
def test_dump_and_load_give_an_equal_object(
    tmp_path_factory: pytest.TempPathFactory,
    path: str,
    url: str | None,
    rate: float,
    targets: str | list[str],
    synchronous: bool,
) -> None:
    settings = Settings.model_validate(
        {
            "model": {"path": path},
            "engine": {"url": url},
            "lora": {"targets": targets},
            "train": {"learning_rate": rate, "synchronous": synchronous},
        }
    )
    file = tmp_path_factory.getbasetemp() / "dumped.toml"
    file.write_text(dump(settings), encoding="utf-8", newline="")
    loaded = load(file)
    assert loaded == settings
    assert math.isclose(loaded.train.learning_rate, rate)


def test_the_documented_settings_are_the_settings() -> None:
    page = Path(__file__).parents[1] / "docs" / "configuration.md"
    documented = dict(re.findall(r"^\| `([\w.]+)` \| `?(.+?)`? \| \S", page.read_text(), re.M))
    actual: dict[str, str] = {}
    for name, value in Settings().model_dump().items():
        table = value if isinstance(value, dict) else None
        for key, item in ({name: value} if table is None else table).items():
            text = "none" if item is None else dump_value(item)
            actual[key if table is None else f"{name}.{key}"] = text
    assert documented == actual


def dump_value(value: object) -> str:
    """As TOML writes it."""
    if isinstance(value, str | list):
        return json.dumps(value)
    return str(value).lower() if isinstance(value, bool) else str(value)
