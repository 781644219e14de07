"""Reading and writing tool calls in the forms that models use.

Readers take hostile text: they never raise, and their work is linear in the text (the number of
places where a parse is tried is capped). What looks like a call but can't be read becomes a
malformed call, with its name where that is readable: a model must not learn that broken calls are
free.
"""

from __future__ import annotations

import ast
import itertools
import json
import re
import warnings
from enum import StrEnum
from typing import Any, NamedTuple

from harness_adapters.engine import ParsedCall, ParsedReply

MAX_CALLS = 64
"""Places in one answer where a call is looked for; the rest of the text is left as text."""

MAX_PYTHON = 32_768
"""Characters of one pythonic call list that Python's own parser is trusted with."""


class CallFormat(StrEnum):
    """How a model writes tool calls."""

    FENCED_JSON = "fenced_json"
    """A Markdown block: ```json, one object with name and arguments, ```."""
    HERMES = "hermes"
    """`<tool_call>` around one JSON object (Hermes, Qwen)."""
    PYTHONIC = "pythonic"
    """`<|tool_call_start|>[f(a=1)]<|tool_call_end|>` (LFM2)."""


def parse(text: str, call_format: CallFormat) -> ParsedReply:
    """Read an answer without its end token: the model's own form first, then the other ones."""
    readers = {
        CallFormat.PYTHONIC: [_python_blocks, _tagged_json, _fenced_json, _bare_json],
        CallFormat.HERMES: [_tagged_json, _fenced_json, _bare_json],
        CallFormat.FENCED_JSON: [_fenced_json, _tagged_json, _bare_json],
    }
    for read in readers[call_format]:
        if found := read(text):
            return _reply(text, found)
    return ParsedReply(text, [])


def write(name: str, arguments: str, call_format: CallFormat) -> str:
    """One call as the model should write it. `arguments` is JSON text."""
    loaded = load_arguments(arguments)
    if call_format is CallFormat.PYTHONIC and isinstance(loaded, dict):
        pairs = ", ".join(f"{key}={value!r}" for key, value in loaded.items())
        return f"{PYTHONIC_TAGS[0]}[{name}({pairs})]{PYTHONIC_TAGS[1]}"
    body = arguments if isinstance(loaded, str) else dump(loaded)
    call = f'{{"name": {dump(name)}, "arguments": {body}}}'
    if call_format is CallFormat.FENCED_JSON:
        return f"```json\n{call}\n```"
    return f"{HERMES_TAGS[0]}\n{call}\n{HERMES_TAGS[1]}"


def load_arguments(arguments: str | dict[str, Any] | None) -> dict[str, Any] | str:
    """Arguments of a call in a history: an object, or the text itself when it isn't one."""
    if isinstance(arguments, dict):
        return arguments
    try:
        loaded = json.loads(arguments or "{}", strict=False)
    except (ValueError, RecursionError):
        return arguments or ""
    return loaded if isinstance(loaded, dict) else (arguments or "")


def dump(value: Any) -> str:
    """JSON as models write it: spaces after separators, non-ASCII as it is."""
    return json.dumps(value, ensure_ascii=False)


HERMES_TAGS = ("<tool_call>", "</tool_call>")
PYTHONIC_TAGS = ("<|tool_call_start|>", "<|tool_call_end|>")


class _Found(NamedTuple):
    start: int
    end: int
    calls: list[ParsedCall]


_FENCE = re.compile(r"```[a-zA-Z_]{0,16}[ \t]{0,4}\r?\n?[ \t]{0,4}(?=\{)")
_TAG = re.compile(r"<tool_call>\s{0,16}")
_OBJECT = re.compile(r'\{\s{0,16}"(?:name|function|arguments|parameters)"\s{0,4}:')
_NAME = re.compile(r'"(?:name|function)"\s{0,4}:\s{0,4}"([^"\\\n]{1,64})"')
_ARGUMENTS = re.compile(r'"(?:arguments|parameters)"')
_DECODER = json.JSONDecoder(strict=False)


def _reply(text: str, found: list[_Found]) -> ParsedReply:
    """The text outside of the calls is content; blank stretches between calls are layout."""
    if not found:
        return ParsedReply(text, [])
    content = text[: found[0].start]
    if not content.strip():
        content = ""
    rest = [(a.end, b.start) for a, b in itertools.pairwise(found)]
    for start, end in [*rest, (found[-1].end, len(text))]:
        if text[start:end].strip():
            content += text[start:end]
    return ParsedReply(content, [call for part in found for call in part.calls])


def _python_blocks(text: str) -> list[_Found]:
    opening, closing = PYTHONIC_TAGS
    found: list[_Found] = []
    position = 0
    while len(found) < MAX_CALLS and (start := text.find(opening, position)) >= 0:
        body = start + len(opening)
        end = text.find(closing, body)
        # A missing closing tag: the answer was cut, or the model forgot it.
        stop = end if end >= 0 else len(text)
        position = end + len(closing) if end >= 0 else len(text)
        found.append(_Found(start, position, _pythonic(text[body:stop])))
    return found


