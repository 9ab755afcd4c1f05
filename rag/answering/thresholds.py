"""Compare the years, months, days or hours in a question with the limits from which rules apply.

"How much leave do I get after 6 years?" is answered by "From the fifth year of service there are 28 days". "Ab 55
Jahren entfällt die Nachtschicht" is for somebody who writes "ich bin 57". Numbers may be digits or words.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import NamedTuple

from rag.answering.applicability import Range
from rag.text.number_words import number_words

_UNITS = {
    "year": r"years?|yrs?|(?:dienst|lebens)?jahr\w*|jaar|jaren|jarige?|ans|années?|años?|ann[io]|anos?|lat|lata|latach"
    r"|rok\w*|yıl\w*|yaş\w*|년|살|세|年|歳|岁|سنة|سنوات",
    "month": r"months?|monat\w*|maand(?:en)?|mois|mes(?:es)?|mesi|mês|miesi\w*|ay(?:lık)?|개월|か月|ヶ月|个月|شهر|أشهر",
    "week": r"weeks?|woche\w*|week|weken|semaines?|semanas?|settiman[ae]|tygod\w*|hafta\w*|주|週間?|周|أسابيع|أسبوع",
    "day": r"(?:working |calendar )?days?|(?:arbeits|werk|kalender)?tag\w*|(?:werk)?dag(?:en)?|jours?|días?|dias?"
    r"|giorn[oi]|dni|dzień|gün\w*|일|日|天|يوم|أيام",
    "hour": r"hours?|stunden?|uur|uren|heures?|horas?|or[ae]|godzin\w*|saat\w*|시간|時間|小时|ساعة|ساعات",
}
_UNIT = "|".join(f"(?P<{name}>{words})" for name, words in _UNITS.items())
_NUMBER = r"(?P<number>\d+(?:[.,]\d+)?)"
_NOT_WITHIN = r"(?![^\W\d_가-힣\u3040-\u30ff\u3400-\u9fff])"
_QUANTITY = rf"(?<![\d.,]){_NUMBER}(?:\.|st|nd|rd|th|e|º|ª|ème)?[ \u00a0-]?(?:{_UNIT}){_NOT_WITHIN}"
_SMALL = (
    r"(?:(?:the|your|full|completed|de[nmr]|einem|vollendete[nm]|het|de|la|le|les|el|los|il|l'|o|a|os|as|od|pełnych)"
    r"[ \u00a0]){0,2}"
)
_FROM = (
    r"\b(?:from|after|since|as of|starting (?:in|with)|ab|nach|seit|vanaf|na|sinds|à partir d[eu]|dès|après|depuis"
    r"|desde|a partir d[eo]l?|tras|después de|dopo|dal?l?|após|depois de|od|po)[ \u00a0]"
)
_MORE = (
    r"\b(?:more than|over|longer than|mehr als|über|länger als|meer dan|langer dan|plus de|más de|più di|mais de"
    r"|ponad|powyżej)[ \u00a0]"
)
_AT_LEAST = (
    r"\b(?:at least|a minimum of|mindestens|minstens|ten minste|au moins|al menos|almeno|pelo menos|co najmniej"
    r"|en az)[ \u00a0]"
)
_LESS = (
    r"\b(?:less than|under|below|fewer than|weniger als|unter|minder dan|onder|moins de|menos de|meno di|poniżej)"
    r"[ \u00a0]"
)
_OR_MORE = (
    r"[ \u00a0]?(?:or more|and more|or longer|oder mehr|of meer|ou plus|o más|o più|ou mais|i więcej|ve üzeri|이상|부터"
    r"|경과|以上|를? ?초과|を超え)"
)
#: Patterns for the limit of a rule, with whether the limit is the lower one and whether it is included.
_FORMS = tuple(
    (re.compile(pattern, re.IGNORECASE), is_lower, is_included)
    for pattern, is_lower, is_included in (
        (rf"{_FROM}{_SMALL}{_QUANTITY}", True, True),
        (rf"{_AT_LEAST}{_SMALL}{_QUANTITY}", True, True),
        (rf"{_QUANTITY}{_OR_MORE}", True, True),
        (rf"{_MORE}{_SMALL}{_QUANTITY}", True, False),
        (rf"{_LESS}{_SMALL}{_QUANTITY}", False, False),
        (rf"{_QUANTITY}(?:미만|未満|未满)", False, False),
    )
)
_QUANTITY_REGEX = re.compile(_QUANTITY, re.IGNORECASE)
#: An age without a unit: "I'm 57".
_AGE = re.compile(r"\b(?:i'?m|i am|ich bin|ik ben|j'ai|tengo|ho|tenho|mam|만)[ \u00a0](\d{2})\b(?! ?\w)", re.IGNORECASE)
_WORD = re.compile(r"[^\W\d_]+")
#: Ordinals which are not a number word with an ending, by language.
_ORDINALS = {
    "en": {"sixth": 6, "seventh": 7, "eighth": 8, "ninth": 9, "tenth": 10, "eleventh": 11, "twelfth": 12,
           "fifteenth": 15, "twentieth": 20},
    "de": {"erst": 1, "dritt": 3, "siebt": 7, "acht": 8},
    "nl": {"eerste": 1, "derde": 3, "achtste": 8},
    "es": {"primer": 1, "segundo": 2, "tercer": 3, "cuarto": 4, "quinto": 5, "décimo": 10},
    "it": {"primo": 1, "secondo": 2, "terzo": 3, "quarto": 4, "quinto": 5, "decimo": 10},
    "pt": {"primeiro": 1, "segundo": 2, "terceiro": 3, "quarto": 4, "quinto": 5, "décimo": 10},
    "pl": {"pierwsz": 1, "drugi": 2, "trzeci": 3, "czwart": 4, "piąt": 5, "dziesiąt": 10},
}  # fmt: skip
_ENDINGS = {"de": r"(?:st|t)?e[nrms]?", "nl": r"(?:de|ste)", "fr": r"u?ième", "pl": r"(?:y|ym|ego|ej|a|i|im)"}
#: The second part of a compound with a number: "zehnjährig", "zesmaands".
_COMPOUNDS = {"de": r"(jähr|monat|wöch|täg|stünd)\w*", "nl": r"(jar|maand|week|daag|uur)\w*"}
_UNIT_OF_COMPOUND = {
    "jähr": "Jahr", "monat": "Monat", "wöch": "Woche", "täg": "Tag", "stünd": "Stunde", "jar": "jaar",
    "maand": "maand", "week": "week", "daag": "dag", "uur": "uur",
}  # fmt: skip


class Limit(NamedTuple):
    """A rule's limit: a unit, like "year", and the range for which the rule applies."""

    unit: str
    numbers: Range


