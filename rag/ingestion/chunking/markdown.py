"""Split Markdown into sections by headings, each preceded by details about the repository.

Required by source 001 in docs/sources.md, section 2.4.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rag.profiles.profile import Chunking
from rag.text.boundaries import PARAGRAPH, SENTENCE, WORDS, Boundaries, overlap_start
from rag.text.spans import PATH_SEPARATOR, Piece


@dataclass(frozen=True)
class WordLimits:
    """Words per chunk: the target, the maximum, and the overlap in a section with several chunks."""

    target: int
    maximum: int
    overlap: int


LINES = re.compile(r"^.*$", re.MULTILINE)
HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(\S.*)")
#: A longer title is cut, in characters.
LONGEST_TITLE = 200
FENCE = re.compile(r" {0,3}(```+|~~~+)")
YEAR = re.compile(r"(?:19|20)\d{2}-")
#: The facts which the repository loader writes before a README.
FRONT = re.compile(r"\ARepository: [^\n]*\n(?:[A-Z][A-Za-z ]{1,20}: [^\n]*\n)*")


@dataclass(frozen=True)
class Heading:
    """A heading in a Markdown text: title, level, and the line's start and end."""

    title: str
    level: int
    start: int
    #: The end of its line.
    end: int


def headings_of(text: str) -> list[Heading]:
    """Find the headings (`#` to `######`) in a Markdown text, outside code blocks."""
    headings = []
    fence = ""
    for line in LINES.finditer(text):
        mark = FENCE.match(line[0])
        if mark and not fence:
            fence = mark[1]
        elif mark and mark[1].startswith(fence) and not line[0].strip().strip(fence[0]):
            fence = ""
        elif not fence and (heading := HEADING.match(line[0])):
            title = heading[2].strip().rstrip("#").rstrip() or heading[2].strip()
            headings.append(Heading(title[:LONGEST_TITLE], len(heading[1]), line.start(), line.end()))
    return headings


def markdown_pieces(text: str, file_name: str, limits: Chunking) -> list[Piece]:
    """Split each section into pieces of about 600 words, at most 800. Each piece starts with details about the
    repository.
    """
    front = FRONT.match(text)
    before = front[0].strip() if front else ""
    body = front.end() if front else 0
    headings = [heading for heading in headings_of(text) if heading.start >= body]
    boundaries = Boundaries(text)
    # The facts count as words, up to half the target, so the text always has room.
    target, maximum = limits.markdown_target_words, limits.markdown_maximum_words
    fact_words = min(len(WORDS.findall(before)), target // 2)
    body_limits = WordLimits(
        target - fact_words, maximum - fact_words, min(limits.markdown_overlap_words, maximum // 4)
    )
    facts = _repository_facts(before)
    pieces = []
    for start, stop, path in _sections(text, headings, body):
        for begin, end in _spans(boundaries, start, stop, body_limits):
            metadata = {"source": file_name, "category": "github", **facts, **({"section": path} if path else {})}
            pieces.append(Piece(begin, end, metadata, before if begin >= body and before else ""))
    return pieces


def _repository_facts(front: str) -> dict[str, Any]:
    fields = dict(line.split(": ", 1) for line in front.splitlines() if ": " in line)
    facts: dict[str, Any] = {}
    for name, label in (("repository", "Repository"), ("language", "Language")):
        if fields.get(label):
            facts[name] = fields[label]
    if fields.get("Stars", "").isdigit():
        facts["stars"] = int(fields["Stars"])
    if fields.get("Topics"):
        facts["topics"] = fields["Topics"].split(", ")
    if YEAR.match(fields.get("Updated", "")):
        facts["year"] = fields["Updated"][:4]
    return facts


def _sections(text: str, headings: list[Heading], body: int) -> Iterator[tuple[int, int, str]]:
    """Yield (start, end, heading path) for each section. A heading without text is joined to the next section."""
    start, path = 0, ""
    above: list[Heading] = []
    for index, heading in enumerate(headings):
        until = headings[index + 1].start if index + 1 < len(headings) else len(text)
        if index == 0 and text[body : heading.start].strip():
            yield 0, heading.start, ""
            start = heading.start
        while above and above[-1].level >= heading.level:
            above.pop()
        above.append(heading)
        path = PATH_SEPARATOR.join(item.title for item in above)
        if text[heading.end : until].strip() or until == len(text):
            yield start, until, path
            start = until
    if not headings:
        yield 0, len(text), ""


def _spans(boundaries: Boundaries, start: int, stop: int, limits: WordLimits) -> Iterator[tuple[int, int]]:
    text, target, maximum = boundaries.text, limits.target, limits.maximum
    covered = start
    while covered < stop:
        # Stop after the maximum number of words: no chunk needs more.
        ends = []
        for word in WORDS.finditer(text, start, stop):
            ends.append(word.end())
            if len(ends) > maximum:
                break
        if len(ends) <= maximum:
            yield start, stop
            return
        filled, target_end, longest = ends[target // 2], ends[target - 1], ends[maximum - 1]
        last = boundaries.last
        end = (
            last(PARAGRAPH, max(filled, covered), target_end + 1)
            or boundaries.first(PARAGRAPH, max(target_end, covered + 1), longest)
            or last(SENTENCE, max(filled, covered), target_end + 1)
            or max(target_end, covered + 1)
        )
        yield start, end
        covered = end
        start = overlap_start(boundaries, start, end, words=limits.overlap)
