"""opencode (npm `opencode-ai`), headless.

The binary of the platform's package is run directly; the launcher around it isn't needed. Prompt
by stdin: a positional prompt gets quotes around it. Output is `run --format json`: one event per
line on stdout (`step_start`, `text`, `tool_use`, `step_finish`, `error`). The exit code is 1 after
any error, also one that the session recovered from.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness_adapters.errors import HarnessError
from harness_adapters.harness import BASE_ENVIRONMENT, HOME, AgentCall, Launch, Profile
from harness_adapters.harness.events import json_lines, last_line
from harness_adapters.harness.packages import check_version, npm_ci, npm_machine
from harness_adapters.paths import harness_dir
from harness_adapters.records import SessionEnd
from harness_adapters.sandbox import Bind, ExecResult
from harness_adapters.tasks import Action, Edit, Shell, WriteFile

VERSION = "1.18.33"
RIPGREP_VERSION = "15.0.0"

MOUNT = "/opt/harness/opencode"
"""Where the install directory lies in every sandbox."""

LEAN_SYSTEM_PROMPT = """\
You are a coding agent. Work in the current directory with your tools: bash runs commands, read \
shows files, write creates or replaces files, edit replaces exact text. Do what the user asks, \
then answer briefly."""
"""Stands in `agent.build.prompt`, which replaces opencode's default prompt for the model."""

_LEAN_DENIED = ("glob", "grep", "skill", "task", "todowrite", "webfetch", "websearch")
"""A denied tool is not offered."""

_INVALID = "invalid"
"""The tool that opencode gives a call to whose name or arguments it can't read; it only answers."""

_PROVIDER = "local"
_MODEL = "model"
_CONFIG = ".config/opencode"
_PLUGIN = {"dependencies": {"@opencode-ai/plugin": VERSION}}


@dataclass(frozen=True, slots=True)
class OpenCode:
    """Driver of opencode, with a ripgrep of its own from the same install directory."""

    name: str = "opencode"
    version: str = VERSION

    def installed(self) -> Path:
        """The install directory. Raises HarnessError when it isn't there."""
        root = harness_dir(self.name, self.version)
        if not self.complete(root):
            raise HarnessError(
                f"opencode {self.version} is not installed in {root}; "
                "run `harness-adapters harness install opencode`"
            )
        return root

    def complete(self, root: Path) -> bool:
        """Whether `root` holds a whole install."""
        return (root / _binary()).is_file() and (root / _ripgrep() / "rg").is_file()

    def build(self, work: Path, say: Callable[[str], None]) -> None:
        """Install opencode and ripgrep into `work` and run both."""
        say(f"installing opencode {self.version} with npm (about 180 MB)")
        npm_ci("opencode", work)
        if not self.complete(work):
            raise HarnessError(
                f"npm installed no opencode for this machine (opencode-linux-{npm_machine()}); "
                "its lock file is for Linux x86_64"
            )
        with tempfile.TemporaryDirectory(prefix="harness-adapters-") as home:
            # Else it leaves caches in the install and unpacked libraries in /tmp.
            away = {"HOME": home, "TMPDIR": home}
            check = work / _binary()
            check_version("opencode", self.version, [check, "--version"], work, away)
            ripgrep = work / _ripgrep() / "rg"
            check_version("ripgrep", RIPGREP_VERSION, [ripgrep, "--version"], work, away)

    def launch(self, prompt: str, *, base_url: str, profile: Profile, max_context: int) -> Launch:
        """Start opencode on `prompt`; HarnessError when it isn't installed."""
        root = self.installed()
        return Launch(
            argv=arguments(),
            env=environment(),
            stdin=prompt.encode(),
            home_files=home_files(base_url, profile, max_context=max_context),
            binds=(Bind(root, MOUNT),),
        )

    def end(self, result: ExecResult, *, model_calls: int) -> tuple[SessionEnd, str]:
        """By opencode's events. An error after the first model call is scored, not excluded.

        What the agent runs can write into opencode's stdout: no event may take a session out of
        the statistics. What really failed in the engine, the gateway knows.
        """
        if result.timed_out:
            return SessionEnd.KILLED, f"stopped after {result.seconds:.0f} s"
        events = json_lines(result.stdout)
        last = _last_of(events, ("step_finish", "error"))
        failure = _failure(last) if last.get("type") == "error" else ""
        if model_calls == 0:
            if events:
                return SessionEnd.NO_CALL, failure or "opencode ran without calling the model"
            return SessionEnd.INIT_FAILURE, last_line(result.stderr) or (
                f"opencode exited with code {result.returncode} before its first event"
            )
        if failure:
            return SessionEnd.KILLED, f"opencode stopped with an error: {failure}"
        # A step that ends in calls is followed by another: it was not the last.
        if last and _reason(last) != "tool-calls":
            return SessionEnd.FINISHED, ""
        if result.truncated and result.returncode == 0:
            return SessionEnd.FINISHED, ""
        told = last_line(result.stderr)
        return SessionEnd.KILLED, f"opencode ended early with code {result.returncode}: {told}"

    def native_call(self, action: Action) -> tuple[str, dict[str, object]]:
        """The call of opencode's `bash`, `write` or `edit` that does `action`.

        Its schema asks for absolute paths; relative ones are taken from the working directory.
        """
        match action:
            case Shell(command):
                return "bash", {"command": command}
            case WriteFile(path, content):
                return "write", {"content": content, "filePath": path}
            case Edit(path, old, new):
                return "edit", {"filePath": path, "oldString": old, "newString": new}

    def finishing_call(self) -> None:
        """A text without a call ends a session."""

    def record_command(self) -> None:
        """Its database lives in memory here; its events are its record."""

    def taken_up(self, record: bytes) -> list[AgentCall]:
        """What its `tool_use` events name; a call that it couldn't read is its tool `invalid`."""
        calls: list[AgentCall] = []
        for event in json_lines(record):
            part = event.get("part")
            if event.get("type") == "tool_use" and isinstance(part, dict):
                name, state = str(part.get("tool")), part.get("state")
                given = state.get("input") if isinstance(state, dict) else None
                calls.append(
                    AgentCall(str(part.get("callID")), "" if name == _INVALID else name, given)
                )
        return calls


