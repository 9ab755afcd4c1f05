"""Websites that a collection is kept equal to, read over real HTTP from a website on this machine."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import lxml.etree
import lxml.html
import pytest
import trafilatura

from rag.__main__ import command_line
from rag.errors import InvalidInput, NotFound, ProviderUnavailable, ReadingTookTooLong
from rag.ingestion.loaders.sandbox import Sandbox, TenantReader, answers_sandbox_of
from rag.ingestion.loaders.values import ExtractionLimits
from rag.ingestion.sources.sync import SourceItem
from rag.integrations.sources.website.website import WORKER, Website, WebsiteSource
from rag.profiles import profile_of
from rag.sandbox.child_process import Reply
from rag.services import Services, program_of
from rag.settings import Settings
from rag.types import Collection, Question
from tests.patience import patient
from tests.standins.website import Page, WebsiteStandin

LIMITS = ExtractionLimits(maximum_bytes=100_000)
READER = answers_sandbox_of(LIMITS, WORKER).of_tenant("demo")
LONG = "Twenty-eight days of paid leave belong to everyone who works here, from the first day on, and none is lost."


@pytest.fixture
def site() -> Iterator[WebsiteStandin]:
    with WebsiteStandin() as server:
        yield server


@pytest.fixture
def settings(settings: Settings, site: WebsiteStandin) -> Settings:
    return replace(settings, sync_hosts=site.host)


def source_of(site: WebsiteStandin, path: str = "/", **changes: Any) -> WebsiteSource:
    options = {name: changes.pop(name) for name in ("state", "wait") if name in changes}
    website = Website.of({"address": f"{site.url}{path}", **changes})
    return WebsiteSource(website, LIMITS, READER, own_hosts=frozenset({site.host}), **options)


def keys(site: WebsiteStandin, items: Iterator[SourceItem]) -> list[str]:
    return [item.key.removeprefix(site.url) for item in items]


def test_a_website_is_followed_from_link_to_link_and_only_changed_pages_are_read_again(
    app_services: Services, collection: Collection, site: WebsiteStandin
) -> None:
    syncs, admin = app_services.syncs, program_of("demo")
    site.write("/hr/", "Welcome", "All about working here.", "/hr/leave", "/hr/pay?utm_source=menu", "/press", "a.jpg")
    site.write("/hr/leave", "Leave", LONG, "/hr/", "/hr/form.txt", "https://elsewhere.example/x", "/hr/closed")
    site.write("/hr/pay", "Pay", "Paid on the 25th of each month.", "/hr/")
    site.pages["/hr/form.txt"] = Page(b"Ask your manager first.", kind="text/plain")
    site.write("/press", "Press", "Not below the first address.")
    site.write("/hr/closed", "Closed", "Not for programs.")
    site.pages["/robots.txt"] = Page(b"User-agent: *\nDisallow: /hr/closed\n", kind="text/plain")

    where = {"address": f"{site.url}/hr/", "hosts": "", "pages": "50"}
    assert syncs.try_source(admin, collection, "website", where)[0] == "Welcome"
    assert syncs.sources(collection) == [], "trying keeps nothing"
    syncs.set_source(admin, collection, "website", where)
    first = syncs.sync_now(admin, collection)
    assert (first.added, first.failed) == (4, 0)
    assert first.problems == ("Pages left out because the website's robots.txt keeps programs from reading them: 1.",)
    documents = {d.title: d for d in app_services.documents.list("demo")}
    assert set(documents) == {"Welcome", "Leave", "Pay", "Form"}
    app_services.pipeline.run("demo", documents["Leave"].id)
    (chunk,) = app_services.documents.chunks("demo", documents["Leave"].id)
    assert "Twenty-eight days" in chunk.content
    assert "Imprint" not in chunk.content
    question = Question(text="How many days of paid leave?", identity=admin, collection=collection)
    found = app_services.searches.search(question, profile=profile_of(collection))
    assert found.response.citations[0].url == f"{site.url}/hr/leave"

    site.answered.clear()
    assert syncs.sync_now(admin, collection).unchanged == 4
    assert site.fetched == [], "304 for each, and links are known from the last time"

    site.write("/hr/leave", "Leave", "Thirty days now, for everyone.", "/hr/", "/hr/trips")
    site.write("/hr/trips", "Trips", "By train where there is one, by car where there is none.")
    del site.pages["/hr/form.txt"], site.pages["/hr/pay"]
    site.answered.clear()
    again = syncs.sync_now(admin, collection)
    assert (again.updated, again.added, again.removed, again.unchanged) == (1, 1, 2, 1)
    assert site.fetched == ["/hr/leave", "/hr/trips"]


def test_a_page_that_cannot_be_reached_keeps_its_document_and_what_it_links_to(
    app_services: Services, collection: Collection, site: WebsiteStandin
) -> None:
    syncs, admin = app_services.syncs, program_of("demo")
    site.write("/", "Start", "Here it begins.", "/a")
    site.write("/a", "Part", "It leads to one more page.", "/b")
    site.write("/b", "Leaf", LONG)
    syncs.set_source(admin, collection, "website", {"address": site.url})
    assert syncs.sync_now(admin, collection).added == 3
    site.pages["/a"].status = 403
    kept = syncs.sync_now(admin, collection)
    assert (kept.removed, kept.failed, kept.unchanged) == (0, 1, 2)
    assert "does not show this page to programs" in kept.problems[0]
    site.pages["/a"].status = 200
    assert syncs.sync_now(admin, collection).unchanged == 3
    site.pages["/robots.txt"] = Page(b"", 503)
    source = source_of(site, wait=lambda seconds: None)
    with pytest.raises(ProviderUnavailable, match="which pages may be read"):
        list(source.items())


def test_a_sitemap_tells_which_pages_there_are_and_which_changed(site: WebsiteStandin) -> None:
    def sitemap(*pages: tuple[str, str]) -> Page:
        entries = "".join(f"<url><loc>{site.url}{path}</loc><lastmod>{day}</lastmod></url>" for path, day in pages)
        top = '<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
        return Page(f"{top}{entries}</urlset>".encode(), kind="application/xml")

    site.write("/a", "A", "The first page says this.", "/not-in-it")
    site.write("/b", "B", "The second page says that.")
    site.write("/not-in-it", "C", "Nobody asked for this page.")
    index = f"<sitemapindex><sitemap><loc>{site.url}/part.xml</loc></sitemap></sitemapindex>"
    site.pages["/map.xml"] = Page(f'<?xml version="1.0"?>{index}'.encode(), kind="application/xml")
    parts = sitemap(("/a", "2026-01-05"), ("/b", "2026-01-05"), ("/gone", "2026-01-05"))
    site.pages["/part.xml"] = replace(parts, body=gzip.compress(parts.body))
    site.pages["/robots.txt"] = Page(f"Sitemap: {site.url}/map.xml\n".encode(), kind="text/plain")
    first = source_of(site)
    assert keys(site, first.items()) == ["/a", "/b"]
    site.answered.clear()
    site.pages["/part.xml"] = sitemap(("/a", "2026-01-05"), ("/b", "2026-02-01"))
    site.write("/b", "B", "The second page says something else.")
    second = source_of(site, state=first.state)
    assert keys(site, second.items()) == ["/a", "/b"]
    assert "/a" not in [path for path, _ in site.answered], "its day in the sitemap is the same"
    assert keys(site, source_of(site, "/map.xml").items()) == ["/a", "/b"]
    with pytest.raises(NotFound, match="no sitemap"):
        list(source_of(site, "/other.xml").items())


def test_one_page_is_one_document_whatever_its_addresses_and_redirects_stay_on_the_list(site: WebsiteStandin) -> None:
    canonical = f'<link rel="canonical" href="{site.url}/leave">'
    site.write("/", "Start", "Here it begins.", "/leave#top", "/leave?utm_campaign=x", "/print/leave", "/old", "/out",
               "/twin", "/hidden", "/in")  # fmt: skip
    site.write("/leave", "Leave", LONG, head=canonical)
    site.write("/print/leave", "Leave, to print", f"{LONG} Printed.", head=canonical)
    site.pages["/twin"] = site.pages["/leave"]
    site.write("/hidden", "Hidden", LONG * 2, head='<meta name="robots" content="noindex">')
    site.pages["/old"] = Page(b"", 301, headers={"Location": "/leave"})
    site.pages["/out"] = Page(b"", 302, headers={"Location": "http://127.0.0.1:1/secret"})
    site.pages["/in"] = Page(b"", 302, headers={"Location": "http://169.254.169.254/latest"})
    assert keys(site, source_of(site).items()) == ["/", "/leave"]
    short = source_of(site, pages="2")
    assert keys(site, short.items()) == ["/", "/leave"]
    assert short.notes == ["Reading stopped after 2 pages, as the settings of the source say."]


@pytest.mark.parametrize(
    ("kept", "said"),
    [
        ({}, "Fill in the address"),
        ({"address": "file:///etc/passwd"}, "web address"),
        ({"address": "https://a b"}, "web address"),
        ({"address": "https://x.example", "pages": "0"}, "between 1 and 5,000"),
        ({"address": "https://x.example", "hosts": "ftp://y"}, "further host"),
    ],
)
def test_settings_that_cannot_be_are_refused(kept: dict[str, str], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        Website.of(kept)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "0x7f.1", "[::1]", "169.254.169.254"])
def test_a_private_network_is_read_only_where_the_operator_named_the_host(site: WebsiteStandin, host: str) -> None:
    website = Website.of({"address": f"http://{host}:{site.server_address[1]}/"})
    with pytest.raises(InvalidInput, match="RAG_SYNC_HOSTS"):
        list(WebsiteSource(website, LIMITS, READER).items())
    assert site.answered == []


def test_a_website_that_closes_itself_to_programs_is_not_read_and_is_asked_as_slowly_as_it_wants(
    site: WebsiteStandin,
) -> None:
    site.write("/", "Start", "Here it begins.", "/a")
    site.write("/a", "A", LONG)
    site.pages["/robots.txt"] = Page(b"User-agent: *\nDisallow: /\n", kind="text/plain")
    with pytest.raises(InvalidInput, match=r"robots\.txt"):
        list(source_of(site).items())
    site.pages["/robots.txt"] = Page(b"User-agent: *\nCrawl-delay: 7\n", kind="text/plain")
    waited: list[float] = []
    assert len(list(source_of(site, wait=waited.append).items())) == 2
    assert waited, "each request waits for its turn"
    assert all(0 < seconds <= 7 for seconds in waited)


def test_a_website_is_followed_by_command(
    app_services: Services, collection: Collection, site: WebsiteStandin, capsys: pytest.CaptureFixture[str]
) -> None:
    site.write("/", "Start", LONG)

    def run(*given: str) -> int:
        arguments = command_line().parse_args(["sync", "--collection", collection.name, "--source", "website", *given])
        return int(arguments.run(arguments, app_services.settings))

    assert run("--set", f"address={site.url}", "--every", "6h") == 0
    printed = capsys.readouterr().out
    assert "1 added" in printed
    assert "Synced automatically (website)" in printed


def test_a_page_that_takes_a_parser_hours_is_the_only_one_that_is_not_read(site: WebsiteStandin) -> None:
    site.write("/", "Start", LONG, "/attributes", "/after")
    attributes = " ".join(f"a{number}=1" for number in range(400_000))
    site.pages["/attributes"] = Page(f"<html><body><p>{LONG}</p><div {attributes}></div></body></html>".encode())
    site.write("/after", "After", f"{LONG} This comes after it.")
    limits = ExtractionLimits(timeout_seconds=patient(2))
    sandbox = Sandbox(limits, processes=1, worker=("-m", WORKER))
    sandbox.warm_up()
    website = Website.of({"address": f"{site.url}/"})
    source = WebsiteSource(website, limits, sandbox.of_tenant("demo"), own_hosts=frozenset({site.host}))
    try:
        found = {item.key.removeprefix(site.url): item for item in source.items()}
        assert set(found) == {"/", "/attributes", "/after"}
        with pytest.raises(ReadingTookTooLong, match="this file"):
            found["/attributes"].load()
        assert b"comes after" in found["/after"].load().content
    finally:
        sandbox.close()


def test_a_website_whose_pages_take_hours_is_left(site: WebsiteStandin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rag.integrations.sources.website.website.LONGEST_READING_SECONDS", 0.0)
    site.write("/", "Start", LONG, "/a", "/b")
    site.write("/a", "A", LONG)
    source = source_of(site)
    with pytest.raises(InvalidInput, match="takes too long"):
        list(source.items())
    assert "/b" not in site.fetched


def test_nothing_of_a_website_is_parsed_in_the_application(
    site: WebsiteStandin, monkeypatch: pytest.MonkeyPatch
) -> None:
    def parses(*_: object, **__: object) -> None:
        raise AssertionError("the application has parsed what a website sent")

    for module, names in (
        (lxml.html, ("document_fromstring", "fromstring", "parse", "HTMLParser")),
        (lxml.etree, ("fromstring", "XML", "HTML", "parse", "iterparse", "XMLParser", "HTMLParser")),
        (trafilatura, ("extract",)),
        (gzip, ("GzipFile", "decompress")),
    ):
        for name in names:
            monkeypatch.setattr(module, name, parses)
    site.write("/a", "A", LONG)
    sitemap = f"<urlset><url><loc>{site.url}/a</loc></url></urlset>"
    site.pages["/sitemap.xml"] = Page(sitemap.encode(), kind="application/xml")
    (item,) = source_of(site).items()
    assert b"Twenty-eight" in item.load().content


def test_what_a_taken_over_process_says_of_a_page_leads_nowhere_else(site: WebsiteStandin) -> None:
    class TakenOver(TenantReader):
        def answer(self, kind: str, content: bytes, **values: Any) -> Reply:
            if kind == "sitemap":
                return Reply(
                    "result", {"entries": [["http://[", 1], ["file:///etc/passwd", ""]], "is_index": False}, b""
                )
            links = ["file:///etc/passwd", "http://169.254.169.254/", "http://[", 7, f"{site.url}/a"]
            told = {"robots": "", "canonical": "http://169.254.169.254/", "title": "<b>", "language": '"><script>'}
            return Reply("result", {"is_empty": False, **told, "links": links}, b"<body>text</body>")

    site.write("/", "Start", LONG)
    website = Website.of({"address": f"{site.url}/"})
    reader = TakenOver(READER.sandbox, "demo")
    source = WebsiteSource(website, LIMITS, reader, own_hosts=frozenset({site.host}))
    (item,) = source.items()
    assert item.key == f"{site.url}/"
    assert source._pages[f"{site.url}/"].links == (f"{site.url}/a",)
    assert b"<script>" not in item.load().content
