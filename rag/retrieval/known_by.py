"""Combine a document's title with its folder names: "Leave policy" in the folder "France" is France's leave policy.

Generic folder names ("HR documents") are ignored. Folder names are compared with questions but never embedded.
Therefore moving a document costs no request.
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
from rag.retrieval.countries import countries, countries_in, is_name_in, plain, territories
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
    """Return a document's title, followed by the words which its folders add.

    If the folder and `question` name the same country, the name used in the question is added too: "Frankreich".
    """
    title_words = set(_words(title))
    added = []
    for part in folder.split("/"):
        words = _words(part)
        naming_words = [word for word in words if word not in _SHELVES and not _PLACE_IN_LIST.fullmatch(word)]
        if naming_words and not title_words.issuperset(naming_words):
            # Keep capitals and punctuation, which analysers read.
            added.append(part.replace("_", " ").strip() if len(naming_words) == len(words) else " ".join(naming_words))
            title_words.update(naming_words)
    if folder and question:
        question_countries = countries_in(question, languages | {"en"})
        names = (
            [question_countries[code] for code in countries_in(folder) if code in question_countries]
            if question_countries
            else []
        )
        added += [name for name in names if not title_words.issuperset(_words(name))]
    return " ".join(filter(None, [title, *added]))


def folder_shown(title: str, folder: str) -> str:
    """Return the folder to show next to a title, or "" if the folder adds no words."""
    return folder if known_by(title, folder) != title else ""


def with_folder(title: str, folder: str) -> str:
    """Return a title for lists, followed by the folder if the folder adds words: "Leave policy (France)"."""
    folder_words = folder_shown(title, folder)
    return f"{title} ({folder_words})" if folder_words else title


class DocumentsOfCountries(NamedTuple):
    """The ids of found documents for the question's countries, for other countries, and for no country."""

    #: In the folder for a country in the question.
    matching: frozenset[UUID] = frozenset()
    #: In a different country's folder, without mentioning the named country.
    elsewhere: frozenset[UUID] = frozenset()
    #: In no country's folder, without mentioning a country in the question.
    general: frozenset[UUID] = frozenset()


def countries_in_question(question: str, language: str) -> frozenset[str]:
    """Return the codes of the countries whose rules a question asks about.

    Countries to which somebody only travels, or in which somebody works temporarily, are left out: the question is
    about rules at home.
    """
    codes = countries_in(_AWAY.sub(" ", question), frozenset({language.partition("-")[0], "en"})).keys()
    return frozenset() if codes & _STATES else frozenset(codes)


def country_names(codes: Iterable[str]) -> list[str]:
    """Convert country codes to names in all product languages, normalised by `plain`."""
    return list(dict.fromkeys(plain(name) for code in codes for name in countries()[code] if name))


def country_words(codes: Iterable[str], language: str) -> list[str]:
    """Convert country codes to country names in a language."""
    base_language = language.partition("-")[0]
    named = territories(base_language if base_language in LANGUAGES else "en")
    return [named[code] for code in sorted(codes) if code in named]


def of_countries(codes: Collection[str], results: Iterable[SearchResult]) -> DocumentsOfCountries:
    """Group the hits' documents by country. All groups are empty if no document is in a country's folder."""
    if not codes:
        return DocumentsOfCountries()
    names = country_names(codes)
    matching, elsewhere, general, naming = set[UUID](), set[UUID](), set[UUID](), set[UUID]()
    for result in results:
        folder_countries = countries_in(result.folder) if result.folder else {}
        if folder_countries.keys() & set(codes):
            matching.add(result.document_id)
            continue
        (elsewhere if folder_countries else general).add(result.document_id)
        text = f" {plain(f'{result.title} {result.section} {result.content}')} "
        if any(is_name_in(name, text) for name in names):
            naming.add(result.document_id)
    return DocumentsOfCountries(
        frozenset(matching), frozenset(elsewhere - naming), frozenset(general - naming) if matching else frozenset()
    )


def _words(text: str) -> list[str]:
    return _WORD.findall(unicodedata.normalize("NFKC", text).casefold())
