"""Find the period named in a question by rules in six languages: "since last March", "2024년 이후", "vóór 1 juli 2025".

A date is only recognised next to a word like "since", "until" or "in", because a number alone may mean anything. Also
find the date of a notice, in Korean and ISO forms, which is often long before the posting.

dateparser does not fit: 25.12.15 becomes a day in 2015 while Korean boards mean 2025, and 20251215 is not recognised.
The notice's date is not distinguished from event dates, and the first text takes over a second.
"""

from __future__ import annotations

import re
from calendar import monthrange
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone

from rag.text.relative_days import in_digits

#: Notice boards write local time without a zone; the source describes a Korean board.
KOREA = timezone(timedelta(hours=9))


@dataclass(frozen=True)
class DateRange:
    """A range of days which includes both ends. An end is `None` if the range is open there."""

    first: date | None = None
    last: date | None = None


_MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "january jan januari januar janvier enero gennaio",
            "february feb februari februar février fevrier febrero febbraio",
            "march mar maart märz maerz mars marzo",
            "april apr avril abril aprile",
            "may mei mai mayo maggio",
            "june jun juni juin junio giugno",
            "july jul juli juillet julio luglio",
            "august aug augustus août aout agosto",
            "september sep sept septembre septiembre settembre",
            "october oct oktober okt octobre octubre ottobre",
            "november nov novembre noviembre",
            "december dec dezember dez décembre decembre diciembre dicembre",
        ),
        1,
    )
    for name in names.split()
}


def folded(word: str) -> str:
    """Lower-case a word for comparison with patterns, also "APRİL" and "KASIM" from Turkish keyboards."""
    return word.lower().replace("i\u0307", "i").replace("ı", "i").replace("ſ", "s")


_MONTH = "|".join(sorted(map(re.escape, _MONTHS), key=len, reverse=True))
_LAST = (
    r"last|past|previous|vorige[nrms]?|afgelopen|letzte[nrms]?|vergangene[nrms]?"
    r"|dernier|dernière|pasado|pasada|scors[oa]"
)
_THIS = r"this|the current|dit|deze|diese[nrms]?|cette|ce|este|esta|quest[oa]"
_UNIT = {
    "week": r"week|woche|semaine|semana|settimana",
    "month": r"month|maand|monats?|mois|mes|mese",
    "year": r"year|jaar|jahre?s?|année|an|año|anno",
}
_NUMBER = r"3[01]|[12]\d|0?[1-9]"
#: Forms of a day, most specific first. Groups: y, m, d, name, last, unit.
_DAY = (
    r"(?:(?P<y>(?:19|20)\d\d)(?:\s*[-./년年]\s*(?P<m>1[0-2]|0?[1-9])"
    rf"(?:\s*[-./월月]\s*(?P<d>{_NUMBER})\s*[일日]?|\s*[월月])?|\s*[년年])?"
    rf"|(?P<d2>{_NUMBER})(?:st|nd|rd|th|\.|er)?\s+(?:of\s+|de\s+)?(?P<name2>{_MONTH})\b\.?"
    r"(?:\s+(?:de\s+)?(?P<y2>(?:19|20)\d\d))?"
    rf"|(?:(?P<last>{_LAST})\s+)?(?P<name>{_MONTH})\b\.?(?:\s+(?P<d3>{_NUMBER})(?:st|nd|rd|th)?,)?"
    r"(?:\s+(?:de\s+)?(?P<y3>(?:19|20)\d\d))?"
    rf"|(?P<which>{_LAST}|{_THIS})\s+(?P<unit>{'|'.join(_UNIT.values())})\b"
    rf"|(?:l['’]|el\s+|la\s+)?(?P<unit2>{'|'.join(_UNIT.values())})\s+"
    r"(?:dernier|dernière|passée?|pasado|pasada|scors[oa])\b"
    r"|(?P<east>작년|지난해|올해|지난달|이번 ?달|지난주|昨年|去年|今年|先月|上个月|先週|上周))"
)
_SINCE = r"since|after|as of|sinds|na|vanaf|seit|nach|ab|depuis|après|à partir d[eu]|desde|después de|dal?|dopo"
_UNTIL = r"before|until|till|up to|by|vóór|tot|vor|bis|avant|jusqu['’](?:en|à|au)|antes de|hasta|prima del?|fino a"
_IN = r"in|during|of|from|van|im|aus|en|pendant|nel|del?"
_BETWEEN = re.compile(
    r"\b(?:between|tussen|zwischen|entre|tra)\s+(?P<first>(?:19|20)\d\d)\s+\w{1,3}\s+(?P<last>(?:19|20)\d\d)\b",
    re.IGNORECASE,
)
_PREFIXED = [
    (kind, re.compile(rf"\b(?:{words})\s+(?:the\s+|den\s+|dem\s+|el\s+|le\s+|de\s+)?{_DAY}", re.IGNORECASE))
    for kind, words in (("since", _SINCE), ("until", _UNTIL), ("in", _IN))
]
_SUFFIXED = [
    ("since", re.compile(rf"{_DAY}\s*(?:이후|부터|이래|以降|以来|から|以后|之后|起)")),
    ("until", re.compile(rf"{_DAY}\s*(?:이전|까지|전에|以前|まで|之前|以前)")),
    ("in", re.compile(rf"{_DAY}\s*(?:에|의|중|동안|の|に|的)")),
]
_ALONE = re.compile(
    rf"\b(?P<which>{_LAST}|{_THIS})\s+(?P<unit>{'|'.join(_UNIT.values())})\b|(?P<east>작년|지난해|올해|昨年|去年|今年)",
    re.IGNORECASE,
)
_EAST = {
    "작년": ("last", "year"), "지난해": ("last", "year"), "올해": ("this", "year"), "지난달": ("last", "month"),
    "이번달": ("this", "month"), "지난주": ("last", "week"), "昨年": ("last", "year"), "去年": ("last", "year"),
    "今年": ("this", "year"), "先月": ("last", "month"), "上个月": ("last", "month"), "先週": ("last", "week"),
    "上周": ("last", "week"),
}  # fmt: skip
_YEAR = re.compile(r"(?<![\d.,])(?:19|20)\d\d(?![\d%]|[.,]\d)")
_FISCAL_YEAR = re.compile(r"\bFY\s?'?(\d\d)(?:[-/]\d\d)?\b", re.IGNORECASE)


