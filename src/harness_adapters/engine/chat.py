"""Between chat messages and token ids: the model's template, run so that turns chain.

Two things decide whether a session's later prompt extends its earlier turn token by token: the
template has to write what the model wrote, and the text must be cut into tokens where the engine
cut it. So the assistant's text is encoded apart from the header before it, and text that came from
outside never turns into control tokens, whatever it holds.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness_adapters.engine import ParsedReply
from harness_adapters.engine.calls import CallFormat, load_arguments, parse, write
from harness_adapters.engine.chat_template import CHATML_JSON, MARK
from harness_adapters.engine.models import ModelProfile, load_with_own_code, untrained_tokens
from harness_adapters.errors import ModelError
from harness_adapters.records import Message, ToolSchema

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

# Noncharacters of Unicode's private plane 16: no tokenizer, template or tool output has them.
_OPEN, _CLOSE, _CUT = "\U0010fff0", "\U0010fff1", "\U0010fff2"
_PIECES = re.compile(f"{_OPEN}([^{_CLOSE}]*){_CLOSE}|{_CUT}")


class TemplateChat:
    """A ChatFormat around the tokenizer's own template, or ours where that has no tools."""

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        call_format: CallFormat,
        template: str,
        end_ids: list[int],
    ) -> None:
        self._tokenizer = tokenizer
        self._template = template
        self._ours = template.startswith(MARK)
        self._end_ids = end_ids
        self._ends = [tokenizer.convert_ids_to_tokens(i) for i in end_ids]
        self.call_format = call_format
        special = sorted(
            {token.content for token in tokenizer.added_tokens_decoder.values()}, key=len
        )
        self._special = re.compile("|".join(re.escape(s) for s in reversed(special)) or r"(?!)")

    @classmethod
    def load(
        cls, model_dir: Path, profile: ModelProfile, trust_remote_code: bool = False
    ) -> TemplateChat:
        """The format of the model in `model_dir`. Raises ModelError."""
        from transformers import AutoTokenizer

        try:
            tokenizer = load_with_own_code(
                lambda trust: AutoTokenizer.from_pretrained(model_dir, trust_remote_code=trust),
                model_dir,
                allowed=trust_remote_code,
            )
        except (OSError, ValueError, KeyError) as error:
            first = (str(error).splitlines() or ["no message"])[0]
            raise ModelError(f"{model_dir}: no tokenizer can be loaded: {first}") from None
        template = tokenizer.chat_template if isinstance(tokenizer.chat_template, str) else ""
        call_format = profile.call_format
        known = tokenizer.get_vocab()
        chatml = "<|im_start|>" in known and "<|im_end|>" in known
        tags = [known[tag] for tag in ("<tool_call>", "</tool_call>") if tag in known]
        if template.startswith(MARK):
            call_format = CallFormat.FENCED_JSON
        elif chatml and (
            "tools" not in template
            or (call_format is CallFormat.HERMES and untrained_tokens(model_dir, tags))
        ):
            template, call_format = CHATML_JSON, CallFormat.FENCED_JSON
        elif not template:
            raise ModelError(
                f"{model_dir}: the tokenizer has no chat template and no ChatML tokens; "
                "use an instruction-tuned model"
            )
        return cls(tokenizer, call_format, template, _end_ids(tokenizer, model_dir))

    @property
    def end_ids(self) -> list[int]:
        """Token ids that end a turn."""
        return list(self._end_ids)

    def render(self, messages: list[Message], tools: list[ToolSchema]) -> list[int]:
        """Prompt ids up to and including the opening of the assistant's turn."""
        ids: list[int] = []
        position, text = 0, self._text(messages, tools)
        for match in _PIECES.finditer(text):
            ids += self._markup(text[position : match.start()])
            if match.group(1):
                ids += self.encode(match.group(1))
            position = match.end()
        return ids + self._markup(text[position:])

    def render_text(self, messages: list[Message], tools: list[ToolSchema]) -> str:
        """The prompt as text, for people and for comparison with other renderers."""
        return _PIECES.sub(lambda m: m.group(1) or "", self._text(messages, tools))

    def parse(self, text: str) -> ParsedReply:
        """Read decoded output (special tokens kept). Never raises on model output."""
        for end in self._ends:
            text = text.removesuffix(end)
        return parse(text, self.call_format)

    def write_call(self, name: str, arguments: str) -> str:
        """A tool call in the model's own form, as `render` writes it in histories."""
        return write(name, arguments, self.call_format)

    def encode(self, text: str) -> list[int]:
        """Token ids of plain text: control tokens in it are spelled out, not obeyed."""
        encoded = self._tokenizer(_clean(text), add_special_tokens=False, split_special_tokens=True)
        return [int(i) for i in encoded["input_ids"]]

    def decode(self, ids: list[int]) -> str:
        """Text of ids, special tokens kept."""
        decoded = self._tokenizer.decode(
            ids, skip_special_tokens=False, clean_up_tokenization_spaces=False
        )
        return str(decoded)

    def _markup(self, text: str) -> list[int]:
        encoded = self._tokenizer(text, add_special_tokens=False) if text else {"input_ids": []}
        return [int(i) for i in encoded["input_ids"]]

    def _text(self, messages: list[Message], tools: list[ToolSchema]) -> str:
        """The template's output, with marks around text that must be encoded apart."""
        rendered = self._tokenizer.apply_chat_template(
            [self._normal(message) for message in messages],
            tools=tools or None,
            chat_template=self._template,
            add_generation_prompt=True,
            tokenize=False,
        )
        return str(rendered)

    def _normal(self, message: Message) -> Message:
        """One message as templates like it: text content, arguments as objects."""
        role = "system" if message["role"] == "developer" else message["role"]
        content = self._guarded(text_content(message.get("content")))
        if self._ours and role == "assistant" and content:
            content = _CUT + content
        normal: Message = {**message, "role": role, "content": content}
        if calls := message.get("tool_calls"):
            normal["tool_calls"] = [self._normal_call(call) for call in calls]
        return normal

    def _normal_call(self, call: dict[str, Any]) -> dict[str, Any]:
        function = call.get("function") or {}
        arguments = load_arguments(function.get("arguments"))
        guarded = (
            self._guarded(arguments) if isinstance(arguments, str) else self._guard_all(arguments)
        )
        return {**call, "function": {**function, "arguments": guarded}}

    def _guard_all(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._guarded(value)
        if isinstance(value, dict):
            return {self._guarded(str(k)): self._guard_all(v) for k, v in value.items()}
        if isinstance(value, list):
            return [self._guard_all(v) for v in value]
        return value

    def _guarded(self, text: str) -> str:
        text = _clean(re.sub(f"[{_OPEN}{_CLOSE}{_CUT}]", "\N{REPLACEMENT CHARACTER}", text))
        return self._special.sub(lambda m: f"{_OPEN}{m.group()}{_CLOSE}", text)


def text_content(content: object) -> str:
    """A message's content as text: a string, null, or a list of OpenAI content parts."""
    if content is None:
        return ""
    if isinstance(content, list):
        parts = [p.get("text", "") if isinstance(p, dict) else str(p) for p in content]
        return "".join(str(part) for part in parts)
    return str(content)


def _clean(text: str) -> str:
    """Text that can be encoded: halves of surrogate pairs become replacement characters."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _end_ids(tokenizer: PreTrainedTokenizerBase, model_dir: Path) -> list[int]:
    """The tokenizer's end token, ChatML's, and those the generation config names."""
    import json

    ids: list[int] = [] if tokenizer.eos_token_id is None else [int(tokenizer.eos_token_id)]
    try:
        generation = json.loads((model_dir / "generation_config.json").read_text())
    except (OSError, ValueError):
        generation = {}
    named = generation.get("eos_token_id") if isinstance(generation, dict) else None
    ids += [named] if isinstance(named, int) else (named or [])
    vocabulary = tokenizer.get_vocab()
    ids += [vocabulary[t] for t in ("<|im_end|>", "<|endoftext|>") if t in vocabulary]
    if not ids:
        raise ModelError(f"{model_dir}: the tokenizer names no end token")
    return list(dict.fromkeys(ids))
