import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from harness_adapters.learner.rows import Row
from harness_adapters.learner.trie import (
    chain,
    common_prefix,
    distinct_tokens,
    micro_batches,
    pack,
    trunk_length,
)


def row(ids: list[int], trained_from: int, rollout: int = 0) -> Row:
    n = len(ids)
    logprobs = [-float(c) if c >= trained_from else 0.0 for c in range(n)]
    return Row(rollout, ids, [c >= trained_from for c in range(n)], logprobs)


@st.composite
def row_lists(draw: st.DrawFn) -> list[Row]:
    prefix = draw(st.lists(st.integers(0, 2), min_size=1, max_size=4))
    rows = []
    for rollout in range(draw(st.integers(1, 8))):
        ids = prefix + draw(st.lists(st.integers(0, 2), min_size=1, max_size=6))
        rows.append(row(ids, draw(st.integers(1, len(ids) - 1)), rollout))
    return rows


def prefixes(rows: list[Row]) -> set[tuple[int, ...]]:
    return {tuple(r.ids[: n + 1]) for r in rows for n in range(len(r.ids))}


@given(row_lists())
def test_nodes_are_the_distinct_prefixes(rows: list[Row]) -> None:
    assert pack(rows).nodes == distinct_tokens(rows) == len(prefixes(rows))


@given(row_lists())
def test_depth_first_order_and_visibility(rows: list[Row]) -> None:
    trunk = trunk_length(rows)
    packed = pack(rows, trunk)
    paths: list[tuple[int, ...]] = []
    for node in range(packed.nodes):
        parent = packed.parent_N[node]
        assert parent < node
        before = paths[parent] if parent >= 0 else tuple(rows[0].ids[:trunk])
        paths.append((*before, int(packed.ids_N[node])))
        assert packed.positions_N[node] == len(before)
    assert len(set(paths)) == packed.nodes
    for query in range(packed.nodes):
        ancestors = {k for k in range(packed.nodes) if k <= query < packed.end_N[k]}
        expected = set()
        node = query
        while node >= 0:
            expected.add(node)
            node = int(packed.parent_N[node])
        assert ancestors == expected


@given(row_lists())
def test_every_trained_token_is_one_term_predicted_from_its_prefix(rows: list[Row]) -> None:
    trunk = trunk_length(rows)
    packed = pack(rows, trunk)
    assert len(packed.target_M) == sum(sum(r.trained) for r in rows)
    seen = set()
    for m in range(len(packed.target_M)):
        source_row, column = rows[packed.row_M[m]], int(packed.column_M[m])
        seen.add((int(packed.row_M[m]), column))
        assert source_row.trained[column]
        assert packed.target_M[m] == source_row.ids[column]
        assert packed.old_logprobs_M[m] == np.float32(source_row.logprobs[column])
        assert packed.rollout_M[m] == source_row.rollout
        node, path = int(packed.source_M[m]), []
        while node >= 0:
            path.append(int(packed.ids_N[node]))
            node = int(packed.parent_N[node])
        assert source_row.ids[:trunk] + path[::-1] == source_row.ids[:column]
    assert len(seen) == len(packed.target_M)


@given(row_lists())
def test_the_trunk_is_shared_and_predicts_nothing_trained(rows: list[Row]) -> None:
    trunk = trunk_length(rows)
    assert all(r.ids[:trunk] == rows[0].ids[:trunk] for r in rows)
    assert all(trunk < r.first_trained for r in rows)
    longer = trunk + 1
    can_grow = all(r.ids[:longer] == rows[0].ids[:longer] for r in rows)
    assert not (can_grow and all(longer < r.first_trained for r in rows))


@given(row_lists(), st.integers(1, 12))
def test_micro_batches_hold_every_row_once_within_the_budget(rows: list[Row], budget: int) -> None:
    trunk = trunk_length(rows)
    batches = list(micro_batches(rows, trunk, budget))
    assert sorted(i for batch in batches for i in batch) == list(range(len(rows)))
    for batch in batches:
        assert pack([rows[i] for i in batch], trunk).nodes <= budget or len(batch) == 1


def test_a_known_trie() -> None:
    rows = [row([5, 1, 2, 3], 3), row([5, 1, 4], 2), row([5, 1, 2, 6], 3), row([5, 1, 2, 3], 3)]
    packed = pack(rows, trunk=1)
    assert packed.ids_N.tolist() == [1, 2, 3, 6, 4]
    assert packed.positions_N.tolist() == [1, 2, 3, 3, 2]
    assert packed.parent_N.tolist() == [-1, 0, 1, 1, 0]
    assert packed.end_N.tolist() == [5, 4, 3, 4, 5]


def test_a_chain_sees_all_before_it() -> None:
    packed = chain([4, 5, 6])
    assert packed.end_N.tolist() == [3, 3, 3]
    assert packed.parent_N.tolist() == [-1, 0, 1]


@given(st.lists(st.integers(0, 1)), st.lists(st.integers(0, 1)))
def test_common_prefix(a: list[int], b: list[int]) -> None:
    n = common_prefix(a, b)
    assert a[:n] == b[:n]
    assert n == min(len(a), len(b)) or a[n] != b[n]
    assert common_prefix(a, b, n // 2) == n


def test_no_rows_no_trunk() -> None:
    assert trunk_length([]) == 0
    assert distinct_tokens([]) == 0
