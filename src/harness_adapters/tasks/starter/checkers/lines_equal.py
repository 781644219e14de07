"""A file's lines are these, in this order or in any."""

from pathlib import Path

from reading import UnreadableError, lines_of, read, short


def check(workdir: Path, path: str, lines: list[str], ordered: bool) -> list[str]:
    """One message, or none."""
    try:
        found = lines_of(read(workdir, path))
    except UnreadableError as error:
        return [str(error)]
    if found == lines or (not ordered and sorted(found) == sorted(lines)):
        return []
    if len(found) != len(lines):
        return [f"{path}: expected {len(lines)} lines, found {len(found)}: {short(found)}"]
    number, (wanted, got) = next(
        (i, pair) for i, pair in enumerate(zip(lines, found, strict=True), 1) if pair[0] != pair[1]
    )
    return [f"{path}, line {number}: expected {short(wanted)}, found {short(got)}"]
