"""Captured turns -> training rows, by exact token prefix. Nothing is re-tokenised.

A row is one path of token ids through a session. A turn whose prompt extends a row continues it;
any other turn (an echoed call that was rewritten, a compaction, a sub-agent) opens a new row, in
which earlier sampled tokens are context only. So every sampled token is trained exactly once, on
exactly the prefix that the engine sampled it from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from harness_adapters.records import Turn


@dataclass(slots=True)
class Row:
    """One token path of length T; the four lists are parallel."""

    rollout: int
    """Index of the rollout in the batch that the rows were made from."""
    ids: list[int] = field(default_factory=list[int])
    trained: list[bool] = field(default_factory=list[bool])
    """True where the token was sampled by the model and carries loss."""
    logprobs: list[float] = field(default_factory=list[float])
    """Sampling log-probability where `trained`, else 0."""

    @property
    def first_trained(self) -> int:
        """Index of the first token that carries loss."""
        return self.trained.index(True)


def turns_to_rows(turns: Sequence[Turn], rollout: int = 0) -> list[Row]:
    """Merge the turns of one session into as few rows as exact prefixes allow.

    Any open row may be extended, the longest that matches wins, so interleaved sub-agents merge,
    too. Turns without output are skipped. Raises ValueError on a turn with an empty prompt or
    with log-probabilities of another length than its output.
    """
    rows: list[Row] = []
    for turn in turns:
        if not turn.output_ids:
            continue
        if not turn.prompt_ids:
            raise ValueError(f"turn {turn.index} has an empty prompt")
        if len(turn.logprobs) != len(turn.output_ids):
            raise ValueError(
                f"turn {turn.index} has {len(turn.output_ids)} sampled tokens"
                f" but {len(turn.logprobs)} log-probabilities"
            )
        row = max(
            (r for r in rows if turn.prompt_ids[: len(r.ids)] == r.ids),
            key=lambda r: len(r.ids),
            default=None,
        )
        if row is None:
            row = Row(rollout)
            rows.append(row)
        context = turn.prompt_ids[len(row.ids) :]
        row.ids += context + turn.output_ids
        row.trained += [False] * len(context) + [True] * len(turn.output_ids)
        row.logprobs += [0.0] * len(context) + turn.logprobs
    return rows


def pair_to_row(prompt_ids: list[int], output_ids: list[int], index: int = 0) -> Row:
    """A row for scoring one completion; its sampling log-probabilities are unknown (0)."""
    if not prompt_ids or not output_ids:
        raise ValueError(f"pair {index} needs a prompt and an output")
    return Row(
        index,
        prompt_ids + output_ids,
        [False] * len(prompt_ids) + [True] * len(output_ids),
        [0.0] * (len(prompt_ids) + len(output_ids)),
    )
