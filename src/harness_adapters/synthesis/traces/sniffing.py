"""Which format a file is in, by what its first records hold."""

from __future__ import annotations

from collections.abc import Sequence

from harness_adapters.synthesis.traces.formats import Record, TraceReader
from harness_adapters.synthesis.traces.formats.atif import Atif
from harness_adapters.synthesis.traces.formats.chat import Chat
from harness_adapters.synthesis.traces.formats.checkpoint import Checkpoint
from harness_adapters.synthesis.traces.formats.claude_code import ClaudeCode
from harness_adapters.synthesis.traces.formats.codex import Codex
from harness_adapters.synthesis.traces.formats.copilot_cli import CopilotCli
from harness_adapters.synthesis.traces.formats.hermes import Hermes
from harness_adapters.synthesis.traces.formats.mini_swe_agent import MiniSweAgent
from harness_adapters.synthesis.traces.formats.nemo_gym import NemoGym
from harness_adapters.synthesis.traces.formats.opencode import OpenCode
from harness_adapters.synthesis.traces.formats.openhands import OpenHands
from harness_adapters.synthesis.traces.formats.pi import Pi
from harness_adapters.synthesis.traces.formats.sts import Sts
from harness_adapters.synthesis.traces.formats.swe_agent import SweAgent

READERS: tuple[type[TraceReader], ...] = (
    NemoGym,
    Atif,
    SweAgent,
    OpenHands,
    OpenCode,
    MiniSweAgent,
    Hermes,
    Codex,
    CopilotCli,
    Pi,
    Sts,
    ClaudeCode,
    Checkpoint,
    Chat,
)
"""In the order of asking: those with the plainest marks first, chat messages of anybody last."""


def choose(head: Sequence[Record]) -> type[TraceReader] | None:
    """The reader for a file with these first records."""
    return next((reader for reader in READERS if reader.matches(head)), None)
