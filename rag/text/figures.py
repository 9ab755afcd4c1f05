"""Read and compare numbers, amounts and dates in texts, in any notation.

A wrong number is the most expensive error in an answer. "1,500.00", "1.500" and "1 500" can be the same number; "1 July
2026" and "2026-07-01" contain the same three numbers; "twelve weeks" contains 12.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from rag.text.dates import folded
from rag.text.number_words import written_numbers

DATE = re.compile(r"(?<!\d)(\d{1,4})[./-](\d{1,2})[./-](\d{1,4})(?!\d)")
NUMBER = re.compile(r"\d+(?:[.,'’\u00a0\u202f ]\d{3}(?!\d))*(?:[.,]\d+)?")
NOT_ASCII = re.compile(r"[^\x00-\x7f]")
#: A sign containing a figure stands for at most this many characters: "⑫", "㋀", "㏾".
MOST_OF_A_SIGN = 5
GROUPING = "'’\u00a0\u202f "

MONTHS = {
    name: number
    for names in (
        "january february march april may june july august september october november december",
        "januari februari maart april mei juni juli augustus september oktober november december",
        "januar februar märz april mai juni juli august september oktober november dezember",
        "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
        "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
        "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
        "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
        "stycznia lutego marca kwietnia maja czerwca lipca sierpnia września października listopada grudnia",
        "styczeń luty marzec kwiecień maj czerwiec lipiec sierpień wrzesień październik listopad grudzień",
        "ocak şubat mart nisan mayıs haziran temmuz ağustos eylül ekim kasım aralık",
        "يناير فبراير مارس أبريل مايو يونيو يوليو أغسطس سبتمبر أكتوبر نوفمبر ديسمبر",
    )
    for number, name in enumerate(names.split(), start=1)
}

#: Only beside a number: "mar" and "dec" are words too.
SHORT_MONTHS = {
    name: number
    for names in (
        "jan feb mar apr may jun jul aug sep oct nov dec",
        "jan feb mrt apr mei jun jul aug sept okt nov dez",
        "jan feb mär apr mai jun jul aug sept okt nov déc",
    )
    for number, name in enumerate(names.split(), start=1)
}
#: Month names with a second meaning: alone they are no date.
AMBIGUOUS_MONTHS = frozenset({"may", "march", "mars", "marzo", "maj", "luty", "mei", "mai"})
_MONTH_NAMES = sorted({*MONTHS, *SHORT_MONTHS}, key=len, reverse=True)
#: Grouped by first letter: without regard to case, each of 150 names would be tried at each word.
_MONTH_NAME = "|".join(
    f"{first}(?:{'|'.join(name[1:] for name in _MONTH_NAMES if name[0] == first)})"
    for first in dict.fromkeys(name[0] for name in _MONTH_NAMES)
)
#: Months only with a capital: "grade 5 may apply".
_NO_MONTHS = frozenset({"may", "march"})
_LETTERS = re.compile(r"[^\W\d_]+")


_MONTH_NUMBERS = {folded(name): number for name, number in (SHORT_MONTHS | MONTHS).items()}
_LONG_MONTHS = frozenset(map(folded, MONTHS))
_AND = r"(?:[-–—/,&+]|to|and|or|through|until|bis|und|oder|tot|en|of|t/m|au|et|ou|al|y|o|e|a|do|i|lub)"
_ORDINAL = r"(?:st|nd|rd|th|er|[ºª.])?"
_DAYS = rf"(?:\d{{1,2}}{_ORDINAL}\s{{0,2}}{_AND}\s{{0,2}}){{0,4}}\d{{1,2}}"
_YEAR_AFTER = r"(?:,?\s{1,2}(?:de\s|of\s)?(?P<year>(?:19|20)\d\d)(?!\d))?"
#: "1–5 July 2026", "July 1 and 15, 2026", "July 2026", "2026년 7월 1일", "2026年7月1日".
_DAY_FORMS = (
    re.compile(
        rf"(?<![\d.,/])(?P<days>{_DAYS}){_ORDINAL}\s{{0,2}}(?:of\s|de\s|di\s)?(?P<month>{_MONTH_NAME})\b\.?{_YEAR_AFTER}",
        re.IGNORECASE,
    ),
    re.compile(
        rf"\b(?P<month>{_MONTH_NAME})\b\.?\s{{1,2}}(?P<days>{_DAYS})(?:st|nd|rd|th)?(?![\d%]){_YEAR_AFTER}",
        re.IGNORECASE,
    ),
    re.compile(rf"\b(?P<month>{_MONTH_NAME})\b\.?(?P<days>){_YEAR_AFTER}", re.IGNORECASE),
    re.compile(
        r"(?:(?P<year>(?:19|20)\d\d)\s?[년年]\s?)?(?<!\d)(?P<month>\d{1,2})\s?[월月](?!간)\s?(?:(?P<days>\d{1,2})\s?[일日])?"
    ),
)
#: Year, month and day; `None` for a missing part.
Day = tuple[int | None, int, int | None]


@lru_cache(maxsize=512)
def figures(text: str, language: str = "") -> frozenset[str]:
    """Return all numbers in a text in plain digits ("1500"). An ambiguous number gives every possible value.

    Number words and months are included. `language` is the text's ISO 639-1 code: "on" is ten in Turkish and a
    preposition in English.
    """
    text = _plain_digits(text)
    # "12 345" may be a single number or two table columns.
    readings = {
        r for figure in _figures_in(text) for part in (figure, *figure.split(" ")) for r in _possible_values(part)
    }
    readings.update(_canonical(str(number)) for number in written_numbers(text, language))
    words = (
        folded(part)
        for word in re.findall(r"[^\W\d_]+(?:-[^\W\d_]+)*", text.lower())
        for part in (word, *word.split("-"))
    )
    readings.update(str(_MONTH_NUMBERS[word]) for word in words if word in _LONG_MONTHS)
    return frozenset(readings)


def missing_figures(claim: str, source_figures: frozenset[str]) -> list[str]:
    """Return the numbers in a claim, as written, which have no possible value in `source_figures`."""
    return [figure for figure in _figures_in(_plain_digits(claim)) if not _is_in_source(figure, source_figures)]


@lru_cache(maxsize=512)
def days(text: str) -> frozenset[Day]:
    """Return every possible meaning of each date in a text: (year, month, day), with `None` for a missing part."""
    text = _plain_digits(text)
    possible_days: set[Day] = set()
    for date in DATE.findall(text):
        possible_days.update(_numeric_days([int(part) for part in date]))
    # Most texts name no month, and this check takes a tenth of the patterns' time.
    for form in _DAY_FORMS if _names_a_month(text) else _DAY_FORMS[-1:]:
        for match in form.finditer(text):
            month = folded(match["month"])
            if match["month"] in _NO_MONTHS:
                continue
            number = int(month) if month.isdigit() else _MONTH_NUMBERS[month]
            year = int(match["year"]) if match["year"] else None
            named = [int(day) for day in re.findall(r"\d+", match["days"] or "")]
            if not named and year is None and (month in AMBIGUOUS_MONTHS or month in SHORT_MONTHS.keys() - MONTHS):
                continue
            possible_days.update((year, number, day) for day in named)
            if not named:
                possible_days.add((year, number, None))
    return frozenset(day for day in possible_days if 1 <= day[1] <= 12 and (day[2] is None or 1 <= day[2] <= 31))


def _names_a_month(text: str) -> bool:
    words = {folded(word) for word in set(_LETTERS.findall(text)) - _NO_MONTHS}
    # "1stJuly" is one word.
    return any(not _MONTH_NUMBERS.keys().isdisjoint(word[cut:] for word in words) for cut in (0, 1, 2))


def missing_days(claim: str, source_days: frozenset[Day]) -> list[Day]:
    """Return the dates in a claim which match no date in `source_days` in any meaning.

    Each date is returned in the most precise meaning.
    """
    if not (stated := days(claim)):
        return []
    # "1 July" is also read as a month alone, and "03/04/2026" has two readings: either is enough.
    precise = [day for day in stated if day[2] is not None] or [*stated]
    months = {day[1] for day in precise}
    precise += [day for day in stated if day[1] not in months]
    ambiguous = {
        d for numeric_date in DATE.findall(_plain_digits(claim)) for d in _numeric_days([int(p) for p in numeric_date])
    }
    missing = [day for day in precise if not any(_is_same_day(day, other) for other in source_days)]
    if ambiguous and len(ambiguous - set(missing)) > 0:
        missing = [day for day in missing if day not in ambiguous]
    return missing


def _numeric_days(parts: list[int]) -> list[Day]:
    """Return the possible dates for year, month and day in numbers: "2026-07-01", "1.7.2026" or "7/1/26"."""
    if parts[0] > 31:
        return [(parts[0], parts[1], parts[2])]
    year = parts[2] + 2000 if parts[2] < 100 else parts[2]
    return [(year, month, day) for day, month in ((parts[0], parts[1]), (parts[1], parts[0])) if month <= 12]


def _is_same_day(claimed: Day, source: Day) -> bool:
    """Whether a claim's date matches a date in the source. The claim may lack the day, and both may lack the year."""
    if claimed[1] != source[1] or (claimed[2] is not None and claimed[2] != source[2]):
        return False
    return claimed[0] is None or source[0] is None or claimed[0] == source[0]


