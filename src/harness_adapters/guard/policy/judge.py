"""The policy that judges calls by their effects, with what it remembers of each session."""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from harness_adapters.guard import ProposedCall
from harness_adapters.guard.effects import DirectoryTree, Kind, Scope, Session, Tree, World
from harness_adapters.guard.effects.holes import EITHER, OR, RESERVED
from harness_adapters.guard.effects.tools import tool_effects
from harness_adapters.guard.effects.world import OutOfBudget
from harness_adapters.guard.policy.match import CompiledPolicy, Found, Match
from harness_adapters.guard.policy.repair import holds_reserved, read_arguments, repaired
from harness_adapters.guard.policy.rules import PolicyFile, TaskRules
from harness_adapters.records import Conduct, Decision, Verdict

ALLOWED = Verdict(Decision.ALLOW, "effects")
MALFORMED = "malformed"
MAX_SESSIONS = 4096
"""Remembered at a time, the longest unused forgotten first; far more than are played at once."""

_KEEPS: Mapping[str, tuple[bool, bool]] = {
    "pi": (False, False),
    "opencode": (False, False),
    "mini-swe-agent": (False, False),
    "claude-code": (True, False),
    "hermes": (True, True),
}
"""Whether the directory, and the variables, last from one shell call to the next."""


@dataclass(slots=True)
class _Remembered:
    session: Session = field(default_factory=Session)
    blocks: Counter[str] = field(default_factory=Counter)
    """Blocked calls by goal."""


