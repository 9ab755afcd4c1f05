"""Manage collections. Each has one profile and one embedding model; administrators may override single settings."""

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
    """Reads and changes collections in all tenants. Changes need an administrator; callers check who may read."""

    def __init__(self, database: Database, providers: Providers) -> None:
        self._database = database
        self._providers = providers

    def collections(self, who: Who) -> list[Collection]:
        """List the tenant's collections, oldest first."""
        return find_collections(self._database, who)

    def collection(self, who: Who, collection_id: UUID) -> Collection:
        """Return a collection. Raises `NotFound`, also for a collection in a different tenant."""
        found = find_collections(self._database, who, collection_id=collection_id)
        if not found:
            raise NotFound("This collection does not exist, or no longer.")
        return found[0]

    def choose(
        self, who: Who, wanted: str | None = None, *, profile: str | None = None, in_chat: bool = False
    ) -> Collection | None:
        """Choose the collection with this id or name, else the default one; None without a readable collection.

        The default is the key's own collection, else the oldest searchable one with profile `hr`, else the oldest
        searchable one, else the oldest, `hr` first. `in_chat` prefers the collection last asked by this person. With
        `profile`, only its collections count.
        """
        return self._database.fetch_one(
            who,
            "choose_collection",
            Collection,
            wanted=wanted or None,
            preferred=profile or DEFAULT.name,
            is_only=profile is not None,
            in_chat=in_chat,
        )

    def note_last(self, who: Who, collection: Collection) -> None:
        """Make the collection the default for this person's next chat."""
        self._database.execute(who, "note_last_collection", collection_id=collection.id)

    def contents(self, who: Who) -> dict[UUID, CollectionContents]:
        """Count the contents per collection, by id."""
        found = self._database.fetch_all(who, "collection_contents", CollectionContents, collection_id=None)
        return {contents.collection_id: contents for contents in found}

    def ensure_collection(
        self, tenant_id: str, name: str, profile: str, embedding_model: str, language: str
    ) -> Collection:
        """Return the collection with this name; create it if missing. An existing collection keeps all settings."""
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
        """Return the tenant's default collection; create it, and the tenant, if missing.

        Every other collection is created by a person.
        """
        name = tenant_id.replace("-", " ").title()
        self._database.execute(tenant_id, "create_tenant", id=tenant_id, name=name)
        found = self.choose(tenant_id)
        if found is not None:
            return found
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

        The embedder defaults to the profile's embedder here, the language to the profile's answer language, else
        English. `is_as_source` overrides settings to follow the profile's source to the letter.

        Raises `InvalidInput` for a name in use, an unknown profile or language, and a missing embedder.
        """
        require_admin(identity)
        shown = collection_name(name)
        chosen = embedding_model or self._providers.default_embedder_id(profile_by_name(profile))
        provider = chosen.partition("/")[0]
        if not self._providers.is_configured(provider) and variable_of(provider):
            title = provider_name(provider)
            raise InvalidInput(f"{title} is not set up here: an administrator can paste its key on the page Set-up.")
        self._providers.embedder_for(chosen)
        made = self._database.execute(
            identity,
            "add_collection",
            collection_name=shown,
            profile=profile_by_name(profile).name,
            embedding_model=chosen,
            language=_language(language or profile_by_name(profile).language.answer_language or "en"),
        )
        if not made:
            raise _taken(shown)
        found = find_collections(self._database, identity, name=shown)[0]
        own = AS_THE_SOURCE[found.profile] if is_as_source else {}
        return self.override_collection(identity, found.id, dict(own)) if own else found

    def change_collection(
        self,
        identity: Identity,
        collection_id: UUID,
        *,
        name: str | None = None,
        language: str | None = None,
        groups: Sequence[str] | None = None,
    ) -> Collection:
        """Change a collection's name, language, or reader groups (none: everybody may read it).

        Raises `InvalidInput` for a name in use, and `NotFound`.
        """
        require_admin(identity)
        shown = None if name is None else collection_name(name)
        changed = self._database.execute(
            identity,
            "change_collection",
            collection_id=collection_id,
            collection_name=shown,
            language=None if language is None else _language(language),
            groups=None if groups is None else sorted({normal_group(group) for group in groups} - {""}),
        )
        if not changed:
            if not find_collections(self._database, identity, collection_id=collection_id):
                raise NotFound
            raise _taken(shown or "")
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

        A value equal to the profile's is not stored. Raises `NotFound`, and `InvalidInput` for contradicting settings;
        then nothing changes.
        """
        require_admin(identity)
        with (
            self._database.transaction(identity) as connection,
            connection.cursor(row_factory=class_row(Collection)) as cursor,
        ):
            found = cursor.execute(queries["lock_collection"], {"collection_id": collection_id}).fetchone()
            if found is None:
                raise NotFound
            profile = profile_by_name(found.profile)
            wanted = {**found.overrides, **(changes or {})}
            changed = profile.with_overrides({name: value for name, value in wanted.items() if name not in resets})
            require_linear_patterns(changed.understanding.query_patterns)
            overrides = {name: new for name, (_, new) in profile.differences(changed).items() if name in wanted}
            connection.execute(
                queries["set_overrides"], {"collection_id": collection_id, "overrides": Jsonb(overrides)}
            )
        return self.collection(identity, collection_id)


def collection_name(name: str) -> str:
    """Normalise a name to one line. Raises `InvalidInput` for an empty or too long name."""
    kept = "".join(" " if c.isspace() else c for c in name if c.isspace() or unicodedata.category(c)[0] != "C")
    shown = " ".join(unicodedata.normalize("NFC", kept).split())
    if not shown:
        raise InvalidInput("A collection needs a name.")
    if len(shown) > LONGEST_NAME:
        raise InvalidInput(f"The name of a collection has at most {LONGEST_NAME} characters.")
    return shown


def narrowing_metadata(profile: Profile, given: Mapping[str, str]) -> dict[str, str]:
    """Return the metadata for a document's filters, without empty values.

    Raises `InvalidInput` for fields without a filter in the profile.
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
