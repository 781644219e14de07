"""A session's files at each moment, as far as its log tells.

replay.py      walks the calls of a session over a virtual file system
content.py     what is known of one file: exact, partial or inferred
operations.py  what an editing call asks for, whatever the agent's tool is called
edits.py       replacing text, exactly or as tolerantly as agents do
patches.py     `apply_patch` (V4A) envelopes
diffs.py       unified diffs, forwards and backwards
reads.py       file content out of what a read shows
shell.py       what a command line does to files, on paper
fidelity.py    replayed files against what the log or a git commit says
"""

from __future__ import annotations

from harness_adapters.synthesis.replay.content import Certainty, Content
from harness_adapters.synthesis.replay.replay import Replay

__all__ = ["Certainty", "Content", "Replay"]