def arguments() -> list[str]:
    """The command line, with the paths that hold inside a sandbox."""
    return [
        f"{MOUNT}/{_binary()}",
        "run",
        "--format",
        "json",
        "--pure",  # no plugins
        "--auto",  # nobody is there to be asked for permissions
        "--print-logs",
        "--log-level",
        "WARN",
        "--title",  # else it asks the model for one
        "session",
        "--model",
        f"{_PROVIDER}/{_MODEL}",
    ]


def environment() -> dict[str, str]:
    """The whole environment of opencode; nothing of ours is inherited."""
    return {
        **BASE_ENVIRONMENT,
        # opencode downloads a ripgrep for its grep and glob tools where PATH has none.
        "PATH": f"{MOUNT}/{_ripgrep()}:{BASE_ENVIRONMENT['PATH']}",
        "TZ": "UTC",  # the prompt holds the date
        # Sessions that start at the same time fail at the lock of a database in a file.
        "OPENCODE_DB": ":memory:",
        # Reading the list of all models that opencode brings costs 2.5 s of processor time.
        "OPENCODE_MODELS_PATH": f"{HOME}/{_CONFIG}/models.json",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
        "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
        "OPENCODE_DISABLE_CLAUDE_CODE": "1",
        "OPENCODE_DISABLE_EXTERNAL_SKILLS": "1",
        "OPENCODE_DISABLE_PROJECT_CONFIG": "1",
        "OPENCODE_DISABLE_TERMINAL_TITLE": "1",
        "OPENCODE_EXPERIMENTAL_DISABLE_FILEWATCHER": "1",
    }


def home_files(base_url: str, profile: Profile, *, max_context: int) -> dict[str, str]:
    """opencode's configuration, by path below HOME."""
    lock = {"lockfileVersion": 3, "packages": {"": _PLUGIN}}
    files = {
        "opencode.json": json.dumps(_settings(base_url, profile, max_context), indent=1),
        "models.json": "{}",
        # opencode would install its plugin package here, in the background and over the network,
        # unless all of this is there and agrees.
        "package.json": json.dumps(_PLUGIN),
        "package-lock.json": json.dumps(lock),
        "node_modules/.keep": "",
        ".gitignore": "*\n",
    }
    return {f"{_CONFIG}/{name}": text for name, text in files.items()}


def _settings(base_url: str, profile: Profile, max_context: int) -> dict[str, Any]:
    model = {
        "name": _MODEL,
        "limit": {"context": max_context, "output": 16_384},
        "tool_call": True,
        "reasoning": False,
        "temperature": True,
    }
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": _PROVIDER,
        "options": {"baseURL": base_url, "apiKey": "none"},
        "models": {_MODEL: model},
    }
    settings: dict[str, Any] = {
        "autoupdate": False,
        "share": "disabled",
        "snapshot": False,
        # What they add to a session depends on the programs of the machine.
        "lsp": False,
        "formatter": False,
        "model": f"{_PROVIDER}/{_MODEL}",
        "small_model": f"{_PROVIDER}/{_MODEL}",
        "enabled_providers": [_PROVIDER],
        "provider": {_PROVIDER: provider},
        "compaction": {"auto": False, "prune": False},
        "agent": {"title": {"disable": True}, "summary": {"disable": True}},
    }
    if profile is Profile.LEAN:
        settings["agent"]["build"] = {"prompt": LEAN_SYSTEM_PROMPT}
        # Rules that match later win, so the general one stands first.
        settings["permission"] = {"*": "allow", **dict.fromkeys(_LEAN_DENIED, "deny")}
    else:
        # A user's opencode reads AGENTS.md together with the project's own configuration, which
        # is off here: it could start servers and change tools. This names the working directory
        # of opencode, wherever a task has it.
        settings["instructions"] = ["/proc/self/cwd/AGENTS.md"]
    return settings


def _binary() -> str:
    return f"node_modules/opencode-linux-{npm_machine()}/bin/opencode"


def _ripgrep() -> str:
    return f"node_modules/@vscode/ripgrep-linux-{npm_machine()}/bin"


def _last_of(events: list[dict[str, Any]], kinds: tuple[str, ...]) -> dict[str, Any]:
    return next((event for event in reversed(events) if event.get("type") in kinds), {})


def _failure(event: dict[str, Any]) -> str:
    """The text of an `error` event."""
    error = event.get("error")
    if not isinstance(error, dict):
        return "unknown"
    data = error.get("data")
    message = data.get("message") if isinstance(data, dict) else None
    return " ".join(str(message or error.get("name") or "unknown").split())[:300]


def _reason(event: dict[str, Any]) -> str:
    part = event.get("part")
    return str(part.get("reason")) if isinstance(part, dict) else ""
