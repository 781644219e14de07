"""A file holds one of several answers; case, quotes, blanks and a final dot don't count."""

from pathlib import Path

from reading import UnreadableError, read, short


def normal(text: str) -> str:
    """The answer without what doesn't count."""
    return text.strip().rstrip(".").strip("\"'`").strip().casefold()


def check(workdir: Path, path: str, answers: list[str]) -> list[str]:
    """One message, or none."""
    try:
        found = read(workdir, path)
    except UnreadableError as error:
        return [str(error)]
    if normal(found) in {normal(answer) for answer in answers}:
        return []
    return [f"{path}: expected {short(answers[0])}, found {short(found)}"]
