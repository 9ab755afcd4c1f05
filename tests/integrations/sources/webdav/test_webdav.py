"""Folders on WebDAV servers that a collection is kept equal to, read from a real WebDAV server on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from webdav4 import multistatus

from rag.errors import DocumentError, InvalidInput, NotFound, ProviderAnswerInvalid, ProviderKeyRejected, RagError
from rag.ingestion.loaders.sandbox import answers_sandbox_of
from rag.ingestion.loaders.values import ExtractionLimits
from rag.integrations.sources.webdav.webdav import WORKER, WebdavFolder, WebdavSource
from rag.services import Services, program_of
from rag.settings import Settings
from rag.types import Collection
from tests.integrations.sources.webdav.cloud_standin import PASSWORD, USER, Cloud
from tests.standins.website import Page, WebsiteStandin

LIMITS = ExtractionLimits(maximum_bytes=1000)
READER = answers_sandbox_of(LIMITS, WORKER).of_tenant("demo")


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[Cloud]:
    with Cloud(tmp_path / "cloud") as made:
        yield made


@pytest.fixture
def settings(settings: Settings, cloud: Cloud) -> Settings:
    return replace(settings, sync_hosts=cloud.host)


def source_of(cloud: Cloud, *, is_own: bool = True, **changes: Any) -> WebdavSource:
    folder = WebdavFolder.of({"address": f"http://{cloud.host}", "user": USER, "password": PASSWORD, **changes})
    own_hosts = frozenset({cloud.host}) if is_own else frozenset()
    cloud.sources.append(WebdavSource(folder, LIMITS, READER, own_hosts=own_hosts, wait=lambda seconds: None))
    return cloud.sources[-1]


def test_a_folder_is_followed_and_only_what_changed_is_read_again(
    app_services: Services, collection: Collection, cloud: Cloud
) -> None:
    syncs, admin = app_services.syncs, program_of("demo")
    cloud.write("HR/leave & more.md", "# Leave\n\nTwenty-eight days.")
    cloud.write("HR/Löhne/2026/pay.txt", "Paid on the 25th.")
    cloud.write("HR/travel.md", "# Travel\n\nBy train.")
    cloud.write("HR/.hidden.md", "no")
    cloud.write("HR/run.exe", "no")
    cloud.write("private.md", "no")
    where = {"address": f"http://{cloud.host}/index.php/apps/files/files/7?dir=/HR", "user": USER}
    with pytest.raises(ProviderKeyRejected, match="app password"):
        syncs.try_source(admin, collection, "webdav", where, secrets={"password": "wrong"})
    secrets = {"password": PASSWORD}
    assert syncs.try_source(admin, collection, "webdav", where, secrets=secrets) == [
        "leave & more.md",
        "travel.md",
        "pay.txt",
    ]
    syncs.set_source(admin, collection, "webdav", where, secrets=secrets)
    (kept,) = syncs.sources(collection)
    assert PASSWORD not in f"{kept!r} {kept.secrets} {kept.settings}"
    first = syncs.sync_now(admin, collection)
    assert (first.added, first.failed) == (3, 0)
    assert syncs.sync_now(admin, collection).unchanged == 3
    assert sorted(cloud.read) == ["leave & more.md", "pay.txt", "travel.md"], "each was read once"

    cloud.write("HR/leave & more.md", "# Leave\n\nThirty days now.")
    (cloud.folder / "HR/travel.md").rename(cloud.folder / "HR/trips.md")
    (cloud.folder / "HR/Löhne/2026/pay.txt").unlink()
    again = syncs.sync_now(admin, collection)
    assert (again.updated, again.added, again.removed, again.unchanged) == (1, 1, 2, 0)
    assert sorted(d.title for d in app_services.documents.list("demo")) == ["Leave & more", "Trips"]


def test_a_file_above_the_limit_is_refused_without_being_fetched(cloud: Cloud) -> None:
    cloud.write("vast.txt", "x" * 1001)
    (item,) = source_of(cloud).items()
    with pytest.raises(DocumentError, match="larger than the limit"):
        item.load()
    assert cloud.read == []


@pytest.mark.parametrize(
    ("changes", "error", "said"),
    [
        ({"password": "wrong"}, ProviderKeyRejected, "rejected the name or the password"),
        ({"folder": "absent"}, NotFound, "no such folder"),
        ({"folder": "../other"}, InvalidInput, r"may not contain “\.\.”"),
        ({"password": ""}, InvalidInput, "the name and the password"),
        ({"address": ""}, InvalidInput, "Fill in the address"),
        ({"user": "", "password": ""}, InvalidInput, "name of the account"),
        ({"address": "http://cloud.example.com"}, InvalidInput, "begin with https"),
    ],
)
def test_what_cannot_be_read_is_said_in_a_sentence(
    cloud: Cloud, changes: dict[str, Any], error: type[RagError], said: str
) -> None:
    with pytest.raises(error, match=said):
        list(source_of(cloud, **changes).items())


def test_a_private_network_is_read_only_where_the_operator_named_the_host(cloud: Cloud) -> None:
    port = cloud.host.rpartition(":")[2]
    for name in ("127.0.0.1", "localhost"):
        with pytest.raises(InvalidInput, match="RAG_SYNC_HOSTS"):
            list(source_of(cloud, is_own=False, address=f"https://{name}:{port}").items())
    assert cloud.read == []


@pytest.mark.parametrize("status", [200, 405])
def test_a_server_that_is_no_webdav_server_is_named_as_such(status: int) -> None:
    with WebsiteStandin() as site:
        site.pages["/dav"] = Page(b"<html>Hello</html>", status)
        folder = WebdavFolder.of({"address": f"{site.url}/dav/"})
        source = WebdavSource(folder, LIMITS, READER, own_hosts=frozenset({site.host}), wait=lambda seconds: None)
        with pytest.raises(ProviderAnswerInvalid, match="No WebDAV server answers"):
            list(source.items())
        source.close()


def test_nothing_of_a_list_is_parsed_in_the_application(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    def parses(*_: object, **__: object) -> None:
        raise AssertionError("the application has parsed what a server sent")

    cloud.write("leave.md", "# Leave")
    for name in ("fromstring", "XML", "parse", "iterparse", "XMLParser"):
        monkeypatch.setattr(ElementTree, name, parses)
    monkeypatch.setattr(multistatus, "str2xml", parses)
    assert [item.title for item in source_of(cloud).items()] == ["leave.md"]