def dates_in(text: str, today: date) -> DateRange | None:
    """Return the period which a question names, or `None` if no period is named."""
    text = in_digits(" ".join(text.split()))
    between = _BETWEEN.search(text)
    if between is not None:
        return DateRange(date(int(between["first"]), 1, 1), date(int(between["last"]), 12, 31))
    first: date | None = None
    last: date | None = None
    for kind, pattern in (*_SUFFIXED, *_PREFIXED):
        match = pattern.search(text)
        if match is None or (kind == "in" and (first or last)):
            continue
        span = _span(match, today)
        if span is None:
            continue
        if kind == "since" and first is None:
            first = span[0]
        elif kind == "until" and last is None:
            # "until March" includes March, "before March" does not.
            is_before = re.match(r"before|vóór|vor\b|avant|antes|prima", match.group(), re.IGNORECASE) or (
                match.group().endswith(("이전", "전에", "之前"))
            )
            last = span[0] - timedelta(days=1) if is_before else span[1]
        elif kind == "in":
            first, last = span
    if first is None and last is None and (match := _ALONE.search(text)) is not None:
        span = _span(match, today)
        if span is not None:
            first, last = span
    if first is not None and last is not None and last < first:
        return None
    return DateRange(first, last) if first or last else None


def years_in(text: str, today: date) -> tuple[int, ...]:
    """Return the years named in a question in order, including "FY25-26" and "last year"."""
    text = in_digits(" ".join(text.split()))
    years = [int(year) for year in _YEAR.findall(text)]
    years += [2000 + int(year) for year in _FISCAL_YEAR.findall(text)]
    for match in _ALONE.finditer(text):
        which, unit = _relative(match.groupdict())
        if unit == "year":
            years.append(today.year - (which == "last"))
    return tuple(dict.fromkeys(years))


def _span(match: re.Match[str], today: date) -> tuple[date, date] | None:
    parts = {name: value for name, value in match.groupdict().items() if value}
    try:
        if "y" in parts:
            return _period(int(parts["y"]), int(parts.get("m", 0)), int(parts.get("d", 0)))
        if name := parts.get("name2") or parts.get("name"):
            month = _MONTHS[folded(name)]
            day = int(parts.get("d2") or parts.get("d3") or 0)
            year = parts.get("y2") or parts.get("y3")
            return _period(int(year) if year else _latest_year(month, day, today), month, day)
    except ValueError:  # 31 February
        return None
    which, unit = _relative(parts)
    if unit == "year":
        return _period(today.year - (which == "last"), 0, 0)
    if unit == "month":
        start = today.replace(day=1)
        start = (start - timedelta(days=1)).replace(day=1) if which == "last" else start
        return _period(start.year, start.month, 0)
    monday = today - timedelta(days=today.weekday() + (7 if which == "last" else 0))
    return (monday, monday + timedelta(days=6)) if unit == "week" else None


def _relative(parts: dict[str, str]) -> tuple[str, str]:
    if parts.get("east"):
        return _EAST[parts["east"].replace(" ", "")]
    word = parts.get("unit") or parts.get("unit2") or ""
    unit = next((unit for unit, words in _UNIT.items() if re.fullmatch(words, word, re.IGNORECASE)), "")
    is_this = bool(parts.get("which")) and re.fullmatch(_THIS, parts["which"], re.IGNORECASE) is not None
    return "this" if is_this else "last", unit


