"""Secrets and personal data of a session, replaced by harmless stand-ins of the same kind.

On parsed values, and the same stand-in everywhere, so that a program and its tests still agree; the
gates then show that they do. By shape: what looks like an ordinary word can't be recognised.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import PurePosixPath

from harness_adapters.synthesis.candidate import Candidate

_SECRET = re.compile(
    "|".join(
        (
            r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)",
            r"\b(?:sk|pk|rk)[-_][A-Za-z0-9_-]{16,}",
            r"\bgh[pousr]_[A-Za-z0-9]{16,}|\bgithub_pat_\w{16,}|\bglpat-[\w-]{16,}",
            r"\bxox[a-z]-[\w-]{10,}|\bhf_[A-Za-z0-9]{16,}|\b(?:npm_|dop_v1_|pypi-)[\w-]{16,}",
            r"\b(?:AKIA|ASIA|AROA)[A-Z0-9]{12,}|\bAIza[\w-]{20,}|\bya29\.[\w-]{16,}",
            r"\beyJ[\w-]{16,}(?:\.[\w-]{4,}){1,2}",
        )
    ),
    re.DOTALL,
)
_ASSIGNED = re.compile(
    r"(?i)\b[a-z0-9_.-]*(?:api[_-]?key|access[_-]?key|secret|auth[_-]?token|passw(?:or)?d|"
    r"passphrase)[a-z0-9_-]*[\"']?\s*[:=]\s*[\"'](?P<value>[^\"'\s{}$<>]{10,})[\"']"
)
_URL_PASSWORD = re.compile(r"://[^\s/:@]+:(?P<value>[^\s/@{}$]{3,})@")
_MAIL = re.compile(r"\b[\w.+-]+@[\w-]+(?:\.[\w-]+)+\b")
_HARMLESS_MAIL = re.compile(
    r"@(?:[\w-]+\.)*(?:example\.(?:com|org|net)|\w+\.(?:test|example|invalid|localhost))$"
    r"|^git@|^no-?reply@",
    re.IGNORECASE,
)
_HOME = re.compile(r"(?P<root>/home/|/Users/|\\Users\\|-Users-)(?P<name>[A-Za-z][\w.]*)")
_HARMLESS_HOME = {"agent", "user", "me", "you", "shared", "runner", "ubuntu", "node", "app"}


class PrivateError(Exception):
    """Something private lies where it can't be replaced; the text says what kind, never what."""


def cleaned(one: Candidate) -> tuple[Candidate, int]:
    """The candidate without secrets and personal data, and how many different ones it held.

    Raises PrivateError where one lies in a file that isn't text, or in a path.
    """
    check = one.check
    texts = [one.instruction, check.command, check.expected, check.failure, one.oracle_command]
    contents = [*one.before.values(), *one.hidden.values(), *one.after.values()]
    for content in contents:
        text = _text(content)
        if text is not None:
            texts.append(text)
        elif content is not None and stand_ins([content.decode("latin-1")]):
            raise PrivateError("a file that isn't text holds what looks like a secret")
    swaps = stand_ins(texts)
    paths = [*one.before, *one.hidden, *one.after]
    if any(private in path for path in paths for private in swaps):
        raise PrivateError("the name of a file holds personal data")
    swap = _swapper(swaps)

    def swap_bytes(content: bytes) -> bytes:
        text = _text(content)
        return content if text is None else swap(text).encode()

    source = PurePosixPath(one.provenance.source)
    clean = replace(
        one,
        instruction=swap(one.instruction),
        before={path: swap_bytes(content) for path, content in one.before.items()},
        hidden={path: swap_bytes(content) for path, content in one.hidden.items()},
        after={
            path: None if content is None else swap_bytes(content)
            for path, content in one.after.items()
        },
        check=replace(
            check,
            command=swap(check.command),
            expected=swap(check.expected),
            failure=swap(check.failure),
        ),
        oracle_command=swap(one.oracle_command),
        provenance=replace(one.provenance, source=swap(source.name)),
    )
    return clean, len(swaps)


def stand_ins(texts: list[str]) -> dict[str, str]:
    """What is private in these texts, and what to write instead."""
    swaps: dict[str, str] = {}

    def add(private: str, stand_in: str) -> None:
        swaps.setdefault(private, stand_in.format(n=len(swaps) + 1))

    for text in texts:
        for found in _SECRET.finditer(text):
            add(found[0], "redacted-secret-{n}")
        for pattern in (_ASSIGNED, _URL_PASSWORD):
            for found in pattern.finditer(text):
                add(found["value"], "redacted-secret-{n}")
        for found in _MAIL.finditer(text):
            if not _HARMLESS_MAIL.search(found[0]):
                add(found[0], "user{n}@example.com")
        for found in _HOME.finditer(text):
            if found["name"].lower() not in _HARMLESS_HOME:
                add(found[0], found["root"].replace("{", "") + "user")
    return swaps


def _swapper(swaps: Mapping[str, str]) -> Callable[[str], str]:
    if not swaps:
        return lambda text: text
    longest_first = sorted(swaps, key=len, reverse=True)
    pattern = re.compile("|".join(map(re.escape, longest_first)))
    return lambda text: pattern.sub(lambda found: swaps[found[0]], text)


def _text(content: bytes | None) -> str | None:
    if content is None:
        return None
    try:
        return content.decode()
    except UnicodeDecodeError:
        return None