def is_reached(text: str, text_language: str, question: str, language: str) -> bool | None:
    """Whether a quantity in the question lies within a limit in the text, or equals the years in the text.

    Returns `False` only if the text has limits in years and the question's years reach no limit. Otherwise returns
    `None`, because a limit in weeks may be about something else. `text_language` and `language` are ISO 639-1 codes.
    """
    quantities = quantities_in(question, language)
    if not quantities:
        return None
    limits = list(limits_in(text, text_language))
    if any(unit == limit.unit and number in limit.numbers for limit in limits for unit, number in quantities):
        return True
    years = {number for unit, number in quantities if unit == "year"}
    if years & {number for unit, number in quantities_in(text, text_language) if unit == "year"}:
        return True
    return False if years and any(limit.unit == "year" for limit in limits) else None


@lru_cache(maxsize=4_000)
def quantities_in(text: str, language: str) -> frozenset[tuple[str, float]]:
    """Return the quantities in a text: "in my twelfth year" gives ("year", 12)."""
    text = in_digits(text, language)
    ages = {("year", float(age)) for age in _AGE.findall(text)}
    return frozenset(_quantity(match) for match in _QUANTITY_REGEX.finditer(text)) | ages


def limits_in(text: str, language: str) -> Iterator[Limit]:
    """Yield the limits of rules in a text: "from the fifth year of service", "under 18 years"."""
    text = in_digits(text, language)
    for form, is_lower, is_included in _FORMS:
        for match in form.finditer(text):
            unit, number = _quantity(match)
            low, high = (number, math.inf) if is_lower else (-math.inf, number)
            yield Limit(unit, Range(low, high, has_low=is_included, has_high=is_included))


def _quantity(match: re.Match[str]) -> tuple[str, float]:
    return next(unit for unit in _UNITS if match[unit]), float(match["number"].replace(",", "."))


def in_digits(text: str, language: str) -> str:
    """Write number words, ordinals and compounds with numbers in digits: "zehnjährig" becomes "10 Jahr"."""
    values = _values(language)
    compound = _compound(language)

    def written(match: re.Match[str]) -> str:
        word = match[0].lower()
        if word in values:
            return f"{values[word]:g}"
        if compound and (parts := compound.fullmatch(word)) and parts[1] in values:
            return f"{values[parts[1]]:g} {_UNIT_OF_COMPOUND[parts[2]]}"
        return match[0] if (number := _ordinal(word, language)) is None else f"{number:g}"

    text = _WORD.sub(written, text)
    return re.sub(rf"(\d)[- ]?{_COMPOUNDS[language]}", _with_unit, text) if language in _COMPOUNDS else text


def _with_unit(match: re.Match[str]) -> str:
    return f"{match[1]} {_UNIT_OF_COMPOUND[match[2]]}"


@cache
def _values(language: str) -> dict[str, float]:
    return {**number_words(language), **(_ORDINALS.get(language, {}) if language not in _ENDINGS else {})}


@cache
def _compound(language: str) -> re.Pattern[str] | None:
    words = "|".join(sorted(number_words(language), key=len, reverse=True))
    return re.compile(f"({words}){_COMPOUNDS[language]}") if language in _COMPOUNDS else None


def _ordinal(word: str, language: str) -> float | None:
    ending = _ENDINGS.get(language)
    if ending is None:
        return None
    stems = {**number_words(language), **_ORDINALS.get(language, {})}
    return next((n for stem, n in stems.items() if n >= 1 and re.fullmatch(f"{stem.rstrip('e')}{ending}", word)), None)
