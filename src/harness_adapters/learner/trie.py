"""The trie over a batch's rows, packed depth first: each distinct token once.

Rows sorted by their ids *are* the trie: a row shares with its predecessor the nodes of their
common prefix and adds the rest. Nodes are numbered in depth-first pre-order, so the subtree of
node k is the range [k, end[k]) and node q sees node k exactly if k <= q < end[k].

Shapes: N nodes, M loss terms.
"""

# ruff: noqa: N815 - capital suffixes are array shapes

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from harness_adapters.learner.rows import Row

Ints: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Packed:
    """A trie below a trunk of `trunk` tokens. Nodes don't include the trunk."""

    trunk: int
    ids_N: Ints
    positions_N: Ints
    """Absolute position of each node: trunk + depth."""
    end_N: Ints
    """One past the last node of each node's subtree."""
    parent_N: Ints
    """The node before; -1 for the first token after the trunk."""
    source_M: Ints
    """Node whose hidden state predicts the term's token."""
    target_M: Ints
    """Token id of the term."""
    old_logprobs_M: npt.NDArray[np.float32]
    rollout_M: Ints
    row_M: Ints
    """Index into the rows that were packed, in the order they were given."""
    column_M: Ints
    """Index of the term's token in that row."""

    @property
    def nodes(self) -> int:
        """Distinct tokens."""
        return len(self.ids_N)


def common_prefix(a: Sequence[int], b: Sequence[int], start: int = 0) -> int:
    """Length of the longest common prefix, given that the first `start` items agree."""
    low, high = start, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def trunk_length(rows: Sequence[Row]) -> int:
    """Tokens that every row starts with and no row trains or predicts a trained token from.

    The state of the token before a trained one is needed, so the trunk ends one token before.
    """
    if not rows:
        return 0
    first, last = min(r.ids for r in rows), max(r.ids for r in rows)
    return min(common_prefix(first, last), *(r.first_trained - 1 for r in rows))


def distinct_tokens(rows: Sequence[Row]) -> int:
    """Nodes of the trie over all rows."""
    ordered = sorted(r.ids for r in rows)
    total, previous = 0, list[int]()
    for ids in ordered:
        total += len(ids) - common_prefix(previous, ids)
        previous = ids
    return total


def pack(rows: Sequence[Row], trunk: int = 0) -> Packed:
    """Pack rows that agree on their first `trunk` tokens and train none of them."""
    order = sorted(range(len(rows)), key=lambda i: rows[i].ids)
    ids: list[Ints] = []
    positions: list[Ints] = []
    parents: list[Ints] = []
    terms: dict[str, list[Any]] = {"source": [], "target": [], "old": [], "row": [], "column": []}
    end = np.zeros(sum(len(r.ids) - trunk for r in rows), np.int64)
    path: Ints = np.zeros(0, np.int64)
    count, previous = 0, list[int]()
    for index in order:
        row = rows[index]
        row_ids = np.asarray(row.ids, np.int64)
        shared = max(common_prefix(previous, row.ids), trunk) - trunk
        fresh = len(row.ids) - trunk - shared
        end[path[shared:]] = count
        new = np.arange(count, count + fresh, dtype=np.int64)
        if fresh:
            before = path[shared - 1] if shared else -1
            parents.append(np.concatenate([[before], new[:-1]]))
            ids.append(row_ids[trunk + shared :])
            positions.append(np.arange(trunk + shared, len(row.ids), dtype=np.int64))
        path = np.concatenate([path[:shared], new])
        count += fresh
        columns = np.flatnonzero(np.asarray(row.trained))
        terms["source"].append(path[columns - 1 - trunk])
        terms["target"].append(row_ids[columns])
        terms["old"].append(np.asarray(row.logprobs, np.float32)[columns])
        terms["row"].append(np.full(len(columns), index, np.int64))
        terms["column"].append(columns)
        previous = row.ids
    end[path] = count
    joined = {name: np.concatenate(parts) for name, parts in terms.items()}
    return Packed(
        trunk=trunk,
        ids_N=np.concatenate(ids),
        positions_N=np.concatenate(positions),
        end_N=end[:count],
        parent_N=np.concatenate(parents),
        source_M=joined["source"],
        target_M=joined["target"],
        old_logprobs_M=joined["old"],
        rollout_M=np.asarray([r.rollout for r in rows], np.int64)[joined["row"]],
        row_M=joined["row"],
        column_M=joined["column"],
    )


def chain(ids: Sequence[int], trunk: int = 0) -> Packed:
    """A single path without loss terms, below `trunk` tokens: a trunk itself, or a piece of it."""
    n = len(ids)
    none = np.zeros(0, np.int64)
    return Packed(
        trunk=trunk,
        ids_N=np.asarray(ids, np.int64),
        positions_N=np.arange(trunk, trunk + n, dtype=np.int64),
        end_N=np.full(n, n, np.int64),
        parent_N=np.arange(-1, n - 1, dtype=np.int64),
        source_M=none,
        target_M=none,
        old_logprobs_M=np.zeros(0, np.float32),
        rollout_M=none,
        row_M=none,
        column_M=none,
    )


def micro_batches(rows: Sequence[Row], trunk: int, budget: int) -> Iterator[list[int]]:
    """Split rows into runs of neighbours whose tries hold at most `budget` nodes each.

    Yields indices into `rows`. A row that alone is longer than the budget gets a run of its own.
    """
    batch: list[int] = []
    used = 0
    for index in sorted(range(len(rows)), key=lambda i: rows[i].ids):
        ids = rows[index].ids
        shared = common_prefix(rows[batch[-1]].ids, ids) if batch else trunk
        fresh = len(ids) - max(shared, trunk)
        if batch and used + fresh > budget:
            yield batch
            batch, used = [], 0
            fresh = len(ids) - trunk
        batch.append(index)
        used += fresh
    if batch:
        yield batch
