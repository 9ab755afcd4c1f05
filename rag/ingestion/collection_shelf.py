"""The collections of a tenant, as the pages and the API use them."""

from __future__ import annotations

from collections.abc import Collection as Several
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from rag.errors import NotAllowed, NotFound
from rag.ingestion import collections as collecting
from rag.profiles import DEFAULT, profile_by_name
from rag.providers.registry import Providers
from rag.storage.database import Database
from rag.types import Collection, CollectionContents, Identity, Role, Who

Collections = list[Collection]
Contents = dict[UUID, CollectionContents]


#: What a tenant's first collection is called.
FIRST_COLLECTION = "HR documents"


class CollectionShelf:
    """Collections of all tenants. Changes need an administrator; reading is the caller's to allow."""

    def __init__(self, database: Database, providers: Providers) -> None:
        self._database = database
        self._providers = providers

    def collections(self, who: Who) -> Collections:
        """The tenant's collections, oldest first."""
        return collecting.find_collections(self._database, who)

    def collection(self, who: Who, collection_id: UUID) -> Collection:
        """One collection. Raises `NotFound`, also for another tenant's."""
        found = collecting.find_collections(self._database, who, collection_id=collection_id)
        if not found:
            raise NotFound("This collection does not exist, or no longer.")
        return found[0]

    def choose(self, who: Who, wanted: str | None = None, *, profile: str | None = None) -> Collection | None:
        """As `choose_collection`: the one of that id or name, else the one asked by default."""
        return collecting.choose_collection(self._database, who, wanted, profile=profile)

    def note_last(self, who: Who, collection: Collection) -> None:
        """As `note_last_collection`: it is the default of this account or key from now on."""
        collecting.note_last_collection(self._database, who, collection)

    def contents(self, who: Who) -> Contents:
        """How much is in each collection, by its id."""
        return collecting.collection_contents(self._database, who)

    def ensure_collection(
        self, tenant_id: str, name: str, profile: str, embedding_model: str, language: str
    ) -> Collection:
        """The collection of that name, made now if there is none; an existing one keeps its settings."""
        profile_by_name(profile)
        self._database.execute(
            tenant_id,
            "add_collection",
            collection_name=name,
            profile=profile,
            embedding_model=embedding_model,
            language=language,
        )
        return collecting.find_collections(self._database, tenant_id, name=name)[0]

    def ensure_first_collection(self, tenant_id: str) -> Collection:
        """The tenant's default collection, made with the tenant itself where there is none yet.

        Renamed or joined by others, the first collection stays the only one that is made unasked.
        """
        name = tenant_id.replace("-", " ").title()
        self._database.execute(tenant_id, "create_tenant", id=tenant_id, name=name)
        found = self.choose(tenant_id)
        if found is not None:
            return found
        embedder = self._providers.default_embedder_id(DEFAULT)
        return self.ensure_collection(tenant_id, FIRST_COLLECTION, DEFAULT.name, embedder, language="en")

    def create_collection(
        self, identity: Identity, name: str, profile: str, *, embedding_model: str = "", language: str = "en"
    ) -> Collection:
        """A new collection; without an embedder named, with the one its profile gets here.

        Raises `InvalidInput` with a sentence for a name that is taken and for what cannot be chosen.
        """
        require_admin(identity)
        return collecting.create_collection(
            self._database,
            self._providers,
            identity,
            name=name,
            profile=profile,
            embedding_model=embedding_model,
            language=language,
        )

    def change_collection(
        self,
        identity: Identity,
        collection_id: UUID,
        *,
        name: str | None = None,
        language: str | None = None,
        groups: Sequence[str] | None = None,
    ) -> Collection:
        """Give a collection another name, language, or groups that may read it (none: everybody).

        Raises `InvalidInput` and `NotFound`.
        """
        require_admin(identity)
        collecting.change_collection(
            self._database, identity, collection_id, name=name, language=language, groups=groups
        )
        return self.collection(identity, collection_id)

    def override_collection(
        self,
        identity: Identity,
        collection_id: UUID,
        changes: Mapping[str, Any] | None = None,
        *,
        resets: Several[str] = (),
    ) -> Collection:
        """Set fields of the collection apart from its profile, and give those of `resets` back to it.

        Raises `InvalidInput` with a sentence when the outcome does not fit; then nothing changes.
        """
        require_admin(identity)
        collecting.override_fields(self._database, identity, collection_id, changes=changes or {}, resets=resets)
        return self.collection(identity, collection_id)


def require_admin(identity: Identity) -> None:
    """Raise `NotAllowed` for anybody else."""
    if not identity.may(Role.ADMIN):
        raise NotAllowed
