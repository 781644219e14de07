"""hermes (pip `hermes-agent`, by Nous Research), headless.

One query (`hermes chat --query=… --quiet`): the answer goes to stdout, a last line with the
session's id to stderr. What each setting does was read from the source of 0.19.0; docs/harnesses.md
says what a session looks like.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness_adapters.errors import HarnessError
from harness_adapters.harness import BASE_ENVIRONMENT, HOME, AgentCall, Launch, Profile
from harness_adapters.harness.events import json_lines, last_line
from harness_adapters.harness.packages import check_version
from harness_adapters.harness.python_packages import (
    compile_all,
    environment_python,
    make_environment,
    pip_install,
    programs,
    system_python,
)
from harness_adapters.paths import harness_dir
from harness_adapters.records import SessionEnd
from harness_adapters.sandbox import Bind, ExecResult
from harness_adapters.tasks import Action, Edit, Shell, WriteFile

VERSION = "0.19.0"

MOUNT = "/opt/harness/hermes"
"""Where the install directory lies in every sandbox."""

PYTHONS = ((3, 13), (3, 12), (3, 11))
"""Those that hermes 0.19 allows, the preferred first."""

MAX_PROMPT_BYTES = (128 << 10) - len("--query=") - 1
"""Linux takes an argument of 128 KiB (MAX_ARG_STRLEN); hermes takes its prompt in no other way."""

_PACKAGE = "hermes_cli"
_PROVIDER = "local"
_MODEL = "model"
"""No part of a real model's name: hermes adds instructions for those that it knows."""

_SMALLEST_CONTEXT = 65_536
"""hermes refuses a model below 64,000 tokens. The gateway ends a session at the real limit."""

_ENDLESS = 100_000
"""Turns; the gateway's budget is what ends a session."""

_RECORD = f"""
import json, sqlite3
database = sqlite3.connect("file:{HOME}/.hermes/state.db?mode=ro", uri=True)
query = "SELECT tool_calls FROM messages WHERE role = 'assistant' AND tool_calls <> '' ORDER BY id"
for (calls,) in database.execute(query):
    for call in json.loads(calls):
        print(json.dumps(call))
"""
"""Prints the calls of hermes's database; it is the session's, so it is read in its sandbox."""

_LEAN_FLAGS = ("--toolsets", "terminal,file,todo", "--ignore-rules")


