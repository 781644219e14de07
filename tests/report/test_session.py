import random
from dataclasses import replace

from harness_adapters.records import Decision, Phase, ToolCall, Verdict
from harness_adapters.report.session import session_view

from .synthetic import make_rollout, turn

ALLOW = Verdict(Decision.ALLOW, "default")


def rollout_of(*turns: object) -> object:
    rollout = make_rollout(
        random.Random(0), phase=Phase.TEST, arm="pi", family="f", level=1, instance=1,
        chance=1.0, started=0.0,
    )  # fmt: skip
    return replace(rollout, turns=list(turns))  # type: ignore[arg-type]


def call(id_: str, arguments: str = "{}") -> ToolCall:
    return ToolCall(id_, "bash", arguments, ALLOW)


def opening() -> list[dict[str, object]]:
    return [
        {"role": "system", "content": "Be good."},
        {"role": "user", "content": [{"type": "text", "text": "Sum it."}, {"type": "image_url"}]},
    ]


def test_results_stand_beside_their_calls_by_id() -> None:
    answers: list[dict[str, object]] = [
        {"role": "assistant", "content": "echo"},
        {"role": "tool", "tool_call_id": "b", "content": "two"},
        {"role": "tool", "tool_call_id": "a", "content": "one"},
        {"role": "user", "content": "and hurry"},
    ]
    view = session_view(
        rollout_of(
            turn(0, "t", [call("a"), call("b")], opening(), 0),
            turn(1, "done", [call("c")], answers, 1),
        )  # type: ignore[arg-type]
    )
    assert view.system == "Be good."
    assert view.instruction == "Sum it.\n[image_url]"
    assert [c.result for c in view.turns[0].calls] == ["one", "two"]
    assert [(s.role, s.text) for s in view.turns[1].read] == [("user", "and hurry")]
    assert view.turns[1].calls[0].result is None


def test_renamed_ids_fall_back_to_order() -> None:
    answers: list[dict[str, object]] = [
        {"role": "tool", "tool_call_id": "x", "content": "one"},
        {"role": "tool", "tool_call_id": "y", "content": None},
        {"role": "tool", "content": "three"},
    ]
    view = session_view(
        rollout_of(
            turn(0, "t", [call("a"), call("b")], opening(), 0), turn(1, "done", [], answers, 1)
        )  # type: ignore[arg-type]
    )
    assert [c.result for c in view.turns[0].calls] == ["one", ""]
    assert [(s.role, s.text) for s in view.turns[1].read] == [("tool", "three")]


def test_arguments_are_indented_where_they_are_json_and_shown_where_not() -> None:
    view = session_view(
        rollout_of(turn(0, "t", [call("a", '{"x":"\u202e"}'), call("b", "{broken\x1b")], [], 0))  # type: ignore[arg-type]
    )
    assert [c.arguments for c in view.turns[0].calls] == ['{\n  "x": "\\u202e"\n}', "{broken\\x1b"]
