"""What is known of one file at one moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Certainty(StrEnum):
    """How sure a file's content is."""

    EXACT = "exact"
    """It follows from the log, byte for byte, by operations that are fully modelled."""
    INFERRED = "inferred"
    """All of it is known, but something was assumed: a tolerant edit, an unseen final line end, or
    that a program which ran did not change it."""
    PARTIAL = "partial"
    """Only some lines are known, or none."""


@dataclass(frozen=True, slots=True)
class Content:
    """A file's content. `text` is None when the file does not exist, or is only partly known."""

    text: str | None
    certainty: Certainty = Certainty.EXACT
    lines: Mapping[int, str] = field(default_factory=dict[int, str])
    """PARTIAL: known lines by number, from 1, without their ends."""

    @property
    def exists(self) -> bool:
        """Whether the file is there."""
        return self.text is not None or self.certainty is Certainty.PARTIAL

    @property
    def known(self) -> bool:
        """Whether its whole text is known."""
        return self.text is not None


ABSENT = Content(None)
"""A file that is known not to exist."""

UNKNOWN = Content(None, Certainty.PARTIAL)
"""A file that exists, and nothing more is known."""


def doubted(content: Content) -> Content:
    """The same content after something that may have changed it and probably didn't."""
    if content.certainty is Certainty.EXACT:
        return Content(content.text, Certainty.INFERRED, content.lines)
    return content
