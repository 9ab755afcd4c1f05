"""SharePoint libraries that a collection is kept equal to, through msal and httpx against a stand-in over TLS."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rag.errors import DocumentError, InvalidInput, NotFound, ProviderKeyRejected, RagError
from rag.ingestion.loaders.values import ExtractionLimits
from rag.ingestion.sources.permissions import NOBODY
from rag.integrations.sources.sharepoint.sharepoint import Library, MicrosoftCloud, SharePointSource
from rag.services import Services, program_of
from rag.settings import Settings
from rag.storage.collections import find_collections
from rag.types import Collection
from tests.integrations.sources.sharepoint.graph_standin import CLIENT, ROOT, SECRET, TENANT, GraphStandin

LIMITS = ExtractionLimits(maximum_bytes=1000)
WHERE = {"tenant": TENANT, "client_id": CLIENT, "site": "https://contoso.sharepoint.com/sites/HR/SitePages/Home.aspx"}


@pytest.fixture
def graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[GraphStandin]:
    server = GraphStandin(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(server.certificate))
    with server:
        yield server


@pytest.fixture
def settings(settings: Settings, graph: GraphStandin) -> Settings:
    own = f"{graph.host},{graph.other_host}"
    return replace(
        settings,
        sync_hosts=own,
        integration_variables={"RAG_GRAPH_URL": graph.url},
        microsoft_login_url=f"https://{graph.host}",
    )


def source_of(graph: GraphStandin, **changes: Any) -> SharePointSource:
    options = {name: changes.pop(name) for name in ("state", "wait") if name in changes}
    library = Library.of({**WHERE, "client_secret": SECRET, **changes})
    return SharePointSource(
        library,
        LIMITS,
        cloud=MicrosoftCloud(
            graph_url=graph.url,
            login_url=f"https://{graph.host}",
            own_hosts=frozenset({graph.host, graph.other_host}),
        ),
        **options,
    )


def group(name: str) -> dict[str, Any]:
    return {"roles": ["read"], "grantedToV2": {"group": {"displayName": name}}}


def test_a_library_is_followed_by_what_changed(
    app_services: Services, collection: Collection, graph: GraphStandin
) -> None:
    syncs, admin = app_services.syncs, program_of("demo")
    leave = graph.write("HR/leave.md", b"# Leave\n\nTwenty-eight days.")
    pay = graph.write("HR/deep/pay.txt", b"Paid on the 25th.")
    travel = graph.write("HR/travel.md", b"# Travel\n\nBy train.")
    graph.write("HR/run.exe", b"no")
    graph.write("Finance/secret.md", b"no")
    where = {**WHERE, "folder": "/HR/"}
    with pytest.raises(ProviderKeyRejected, match="which may have expired"):
        syncs.try_source(admin, collection, "sharepoint", where, secrets={"client_secret": "wrong"})
    secrets = {"client_secret": SECRET}
    assert syncs.try_source(admin, collection, "sharepoint", where, secrets=secrets) == [
        "pay.txt",
        "leave.md",
        "travel.md",
    ]
    syncs.set_source(admin, collection, "sharepoint", where, secrets=secrets)
    (kept,) = syncs.sources(collection)
    assert SECRET not in f"{kept!r} {kept.secrets} {kept.settings}"
    graph.asked.clear()
    first = syncs.sync_now(admin, collection)
    assert (first.added, first.failed) == (3, 0)
    assert graph.asked.count("/v1.0/drives/b!main/root/delta") == 5, "nine entries in pages of two"
    assert graph.leaked == [], "the token goes to Graph only"
    graph.asked.clear()
    assert syncs.sync_now(admin, collection).unchanged == 3
    assert graph.asked.count("/v1.0/drives/b!main/root/delta") == 1, "nothing changed since"
    assert sorted(graph.read) == ["leave.md", "pay.txt", "travel.md"], "each was read once"

    graph.write("HR/leave.md", b"# Leave\n\nThirty days.")
    graph.rename(travel, "trips.md")
    graph.remove(pay)
    again = syncs.sync_now(admin, collection)
    assert (again.updated, again.removed, again.unchanged) == (2, 1, 0)
    assert sorted(d.title for d in app_services.documents.list("demo")) == ["Leave", "Trips"]
    graph.has_forgotten = True
    assert syncs.sync_now(admin, collection).unchanged == 2, "listed whole where Graph has forgotten the last time"
    assert leave in graph.contents
    addresses = {document.title: document.metadata["pageUrl"] for document in app_services.documents.list("demo")}
    assert addresses == {
        "Leave": "https://contoso.sharepoint.com/HR/leave.md",
        "Trips": "https://contoso.sharepoint.com/HR/travel.md",
    }


def test_who_may_read_is_carried_over_as_groups(
    app_services: Services, collection: Collection, graph: GraphStandin
) -> None:
    syncs, admin = app_services.syncs, program_of("demo")

    def now() -> Collection:
        return find_collections(app_services.database, "demo", collection_id=collection.id)[0]

    graph.write("open.md", b"For all of HR and for managers.")
    narrow = graph.write("narrow.md", b"For HR alone.")
    wide = graph.write("wide.md", b"For everybody in the company.")
    graph.permissions = {
        ROOT: [group("HR"), group("Managers")],
        narrow: [group("HR")],
        wide: [{"link": {"scope": "organization"}, "roles": ["read"]}],
    }
    syncs.set_source(admin, collection, "sharepoint", {**WHERE, "readers": True}, secrets={"client_secret": SECRET})
    graph.asked.clear()
    report = syncs.sync_now(admin, collection)
    assert report.added == 2
    assert report.problems[0].startswith("Documents left out because some readers")
    assert report.problems[0].endswith(": 1.")
    assert "$batch 3" in graph.asked, "many files are asked for at once"
    assert now().groups == ["HR", "Managers"]
    assert sorted(d.title for d in app_services.documents.list("demo")) == ["Open", "Wide"]

    graph.permissions[ROOT] = [group("HR")]
    assert syncs.sync_now(admin, now()).added == 1
    assert now().groups == ["HR"]
    graph.permissions[ROOT] = [group("Managers")]
    graph.is_broken = True
    with pytest.raises(RagError):
        syncs.sync_now(admin, now())
    assert now().groups == [NOBODY], "documents that managers may not read are still here"
    graph.is_broken = False
    assert syncs.sync_now(admin, now()).removed == 1
    assert now().groups == ["Managers"]
    graph.permissions[ROOT] = [group("HR")]
    syncs.sync_now(admin, now())
    graph.permissions[ROOT] = [{"roles": ["owner"], "grantedToV2": {"user": {"displayName": "Ada"}}}]
    with pytest.raises(InvalidInput, match="only individual people"):
        syncs.sync_now(admin, now())
    assert now().groups == ["HR"], "never open by mistake"
    graph.permissions[ROOT] = [
        {"roles": ["read"], "grantedToV2": {"siteGroup": {"displayName": "Everyone except external users"}}}
    ]
    assert syncs.sync_now(admin, now()).removed == 1
    assert now().groups == []


@pytest.mark.parametrize(
    ("changes", "error", "said"),
    [
        ({"tenant": "other.example"}, InvalidInput, "no such directory"),
        ({"tenant": "a/b"}, InvalidInput, "tenant"),
        ({"client_id": "x"}, InvalidInput, "36 characters"),
        ({"client_secret": ""}, InvalidInput, "client secret"),
        ({"site": ""}, InvalidInput, "address of the SharePoint site"),
        ({"site": "https://contoso.sharepoint.com/sites/Other"}, NotFound, "no such site"),
        ({"library": "Pictures"}, NotFound, "it has: Documents"),
        ({"folder": "Absent"}, NotFound, "no such site, library or folder"),
    ],
)
def test_what_cannot_be_read_is_said_in_a_sentence(
    graph: GraphStandin, changes: dict[str, Any], error: type[RagError], said: str
) -> None:
    with pytest.raises(error, match=said):
        list(source_of(graph, **changes).items())


def test_a_onedrive_is_read_by_its_owners_address_with_pauses_where_graph_asks_for_them(graph: GraphStandin) -> None:
    graph.write("vast.txt", b"x" * 1001)
    graph.is_busy = 1
    waited: list[float] = []
    source = source_of(graph, site="ada@contoso.example", wait=waited.append)
    (item,) = source.items()
    assert waited == [3.0]
    with pytest.raises(DocumentError, match="larger than the limit"):
        item.load()
    assert graph.read == []
    source.close()
