import io
import random
from dataclasses import replace

from rich.console import Console

from harness_adapters.records import Decision, Phase, Rollout, SessionEnd, ToolCall, Verdict
from harness_adapters.report.terminal import show_session

from .synthetic import make_rollout, turn


def printed(rollout: Rollout, *, width: int = 100) -> str:
    out = io.StringIO()
    show_session(rollout, Console(file=out, width=width, force_terminal=False))
    return out.getvalue()


def session(**values: object) -> Rollout:
    rollout = make_rollout(
        random.Random(0), phase=Phase.TEST, arm="pi", family="csv_sum", level=2, instance=7,
        chance=1.0, started=0.0,
    )  # fmt: skip
    return replace(rollout, **values)  # type: ignore[arg-type]


def test_a_session_is_told_turn_by_turn() -> None:
    text = printed(session())
    for part in ("csv_sum-2-007", "add up the column", "turn 1", "bash", "allow by default",
                 "awk -F", "result", "The sum is in answer.txt.", "verifier", "expected 4711",
                 "solved, reward 1.0", "ended finished"):  # fmt: skip
        assert part in text, part


def test_hostile_text_is_shown_not_obeyed() -> None:
    evil = "\x1b]0;owned\x07\x1b[2J[bold red]loud[/] [link=https://example.com]x[/link]\u202e"
    call = ToolCall("a", evil, evil, Verdict(Decision.BLOCK, evil, evil), malformed=True)
    new: list[dict[str, object]] = [{"role": "user", "content": evil}]
    results: list[dict[str, object]] = [{"role": "tool", "tool_call_id": "a", "content": evil}]
    text = printed(
        session(
            task=evil, error=evil, verifier_output=evil,
            turns=[turn(0, evil, [call], new, 0), turn(1, evil, [], results, 1)],
        ),
        width=400,
    )  # fmt: skip
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "\u202e" not in text
    assert text.count("\\x1b[2J[bold red]loud[/] [link=https://example.com]x[/link]") >= 8
    assert "block" in text
    assert "malformed" in text


def test_a_session_without_any_call_says_so() -> None:
    text = printed(
        session(turns=[], reward=None, score=None, correct=None, calls=0,
                end=SessionEnd.NO_CALL, error="pi exited with a usage message")
    )  # fmt: skip
    assert "The model was never called." in text
    assert "no reward, 0 tool calls, ended no_call" in text
    assert "pi exited with a usage message" in text
