from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_adapters.errors import TaskError
from harness_adapters.tasks import Edit, Shell, Split, WriteFile, load_task
from harness_adapters.tasks.task import oracle_json
from tasks.support import make_task

HARBOR_TOML = """\
version = "1.0"
[metadata]
author_name = "Somebody"
difficulty = "medium"
category = "programming"
tags = ["a", "b"]
[verifier]
timeout_sec = 120.0
[agent]
timeout_sec = 240.0
[environment]
build_timeout_sec = 600.0
cpus = 2
memory = "4G"
storage = "10G"
gpus = 0
allow_internet = false
"""


def test_a_harbor_task_without_our_metadata_loads(tmp_path: Path) -> None:
    task = load_task(make_task(tmp_path / "hello", HARBOR_TOML))
    assert (task.id, task.family, task.level, task.seed) == ("hello", "programming", 2, 0)
    assert (task.split, task.workdir, task.oracle) == (Split.TEST, "/app", ())
    assert (task.agent_timeout, task.verifier_timeout, task.memory_mb) == (240.0, 120.0, 4096)
    assert task.instruction == "Write 7 to answer.txt."


def test_family_and_level_fall_back(tmp_path: Path) -> None:
    task = load_task(make_task(tmp_path / "hello", "[metadata]\ndifficulty = 'unknown'\n"))
    assert (task.family, task.level) == ("hello", 1)


def test_our_metadata(tmp_path: Path) -> None:
    toml = "[metadata]\nfamily = 'sums'\nlevel = 3\nseed = 9\nsplit = 'train'\n"
    task = load_task(make_task(tmp_path / "a", toml))
    assert (task.family, task.level, task.seed, task.split) == ("sums", 3, 9, Split.TRAIN)


def test_a_task_without_files_of_its_own(tmp_path: Path) -> None:
    root = make_task(tmp_path / "a")
    assert load_task(root).lowers == [root / "environment" / "files"]
    shutil.rmtree(root / "environment")
    assert load_task(root).lowers == []
    (root / "environment").mkdir()
    (root / "environment" / "files").write_text("")
    with pytest.raises(TaskError, match="environment/files: not a directory"):
        load_task(root)


@pytest.mark.parametrize(
    ("dockerfile", "toml", "workdir"),
    [
        ("FROM x\nWORKDIR /work\nCOPY files/ /work/\n", "", "/work"),
        ("# why\nFROM x\nCOPY ./files .\n", "", "/app"),
        ("FROM x\nWORKDIR /work\n", "[environment]\nworkdir = '/other'\n", "/other"),
    ],
)
def test_workdir(tmp_path: Path, dockerfile: str, toml: str, workdir: str) -> None:
    root = make_task(tmp_path / "a", toml)
    (root / "environment" / "Dockerfile").write_text(dockerfile)
    assert load_task(root).workdir == workdir


