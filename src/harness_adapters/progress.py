"""Progress of long work, for people: a live bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Protocol

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text


class Reporter(Protocol):
    """Told what is going on; every long function takes one."""

    def phase(self, name: str, total: int | None = None) -> None:
        """A new piece of work begins; `total` units where that is known."""
        ...

    def advance(self, units: int = 1, note: str = "") -> None:
        """So many units of the current phase are done; `note` is the latest figure."""
        ...

    def say(self, text: str) -> None:
        """One line that stays."""
        ...


class Quiet:
    """Says nothing."""

    def phase(self, name: str, total: int | None = None) -> None:
        """Ignored."""

    def advance(self, units: int = 1, note: str = "") -> None:
        """Ignored."""

    def say(self, text: str) -> None:
        """Ignored."""


class Labelled:
    """One of several who report at once: its lines carry its name.

    Of its phases only the training moves the shared bar; the others become lines.
    """

    def __init__(self, reporter: Reporter, name: str) -> None:
        """`reporter` shows one phase for all of them."""
        self._reporter, self._name = reporter, name
        self._counts = False

    def phase(self, name: str, total: int | None = None) -> None:
        """A line; what follows counts if it is the training."""
        self._counts = name == "training"
        if not self._counts:
            self._reporter.say(f"{self._name}: {name}")

    def advance(self, units: int = 1, note: str = "") -> None:
        """Moves the shared bar while training."""
        if self._counts:
            self._reporter.advance(units, note)

    def say(self, text: str) -> None:
        """One line that stays."""
        self._reporter.say(f"{self._name}: {text}")


class ConsoleReporter:
    """A bar with elapsed and remaining time; without a terminal, a line each 15 seconds.

    Use as a context manager so that the bar is taken down.
    """

    def __init__(self, console: Console, *, interval: float = 15.0) -> None:
        self._console = console
        self._live = console.is_terminal
        self._interval = interval
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=28),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[note]}"),
            console=console,
            disable=not self._live,
        )
        self._task: TaskID | None = None
        self._name = ""
        self._total: int | None = None
        self._done = 0
        self._start = self._printed = self._begin = time.monotonic()

    def __enter__(self) -> ConsoleReporter:
        """Show the bar."""
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Take the bar down."""
        self._progress.stop()

    def phase(self, name: str, total: int | None = None) -> None:
        """Begin a new bar or line."""
        if self._task is not None:
            self._progress.remove_task(self._task)
        self._name, self._total, self._done = name, total, 0
        self._start = self._printed = time.monotonic()
        self._task = self._progress.add_task(name, total=total, note="")
        self._line(name)

    def advance(self, units: int = 1, note: str = "") -> None:
        """Move the bar; without a terminal print the state now and then."""
        self._done += units
        if self._task is not None:
            self._progress.update(self._task, advance=units)
            if note:
                self._progress.update(self._task, note=note)
        now = time.monotonic()
        if not self._live and now - self._printed >= self._interval:
            self._printed = now
            self._line(f"  {self._state(now)} {note}")

    def say(self, text: str) -> None:
        """Print one line above the bar."""
        self._line(text)

    def _line(self, text: str) -> None:
        """Text from elsewhere (paths, log lines, task names): never read as markup."""
        line = Text.assemble((self._clock(), "dim"), " ", text)
        self._console.print(line, highlight=False, soft_wrap=not self._live)

    def _state(self, now: float) -> str:
        if not self._total:
            return f"{self._done} done"
        left = (now - self._start) / max(1, self._done) * (self._total - self._done)
        return f"{self._done}/{self._total}, about {left / 60:.1f} min left"

    def _clock(self) -> str:
        minutes, seconds = divmod(int(time.monotonic() - self._begin), 60)
        return f"{minutes:3d}:{seconds:02d}"
