"""Split a portfolio's documents: a résumé by job, a LinkedIn profile by groups of jobs, a journey by length.

Pieces from a résumé or profile do not overlap (source 001 in docs/sources.md, section 2.1). A journey's pieces have
about 450 tokens, and each begins with the end of the previous piece.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from rag.profiles.portfolio.document_types import RESUME_HEADINGS, document_type_of, fiscal_year_of
from rag.profiles.profile import Chunking
from rag.text.boundaries import (
    LINE,
    PARAGRAPH,
    SENTENCE,
    Boundaries,
    fitting_end,
    overlap_start,
    spans_by_tokens,
)
from rag.text.spans import Piece, Span
from rag.text.tokens import estimate_tokens

#: Sections that list jobs.
WORK = re.compile(r"experience|employment|work history|career history|volunteering|경력|berufserfahrung|werkervaring"
                  r"|expérience|experiencia|经历|職歴", re.IGNORECASE)  # fmt: skip
LINES = re.compile(r"\S[^\n]*")


@dataclass(frozen=True)
class PortfolioSection:
    """A section of a document; `title` is "" before the first heading."""

    title: str
    start: int
    end: int


def professional_pieces(text: str, file_name: str, limits: Chunking) -> list[Piece]:
    """Split a résumé or LinkedIn profile by section and job, with metadata about each job.

    Each piece has at most `professional_maximum_tokens`. Metadata are `source, category, section, subcategory, company,
    position, location, dateRange, industry, year`, if the text has them.
    """
    boundaries = Boundaries(text)
    # In a résumé, a single short job keeps a chunk for itself.
    fewest, most = limits.professional_minimum_tokens, limits.professional_maximum_tokens
    kind = document_type_of(text, file_name)
    pieces: list[Piece] = []
    for part in _parts(text, without_headline=kind.kind == "linkedin"):
        section_facts = {"source": file_name, "category": kind.kind}
        if part.title:
            section_facts |= {"section": part.title, "subcategory": subcategory_of(part.title)}
        lines = _lines(text, part)
        has_jobs = WORK.search(part.title) is not None or any(is_piped(line.text) for line in lines)
        jobs = jobs_of(lines) if has_jobs else []
        groups = _group_spans(text, part, jobs, fewest, most) if kind.kind == "linkedin" else _job_spans(part, jobs)
        for start, end, facts in groups:
            metadata: dict[str, Any] = section_facts | facts
            if "year" not in metadata and kind.year:
                metadata["year"] = kind.year
            pieces.append(Piece(start, end, metadata))
    return [
        Piece(*span, piece.metadata)
        for piece in _join_sections(text, pieces, fewest, most)
        for span in spans_by_tokens(boundaries, piece.start, piece.end, most)
    ]


def _join_sections(text: str, pieces: Sequence[Piece], fewest: int, most: int) -> Iterator[Piece]:
    pending: Piece | None = None
    for piece in pieces:
        if pending is not None and "dateRange" not in pending.metadata and "dateRange" not in piece.metadata:
            is_small = min(estimate_tokens(text[p.start : p.end]) for p in (pending, piece)) < fewest
            if is_small and estimate_tokens(text[pending.start : piece.end]) <= most:
                titles = [str(p.metadata["section"]) for p in (pending, piece) if p.metadata.get("section")]
                section = {"section": ", ".join(titles)} if titles else {}
                pending = Piece(pending.start, piece.end, {**piece.metadata, **pending.metadata, **section})
                continue
        if pending is not None:
            yield pending
        pending = piece
    if pending is not None:
        yield pending


SUBCATEGORIES = (
    ("experience", WORK),
    (
        "education",
        re.compile(r"education|academic|학력|ausbildung|opleiding|formation|educación|教育|学歴", re.IGNORECASE),
    ),
    (
        "skills",
        re.compile(r"skill|competenc|기술|kenntnisse|vaardigheden|compétences|habilidades|技能|スキル", re.IGNORECASE),
    ),
    ("projects", re.compile(r"project|프로젝트", re.IGNORECASE)),
    ("certifications", re.compile(r"certification|자격", re.IGNORECASE)),
    ("summary", re.compile(r"summary|profile|about|objective|소개", re.IGNORECASE)),
)


def subcategory_of(section: str) -> str:
    """Return a section's subject (experience, education, skills, …), or the title in lower case for other subjects."""
    return next((name for name, pattern in SUBCATEGORIES if pattern.search(section)), section.casefold())


#: The name in a LinkedIn profile's address; the export repeats it above the headline.
PROFILE_ADDRESS = re.compile(r"linkedin\.com/in/(?P<name>[\w%-]+)", re.IGNORECASE)


def _find_headline(text: str) -> int | None:
    """Return the start position for name and headline in a LinkedIn export, or `None` if they are missing."""
    address = PROFILE_ADDRESS.search(text)
    words = [word for word in re.split(r"[-%]", address["name"].casefold()) if word.isalpha()] if address else []
    for line in LINES.finditer(text, address.end() if address else 0):
        if len(words) > 1 and set(words[:2]) <= set(line[0].casefold().replace(",", " ").split()) and len(line[0]) < 60:
            return line.start()
    return None


