"""Several processes, one for each GPU, that compute one update together (data parallel).

Each holds the whole model and the same adapter. The rollouts of a step are shared out, each process
computes the gradients of its own, the gradients are summed, and all take the same optimizer step
with the same numbers. So weights stay equal, and equal those of one process but for the order of
sums. What a request asks reaches all; only the first answers, publishes and writes.

Plain `torch.distributed`: NCCL between GPUs, gloo on a CPU and for everything that isn't a tensor.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import torch
import torch.distributed as dist

from harness_adapters.errors import LearnerError
from harness_adapters.learner.rows import Row
from harness_adapters.learner.trie import common_prefix

Tensor: TypeAlias = torch.Tensor
Value = TypeVar("Value")

PATIENCE = timedelta(days=30)
"""The others wait this long for the next request: a learner may be idle for hours."""


class Ranks:
    """This process's place among `count`; the first has rank 0. Alone, nothing is exchanged."""

    def __init__(self, rank: int = 0, count: int = 1, meeting: Path | None = None) -> None:
        """`meeting`: a file that isn't there yet, the same for all, where they find each other."""
        self.rank = rank
        self.count = count
        self._talk: Any = None
        if count > 1:
            assert meeting is not None
            gpu = torch.cuda.is_available()
            if gpu:
                torch.cuda.set_device(rank)
            _arrival(meeting, rank).touch()
            with _ends_with_the_others():
                dist.init_process_group(
                    "nccl" if gpu else "gloo",
                    init_method=f"file://{meeting}", rank=rank, world_size=count, timeout=PATIENCE,
                )  # fmt: skip
                self._talk = dist.new_group(backend="gloo", timeout=PATIENCE)

    @property
    def first(self) -> bool:
        """Whether this is the process that answers and writes."""
        return self.rank == 0

    def device(self, name: str) -> str:
        """A GPU of its own for each process, where `name` leaves the choice."""
        several = self.count > 1 and torch.cuda.is_available() and name in ("auto", "cuda")
        return f"cuda:{self.rank}" if several else name

    def own(self, rows: Sequence[Row]) -> list[Row]:
        """This process's part of a batch's rows; the parts of all are the whole."""
        if self.count == 1:
            return list(rows)
        mine = shares(rows, self.count)[self.rank]
        return [row for row in rows if row.rollout in mine]

    def sum_gradients(self, parameters: Sequence[Tensor]) -> None:
        """Add up what all computed; parameters that some didn't touch have gradient 0 there."""
        if self.count == 1:
            return
        flat = torch.cat(
            [(torch.zeros_like(p) if p.grad is None else p.grad).flatten() for p in parameters]
        )
        with _ends_with_the_others():
            dist.all_reduce(flat)
        parts = flat.split([p.numel() for p in parameters])
        for parameter, part in zip(parameters, parts, strict=True):
            parameter.grad = part.view_as(parameter).clone()

    def gather(self, value: Value) -> list[Value]:
        """What each process gives, by rank; pickled."""
        if self.count == 1:
            return [value]
        found: list[Any] = [None] * self.count
        with _ends_with_the_others():
            dist.all_gather_object(found, value, group=self._talk)
        return found

    def tell(self, request: str) -> None:
        """From the first process to all others."""
        if self.count > 1:
            with _ends_with_the_others():
                dist.broadcast_object_list([request], src=0, group=self._talk)

    def hear(self) -> str:
        """The next thing that the first process tells."""
        heard: list[Any] = [None]
        with _ends_with_the_others():
            dist.broadcast_object_list(heard, src=0, group=self._talk)
        return str(heard[0])


@contextmanager
def _ends_with_the_others() -> Iterator[None]:
    """A lost process can't be made up for: the last checkpoint is where the run goes on."""
    try:
        yield
    except RuntimeError as error:
        first = str(error).splitlines()[0]
        raise SystemExit(f"another learner process ended or can't be reached: {first}") from None


def shares(rows: Sequence[Row], count: int) -> list[set[int]]:
    """Rollouts by process: neighbours in the trie, so that they share tokens, and about as many
    distinct tokens for each. Some are empty when there are fewer rollouts than processes.
    """
    first: dict[int, list[int]] = {}
    fresh: dict[int, int] = {}
    before: list[int] = []
    for row in sorted(rows, key=lambda row: row.ids):
        first.setdefault(row.rollout, row.ids)
        new = len(row.ids) - common_prefix(before, row.ids)
        fresh[row.rollout] = fresh.get(row.rollout, 0) + new
        before = row.ids
    result: list[set[int]] = [set() for _ in range(count)]
    total, done = sum(fresh.values()), 0
    for rollout in first:
        middle = done + fresh[rollout] / 2
        result[min(count - 1, int(middle * count / max(1, total)))].add(rollout)
        done += fresh[rollout]
    return result


def _arrival(meeting: Path, rank: int) -> Path:
    return meeting.with_name(f"rank-{rank}")


@contextmanager
def gathered(count: int, arguments: Callable[[int, Path], list[str]]) -> Iterator[Ranks]:
    """Start the other processes and be the first: `arguments` gives a rank's command line.

    They end with this process, however it ends, and are ended when the block is left. Raises
    LearnerError.
    """
    if count == 1:
        yield Ranks()
        return
    gpus = torch.cuda.device_count() if torch.cuda.is_available() else count
    if gpus < count:
        raise LearnerError(f"train.processes is {count}, but there are only {gpus} GPUs; lower it")
    with tempfile.TemporaryDirectory() as folder:
        meeting = Path(folder, "meeting")
        others = [
            subprocess.Popen(
                [sys.executable, "-m", *arguments(rank, meeting), "--parent", str(os.getpid())],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            )
            for rank in range(1, count)
        ]  # fmt: skip
        try:
            for rank, other in enumerate(others, 1):
                while not _arrival(meeting, rank).exists():
                    if other.poll() is not None:
                        raise LearnerError(
                            f"learner process {rank} of {count} ended with status"
                            f" {other.returncode} before it began; the learner's log says why"
                        )
                    time.sleep(0.05)
            yield Ranks(0, count, meeting)
        finally:
            for other in others:
                other.kill()
                other.wait()
