"""Chunks of a résumé: one job, one chunk; of a LinkedIn profile: several jobs. Source 001, 2.1. No overlap."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from rag.ingestion.chunking.boundaries import Boundaries
from rag.ingestion.chunking.document_types import RESUME_HEADINGS, document_type_of
from rag.ingestion.chunking.jobs import Job, Line, is_piped, jobs_of
from rag.ingestion.chunking.measured import spans_by_tokens
from rag.ingestion.chunking.pieces import Piece
from rag.profile import Chunking
from rag.providers.tokens import estimate_tokens

#: Sections that list jobs.
WORK = re.compile(r"experience|employment|work history|career history|volunteering|경력|berufserfahrung|werkervaring"
                  r"|expérience|experiencia|经历|職歴", re.IGNORECASE)  # fmt: skip
LINES = re.compile(r"\S[^\n]*")


@dataclass(frozen=True)
class Part:
    """A section of the document; `title` is empty for what stands before the first heading."""

    title: str
    start: int
    end: int


def professional_pieces(text: str, file_name: str, limits: Chunking) -> list[Piece]:
    """Pieces by section and job, at most 800 tokens each, with what is known of the job.

    `source, section, company, position, location, dateRange, industry, year`, each where the document says it.
    """
    boundaries = Boundaries(text)
    # A single short job stays a chunk of its own in a résumé.
    fewest, most = limits.professional_minimum_tokens, limits.professional_maximum_tokens
    kind = document_type_of(text, file_name)
    pieces: list[Piece] = []
    for part in _parts(text):
        known = {"source": file_name, "category": kind.kind, **({"section": part.title} if part.title else {})}
        lines = _lines(text, part)
        has_jobs = WORK.search(part.title) is not None or any(is_piped(line.text) for line in lines)
        jobs = jobs_of(lines) if has_jobs else []
        groups = _grouped(text, part, jobs, fewest, most) if kind.kind == "linkedin" else _single(part, jobs)
        for start, end, facts in groups:
            metadata: dict[str, Any] = known | facts
            if "year" not in metadata and kind.year:
                metadata["year"] = kind.year
            pieces.extend(Piece(*span, metadata) for span in spans_by_tokens(boundaries, start, end, most))
    return pieces


def _parts(text: str) -> list[Part]:
    found = [(match["title"], match.start()) for match in RESUME_HEADINGS.finditer(text)]
    if not found or text[: found[0][1]].strip():
        found.insert(0, ("", 0))
    else:
        found[0] = (found[0][0], 0)
    ends = [start for _, start in found[1:]] + [len(text)]
    return [Part(title, start, end) for (title, start), end in zip(found, ends, strict=True)]


def _lines(text: str, part: Part) -> list[Line]:
    """The part's lines with content, its heading left out."""
    lines = [Line(match[0].strip(), match.start()) for match in LINES.finditer(text, part.start, part.end)]
    return lines[1:] if part.title else lines


def _single(part: Part, jobs: list[Job]) -> Iterator[tuple[int, int, dict[str, str]]]:
    """Each job by itself; the section's heading goes with the first."""
    if not jobs:
        yield part.start, part.end, {}
        return
    starts = [part.start, *(job.start for job in jobs[1:]), part.end]
    for job, (start, end) in zip(jobs, pairwise(starts), strict=True):
        yield start, end, job.facts


def _grouped(
    text: str, part: Part, jobs: list[Job], fewest: int, most: int
) -> Iterator[tuple[int, int, dict[str, str]]]:
    """Jobs together until they have `fewest` tokens, while they have no more than `most`; the first names the group."""
    begin: int | None = None
    facts: dict[str, str] = {}
    until = part.start
    for start, end, job in _single(part, jobs):
        if begin is not None and (
            estimate_tokens(text[begin:until]) >= fewest or estimate_tokens(text[begin:end]) > most
        ):
            yield begin, until, facts
            begin = None
        if begin is None:
            begin, facts = start, job
        until = end
    if begin is not None:
        yield begin, until, facts
