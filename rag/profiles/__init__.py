"""The five profiles. Each is a frozen value with the settings from its source document, in its own module or folder.

docs/sources.md describes the source documents, 000 to 004. `profile.py` defines the class, `parts.py` every setting. A
collection has one profile, and administrators may override single settings (`profile_of`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rag.errors import InvalidInput
from rag.profiles import civil, hr, legal, notices, portfolio
from rag.profiles.civil import CIVIL
from rag.profiles.hr import HR
from rag.profiles.legal import LEGAL
from rag.profiles.notices import NOTICES
from rag.profiles.portfolio import PORTFOLIO
from rag.profiles.profile import Profile
from rag.types import Collection

__all__ = [
    "AS_THE_SOURCE", "BOARD_PROFILES", "CIVIL", "DEFAULT", "DEFAULT_CHUNKING_OPTIONS", "DEFAULT_CHUNK_SIZE",
    "DEFAULT_EMBEDDING_MODEL", "DEFAULT_MODEL", "DEFAULT_OVERLAP", "DEFAULT_TOP_K", "HR", "LEGAL", "NOTICES",
    "PORTFOLIO", "PROFILES", "REFERENCE_PROFILES", "SIMILARITY_THRESHOLD", "holds_posts", "profile_by_name",
    "profile_of",
]  # fmt: skip

PROFILES: Mapping[str, Profile] = {profile.name: profile for profile in (HR, NOTICES, PORTFOLIO, LEGAL, CIVIL)}
#: The profile for the first collection, and for questions without a chosen collection.
DEFAULT = HR
#: The constants from source 004, under their names there. The chunking constants are arguments for `chunk_text`.
DEFAULT_TOP_K = HR.search.top_k
SIMILARITY_THRESHOLD = hr.SIMILARITY_THRESHOLD
DEFAULT_CHUNK_SIZE = HR.chunking.chunk_size
DEFAULT_OVERLAP = HR.chunking.chunk_overlap
DEFAULT_CHUNKING_OPTIONS: Mapping[str, Any] = {
    "method": HR.chunking.chunking_method,
    "chunk_size": DEFAULT_CHUNK_SIZE,
    "overlap": DEFAULT_OVERLAP,
    "minimum_chunk_size": HR.chunking.minimum_chunk_size,
}
DEFAULT_EMBEDDING_MODEL = DEFAULT_MODEL = HR.embedding.embedding_model.partition("/")[2].partition("@")[0]
#: Settings which follow each source to the letter, for profiles with different defaults. In measurements, each setting
#: found less, or answered questions without an answer in the documents.
AS_THE_SOURCE: Mapping[str, Mapping[str, Any]] = {
    "hr": hr.AS_THE_SOURCE,
    "notices": notices.AS_THE_SOURCE,
    "portfolio": portfolio.AS_THE_SOURCE,
    "legal": legal.AS_THE_SOURCE,
    "civil": civil.AS_THE_SOURCE,
}
#: Names of the profiles for posts and for reference documents. New collections get the first.
BOARD_PROFILES = tuple(name for name, profile in PROFILES.items() if profile.content == "posts")
REFERENCE_PROFILES = tuple(name for name, profile in PROFILES.items() if profile.holds_references)


def profile_by_name(name: str) -> Profile:
    """Return the profile with this name.

    Raises:
        InvalidInput: the name is unknown; the error's message lists the known names.
    """
    try:
        return PROFILES[name]
    except KeyError:
        raise InvalidInput(f"There is no profile {name!r}; choose one of {', '.join(PROFILES)}.") from None


def profile_of(collection: Collection) -> Profile:
    """Return a collection's profile with its administrators' overrides.

    Raises:
        InvalidInput: a stored override is invalid, for example from an earlier version.
    """
    return profile_by_name(collection.profile).with_overrides(collection.overrides)


def holds_posts(collection: Collection) -> bool:
    """Whether a collection is a notice board, with posts instead of documents."""
    return collection.profile in BOARD_PROFILES
