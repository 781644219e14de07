"""The package as a whole: public names, import speed, tracked files, locks, scripts, documents."""

from __future__ import annotations

import ast
import importlib
import os
import pkgutil
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import harness_adapters

ROOT = Path(__file__).parents[1]
HEAVY = ("torch", "vllm", "transformers", "peft", "matplotlib", "scipy", "pandas")
LEFTOVERS = re.compile(
    r"__pycache__|runs|build|dist|\.(?!ci$|gitattributes$|gitignore$).*|.*\.egg-info"
)


def tracked() -> list[Path]:
    """Files that are or would be committed; without git, all but the usual leftovers."""
    if (ROOT / ".git").exists() and shutil.which("git"):
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        paths = [ROOT / name for name in listed.split("\0") if name]
    else:
        parts = ((path, path.relative_to(ROOT).parts) for path in ROOT.rglob("*"))
        paths = [path for path, names in parts if not any(map(LEFTOVERS.fullmatch, names))]
    return sorted(path for path in paths if path.is_file() and not path.is_symlink())


def packages() -> list[str]:
    found = pkgutil.iter_modules(harness_adapters.__path__, "harness_adapters.")
    return ["harness_adapters", *sorted(info.name for info in found if info.ispkg)]


@pytest.mark.parametrize("name", packages())
def test_every_package_says_what_it_is_and_exports_what_it_promises(name: str) -> None:
    package = importlib.import_module(name)
    assert package.__doc__
    promised = getattr(package, "__all__", [])
    assert [export for export in promised if not hasattr(package, export)] == []


