"""Gates on the hidden check's strength: faults in the changed lines, and parts left out."""

from __future__ import annotations

import ast
import difflib
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from harness_adapters.synthesis.candidate import Candidate, CheckKind
from harness_adapters.synthesis.gates.mutants import mutants
from harness_adapters.synthesis.gates.trial import Trial, Verdict, drop, passed
from harness_adapters.synthesis.reasons import Reason

NEEDED = 0.80
MOST_MUTANTS = 30
_PROSE = {".md", ".rst", ".adoc"}
_PROSE_NAMES = {"LICENSE", "NOTICE", ".gitignore", ".editorconfig"}


async def mutation(trial: Trial) -> Verdict:
    """At least four of five faults in the changed lines are noticed."""
    one = trial.candidate
    if one.check.kind is CheckKind.ANSWER:
        return passed()
    solved = one.solved()
    other = [path for path in one.after if not path.endswith(".py") and not is_prose(path)]
    if other:
        return drop(Reason.MUTATION_UNMEASURED, f"{other[0]}: only Python can be measured")
    faults = [
        (path, mutant)
        for path in one.after
        if path.endswith(".py") and path in solved
        for mutant in mutants(
            solved[path].decode(), changed_lines(one.before.get(path, b""), solved[path])
        )
    ]
    if not faults:
        return drop(Reason.MUTATION_UNMEASURED, "no fault can be put into the changed lines")
    faults.sort(key=lambda each: hashlib.sha256(each[1].source.encode()).digest())
    chosen = faults[:MOST_MUTANTS]
    survived: list[str] = []
    for path, mutant in chosen:
        found = await trial.score(solved | {path: mutant.source.encode()})
        if found.score is not None and found.score >= 1:
            survived.append(f"{path}:{mutant.line}: {mutant.what}")
        if len(survived) > (1 - NEEDED) * len(chosen) + 1e-9:
            return drop(
                Reason.WEAK_TESTS,
                f"{len(survived)} of {len(chosen)} faults unnoticed at the least: "
                + "; ".join(survived),
            )
    score = 1 - len(survived) / len(chosen)
    return passed(mutation_score=round(score, 3), mutants=len(chosen))


def changed_lines(before: bytes, after: bytes) -> set[int]:
    """Numbers, from 1, of the lines of `after` that are new or changed."""
    old, new = (text.decode(errors="replace").splitlines() for text in (before, after))
    return {
        line + 1
        for tag, _, _, start, end in difflib.SequenceMatcher(None, old, new, False).get_opcodes()
        if tag in ("replace", "insert")
        for line in range(start, end)
    }


async def every_hunk(trial: Trial) -> Verdict:
    """Each part of the oracle, left out alone, lowers the reward."""
    one = trial.candidate
    if one.check.kind is CheckKind.ANSWER:
        return passed()
    solved = one.solved()
    found = list(hunks(one))
    if len(found) == 1:  # leaving it out is doing nothing, which scored 0 before
        return passed(hunks=1)
    for hunk in found:
        files = dict(solved)
        if hunk.without is None:
            files.pop(hunk.path, None)
        else:
            files[hunk.path] = hunk.without
        scored = await trial.score(files)
        if scored.score is not None and scored.score >= 1:
            return drop(Reason.HUNK_UNTESTED, f"{hunk.path}:{hunk.line} can be left out")
    return passed(hunks=len(found))


@dataclass(frozen=True, slots=True)
class Hunk:
    """One part of the oracle."""

    path: str
    line: int
    without: bytes | None
    """The file's content after the oracle without this part; None where it isn't there."""


def hunks(one: Candidate) -> Iterator[Hunk]:
    """Stretches of changed lines; a new or a deleted file is one."""
    for path, after in one.after.items():
        before = one.before.get(path)
        if before is None or after is None:
            yield Hunk(path, 1, before)
            continue
        old, new = (text.splitlines(keepends=True) for text in (before, after))
        for tag, i, j, k, m in difflib.SequenceMatcher(None, old, new, False).get_opcodes():
            if tag != "equal":
                yield Hunk(path, k + 1, b"".join([*new[:k], *old[i:j], *new[m:]]))


def is_prose(path: str) -> bool:
    """Whether a file is for people alone."""
    pure = PurePosixPath(path)
    return pure.suffix.lower() in _PROSE or pure.name in _PROSE_NAMES


def tidy(one: Candidate) -> Candidate:
    """The candidate without those parts of the oracle that can't change what a program does.

    Prose files, and in Python comments, blank lines and documentation. What is left must all be
    noticed by the check.
    """
    if one.check.kind is CheckKind.ANSWER:
        return one
    after: dict[str, bytes | None] = {}
    for path, content in one.after.items():
        if is_prose(path) or content == one.before.get(path):
            continue
        before = one.before.get(path)
        if before is not None and content is not None and path.endswith(".py"):
            content = _only_behaviour(before, content)
            if content == before:
                continue
        after[path] = content
    return replace(one, after=after)


def _only_behaviour(before: bytes, after: bytes) -> bytes:
    """`after` with every stretch taken back that leaves its syntax tree as it is."""
    meaning = _meaning(after)
    if meaning is None:
        return after
    old, new = (text.splitlines(keepends=True) for text in (before, after))
    kept: list[bytes] = []
    for tag, i, j, k, m in difflib.SequenceMatcher(None, old, new, False).get_opcodes():
        if tag == "equal" or _meaning(b"".join([*new[:k], *old[i:j], *new[m:]])) != meaning:
            kept += new[k:m]
        else:
            kept += old[i:j]
    result = b"".join(kept)
    return result if _meaning(result) == meaning else after


def _meaning(source: bytes) -> str | None:
    """The syntax tree without documentation; None for what isn't Python."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return None
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [  # type: ignore[attr-defined]
                each
                for each in body
                if not (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant))
            ]
    return ast.dump(tree)