@dataclass(frozen=True, slots=True)
class Hermes:
    """Driver of hermes, in an environment of its own on the system's Python."""

    name: str = "hermes"
    version: str = VERSION

    def installed(self) -> Path:
        """The install directory. Raises HarnessError when it isn't there or has lost its Python."""
        root = harness_dir(self.name, self.version)
        python = environment_python(root)
        if python.is_symlink() and not python.exists():
            raise HarnessError(
                f"hermes in {root} was installed for {python.readlink()}, which is gone; remove "
                "that directory and run `harness-adapters harness install hermes`"
            )
        if not self.complete(root):
            raise HarnessError(
                f"hermes {self.version} is not installed in {root}; "
                "run `harness-adapters harness install hermes`"
            )
        return root

    def complete(self, root: Path) -> bool:
        """Whether `root` holds a whole install, its Python included."""
        has_package = any(root.glob(f"lib/python3.*/site-packages/{_PACKAGE}/main.py"))
        return has_package and environment_python(root).exists() and _ripgrep(root).is_file()

    def build(self, work: Path, say: Callable[[str], None]) -> None:
        """Install hermes for a Python that sandboxes see, compile it, run it."""
        python = system_python(self.name, PYTHONS)
        say(f"installing hermes {self.version} with pip for {python.path} (about 230 MB)")
        make_environment(work, python)
        pip_install(self.name, work)
        compile_all(work, MOUNT)
        with tempfile.TemporaryDirectory(prefix="harness-adapters-") as home:
            # `--version` asks for news, unless it has asked lately.
            (Path(home) / ".update_check").write_text(_update_check())
            command = [str(environment_python(work)), "-I", "-m", f"{_PACKAGE}.main", "--version"]
            check_version(self.name, self.version, command, work, {"HERMES_HOME": home})

    def launch(self, prompt: str, *, base_url: str, profile: Profile, max_context: int) -> Launch:
        """Start hermes on `prompt`. HarnessError when it isn't installed or can't be asked that."""
        root = self.installed()
        lean = profile is Profile.LEAN
        return Launch(
            argv=arguments(prompt, lean=lean),
            env=environment(lean=lean),
            stdin=b"",
            home_files=home_files(base_url, max_context=max_context, lean=lean),
            binds=(Bind(root, MOUNT),),
        )

    def end(self, result: ExecResult, *, model_calls: int) -> tuple[SessionEnd, str]:
        """By the line with the session's id, hermes's last act. The answer above it is any text.

        The agent's commands run as hermes's user and could write that line themselves, so it
        decides nothing that counts once the model was called.
        """
        if result.timed_out:
            return SessionEnd.KILLED, f"stopped after {result.seconds:.0f} s"
        told = last_line(result.stdout)
        came_to_its_end = b"\nsession_id: " in b"\n" + result.stderr
        if model_calls == 0:
            if came_to_its_end:
                return SessionEnd.NO_CALL, told or "hermes ran without calling the model"
            return SessionEnd.INIT_FAILURE, last_line(result.stderr) or told or (
                f"hermes exited with code {result.returncode} and said nothing"
            )
        if came_to_its_end and result.returncode:
            return SessionEnd.KILLED, f"hermes stopped with an error: {told}"
        if came_to_its_end or (result.truncated and result.returncode == 0):
            return SessionEnd.FINISHED, ""
        last = last_line(result.stderr) or told
        return SessionEnd.KILLED, f"hermes ended early with code {result.returncode}: {last}"

    def native_call(self, action: Action) -> tuple[str, dict[str, object]]:
        """The call of hermes's `terminal`, `write_file` or `patch` that does `action`."""
        match action:
            case Shell(command):
                return "terminal", {"command": command}
            case WriteFile(path, content):
                return "write_file", {"path": path, "content": content}
            case Edit(path, old, new):
                arguments = {"mode": "replace", "path": path, "old_string": old, "new_string": new}
                return "patch", {**arguments}

    def finishing_call(self) -> None:
        """A text without a call ends a session."""

    def record_command(self) -> list[str]:
        """Reads its database, with the Python that no session can change."""
        return [f"{MOUNT}/bin/python3", "-I", "-c", _RECORD]

    def taken_up(self, record: bytes) -> list[AgentCall]:
        """The calls of its assistant's messages."""
        calls: list[AgentCall] = []
        for call in json_lines(record):
            function = call.get("function")
            if isinstance(function, dict):
                calls.append(
                    AgentCall(
                        str(call.get("id")),
                        str(function.get("name")),
                        function.get("arguments"),
                    )
                )
        return calls


def arguments(prompt: str, *, lean: bool) -> list[str]:
    """The command line, with the paths that hold inside a sandbox.

    `--query=` holds any prompt as it is, a leading dash too. Raises HarnessError for one that
    hermes can't be given: empty (it would wait for a person), too long, or with a NUL.
    """
    if not prompt.strip():
        raise HarnessError("hermes can't be asked with an empty prompt")
    if "\0" in prompt:
        raise HarnessError("hermes takes its prompt as an argument, which can't hold a NUL byte")
    size = len(prompt.encode())
    if size > MAX_PROMPT_BYTES:
        raise HarnessError(f"a prompt of {size} bytes: hermes takes {MAX_PROMPT_BYTES} at most")
    return [
        f"{MOUNT}/bin/python3",
        # Isolated: with plain -m, files of the working directory would stand in for its modules.
        *("-I", "-m", f"{_PACKAGE}.main"),
        *("chat", f"--query={prompt}", "--quiet"),
        "--yolo",
        *("--source", "tool"),
        *(_LEAN_FLAGS if lean else ()),
    ]


