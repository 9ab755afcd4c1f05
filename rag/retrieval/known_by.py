"""Combine a document's title with its folder names: "Leave policy" in the folder "France" is France's leave policy.

Generic folder names ("HR documents") are left out. Folder names are compared with questions but never embedded, so
moving a document costs no request.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Collection, Iterable
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

from rag.language import LANGUAGES
from rag.retrieval.countries import countries, countries_in, is_said, plain, territories
from rag.types import SearchResult

_WORD = re.compile(r"[^\W_]+")
#: Generic words in folder names, in all languages.
_SHELVES = frozenset(" ".join(tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8")).values()).split())
#: A folder's position in a list: "01 Germany", "2. Leave". A year has four digits.
_PLACE_IN_LIST = re.compile(r"\d{1,2}")
#: Country codes with a namesake among the states in the USA: Georgia, (New) Jersey, (New) Mexico.
_STATES = frozenset({"GE", "JE", "MX"})
#: Words for going to a country, or coming from there, with the country.
_AWAY = re.compile(
    r"\b(?:from|to|aus|nach|vanuit|naar|depuis|vers|desde|hacia|dalla|dall|para|do|z)\s(?:the\s|de[nr]?\s|die\s|la\s|las?\s|los\s)?\w+"
    r"|\w+(?:으로|로|까지)\s|\w+(?:から|へ)|[从到]\w+",
    re.IGNORECASE,
)


@lru_cache(maxsize=20_000)
def known_by(title: str, folder: str, question: str = "", languages: frozenset[str] = frozenset()) -> str:
    """Return a document's title with the words added by its folders.

    A folder's country also gets its name from the question, in one of `languages` or in English: "Frankreich".
    """
    said = set(_words(title))
    added = []
    for part in folder.split("/"):
        words = _words(part)
        kept = [word for word in words if word not in _SHELVES and not _PLACE_IN_LIST.fullmatch(word)]
        if kept and not said.issuperset(kept):
            # Keep capitals and punctuation, which analysers read.
            added.append(part.replace("_", " ").strip() if len(kept) == len(words) else " ".join(kept))
            said.update(kept)
    if folder and question:
        asked = countries_in(question, languages | {"en"})
        names = [asked[code] for code in countries_in(folder) if code in asked] if asked else []
        added += [name for name in names if not said.issuperset(_words(name))]
    return " ".join(filter(None, [title, *added]))


def folder_shown(title: str, folder: str) -> str:
    """Return the folder to show beside a title; "" if it adds no words to the title."""
    return folder if known_by(title, folder) != title else ""


def with_folder(title: str, folder: str) -> str:
    """Return a title for lists, followed by the folder if this adds words: "Leave policy (France)"."""
    shown = folder_shown(title, folder)
    return f"{title} ({shown})" if shown else title


class DocumentsOfCountries(NamedTuple):
    """Documents sorted by whether they apply to the countries in a question."""

    #: In the folder for a country in the question.
    own: frozenset[UUID] = frozenset()
    #: In a different country's folder, without mentioning the named country.
    others: frozenset[UUID] = frozenset()
    #: In no country's folder, without mentioning a country in the question.
    general: frozenset[UUID] = frozenset()


def asked_countries(question: str, language: str) -> frozenset[str]:
    """Return the codes of the countries whose rules a question asks about.

    A country which somebody only travels to, or works from, is left out: the question is about rules at home.
    """
    asked = countries_in(_AWAY.sub(" ", question), frozenset({language.partition("-")[0], "en"})).keys()
    return frozenset() if asked & _STATES else frozenset(asked)


def country_names(asked: Iterable[str]) -> list[str]:
    """Return country names in all product languages, from codes, as `plain` writes them."""
    return list(dict.fromkeys(plain(name) for code in asked for name in countries()[code] if name))


def country_words(asked: Iterable[str], language: str) -> list[str]:
    """Return country names in a language, from codes."""
    spoken = language.partition("-")[0]
    named = territories(spoken if spoken in LANGUAGES else "en")
    return [named[code] for code in sorted(asked) if code in named]


def of_countries(asked: Collection[str], found: Iterable[SearchResult]) -> DocumentsOfCountries:
    """Sort the passages' documents by country; all sets are empty if no folder belongs to a country."""
    if not asked:
        return DocumentsOfCountries()
    names = country_names(asked)
    own, others, general, naming = set[UUID](), set[UUID](), set[UUID](), set[UUID]()
    for result in found:
        kept = countries_in(result.folder) if result.folder else {}
        if kept.keys() & set(asked):
            own.add(result.document_id)
            continue
        (others if kept else general).add(result.document_id)
        text = f" {plain(f'{result.title} {result.section} {result.content}')} "
        if any(is_said(name, text) for name in names):
            naming.add(result.document_id)
    return DocumentsOfCountries(
        frozenset(own), frozenset(others - naming), frozenset(general - naming) if own else frozenset()
    )


def _words(text: str) -> list[str]:
    return _WORD.findall(unicodedata.normalize("NFKC", text).casefold())