def _parts(text: str, *, without_headline: bool = False) -> list[PortfolioSection]:
    headings = [(match["title"], match.start()) for match in RESUME_HEADINGS.finditer(text)]
    headline = _find_headline(text) if without_headline else None
    if headline is not None and headings and headline > headings[0][1]:
        headings = sorted([*headings, ("", headline)], key=lambda part: part[1])
    if not headings or text[: headings[0][1]].strip():
        headings.insert(0, ("", 0))
    else:
        headings[0] = (headings[0][0], 0)
    ends = [start for _, start in headings[1:]] + [len(text)]
    return [PortfolioSection(title, start, end) for (title, start), end in zip(headings, ends, strict=True)]


def _lines(text: str, part: PortfolioSection) -> list[TextLine]:
    lines = [TextLine(match[0].strip(), match.start()) for match in LINES.finditer(text, part.start, part.end)]
    return lines[1:] if part.title else lines


def _job_spans(part: PortfolioSection, jobs: list[Job]) -> Iterator[tuple[int, int, dict[str, str]]]:
    """Yield (start, end, details) for each job. The first span includes the section's heading."""
    if not jobs:
        yield part.start, part.end, {}
        return
    starts = [part.start, *(job.start for job in jobs[1:]), part.end]
    for job, (start, end) in zip(jobs, pairwise(starts), strict=True):
        yield start, end, job.facts


def _group_spans(
    text: str, part: PortfolioSection, jobs: list[Job], fewest: int, most: int
) -> Iterator[tuple[int, int, dict[str, str]]]:
    """Group neighbouring jobs, and yield (start, end, details on the first job) for each group.

    If possible, a group has `fewest` to `most` tokens.
    """
    begin: int | None = None
    facts: dict[str, str] = {}
    until = part.start
    for start, end, job in _job_spans(part, jobs):
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


MONTH = r"(?:(?:[A-Za-zÀ-ÿ]{3,10}\.?|\d{1,2}[./-])\s*)?"
TODAY = r"present|current|now|today|ongoing|heute|heden|nu|aujourd'hui|actualidad|현재|재직\s?중|至今|現在"
DATE = rf"{MONTH}(?:19|20)\d{{2}}(?:\s?[./년年]\s?\d{{1,2}}\s?[월月]?)?"
DATE_RANGE = re.compile(
    rf"(?<![\w.])(?:{DATE}\s*(?:[-–—~]|to|until|bis|tot)\s*(?:{DATE}|{TODAY})|{DATE}(?=\s*$))", re.IGNORECASE
)
IS_CURRENT = re.compile(TODAY, re.IGNORECASE)
YEAR = re.compile(r"(?<!\d)(?:19|20)\d{2}(?!\d)")
COMPANY = re.compile(r"(?P<company>.+?)\s*\((?P<industry>[^()]+)\)\s*")
#: A duration on its own line: LinkedIn writes it below the company's name.
DURATION = re.compile(r"\d+\s+(?:years?|months?|yrs?|mos?)(?:\s+\d+\s+(?:months?|mos?))?", re.IGNORECASE)
BULLET = re.compile(r"[•▪◦‣·○●*–-]\s|\d+[.)]\s")
#: Longest line for a company or a position, in characters.
LONGEST_NAME = 120
LONGEST_PIPED = 400


@dataclass(frozen=True)
class TextLine:
    """A non-empty line and its position in the text."""

    text: str
    start: int


@dataclass(frozen=True)
class Job:
    """A job in a résumé: start and details.

    The details are company, position, location, dateRange, industry and year, if the text has them.
    """

    start: int
    facts: dict[str, str] = field(default_factory=dict)


def jobs_of(lines: Sequence[TextLine]) -> list[Job]:
    """Find the jobs in a section.

    A job starts with a line like `Company (Industry) | Position | Location | Date range`. Without these lines, jobs are
    found by dates.
    """
    piped = [Job(line.start, facts_of_pipes(line.text)) for line in lines if is_piped(line.text)]
    return piped or _jobs_by_dates(lines)


def is_piped(line: str) -> bool:
    return (
        line.count("|") >= 2
        and len(line) <= LONGEST_PIPED
        and not BULLET.match(line)
        and DATE_RANGE.search(line) is not None
    )


def facts_of_pipes(line: str) -> dict[str, str]:
    """Parse a line like `Company (Industry) | Position | Dates` into details. Dates may follow anywhere."""
    parts = [part.strip() for part in line.split("|")]
    dates = next((i for i in range(len(parts) - 1, 0, -1) if DATE_RANGE.search(parts[i])), None)
    facts = _company(parts[0])
    other_parts = [part for index, part in enumerate(parts) if index not in (0, dates) and part]
    facts |= dict(zip(("position", "location"), other_parts, strict=False))
    if dates is not None:
        facts |= _dates(parts[dates])
    return facts


def _company(text: str) -> dict[str, str]:
    match = COMPANY.fullmatch(text)
    return {"company": match["company"], "industry": match["industry"].strip()} if match else {"company": text}