class EffectPolicy:
    """Implements `guard.Policy` by rules over effects.

    `task` holds for all calls; without it each call's own `rules`, else its working directory is
    all that is known. `tree` gives the files that the task came with, where a call doesn't.

    With `enforced=False` the caller lets blocked calls pass: what they leave behind is remembered,
    and one that goes for the reward has had its chance, so the session is a cheat at once.
    """

    bounded = True
    """See `proxy.judging`: an analysis has a budget, so a verdict always comes."""

    def __init__(
        self,
        policy: PolicyFile,
        *,
        task: TaskRules | None = None,
        tree: Callable[[ProposedCall], Tree | None] | None = None,
        enforced: bool = True,
    ) -> None:
        self.policy = policy
        self._rules = {rule.name: rule for rule in policy.rule}
        self._task = task
        self._tree = tree
        self._enforced = enforced
        # Sessions may be judged by several threads, and a parser serves one at a time.
        self._lock = threading.Lock()
        self._sessions: OrderedDict[str, _Remembered] = OrderedDict()
        self._compiled = lru_cache(maxsize=256)(lambda task: CompiledPolicy(policy, task))

    def judge(self, call: ProposedCall) -> Verdict:
        """See Policy. Never raises for what a call holds: what can't be judged is blocked."""
        with self._lock:
            return self._judge(call)

    def _judge(self, call: ProposedCall) -> Verdict:
        remembered = self._remembered(call.session)
        try:
            verdict = self._judged(call, remembered)
        except (OutOfBudget, RecursionError, MemoryError):
            verdict = Verdict(Decision.BLOCK, "unresolved", "the call is too large to be judged")
        except Exception as error:  # fail closed: what the analysis can't take is never allowed
            verdict = Verdict(
                Decision.BLOCK, "guard-error", f"{type(error).__name__}: {error}"[:200]
            )
        return self._weighed(verdict, remembered)

    def _weighed(self, verdict: Verdict, remembered: _Remembered) -> Verdict:
        """The verdict with its goal, and with what it makes of the session."""
        rule, limit = self._rules.get(verdict.rule), self.policy.breaker.blocks
        if verdict.decision is Decision.BLOCK:
            if rule is None or not rule.purpose:
                return verdict
            goal = rule.purpose
            remembered.blocks[goal] += 1
            done = not self._enforced or remembered.blocks[goal] >= limit
            if rule.cheating and done:
                return replace(verdict, goal=goal, conduct=Conduct.CHEAT)
            over = remembered.blocks[goal] >= limit
            return replace(verdict, goal=goal, conduct=Conduct.FLAGGED if over else Conduct.CLEAN)
        if verdict.decision is Decision.FLAG:
            return replace(verdict, goal=rule.purpose if rule else "", conduct=Conduct.FLAGGED)
        worst = max(remembered.blocks.values(), default=0)
        if worst < limit:
            return verdict
        goal = max(remembered.blocks, key=remembered.blocks.__getitem__)
        reason = f"after {worst} blocked calls of the session with one goal: {goal}"
        return Verdict(Decision.FLAG, "breaker", reason, goal, Conduct.FLAGGED)

    def forget(self, session: str) -> None:
        """Drop what is remembered of a session that has ended."""
        self._sessions.pop(session, None)

    def _remembered(self, name: str) -> _Remembered:
        found = self._sessions.setdefault(name, _Remembered())
        self._sessions.move_to_end(name)
        if len(self._sessions) > MAX_SESSIONS:
            self._sessions.popitem(last=False)
        return found

    def _rules_of(self, call: ProposedCall) -> TaskRules:
        return self._task or call.rules or TaskRules(workdir=call.workdir)

    def _tree_of(self, call: ProposedCall) -> Tree | None:
        if call.files is not None:
            return DirectoryTree(call.files, self._rules_of(call).workdir)
        return self._tree(call) if self._tree is not None else None

    def _judged(self, call: ProposedCall, remembered: _Remembered) -> Verdict:
        if len(call.arguments) > self.policy.max_bytes:
            return Verdict(
                Decision.BLOCK, "oversize", f"arguments beyond {self.policy.max_bytes} characters"
            )
        task = self._rules_of(call)
        arguments = read_arguments(call.arguments)
        if arguments is None:
            return self._malformed(call, task, remembered)
        if holds_reserved(arguments):
            return Verdict(Decision.BLOCK, MALFORMED, "arguments hold noncharacters of Unicode")
        return self._verdict(call, task, remembered, arguments, keep=True)

    def _malformed(self, call: ProposedCall, task: TaskRules, remembered: _Remembered) -> Verdict:
        """Broken arguments are blocked; what an agent would mend them to says by which rule."""
        for arguments in repaired(call.arguments):
            if holds_reserved(arguments):
                continue
            verdict = self._verdict(call, task, remembered, arguments, keep=False)
            if verdict.rule in self._rules and self._rules[verdict.rule].purpose:
                return verdict
        return Verdict(Decision.BLOCK, MALFORMED, "arguments are not one JSON object")

    def _verdict(
        self,
        call: ProposedCall,
        task: TaskRules,
        remembered: _Remembered,
        arguments: dict[str, Any],
        *,
        keep: bool,
    ) -> Verdict:
        tree = self._tree_of(call)
        session = remembered.session
        keeps_cwd, keeps_env = _KEEPS.get(call.harness, (None, None))
        scope = Scope(task.workdir, task.home, keeps_cwd, keeps_env)
        directories = [session.cwd or task.workdir] if keeps_cwd else [task.workdir]
        if keeps_cwd is None and session.cwd not in (None, task.workdir):
            directories.append(session.cwd or task.workdir)
        worst, last = ALLOWED, None
        for directory in directories:
            memory = session if keeps_env is not False else replace(session, env={})
            world = World(scope, memory, tree, directory)
            world.env = dict(memory.env)
            tool_effects(world, call.name, arguments)
            verdict = self._of_effects(world, task, session)
            if verdict.decision is Decision.BLOCK:
                worst = verdict
                if self._enforced:
                    return verdict
            worst = verdict if worst is ALLOWED else worst
            last = world
        if keep and last is not None:
            last.session = session
            last.commit()
        return worst

    def _of_effects(self, world: World, task: TaskRules, session: Session) -> Verdict:
        compiled = self._compiled(task)
        found = Found(world.existed, session.files.__contains__)
        flagged: Match | None = None
        for effect in world.effects:
            match = compiled.match(effect, found)
            if match is None:
                continue
            if match.decision is Decision.BLOCK:
                return _said(match)
            if match.decision is Decision.FLAG:
                flagged = flagged or match
        return ALLOWED if flagged is None else _said(flagged)


def _said(match: Match) -> Verdict:
    effect = match.effect
    target = RESERVED.sub("*", effect.target.replace(EITHER, "").replace(OR, "|"))
    when = " when it is run" if effect.deferred else ""
    what = f"{effect.kind} {target}" if effect.kind is not Kind.UNRESOLVED else f"unclear {target}"
    return Verdict(match.decision, match.rule.name, f"{match.rule.reason} ({what[:120]}{when})")
