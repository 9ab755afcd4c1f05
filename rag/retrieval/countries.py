"""Recognise country names in texts, in all product languages (Unicode CLDR)."""

from __future__ import annotations

import re
import unicodedata
from functools import cache, lru_cache

from babel import Locale

from rag.language import LANGUAGES

_IDEOGRAPHS = re.compile(r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff]")
_HANGUL, _ARABIC = re.compile(r"[\uac00-\ud7a3]"), re.compile(r"[\u0600-\u06ff]")
#: Scripts without spaces, or with endings attached to a name.
UNSPACED = re.compile(rf"{_IDEOGRAPHS.pattern}|{_HANGUL.pattern}")
#: Further country names, by code.
OTHER_NAMES = {
    "AE": ("uae",), "GB": ("uk", "great britain", "northern ireland"),
    "KR": ("korea", "한국", "corea", "corée", "coreia", "zuid korea"),
    "NL": ("holland", "the netherlands"), "US": ("usa", "united states of america"),
}  # fmt: skip
#: Country codes which are also words or common abbreviations.
AMBIGUOUS = frozenset(re.findall("..", "AIAMASATBEBYCVDOGMHRIDINISITMDMEMYNOPAPMPRSOTOTV"))
CODE = re.compile(r"\b[A-Z]{2}\b")
#: Codes for the member states and for the European Union.
MEMBER_STATES = frozenset(re.findall("..", "ATBEBGHRCYCZDKEEFIFRDEGRHUIEITLVLTLUMTNLPLPTROSKSIESSE"))
UNION = "EU"


@lru_cache(maxsize=5_000)
def countries_in(text: str, languages: frozenset[str] = frozenset(LANGUAGES)) -> dict[str, str]:
    """Return the countries named in a text: the name used, by country code. Searches for names in all languages by
    default.

    Codes count only in capitals ("DE", not "de"). Ambiguous codes, like "IT", are ignored.
    """
    padded = f" {plain(text)} "
    names_by_code = {
        code: name for code, names in _names(languages).items() for name in names if is_name_in(name, padded)
    }
    if not text.isupper() or len(text) == len("NL"):
        codes = CODE.findall(text.replace("_", " "))
        names_by_code = {code: code for code in codes if code in countries() and code not in AMBIGUOUS} | names_by_code
    return names_by_code


def name_union(text: str, language: str) -> str:
    """Replace a member state's name by "European Union" in the text's language.

    "May I work from Spain?" is answered by "from another country of the European Union". Returns "" unless the text
    names exactly one member state.
    """
    names = [name for code, name in countries_in(text, frozenset([language])).items() if code in MEMBER_STATES]
    union = territories(language).get(UNION, "") if language in LANGUAGES else ""
    if len(names) != 1 or not union:
        return ""
    replaced = re.sub(rf"\b{re.escape(names[0])}\b", union, text, count=1, flags=re.IGNORECASE)
    return replaced if replaced != text else ""


def plain(text: str) -> str:
    """Return a text's words in lower case, separated by single spaces, for comparison."""
    normal = unicodedata.normalize("NFKC", text).lower()
    return " ".join(re.findall(r"[^\W_]+", normal))


def is_name_in(name: str, text: str) -> bool:
    """Whether a text contains a name. In Korean, endings may follow the name.

    `text` is the result of `plain`, with a space added before and after.
    """
    if _IDEOGRAPHS.search(name):
        return name in text
    if _HANGUL.search(name):
        return f" {name}" in text
    # Arabic prefixes "in", "for" and "and" to the word as a letter.
    return f" {name} " in text or (bool(_ARABIC.search(name)) and any(f" {prefix}{name} " in text for prefix in "بلو"))


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
        code: (*OTHER_NAMES.get(code, ()), *(territories(language).get(code, "") for language in LANGUAGES))
        for code in codes
    }


@cache
def country_codes() -> dict[str, str]:
    """Map country names, normalised by `plain`, to country codes."""
    return {plain(name): code for code, names in countries().items() for name in names if name}


@cache
def _names(languages: frozenset[str]) -> dict[str, tuple[str, ...]]:
    translations = [territories(language) for language in sorted(languages & LANGUAGES.keys())]
    return {
        code: tuple(
            sorted(
                {plain(name) for name in (*OTHER_NAMES.get(code, ()), *(n.get(code, "") for n in translations))} - {""},
                key=len,
            )
        )
        for code in territories("en")
    }
