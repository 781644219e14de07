"""Items of OpenAI's Responses API, in which several frameworks keep what a model said and did."""

from __future__ import annotations

from collections.abc import Iterable

from harness_adapters.synthesis.traces import exit_codes, values
from harness_adapters.synthesis.traces.calls import make_call
from harness_adapters.synthesis.traces.draft import Draft
from harness_adapters.synthesis.traces.formats import Record
from harness_adapters.synthesis.traces.session import Result, Speaker


class Items:
    """Reads items in order into one session; those in a row without an output are one turn."""

    def __init__(self, draft: Draft) -> None:
        self._draft = draft
        self._turn = 0
        self._answering = False

    def feed(self, items: Iterable[Record]) -> None:
        """Read items: messages, reasoning, calls and their outputs."""
        for item in items:
            kind = values.text(item.get("type")) or ("message" if "role" in item else "")
            if kind == "message":
                self._message(item)
            elif kind == "reasoning":
                shown = item.get("content") or item.get("summary")
                self._speak(reasoning=values.content(shown)[0])
            elif kind.endswith("_call_output"):
                self._output(item)
            elif kind.endswith("_call"):
                self._speak()
                name = values.text(item.get("name")) or kind.removesuffix("_call")
                call_id = values.text(item.get("call_id")) or values.text(item.get("id"))
                found = item.get("arguments", item.get("input", item.get("action")))
                self._draft.call(make_call(call_id, name, found))
                if kind == "mcp_call" and item.get("output") is not None:
                    self._output({**item, "call_id": call_id})
            else:
                self._draft.note("odd_records")

    def _speak(self, text: str = "", reasoning: str = "") -> None:
        if not self._answering:
            self._turn += 1
            self._answering = True
        self._draft.answer(("items", self._turn), text=text, reasoning=reasoning)

    def _message(self, item: Record) -> None:
        text, images = values.content(item.get("content"))
        if item.get("role") == "assistant":
            self._speak(text=text)
            return
        self._answering = False
        speaker = Speaker.USER if item.get("role") == "user" else Speaker.HARNESS
        self._draft.said(speaker, text, images=images)

    def _output(self, item: Record) -> None:
        self._answering = False
        text, images = values.content(item.get("output"))
        text = text or values.plain(item.get("output"))
        code = values.integer(values.mapping(item.get("extra")).get("returncode"))
        code = exit_codes.stated(text) if code is None else code
        call_id = values.text(item.get("call_id"))
        self._draft.result(Result(text=text, call_id=call_id, exit_code=code, images=images))
