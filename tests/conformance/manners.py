"""What differs between the harnesses: how each words its own errors, and what its profiles hold.

The cases in test_sessions.py are the same for all of them; a harness joins with a driver in the
registry and one entry here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from harness_adapters.harness import Profile


@dataclass(frozen=True, slots=True)
class Manners:
    """One harness. Texts are parts of what the model is told after such a call."""

    tools: Mapping[Profile, tuple[str, ...]]
    """Tool names in the order of the request."""
    malformed: str
    """After a call whose arguments are not JSON; empty where it asks again and tells nothing."""
    unknown: str
    """After a call of a tool named `teleport`."""
    missing: str
    """After a call that lacks a required argument."""
    lean_share: float
    """The lean prompt is shorter than this part of the stock prompt."""
    reads_agents_md: frozenset[Profile]
    """Profiles in which `AGENTS.md` of the working directory enters the prompt."""
    seconds_to_call: float
    """Enough, on an idle machine, from the start to a command of the first turn."""
    malformed_requests: int = 1
    """Requests until the harness has done with one malformed call: some ask again first."""
    empty_requests: int = 1
    """Empty answers in a row after which the harness ends."""
    own_settings: Mapping[str, str] = field(default_factory=dict[str, str])
    """Files in a working directory that would change the harness if it took them: each holds
    `WHISTLE` where a prompt or a tool's name could show."""


MANNERS: Mapping[str, Manners] = {
    "opencode": Manners(
        tools={
            Profile.LEAN: ("bash", "edit", "read", "write"),
            Profile.STOCK: (
                *("bash", "edit", "glob", "grep", "read"),
                *("skill", "task", "todowrite", "webfetch", "write"),
            ),
        },
        malformed="Invalid input for tool write: JSON parsing failed",
        unknown="unavailable tool 'teleport'",
        missing='Missing key\n  at ["content"]',
        lean_share=0.4,
        reads_agents_md=frozenset({Profile.STOCK}),
        seconds_to_call=10,
        own_settings={
            "opencode.json": json.dumps(
                {
                    "instructions": ["more.md"],
                    "agent": {"build": {"prompt": "WHISTLE only."}},
                    "permission": {"write": "deny"},
                }
            ),
            "more.md": "WHISTLE.\n",
            "CLAUDE.md": "WHISTLE.\n",
            ".opencode/agent/build.md": "---\nmode: primary\n---\nWHISTLE only.\n",
            ".opencode/plugin/x.js": "throw new Error('WHISTLE');\n",
            ".opencode/skills/x/SKILL.md": "---\nname: x\ndescription: WHISTLE\n---\nWHISTLE\n",
            ".claude/skills/y/SKILL.md": "---\nname: y\ndescription: WHISTLE\n---\nWHISTLE\n",
            ".agents/skills/z/SKILL.md": "---\nname: z\ndescription: WHISTLE\n---\nWHISTLE\n",
        },
    ),
    "pi": Manners(
        tools=dict.fromkeys(Profile, ("read", "bash", "edit", "write")),
        malformed='Invalid arguments for tool "write"',
        unknown="teleport not found",
        missing="content: missing",
        lean_share=0.7,
        reads_agents_md=frozenset({Profile.STOCK}),
        seconds_to_call=3,
        own_settings={
            ".pi/SYSTEM.md": "WHISTLE only.\n",
            ".pi/settings.json": '{"defaultTools": ["bash"], "retry": {"enabled": true}}',
            ".pi/extensions/x.ts": "throw new Error('WHISTLE');\n",
        },
    ),
    "hermes": Manners(
        tools={
            Profile.STOCK: (
                *("clarify", "cronjob", "delegate_task", "memory", "patch", "process"),
                *("read_file", "search_files", "session_search", "skill_manage", "skill_view"),
                *("skills_list", "terminal", "todo", "vision_analyze", "write_file"),
            ),
            Profile.LEAN: (
                *("patch", "process", "read_file", "search_files", "terminal", "todo"),
                "write_file",
            ),
        },
        malformed="",
        unknown="Tool 'teleport' does not exist",
        missing="missing required field 'content'",
        lean_share=0.35,
        reads_agents_md=frozenset({Profile.STOCK}),
        seconds_to_call=8,
        empty_requests=4,
        own_settings={
            ".env": "HERMES_EPHEMERAL_SYSTEM_PROMPT=WHISTLE only\n",
            ".hermes/config.yaml": "agent: {system_prompt: WHISTLE only}\n",
            ".hermes/SOUL.md": "WHISTLE only.\n",
            ".hermes/plugins/x/plugin.yaml": "name: x\n",
            ".hermes/plugins/x/__init__.py": "raise SystemExit('WHISTLE')\n",
            "cli-config.yaml": "agent: {system_prompt: WHISTLE only}\n",
            "hermes_cli/__init__.py": "raise SystemExit('WHISTLE')\n",
            "sitecustomize.py": "raise SystemExit('WHISTLE')\n",
            "utils.py": "raise SystemExit('WHISTLE')\n",
        },
    ),
}