def environment(*, lean: bool) -> dict[str, str]:
    """The whole environment of hermes; nothing of ours is inherited."""
    values = {
        **BASE_ENVIRONMENT,
        "PATH": f"{BASE_ENVIRONMENT['PATH']}:{programs(Path(MOUNT))}",
        "HERMES_HOME": f"{HOME}/.hermes",
        "HERMES_YOLO_MODE": "1",
        # Without one, a command with `sudo` in it waits 45 s for somebody to type it.
        "SUDO_PASSWORD": "",
        # Its clean-up matters to nobody: what it would tidy goes with the sandbox.
        "HERMES_EXIT_WATCHDOG_S": "5",
        # Looked into when it is needed; the bundle of certificates is read eight times at start-up.
        "SSL_CERT_DIR": "/etc/ssl/certs",
    }
    # Documented as "no plugins, no MCP servers"; the plugins are services that need the network.
    return values | ({"HERMES_SAFE_MODE": "1"} if lean else {})


def home_files(base_url: str, *, max_context: int, lean: bool) -> dict[str, str]:
    """hermes's configuration, by path below HOME."""
    settings = _stock_settings(base_url, max(max_context, _SMALLEST_CONTEXT))
    if lean:
        settings = _merged(settings, _LEAN_SETTINGS)
    # JSON is YAML.
    return {
        ".hermes/config.yaml": json.dumps(settings, indent=1),
        ".hermes/.update_check": _update_check(),
    }


def _stock_settings(base_url: str, context: int) -> dict[str, Any]:
    """The connection, and what must be off where nobody is there and the gateway counts."""
    model = {"context_length": context}
    provider = {
        "name": _PROVIDER,
        "base_url": base_url,
        "api_key": "none",
        "api_mode": "chat_completions",
        "default_model": _MODEL,
        "models": {_MODEL: model},
        "discover_models": False,
        "request_timeout_seconds": 3600,
    }
    return {
        "model": {"default": _MODEL, "provider": f"custom:{_PROVIDER}", **model},
        "providers": {_PROVIDER: provider},
        "agent": {
            "max_turns": _ENDLESS,
            # The gateway ends a session whose engine failed; retries would only hold it open.
            "api_max_retries": 1,
            # A browser reaches nothing in a sandbox, and its tools are there or not by machine. The
            # scripts of `execute_code` call tools behind the gateway's back: no record, no verdict.
            "disabled_toolsets": ["browser", "code_execution"],
            # Left out of the prompt when the probe takes too long: prompts would differ.
            "environment_probe": False,
        },
        "compression": {"enabled": False},
        "approvals": {"mode": "off"},
        "clarify": {"timeout": 1},
        # What calls the model when the task is done, for the next session, which never comes.
        "auxiliary": {"title_generation": {"enabled": False}},
        "memory": {"nudge_interval": 0},
        "skills": {"creation_nudge_interval": 0},
        "curator": {"enabled": False},
        # Alters what the model is told of its tools' output.
        "security": {
            "redact_secrets": False,
            # What wants the network.
            "tirith_enabled": False,
            "allow_lazy_installs": False,
        },
        "model_catalog": {"enabled": False},
        "lsp": {"enabled": False},
    }


_LEAN_SETTINGS: Mapping[str, Any] = {
    "agent": {
        "verify_on_stop": False,
        "coding_context": "off",
        "tool_use_enforcement": False,
        "intent_ack_continuation": False,
        "task_completion_guidance": False,
        "parallel_tool_call_guidance": False,
    },
    "platform_hints": {"cli": {"replace": "Answer in plain text; nobody can reply to you."}},
    "memory": {"memory_enabled": False, "user_profile_enabled": False},
    "tools": {"tool_search": {"enabled": "off"}},
    "tool_loop_guardrails": {"warnings_enabled": False},
}
"""On top of the stock settings: shorter prompts, and no text of hermes's own in tool results."""


def _merged(settings: dict[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """`settings` with `more`, section by section."""
    return settings | {key: {**settings.get(key, {}), **value} for key, value in more.items()}


def _ripgrep(root: Path) -> Path:
    """hermes searches with it; with grep it finds nothing below `.`, its default."""
    return programs(root) / "rg"


def _update_check() -> str:
    """Says that hermes has asked for a newer version a moment ago (at a time far ahead)."""
    return json.dumps({"ts": 4_102_444_800, "behind": 0, "rev": None, "ver": VERSION})