def _latest_year(month: int, day: int, today: date) -> int:
    """Return the latest year in which a month or day is not in the future. In June 2025, "July" means July 2024."""
    return today.year if (month, day or 1) <= (today.month, today.day) else today.year - 1


def _period(year: int, month: int, day: int) -> tuple[date, date]:
    if not month:
        return date(year, 1, 1), date(year, 12, 31)
    if not day:
        return date(year, month, 1), date(year, month, monthrange(year, month)[1])
    return date(year, month, day), date(year, month, day)


DATE = (
    r"(?P<year>(?:19|20)\d{2}|['’]\d{2})\s?(?:년|[-./])\s?(?P<month>\d{1,2})\s?(?:월|[-./])\s?(?P<day>\d{1,2})"
    r"(?:\s?일|(?!\d)\.?)"
)
TIME = r"(?:[T\s,]*(?:\([월화수목금토일]\)\s*)?(?P<half>오전|오후)?\s*(?P<hour>\d{1,2})(?::|시\s?)(?P<minute>\d{2})?분?(?::(?P<second>\d{2})(?:\.\d+)?)?\s*(?P<zone>Z|[+-]\d{2}:?\d{2})?)?"  # fmt: skip  # noqa: E501
LABEL = r"(?:작성일자?|등록일시?|게시일자?|공지일자?|작성\s?일시|공고일자?|시행일자?|기안일|일\s?자|날\s?짜|date|posted(?: on)?|published(?: on)?|updated(?: on)?)"  # noqa: E501
#: After a label a year may have two figures, and a date no marks at all: 25.12.15, 20251215.
SHORT = r"(?P<year>20\d{2}|\d{2})(?:(?P<mark>[-./])\s?(?P<month>\d{1,2})(?P=mark)\s?(?P<day>\d{1,2})(?!\d)\.?|(?<=20\d\d)(?P<month2>\d{2})(?P<day2>\d{2})(?!\d))"  # noqa: E501
LABELLED_SHORT = re.compile(rf"(?:^|[\s\[(|]){LABEL}\s*+[:：|\])]*+\s*+{SHORT}", re.IGNORECASE | re.MULTILINE)
LABELLED = re.compile(rf"(?:^|[\s\[(|]){LABEL}\s*+[:：|\])]*+\s*+{DATE}{TIME}", re.IGNORECASE | re.MULTILINE)
#: A line with only a date and perhaps a weekday. White space must stay inside the line: blank lines would be scanned
#: again from each line.
ALONE = re.compile(
    rf"^(?:[^\S\n]|[\[(<])*+{DATE}(?:\s*\(?[월화수목금토일](?:요일)?\)?)?{TIME}(?:[^\S\n]|[\])>])*+$", re.MULTILINE
)
#: The number of lines from either end in which a separate date counts as the notice's.
EDGE_LINES = 4
LOOKED_AT = 50_000


def backdated_at_from(text: str) -> datetime | None:
    """Find the date of a text: after a label (작성일), else alone on a line near the beginning or the end.

    Dates inside sentences are ignored, because they are dates of events. A time without a zone is Korean time.
    """
    text = text[:LOOKED_AT]
    for match in LABELLED.finditer(text):
        if (value := _value(match)) is not None:
            return value
    for match in LABELLED_SHORT.finditer(text):
        year = int(match["year"])
        with suppress(ValueError):  # there is no 31st of February
            return datetime(
                year if year > 99 else 2000 + year,
                int(match["month"] or match["month2"]),
                int(match["day"] or match["day2"]),
                tzinfo=KOREA,
            )
    lines = [line for line in text.splitlines() if line.strip()]
    for line in (*lines[:EDGE_LINES], *reversed(lines[EDGE_LINES:][-EDGE_LINES:])):
        alone = ALONE.match(line)
        if alone is not None and (value := _value(alone)) is not None:
            return value
    return None


def _value(match: re.Match[str]) -> datetime | None:
    year = match["year"].lstrip("'’")
    hour = int(match["hour"] or 0)
    if match["half"] == "오후" and hour < 12:
        hour += 12
    elif match["half"] == "오전" and hour == 12:
        hour = 0
    zone = match["zone"] or ""
    try:
        value = datetime(
            int(year) if len(year) == 4 else 2000 + int(year),
            int(match["month"]),
            int(match["day"]),
            hour,
            int(match["minute"] or 0),
            int(match["second"] or 0),
            tzinfo=KOREA,
        )
        if zone:
            value = datetime.fromisoformat(value.replace(tzinfo=None).isoformat() + zone.replace("Z", "+00:00"))
    except ValueError:
        return None  # there is no 31st of February
    return value
