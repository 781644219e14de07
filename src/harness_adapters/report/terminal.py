"""One session on the terminal, turn by turn. Session text is shown, never obeyed."""

from __future__ import annotations

from rich.console import Console
from rich.padding import Padding
from rich.rule import Rule
from rich.text import Text

from harness_adapters.records import Conduct, Decision, Rollout
from harness_adapters.report.session import CallView, TurnView, session_view
from harness_adapters.report.text import shortened, visible

_LIMIT = 4_000
"""Characters of one text block that are printed."""


def show_session(rollout: Rollout, console: Console) -> None:
    """Print what the agent was told, every turn with calls, verdicts and results, and the score.

    Control characters, escape sequences and markup inside session text come out as plain text.
    """
    view = session_view(rollout)
    who = rollout.arm if rollout.version == 0 else f"{rollout.arm} ({rollout.adapter})"
    console.print(Rule(Text(visible(rollout.task), style="bold"), align="left", style="dim"))
    console.print(
        Text(
            visible(
                f"{rollout.harness} {rollout.profile} · {who} · {rollout.family} level "
                f"{rollout.level} · attempt {rollout.attempt} · temperature {rollout.temperature:g}"
            ),
            style="dim",
        )
    )
    if view.instruction:
        _block(console, "task", view.instruction, style="bold")
    for turn in view.turns:
        _turn(console, turn)
    if not view.turns:
        console.print(Text("\nThe model was never called.", style="italic"))
    console.print()
    if view.verifier.strip():
        _block(console, "verifier", view.verifier, style="dim")
    _outcome(console, rollout, view.error)


def _turn(console: Console, turn: TurnView) -> None:
    console.print()
    heading = Text(f"turn {turn.index + 1}", style="bold cyan")
    heading.append(
        f"  {turn.prompt_tokens:,} tokens read, {turn.output_tokens:,} written, "
        f"{turn.seconds:.1f} s, {turn.finish}",
        style="dim not bold",
    )
    console.print(heading)
    for said in turn.read:
        _block(console, said.role, said.text, style="dim")
    if turn.text.strip():
        console.print(_indented(turn.text, ""))
    for call in turn.calls:
        _call(console, call)


def _call(console: Console, call: CallView) -> None:
    allowed = call.decision is Decision.ALLOW
    line = Text("  → ", style="cyan")
    line.append(call.name, style="bold")
    line.append(f"  {call.decision}", style="green" if allowed else "bold red")
    if call.rule:
        line.append(f" by {call.rule}", style="dim")
    if call.goal:
        line.append(f" ({call.goal})", style="dim")
    if call.reason:
        line.append(f": {call.reason}", style="dim" if allowed else "red")
    if call.malformed:
        line.append("  malformed", style="bold red")
    console.print(line)
    console.print(_indented(call.arguments, "", left=4))
    if call.result is None:
        console.print(_indented("(the session ended before a result)", "dim italic", left=4))
    else:
        _block(console, "result", call.result or "(empty)", style="", left=4)


def _outcome(console: Console, rollout: Rollout, error: str) -> None:
    if rollout.reward is None:
        line = Text("no reward", style="bold yellow")
    else:
        solved = bool(rollout.correct)
        line = Text("solved" if solved else "not solved", style="bold green" if solved else "bold")
        line.append(f", reward {rollout.reward:.3f}", style="not bold")
        if rollout.score is not None:
            line.append(f" (score {rollout.score:g})", style="not bold")
    calls = "1 tool call" if rollout.calls == 1 else f"{rollout.calls} tool calls"
    line.append(f", {calls}, ended {rollout.end}, {rollout.seconds:.1f} s", style="not bold")
    if rollout.conduct is not Conduct.CLEAN:
        line.append(f", {rollout.conduct}", style="bold red")
    console.print(line)
    if error:
        console.print(Text(error, style="yellow"))


def _block(console: Console, label: str, text: str, *, style: str, left: int = 0) -> None:
    console.print(Padding(Text(label, style="dim italic"), (0, 0, 0, left)))
    console.print(_indented(text, style, left=left))


def _indented(text: str, style: str, *, left: int = 2) -> Padding:
    return Padding(Text(shortened(text.rstrip("\n"), _LIMIT), style=style), (0, 0, 0, left))
