"""Sessions inside the page: a light index of all of them and one lazily read block for each.

All test sessions are embedded, of the others a sample that is spread evenly over the run, so that
the page stays light however long the run was.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from harness_adapters.records import Conduct, Decision, Phase, Rollout
from harness_adapters.report.session import SessionView, session_view
from harness_adapters.report.text import shortened, visible
from harness_adapters.store import Store

LIMITS = {
    Phase.TEST: 2_000,
    Phase.TRAIN: 240,
    Phase.VALIDATION: 120,
    Phase.DEMONSTRATION: 24,
    Phase.SHOW: 40,
}
"""Sessions of each phase that a page holds at most."""
TEXT = 3_000
"""Characters of one text (a result, an answer) that a page holds at most."""
_CHUNK = 50


@dataclass(frozen=True, slots=True)
class Embedded:
    """What goes into the page."""

    index: str
    """JSON: the list of sessions and the texts that many of them share."""
    blocks: list[str]
    """JSON of each session, in the index's order."""
    places: dict[str, int]
    """Rollout id -> place in the index."""
    shown: dict[Phase, int]
    total: dict[Phase, int]


def embed(store: Store, rollouts: Sequence[Rollout]) -> Embedded:
    """Choose sessions of a run and write them as JSON that is safe inside a `script` element."""
    chosen: list[Rollout] = []
    total = {p: sum(r.phase is p for r in rollouts) for p in Phase}
    order = (Phase.TEST, Phase.SHOW, Phase.VALIDATION, Phase.TRAIN, Phase.DEMONSTRATION)
    for phase in order:
        chosen += _spread([r for r in rollouts if r.phase is phase], LIMITS[phase])
    shown = {p: sum(r.phase is p for r in chosen) for p in Phase}
    texts: dict[str, int] = {}
    index: list[dict[str, Any]] = []
    blocks: list[str] = []
    places: dict[str, int] = {}
    for rollout in _with_turns(store, [r.id for r in chosen]):
        view = session_view(rollout)
        places[rollout.id] = len(index)
        index.append(_entry(rollout))
        blocks.append(script_json(_block(rollout, view, texts)))
    shared = {"sessions": index, "texts": list(texts)}
    return Embedded(script_json(shared), blocks, places, shown, total)


def script_json(value: Any) -> str:
    """JSON that can't end or open an element: `<`, `>` and `&` are written as escapes."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _spread(rollouts: list[Rollout], limit: int) -> list[Rollout]:
    """At most `limit` of them, evenly over time."""
    if len(rollouts) <= limit:
        return rollouts
    return [rollouts[i * len(rollouts) // limit] for i in range(limit)]


def _with_turns(store: Store, ids: list[str]) -> Iterator[Rollout]:
    """Rollouts with their turns in the given order, few at a time: token ids are large."""
    for start in range(0, len(ids), _CHUNK):
        chunk = ids[start : start + _CHUNK]
        found = {r.id: r for r in store.rollouts(ids=chunk)}
        yield from (found[i] for i in chunk if i in found)


def _entry(rollout: Rollout) -> dict[str, Any]:
    """One line of the session list."""
    verdicts = [c.verdict.decision for t in rollout.turns for c in t.calls]
    outcome = "solved" if rollout.correct else "failed"
    return {
        "phase": rollout.phase,
        "arm": visible(rollout.arm),
        "task": visible(rollout.task),
        "family": visible(rollout.family),
        "level": rollout.level,
        "attempt": rollout.attempt,
        "step": rollout.step,
        "outcome": "excluded" if rollout.reward is None else outcome,
        "reward": rollout.reward,
        "calls": rollout.calls,
        "guard": "cheat"
        if rollout.conduct is Conduct.CHEAT
        else "blocked"
        if Decision.BLOCK in verdicts
        else "flagged"
        if Decision.FLAG in verdicts
        else "",
    }


def _block(rollout: Rollout, view: SessionView, texts: dict[str, int]) -> dict[str, Any]:
    """One session as the page replays it. System prompts are shared: the index holds them once."""
    return {
        "id": visible(rollout.id),
        "adapter": visible(rollout.adapter),
        "end": rollout.end,
        "score": rollout.score,
        "conduct": "" if rollout.conduct is Conduct.CLEAN else rollout.conduct,
        "temperature": rollout.temperature,
        "seconds": round(rollout.seconds, 1),
        "error": view.error,
        "system": texts.setdefault(shortened(view.system, 4 * TEXT), len(texts)),
        "instruction": shortened(view.instruction, TEXT),
        "verifier": shortened(view.verifier, TEXT),
        "turns": [
            {
                "read": [[s.role, shortened(s.text, TEXT)] for s in turn.read],
                "text": shortened(turn.text, TEXT),
                "finish": turn.finish,
                "tokens": [turn.prompt_tokens, turn.output_tokens],
                "seconds": round(turn.seconds, 2),
                "calls": [
                    {
                        "name": call.name,
                        "arguments": shortened(call.arguments, TEXT),
                        "decision": call.decision,
                        "rule": f"{call.rule} ({call.goal})" if call.goal else call.rule,
                        "reason": call.reason,
                        "malformed": call.malformed,
                        "result": None if call.result is None else shortened(call.result, TEXT),
                    }
                    for call in turn.calls
                ],
            }
            for turn in view.turns
        ],
    }
