"""Recognise country names in texts, in all product languages (Unicode CLDR)."""

from __future__ import annotations

import re
import unicodedata
from functools import cache, lru_cache

from babel import Locale

from rag.language import LANGUAGES

_IDEOGRAPHS = re.compile(r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff]")
_HANGUL, _ARABIC = re.compile(r"[\uac00-\ud7a3]"), re.compile(r"[\u0600-\u06ff]")
#: Scripts without spaces, or with endings after a name.
UNSPACED = re.compile(rf"{_IDEOGRAPHS.pattern}|{_HANGUL.pattern}")
#: Further country names, by code.
OTHER_NAMES = {
    "AE": ("uae",), "GB": ("uk", "great britain", "northern ireland"),
    "KR": ("korea", "한국", "corea", "corée", "coreia", "zuid korea"),
    "NL": ("holland", "the netherlands"), "US": ("usa", "united states of america"),
}  # fmt: skip
#: Country codes which are also words or usual abbreviations.
AMBIGUOUS = frozenset(re.findall("..", "AIAMASATBEBYCVDOGMHRIDINISITMDMEMYNOPAPMPRSOTOTV"))
CODE = re.compile(r"\b[A-Z]{2}\b")


@lru_cache(maxsize=5_000)
def countries_in(text: str, languages: frozenset[str] = frozenset(LANGUAGES)) -> dict[str, str]:
    """Return the countries in a text, from code to the name used, by default in all languages.

    Codes in capitals count too: "DE", but neither "de" nor "IT".
    """
    said = f" {plain(text)} "
    found = {code: name for code, names in _names(languages).items() for name in names if is_said(name, said)}
    if not text.isupper() or len(text) == len("NL"):
        written = CODE.findall(text.replace("_", " "))
        found = {code: code for code in written if code in countries() and code not in AMBIGUOUS} | found
    return found


def plain(text: str) -> str:
    """Return a text's words in lower case, separated by a space."""
    normal = unicodedata.normalize("NFKC", text).lower()
    return " ".join(re.findall(r"[^\W_]+", normal))


def is_said(name: str, text: str) -> bool:
    """Return whether a text contains a name; endings may follow a Korean name.

    The text comes from `plain`, with a space on either side.
    """
    if _IDEOGRAPHS.search(name):
        return name in text
    if _HANGUL.search(name):
        return f" {name}" in text
    # Arabic writes "in", "for" and "and" as a letter before the word.
    return f" {name} " in text or (bool(_ARABIC.search(name)) and any(f" {one}{name} " in text for one in "بلو"))


@cache
def territories(language: str) -> dict[str, str]:
    """Return country names in a language, by code."""
    named = Locale.parse(language).territories
    return {code: name for code, name in named.items() if len(code) == len("NL") and code.isalpha() and code != "ZZ"}


@cache
def countries() -> dict[str, tuple[str, ...]]:
    """Return each country's names in all languages, by code."""
    codes = territories("en")
    return {
        code: (*OTHER_NAMES.get(code, ()), *(territories(spoken).get(code, "") for spoken in LANGUAGES))
        for code in codes
    }


@cache
def country_codes() -> dict[str, str]:
    """Return country codes by plain name (`plain`)."""
    return {plain(name): code for code, names in countries().items() for name in names if name}


@cache
def _names(languages: frozenset[str]) -> dict[str, tuple[str, ...]]:
    """Return each country's plain names in some languages, by code, the longest name last."""
    known = [territories(spoken) for spoken in sorted(languages & LANGUAGES.keys())]
    return {
        code: tuple(
            sorted(
                {plain(name) for name in (*OTHER_NAMES.get(code, ()), *(n.get(code, "") for n in known))} - {""},
                key=len,
            )
        )
        for code in territories("en")
    }
