"""How many passages go to the embedder at once, and how far apart: figures of the sources, seen by the provider."""

from __future__ import annotations

from itertools import pairwise

import pytest

from rag.services import Services
from rag.types import Identity, UploadOptions
from tests.standins.providers import ProviderStandin


@pytest.mark.parametrize(
    ("profile", "size", "model"),
    [
        ("notices", 100, ("text-embedding-3-large", 3072)),  # 000, "Batch Size: 100 texts per request"
        ("portfolio", 50, ("text-embedding-3-small", 1536)),  # 001, "Batch Size: 50 chunks per batch"
    ],
)
def test_passages_are_embedded_in_the_batches_of_the_document(
    profile: str,
    size: int,
    model: tuple[str, int],
    app_services: Services,
    admin: Identity,
    provider_standin: ProviderStandin,
) -> None:
    collection = app_services.documents.create_collection(admin, "Texts", profile)
    text = "\n\n".join(f"Paragraph {n} {'a word and another one ' * 60}." for n in range(70))
    app_services.pipeline.process_document(
        file=text.encode(),
        file_name="notes.txt",
        tenant_id="demo",
        collection=collection,
        options=UploadOptions(chunking_method="smart", generate_metadata=False),
    )
    asked = [body for endpoint, body in provider_standin.requests if endpoint == "embeddings"]
    *full, rest = sorted((len(body["input"]) for body in asked), reverse=True)
    assert full
    assert set(full) == {size}
    assert rest <= size
    name, dimensions = model
    assert {body["model"] for body in asked} == {name}
    (made,) = app_services.documents.list("demo", collection_id=collection.id)
    with app_services.database.transaction("demo") as connection:
        row = connection.execute(
            "SELECT count(*), min(vector_dims(embedding)) FROM document_chunks WHERE document_id = %s", (made.id,)
        ).fetchone()
    assert row == (sum(full) + rest, dimensions)


def test_batches_of_a_portfolio_are_100_milliseconds_apart_across_documents_too(
    app_services: Services, admin: Identity, provider_standin: ProviderStandin
) -> None:
    """001, "Rate Limiting: 100ms delay between batches"."""
    collection = app_services.documents.create_collection(admin, "Texts", "portfolio")
    app_services.documents.override_collection(admin, collection.id, {"embedding_batch_size": 5})
    collection = app_services.documents.collection("demo", collection.id)
    for name, paragraphs in (("notes", 20), ("plan", 3), ("story", 3)):  # the last two are a batch each
        text = "\n\n".join(f"{name} {n} {'a word and another one ' * 60}." for n in range(paragraphs))
        app_services.pipeline.process_document(
            file=text.encode(),
            file_name=f"{name}.txt",
            tenant_id="demo",
            collection=collection,
            options=UploadOptions(chunking_method="smart", generate_metadata=False),
        )
    asked = zip(provider_standin.requests, provider_standin.times, strict=True)
    came = [at for (endpoint, _), at in asked if endpoint == "embeddings"]
    assert len(came) > 5
    # The shortest of many: a single pause may be longer on a busy machine, none shorter.
    assert min(later - earlier for earlier, later in pairwise(came)) >= 0.1
