"""The tokens that all rows of a step start with: their states, and the way back through them.

Branches read the states as leaves. What they send back is handed through the trunk at the end, once
for all. A short trunk keeps its graph until then. A long one is cut into segments, each of which
reads the states of those before it: they are computed once without a graph, and again one by one,
the last first, on the way back. So memory holds the states and the graph of one segment, however
long the prompt is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias

import torch

from harness_adapters.learner.attention import reached
from harness_adapters.learner.tree import States
from harness_adapters.learner.trie import Packed, chain

Tensor: TypeAlias = torch.Tensor
Recorded: TypeAlias = tuple[dict[int, States], dict[int, int]]
"""States by layer, and the windows of layers that have one."""


class Pass(Protocol):
    """One forward pass over a chain below states that are given."""

    def __call__(self, packed: Packed, trunk: dict[int, States], *, windows: bool) -> Recorded:
        """With `windows`, states of windowed layers are whole, and the windows are told."""
        ...


class Trunk(Protocol):
    """What `shared_forward` needs of either kind."""

    leaves: dict[int, States]
    """By layer, for branches to read; their gradients add up here."""

    def backward(self) -> None:
        """Hand the leaves' gradients through the trunk."""
        ...


class WholeTrunk:
    """One pass, whose graph is kept."""

    def __init__(self, run: Pass, ids: Sequence[int], *, segment: int, grad: bool) -> None:
        """`segment` is not used: there is one."""
        with torch.set_grad_enabled(grad):
            self._states, _ = run(chain(ids), {}, windows=False)
        self.leaves = _leaves(self._states) if grad else self._states

    def backward(self) -> None:
        """See `Trunk`."""
        pairs = [
            (output, leaf.grad)
            for layer, parts in self._states.items()
            for output, leaf in zip(parts, self.leaves[layer], strict=True)
        ]
        _backward(pairs)


class SegmentedTrunk:
    """Passes over `segment` tokens each, computed again on the way back.

    Keys and values [K, P, D] lie in one tensor for all P tokens, into which segments write and of
    which they read what is before them. The inputs of a short convolution [L - 1, D] are handed
    from segment to segment.
    """

    def __init__(self, run: Pass, ids: Sequence[int], *, segment: int, grad: bool) -> None:
        """`segment`: tokens of a pass."""
        self._run, self._ids = run, ids
        self._bounds = [(a, min(a + segment, len(ids))) for a in range(0, len(ids), segment)]
        self._sequences: dict[int, tuple[Tensor, ...]] = {}
        self._handed: dict[int, list[Tensor]] = {}
        self._windows: dict[int, int] = {}
        with torch.no_grad():
            for start, stop in self._bounds:
                self._keep(*self._segment(start, stop, self._before(start)), start, stop)
        states = self._before(len(ids))
        self.leaves = _leaves(states) if grad else states

    def _segment(self, start: int, stop: int, before: dict[int, States]) -> Recorded:
        return self._run(chain(self._ids[start:stop], start), before, windows=True)

    def _keep(
        self, states: dict[int, States], windows: dict[int, int], start: int, stop: int
    ) -> None:
        self._windows |= windows
        for layer, parts in states.items():
            if len(parts) == 1:
                self._handed.setdefault(layer, []).append(parts[0].clone())
                continue
            if layer not in self._sequences:
                self._sequences[layer] = tuple(self._empty(part) for part in parts)
            for whole, part in zip(self._sequences[layer], parts, strict=True):
                whole[:, start:stop] = part

    def _empty(self, part: Tensor) -> Tensor:
        return part.new_empty(part.shape[0], len(self._ids), part.shape[2])

    def _before(self, end: int) -> dict[int, States]:
        """What the token at `end` sees of those before it."""
        if end == 0:
            return {}
        number = sum(stop <= end for _, stop in self._bounds)
        seen: dict[int, States] = {
            layer: tuple(whole[:, self._first(layer, end) : end] for whole in parts)
            for layer, parts in self._sequences.items()
        }
        return seen | {layer: (parts[number - 1],) for layer, parts in self._handed.items()}

    def _first(self, layer: int, end: int) -> int:
        window = self._windows.get(layer)
        return 0 if window is None else max(0, end - reached(window))

    def backward(self) -> None:
        """See `Trunk`. Gradients of keys and values add up in float32."""
        sums = {
            layer: tuple(torch.zeros_like(whole, dtype=torch.float32) for whole in parts)
            for layer, parts in self._sequences.items()
        }
        handed = self._take(self.leaves, sums, len(self._ids))
        for start, stop in reversed(self._bounds):
            before = _leaves(self._before(start))
            with torch.enable_grad():
                states, _ = self._segment(start, stop, before)
            pairs: list[tuple[Tensor, Tensor | None]] = []
            for layer, parts in states.items():
                if layer in sums:
                    grads = [whole[:, start:stop].to(parts[0].dtype) for whole in sums[layer]]
                    pairs += zip(parts, grads, strict=True)
                else:
                    pairs.append((parts[0], handed.get(layer)))
            del states
            _backward(pairs)
            handed = self._take(before, sums, start)

    def _take(
        self, leaves: dict[int, States], sums: dict[int, tuple[Tensor, ...]], end: int
    ) -> dict[int, Tensor | None]:
        """Add up what came back to the tokens before `end`; what convolutions hand further back."""
        for layer, parts in leaves.items():
            for whole, leaf in zip(sums.get(layer, ()), parts, strict=False):
                if leaf.grad is not None:
                    whole[:, self._first(layer, end) : end] += leaf.grad
        return {layer: parts[0].grad for layer, parts in leaves.items() if layer not in sums}


def _leaves(states: dict[int, States]) -> dict[int, States]:
    return {
        layer: tuple(part.detach().contiguous().requires_grad_() for part in parts)
        for layer, parts in states.items()
    }


def _backward(pairs: Sequence[tuple[Any, Tensor | None]]) -> None:
    """Hand gradients to the outputs that want them."""
    wanted = [(out, grad) for out, grad in pairs if out.requires_grad and grad is not None]
    if wanted:
        torch.autograd.backward([out for out, _ in wanted], [grad for _, grad in wanted])
