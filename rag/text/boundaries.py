"""Find where a text may be split: between paragraphs, sentences, lines and words, in any script.

A chunk's end is searched backwards from the last possible position. Therefore splitting takes linear time.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import cached_property

from rag.text.tables import Row, tables_in
from rag.text.tokens import estimate_tokens

PARAGRAPH = re.compile(r"\n[^\S\n]*\n\s*")
SPACED_PARAGRAPH = re.compile(r"\n[^\S\n]+\n")
LINE = re.compile(r"\n\s*")
#: A full stop ends a sentence before a blank and a possible beginning; CJK, Indic and Arabic marks always do. The
#: pattern begins with a character class, because the engine can then skip to the next match.
SENTENCE = re.compile(
    r"[.!?…。！？｡．؟۔।॥](?:"
    # Match only the first in a row of marks: a row of dots is scanned once.
    r"(?<=[.!?…])(?<![.!?…]{2})[.!?…]*+[\"'”’»)\]]*+\s++(?![a-zß-öø-ÿ])"
    r"|(?<=[。！？｡．])[。！？｡．]*[”’」』）】〉》\"')]*\s*+"
    r"|(?<=[؟۔।॥])[؟۔।॥]*[\"'”’»)]*\s*+)"
)
WORD = re.compile(r"\s+|(?<=[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3])(?=[\u3040-\u30ff\u3400-\u9fff])")
#: Abbreviations: a full stop after them does not end the sentence.
ABBREVIATION = re.compile(
    r"(?:^|[\s(\"'“‘])(?:[A-Z]|Mr|Mrs|Ms|Dr|Prof|St|No|Nr|Art|Abs|bzw|ca|vs|etc|e\.g|i\.e|z\.B|bijv|o\.a|p|pp|S|fig|Fig|dhr|mevr)\.$"
)
#: Characters searched backwards at first; four times as many after each failure.
FIRST_LOOK = 160
#: Characters after a place that can make it a boundary.
LOOK_AHEAD = 40
#: Characters before a place that can make it a boundary.
LOOK_BEHIND = 8


class Boundaries:
    """The positions at which a text may be split, by kind: `PARAGRAPH`, `SENTENCE`, `LINE`, `WORD`."""

    def __init__(self, text: str, breaks: Sequence[int] = ()) -> None:
        self.text = text
        #: Starts of sections. Chunks avoid crossing them.
        self.sections = sorted({position for position in breaks if 0 < position < len(text)})

    @cached_property
    def paragraphs(self) -> list[int]:
        """Return all paragraph ends, in order."""
        return [match.end() for match in PARAGRAPH.finditer(self.text) if match.end() < len(self.text)]

    @cached_property
    def sentences(self) -> list[int]:
        return [
            match.end()
            for match in SENTENCE.finditer(self.text)
            if match.end() < len(self.text) and not self._is_abbreviation(match) and not self._is_in_row(match.end())
        ]

    @cached_property
    def _has_plain_paragraphs(self) -> bool:
        r"""Whether no empty line contains spaces. A plain search for "\n\n" then finds all paragraph ends."""
        return SPACED_PARAGRAPH.search(self.text) is None

    def last(self, kind: re.Pattern[str], low: int, high: int) -> int | None:
        """Return the last boundary of this kind with low < boundary <= high, or `None`."""
        if kind is PARAGRAPH and self._has_plain_paragraphs:
            place = self.text.rfind("\n\n", low, high) + 2
            if place == 1:
                return None
            if low < place < len(self.text) and not self.text[place].isspace():
                return place
        reach = FIRST_LOOK
        begin = high
        while begin > low:
            begin = max(low, high - reach)
            matches = list(kind.finditer(self.text, begin, high + LOOK_AHEAD))
            for match in reversed(matches):
                end = match.end()
                if end <= low:
                    break
                if end <= high and end < len(self.text) and not self._is_none(kind, match):
                    return end
            reach *= 4
        return None

    def first(self, kind: re.Pattern[str], low: int, high: int) -> int | None:
        """Return the first boundary of this kind with low <= boundary < high, or `None`."""
        if kind is PARAGRAPH and self._has_plain_paragraphs:
            # A boundary at `high` does not count, and most chunks end with a boundary.
            place = self.text.find("\n\n", max(low - 2, 0), high - 1) + 2
            if place == 1:
                return None
            if place > 2 and place < high and not self.text[place].isspace():
                return place
        for match in kind.finditer(self.text, max(low - LOOK_BEHIND, 0), high + LOOK_AHEAD):
            end = match.end()
            if end >= high:
                return None
            if end >= max(low, 1) and not self._is_none(kind, match):
                return end
        return None

    @cached_property
    def _rows(self) -> list[Row]:
        return [row for table in tables_in(self.text) for row in (*filter(None, [table.heads]), *table.rows)]

    def _is_in_row(self, place: int) -> bool:
        rows = self._rows
        index = bisect_right(rows, place, key=lambda row: row.start) - 1 if rows else -1
        return index >= 0 and rows[index].start < place < rows[index].end

    def _is_none(self, kind: re.Pattern[str], match: re.Match[str]) -> bool:
        return (kind is SENTENCE and self._is_abbreviation(match)) or self._is_in_row(match.end())

    def _is_abbreviation(self, stop: re.Match[str]) -> bool:
        place = stop.start()
        # The longest abbreviation has four letters.
        if self.text[place] != "." or (place > 5 and self.text[place - 5 : place].isalpha()):
            return False
        return ABBREVIATION.search(self.text[max(0, place - LOOK_BEHIND) : place + 1]) is not None


def last_between(positions: Sequence[int], low: int, high: int) -> int | None:
    """Return the last of the sorted positions with low < position <= high, or `None`."""
    index = bisect_right(positions, high) - 1
    return positions[index] if index >= 0 and positions[index] > low else None


def first_between(positions: Sequence[int], low: int, high: int) -> int | None:
    """Return the first of the sorted positions with low <= position < high, or `None`."""
    index = bisect_left(positions, low)
    return positions[index] if index < len(positions) and positions[index] < high else None


def before_marks(text: str, position: int, low: int) -> int:
    """Move a position back, to keep accents and joined emoji together with their letter. The result is above `low`."""
    moved = position
    while low + 1 < moved < len(text) and (
        unicodedata.combining(text[moved]) or text[moved] in "\u200d\ufe0f" or text[moved - 1] == "\u200d"
    ):
        moved -= 1
    return moved if moved > low + 1 else position


def word_end(boundaries: Boundaries, low: int, high: int) -> int:
    """Return the last word end with low < end <= high.

    Without words, returns `high`, or a position before combining marks at `high`.
    """
    return boundaries.last(WORD, low, high) or before_marks(boundaries.text, high, low)


#: A longer run without spaces is not a word.
LONGEST_WORD = 60
#: A word, or a character in Chinese and Japanese, which have no spaces between words.
WORDS = re.compile(rf"[\u3040-\u30ff\u3400-\u9fff]|[^\s\u3040-\u30ff\u3400-\u9fff]{{1,{LONGEST_WORD}}}")
#: The most characters for a token: blanks cost no tokens, and a span must end.
CHARACTERS_PER_TOKEN = 6
#: The longest repeated sentence, in characters.
LONGEST_OVERLAP = 600


def fitting_end(boundaries: Boundaries, start: int, stop: int, tokens: int) -> int:
    """Return the last word end up to `stop` for a chunk which starts at `start` and has at most `tokens` tokens
    (estimated).
    """
    text = boundaries.text
    end = min(stop, start + tokens * CHARACTERS_PER_TOKEN)
    while (counted := estimate_tokens(text[start:end])) > tokens and end > start + 1:
        # Tokens are spread evenly: estimate the place by proportion, a little low, to finish soon.
        nearer = start + max(1, int((end - start) * min(tokens / counted, 0.95)))
        end = boundaries.last(WORD, start + (nearer - start) // 2, nearer) or before_marks(text, nearer, start)
    return end


def best_end(boundaries: Boundaries, start: int, tokens: int, end: int) -> int:
    """Return the best end for a chunk from `start` to at most `end`.

    This is the last sentence end in the second half, else the last line end there, else `end`.
    """
    middle = start + (end - start) // 2
    candidate = boundaries.last(SENTENCE, middle, end) or boundaries.last(LINE, middle, end) or end
    # A shorter text may count more tokens: the estimate depends on its share of English words.
    return candidate if estimate_tokens(boundaries.text[start:candidate]) <= tokens else end


def spans_by_tokens(boundaries: Boundaries, start: int, stop: int, tokens: int) -> list[tuple[int, int]]:
    """Split a text into spans with at most `tokens` tokens each (estimated). Spans do not overlap.

    If possible, spans end at sentence or line ends.
    """
    spans = []
    while start < stop:
        end = fitting_end(boundaries, start, stop, tokens)
        if end < stop:
            end = best_end(boundaries, start, tokens, end)
        spans.append((start, end))
        start = end
    return spans


def overlap_start(boundaries: Boundaries, start: int, end: int, *, words: int, tokens: int | None = None) -> int:
    """Return the start of the next chunk, which repeats the end of the chunk from `start` to `end`.

    Whole sentences are repeated, with at most `words` words and `tokens` tokens. If no sentence fits, the last words
    are repeated. The result is always after `start`. This is `calculateSmartOverlap` in source 001, see
    docs/sources.md.
    """
    text = boundaries.text
    low = max(start + 1, end - LONGEST_OVERLAP)
    word_starts = [match.start() for match in WORDS.finditer(text, low, end)]
    if len(word_starts) > words:
        low = word_starts[-words] if words else end

    def fits(place: int) -> bool:
        return tokens is None or estimate_tokens(text[place:end]) <= tokens

    for kind in (SENTENCE, WORD):
        place = boundaries.first(kind, low, end)
        while place is not None and place < end:
            if text[place:end].strip() and fits(place):
                return place
            place = boundaries.first(kind, place + 1, end)
    return end
