"""Drafts completed by a model: hidden tests with the words that ask for them, or a question.

The model sees the person's request and the session's work, and answers with one JSON object. What
it writes is text of others like the session itself: it runs in the gates' sandboxes only, and the
gates decide. Where one of them drops it, the model is told why and may write once more.
"""

from __future__ import annotations

import ast
import json
import re
from dataclasses import replace
from typing import Any

from harness_adapters.synthesis.candidate import Candidate
from harness_adapters.synthesis.endpoint import Endpoint
from harness_adapters.synthesis.miners import Draft, Lack
from harness_adapters.synthesis.miners.questions import ASK
from harness_adapters.synthesis.reasons import Reason

TRIES = 2
"""How often a draft is written, the first time included."""
MENDABLE = {
    Reason.LEAK_SOLUTION, Reason.LEAK_TESTS, Reason.LEAK_ANSWER, Reason.TOO_LARGE,
    Reason.NULL_REWARDED, Reason.WRONG_FAILURE, Reason.ORACLE_FAILS, Reason.FLAKY,
    Reason.DEGENERATE_REWARDED, Reason.HUNK_UNTESTED, Reason.WEAK_TESTS, Reason.GUESSABLE,
}  # fmt: skip
"""Reasons for which other words or other tests may do."""
WEAK = {Reason.WEAK_TESTS, Reason.HUNK_UNTESTED}
"""Reasons for which a session's own tests are completed by a model's."""
_ANSWER_TOKENS = 6000
_SHOWN = 24_000
"""Characters of files that the model is shown."""
_MOST_FILES = 4
_MOST_TEST_BYTES = 60_000
_CONTRACT = (10, 4000)
_TEST_NAME = re.compile(r"(?:tests/)?test_\w{1,60}\.py")

_TESTS = """\
You write hidden tests for a programming task that was taken from a real session. Another model will
get the request, your contract and the files as they were before; your tests decide whether its work
does the same as the finished work below. Answer with one JSON object and nothing else:
{"contract": "…", "tests": {"test_….py": "…"}}
The contract tells in plain sentences all names, inputs, outputs and special cases that the tests
look at, without the solution's code and without the tests' names. The tests use unittest or plain
functions named test_…, the standard library, files in temporary directories, and no network. They
pass with the finished work, fail by an assertion without it, and notice a fault in any changed
line, in whatever order they run."""
_QUESTION = """\
You write one question about files. It must be answerable from the files alone, by computing; it
names the files, says exactly what is counted or looked for and in which form the answer is wanted,
and doesn't hold the answer or a command. Answer with one JSON object and nothing else:
{"question": "…"}"""


_AGAIN = {
    Lack.TESTS: "Write contract and tests anew.",
    Lack.MORE_TESTS: "Write further tests, in files of their own, that notice this, and a contract "
    "for what they ask beyond the request.",
    Lack.QUESTION: "Write the question anew.",
}


class WriterError(Exception):
    """What the model wrote can't be used; the text says why."""


async def write(draft: Draft, endpoint: Endpoint, complaint: str = "") -> Candidate:
    """The completed candidate. `complaint`: why what was written before was dropped.

    Raises WriterError where the answer can't be used, and EngineError where there is none.
    """
    one = draft.candidate
    question = draft.lacks is Lack.QUESTION
    prompt = _about_value(one) if question else _about_tests(one)
    if complaint:
        prompt += f"\n\nDropped because of {complaint}\n{_AGAIN[draft.lacks]}"
    system = _QUESTION if question else _TESTS
    said = _parsed(await endpoint.ask(prompt, system=system, max_tokens=_ANSWER_TOKENS))
    return _with_question(one, said) if question else _with_tests(one, said)


def _about_tests(one: Candidate) -> str:
    solved = one.solved()
    parts = [f"The request:\n{one.instruction}"]
    room = _SHOWN
    for path in one.after:
        for title, files in (("before", one.before), ("finished", solved)):
            text = files.get(path, b"").decode(errors="replace")
            parts.append(f"`{path}`, {title}:\n{text[:room] or '(not there)'}")
            room = max(0, room - len(text))
    for path, content in one.hidden.items():
        parts.append(f"Tests so far, `{path}`:\n{content.decode(errors='replace')[:room]}")
    return "\n\n".join(parts)


def _about_value(one: Candidate) -> str:
    parts = [f"A command printed the value {one.check.expected}:\n{one.oracle_command}"]
    room = _SHOWN // 4
    for path in one.data:
        text = one.before[path].decode(errors="replace")
        parts.append(f"`{path}`, {len(text)} characters, begins:\n{text[:room]}")
        room = max(0, room - len(text))
    return "\n\n".join(parts)


def _parsed(answer: str) -> dict[str, Any]:
    """The first JSON object in an answer, fenced or not."""
    start = answer.find("{")
    try:
        found, _ = json.JSONDecoder(strict=False).raw_decode(answer[max(start, 0) :])
    except ValueError:
        raise WriterError("the answer holds no JSON object") from None
    if not isinstance(found, dict):
        raise WriterError("the answer holds no JSON object")
    return found


def _with_tests(one: Candidate, said: dict[str, Any]) -> Candidate:
    contract = _text(said, "contract")
    tests = said.get("tests")
    if not isinstance(tests, dict) or not 1 <= len(tests) <= _MOST_FILES:
        raise WriterError(f"`tests` must hold 1 to {_MOST_FILES} files")
    hidden: dict[str, bytes] = {}
    for path, text in tests.items():
        if not isinstance(text, str) or not _TEST_NAME.fullmatch(path):
            raise WriterError(f"{path[:80]!r} can't be a test file; name it test_….py")
        if path in one.before or path in one.after or path in one.hidden:
            raise WriterError(f"{path} is there already; choose another name")
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError) as error:
            raise WriterError(f"{path}: {error}") from None
        if not any(isinstance(node, ast.Assert | ast.Call) for node in ast.walk(tree)):
            raise WriterError(f"{path} asserts nothing")
        hidden[path] = text.encode()
    if sum(map(len, hidden.values())) > _MOST_TEST_BYTES:
        raise WriterError(f"the tests have more than {_MOST_TEST_BYTES} bytes")
    instruction = f"{one.instruction}\n\n{contract}"
    return replace(one, instruction=instruction, hidden={**one.hidden, **hidden})


def _with_question(one: Candidate, said: dict[str, Any]) -> Candidate:
    question = _text(said, "question")
    missing = next((path for path in one.data if path not in question), "")
    if missing:
        raise WriterError(f"the question doesn't name {missing}")
    return replace(one, instruction=question + ASK)


def _text(said: dict[str, Any], key: str) -> str:
    low, high = _CONTRACT
    text = said.get(key)
    if not isinstance(text, str) or not low <= len(text.strip()) <= high:
        raise WriterError(f"`{key}` must be a text of {low} to {high} characters")
    return text.strip()
