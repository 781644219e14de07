"""Near-duplicates by MinHash (Broder 1997): tasks whose shingles overlap by four fifths or more."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from harness_adapters.synthesis.candidate import Candidate

PERMUTATIONS = 128
BANDS = 32
"""Of 4 rows each: pairs of similarity 0.8 share a band with probability 1 - 5e-8."""
THRESHOLD = 0.8
_SHINGLE = 3
_WORD = re.compile(r"\w+|[^\w\s]")
_SEEDS = np.random.default_rng(20_011).integers(0, 1 << 63, PERMUTATIONS, dtype=np.uint64)

Signature = npt.NDArray[np.uint64]


def text_of(one: Candidate) -> str:
    """What makes a task the same as another: the instruction, the change and the tests."""
    contents = [*one.after.values(), *one.hidden.values()]
    texts = [content.decode(errors="replace") for content in contents if content]
    return "\n".join([one.instruction, one.check.command, one.oracle_command, *texts])


def signature(text: str) -> Signature:
    """MinHash values, shape [128], of all runs of three words and signs."""
    words = _WORD.findall(text.casefold())
    shingles = {" ".join(words[i : i + _SHINGLE]) for i in range(max(1, len(words) - 2))}
    hashes = np.array(
        [
            int.from_bytes(hashlib.blake2b(each.encode(), digest_size=8).digest(), "big")
            for each in sorted(shingles)
        ],
        dtype=np.uint64,
    )
    values: Signature = _mixed(hashes[:, None] ^ _SEEDS).min(axis=0)
    return values


def _mixed(values: Signature) -> Signature:
    """The finaliser of splitmix64 (Steele et al. 2014): each seed orders the hashes anew."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def similarity(one: Signature, other: Signature) -> float:
    """Estimate of the Jaccard similarity, in [0, 1]."""
    return float(np.mean(one == other))


class Index:
    """What was kept so far."""

    def __init__(self) -> None:
        self._bands: dict[tuple[int, bytes], list[str]] = {}
        self._signatures: dict[str, Signature] = {}

    def near(self, sign: Signature) -> tuple[str, float] | None:
        """The most similar entry at or above the threshold."""
        names = {name for key in _keys(sign) for name in self._bands.get(key, ())}
        found = [(similarity(sign, self._signatures[name]), name) for name in sorted(names)]
        best = max(found, default=(0.0, ""))
        return (best[1], best[0]) if best[0] >= THRESHOLD else None

    def add(self, name: str, sign: Signature) -> None:
        """Remember an entry."""
        self._signatures[name] = sign
        for key in _keys(sign):
            self._bands.setdefault(key, []).append(name)


def _keys(sign: Signature) -> Iterable[tuple[int, bytes]]:
    rows = PERMUTATIONS // BANDS
    return ((band, sign[band * rows : (band + 1) * rows].tobytes()) for band in range(BANDS))
