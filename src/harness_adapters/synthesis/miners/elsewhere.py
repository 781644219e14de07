"""Repairs that the gates can't prove: checks of other languages that failed and then passed.

They are counted, so that the funnel says how much work was seen and what it would take to use it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from harness_adapters.synthesis.candidate import TaskType
from harness_adapters.synthesis.miners import Found, Refusal
from harness_adapters.synthesis.miners.checks import is_test_run, output_of
from harness_adapters.synthesis.miners.timeline import Step, Timeline
from harness_adapters.synthesis.reasons import Reason
from harness_adapters.synthesis.traces.session import ToolKind


@dataclass(frozen=True, slots=True)
class _Tool:
    """A check, recognised by its command line or, behind a task runner, by what it prints."""

    name: str
    language: str
    command: re.Pattern[str]
    output: re.Pattern[str] | None = None


def _tool(name: str, language: str, command: str, output: str = "") -> _Tool:
    shown = re.compile(output, re.MULTILINE) if output else None
    return _Tool(name, language, re.compile(rf"(?:^|[\s;&|(])(?:{command})\b"), shown)


_JS = "JavaScript or TypeScript"
_TOOLS = (
    _tool("go test", "Go", r"go\s+test", r"^(?:ok|FAIL)\s+\S+\.\S+/|^--- (?:FAIL|PASS): "),
    _tool("golangci-lint", "Go", "golangci-lint", r"^\[lint\] .*golangci-lint|\(typecheck\)"),
    _tool("go build", "Go", r"go\s+(?:build|vet|install)"),
    _tool("bun test", _JS, r"bun\s+test", r"^Ran \d+ tests across \d+ files?\."),
    _tool("vitest", _JS, "vitest", r"^\s*Test Files\s+\d"),
    _tool("jest", _JS, "jest", r"^Tests:\s+\d"),
    _tool("node --test", _JS, r"node\s+(?:\S+\s+)*--test", r"^# tests \d"),
    _tool("tsc", _JS, "tsc|tsgo", r"error TS\d+:|^[>$] .*\b(?:tsc|tsgo)\b"),
    _tool("biome", _JS, r"biome\s+(?:check|lint|ci)", r"^\$ biome "),
    _tool("eslint", _JS, "eslint", r"^[>$] .*\beslint\b"),
    _tool("cargo", "Rust", r"cargo\s+(?:test|check|build|clippy|nextest)"),
    _tool("maven or gradle", "Java", r"(?:mvn|gradle|gradlew)"),
    _tool("dotnet", "C#", r"dotnet\s+(?:test|build)"),
    _tool("rspec", "Ruby", "rspec"),
    _tool("make", "?", r"(?:make|just|mise\s+run)\s+(?:\w*test|\w*lint|\w*check|build)"),
)
_RUNNERS = re.compile(
    r"(?:^|[\s;&|(])(?:npm|pnpm|yarn|bun|bunx|npx|mise|make|just|task|turbo)\b.*"
    r"(?:test|lint|check|build|tsc|tsgo|ci)\b"
)
_FAILED = re.compile(
    r"^FAIL\b|^--- FAIL|\berror TS\d+|\b[1-9]\d* (?:fail(?:ed|ing|ures?)?|errors?)\b"
    r"|ERROR task failed|Some (?:errors|warnings) were emitted|npm error|^error(?:\[E\d+\])?: "
    r"|\[build failed\]|exited with code [1-9]|BUILD FAILED|test result: FAILED",
    re.MULTILINE,
)
_PASSED = re.compile(
    r"^ok\s|^PASS\b|\b0 fail|No fixes applied|\b0 issues\b|test result: ok|BUILD SUCCESS"
    r"|\b\d+ pass(?:ed|ing)?\b",
    re.MULTILINE,
)


def repairs_elsewhere(line: Timeline, licence: str) -> Iterable[Found]:
    """A refusal for each stretch from a failing to a passing run of one such check."""
    failing: dict[str, Step] = {}
    for step in line.steps:
        tool = _tool_of(step)
        ended = _ended(step) if tool else None
        if tool is None or ended is None:
            continue
        if not ended:
            failing.setdefault(tool.name, step)
        elif failed := failing.pop(tool.name, None):
            known = _known(line, failed, step)
            detail = f"{tool.name} ({tool.language}) failed, then passed; {known}"
            yield Refusal(TaskType.REPAIR, Reason.LANGUAGE, detail)


def _tool_of(step: Step) -> _Tool | None:
    command = (step.call.command or "").split("<<", 1)[0]  # what a here-document says isn't run
    if step.call.kind is not ToolKind.SHELL or step.request < 0 or is_test_run(step):
        return None
    named = next((tool for tool in _TOOLS if tool.command.search(command)), None)
    if named is None or named.language == "?":
        if not _RUNNERS.search(command):
            return None
        text = output_of(step)
        shown = (tool for tool in _TOOLS if tool.output and tool.output.search(text))
        return next(shown, named)
    return named


def _ended(step: Step) -> bool | None:
    """How it ended: by its exit code, behind a pipe by its words. None: unknown."""
    result = step.call.result
    if result is None or result.running or result.interrupted:
        return None
    text = output_of(step)
    if "|" not in (step.call.command or "") and result.exit_code is not None:
        return result.exit_code == 0
    if _FAILED.search(text):
        return False
    return True if _PASSED.search(text) else None


def _known(line: Timeline, failed: Step, passed: Step) -> str:
    """How much of what changed between two runs the log holds."""
    paths = line.replay.changed(failed.number, passed.number - 1)
    files = line.replay.at(passed.number)
    whole = sum(path in files and files[path].text is not None for path in paths)
    return f"{whole} of {len(paths)} changed files known"
