"""Closed-book guessability: how often a model answers a question without seeing the data."""

from __future__ import annotations

import asyncio
import re

from harness_adapters.errors import EngineError
from harness_adapters.synthesis.candidate import CheckKind
from harness_adapters.synthesis.gates.trial import Trial, Verdict, drop, passed
from harness_adapters.synthesis.reasons import Reason

GUESSES = 20
MOST = 0.05
_SYSTEM = "You can't see any file. Guess. Answer with the value alone."


async def guessable(trial: Trial) -> Verdict:
    """At most 1 of 20 guesses may be right."""
    one = trial.candidate
    if one.check.kind is not CheckKind.ANSWER:
        return passed()
    if trial.guesser is None:
        return drop(Reason.GUESS_UNMEASURED, "no model to guess with; give one with --writer")
    guesser = trial.guesser
    try:
        answers = await asyncio.gather(
            *(
                guesser.ask(one.instruction, system=_SYSTEM, sample=number, max_tokens=64)
                for number in range(GUESSES)
            )
        )
    except EngineError as error:
        return drop(Reason.GUESS_UNMEASURED, str(error))
    right = sum(holds(answer, one.check.expected) for answer in answers)
    rate = right / GUESSES
    if rate > MOST:
        return drop(Reason.GUESSABLE, f"{right} of {GUESSES} guesses without the data were right")
    return passed(guess_rate=rate, guesses=GUESSES)


def holds(answer: str, expected: str) -> bool:
    """Whether an answer names the expected value anywhere: more than the verifier would accept."""
    plain = answer.replace(",", "").casefold()
    wanted = re.escape(expected.strip().replace(",", "").casefold())
    return re.search(rf"(?<![\w.]){wanted}(?!\w|\.\d)", plain) is not None
