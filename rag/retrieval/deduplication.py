"""Drop chunks with the same content, for example from files stored twice, or forms printed on many pages."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Protocol, TypeVar
from uuid import UUID

from rag.retrieval.known_by import known_by
from rag.types import SearchResult

#: Near repeats begin with this many equal words.
FIRST_WORDS = 3
#: Length in words of the compared sequences, and the share of sequences which near repeats have in common.
SHINGLE_WORDS = 3
SAME = 0.8
_WORD = re.compile(r"\w+")
_FIGURE = re.compile(r"\b[^\W\d]*\d\w*")
#: A word, or a single character in scripts without spaces.
_TOKEN = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|(?:(?![\u3040-\u30ff\u3400-\u9fff])\w)+")


class Hit(Protocol):
    """A hit, with the fields needed to recognise repeats."""

    @property
    def chunk_id(self) -> UUID: ...
    @property
    def document_id(self) -> UUID: ...
    @property
    def title(self) -> str: ...
    @property
    def folder(self) -> str: ...
    @property
    def section(self) -> str: ...
    @property
    def content(self) -> str: ...


Item = TypeVar("Item", bound=Hit)


def without_repeats(scored: Sequence[tuple[Item, float]], *, same_beginning: int = 0) -> list[tuple[Item, float]]:
    """Drop the hits which repeat an earlier hit. Order and scores stay unchanged.

    Two chunks are repeats if their texts are equal, apart from spaces and case, and their documents have the same title
    and folder: for example, a file stored twice, or a page header found twice. Documents with similar titles keep their
    chunks, because the answer depends on the document. With `same_beginning`, two chunks from the same document are
    also repeats if this many first characters are equal (source 003 in docs/sources.md uses 100).
    """
    starts = [
        (known_by(passage.title, passage.folder).casefold(), _first_words(passage.content)) for passage, _ in scored
    ]
    alike = Counter(starts)
    seen: set[tuple[str, str]] = set()
    beginnings: set[tuple[UUID, str]] = set()
    remaining = []
    for (passage, score), start in zip(scored, starts, strict=True):
        # Normalize the whole text only if a different passage starts alike.
        key = (start[0], _normal(passage.content) if alike[start] > 1 else start[1])
        beginning = (passage.document_id, passage.content[:same_beginning])
        if key in seen or (same_beginning and beginning in beginnings):
            continue
        seen.add(key)
        beginnings.add(beginning)
        remaining.append((passage, score))
    return remaining


def _normal(text: str) -> str:
    return " ".join(text.casefold().split())


def _first_words(text: str) -> str:
    return " ".join(text.split(None, FIRST_WORDS)[:FIRST_WORDS]).casefold()


def limited_per_document(results: Sequence[SearchResult], maximum: int) -> list[SearchResult]:
    """Return the results with at most `maximum` per document, in order; 0 means no limit."""
    if maximum < 1:
        return list(results)
    counts: dict[object, int] = {}
    remaining = []
    for result in results:
        counts[result.document_id] = counts.get(result.document_id, 0) + 1
        if counts[result.document_id] <= maximum:
            remaining.append(result)
    return remaining


def without_near_repeats(results: Sequence[SearchResult]) -> list[SearchResult]:
    """Drop the hits which repeat an earlier hit almost word for word.

    Only chunks from documents with the same title and folder can be repeats. Documents with similar titles, for example
    two health plans, keep all chunks, because the answer depends on the plan. Chunks with different numbers, names or
    words are kept.
    """
    remaining: list[SearchResult] = []
    # Only passages with the same title and figures need a comparison by words.
    groups: dict[tuple[str, frozenset[str]], list[SearchResult]] = {}
    for result in results:
        name = known_by(result.title, result.folder).casefold()
        alike = groups.setdefault((name, frozenset(_FIGURE.findall(result.content))), [])
        if any(
            likeness(shingles(result.content), shingles(other.content)) >= SAME
            and not says_otherwise(result.content, other.content, is_cut=True)
            for other in alike
        ):
            continue
        alike.append(result)
        remaining.append(result)
    return remaining


def says_otherwise(text: str, other: str, *, is_cut: bool = False) -> bool:
    """Whether two nearly equal texts differ in a word, for example "may" and "may not", or "Ann" and "Bob".

    With `is_cut`, the texts may begin and end at different positions. Spaces within words are ignored.
    """
    words, other_words = tokens(text), tokens(other)
    for what, start, end, other_start, other_end in SequenceMatcher(
        None, words, other_words, autojunk=False
    ).get_opcodes():
        is_edge = (start == 0 and other_start == 0) or (end == len(words) and other_end == len(other_words))
        if what == "equal" or (is_cut and is_edge and what != "replace"):
            continue
        if "".join(words[start:end]) != "".join(other_words[other_start:other_end]):
            return True
    return False


def tokens(text: str) -> list[str]:
    """Split a text into casefolded words. In scripts without spaces, each character is a word."""
    return _TOKEN.findall(text.casefold())


@lru_cache(maxsize=500)
def shingles(text: str) -> frozenset[tuple[str, ...]]:
    """Return all sequences of three consecutive words; a shorter text is a single sequence."""
    words = _WORD.findall(text.casefold())
    if len(words) < SHINGLE_WORDS:
        return frozenset([tuple(words)])
    return frozenset(zip(*(words[i:] for i in range(SHINGLE_WORDS)), strict=False))


def likeness(shingle_set: frozenset[tuple[str, ...]], other_set: frozenset[tuple[str, ...]]) -> float:
    """Return the Jaccard index, 0 to 1: shared elements divided by all elements. Values below the limit `SAME` may
    become 0.
    """
    # Sets with very different sizes cannot be similar; this check saves most comparisons.
    if min(len(shingle_set), len(other_set)) < SAME * max(len(shingle_set), len(other_set)):
        return 0.0
    return len(shingle_set & other_set) / len(shingle_set | other_set)
