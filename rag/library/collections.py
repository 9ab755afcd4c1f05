"""Manage collections.

Each collection has a profile and an embedding model. Administrators may override single settings of the profile.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection as Several
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from rag.access.account_rows import normal_group
from rag.access.sessions import require_admin
from rag.errors import InvalidInput, NotFound
from rag.profiles import AS_THE_SOURCE, DEFAULT, profile_by_name
from rag.profiles.profile import Profile
from rag.providers.registry import Providers
from rag.retrieval.query_understanding import require_linear_patterns
from rag.settings.providers import provider_name, variable_of
from rag.storage.collections import find_collections
from rag.storage.database import Database, queries
from rag.types import Collection, CollectionContents, Identity, Who
from rag.types.fields import within

#: The name for a tenant's first collection.
FIRST_COLLECTION = "HR documents"
LONGEST_NAME = 80
LONGEST_METADATA = 120
#: The languages in the HR document, plus Polish and Turkish. Documents and questions are analysed in them.
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


class CollectionLibrary:
    """Read and change collections in all tenants.

    Changes need an administrator. Reads return only the collections which `who` may read.
    """

    def __init__(self, database: Database, providers: Providers) -> None:
        self._database = database
        self._providers = providers

    def collections(self, who: Who) -> list[Collection]:
        """List the tenant's collections, oldest first."""
        return find_collections(self._database, who)

    def collection(self, who: Who, collection_id: UUID) -> Collection:
        """Return a collection. Raises `NotFound`, also for collections in other tenants."""
        collections = find_collections(self._database, who, collection_id=collection_id)
        if not collections:
            raise NotFound("This collection does not exist. It may have been deleted.")
        return collections[0]

    def choose(
        self, who: Who, name_or_id: str | None = None, *, profile: str | None = None, in_chat: bool = False
    ) -> Collection | None:
        """Return the collection with this id or name, else the default collection; `None` if no collection is readable.

        For an API key, the default is the key's collection. For other callers, the default is the oldest collection
        with searchable documents, else the oldest collection; collections with the profile `hr` are preferred. With
        `in_chat`, the collection which this person asked last is preferred. `profile` allows only collections with this
        profile.
        """
        return self._database.fetch_one(
            who,
            "choose_collection",
            Collection,
            wanted=name_or_id or None,
            preferred=profile or DEFAULT.name,
            is_only=profile is not None,
            in_chat=in_chat,
        )

    def note_last(self, who: Who, collection: Collection) -> None:
        """Make a collection the default for this person's next chat."""
        self._database.execute(who, "note_last_collection", collection_id=collection.id)

    def contents(self, who: Who) -> dict[UUID, CollectionContents]:
        """Return each collection's counts by collection id: documents, pages, chunks, conversations and people."""
        rows = self._database.fetch_all(who, "collection_contents", CollectionContents, collection_id=None)
        return {contents.collection_id: contents for contents in rows}

    def ensure_collection(
        self, tenant_id: str, name: str, profile: str, embedding_model: str, language: str
    ) -> Collection:
        """Return the collection with this name, created if missing.

        The settings of an existing collection do not change.
        """
        profile_by_name(profile)
        self._database.execute(
            tenant_id,
            "add_collection",
            collection_name=name,
            profile=profile,
            embedding_model=embedding_model,
            language=language,
        )
        return find_collections(self._database, tenant_id, name=name)[0]

    def ensure_first_collection(self, tenant_id: str) -> Collection:
        """Return the tenant's default collection; create tenant and collection if missing.

        All other collections are created by people.
        """
        name = tenant_id.replace("-", " ").title()
        self._database.execute(tenant_id, "create_tenant", id=tenant_id, name=name)
        first = self.choose(tenant_id)
        if first is not None:
            return first
        embedder = self._providers.default_embedder_id(DEFAULT)
        return self.ensure_collection(tenant_id, FIRST_COLLECTION, DEFAULT.name, embedder, language="en")

    def create_collection(
        self,
        identity: Identity,
        name: str,
        profile: str,
        *,
        embedding_model: str = "",
        language: str = "",
        is_as_source: bool = False,
    ) -> Collection:
        """Create a collection.

        By default, the embedder is the profile's if configured, and the language is the profile's answer language, else
        English. With `is_as_source`, settings are overridden to follow the profile's source document exactly.

        Raises `InvalidInput` for a name in use, an unknown profile or language, or an embedder which is not configured.
        """
        require_admin(identity)
        clean_name = collection_name(name)
        chosen = embedding_model or self._providers.default_embedder_id(profile_by_name(profile))
        provider = chosen.partition("/")[0]
        if not self._providers.is_configured(provider) and variable_of(provider):
            title = provider_name(provider)
            raise InvalidInput(f"{title} is not set up here: an administrator can paste its key on the page Set-up.")
        self._providers.embedder_for(chosen)
        added = self._database.execute(
            identity,
            "add_collection",
            collection_name=clean_name,
            profile=profile_by_name(profile).name,
            embedding_model=chosen,
            language=_language(language or profile_by_name(profile).language.answer_language or "en"),
        )
        if not added:
            raise _name_in_use(clean_name)
        collection = find_collections(self._database, identity, name=clean_name)[0]
        overrides = AS_THE_SOURCE[collection.profile] if is_as_source else {}
        return self.override_collection(identity, collection.id, dict(overrides)) if overrides else collection

    def change_collection(
        self,
        identity: Identity,
        collection_id: UUID,
        *,
        name: str | None = None,
        language: str | None = None,
        groups: Sequence[str] | None = None,
    ) -> Collection:
        """Change a collection's name, language, or reader groups.

        If the list `groups` is empty, everybody may read the collection. Raises `NotFound`, and `InvalidInput` for a
        name in use.
        """
        require_admin(identity)
        clean_name = None if name is None else collection_name(name)
        changed = self._database.execute(
            identity,
            "change_collection",
            collection_id=collection_id,
            collection_name=clean_name,
            language=None if language is None else _language(language),
            groups=None if groups is None else sorted({normal_group(group) for group in groups} - {""}),
        )
        if not changed:
            if not find_collections(self._database, identity, collection_id=collection_id):
                raise NotFound
            raise _name_in_use(clean_name or "")
        return self.collection(identity, collection_id)

    def override_collection(
        self,
        identity: Identity,
        collection_id: UUID,
        changes: Mapping[str, Any] | None = None,
        *,
        resets: Several[str] = (),
    ) -> Collection:
        """Override settings in the collection's profile, and reset the settings in `resets`.

        Values equal to the profile's are not stored. Raises `NotFound`, and `InvalidInput` for invalid or contradicting
        values, before changing anything.
        """
        require_admin(identity)
        with (
            self._database.transaction(identity) as connection,
            connection.cursor(row_factory=class_row(Collection)) as cursor,
        ):
            collection = cursor.execute(queries["lock_collection"], {"collection_id": collection_id}).fetchone()
            if collection is None:
                raise NotFound
            profile = profile_by_name(collection.profile)
            values = {**collection.overrides, **(changes or {})}
            changed = profile.with_overrides({name: value for name, value in values.items() if name not in resets})
            require_linear_patterns(changed.understanding.query_patterns)
            overrides = {name: new for name, (_, new) in profile.differences(changed).items() if name in values}
            connection.execute(
                queries["set_overrides"], {"collection_id": collection_id, "overrides": Jsonb(overrides)}
            )
        return self.collection(identity, collection_id)


