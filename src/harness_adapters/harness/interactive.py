"""An agent as its user starts it: in their directory, on their terminal, with a model of ours.

The driver's own configuration is taken, without what only fits a session that nobody attends. The
user's home stays theirs: only the agent's configuration directory is another one.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness_adapters.errors import HarnessError
from harness_adapters.harness import HOME, Harness, Profile

_UNATTENDED = {
    "pi": {"--mode": 2, "--no-session": 1, "--no-approve": 1},
    "opencode": {"run": 1, "--format": 2, "--auto": 1, "--print-logs": 1, "--log-level": 2,
                 "--title": 2},
    "hermes": {"--query=x": 1, "--quiet": 1, "--yolo": 1, "--source": 2},
}  # fmt: skip
"""Arguments (and how many words each has) that only a session without a user wants."""

_ONLY_SANDBOXED = ("HOME", "SHELL", "TERM", "NO_COLOR", "LANG", "TZ", "OPENCODE_DB",
                   "HERMES_YOLO_MODE", "SUDO_PASSWORD", "NODE_COMPILE_CACHE")  # fmt: skip
"""Variables of the driver that would take the user's own place, or write into the install."""


@dataclass(frozen=True, slots=True)
class Attended:
    """How to start an agent for its user."""

    argv: Sequence[str]
    env: Mapping[str, str]


def attended(
    harness: Harness,
    home: Path,
    *,
    base_url: str,
    profile: Profile,
    max_context: int,
    more: Sequence[str] = (),
) -> Attended:
    """Write the agent's configuration below `home` and say how to start it.

    `more` goes to the agent as it is. Raises HarnessError where this agent can't be started so.
    """
    if harness.name not in _UNATTENDED:
        raise HarnessError(
            f"{harness.name} has no interactive start here: serve the adapter (harness-adapters "
            "serve) and point the agent at the address"
        )
    launch = harness.launch("x", base_url=base_url, profile=profile, max_context=max_context)
    for name, text in launch.home_files.items():
        file = home / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    places = {HOME: str(home)} | {bind.target: str(bind.source) for bind in launch.binds}

    def here(text: str) -> str:
        for inside, outside in places.items():
            text = text.replace(inside, outside)
        return text

    env = {k: here(v) for k, v in launch.env.items() if k not in _ONLY_SANDBOXED}
    # What the agent runs finds the user's programs first.
    env["PATH"] = f"{os.environ.get('PATH', '')}:{env.get('PATH', '')}"
    env |= {
        # opencode works where this says, which is another place when a program set the directory.
        "PWD": str(Path.cwd()),
        "PI_CODING_AGENT_DIR": str(home / ".pi" / "agent"),
        "OPENCODE_CONFIG": str(home / ".config" / "opencode" / "opencode.json"),
    }
    words = [here(word) for word in _attended_words(list(launch.argv), _UNATTENDED[harness.name])]
    return Attended([*words, *more], env)


def _attended_words(words: list[str], unattended: Mapping[str, int]) -> list[str]:
    kept: list[str] = []
    while words:
        skip = unattended.get(words[0], 0)
        kept += words[: 0 if skip else 1]
        words = words[max(1, skip) :]
    return kept
