"""ATIF, Harbor's Agent Trajectory Interchange Format, versions 1.0 to 1.7.

Each agent step is one turn; its observation holds the results. The format has no exit codes: they
are known only where a tool wrote one into its text.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness_adapters.synthesis.traces import exit_codes, values
from harness_adapters.synthesis.traces.calls import make_call
from harness_adapters.synthesis.traces.draft import Draft
from harness_adapters.synthesis.traces.formats import Record
from harness_adapters.synthesis.traces.recorder import Recorder
from harness_adapters.synthesis.traces.session import Result, Speaker


class Atif:
    """Reads trajectories in ATIF."""

    name = "atif"

    def __init__(self, out: Recorder) -> None:
        self._out = out

    @staticmethod
    def matches(head: Sequence[Record]) -> bool:
        """The format's name in `schema_version`, or steps with its sources beside an agent."""
        for record in head:
            if values.text(record.get("schema_version")).startswith("ATIF"):
                return True
            steps = values.sequence(record.get("steps"))
            first = values.mapping(steps[0]) if steps else {}
            if "agent" in record and "step_id" in first and "source" in first:
                return True
        return False

    def feed(self, record: Record) -> None:
        """Read one trajectory and the subagents' inside it."""
        if not isinstance(record.get("steps"), list):
            self._out.notes["records_beside_the_conversation"] += 1
            return
        self._trajectory(record, "")

    def _trajectory(self, record: Record, parent: str) -> None:
        named = values.text(record.get("trajectory_id")) or values.text(record.get("session_id"))
        draft = self._out.whole(named)
        agent = values.mapping(record.get("agent"))
        draft.facts(
            agent=values.text(agent.get("name")),
            agent_version=values.text(agent.get("version")),
            model=values.text(agent.get("model_name")),
            parent=parent,
        )
        for step in values.mappings(record.get("steps")):
            self._step(draft, step)
        identity = draft.id
        self._out.close(identity)
        for inner in values.mappings(record.get("subagent_trajectories")):
            self._trajectory(inner, identity)

    def _step(self, draft: Draft, step: Record) -> None:
        text, images = values.content(step.get("message"))
        time = values.seconds(step.get("timestamp"))
        draft.facts(started=time)
        draft.note("copied_steps", step.get("is_copied_context") is True)
        source = step.get("source")
        if source == "agent":
            model = values.text(step.get("model_name"))
            reasoning = values.text(step.get("reasoning_content"))
            draft.answer(text=text, reasoning=reasoning, model=model, time=time)
        elif source in ("user", "system"):
            speaker = Speaker.USER if source == "user" else Speaker.HARNESS
            draft.said(speaker, text, images=images, time=time)
        else:
            draft.note("odd_records")
        for call in values.mappings(step.get("tool_calls")):
            call_id = values.text(call.get("tool_call_id"))
            name = values.text(call.get("function_name"))
            draft.call(make_call(call_id, name, call.get("arguments"), time=time))
        for result in values.mappings(values.mapping(step.get("observation")).get("results")):
            shown, shown_images = values.content(result.get("content"))
            code = exit_codes.in_object(result.get("extra"))
            draft.note("subagents", bool(result.get("subagent_trajectory_ref")))
            draft.result(
                Result(
                    text=shown,
                    call_id=values.text(result.get("source_call_id")),
                    exit_code=exit_codes.stated(shown) if code is None else code,
                    images=shown_images,
                    time=time,
                )
            )

    def finish(self) -> None:
        """Nothing is held back."""
