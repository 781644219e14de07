"""Batched decoding with transformers: a batch that rows join and leave, and a prefix cache.

Keys and values are `[rows, heads, tokens, width]` per layer. Rows of different length stand flush
right; the tokens on their left are padding that the attention mask hides. Models whose cache holds
more than keys and values (short convolutions, sliding windows) decode one row at a time, without
a prefix cache: their state can't be cut at a token.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import torch
from transformers import DynamicCache

KeyValues: TypeAlias = list[tuple[torch.Tensor, torch.Tensor]]
"""Keys and values of one row per layer, each `[1, heads, tokens, width]`."""


@dataclass(slots=True, eq=False)
class Row:
    """One request while it is decoded."""

    prompt_ids: list[int]
    temperature: float
    max_tokens: int
    generator: torch.Generator | None
    output_ids: list[int] = field(default_factory=list[int])
    logprobs: list[float] = field(default_factory=list[float])
    cached_tokens: int = 0


class PrefixCache:
    """Keys and values of token sequences, per adapter, least recently used out first."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self._entries: OrderedDict[tuple[str, tuple[int, ...]], KeyValues] = OrderedDict()

    def longest(self, adapter: str, ids: list[int]) -> tuple[int, KeyValues]:
        """The longest stored prefix of `ids`: its length and its keys and values."""
        best, key = 0, None
        for owner, stored in self._entries:
            if owner == adapter and (common := _common(stored, ids)) > best:
                best, key = common, (owner, stored)
        if key is None:
            return 0, []
        self._entries.move_to_end(key)
        return best, [(k[:, :, :best], v[:, :, :best]) for k, v in self._entries[key]]

    def store(self, adapter: str, ids: list[int], values: KeyValues) -> None:
        """Keep a row's keys and values; shorter entries that it extends are dropped."""
        key = (adapter, tuple(ids))
        for old in [k for k in self._entries if k[0] == adapter and k[1] == key[1][: len(k[1])]]:
            self._bytes -= _size(self._entries.pop(old))
        self._entries[key] = values
        self._bytes += _size(values)
        while self._bytes > self._max_bytes and len(self._entries) > 1:
            self._bytes -= _size(self._entries.popitem(last=False)[1])

    def forget(self, adapter: str) -> None:
        """Drop everything of one adapter."""
        for key in [k for k in self._entries if k[0] == adapter]:
            self._bytes -= _size(self._entries.pop(key))