def _tagged_json(text: str) -> list[_Found]:
    return _json_blocks(text, _TAG, HERMES_TAGS[1], always_call=True)


def _fenced_json(text: str) -> list[_Found]:
    return _json_blocks(text, _FENCE, "```", always_call=False)


def _json_blocks(
    text: str, opening: re.Pattern[str], closing: str, *, always_call: bool
) -> list[_Found]:
    """Blocks that hold one JSON object; `always_call` when nothing else can be meant by them."""
    found: list[_Found] = []
    position = 0
    for _ in range(MAX_CALLS):
        match = opening.search(text, position)
        if not match:
            break
        decoded = _decode(text, match.end())
        # What closes the block stands after the object: inside it, it is part of a string.
        end = text.find(closing, decoded[1] if decoded else match.end())
        stop = end if end >= 0 else len(text)
        position = end + len(closing) if end >= 0 else len(text)
        body = text[match.end() : stop]
        call = _as_call(decoded[0]) if decoded else None
        if call is None and (always_call or (not decoded and _looks_like_call(body))):
            call = _malformed(body)
        if call:
            found.append(_Found(match.start(), position, [call]))
    return found


def _bare_json(text: str) -> list[_Found]:
    found: list[_Found] = []
    position = 0
    for _ in range(MAX_CALLS):
        match = _OBJECT.search(text, position)
        if not match:
            break
        decoded = _decode(text, match.start())
        if decoded is None:
            # Cut or broken: no later object can be told from this one's inside.
            if _looks_like_call(body := text[match.start() :]):
                found.append(_Found(match.start(), len(text), [_malformed(body)]))
            break
        position = decoded[1]
        if call := _as_call(decoded[0]):
            found.append(_Found(match.start(), position, [call]))
    return found


def _decode(text: str, start: int) -> tuple[Any, int] | None:
    try:
        return _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError):
        return None


def _looks_like_call(body: str) -> bool:
    return bool(_NAME.search(body) and _ARGUMENTS.search(body))


def _malformed(body: str) -> ParsedCall:
    match = _NAME.search(body)
    return ParsedCall(match.group(1) if match else "", body.strip(), malformed=True)


def _as_call(value: Any) -> ParsedCall | None:
    """A decoded object as a call; None when it is some other JSON."""
    if not isinstance(value, dict):
        return None
    if isinstance(value.get("function"), dict):
        value = value["function"]
    name = value.get("name", value.get("function"))
    arguments = value.get("arguments", value.get("parameters"))
    if not isinstance(name, str) or not name or arguments is None:
        return None
    if isinstance(arguments, str):
        arguments = load_arguments(arguments)
    if not isinstance(arguments, dict):
        return ParsedCall(name, _text_of(arguments) or "", malformed=True)
    written = _text_of(arguments)
    return ParsedCall(name, written or "{}", malformed=written is None)


def _text_of(value: Any) -> str | None:
    """JSON text that any reader accepts, or None: Python reads NaN, the standard doesn't."""
    if isinstance(value, str):
        return value
    try:
        written = json.dumps(value, ensure_ascii=False, allow_nan=False)
        written.encode()
    except UnicodeEncodeError:
        # Half of a surrogate pair, from an escape: only an escape can carry it on.
        return json.dumps(value, allow_nan=False)
    except (ValueError, RecursionError):
        return None
    return written


def _pythonic(body: str) -> list[ParsedCall]:
    """The calls of one pythonic list, e.g. `[read(path="a"), bash(command="ls")]`."""
    body = body.strip()
    if body.startswith("{"):
        decoded = _decode(body, 0)
        return [(decoded and _as_call(decoded[0])) or _malformed(body)]
    name = re.match(r"\[?\s{0,4}([A-Za-z_][\w.]{0,63})\(", body)
    malformed = [ParsedCall(name.group(1) if name else "", body, malformed=True)]
    if len(body) > MAX_PYTHON:
        return malformed
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes in strings, e.g. "\d"
            tree = ast.parse(body, mode="eval").body
        nodes = tree.elts if isinstance(tree, ast.List | ast.Tuple) else [tree]
        return [_python_call(node) for node in nodes] or malformed
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return malformed


def _python_call(node: ast.expr) -> ParsedCall:
    if not isinstance(node, ast.Call):
        raise ValueError("not a call")
    name = ast.unparse(node.func)
    if node.args or any(keyword.arg is None for keyword in node.keywords):
        return ParsedCall(name, ast.unparse(node), malformed=True)
    arguments = {str(k.arg): ast.literal_eval(_JsonNames().visit(k.value)) for k in node.keywords}
    written = json.dumps(arguments, ensure_ascii=False, allow_nan=False)
    return ParsedCall(name, written)


class _JsonNames(ast.NodeTransformer):
    """JSON's words inside Python text."""

    def visit_Name(self, node: ast.Name) -> ast.expr:
        words = {"true": True, "false": False, "null": None}
        return ast.Constant(words[node.id]) if node.id in words else node
