"""Filters whose output is worked out when their input is known: decoders first of all."""

from __future__ import annotations

import base64
import binascii
import re
from itertools import chain
from typing import TYPE_CHECKING

from harness_adapters.guard.effects.holes import DIGITS, known
from harness_adapters.guard.effects.shell.commands.table import (
    command,
    options,
    printed,
    read_all,
)
from harness_adapters.guard.effects.shell.fields import unescaped

MAX_TEXT = 1 << 20
"""Characters of a text that is worked out."""

if TYPE_CHECKING:
    from harness_adapters.guard.effects.shell.run import Shell


def _reads(name: str, valued: str) -> None:
    """Wrap `reader` for a filter whose output can be worked out."""

    @command(name)
    def run(shell: Shell, argv: list[str], stdin: str) -> str:
        flags, operands = options(argv, ["-" + c for c in valued.replace(" ", "")])
        if name == "tr":
            return _tr(flags, operands, stdin)
        output = operands[1] if name in ("xxd", "uniq") and len(operands) == 2 else ""
        if name in ("sort",):
            output = "".join(chain(*(flags.get(f, []) for f in ("-o", "--output"))))
        sources = operands[: 1 if name in ("xxd", "uniq") else None]
        for values in flags.values():
            sources += [v for v in values if "/" in v and v not in (output,)]
        text = read_all(shell, sources) if sources else stdin
        made = _FILTERS[name](flags, text) if known(text) and len(text) < MAX_TEXT else None
        if name == "cut" and text.startswith(DIGITS + ":") and flags.get("-d") == [":"]:
            made = DIGITS + "\n" if flags.get("-f") == ["1"] else None
        if made is None:
            made = text if name in ("cat", "tac", "head", "tail", "sort", "uniq") else printed(text)
        if output:
            shell.world.write(output, made)
            return ""
        return made


def _tr(flags: dict[str, list[str]], operands: list[str], text: str) -> str:
    if not known(text) or not operands or set(flags) - {"-d", "-s", "-c", "-C"}:
        return printed(text)
    sets = [_characters(unescaped(operand)) for operand in operands]
    if any(each is None for each in sets) or "-c" in flags or "-C" in flags:
        return printed(text)
    first, second = sets[0] or "", (sets[1] if len(sets) > 1 else "") or ""
    if "-d" in flags:
        return text.translate({ord(c): None for c in first})
    if not second:
        return text
    second = second.ljust(len(first), second[-1])
    return text.translate(dict(zip(map(ord, first), second, strict=False)))


def _characters(text: str) -> str | None:
    if "[:" in text:
        names = {"[:lower:]": "a-z", "[:upper:]": "A-Z", "[:digit:]": "0-9", "[:space:]": " \t\n"}
        for name, value in names.items():
            text = text.replace(name, value)
        if "[:" in text:
            return None

    def spread(match: re.Match[str]) -> str:
        return "".join(map(chr, range(ord(match[1]), ord(match[2]) + 1)))

    return re.sub(r"(.)-(.)", spread, text, flags=re.DOTALL)


def _cat(flags: dict[str, list[str]], text: str) -> str | None:
    return None if set(flags) - {"-u"} else text


def _rev(flags: dict[str, list[str]], text: str) -> str | None:
    return "".join(line[::-1] + "\n" for line in text.splitlines())


def _tac(flags: dict[str, list[str]], text: str) -> str | None:
    return "".join(line + "\n" for line in reversed(text.splitlines()))


def _count(flags: dict[str, list[str]]) -> int | None:
    for flag in ("-n", "--lines"):
        if flags.get(flag):
            value = flags[flag][-1]
            return int(value) if value.isdigit() else None
    digits = [f[1:] for f in flags if f[1:].isdigit() and not f.startswith("--")]
    return None if "-c" in flags else int(max(digits, key=len)) if digits else 10


def _head(flags: dict[str, list[str]], text: str) -> str | None:
    if "-c" in flags and flags["-c"][-1].isdigit():
        return text[: int(flags["-c"][-1])]
    count = _count(flags)
    return None if count is None else "".join(text.splitlines(keepends=True)[:count])


def _tail(flags: dict[str, list[str]], text: str) -> str | None:
    if flags.get("-n", [""])[-1].startswith("+"):
        start = flags["-n"][-1][1:]
        lines = text.splitlines(keepends=True)
        return "".join(lines[max(0, int(start) - 1) :]) if start.isdigit() else None
    count = _count(flags)
    lines = text.splitlines(keepends=True)
    return None if count is None else "".join(lines[-count:] if count else [])


def _base64(flags: dict[str, list[str]], text: str) -> str | None:
    decode = {"-d", "-D", "--decode", "-di", "-id"} & set(flags)
    try:
        if decode:
            return base64.b64decode(re.sub(r"[^A-Za-z0-9+/=]", "", text)).decode(errors="replace")
        return base64.b64encode(text.encode()).decode() + "\n"
    except (binascii.Error, ValueError):
        return None


def _base32(flags: dict[str, list[str]], text: str) -> str | None:
    try:
        if {"-d", "--decode"} & set(flags):
            return base64.b32decode("".join(text.split())).decode(errors="replace")
        return base64.b32encode(text.encode()).decode() + "\n"
    except (binascii.Error, ValueError):
        return None


def _xxd(flags: dict[str, list[str]], text: str) -> str | None:
    if "-r" not in flags:
        return text.encode().hex() + "\n" if "-p" in flags else None
    if "-p" not in flags:
        text = "".join(re.sub(r"^\S*:|  .*$", "", line) for line in text.splitlines())
    try:
        return bytes.fromhex("".join(text.split())).decode(errors="replace")
    except ValueError:
        return None


def _sorted(flags: dict[str, list[str]], text: str) -> str | None:
    lines = sorted(text.splitlines())
    return "".join(line + "\n" for line in (dict.fromkeys(lines) if "-u" in flags else lines))


def _cut(flags: dict[str, list[str]], text: str) -> str | None:
    for flag in ("-f", "-c"):
        if flags.get(flag):
            ranges = _ranges(flags[flag][-1])
            if ranges is None:
                return None
            mark = (flags.get("-d") or ["\t"])[-1] or "\t"
            out = []
            for line in text.splitlines():
                items = line.split(mark) if flag == "-f" else list(line)
                chosen = [x for n, x in enumerate(items, 1) if any(a <= n <= b for a, b in ranges)]
                out.append((mark if flag == "-f" else "").join(chosen) + "\n")
            return "".join(out)
    return None


def _ranges(text: str) -> list[tuple[int, int]] | None:
    found = []
    for part in text.split(","):
        match = re.fullmatch(r"(\d*)(-?)(\d*)", part)
        if match is None or not (match[1] or match[3]):
            return None
        low = int(match[1] or 1)
        found.append((low, int(match[3] or (10**9 if match[2] else low))))
    return found


_FILTERS = {
    "cat": _cat,
    "rev": _rev,
    "tac": _tac,
    "head": _head,
    "tail": _tail,
    "base64": _base64,
    "base32": _base32,
    "xxd": _xxd,
    "sort": _sorted,
    "uniq": _cat,
    "cut": _cut,
}


for _name, _valued in {
    **dict.fromkeys(("cat", "rev", "tac", "base32"), ""),
    **{"head": "nc", "tail": "nc", "base64": "w", "xxd": "lscg", "sort": "oktST"},
    **{"uniq": "fsw", "cut": "dfcb", "tr": ""},
}.items():
    _reads(_name, _valued)
