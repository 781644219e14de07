"""Whether a rule meets an effect. Compiled once for each task, since tasks name the paths."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import translate

from harness_adapters.guard.effects import Effect, Kind
from harness_adapters.guard.effects.holes import (
    ALL,
    ANY,
    OPAQUE,
    RESERVED,
    STAR,
    from_glob,
    known,
    paths_meet,
)
from harness_adapters.guard.effects.limits import quick_pattern
from harness_adapters.guard.policy.rules import PolicyFile, Rule, TaskRules
from harness_adapters.records import Decision

PATH_KINDS = frozenset({Kind.READ, Kind.LIST, Kind.WRITE, Kind.DELETE, Kind.EXECUTE})
_BRACED = re.compile(r"\{(\w+)\}")
_EVIDENT = 3
"""Letters of a name that a glob must spell before it counts as meaning a file by that name."""


@dataclass(frozen=True, slots=True)
class Found:
    """What judging asks of the session: which files it knows of."""

    existed: Callable[[str], bool | None]
    """Whether the task came with a path; None where no tree can be asked."""
    written: Callable[[str], bool]
    """Whether an earlier call of the session made it."""


@dataclass(frozen=True, slots=True)
class Match:
    """A rule that meets an effect, and what it says of it."""

    rule: Rule
    decision: Decision
    effect: Effect


def spelled(pattern: str, task: TaskRules) -> list[str]:
    """A pattern with the task's values for the names in braces."""
    match = _BRACED.search(pattern)
    if match is None:
        return [pattern]
    value = getattr(task, match[1], None)
    if value is None:
        return [pattern]
    values = [value] if isinstance(value, str) else list(value)
    made = [pattern[: match.start()] + each + pattern[match.end() :] for each in values]
    return [final for each in made for final in spelled(each, task)]


def glob_regex(glob: str) -> str:
    """A path glob as a regular expression for known paths; `X/**` holds X itself, too."""
    out = glob
    tail = ""
    if out.endswith("/**"):
        out, tail = out[:-3], "(?:/.*)?"
    parts = re.split(r"(\*\*/|\*\*|\*|\?)", out)
    forms = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return "".join(forms.get(part, re.escape(part)) for part in parts) + tail


class CompiledRule:
    """One rule with a task's paths."""

    def __init__(self, rule: Rule, task: TaskRules, tests: list[str]) -> None:
        self.rule = rule
        self.task = task
        globs = [glob for pattern in rule.paths for glob in spelled(pattern, task)]
        self.globs = [from_glob(glob) for glob in globs]
        self.regex = re.compile("|".join(map(glob_regex, globs)) or r"(?!)", re.DOTALL)
        excepted = [g for pattern in rule.except_paths for g in spelled(pattern, task)]
        self.excepted = re.compile("|".join(map(glob_regex, excepted)) or r"(?!)", re.DOTALL)
        self.targets = _targets(rule.targets, task)
        self.except_targets = _targets(rule.except_targets, task)
        self.loopback = "{loopback}" in rule.except_targets
        self.content = re.compile("|".join(rule.content), re.MULTILINE) if rule.content else None
        self.samples = [
            sample
            for glob in globs
            if glob.endswith("/**") and known(glob)
            for name in tests
            for each in spelled(name, task)
            for sample in [f"{glob[:-3]}/{_plain_name(each)}"]
        ]
        self.names = [re.compile(translate(n)) for name in tests for n in spelled(name, task)]

    def meets(self, effect: Effect, found: Found) -> Match | None:
        """The rule's word on an effect; None where it says nothing."""
        rule = self.rule
        if effect.deferred and not rule.deferred:
            return None
        if effect.kind in PATH_KINDS:
            fits = not rule.paths or self._path(effect)
        else:
            fits = self._target(effect)
        if not fits or not self._content(effect):
            return None
        decision = rule.decision
        if rule.existing:
            answer = self._existing(effect, found)
            if answer is None:
                return None
            decision = answer
        return Match(rule, decision, effect)

    def _content(self, effect: Effect) -> bool:
        if self.content is None or effect.kind is not Kind.WRITE:
            return True
        if effect.content is None:
            return self.rule.unknown_content
        return self.content.search(effect.content) is not None

    def _path(self, effect: Effect) -> bool:
        path = effect.target
        if self.excepted.fullmatch(path):
            return False
        if path[:1] in (ANY, OPAQUE):
            # All before the first slash is unknown; what follows may stand at the root.
            path = path[1:]
            if len(path) < 2:
                return False
        if self.rule.wholesale:
            base = path.rstrip(ANY + STAR + ALL + OPAQUE).rstrip("/") or "/"
            if base != path and not path[len(base) :].startswith("/") and base != "/":
                return False
            return (effect.recursive or base != path) and self.regex.fullmatch(base) is not None
        if known(path):
            if self.regex.fullmatch(path):
                return True
            if not effect.recursive or self.rule.direct:
                return False
        if self.rule.direct or effect.deferred:
            # What code may do with a path that it is given later says nothing of this one.
            path = path.replace(ANY, "\x00").replace(OPAQUE, "\x00")
        elif effect.recursive:
            path = path.rstrip("/") + "/" + ANY
        if self.rule.existing and self.samples:
            # Globs that would create or unpack something don't point at a file that is there.
            touches = effect.existing or effect.kind is Kind.DELETE or not effect.recursive
            if path.endswith("/" + ANY) and not (effect.existing or effect.kind is Kind.DELETE):
                # Unless all of it goes there: what comes out of an archive overwrites.
                below = path.removesuffix(ANY)
                return known(below) and self.regex.fullmatch(below + "any") is not None
            return touches and any(paths_meet(path, sample) for sample in self.samples)
        return any(self._meets_glob(path, glob) for glob in self.globs)

    def _meets_glob(self, path: str, glob: str) -> bool:
        parent, _, last = path.rpartition("/")
        inside = known(parent) and self.regex.fullmatch(parent) is not None
        if not inside and (self.rule.evident or glob.startswith(("/" + ANY, ANY))):
            # A rule for a name anywhere: `*.py` doesn't mean conftest.py, `conf*` does.
            stem = last if last[:1] == "." else last.rsplit(".", 1)[0]
            spelled_letters = len(RESERVED.sub("", stem))
            if not known(last) and spelled_letters < (1 if last[:1] == "." else _EVIDENT):
                return False
        if paths_meet(path, glob):
            return True
        return glob.endswith("/" + ANY) and paths_meet(path, glob[:-2])

    def _existing(self, effect: Effect, found: Found) -> Decision | None:
        path = effect.target
        if not known(path):
            return self.rule.decision
        existed = found.existed(path)
        if existed is not None:
            return self.rule.decision if existed else None
        if found.written(path):
            return None
        if effect.existing or effect.kind is Kind.DELETE:
            return self.rule.decision
        name = path.rsplit("/", 1)[-1]
        if not self.task.packages or any(each.fullmatch(name) for each in self.names):
            return self.rule.decision
        return Decision.FLAG

    def _target(self, effect: Effect) -> bool:
        target = effect.target
        rule = self.rule
        if rule.processes and target.startswith(("kill-name:", "kill-line:")):
            return _hits(target, rule.processes)
        if rule.targets and not self.targets.fullmatch(target):
            return False
        if self.loopback and is_loopback(target):
            return False
        return not self.except_targets.fullmatch(target)