def _dates(text: str) -> dict[str, str]:
    match = DATE_RANGE.search(text)
    dates = " ".join((match[0] if match else text).split())
    years = YEAR.findall(dates)
    if not years:
        return {"dateRange": dates}
    end = "present" if IS_CURRENT.search(dates) else years[-1]
    return {"dateRange": dates, "year": years[-1], "startYear": years[0], "endYear": end}


def _jobs_by_dates(lines: Sequence[TextLine]) -> list[Job]:
    jobs: list[Job] = []
    company = ""
    last_head = -1  # the last line in the previous job's head
    for index, line in enumerate(lines):
        if len(line.text) > LONGEST_NAME or BULLET.match(line.text):
            continue
        match = DATE_RANGE.search(line.text)
        if match is None:
            continue
        before = line.text[: match.start()].strip(" ,|·—–-(\t")
        if before:
            names = [part.strip() for part in re.split(r"\s[,·|–—-]\s|,\s|\s{2,}", before, maxsplit=1)]
            facts = _company(names[0]) | ({"position": names[1]} if len(names) > 1 else {})
            jobs.append(Job(line.start, facts | _dates(line.text)))
            last_head = index
            continue
        first = index
        facts = {}
        if index - 1 > last_head and _is_name(lines[index - 1].text):
            first, facts = index - 1, {"position": lines[index - 1].text}
            above = index - 2
            if above > last_head and DURATION.fullmatch(lines[above].text) and above - 1 > last_head:
                first, company = above - 1, lines[above - 1].text
            elif above > last_head + bool(jobs) and _is_name(lines[above].text):
                first, company = above, lines[above].text
        if company:
            facts |= _company(company)
        facts |= _dates(match[0])
        last_head = index
        after = lines[index + 1].text if index + 1 < len(lines) else ""
        if 0 < len(after) <= 60 and _is_name(after) and not DURATION.fullmatch(after):
            facts["location"] = after
        jobs.append(Job(lines[first].start, facts))
    return jobs


def _is_name(line: str) -> bool:
    return len(line) <= LONGEST_NAME and not BULLET.match(line) and line[-1] not in ".;:!?。"


#: From this share of its target size on, a chunk may end with a paragraph.
FILLED = 0.6


def narrative_pieces(text: str, file_name: str, limits: Chunking) -> list[Piece]:
    """Split a journey into numbered pieces. `limits` has their sizes. Metadata come from the file name."""
    boundaries = Boundaries(text)
    spans = _spans(boundaries, limits)
    paragraphs = boundaries.paragraphs
    fiscal_year, year = fiscal_year_of(file_name)
    pieces = []
    for part, (start, end) in enumerate(spans, start=1):
        first, last = bisect_right(paragraphs, start) + 1, bisect_right(paragraphs, max(start, end - 1)) + 1
        metadata: dict[str, Any] = {
            "source": file_name,
            "category": "journey",
            "paragraphs": f"{first}-{last}" if last > first else str(first),
            "part": f"{part}/{len(spans)}",
        }
        if fiscal_year:
            metadata |= {"fiscalYear": fiscal_year, "year": year}
        pieces.append(Piece(start, end, metadata))
    return pieces


def _spans(boundaries: Boundaries, limits: Chunking) -> list[Span]:
    spans: list[Span] = []
    overlap_tokens = min(limits.narrative_overlap_tokens, limits.narrative_hard_tokens // 2)
    start, covered, stop = 0, 0, len(boundaries.text)
    while covered < stop:
        end = _end_of_chunk(boundaries, start, covered, stop, limits)
        spans.append((start, end))
        covered = end
        start = overlap_start(boundaries, start, end, words=limits.narrative_overlap_words, tokens=overlap_tokens)
    return spans


def _end_of_chunk(boundaries: Boundaries, start: int, covered: int, stop: int, limits: Chunking) -> int:
    """Return the best end for a chunk which starts at `start`.

    The end is after `covered`, because each chunk needs new text.
    """
    hard_limit, soft_limit = limits.narrative_hard_tokens, limits.narrative_soft_tokens
    share, target_share = soft_limit / hard_limit, limits.narrative_target_tokens / hard_limit
    hard = max(fitting_end(boundaries, start, stop, hard_limit), covered + 1)
    length = hard - start
    if hard == stop and estimate_tokens(boundaries.text[start:stop]) <= soft_limit:
        return stop
    soft = max(start + int(length * share), covered + 1)
    target = start + int(length * target_share)
    filled = max(start + int(length * target_share * FILLED), covered)
    last_boundary = boundaries.last
    for end in (
        last_boundary(PARAGRAPH, filled, soft),
        last_boundary(SENTENCE, max(filled, covered), soft),
        last_boundary(SENTENCE, max(soft, covered), hard),
        last_boundary(LINE, max(filled, covered), soft),
    ):
        if end is not None and estimate_tokens(boundaries.text[start:end]) <= hard_limit:
            return end
    return max(fitting_end(boundaries, start, min(max(target, covered + 1), stop), hard_limit), covered + 1)
