"""pi (npm `@earendil-works/pi-coding-agent`), headless.

Prompt by stdin: a positional prompt is mangled (`@x` is read as a file name). Output is
`--mode json`: one event per line on stdout, documented in pi's own `docs/json.md`. The exit code is
0 whatever happened.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness_adapters.errors import HarnessError
from harness_adapters.harness import BASE_ENVIRONMENT, AgentCall, Launch, Profile
from harness_adapters.harness.compile_cache import warm
from harness_adapters.harness.events import json_lines, last_line
from harness_adapters.harness.packages import check_version, node, npm_ci, npm_machine
from harness_adapters.paths import harness_dir
from harness_adapters.records import SessionEnd
from harness_adapters.sandbox import Bind, ExecResult
from harness_adapters.tasks import Action, Edit, Shell, WriteFile

VERSION = "1.6.0"

MOUNT = "/opt/harness/pi"
"""Where the install directory lies in every sandbox; pi's stock prompt prints paths below it."""

CLI = "node_modules/@earendil-works/pi-coding-agent/dist/bundle/cli.js"
COMPILE_CACHE = "compile-cache"
"""Below the install directory: V8 code made once by a trusted run, read-only to sessions."""

LEAN_SYSTEM_PROMPT = """\
You are a coding agent. Work in the current directory with your tools: bash runs commands, read \
shows files, write creates or replaces files, edit replaces exact text. Do what the user asks, \
then answer briefly."""
"""Stands in `SYSTEM.md`, which replaces pi's default system prompt (pi's docs/configuration.md)."""

_PROVIDER = "local"
_MODEL = "model"

_LEAN_FLAGS = (
    "--tools",
    "read,bash,edit,write",
    "--no-extensions",
    "--no-mcp",
    "--no-skills",
    "--no-prompt-templates",
    "--no-themes",
    "--no-context-files",
)

_CONTEXT_SLACK = 65_536
"""Declared on top of the real context. pi estimates what is left of a declared window, compacts
(an extra model call) or asks for one single token when it seems small; the gateway knows better."""


@dataclass(frozen=True, slots=True)
class Pi:
    """Driver of pi, with a node of its own from the same install directory."""

    name: str = "pi"
    version: str = VERSION

    def installed(self) -> Path:
        """The install directory. Raises HarnessError when it isn't there."""
        root = harness_dir(self.name, self.version)
        if not self.complete(root):
            raise HarnessError(
                f"pi {self.version} is not installed in {root}; "
                "run `harness-adapters harness install pi`"
            )
        return root

    def complete(self, root: Path) -> bool:
        """Whether `root` holds a whole install."""
        return (root / CLI).is_file() and node(root).is_file()

    def build(self, work: Path, say: Callable[[str], None]) -> None:
        """Install pi and its node into `work`, run it, compile it once."""
        say(f"installing pi {self.version} with npm (about 300 MB)")
        npm_ci("pi", work)
        if not node(work).is_file():
            raise HarnessError(
                f"npm installed no node for this machine (node-linux-{npm_machine()}); "
                "pi runs on Linux x86_64 and arm64"
            )
        quiet = {"PI_OFFLINE": "1", "NODE_DISABLE_COMPILE_CACHE": "1"}
        check_version("pi", self.version, [node(work), work / CLI, "--version"], work, quiet)
        # Nothing answers at the base URL: pi loads everything, fails to connect and ends.
        trial = self._launch(
            work,
            "Say done.",
            base_url="http://127.0.0.1:9/v1",
            profile=Profile.LEAN,
            max_context=4096,
            compile_cache=True,
        )
        say(warm("pi", trial, work / COMPILE_CACHE, mark=b'"agent_settled"'))

    def launch(self, prompt: str, *, base_url: str, profile: Profile, max_context: int) -> Launch:
        """Start pi on `prompt`; HarnessError when it isn't installed."""
        root = self.installed()
        return self._launch(
            root,
            prompt,
            base_url=base_url,
            profile=profile,
            max_context=max_context,
            compile_cache=(root / COMPILE_CACHE).is_dir(),
        )

    def _launch(
        self,
        root: Path,
        prompt: str,
        *,
        base_url: str,
        profile: Profile,
        max_context: int,
        compile_cache: bool,
    ) -> Launch:
        lean = profile is Profile.LEAN
        return Launch(
            argv=arguments(root, lean=lean),
            env=environment(compile_cache=compile_cache),
            stdin=prompt.encode(),
            home_files=home_files(base_url, max_context=max_context, lean=lean),
            binds=(Bind(root, MOUNT),),
        )

    def end(self, result: ExecResult, *, model_calls: int) -> tuple[SessionEnd, str]:
        """By pi's events. An error after the first model call is scored, not excluded.

        The agent's commands run as pi's user and can write into pi's stdout: if a forged error
        event took a session out of the statistics, a losing model could use it. What really
        failed in the engine, the gateway knows.
        """
        if result.timed_out:
            return SessionEnd.KILLED, f"stopped after {result.seconds:.0f} s"
        events = json_lines(result.stdout)
        kinds = {str(event.get("type")) for event in events}
        failure = _failure(events)
        if model_calls == 0:
            if "agent_start" in kinds:
                return SessionEnd.NO_CALL, failure or "pi ran without calling the model"
            return SessionEnd.INIT_FAILURE, last_line(result.stderr) or (
                f"pi exited with code {result.returncode} before its first event"
            )
        if failure:
            return SessionEnd.KILLED, f"pi stopped with an error: {failure}"
        if "agent_settled" in kinds or (result.truncated and result.returncode == 0):
            return SessionEnd.FINISHED, ""
        last = last_line(result.stderr)
        return SessionEnd.KILLED, f"pi ended early with code {result.returncode}: {last}"

    def native_call(self, action: Action) -> tuple[str, dict[str, object]]:
        """The call of pi's `bash`, `write` or `edit` that does `action`."""
        match action:
            case Shell(command):
                return "bash", {"command": command}
            case WriteFile(path, content):
                return "write", {"path": path, "content": content}
            case Edit(path, old, new):
                return "edit", {"path": path, "edits": [{"oldText": old, "newText": new}]}

    def finishing_call(self) -> None:
        """A text without a call ends a session."""

    def record_command(self) -> None:
        """pi keeps no session file here; its events are its record."""

    def taken_up(self, record: bytes) -> list[AgentCall]:
        """What pi's `tool_execution_start` events name."""
        return [
            AgentCall(str(event.get("toolCallId")), str(event.get("toolName")), event.get("args"))
            for event in json_lines(record)
            if event.get("type") == "tool_execution_start"
        ]


