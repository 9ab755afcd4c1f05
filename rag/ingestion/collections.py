"""Collections as an administrator makes, changes and deletes them. Who may do so is the library's to check."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection as Several
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from rag.access.account_fields import normal_group
from rag.errors import InvalidInput, NotFound
from rag.profile import Profile
from rag.profiles import DEFAULT, profile_by_name
from rag.providers.connections import VARIABLES
from rag.providers.registry import Providers
from rag.retrieval.query_patterns import require_linear_patterns
from rag.storage.database import Database, queries
from rag.types import Collection, CollectionContents, Who

LONGEST_NAME = 80
LONGEST_METADATA = 120
#: The languages of the HR document, with Polish and Turkish; what documents and questions are analysed in.
LANGUAGES: Mapping[str, str] = {
    "en": "English",
    "ko": "Korean",
    "nl": "Dutch",
    "de": "German",
    "fr": "French",
    "es": "Spanish",
    "it": "Italian",
    "pt": "Portuguese",
    "pl": "Polish",
    "tr": "Turkish",
    "ja": "Japanese",
    "zh": "Chinese",
    "ar": "Arabic",
}


def find_collections(
    database: Database, who: Who, *, collection_id: UUID | None = None, name: str | None = None
) -> list[Collection]:
    """Collections of a tenant that meet the conditions given, oldest first."""
    return database.fetch_all(who, "find_collections", Collection, collection_id=collection_id, collection_name=name)


def choose_collection(
    database: Database, who: Who, wanted: str | None = None, *, profile: str | None = None
) -> Collection | None:
    """The collection of that id or name; without one, the one that pages, API, commands and the package ask by default.

    That is the one which the account or key asked last, else the oldest of the default profile with documents that can
    be searched, else the oldest of any profile with such documents; where there are none, the oldest, the default
    profile first. With `profile`, only its collections count. None where there is none that `who` may read.
    """
    return database.fetch_one(
        who,
        "choose_collection",
        Collection,
        wanted=wanted or None,
        preferred=profile or DEFAULT.name,
        is_only=profile is not None,
    )


def note_last_collection(database: Database, who: Who, collection: Collection) -> None:
    """Keep that an account or a key asks this collection; it is the one asked by default from now on."""
    database.execute(who, "note_last_collection", collection_id=collection.id)


def collection_contents(
    database: Database, who: Who, *, collection_id: UUID | None = None
) -> dict[UUID, CollectionContents]:
    """What is in each collection of the tenant, by its id."""
    found = database.fetch_all(who, "collection_contents", CollectionContents, collection_id=collection_id)
    return {contents.collection_id: contents for contents in found}


def create_collection(
    database: Database,
    providers: Providers,
    who: Who,
    *,
    name: str,
    profile: str,
    embedding_model: str,
    language: str,
) -> Collection:
    """Make a collection; without an embedder named, with the one that the profile gets here.

    Raises `InvalidInput` for a name that is taken, an unknown profile or language, and an embedder that is not there.
    """
    shown = collection_name(name)
    chosen = embedding_model or providers.default_embedder_id(profile_by_name(profile))
    provider = chosen.partition("/")[0]
    if not providers.is_configured(provider) and provider in VARIABLES:
        raise InvalidInput(f"{chosen} is not configured: set {VARIABLES[provider]} and start again.")
    providers.embedder_for(chosen)
    made = database.execute(
        who,
        "add_collection",
        collection_name=shown,
        profile=profile_by_name(profile).name,
        embedding_model=chosen,
        language=_language(language),
    )
    if not made:
        raise _taken(shown)
    return find_collections(database, who, name=shown)[0]


def change_collection(
    database: Database,
    who: Who,
    collection_id: UUID,
    *,
    name: str | None,
    language: str | None,
    groups: Sequence[str] | None,
) -> None:
    """Give a collection another name, language or readers. Raises `InvalidInput` for a taken name, and `NotFound`."""
    shown = None if name is None else collection_name(name)
    changed = database.execute(
        who,
        "change_collection",
        collection_id=collection_id,
        collection_name=shown,
        language=None if language is None else _language(language),
        groups=None if groups is None else sorted({normal_group(group) for group in groups} - {""}),
    )
    if not changed:
        if not find_collections(database, who, collection_id=collection_id):
            raise NotFound
        raise _taken(shown or "")


def override_fields(
    database: Database, who: Who, collection_id: UUID, *, changes: Mapping[str, Any], resets: Several[str]
) -> None:
    """Set fields of a collection apart from its profile's, or give them back; a value of the profile is kept as none.

    Raises `InvalidInput` with a sentence when what would come of it does not fit, and `NotFound`; nothing changes then.
    """
    with (
        database.transaction(who) as connection,
        connection.cursor(row_factory=class_row(Collection)) as cursor,
    ):
        found = cursor.execute(queries["lock_collection"], {"collection_id": collection_id}).fetchone()
        if found is None:
            raise NotFound
        profile = profile_by_name(found.profile)
        wanted = {**found.overrides, **changes}
        changed = profile.with_overrides({name: value for name, value in wanted.items() if name not in resets})
        require_linear_patterns(changed.understanding.query_patterns)
        overrides = {name: new for name, (_, new) in profile.differences(changed).items() if name in wanted}
        connection.execute(queries["set_overrides"], {"collection_id": collection_id, "overrides": Jsonb(overrides)})


def collection_name(name: str) -> str:
    """A name as it is kept: one line. Raises `InvalidInput` for one that is empty or too long."""
    kept = "".join(" " if c.isspace() else c for c in name if c.isspace() or unicodedata.category(c)[0] != "C")
    shown = " ".join(unicodedata.normalize("NFC", kept).split())
    if not shown:
        raise InvalidInput("A collection needs a name.")
    if len(shown) > LONGEST_NAME:
        raise InvalidInput(f"The name of a collection has at most {LONGEST_NAME} characters.")
    return shown


def narrowing_metadata(profile: Profile, given: Mapping[str, str]) -> dict[str, str]:
    """What is said of a document so that searches can be narrowed by it, without what is empty.

    Raises `InvalidInput` for fields that the profile has no filter for.
    """
    kept = {}
    for name, value in given.items():
        if name not in profile.search.metadata_filters:
            known = ", ".join(profile.search.metadata_filters) or "none"
            raise InvalidInput(f"Documents here cannot be narrowed by {name[:40]!r}; they can by: {known}.")
        if shown := " ".join(value.split())[:LONGEST_METADATA]:
            kept[name] = shown
    return kept


def _language(language: str) -> str:
    if language not in LANGUAGES:
        raise InvalidInput(f"There is no language {language!r} to choose; there are {', '.join(LANGUAGES)}.")
    return language


def _taken(name: str) -> InvalidInput:
    return InvalidInput(f"There is a collection called “{name}” already. Choose another name.")
