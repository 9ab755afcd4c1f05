"""Limits in tokens and words, and overlaps of whole sentences, for the chunkers that count so."""

from __future__ import annotations

import re

from rag.ingestion.chunking.boundaries import LINE, SENTENCE, WORD, Boundaries, before_marks
from rag.providers.tokens import estimate_tokens

#: Longer than so many characters no run without a space counts as one word.
LONGEST_WORD = 60
#: A word; in Chinese and Japanese, which write none apart, a character.
WORDS = re.compile(rf"[\u3040-\u30ff\u3400-\u9fff]|[^\s\u3040-\u30ff\u3400-\u9fff]{{1,{LONGEST_WORD}}}")
#: Characters to a token, at most, in a text that is one: blank space costs nothing and would go on for ever.
CHARACTERS_PER_TOKEN = 6
#: A sentence that is to be repeated is not looked for further back, in characters.
LONGEST_OVERLAP = 600


def fitting_end(boundaries: Boundaries, start: int, stop: int, tokens: int) -> int:
    """The farthest end at a word, at most `stop`, at which the text from `start` has no more than `tokens`."""
    text = boundaries.text
    end = min(stop, start + tokens * CHARACTERS_PER_TOKEN)
    while (counted := estimate_tokens(text[start:end])) > tokens and end > start + 1:
        # Texts are even enough that the share tells the place; a little less, so that it ends soon.
        nearer = start + max(1, int((end - start) * min(tokens / counted, 0.95)))
        end = boundaries.last(WORD, start + (nearer - start) // 2, nearer) or before_marks(text, nearer, start)
    return end


def best_end(boundaries: Boundaries, start: int, tokens: int, end: int) -> int:
    """The last sentence or line that ends in the second half, else `end`, with no more than `tokens` either way."""
    middle = start + (end - start) // 2
    found = boundaries.last(SENTENCE, middle, end) or boundaries.last(LINE, middle, end) or end
    # Shorter is not always less: the estimate takes a text as English by its share of English words.
    return found if estimate_tokens(boundaries.text[start:found]) <= tokens else end


def spans_by_tokens(boundaries: Boundaries, start: int, stop: int, tokens: int) -> list[tuple[int, int]]:
    """Spans of at most `tokens` each, ending with sentences and lines, without overlap."""
    spans = []
    while start < stop:
        end = fitting_end(boundaries, start, stop, tokens)
        if end < stop:
            end = best_end(boundaries, start, tokens, end)
        spans.append((start, end))
        start = end
    return spans


def overlap_start(boundaries: Boundaries, start: int, end: int, *, words: int, tokens: int | None = None) -> int:
    """Where the next chunk begins: with the last whole sentences of this one that fit, else with its last words.

    Source 001, `calculateSmartOverlap`: sentences within `words` and `tokens`. Never at `start` itself.
    """
    text = boundaries.text
    low = max(start + 1, end - LONGEST_OVERLAP)
    found = [match.start() for match in WORDS.finditer(text, low, end)]
    if len(found) > words:
        low = found[-words] if words else end

    def fits(place: int) -> bool:
        return tokens is None or estimate_tokens(text[place:end]) <= tokens

    for kind in (SENTENCE, WORD):
        place = boundaries.first(kind, low, end)
        while place is not None and place < end:
            if text[place:end].strip() and fits(place):
                return place
            place = boundaries.first(kind, place + 1, end)
    return end