def test_importing_the_package_or_the_command_line_loads_nothing_heavy() -> None:
    code = (
        "import sys, harness_adapters, harness_adapters.cli.main\n"
        f"print(*[name for name in {HEAVY!r} if name in sys.modules])"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert loaded.stdout.split() == []


def face() -> dict[str, tuple[str, str]]:
    """Public name -> (module, its name there), as type checkers see it in `__init__.py`."""
    tree = ast.parse((ROOT / "src" / "harness_adapters" / "__init__.py").read_text())
    return {
        alias.asname or alias.name: (str(node.module), alias.name)
        for condition in tree.body
        if isinstance(condition, ast.If)
        for node in condition.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def test_public_names_are_those_that_type_checkers_see() -> None:
    assert {*face(), "__version__"} == set(harness_adapters.__all__)
    assert set(harness_adapters.__all__) <= set(dir(harness_adapters))


@pytest.mark.parametrize("name", sorted(face()))
def test_a_public_name_is_what_its_module_has(name: str) -> None:
    module, attribute = face()[name]
    assert getattr(harness_adapters, name) is getattr(importlib.import_module(module), attribute)


def test_unknown_names_are_refused_as_of_any_module() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        harness_adapters.__getattr__("nonsense")
    assert not hasattr(harness_adapters, "nonsense")


def test_all_public_names_together_load_no_torch() -> None:
    code = (
        "import sys\nfrom harness_adapters import *\n"
        f"print(*[name for name in {HEAVY!r} if name in sys.modules and name != 'scipy'])"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert loaded.stdout.split() == []


def test_import_is_instant() -> None:
    code = (
        "import time\nbefore = time.process_time()\nimport harness_adapters\n"
        "print(time.process_time() - before)"
    )
    seconds = min(
        float(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout)
        for _ in range(3)
    )
    assert seconds < 0.3


def test_version_is_the_projects() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert harness_adapters.__version__ == project["version"]
    assert f"## [{project['version']}]" in (ROOT / "CHANGELOG.md").read_text()


def test_no_tracked_file_names_a_registry_or_a_place_of_one_machine() -> None:
    """pip's and npm's own configuration says where packages come from; lock files must not."""
    forbidden = re.compile(
        "|".join(
            re.escape(part)
            for part in (
                "pypi" + ".org",
                "python" + "hosted.org",
                "registry." + "npmjs",
                "registry." + "yarnpkg",
                "download." + "pytorch.org",
                "deb." + "debian.org",
                "--index" + "-url",
                "--extra-index" + "-url",
                "/work" + "/main",
                "/work" + "/shared",
            )
        )
    )
    found = []
    for path in tracked():
        text = path.read_bytes().decode(errors="replace")
        found += [f"{path.relative_to(ROOT)}: {hit}" for hit in set(forbidden.findall(text))]
    assert found == []


def test_tracked_files_are_small() -> None:
    """Weights, data and runs are made, never committed."""
    large = [str(p.relative_to(ROOT)) for p in tracked() if p.stat().st_size > 1 << 20]
    assert large == []


# --- lock files ------------------------------------------------------------------------------

LOCKS = sorted((ROOT / "requirements").glob("*.txt"))


def locked(path: Path) -> Iterator[tuple[str, int]]:
    """Each requirement line and the number of its hashes."""
    for block in re.split(r"\n(?=\S)", path.read_text().strip()):
        head, _, rest = block.partition("\n")
        yield head.rstrip(" \\"), len(re.findall(r"--hash=sha256:[0-9a-f]{64}", rest))


@pytest.mark.parametrize("path", LOCKS, ids=lambda path: path.stem)
def test_every_locked_package_has_an_exact_version_and_hashes(path: Path) -> None:
    for requirement, hashes in locked(path):
        assert re.match(r"[a-z0-9-]+==[^ ;]+( ; .+)?$", requirement), requirement
        assert hashes > 0, requirement
        assert not requirement.startswith(("torchvision", "torchaudio", "torchcodec"))


@pytest.mark.parametrize("path", [p for p in LOCKS if p.stem != "model"], ids=lambda p: p.stem)
def test_locks_fit_what_the_project_asks_for(path: Path) -> None:
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["dev"]]
    pins: dict[str, list[str]] = {}
    for requirement, _ in locked(path):
        pin = Requirement(requirement)
        pins.setdefault(canonicalize_name(pin.name), []).append(str(pin.specifier)[2:])
    for text in wanted:
        want = Requirement(text)
        versions = pins.get(canonicalize_name(want.name), [])
        assert versions, f"{want.name} is not locked: run scripts/lock.sh"
        assert all(want.specifier.contains(v) for v in versions), f"{text}: locked {versions}"


# --- scripts ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["quickstart", "check", ".ci/run", "scripts/setup.sh"])
def test_scripts_are_executable_and_parse(name: str) -> None:
    assert os.access(ROOT / name, os.X_OK)
    subprocess.run(["bash", "-n", str(ROOT / name)], check=True)


def copy_of_set_up(folder: Path) -> Path:
    shutil.copytree(ROOT / "scripts", folder / "scripts")
    shutil.copytree(ROOT / "requirements", folder / "requirements")
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder / "scripts" / "setup.sh"


def test_set_up_fails_with_one_clear_line(tmp_path: Path) -> None:
    script = copy_of_set_up(tmp_path)
    result = subprocess.run(
        [str(script)],
        env={**os.environ, "HARNESS_ADAPTERS_LOCK": "nonsense"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert result.returncode == 1
    (line,) = result.stderr.splitlines()
    assert "no lock file requirements/nonsense.txt" in line
    assert not (tmp_path / ".venv").exists()


def test_set_up_does_not_take_a_python_that_is_too_old(tmp_path: Path) -> None:
    old = tmp_path / "python-too-old"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    script = copy_of_set_up(tmp_path / "tree")
    result = subprocess.run(
        [str(script)],
        env={
            **os.environ,
            "HARNESS_ADAPTERS_PYTHON": str(old),
            "HARNESS_ADAPTERS_LOCK": "nonsense",
        },
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert "HARNESS_ADAPTERS_PYTHON" in result.stderr


# --- documents -------------------------------------------------------------------------------

DOCUMENTS = [p for p in tracked() if p.suffix == ".md"]


def code_lines(text: str) -> Iterator[str]:
    for block in re.findall(r"^```(?:bash|sh|console|text)?\n(.*?)^```", text, re.M | re.S):
        yield from block.splitlines()
    yield from re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S))


def commands() -> Iterator[tuple[str, list[str]]]:
    for path in DOCUMENTS:
        for line in code_lines(path.read_text()):
            words = line.split("#")[0].removeprefix("$ ").split()
            if words and words[0].endswith("harness-adapters") and "/" not in words[0][:-16]:
                yield str(path.relative_to(ROOT)), words[1:]


def test_commands_in_the_documents_exist() -> None:
    import click
    import typer

    from harness_adapters.cli.main import app

    seen = 0
    for where, words in commands():
        command: click.Command = typer.main.get_command(app)
        rest = list(words)
        while hasattr(command, "commands") and rest and not rest[0].startswith("-"):
            name = rest.pop(0)
            if not re.fullmatch(r"[a-z][a-z-]*", name):
                break  # a placeholder such as VERB
            assert name in command.commands, f"{where}: no command {name!r} ({' '.join(words)})"
            command = command.commands[name]
        if hasattr(command, "default") and hasattr(command, "commands"):
            command = command.commands[command.default]
        known = {"--help"}
        for parameter in command.params:
            known |= {*parameter.opts, *parameter.secondary_opts}
        for word in rest[: rest.index("--") if "--" in rest else None]:
            option = word.strip("[]").split("=")[0]
            if option.startswith("--"):
                assert option in known, f"{where}: no option {option} ({' '.join(words)})"
        seen += 1
    assert seen >= 5


def test_python_examples_import_what_exists() -> None:
    seen = 0
    for path in DOCUMENTS:
        for block in re.findall(r"^```python\n(.*?)^```", path.read_text(), re.M | re.S):
            for node in ast.walk(ast.parse(block)):
                module = node.module if isinstance(node, ast.ImportFrom) else None
                if module is None or not module.startswith("harness_adapters"):
                    continue
                for alias in node.names:
                    found = hasattr(importlib.import_module(module), alias.name)
                    assert found, f"{path.relative_to(ROOT)}: {module} has no {alias.name}"
                    seen += 1
    assert seen >= 5


def test_recipes_load_and_say_only_what_differs() -> None:
    from harness_adapters import Settings, load_settings

    recipes = sorted((ROOT / "recipes").glob("*.toml"))
    assert recipes
    defaults = Settings().model_dump()
    for path in recipes:
        load_settings(path)
        for table, values in tomllib.loads(path.read_text()).items():
            for key, value in values.items() if isinstance(values, dict) else ():
                assert value != defaults[table][key], f"{path.name}: {table}.{key} is the default"


def test_links_between_documents_lead_somewhere() -> None:
    dead = []
    for path in DOCUMENTS:
        for target in re.findall(r"\]\(([^)#\s]+)", path.read_text()):
            local = "://" not in target and not target.startswith("mailto:")
            if local and not (path.parent / target).exists():
                dead.append(f"{path.relative_to(ROOT)} -> {target}")
    assert dead == []


def test_scripts_named_in_the_documents_exist() -> None:
    for path in DOCUMENTS:
        for name in re.findall(r"(?:^|[`\s])\./([a-z][\w.-]*)", path.read_text(), re.M):
            assert (ROOT / name).exists(), f"{path.relative_to(ROOT)}: ./{name}"


def test_the_tree_in_contributing_is_the_tree() -> None:
    """Every package has its line, and no line names what isn't there."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    tree = re.search(r"^```text\n(harness-adapters/.*?)^```", text, re.M | re.S)
    assert tree is not None
    prefix: list[str] = []
    named: set[str] = set()
    for line in tree[1].splitlines()[1:]:
        match = re.match(r"( *)([\w./*-]+)", line)
        if match is None or not match[2].strip("."):
            continue
        depth = len(match[1]) // 2 - 1
        prefix = [*prefix[:depth], match[2].rstrip("/")]
        name = "/".join(prefix)
        named.add(name)
        assert (ROOT / name).exists(), f"CONTRIBUTING.md names {name}"
    for package in packages()[1:]:
        assert "src/" + package.replace(".", "/") in named, f"CONTRIBUTING.md lacks {package}"


def test_every_page_is_in_the_index() -> None:
    index = (ROOT / "docs" / "index.md").read_text()
    pages = {p.name for p in (ROOT / "docs").glob("*.md")} - {"index.md"}
    assert {page for page in pages if f"]({page})" not in index} == set()
