"""Text for the audit log without the secrets in it: keys, tokens, passwords.

By shape, so it can miss what looks like an ordinary word and can hide what only looks like a key.
The log keeps a hash of the whole beside it.
"""

from __future__ import annotations

import re

HIDDEN = "[redacted]"
WINDOW = 4096
"""Characters that are looked at; more than is ever shown, so that no secret is cut in two."""

_ESCAPED_ASCII = re.compile(r"\\u00([2-7][0-9a-fA-F])")
_QUOTES = {'"', "\\"}

_WORD = (
    r"(?:[a-z0-9_.-]*(?:api[_-]?key|access[_-]?key|private[_-]?key|secret|token|passw(?:or)?d|passwd"
    r"|passphrase|credentials?|authorization|cookie|session[_-]?id)|pwd|pass)[a-z0-9_-]*"
)
_VALUE = r"""(?:\\?"(?:[^"\\]|\\[^"])*|'[^']*|[^\s"'\\,;&|)}\]]+)"""

_WHOLE = re.compile(
    "|".join(
        (
            r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)",
            r"\b(?:sk|pk|rk)[-_][A-Za-z0-9_-]{8,}",
            r"\bgh[pousr]_[A-Za-z0-9]{8,}|\bgithub_pat_\w{8,}|\bglpat-[\w-]{8,}",
            r"\bxox[a-z]-[\w-]{8,}|\bhf_[A-Za-z0-9]{8,}|\b(?:npm|dop_v1|pypi)[-_][\w-]{16,}",
            r"\b(?:AKIA|ASIA|AROA)[A-Z0-9]{12,}|\bAIza[\w-]{20,}|\bya29\.[\w-]{8,}",
            r"\beyJ[\w-]{8,}(?:\.[\w-]*){1,2}",
            # Long words of upper and lower case letters and digits; a commit's hash has no upper.
            r"(?<![\w+/-])(?=[\w+/-]*[a-z])(?=[\w+/-]*[A-Z])(?=[\w+/-]*[0-9])[\w+/-]{32,}={0,2}",
        )
    ),
    re.DOTALL,
)
_IN_CONTEXT = re.compile(
    "|".join(
        (
            r"(?P<scheme>\b(?:bearer|basic)\s+)[\w.~+/=-]{6,}",
            r"(?P<user>://[^\s/:@]*:)[^\s/@]+(?=@)",
            r"(?P<key>\b" + _WORD + r"""\\?["']?\s*[:=]\s*)(?!(?:bearer|basic)\s)""" + _VALUE,
            r"(?P<flag>--?" + _WORD + r"""[\s=]+)(?![-|&;])""" + _VALUE,
            r"(?P<login>(?:\s-u|--user)[\s=]+[\"']?[^\s:\"']+:)[^\s\"']+",
        )
    ),
    re.IGNORECASE,
)


def redacted(text: str, shown: int) -> str:
    """The first `shown` characters of `text`, with `[redacted]` for what looks like a secret.

    JSON escapes of plain ASCII are undone first: `\\u0073k-…` is a key, too.
    """
    text = _ESCAPED_ASCII.sub(_plain, text[:WINDOW])
    text = _WHOLE.sub(HIDDEN, text)
    text = _IN_CONTEXT.sub(lambda found: (found[found.lastgroup or 0]) + HIDDEN, text)
    return text[:shown]


def _plain(found: re.Match[str]) -> str:
    character = chr(int(found[1], 16))
    return found[0] if character in _QUOTES else character
