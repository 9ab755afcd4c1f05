"""Recognise the kind of a document by file name and text. Source 001 in docs/sources.md, phase 1."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Kind = Literal["resume", "linkedin", "journey", "github", "generic"]

#: Headings in a résumé, in the product's languages.
RESUME_HEADINGS = re.compile(
    r"^[#* \t]*(?P<title>(?:professional |career |executive )?summary|(?:professional |career )?profile|about(?: me)?"
    r"|objective|(?:work |professional |relevant |volunteer )?experience|work history"
    r"|employment(?: history)?|career history|volunteering|education(?: (?:and|&) training)?|academic background"
    r"|(?:technical |core |top |key |professional )?(?:skills|competenc(?:ies|es))"
    r"|(?:selected |key |personal )?projects"
    r"|(?:licenses (?:and|&) )?certifications?|languages|publications|patents|courses|interests|hobbies|references"
    r"|(?:honors|honours|awards)(?:[- &and]+(?:awards|honors))?|achievements|contact(?: information)?"
    r"|경력(?: ?사항)?|학력(?: ?사항)?|(?:보유 ?)?기술|자격증|자격 사항|프로젝트|자기 ?소개(?:서)?"
    r"|연락처|수상(?: ?내역)?|외국어"
    r"|berufserfahrung|ausbildung|kenntnisse|sprachen|werkervaring|opleiding(?:en)?|vaardigheden|talen"
    r"|expérience(?:s)?(?: professionnelles?)?|formation|compétences|experiencia(?: laboral| profesional)?|educación"
    r"|habilidades|idiomas|职业经历|工作经历|教育背景|技能|職歴|学歴|スキル)[ \t:：*]*$",
    re.IGNORECASE | re.MULTILINE,
)
RESUME_NAME = re.compile(
    r"(?<![a-z])(?:resume|résumé|cv|curriculum[ _-]?vitae|lebenslauf)(?![a-z])|이력서|경력기술서", re.I
)
LINKEDIN_NAME = re.compile(r"linked[ _-]?in|^profile(?: ?\(\d+\))?\.pdf$", re.IGNORECASE)
JOURNEY_NAME = re.compile(r"journey|reflection|(?<![a-z])diary|회고|여정", re.IGNORECASE)
JOURNEY_TEXT = re.compile(r"\b(?:my|our) (?:\w+ )?(?:journey|reflections?)\b|\blooking back\b|회고", re.IGNORECASE)
FISCAL_YEAR = re.compile(
    r"(?<![a-z])fy[ _-]?(?P<first>(?:20)?\d{2})(?:[ _–/-]+(?P<last>(?:20)?\d{2}))?(?!\d)", re.IGNORECASE
)
YEAR = re.compile(r"(?<!\d)(?:19|20)\d{2}(?!\d)")
#: Characters examined from the beginning.
LOOKED_AT = 20_000


@dataclass(frozen=True)
class DocumentType:
    """A document's type, and the year in the file name: 2025 for `journey_fy-2025-2026.pdf`."""

    kind: Kind
    year: str = ""


def document_type_of(text: str, file_name: str = "") -> DocumentType:
    """Detect a document's type by the file name, else by the text."""
    name = re.split(r"[/\\]", file_name)[-1]
    return DocumentType(_kind_by_name(name) or _kind_by_text(text[:LOOKED_AT], name), year_of(name))


def year_of(file_name: str) -> str:
    """Return the year in a file name, or "" without a year. A fiscal year gives the first year."""
    _, year = fiscal_year_of(file_name)
    match = YEAR.search(file_name)
    return year or (match[0] if match else "")


def fiscal_year_of(file_name: str) -> tuple[str, str]:
    """Return the fiscal year in a file name and the first year, for example ("FY25-26", "2025"); else ("", "")."""
    match = FISCAL_YEAR.search(file_name)
    if match is None:
        return "", ""
    first, last = match["first"], match["last"]
    year = first if len(first) == 4 else f"20{first}"
    return (f"FY{first[-2:]}-{last[-2:]}" if last else f"FY{first[-2:]}"), year


def _kind_by_name(name: str) -> Kind | None:
    if LINKEDIN_NAME.search(name):
        return "linkedin"
    if RESUME_NAME.search(name):
        return "resume"
    return "journey" if JOURNEY_NAME.search(name) or FISCAL_YEAR.search(name) else None


def _kind_by_text(text: str, name: str) -> Kind:
    if text.startswith("Repository: ") or name.lower().endswith((".md", ".markdown")):
        return "github"
    headings = {match["title"].casefold() for match in RESUME_HEADINGS.finditer(text)}
    if "linkedin.com/in/" in text.casefold() and (
        "top skills" in headings or re.search(r"^Page \d+ of \d+$", text, re.M)
    ):
        return "linkedin"
    if len(headings) >= 3:
        return "resume"
    return "journey" if JOURNEY_TEXT.search(text[:3000]) else "generic"
