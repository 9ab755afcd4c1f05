"""A function that parses the text of strangers, with its refusals and the pieces to try."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

MOST_SECONDS = 2.0
#: Everything that a server reads of a request's head, see `h11_max_incomplete_event_size`.
OF_A_HEAD = 65_536
MEGABYTE = 1_000_000


@dataclass(frozen=True)
class Target:
    """A function that parses, its refusals, the pieces that mean something to it, and how long its text may be."""

    parse: Callable[[str], Any]
    refusals: tuple[type[Exception], ...] = ()
    pieces: tuple[str, ...] = ()
    longest: int = MEGABYTE

    def run(self, text: str) -> float:
        """Parse a text and return the seconds of processor time. Raises what is no refusal."""
        began = time.thread_time()
        with suppress(*self.refusals):
            self.parse(text[: self.longest])
        return time.thread_time() - began

    def seconds_of_longest(self, start: str, piece: str, end: str) -> float:
        """Return the processor time of the longest text that begins with `start`, repeats `piece` and ends so."""
        times = (self.longest - len(start) - len(end)) // max(len(piece), 1)
        return self.run(start + piece * times + end)

    @property
    def texts(self) -> st.SearchStrategy[str]:
        """Texts of its pieces, of what is odd everywhere, and of anything."""
        parts = st.sampled_from(self.pieces + ODD) | st.text(max_size=8)
        return st.lists(parts, max_size=24).map("".join)


ODD = (
    "", " ", "\n", "\r", "\r\n", "\t", "\x00", "\x1b", "\u2028", "\u0301", "\ufeff", "\u202e", "\ud800", "é", "가", "٣",
    "😀",
    "'", '"', "\\", "%", "%00", "&", "<", ">", "(", ")", "[", "]", "{", "}", ":", ";", ",", ".", "-", "_", "/", "=",
    "0", "-1", "1e400", "nan", "9" * 30, "a", "A" * 300,
)  # fmt: skip


def content(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


JSON = ('{"', '":', '"', "null", "true", "1", "[", "]", "}", "{", ",", "\\u0000", "\\ud800", "\n")