def collection_name(name: str) -> str:
    """Normalise a name to a single line. Raises `InvalidInput` if it is empty or too long."""
    printable = "".join(" " if c.isspace() else c for c in name if c.isspace() or unicodedata.category(c)[0] != "C")
    clean_name = " ".join(unicodedata.normalize("NFC", printable).split())
    if not clean_name:
        raise InvalidInput("A collection needs a name.")
    if len(clean_name) > LONGEST_NAME:
        raise InvalidInput(f"The name of a collection has at most {LONGEST_NAME} characters.")
    return clean_name


def narrowing_metadata(profile: Profile, values: Mapping[str, str]) -> dict[str, str]:
    """Normalise metadata which limits a search. Empty values are left out.

    Raises `InvalidInput` for a field which is not among the profile's filters.
    """
    metadata = {}
    for name, value in values.items():
        if name not in profile.search.metadata_filters:
            fields = ", ".join(profile.search.metadata_filters) or "none"
            raise InvalidInput(f"A search in this collection cannot be narrowed by {name[:40]!r}, only by: {fields}.")
        if clean_value := within(" ".join(value.split()), LONGEST_METADATA):
            metadata[name] = clean_value
    return metadata


def _language(language: str) -> str:
    if language not in LANGUAGES:
        raise InvalidInput(f"The language {language!r} is not available. Choose one of: {', '.join(LANGUAGES)}.")
    return language


def _name_in_use(name: str) -> InvalidInput:
    return InvalidInput(f"There is a collection called “{name}” already. Choose another name.")
