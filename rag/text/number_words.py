"""Read numbers written in words. The language matters: "on" is ten in Turkish and a preposition in English.

An article before a unit of time counts as 1: "een week".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache

_FROM_ZERO = {
    "en": "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen twenty",
    "nl": "nul één twee drie vier vijf zes zeven acht negen tien elf twaalf dertien veertien vijftien zestien "
    "zeventien achttien negentien twintig",
    "de": "null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn "
    "siebzehn achtzehn neunzehn zwanzig",
    "fr": "zéro - deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize",
    "es": "cero uno dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince",
    "it": "zero - due tre quattro cinque sei sette otto nove dieci undici dodici tredici quattordici quindici",
    "pt": "zero - dois três quatro cinco seis sete oito nove dez onze doze treze catorze quinze",
    "pl": "zero jeden dwa trzy cztery pięć sześć siedem osiem dziewięć dziesięć",
    "tr": "sıfır - iki üç dört beş altı yedi sekiz dokuz on",
}
_FURTHER: dict[str, dict[str, float]] = {
    "en": {
        "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90, "hundred": 100,
        "half": 0.5, "one-half": 0.5, "first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5, "once": 1,
        "twice": 2,
    },
    "nl": {
        "dertig": 30, "veertig": 40, "vijftig": 50, "zestig": 60, "zeventig": 70, "tachtig": 80, "negentig": 90,
        "honderd": 100, "éen": 1,
    },
    "de": {
        "dreißig": 30, "vierzig": 40, "fünfzig": 50, "sechzig": 60, "siebzig": 70, "achtzig": 80, "neunzig": 90,
        "hundert": 100,
    },
    "fr": {"vingt": 20, "trente": 30, "quarante": 40, "cinquante": 50, "soixante": 60, "cent": 100},
    "es": {"veinte": 20, "treinta": 30, "cuarenta": 40, "cincuenta": 50, "sesenta": 60, "noventa": 90, "cien": 100},
    "it": {"venti": 20, "trenta": 30, "quaranta": 40, "cinquanta": 50, "sessanta": 60, "novanta": 90, "cento": 100},
    "pt": {
        "duas": 2, "vinte": 20, "trinta": 30, "quarenta": 40, "cinquenta": 50, "sessenta": 60, "noventa": 90,
        "cem": 100,
    },
    "pl": {
        "jedna": 1, "jedno": 1, "jednego": 1, "dwie": 2, "dwóch": 2, "trzech": 3, "czterech": 4, "pięciu": 5,
        "sześciu": 6, "siedmiu": 7, "ośmiu": 8, "dziewięciu": 9, "dziesięciu": 10,
    },
    "tr": {"yirmi": 20, "otuz": 30, "kırk": 40, "elli": 50, "altmış": 60, "doksan": 90},
}  # fmt: skip
_ARTICLES = {
    "en": "a an", "nl": "een", "de": "ein eine einen einem einer eines", "fr": "un une", "es": "un una",
    "it": "un uno una", "pt": "um uma", "tr": "bir",
}  # fmt: skip
_UNITS = {
    "en": "minute hour day week month quarter year",
    "nl": "minuut uur dag week maand kwartaal jaar",
    "de": "minute stunde tag tages tage woche monat monats quartal jahr jahres jahre",
    "fr": "minute heure jour semaine mois trimestre an année",
    "es": "minuto hora día semana mes trimestre año",
    "it": "minuto ora giorno settimana mese trimestre anno",
    "pt": "minuto hora dia semana mês trimestre ano",
    "tr": "dakika saat gün hafta ay yıl",
}
#: Common words in other languages: numbers only in a known language.
_ALSO_OTHER_WORDS = frozenset({"on", "due", "sei", "once", "elf", "dos", "sept", "cent", "cento", "elli"})
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")


@cache
def number_words(language: str) -> Mapping[str, float]:
    """Return a language's number words with their values. `language` is an ISO 639-1 code.

    With "", returns the words from all languages, except words which also have other meanings.
    """
    if language:
        words = enumerate(_FROM_ZERO.get(language, "").split())
        return {word: value for value, word in words if word != "-"} | _FURTHER.get(language, {})
    values = {word: value for code in _FROM_ZERO for word, value in number_words(code).items()}
    return {word: value for word, value in values.items() if word not in _ALSO_OTHER_WORDS}


def written_numbers(text: str, language: str) -> Iterator[float]:
    """Yield the values for numbers written in words: 20, 5 and 25 for "twenty-five"."""
    values, articles, units = number_words(language), *map(_words(language).__getitem__, ("articles", "units"))
    before = ""
    for word in _WORD.findall(text.lower()):
        yield from (values[part] for part in {word, *word.split("-")} & values.keys())
        tens, _, ones = word.partition("-")
        if values.get(tens, 0) in range(20, 100) and values.get(ones, 0) in range(1, 10):
            yield values[tens] + values[ones]
        if before in articles and word in units:
            yield 1
        before = word


@cache
def _words(language: str) -> Mapping[str, frozenset[str]]:
    tables = {"articles": _ARTICLES, "units": _UNITS}
    return {name: frozenset(table.get(language, "").split()) for name, table in tables.items()}


def years_written(word: str, language: str) -> float:
    """Return the value of the word before "years": a number word's value, 1 for an article, 0 for any other word."""
    return 1 if word in _words(language)["articles"] else number_words(language).get(word, 0)
