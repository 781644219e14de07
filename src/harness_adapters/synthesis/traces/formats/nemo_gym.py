"""NeMo Gym rollouts: the request and the answer of a Responses API, with a reward.

Whatever agent ran inside, the answer's `output` holds its messages, calls and results.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness_adapters.synthesis.traces import values
from harness_adapters.synthesis.traces.formats import Record
from harness_adapters.synthesis.traces.formats.items import Items
from harness_adapters.synthesis.traces.recorder import Recorder
from harness_adapters.synthesis.traces.session import Speaker


class NemoGym:
    """Reads rollouts of NeMo Gym, and bare Responses objects."""

    name = "nemo_gym_responses"

    def __init__(self, out: Recorder) -> None:
        self._out = out

    @staticmethod
    def matches(head: Sequence[Record]) -> bool:
        """Request parameters beside a response, or a response object."""
        return any(
            "responses_create_params" in record
            or (record.get("object") == "response" and isinstance(record.get("output"), list))
            for record in head
        )

    def feed(self, record: Record) -> None:
        """Read one rollout."""
        request = values.mapping(record.get("responses_create_params"))
        response = values.mapping(record.get("response")) or record
        if not request and "output" not in response:
            self._out.notes["records_beside_the_conversation"] += 1
            return
        metadata = values.mapping(request.get("metadata"))
        instance = values.text(record.get("instance_id")) or values.text(
            metadata.get("instance_id")
        )
        draft = self._out.whole(values.text(response.get("id")) or instance)
        agent = values.text(values.mapping(record.get("agent_ref")).get("name"))
        draft.facts(agent=agent, model=values.text(response.get("model")))
        draft.meta["instance_id"] = instance
        draft.meta["dataset_name"] = values.text(metadata.get("dataset_name"))
        if isinstance(record.get("reward"), int | float):
            draft.meta["reward"] = record["reward"]
        items = Items(draft)
        instructions = values.text(request.get("instructions"))
        if instructions:
            draft.said(Speaker.HARNESS, instructions)
        asked = request.get("input")
        if isinstance(asked, str):
            draft.said(Speaker.USER, asked)
        elif not asked and isinstance(metadata.get("problem_statement"), str):
            draft.said(Speaker.USER, metadata["problem_statement"])
        items.feed(values.mappings(asked))
        items.feed(values.mappings(response.get("output")))
        self._out.close(draft.id)

    def finish(self) -> None:
        """Nothing is held back."""
