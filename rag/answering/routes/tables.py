"""The tables of a section as its text has them: cells between bars or tabs, or rows whose cells have run together."""

from __future__ import annotations

import re
from collections.abc import Sequence

BAR = re.compile(r"\s*(?:\||\t)\s*")
RULE = re.compile(r"[\s|:+-]+")
#: A value at the end of a row whose cells have run together.
VALUE = (
    r"(?:not covered|not included|not available|none|yes|no|n/a|included|full|–|-"
    r"|niet gedekt|geen|ja|nee|nicht versichert|keine?|nein|없음|해당 없음|미보장|보장"
    r"|(?:[£$€₩]\s?)?\d[\d.,]*(?:\s?(?:%|[£$€₩]|[^\W\d_]{1,12}))?)"
)
TWO_VALUES = re.compile(rf"(?P<label>.*\S)\s+(?P<one>{VALUE})\s+(?P<other>{VALUE})", re.IGNORECASE)
HALVES = re.compile(r"(?P<label>\S.*?)\s+(?P<one>\S.*\S)\s+(?P=one)")


def cells(line: str) -> list[str]:
    """The cells of a row; none for a line that is no row of a table with bars or tabs."""
    if "|" not in line and "\t" not in line:
        return []
    line = line.strip()
    # The first cell of heads may be empty: only Markdown has a bar at both ends.
    if line.startswith("|") and line.endswith("|"):
        line = line.strip("|")
    found = [part.strip() for part in BAR.split(line)]
    return found if len(found) > 1 and not RULE.fullmatch(line) else []


def rows_of(text: str) -> list[list[str]]:
    """All rows between bars or tabs, in their order."""
    return [found for line in text.splitlines() if (found := cells(line))]


def split_pair(line: str) -> tuple[str, str, str] | None:
    """A row whose cells have run together: its label and two values; None where they cannot be told apart."""
    said = " ".join(line.split())
    for pattern in (HALVES, TWO_VALUES):
        if match := pattern.fullmatch(said):
            other = match["other"] if "other" in match.groupdict() else match["one"]
            return match["label"], match["one"], other
    return None


def columns_of(heads: Sequence[str], names: tuple[str, str]) -> tuple[int, int] | None:
    """In which columns two names stand; None unless each stands in one of its own."""
    places = []
    for name in names:
        found = [place for place, head in enumerate(heads) if place and _names(head, name)]
        if len(found) != 1:
            return None
        places.append(found[0])
    return (places[0], places[1]) if places[0] != places[1] else None


def _names(head: str, name: str) -> bool:
    return bool(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", head, re.IGNORECASE))
