"""The jobs of a résumé: where each begins, and what its first lines say of it. Source 001, 2.1."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

MONTH = r"(?:(?:[A-Za-zÀ-ÿ]{3,10}\.?|\d{1,2}[./-])\s*)?"
TODAY = r"present|current|now|today|ongoing|heute|heden|nu|aujourd'hui|actualidad|현재|재직\s?중|至今|現在"
DATE = rf"{MONTH}(?:19|20)\d{{2}}(?:\s?[./년年]\s?\d{{1,2}}\s?[월月]?)?"
DATE_RANGE = re.compile(
    rf"(?<![\w.])(?:{DATE}\s*(?:[-–—~]|to|until|bis|tot)\s*(?:{DATE}|{TODAY})|{DATE}(?=\s*$))", re.IGNORECASE
)
IS_CURRENT = re.compile(TODAY, re.IGNORECASE)
YEAR = re.compile(r"(?<!\d)(?:19|20)\d{2}(?!\d)")
COMPANY = re.compile(r"(?P<company>.+?)\s*\((?P<industry>[^()]+)\)\s*")
#: How long someone was with a company, on a line of its own: LinkedIn writes it under the company's name.
DURATION = re.compile(r"\d+\s+(?:years?|months?|yrs?|mos?)(?:\s+\d+\s+(?:months?|mos?))?", re.IGNORECASE)
BULLET = re.compile(r"[•▪◦‣·○●*–-]\s|\d+[.)]\s")
#: Longest line that can be a company or a position, in characters.
LONGEST_NAME = 120
LONGEST_PIPED = 400


@dataclass(frozen=True)
class Line:
    """A line with content and where it begins in the text."""

    text: str
    start: int


@dataclass(frozen=True)
class Job:
    """Where a job begins, and company, position, location, dateRange, industry and year as far as they are said."""

    start: int
    facts: dict[str, str] = field(default_factory=dict)


def jobs_of(lines: Sequence[Line]) -> list[Job]:
    """The jobs in the lines of one section: `Company (Industry) | Position | Location | Date range`, else by dates."""
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
    """What a pipe-delimited line says: the part that is a range of dates may stand anywhere after the company."""
    parts = [part.strip() for part in line.split("|")]
    dates = next((i for i in range(len(parts) - 1, 0, -1) if DATE_RANGE.search(parts[i])), None)
    facts = _company(parts[0])
    others = [part for index, part in enumerate(parts) if index not in (0, dates) and part]
    facts |= dict(zip(("position", "location"), others, strict=False))
    if dates is not None:
        facts |= _dates(parts[dates])
    return facts


def _company(text: str) -> dict[str, str]:
    match = COMPANY.fullmatch(text)
    return {"company": match["company"], "industry": match["industry"].strip()} if match else {"company": text}


def _dates(text: str) -> dict[str, str]:
    found = DATE_RANGE.search(text)
    dates = " ".join((found[0] if found else text).split())
    years = YEAR.findall(dates)
    return {"dateRange": dates, **({"year": years[-1]} if years else {})}


def _jobs_by_dates(lines: Sequence[Line]) -> list[Job]:
    """Jobs that have their dates on a line of their own, under the position (LinkedIn), or at the end of a heading."""
    jobs: list[Job] = []
    company = ""
    taken = -1  # the last line that belongs to the head of the job before
    for index, line in enumerate(lines):
        if len(line.text) > LONGEST_NAME or BULLET.match(line.text):
            continue
        found = DATE_RANGE.search(line.text)
        if found is None:
            continue
        before = line.text[: found.start()].strip(" ,|·—–-(\t")
        if before:
            names = [part.strip() for part in re.split(r"\s[,·|–—-]\s|,\s|\s{2,}", before, maxsplit=1)]
            facts = _company(names[0]) | ({"position": names[1]} if len(names) > 1 else {})
            jobs.append(Job(line.start, facts | _dates(line.text)))
            taken = index
            continue
        first = index
        facts = {}
        if index - 1 > taken and _is_name(lines[index - 1].text):
            first, facts = index - 1, {"position": lines[index - 1].text}
            above = index - 2
            if above > taken and DURATION.fullmatch(lines[above].text) and above - 1 > taken:
                first, company = above - 1, lines[above - 1].text
            elif above > taken + bool(jobs) and _is_name(lines[above].text):
                first, company = above, lines[above].text
        if company:
            facts |= _company(company)
        facts |= _dates(found[0])
        taken = index
        after = lines[index + 1].text if index + 1 < len(lines) else ""
        if 0 < len(after) <= 60 and _is_name(after) and not DURATION.fullmatch(after):
            facts["location"] = after
        jobs.append(Job(lines[first].start, facts))
    return jobs


def _is_name(line: str) -> bool:
    return len(line) <= LONGEST_NAME and not BULLET.match(line) and line[-1] not in ".;:!?。"
