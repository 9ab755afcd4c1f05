"""Find the date a notice states for itself, often long before its posting: Korean and ISO forms.

dateparser does not fit: it reads 25.12.15 as a day in 2015 while Korean boards mean 2025, does not read 20251215, does
not distinguish the notice's date from dates of events, and takes over a second for the first text.
"""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import datetime

from rag.text.dates import KOREA

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
    """Find a text's date: after a label such as 작성일, else alone on a line near either end.

    Dates inside sentences are dates of events and do not count. Without a zone it is Korean time.
    """
    text = text[:LOOKED_AT]
    for found in LABELLED.finditer(text):
        if (value := _value(found)) is not None:
            return value
    for found in LABELLED_SHORT.finditer(text):
        year = int(found["year"])
        with suppress(ValueError):  # there is no 31st of February
            return datetime(
                year if year > 99 else 2000 + year,
                int(found["month"] or found["month2"]),
                int(found["day"] or found["day2"]),
                tzinfo=KOREA,
            )
    lines = [line for line in text.splitlines() if line.strip()]
    for line in (*lines[:EDGE_LINES], *reversed(lines[EDGE_LINES:][-EDGE_LINES:])):
        alone = ALONE.match(line)
        if alone is not None and (value := _value(alone)) is not None:
            return value
    return None


def _value(found: re.Match[str]) -> datetime | None:
    year = found["year"].lstrip("'’")
    hour = int(found["hour"] or 0)
    if found["half"] == "오후" and hour < 12:
        hour += 12
    elif found["half"] == "오전" and hour == 12:
        hour = 0
    zone = found["zone"] or ""
    try:
        value = datetime(
            int(year) if len(year) == 4 else 2000 + int(year),
            int(found["month"]),
            int(found["day"]),
            hour,
            int(found["minute"] or 0),
            int(found["second"] or 0),
            tzinfo=KOREA,
        )
        if zone:
            value = datetime.fromisoformat(value.replace(tzinfo=None).isoformat() + zone.replace("Z", "+00:00"))
    except ValueError:
        return None  # there is no 31st of February
    return value
