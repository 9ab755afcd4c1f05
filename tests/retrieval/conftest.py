"""Fixtures for retrieval: collections to put documents in, and a person who asks."""

from __future__ import annotations

from collections.abc import Callable
from uuid import uuid4

import pytest

from rag.providers.builtin_embedders import LexicalEmbedder
from rag.storage.database import Database
from rag.types import Collection, Identity, Role
from tests.retrieval.shelf import Shelf


@pytest.fixture
def shelf(database: Database, collection: Collection) -> Shelf:
    return Shelf(database, collection, LexicalEmbedder())


@pytest.fixture
def other_shelf(database: Database, new_collection: Callable[..., Collection]) -> Shelf:
    """A collection of another tenant."""
    return Shelf(database, new_collection("other", "Their documents"), LexicalEmbedder())


@pytest.fixture
def new_collection(database: Database, collection: Collection) -> Callable[..., Collection]:
    def add(tenant_id: str, name: str, *, embedding_model: str = "builtin/lexical@1536") -> Collection:
        with database.transaction(tenant_id) as connection:
            row = connection.execute(
                "INSERT INTO collections (tenant_id, name, embedding_model) VALUES (%s, %s, %s) "
                "RETURNING id, created_at",
                (tenant_id, name, embedding_model),
            ).fetchone()
        assert row is not None
        return Collection(
            id=row[0], tenant_id=tenant_id, name=name, profile="hr", embedding_model=embedding_model, language="en",
            overrides={}, created_at=row[1],
        )  # fmt: skip

    return add


@pytest.fixture
def asker() -> Identity:
    return Identity(account_id=uuid4(), tenant_id="demo", email="someone@example.org", name="", role=Role.EMPLOYEE)
