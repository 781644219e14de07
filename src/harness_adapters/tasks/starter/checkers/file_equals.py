"""A file holds exactly one text; blanks at line ends and empty lines at the end don't count."""

from pathlib import Path

from reading import UnreadableError, lines_of, read, short


def check(workdir: Path, path: str, text: str) -> list[str]:
    """One message, or none."""
    try:
        found = read(workdir, path)
    except UnreadableError as error:
        return [str(error)]
    if lines_of(found) == lines_of(text):
        return []
    return [f"{path}: expected {short(text)}, found {short(found)}"]
