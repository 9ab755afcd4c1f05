"""Build the fixed sentences in an answer, in the question's language, from `canned_answers.toml`."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from uuid import UUID

from babel import Locale

from rag.language import ENGLISH, LANGUAGES, N_
from rag.types import Citation

Phrases = Mapping[str, str]
"""A sentence by language (ISO 639-1)."""

UNCITED = N_("This answer names no source. Compare the answer with the passages below.")
_SENTENCES: Mapping[str, Phrases] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
NOTHING_FOUND = _SENTENCES["nothing_found"]
NO_LONGER_VALID = _SENTENCES["no_longer_valid"]
NOT_YET_VALID = _SENTENCES["not_yet_valid"]
EARLIER_VERSION = _SENTENCES["earlier_version"]
NEWER_VERSION = _SENTENCES["newer_version"]
STILL_VALID = _SENTENCES["still_valid"]
FIRST_WITH_RULE = _SENTENCES["first_said"]
FIRST_PUBLISHED = _SENTENCES["first_published"]
OLDEST_SAYS = _SENTENCES["oldest_says"]
EARLIER_RULE = _SENTENCES["said_before"]
NO_EARLIER_RULE = _SENTENCES["not_said_before"]
RULE_OF_TODAY = _SENTENCES["said_today"]
NOTHING_NEAR = _SENTENCES["nothing_near"]
CLOSEST = _SENTENCES["closest"]
PART_NOT_ANSWERED = _SENTENCES["part_not_answered"]
NO_MODEL = _SENTENCES["no_model"]
BUDGET_SPENT = _SENTENCES["budget_spent"]
MODEL_FAILED = _SENTENCES["model_failed"]
NOT_THE_MODELS = _SENTENCES["not_the_models"]
QUOTED_AS_THEY_STAND = _SENTENCES["quoted_as_they_stand"]
PARTLY_QUOTED_AS_THEY_STAND = _SENTENCES["partly_quoted_as_they_stand"]
ALSO_IN = _SENTENCES["also_in"]
OWN_PLACE_FIRST = _SENTENCES["own_place_first"]
DOCUMENTS_DIFFER = _SENTENCES["documents_differ"]
NOT_MENTIONED = _SENTENCES["not_mentioned"]


def quoted_as_they_stand(languages: Iterable[str], language: str) -> str:
    """Return a sentence for the user, in `language`, which names the foreign languages of the quotations.

    Returns "" if all quotations are in the user's language.
    """
    base_language = language.split("-")[0].lower()
    names = Locale(base_language if base_language in LANGUAGES else ENGLISH).languages
    codes = list(dict.fromkeys(languages))
    foreign_names = [names[code] for code in codes if code in LANGUAGES and code != base_language]
    words = PARTLY_QUOTED_AS_THEY_STAND if base_language in codes else QUOTED_AS_THEY_STAND
    return phrase(words, language).format(languages=", ".join(foreign_names)) if foreign_names and base_language else ""


def also_in(
    numbers: Sequence[int], citations: Sequence[Citation], language: str, folders: Mapping[UUID, str] | None = None
) -> str:
    """Return a sentence for the user, in `language`, which names further documents, each with its citation number.

    `numbers` are the citation numbers; without any, the result is "". Documents with the same title also get their
    folder.
    """
    by_number = {citation.number: citation for citation in citations}
    titles = Counter(title for _, title in {(citation.document_id, citation.title) for citation in citations})

    def named(citation: Citation) -> str:
        folder = (folders or {}).get(citation.document_id, citation.folder) if titles[citation.title] > 1 else ""
        return f"{citation.title} ({folder})" if folder else citation.title

    documents = ", ".join(f"{named(by_number[number])} [{number}]" for number in numbers)
    return phrase(ALSO_IN, language).format(documents=documents) if documents else ""


def phrase(phrases: Phrases, language: str) -> str:
    """Return the sentence in a language (ISO 639-1; "pt-BR" is read as "pt"), else in English."""
    return phrases.get(language.split("-")[0].lower(), phrases["en"])
