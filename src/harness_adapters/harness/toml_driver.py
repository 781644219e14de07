"""A harness described by a TOML file instead of a driver: any agent that speaks a known wire.

`--harness my-agent.toml` (see docs/harnesses.md for the fields). Texts may hold `{{base_url}}`,
`{{origin}}` (the same without `/v1`), `{{max_context}}`, `{{model}}` and, in the command,
`{{prompt}}`; anything else in double braces is an error, so that a typing mistake is not sent to
the agent. `{{name|shell}}` is filled in as one word of a shell command line, and `{{{{text}}}}`
stands for `{{text}}` itself, where an agent's own templates have such braces.
"""

from __future__ import annotations

import hashlib
import re
import shlex
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from harness_adapters.errors import HarnessError
from harness_adapters.harness import BASE_ENVIRONMENT, AgentCall, Launch, Profile
from harness_adapters.harness.events import last_line
from harness_adapters.records import SessionEnd
from harness_adapters.sandbox import Bind, ExecResult
from harness_adapters.tasks import Action, Edit, Shell, WriteFile

MODEL = "model"
"""What the agent calls the model; the gateway decides which one answers."""

_PLACEHOLDER = re.compile(
    r"\{\{(?P<literal>\{\{[^{}]*\}\})\}\}|\{\{\s*(?P<name>\w+)\s*(?P<shell>\|\s*shell\s*)?\}\}"
)

MAX_ARGUMENT_BYTES = 128 << 10
"""Linux takes no longer argument (MAX_ARG_STRLEN)."""


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Tool(_Table):
    """A tool of the agent: its name, and its arguments with placeholders for an action's fields."""

    name: str
    arguments: dict[str, Any]


class Tools(_Table):
    """How the oracle's actions look as calls of this agent; only demonstrations need them."""

    shell: Tool
    write: Tool
    edit: Tool
    finish: Tool | None = None
    """The call that ends a session; absent: a text without a call does."""


class Overlay(_Table):
    """What the lean profile has instead, or besides."""

    command: list[str] | None = None
    env: dict[str, str] = {}
    files: dict[str, str] = {}


class HarnessFile(_Table):
    """The fields of the file."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*$")]
    version: str
    command: Annotated[list[str], Field(min_length=1)]
    prompt: Literal["stdin", "argument"] = "stdin"
    env: dict[str, str] = {}
    files: dict[str, str] = {}
    """Text by path below the agent's home."""
    programs: dict[str, Path] = {}
    """Directories and files of this machine by the path that they have in every sandbox."""
    success_codes: list[int] | None = None
    """Exit codes of a session that ended well; absent: the code says nothing."""
    tools: Tools | None = None
    lean: Overlay = Overlay()

    @model_validator(mode="after")
    def _sound(self) -> HarnessFile:
        commands = [self.command, *([self.lean.command] if self.lean.command else [])]
        for command in commands:
            placed = any(
                match["name"] == "prompt"
                for part in command
                for match in _PLACEHOLDER.finditer(part)
            )
            if placed != (self.prompt == "argument"):
                raise ValueError(
                    '{{prompt}} belongs into the command if and only if prompt = "argument"'
                )
        for path in [*self.files, *self.lean.files]:
            place = PurePosixPath(path)
            if place.is_absolute() or ".." in place.parts:
                raise ValueError(f"files: {path!r} is not a path below the agent's home")
        for path in self.programs:
            if not PurePosixPath(path).is_absolute():
                raise ValueError(f"programs: {path!r} is not an absolute path")
        return self