def _is_in_source(figure: str, source_figures: frozenset[str]) -> bool:
    if any(value in source_figures for value in _possible_values(figure)):
        return True
    parts = figure.split(" ")
    return len(parts) > 1 and all(_canonical(part) in source_figures for part in parts)


def _plain_digits(text: str) -> str:
    return text if text.isascii() else NOT_ASCII.sub(_plain_character, text)


def _plain_character(match: re.Match[str]) -> str:
    character = match.group()
    if character in "\u00a0\u202f":
        return "\u202f"
    if character.isdecimal():
        return str(unicodedata.decimal(character))
    plain = unicodedata.normalize("NFKC", character)
    # Some characters stand for a sentence (U+FDFA for four words): no figure.
    return plain if len(plain) <= MOST_OF_A_SIGN else character


def _figures_in(text: str) -> list[str]:
    numbers = [number for date in DATE.findall(text) for number in date]
    return numbers + NUMBER.findall(DATE.sub(" ", text))


def _possible_values(figure: str) -> set[str]:
    """Return the possible values of a written number: "1.500" is 1500 or 1.5, "1,500.00" only 1500."""
    joined = figure
    for character in GROUPING:
        joined = joined.replace(character, "")
    marks = re.findall(r"[.,]", joined)
    if len(set(marks)) == 2:
        return {_canonical(joined.replace(marks[0], "").replace(marks[-1], "."))}
    readings = {_canonical(joined.replace(",", "."))} if len(marks) <= 1 else set()
    if all(len(part) == 3 for part in re.split(r"[.,]", joined)[1:]):
        readings.add(_canonical(re.sub(r"[.,]", "", joined)))
    return readings


def _canonical(number: str) -> str:
    integer, _, fraction = number.partition(".")
    fraction = fraction.rstrip("0")
    return (integer.lstrip("0") or "0") + (f".{fraction}" if fraction else "")
