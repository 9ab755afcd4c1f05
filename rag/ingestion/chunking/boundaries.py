"""Where a text may be cut: ends of paragraphs, sentences, lines and words, in any script."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import cached_property

PARAGRAPH = re.compile(r"\n[^\S\n]*(?:\n\s*)+")
LINE = re.compile(r"\n\s*")
#: A full stop ends a sentence before blank space and something that can begin one; CJK, Indic and Arabic marks always.
SENTENCE = re.compile(
    r"[.!?…]+[\"'”’»)\]]*(?=\s+[^a-zß-öø-ÿ\s])\s+"
    r"|[。！？｡．][”’」』）】〉》\"')]*\s*"
    r"|[؟۔।॥]+[\"'”’»)]*\s*"
)
WORD = re.compile(r"\s+|(?<=[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3])(?=[\u3040-\u30ff\u3400-\u9fff])")
#: Short words that a full stop follows without ending the sentence.
ABBREVIATION = re.compile(
    r"(?:^|[\s(\"'“‘])(?:[A-Z]|Mr|Mrs|Ms|Dr|Prof|St|No|Nr|Art|Abs|bzw|ca|vs|etc|e\.g|i\.e|z\.B|bijv|o\.a|p|pp|S|fig|Fig|dhr|mevr)\.$"
)


class Boundaries:
    """The places of a text where one kind of unit ends and the next begins, found when first asked for."""

    def __init__(self, text: str, breaks: Sequence[int] = ()) -> None:
        self.text = text
        #: Starts of sections, which a chunk should not reach across without need.
        self.sections = sorted({position for position in breaks if 0 < position < len(text)})

    @cached_property
    def paragraphs(self) -> list[int]:
        return [match.end() for match in PARAGRAPH.finditer(self.text) if match.end() < len(self.text)]

    @cached_property
    def sentences(self) -> list[int]:
        return [
            match.end()
            for match in SENTENCE.finditer(self.text)
            if match.end() < len(self.text) and not self._is_abbreviation(match)
        ]

    def _is_abbreviation(self, stop: re.Match[str]) -> bool:
        before = self.text[max(0, stop.start() - 8) : stop.start() + 1]
        return stop[0][0] == "." and ABBREVIATION.search(before) is not None

    @cached_property
    def line_ends(self) -> list[int]:
        return [match.end() for match in LINE.finditer(self.text) if match.end() < len(self.text)]

    @cached_property
    def words(self) -> list[int]:
        return [match.end() for match in WORD.finditer(self.text) if 0 < match.end() < len(self.text)]


def last_between(positions: Sequence[int], low: int, high: int) -> int | None:
    """The last position with low < position <= high."""
    index = bisect_right(positions, high) - 1
    return positions[index] if index >= 0 and positions[index] > low else None


def first_between(positions: Sequence[int], low: int, high: int) -> int | None:
    """The first position with low <= position < high."""
    index = bisect_left(positions, low)
    return positions[index] if index < len(positions) and positions[index] < high else None


def before_marks(text: str, position: int, low: int) -> int:
    """The position, moved back so that no accent or joined emoji is cut from its letter; stays above `low`."""
    moved = position
    while low + 1 < moved < len(text) and (
        unicodedata.combining(text[moved]) or text[moved] in "\u200d\ufe0f" or text[moved - 1] == "\u200d"
    ):
        moved -= 1
    return moved if moved > low + 1 else position