@dataclass(frozen=True, slots=True)
class TomlHarness:
    """Driver made from a file; its content is part of its version."""

    file: Path
    spec: HarnessFile
    version: str

    @classmethod
    def load(cls, file: Path) -> TomlHarness:
        """Read and check. Raises HarnessError with file, key and reason."""
        try:
            content = file.read_bytes()
            spec = HarnessFile.model_validate(tomllib.loads(content.decode()))
        except (OSError, UnicodeDecodeError) as error:
            raise HarnessError(f"harness file {file}: {error}") from None
        except tomllib.TOMLDecodeError as error:
            raise HarnessError(f"harness file {file}: not TOML: {error}") from None
        except ValidationError as error:
            first = error.errors()[0]
            key = ".".join(map(str, first["loc"])) or "file"
            raise HarnessError(f"harness file {file}: {key}: {first['msg']}") from None
        digest = hashlib.sha256(content).hexdigest()[:8]
        harness = cls(file.absolute(), spec, f"{spec.version}+{digest}")
        for profile in Profile:  # a bad placeholder is found here, not in the first session
            harness._launch("", "", profile, 0)
        if spec.tools is not None:
            for action in (Shell(""), WriteFile("", ""), Edit("", "", "")):
                harness.native_call(action)
            harness.finishing_call()
        return harness

    @property
    def name(self) -> str:
        """As adapters and run directories are called."""
        return self.spec.name

    def installed(self) -> Path:
        """Where the file lies. Raises HarnessError when a program it names is missing."""
        for source in self._programs().values():
            if not source.exists():
                raise HarnessError(
                    f"{self.file}: {source} does not exist: install the agent there, or change "
                    "[programs]"
                )
        return self.file.parent

    def complete(self, root: Path) -> bool:
        """Never: this package installs nothing for a harness file."""
        return False

    def build(self, work: Path, say: Callable[[str], None]) -> None:
        """Raises HarnessError: the user installs such an agent."""
        raise HarnessError(
            f"{self.file}: an agent from a harness file is installed by you, where [programs] says"
        )

    def launch(self, prompt: str, *, base_url: str, profile: Profile, max_context: int) -> Launch:
        """Start the agent on `prompt`. HarnessError when a program or the prompt is impossible."""
        self.installed()
        if self.spec.prompt == "argument":
            if "\0" in prompt:
                raise HarnessError(f"{self.name}: an argument can't hold the prompt's NUL byte")
            if len(prompt.encode()) >= MAX_ARGUMENT_BYTES:
                raise HarnessError(f"{self.name}: the prompt is too long for an argument")
        return self._launch(prompt, base_url, profile, max_context)

    def _launch(self, prompt: str, base_url: str, profile: Profile, max_context: int) -> Launch:
        spec = self.spec
        lean = spec.lean if profile is Profile.LEAN else Overlay()
        values = {
            "base_url": base_url,
            "origin": base_url.removesuffix("/v1"),
            "max_context": str(max_context),
            "model": MODEL,
        }
        said = {**values, "prompt": prompt} if spec.prompt == "argument" else values
        env = {**BASE_ENVIRONMENT, "TZ": "UTC"}
        return Launch(
            argv=[self._fill(part, said) for part in lean.command or spec.command],
            env=env | {k: self._fill(v, values) for k, v in (spec.env | lean.env).items()},
            stdin=b"" if spec.prompt == "argument" else prompt.encode(),
            home_files={k: self._fill(v, values) for k, v in (spec.files | lean.files).items()},
            binds=[Bind(source, target) for target, source in self._programs().items()],
        )

    def _programs(self) -> Mapping[str, Path]:
        """Sources relative to the file's own directory, `~` expanded."""
        return {
            target: self.file.parent / source.expanduser()
            for target, source in self.spec.programs.items()
        }

    def _fill(self, text: str, values: Mapping[str, str]) -> str:
        return fill(text, values, str(self.file))

    def end(self, result: ExecResult, *, model_calls: int) -> tuple[SessionEnd, str]:
        """By the clock, the exit code where it means something, and whether the model was called.

        Nothing that the agent prints takes a session that called the model out of the statistics.
        """
        if result.timed_out:
            return SessionEnd.KILLED, f"stopped after {result.seconds:.0f} s"
        told = last_line(result.stderr) or last_line(result.stdout)
        codes = self.spec.success_codes
        if model_calls == 0:
            if result.returncode == 0:
                return SessionEnd.NO_CALL, told or f"{self.name} ran without calling the model"
            return SessionEnd.INIT_FAILURE, told or (
                f"{self.name} exited with code {result.returncode} before its first call"
            )
        if codes is not None and result.returncode not in codes:
            return SessionEnd.KILLED, f"{self.name} ended with code {result.returncode}: {told}"
        return SessionEnd.FINISHED, ""

    def native_call(self, action: Action) -> tuple[str, dict[str, object]]:
        """The call of the agent's own tool. Raises HarnessError where [tools] is missing."""
        if self.spec.tools is None:
            raise HarnessError(
                f"{self.file}: demonstrations need [tools.shell], [tools.write] and [tools.edit]: "
                "name the agent's tools, or set warm_start.steps=0"
            )
        match action:
            case Shell(command):
                tool, values = self.spec.tools.shell, {"command": command}
            case WriteFile(path, content):
                tool, values = self.spec.tools.write, {"path": path, "content": content}
            case Edit(path, old, new):
                tool, values = self.spec.tools.edit, {"path": path, "old": old, "new": new}
        return tool.name, _fill_deep(tool.arguments, values, str(self.file))

    def finishing_call(self) -> tuple[str, dict[str, object]] | None:
        """What [tools.finish] says."""
        tool = self.spec.tools and self.spec.tools.finish
        return (tool.name, _fill_deep(tool.arguments, {}, str(self.file))) if tool else None

    def record_command(self) -> None:
        """A file doesn't say how to read an agent's record."""

    def taken_up(self, record: bytes) -> list[AgentCall] | None:
        """None: not known."""
        return None


def fill(text: str, values: Mapping[str, str], where: str) -> str:
    """`text` with its placeholders filled once; what is filled in is never searched again."""

    def value(match: re.Match[str]) -> str:
        if match["literal"]:
            return match["literal"]
        if match["name"] not in values:
            known = ", ".join(sorted(values)) or "none"
            raise HarnessError(f"{where}: unknown placeholder {match[0]}; known here: {known}")
        filled = values[match["name"]]
        return shlex.quote(filled) if match["shell"] else filled

    return _PLACEHOLDER.sub(value, text)


def _fill_deep(value: Any, values: Mapping[str, str], where: str) -> Any:
    if isinstance(value, str):
        return fill(value, values, where)
    if isinstance(value, dict):
        return {key: _fill_deep(item, values, where) for key, item in value.items()}
    if isinstance(value, list):
        return [_fill_deep(item, values, where) for item in value]
    return value