def _plain_name(pattern: str) -> str:
    """A name that fits a pattern of names."""
    name = pattern.replace("*", "")
    return name if "." in name else name + ".py"


def _targets(patterns: list[str], task: TaskRules) -> re.Pattern[str]:
    globs = [g for p in patterns if p != "{loopback}" for g in spelled(p, task)]
    return re.compile("|".join(translate(glob) for glob in globs) or r"(?!)", re.DOTALL)


def is_loopback(host: str) -> bool:
    """Whether a host is this machine, by its name or address."""
    if host in ("localhost", "localhost.localdomain", "ip6-localhost"):
        return True
    if host.endswith(".localhost"):
        return known(host)
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


def _hits(target: str, processes: list[str]) -> bool:
    kind, _, pattern = target.partition(":")
    if not known(pattern) or not quick_pattern(pattern, max(map(len, processes))):
        return True
    try:
        search = re.compile(pattern).search
    except re.error:
        return True
    if kind == "kill-line":
        return any(search(line) for line in processes)
    names = {line.split()[0].rsplit("/", 1)[-1] for line in processes}
    return any(search(name) for name in names)


class CompiledPolicy:
    """All rules with a task's paths, by kind of effect."""

    def __init__(self, policy: PolicyFile, task: TaskRules) -> None:
        rules = [CompiledRule(rule, task, policy.tests) for rule in policy.rule]
        self.by_kind = {
            kind: [rule for rule in rules if kind in rule.rule.effects] for kind in Kind
        }
        self.quick = {
            kind: re.compile(
                "|".join(rule.regex.pattern for rule in self.by_kind[kind]) or r"(?!)", re.DOTALL
            )
            for kind in PATH_KINDS
        }
        self.unconditional = {
            kind: any(not rule.rule.paths for rule in self.by_kind[kind]) for kind in PATH_KINDS
        }

    def match(self, effect: Effect, found: Found) -> Match | None:
        """The strictest rule that meets an effect; the first of equals."""
        kind = effect.kind
        plain = kind in PATH_KINDS and not effect.recursive and known(effect.target)
        # Most paths meet nothing, which one expression tells.
        if plain and not self.unconditional[kind] and not self.quick[kind].fullmatch(effect.target):
            return None
        best: Match | None = None
        for rule in self.by_kind[kind]:
            met = rule.meets(effect, found)
            if met is not None:
                if met.decision is Decision.BLOCK:
                    return met
                best = best or met
        return best