def arguments(root: Path, *, lean: bool) -> list[str]:
    """The command line, with the paths that hold inside a sandbox."""
    return [
        f"{MOUNT}/{node(root).relative_to(root)}",
        f"{MOUNT}/{CLI}",
        "--mode",
        "json",
        "--model",
        f"{_PROVIDER}/{_MODEL}",
        "--thinking",
        "off",
        "--no-approve",
        "--no-session",
        "--offline",
        *(_LEAN_FLAGS if lean else ()),
    ]


def environment(*, compile_cache: bool) -> dict[str, str]:
    """The whole environment of pi; nothing of ours is inherited."""
    cache = (
        {"NODE_COMPILE_CACHE": f"{MOUNT}/{COMPILE_CACHE}"}
        if compile_cache
        # Without it pi fills a fresh cache in /tmp in every session, and nothing ever reads it.
        else {"NODE_DISABLE_COMPILE_CACHE": "1"}
    )
    return {
        **BASE_ENVIRONMENT,
        **cache,
        "PI_OFFLINE": "1",
        "PI_SKIP_VERSION_CHECK": "1",
        "PI_TELEMETRY": "0",
    }


def home_files(base_url: str, *, max_context: int, lean: bool) -> dict[str, str]:
    """pi's configuration, by path below HOME."""
    files = {
        ".pi/agent/models.json": _models(base_url, max_context),
        ".pi/agent/settings.json": _settings(),
    }
    return files | ({".pi/agent/SYSTEM.md": LEAN_SYSTEM_PROMPT} if lean else {})


def _models(base_url: str, max_context: int) -> str:
    model = {
        "id": _MODEL,
        "name": _MODEL,
        "reasoning": False,
        "input": ["text"],
        "contextWindow": max_context + _CONTEXT_SLACK,
        "maxTokens": 16_384,
    }
    provider = {
        "baseUrl": base_url,
        "api": "openai-completions",
        "apiKey": "none",
        "compat": {
            "supportsDeveloperRole": False,
            "supportsReasoningEffort": False,
            "supportsStore": False,
            "maxTokensField": "max_tokens",
        },
        "models": [model],
    }
    return json.dumps({"providers": {_PROVIDER: provider}}, indent=1)


def _settings() -> str:
    return json.dumps(
        {
            "enableInstallTelemetry": False,
            "quietStartup": True,
            "defaultProjectTrust": "never",
            "cacheWarming": "off",
            "compaction": {"enabled": False},
            # The gateway ends a session whose engine failed; retries would only hold it open.
            "retry": {"enabled": False},
        },
        indent=1,
    )


def _failure(events: list[dict[str, Any]]) -> str:
    """The error text of the last assistant message, empty when it ended well."""
    for event in reversed(events):
        message = event.get("message")
        if event.get("type") == "message_end" and isinstance(message, dict):
            if message.get("role") != "assistant":
                continue
            if message.get("stopReason") in ("error", "aborted"):
                return str(message.get("errorMessage") or message["stopReason"])[:300]
            return ""
    return ""
