"""Figures in a text: numbers, amounts and dates, compared whatever way they are written.

A figure that an answer states and its source does not hold is the mistake that costs an employee most. "1,500.00",
"1.500" and "1 500" are one number; "1 July 2026" and "2026-07-01" hold the same three; "twelve weeks" holds 12.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

DATE = re.compile(r"(?<!\d)(\d{1,4})[./-](\d{1,2})[./-](\d{1,4})(?!\d)")
NUMBER = re.compile(r"\d+(?:[.,'’\u00a0\u202f ]\d{3}(?!\d))*(?:[.,]\d+)?")
NOT_ASCII = re.compile(r"[^\x00-\x7f]")
GROUPING = "'’\u00a0\u202f "

#: Number words up to twelve, then the round ones, in the languages whose documents spell them out.
NUMBER_WORDS = {
    word: value
    for words in (
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
        "seventeen eighteen nineteen twenty",
        "nul een twee drie vier vijf zes zeven acht negen tien elf twaalf dertien veertien vijftien zestien "
        "zeventien achttien negentien twintig",
        "null ein zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn "
        "siebzehn achtzehn neunzehn zwanzig",
        "zéro un deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize",
        "cero uno dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince",
        "zero uno due tre quattro cinque sei sette otto nove dieci undici dodici tredici quattordici quindici",
        "zero um dois três quatro cinco seis sete oito nove dez onze doze treze catorze quinze",
        "zero jeden dwa trzy cztery pięć sześć siedem osiem dziewięć dziesięć",
    )
    for value, word in enumerate(words.split())
} | {
    "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "ninety": 90, "hundred": 100, "half": 0.5,
    "dertig": 30, "veertig": 40, "vijftig": 50, "zestig": 60, "negentig": 90, "honderd": 100,
    "dreißig": 30, "vierzig": 40, "fünfzig": 50, "sechzig": 60, "neunzig": 90, "hundert": 100,
    "one-half": 0.5, "one": 1, "éen": 1, "één": 1, "eine": 1, "einen": 1, "une": 1, "una": 1, "first": 1, "second": 2,
    "third": 3, "fourth": 4, "fifth": 5, "once": 1, "twice": 2,
}  # fmt: skip
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
    )
    for number, name in enumerate(names.split(), start=1)
}


@lru_cache(maxsize=512)
def figures(text: str) -> frozenset[str]:
    """Every reading of every figure in a text, number words and names of months included, in plain form: "1500"."""
    text = _plain(text)
    # "12 345" may be one number or two columns of a table.
    readings = {r for written in _written(text) for part in (written, *written.split(" ")) for r in _readings(part)}
    for word in re.findall(r"[^\W\d_]+(?:-[^\W\d_]+)*", text.lower()):
        for part in (word, *word.split("-")):
            if part in NUMBER_WORDS:
                readings.add(_canonical(str(NUMBER_WORDS[part])))
            if part in MONTHS:
                readings.add(str(MONTHS[part]))
        tens, _, ones = word.partition("-")
        if NUMBER_WORDS.get(tens, 0) in range(20, 100) and NUMBER_WORDS.get(ones, 0) in range(1, 10):
            readings.add(str(int(NUMBER_WORDS[tens] + NUMBER_WORDS[ones])))
    return frozenset(readings)


def missing_figures(claim: str, known: frozenset[str]) -> list[str]:
    """The figures written with digits in a claim that are not among `known`, as written."""
    return [written for written in _written(_plain(claim)) if not _is_known(written, known)]


def _is_known(written: str, known: frozenset[str]) -> bool:
    if any(reading in known for reading in _readings(written)):
        return True
    parts = written.split(" ")
    return len(parts) > 1 and all(_canonical(part) in known for part in parts)


def _plain(text: str) -> str:
    """Digits of all scripts as 0 … 9, full-width forms as ordinary ones."""
    return text if text.isascii() else NOT_ASCII.sub(_plain_character, text)


def _plain_character(match: re.Match[str]) -> str:
    character = match.group()
    if character in "\u00a0\u202f":
        return "\u202f"
    if character.isdecimal():
        return str(unicodedata.decimal(character))
    return unicodedata.normalize("NFKC", character)


def _written(text: str) -> list[str]:
    """The figures of a text as written; a date counts as its three numbers."""
    found = [number for date in DATE.findall(text) for number in date]
    return found + NUMBER.findall(DATE.sub(" ", text))


def _readings(written: str) -> set[str]:
    """What a figure may mean: "1.500" is 1500 or 1.5, "1,500.00" is only 1500."""
    joined = written
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
    whole, _, fraction = number.partition(".")
    fraction = fraction.rstrip("0")
    return (whole.lstrip("0") or "0") + (f".{fraction}" if fraction else "")