class Batch:
    """Rows that decode together under one adapter."""

    def __init__(self, model: Any, adapter: str, prefixes: PrefixCache, *, plain: bool) -> None:
        self._model = model
        self._adapter = adapter
        self._prefixes = prefixes
        self._plain = plain
        self._cache: Any = None
        self._lengths: list[int] = []
        """Real tokens of each row in the cache."""
        self.rows: list[Row] = []

    def join(self, row: Row) -> None:
        """Run the row's prompt, sample its first token and take it in."""
        known, values = self._prefixes.longest(self._adapter, row.prompt_ids[:-1])
        row.cached_tokens = known
        cache = DynamicCache(config=self._model.config)
        for layer, (keys, vals) in enumerate(values):
            cache.update(keys, vals, layer)
        ids = torch.tensor([row.prompt_ids[known:]], device=self._model.device)
        logits = self._model(
            input_ids=ids, past_key_values=cache, use_cache=True, logits_to_keep=1
        ).logits
        sample(logits[:, -1], [row])
        if self._plain:
            self._prefixes.store(self._adapter, row.prompt_ids, _key_values(cache))
        if self._cache is None:
            self._cache = cache
        else:
            assert self._plain, "a hybrid model's rows don't batch"
            self._cache = self._joined(_key_values(self._cache), _key_values(cache))
        self._lengths.append(len(row.prompt_ids))
        self.rows.append(row)

    def step(self) -> None:
        """One more token for every row."""
        device = self._model.device
        total = max(self._lengths) + 1
        lengths = torch.tensor(self._lengths, device=device)[:, None]
        inputs: dict[str, Any] = {
            "input_ids": torch.tensor([[row.output_ids[-1]] for row in self.rows], device=device)
        }
        if len(self.rows) > 1:
            mask = torch.arange(total, device=device)[None] >= total - 1 - lengths
            inputs |= {"attention_mask": mask.long(), "position_ids": lengths}
        logits = self._model(**inputs, past_key_values=self._cache, use_cache=True).logits
        self._lengths = [length + 1 for length in self._lengths]
        sample(logits[:, -1], self.rows)

    def leave(self, leaving: list[Row]) -> None:
        """Take rows out and keep what was computed for them as a prefix."""
        stay = [i for i, row in enumerate(self.rows) if row not in leaving]
        if self._plain:
            for index, row in enumerate(self.rows):
                if row in leaving:
                    # The last sampled token was never run.
                    ids = (row.prompt_ids + row.output_ids)[: self._lengths[index]]
                    self._prefixes.store(self._adapter, ids, self._row(index))
        self.rows = [self.rows[i] for i in stay]
        lengths = [self._lengths[i] for i in stay]
        if not stay:
            self._cache, self._lengths = None, []
            return
        kept = DynamicCache(config=self._model.config)
        longest = max(lengths)
        for layer, (keys, vals) in enumerate(_key_values(self._cache)):
            kept.update(keys[stay, :, -longest:], vals[stay, :, -longest:], layer)
        self._cache, self._lengths = kept, lengths

    def _row(self, index: int) -> KeyValues:
        length = self._lengths[index]
        return [
            (k[index : index + 1, :, -length:].clone(), v[index : index + 1, :, -length:].clone())
            for k, v in _key_values(self._cache)
        ]

    def _joined(self, left: KeyValues, right: KeyValues) -> Any:
        joined = DynamicCache(config=self._model.config)
        for layer, ((k1, v1), (k2, v2)) in enumerate(zip(left, right, strict=True)):
            total = max(k1.shape[2], k2.shape[2])
            joined.update(
                torch.cat([_padded(k1, total), _padded(k2, total)]),
                torch.cat([_padded(v1, total), _padded(v2, total)]),
                layer,
            )
        return joined


def sample(logits: torch.Tensor, rows: list[Row]) -> None:
    """Draw a token for each row from `logits` `[rows, vocabulary]`; temperature 0 is greedy."""
    for index, row in enumerate(rows):
        scale = row.temperature if row.temperature > 0 else 1.0
        logprobs = (logits[index].float() / scale).log_softmax(-1)
        if row.temperature > 0:
            token = int(torch.multinomial(logprobs.exp(), 1, generator=row.generator))
        else:
            token = int(logprobs.argmax())
        row.output_ids.append(token)
        row.logprobs.append(float(logprobs[token]))


def is_plain(model: Any) -> bool:
    """Whether the model's cache is keys and values of every token, and nothing else."""
    kinds = set(getattr(model.config, "layer_types", None) or ["full_attention"])
    window = getattr(model.config, "sliding_window", None)
    uses_window = window and getattr(model.config, "use_sliding_window", True)
    return kinds == {"full_attention"} and not (uses_window and not model.config.layer_types)


def _key_values(cache: Any) -> KeyValues:
    return [(layer.keys, layer.values) for layer in cache.layers]


def _padded(tensor: torch.Tensor, total: int) -> torch.Tensor:
    return torch.nn.functional.pad(tensor, (0, 0, total - tensor.shape[2], 0))


def _size(values: KeyValues) -> int:
    return sum(t.numel() * t.element_size() for pair in values for t in pair)


def _common(stored: tuple[int, ...], ids: list[int]) -> int:
    count = 0
    for a, b in zip(stored, ids, strict=False):
        if a != b:
            break
        count += 1
    return count
