"""Buckets of S3-compatible storage, through the real client against a stand-in over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from rag.errors import DocumentError, InvalidInput, NotFound, ProviderKeyRejected, RagError
from rag.ingestion.loaders.values import ExtractionLimits
from rag.integrations.sources.s3.bucket import Bucket, BucketSource
from rag.services import Services, program_of
from rag.settings import Settings
from rag.types import Collection
from tests.standins.bucket import ACCESS_KEY, SECRET_KEY, BucketStandin

LIMITS = ExtractionLimits(maximum_bytes=1000)
KEYS = {"access_key": ACCESS_KEY, "secret_key": SECRET_KEY}


@pytest.fixture
def storage() -> Iterator[BucketStandin]:
    with BucketStandin() as server:
        yield server


@pytest.fixture
def settings(settings: Settings, storage: BucketStandin) -> Settings:
    return replace(settings, sync_hosts=f"other.intern, {storage.host}")


def bucket_of(storage: BucketStandin, **changes: str) -> Bucket:
    return Bucket.of({"address": f"http://{storage.host}", "bucket": "papers", "region": "eu-1", **KEYS, **changes})


def test_a_bucket_is_followed_and_only_what_changed_is_read_again(
    app_services: Services, collection: Collection, storage: BucketStandin
) -> None:
    syncs, admin = app_services.syncs, program_of("demo")
    storage.files = {
        "hr/leave.md": b"# Leave\n\nTwenty-eight days.",
        "hr/deep/pay.txt": b"Paid on the 25th.",
        "hr/travel.md": b"# Travel\n\nBy train.",
        "hr/.hidden.md": b"no",
        "hr/run.exe": b"no",
        "other/secret.md": b"no",
    }
    where = {"address": f"http://{storage.host}", "bucket": "papers", "folder": "/hr/", "region": "eu-1"}
    syncs.set_source(admin, collection, "s3", where, secrets=KEYS)
    (kept,) = syncs.sources(collection)
    assert SECRET_KEY not in repr(kept)
    assert SECRET_KEY not in kept.secrets
    assert kept.settings == where, "no key is among the settings that are shown and audited"
    assert len(syncs.set_schedule(admin, collection, 60, kind="s3")) == 1

    first = syncs.sync_now(admin, collection)
    assert (first.added, first.failed) == (3, 0)
    assert syncs.sync_now(admin, collection).unchanged == 3
    assert sorted(storage.read) == ["hr/deep/pay.txt", "hr/leave.md", "hr/travel.md"], "each was read once"

    storage.files["hr/leave.md"] = b"# Leave\n\nThirty days."
    storage.files["hr/trips.md"] = storage.files.pop("hr/travel.md")
    del storage.files["hr/deep/pay.txt"]
    again = syncs.sync_now(admin, collection)
    assert (again.updated, again.added, again.removed, again.unchanged) == (1, 1, 2, 0)
    assert sorted(d.title for d in app_services.documents.list("demo")) == ["Leave", "Trips"]
    assert [run.status for run in syncs.runs("demo", collection.id)] == ["done"] * 3

    storage.files = {"hr/run.exe": b"no"}
    with pytest.raises(InvalidInput, match="Nothing was removed"):
        syncs.sync_now(admin, collection)


def test_a_file_above_the_limit_is_refused_without_being_fetched(storage: BucketStandin) -> None:
    storage.files = {"vast.txt": b"x" * 1001}
    (item,) = BucketSource(bucket_of(storage), LIMITS, own_hosts=frozenset({storage.host})).items()
    with pytest.raises(DocumentError, match="larger than the limit"):
        item.load()
    assert storage.read == []


@pytest.mark.parametrize(
    ("changes", "error", "said"),
    [
        ({"access_key": "nobody"}, ProviderKeyRejected, "rejected the keys"),
        ({"bucket": "absent"}, NotFound, "no such bucket"),
        ({"bucket": "Not A Bucket"}, InvalidInput, "cannot be read"),
        ({"bucket": ""}, InvalidInput, "name of the bucket"),
        ({"secret_key": ""}, InvalidInput, "both keys"),
        ({"address": "file:///etc"}, InvalidInput, "web address"),
        ({"address": "http://a:99999"}, InvalidInput, "web address"),
        ({"address": "http://s3.example.com"}, InvalidInput, "begin with https"),
    ],
)
def test_what_cannot_be_read_is_said_in_a_sentence(
    storage: BucketStandin, changes: dict[str, str], error: type[RagError], said: str
) -> None:
    with pytest.raises(error, match=said):
        list(BucketSource(bucket_of(storage, **changes), LIMITS, own_hosts=frozenset({storage.host})).items())


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost"])
def test_a_private_network_is_read_only_where_the_operator_named_the_host(storage: BucketStandin, name: str) -> None:
    port = storage.server_address[1]
    with pytest.raises(InvalidInput, match="RAG_SYNC_HOSTS"):
        list(BucketSource(bucket_of(storage, address=f"https://{name}:{port}"), LIMITS).items())
    assert not storage.read
    # Nothing was sent there: how long it takes shows nobody which ports are open.
    with pytest.raises(InvalidInput, match="RAG_SYNC_HOSTS"):
        list(BucketSource(bucket_of(storage, address=f"https://{name}:1"), LIMITS).items())
