"""Cheap gates on what a candidate is made of: origin, size, programs."""

from __future__ import annotations

from harness_adapters.sandbox import BwrapSandbox
from harness_adapters.synthesis.gates.trial import Trial, Verdict, drop, passed
from harness_adapters.synthesis.reasons import Reason

MAX_FILES = 400
MAX_BYTES = 4 << 20
MAX_FILE_BYTES = 1 << 20
INSTRUCTION = (20, 12_000)
"""Characters that an instruction may have."""


async def licence(trial: Trial) -> Verdict:
    """A source without a licence is never exported."""
    provenance = trial.candidate.provenance
    if not provenance.licence:
        return drop(
            Reason.UNLICENSED, f"{provenance.source}: no licence given; name it with --licence"
        )
    return passed(licence=provenance.licence)


async def decontaminated(trial: Trial) -> Verdict:
    """Neither names nor texts of evaluations."""
    one = trial.candidate
    found = trial.decontamination.name_in(
        one.provenance.source, one.provenance.session, one.instruction
    ) or trial.decontamination.text_in(one.instruction)
    return drop(Reason.CONTAMINATED, f"found {found!r}") if found else passed()


async def size(trial: Trial) -> Verdict:
    """Small enough to be set up for every session."""
    one = trial.candidate
    low, high = INSTRUCTION
    if not low <= len(one.instruction.strip()) <= high:
        return drop(
            Reason.TOO_LARGE,
            f"the instruction has {len(one.instruction)} characters, not {low} to {high}",
        )
    contents = [
        *one.before.values(),
        *one.hidden.values(),
        *(content for content in one.after.values() if content is not None),
    ]
    total = sum(map(len, contents))
    if (
        len(contents) > MAX_FILES
        or total > MAX_BYTES
        or max(map(len, contents), default=0) > (MAX_FILE_BYTES)
    ):
        return drop(Reason.TOO_LARGE, f"{len(contents)} files, {total} bytes")
    return passed(files=len(one.before), bytes=total)


async def runtime(trial: Trial) -> Verdict:
    """Every program that the task names is in a sandbox's root."""
    async with BwrapSandbox([]) as box:
        for program in trial.candidate.needs:
            argv = ["/bin/bash", "-c", 'command -v -- "$0"', program]
            result = await box.exec(argv, env={}, timeout=20)
            if result.returncode != 0:
                return drop(Reason.RUNTIME_MISSING, f"{program} is not in the sandbox")
    return passed()