@pytest.mark.parametrize(
    ("toml", "says"),
    [
        ("[environment]\ndocker_image = 'a/b'\n", "environment.docker_image is not supported"),
        ("[environment]\ngpus = 1\n", "environment.gpus is not supported"),
        ("[environment.tpu]\ntype = 'v6e'\ntopology = '2x4'\n", "environment.tpu"),
        ("[environment]\nenv = {A = 'b'}\n", "environment.env"),
        ("[environment]\nskills_dir = 'x'\n", "environment.skills_dir"),
        ("[environment.healthcheck]\ncommand = 'x'\n", "environment.healthcheck"),
        ("[[environment.mcp_servers]]\nname = 'x'\n", "environment.mcp_servers"),
        ("[environment]\nallow_internet = true\n", "allow_internet = True: sandboxes have no net"),
        ("[environment]\nnetwork_mode = 'public'\n", "environment.network_mode = 'public'"),
        ("[environment]\nos = 'windows'\n", "environment.os = 'windows'"),
        ("[environment]\nworkdir = 'app'\n", "environment.workdir"),
        ("[environment]\nworkdir = '/tests'\n", "system directory"),
        ("[environment]\nmemory = 'much'\n", "memory must be a size"),
        ("[environment]\nmemory = '1G'\nmemory_mb = 7\n", "contradict"),
        ("[environment]\ncolour = 1\n", "environment.colour: unknown key"),
        ("[agent]\nuser = 'root'\n", "agent.user"),
        ("[agent]\ntimeout_sec = 'long'\n", "agent.timeout_sec = 'long'"),
        ("[agent]\ntimeout_sec = 0\n", "agent.timeout_sec = 0"),
        ("[verifier]\nenv = {A = 'b'}\n", "verifier.env"),
        ("[verifier]\nenvironment_mode = 'shared'\n", "fresh sandbox"),
        ("[[verifier.collect]]\ncommand = 'x'\n", "verifier.collect"),
        ("[solution]\nenv = {A = 'b'}\n", "solution.env"),
        ("[[steps]]\nname = 'one'\n", "steps is not supported"),
        ("artifacts = ['a']\n", "artifacts is not supported"),
        ("schema_version = '9'\n", "known versions are 1.0"),
        ("[metadata]\nsplit = 'dev'\n", "metadata.split = 'dev'"),
        ("[metadata]\nlevel = 'hard'\n", "metadata.level = 'hard'"),
        ("[metadata]\nlevel = 0\n", "metadata.level = 0"),
        ("[metadata]\nseed = 1.5\n", "metadata.seed = 1.5"),
        ("[other]\nx = 1\n", "other: unknown key"),
        ("agent = 3\n", "agent = 3"),
        ("x = [\n", "not valid TOML"),
    ],
)
def test_what_is_not_supported_is_named(tmp_path: Path, toml: str, says: str) -> None:
    root = make_task(tmp_path / "a", toml)
    with pytest.raises(TaskError) as error:
        load_task(root)
    message = str(error.value)
    assert message.startswith(f"{root / 'task.toml'}: ") and says in message
    assert "\n" not in message


@pytest.mark.parametrize("name", ["task.toml", "instruction.md", "tests/test.sh"])
def test_missing_files_are_named(tmp_path: Path, name: str) -> None:
    root = make_task(tmp_path / "a")
    (root / name).unlink()
    with pytest.raises(TaskError, match=name):
        load_task(root)


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("environment/Dockerfile", "FROM x\nRUN apt-get install y\n", "images aren't built"),
        ("environment/Dockerfile", "FROM x\nCOPY data /app\n", "COPY data /app"),
        ("environment/docker-compose.yaml", "services: {}\n", "services aren't started"),
        ("instruction.md", " \n", "empty"),
        ("solution/oracle.json", "{", "not JSON"),
        ("solution/oracle.json", "[]", "non-empty list"),
        ("solution/oracle.json", '["ls"]', "step 0: must be an object"),
        ("solution/oracle.json", '[{"action": "dance"}]', "action must be one of"),
        ("solution/oracle.json", '[{"action": "shell"}]', "exactly the texts command"),
        ("solution/oracle.json", '[{"action": "shell", "command": 3}]', "exactly the texts"),
        ("solution/oracle.json", '[{"action": ["shell"]}]', "action must be one of"),
    ],
)
def test_wrong_files_are_named(tmp_path: Path, name: str, text: str, says: str) -> None:
    root = make_task(tmp_path / "a")
    (root / name).write_text(text)
    with pytest.raises(TaskError) as error:
        load_task(root)
    assert name in str(error.value) and says in str(error.value)


def test_text_must_be_utf8(tmp_path: Path) -> None:
    root = make_task(tmp_path / "a")
    (root / "instruction.md").write_bytes(b"\xff\xfe")
    with pytest.raises(TaskError, match="not UTF-8"):
        load_task(root)


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
actions = st.one_of(
    st.builds(Shell, texts),
    st.builds(WriteFile, texts, texts),
    st.builds(Edit, texts, texts, texts),
)


@given(st.lists(actions, min_size=1, max_size=4))
def test_oracle_json_is_read_back(tmp_path_factory: pytest.TempPathFactory, steps: list) -> None:
    root = make_task(tmp_path_factory.mktemp("task") / "a")
    (root / "solution" / "oracle.json").write_text(oracle_json(steps), encoding="utf-8")
    assert load_task(root).oracle == tuple(steps)
