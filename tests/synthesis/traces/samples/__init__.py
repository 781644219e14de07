"""A small log of each format, written for these tests: the records, and the counts they hold.

Every sample tells one story: read `sums.py`, see a test fail with code 1, edit the file, see the
test pass with code 0.
"""

from __future__ import annotations

from .claude_code import claude_code
from .codex import codex
from .copilot_cli import copilot_cli
from .exchange import atif, chat, nemo_gym, sts
from .hermes import hermes, hermes_sharegpt
from .opencode import opencode
from .openhands import openhands_v0, openhands_v1
from .pi import pi
from .story import AFTER, BEFORE, TEST, Sample
from .swe_agent import mini_v1, mini_v2, swe_agent

ALL = (
    claude_code,
    codex,
    pi,
    opencode,
    hermes,
    hermes_sharegpt,
    copilot_cli,
    openhands_v0,
    openhands_v1,
    swe_agent,
    mini_v1,
    mini_v2,
    atif,
    nemo_gym,
    sts,
    chat,
)

__all__ = [
    "AFTER",
    "ALL",
    "BEFORE",
    "TEST",
    "Sample",
    "atif",
    "chat",
    "claude_code",
    "codex",
    "copilot_cli",
    "hermes",
    "hermes_sharegpt",
    "mini_v1",
    "mini_v2",
    "nemo_gym",
    "opencode",
    "openhands_v0",
    "openhands_v1",
    "pi",
    "sts",
    "swe_agent",
]
