"""Is this the prompt that an adapter was trained against?

An adapter belongs to the system prompt and the tools of its agent. Their hash stands in its card;
`use` starts the agent once in a sandbox, reads what it sends today, and says where that differs.
"""

from __future__ import annotations

import asyncio
import hashlib
import platform
import re

from harness_adapters.adapters.source import Adapter
from harness_adapters.errors import HarnessError, SandboxError
from harness_adapters.harness import Harness, Profile
from harness_adapters.rollout.opening import Opening, play_opening

_MONTH = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*"
_DAY = "(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? )?"
_WHEN = re.compile(
    rf"\b{_DAY}(?:\d{{4}}-\d\d-\d\d|{_MONTH} \d{{1,2}},? \d{{4}}|\d{{1,2}} {_MONTH} \d{{4}})\b"
)


def prompt_sha256(opening: Opening) -> str:
    """Of all that an agent sends before its user's words, without today's date and this kernel."""
    text = _WHEN.sub("<date>", opening.text).replace(platform.release(), "<kernel>")
    return hashlib.sha256(text.encode()).hexdigest()


def sent_prompt(harness: Harness, profile: Profile) -> str:
    """The same of a real start of the agent. Raises HarnessError, SandboxError."""
    return prompt_sha256(asyncio.run(play_opening(harness, profile)))


def matches_prompt(adapter: Adapter, harness: Harness, profile: Profile) -> str:
    """One line where the agent doesn't send what the adapter was trained against; else empty."""
    origin = adapter.origin
    if origin is None:
        return f"{adapter.label} has no card: nothing says which agent it was trained in"
    if origin.harness != harness.name:
        return f"{adapter.label} was trained in {origin.harness}, not in {harness.name}"
    trained = Profile(origin.settings.harness.profile)
    if trained is not profile:
        return (
            f"{adapter.label} was trained on the {trained} profile of {harness.name}, not on "
            f"{profile}: it meets another prompt"
        )
    known = {} if origin.card is None else origin.card["harness"]
    version = known.get("version", harness.version)
    wanted = known.get("prompt_sha256")
    if wanted is None:  # an adapter in its own run: today's agent is the one of its training
        return _other_version(adapter, harness, version)
    try:
        found = sent_prompt(harness, profile)
    except (HarnessError, SandboxError) as error:
        return f"whether {harness.name} sends the prompt of the training can't be seen: {error}"
    if found == wanted:
        return ""
    return (
        f"{harness.name} {harness.version} sends another prompt ({found[:8]}) than the one "
        f"{adapter.label} was trained against ({str(wanted)[:8]}, {harness.name} {version}): "
        "expect less of it"
    )


def _other_version(adapter: Adapter, harness: Harness, version: str) -> str:
    if version == harness.version:
        return ""
    return (
        f"{adapter.label} was trained in {harness.name} {version}; this is {harness.version}, "
        "whose prompt may differ"
    )
