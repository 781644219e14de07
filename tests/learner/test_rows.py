import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_adapters.learner.rows import pair_to_row, turns_to_rows
from harness_adapters.records import Turn

from .builders import session, turn


def test_a_turn_that_extends_a_row_continues_it() -> None:
    rows = turns_to_rows([turn([1, 2], [3], logprobs=[-0.5]), turn([1, 2, 3, 4], [5, 6])], 7)
    assert len(rows) == 1
    assert rows[0].ids == [1, 2, 3, 4, 5, 6]
    assert rows[0].trained == [False, False, True, False, True, True]
    assert rows[0].logprobs == [0, 0, -0.5, 0, -1, -1]
    assert rows[0].rollout == 7
    assert rows[0].first_trained == 2


def test_a_rewritten_history_opens_a_row_in_which_the_past_is_context() -> None:
    rows = turns_to_rows([turn([1, 2], [3, 4]), turn([1, 2, 9, 5], [6])])
    assert [r.ids for r in rows] == [[1, 2, 3, 4], [1, 2, 9, 5, 6]]
    assert rows[1].trained == [False] * 4 + [True]


def test_interleaved_conversations_each_continue_their_own_row() -> None:
    a, b = [1, 2], [8, 9]
    rows = turns_to_rows([turn(a, [3]), turn(b, [7]), turn([*a, 3, 4], [5]), turn([*b, 7], [6])])
    assert [r.ids for r in rows] == [[1, 2, 3, 4, 5], [8, 9, 7, 6]]


def test_the_longest_matching_row_is_extended() -> None:
    rows = turns_to_rows([turn([1], [2]), turn([1, 2, 3], [4]), turn([1, 2, 3, 4], [5])])
    assert [r.ids for r in rows] == [[1, 2, 3, 4, 5]]


def test_an_empty_answer_makes_no_row() -> None:
    assert turns_to_rows([turn([1, 2], [])]) == []


def test_damaged_turns_are_refused() -> None:
    with pytest.raises(ValueError, match="empty prompt"):
        turns_to_rows([turn([], [1])])
    with pytest.raises(ValueError, match="2 sampled tokens but 1"):
        turns_to_rows([turn([1], [1, 2], logprobs=[-1.0])])
    with pytest.raises(ValueError, match="pair 3"):
        pair_to_row([1], [], 3)


@st.composite
def sessions(draw: st.DrawFn) -> list[Turn]:
    """Histories that sometimes continue and sometimes don't, over a tiny alphabet."""
    token = st.integers(0, 2)
    past = [[0]]
    turns = []
    for index in range(draw(st.integers(1, 6))):
        start = draw(st.sampled_from(past))
        prompt = start + draw(st.lists(token, max_size=3))
        output = draw(st.lists(token, max_size=4))
        logprobs = [-float(index * 10 + k) - 1 for k in range(len(output))]
        turns.append(turn(prompt, output, index=index, logprobs=logprobs))
        past.append(prompt + output)
    return turns


@given(sessions())
def test_every_sampled_token_is_trained_once_on_its_own_prefix(turns: list[Turn]) -> None:
    expected = Counter(
        (tuple(t.prompt_ids + t.output_ids[: k + 1]), t.logprobs[k])
        for t in turns
        for k in range(len(t.output_ids))
    )
    found = Counter(
        (tuple(row.ids[: c + 1]), row.logprobs[c])
        for row in turns_to_rows(turns)
        for c, trained in enumerate(row.trained)
        if trained
    )
    assert found == expected


def test_append_only_sessions_merge_into_one_row() -> None:
    rng = random.Random(0)
    assert len(turns_to_rows(session(rng, [1, 2, 3], turns=6))) == 1
    assert len(turns_to_rows(session(rng, [1, 2, 3], turns=6, fork=True))) == 2
