"""Collections that follow places elsewhere, each set up on the page against a stand-in of the service's API."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass

import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect

from tests import drive_standin, graph_standin
from tests.browser.conftest import Product, settle, sign_up, start_product
from tests.browser.tables import cells
from tests.bucket_standin import ACCESS_KEY, SECRET_KEY, BucketStandin
from tests.cloud_standin import PASSWORD, USER, Cloud
from tests.drive_standin import DriveStandin
from tests.graph_standin import CLIENT, SECRET, TENANT, GraphStandin
from tests.patience import patient
from tests.website_standin import Page as WebPage
from tests.website_standin import WebsiteStandin

pytestmark = pytest.mark.browser


@dataclass
class Services:
    """The stand-ins, the product that may reach them, and its first administrator."""

    product: Product
    context: BrowserContext
    cloud: Cloud
    bucket: BucketStandin
    website: WebsiteStandin
    graph: GraphStandin
    drive: DriveStandin


@pytest.fixture(scope="module")
def services(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    folder = tmp_path_factory.mktemp("sources")
    for name in ("graph", "drive"):
        (folder / name).mkdir()
    with ExitStack() as stack:
        cloud = stack.enter_context(Cloud(folder / "cloud"))
        bucket = stack.enter_context(BucketStandin())
        website = stack.enter_context(WebsiteStandin())
        graph = stack.enter_context(GraphStandin(folder / "graph"))
        drive = stack.enter_context(DriveStandin(folder / "drive"))
        trusted = folder / "trusted.pem"
        trusted.write_bytes(graph.certificate.read_bytes() + drive.certificate.read_bytes())
        hosts = (cloud.host, bucket.host, website.host, graph.host, graph.other_host, drive.host)
        product = start_product(
            folder / "data",
            RAG_SAMPLES="false",
            RAG_SYNC_HOSTS=",".join(hosts),
            SSL_CERT_FILE=str(trusted),
            RAG_GRAPH_URL=graph.url,
            RAG_MICROSOFT_LOGIN_URL=f"https://{graph.host}",
            RAG_GOOGLE_API_URL=f"https://{drive.host}",
            RAG_GOOGLE_CLIENT_ID="client-7",
            RAG_GOOGLE_CLIENT_SECRET="the-client-secret",
            RAG_GOOGLE_LOGIN_URL=f"https://{drive.host}/auth",
            RAG_GOOGLE_OAUTH_URL=f"https://{drive.host}/token",
        )
        stack.callback(product.stop)
        signed_in = sign_up(browser, product)
        # The browser too goes to the stand-in of Google, whose certificate nobody else knows.
        context = browser.new_context(
            viewport={"width": 1280, "height": 860},
            locale="en-US",
            ignore_https_errors=True,
            storage_state=signed_in.storage_state(),
        )
        signed_in.close()
        stack.callback(context.close)
        yield Services(product, context, cloud, bucket, website, graph, drive)


@pytest.fixture
def tab(services: Services) -> Iterator[Page]:
    opened = services.context.new_page()
    yield opened
    opened.close()


@dataclass(frozen=True)
class Place:
    """A place that holds two documents, and what is typed to follow it."""

    name: str
    fields: Mapping[str, str]
    #: A field and what refuses it.
    wrong: tuple[str, str]
    #: Adds a third document.
    grow: Callable[[], object]
    titles: tuple[str, str, str]
    groups: tuple[str, ...] = ()


def webdav(services: Services) -> Place:
    cloud = services.cloud
    cloud.write("HR/cloud leave.md", "# Cloud leave\n\nTwenty-eight days a year.")
    cloud.write("HR/cloud travel.md", "# Cloud travel\n\nBy train, second class.")
    return Place(
        "Nextcloud or WebDAV",
        {
            "Address of the server": f"http://{cloud.host}",
            "Folder; empty for all of it": "HR",
            "Name of the account": USER,
            "App password": PASSWORD,
        },
        ("App password", "wrong"),
        lambda: cloud.write("HR/cloud pay.md", "# Cloud pay\n\nOn the 25th of a month."),
        ("Cloud leave", "Cloud travel", "Cloud pay"),
    )


def bucket(services: Services) -> Place:
    files = services.bucket.files
    files["hr/bucket leave.md"] = b"# Bucket leave\n\nTwenty-eight days a year."
    files["hr/bucket travel.md"] = b"# Bucket travel\n\nBy train, second class."
    return Place(
        "S3-compatible storage",
        {
            "Address of the storage": services.bucket.url,
            "Bucket": "papers",
            "Folder in the bucket; empty for all of it": "hr",
            "Access key": ACCESS_KEY,
            "Secret key": SECRET_KEY,
        },
        ("Access key", "nobody"),
        lambda: files.update({"hr/bucket pay.md": b"# Bucket pay\n\nOn the 25th of a month."}),
        ("Bucket leave", "Bucket travel", "Bucket pay"),
    )


def website(services: Services) -> Place:
    site = services.website
    text = "Everybody has twenty-eight days of leave a year, and asks the manager for them in good time. " * 3
    site.pages["/robots.txt"] = WebPage(b"User-agent: *\nDisallow: /private", kind="text/plain")
    site.write("/handbook/", "Web handbook", text, "/handbook/travel", "/private/pay")
    site.write("/handbook/travel", "Web travel", "Trains are booked in second class by everybody. " * 4)
    site.write("/private/pay", "Web secrets", "What everybody earns. " * 9)

    def grow() -> None:
        site.write("/handbook/", "Web handbook", text, "/handbook/travel", "/handbook/pay")
        site.write("/handbook/pay", "Web pay", "Salaries are paid on the 25th of each month. " * 4)

    return Place(
        "Website",
        {"Address of the first page, or of a sitemap": f"{site.url}/handbook/"},
        ("Address of the first page, or of a sitemap", f"{site.url}/private/pay"),
        grow,
        ("Web handbook", "Web travel", "Web pay"),
    )


def sharepoint(services: Services) -> Place:
    graph = services.graph
    graph.write("HR/graph leave.md", b"# Graph leave\n\nTwenty-eight days a year.")
    graph.write("HR/graph travel.md", b"# Graph travel\n\nBy train, second class.")
    graph.permissions[graph_standin.ROOT] = [
        {"roles": ["read"], "grantedToV2": {"group": {"displayName": name}}} for name in ("HR", "Managers")
    ]
    return Place(
        "SharePoint or OneDrive",
        {
            "Address of the site, or e-mail address of the OneDrive's owner": "https://contoso.sharepoint.com/sites/HR",
            "Folder; empty for all of it": "HR",
            "Directory (tenant) ID": TENANT,
            "Application (client) ID": CLIENT,
            "Client secret": SECRET,
        },
        ("Client secret", "wrong"),
        lambda: graph.write("HR/graph pay.md", b"# Graph pay\n\nOn the 25th of a month."),
        ("Graph leave", "Graph travel", "Graph pay"),
        groups=("HR", "Managers"),
    )


def google_drive(services: Services) -> Place:
    drive = services.drive
    drive.put("file-leave", "drive leave.md", b"# Drive leave\n\nTwenty-eight days a year.")
    drive.put("file-travel", "drive travel.md", b"# Drive travel\n\nBy train, second class.")
    drive.permissions[drive_standin.ROOT] = [
        {"type": "group", "displayName": name, "emailAddress": f"{name.lower()}@example.com"}
        for name in ("HR", "Board")
    ]
    return Place(
        "Google Drive",
        {
            "Address of the folder or the shared drive": f"https://drive.google.com/drive/folders/{drive_standin.ROOT}",
            "Key of the service account": drive.key,
        },
        ("Key of the service account", drive.key_of(drive.new_pair())),
        lambda: drive.put("file-pay", "drive pay.md", b"# Drive pay\n\nOn the 25th of a month."),
        ("Drive leave", "Drive travel", "Drive pay"),
        groups=("Board", "HR"),
    )


def make_collection(page: Page, services: Services, name: str) -> str:
    """Make a collection by the API, and open its page; the address of it."""
    address = services.product.address
    made = page.request.post(
        f"{address}/api/collections", data={"name": name, "profile": "hr"}, headers={"Origin": address}
    )
    assert made.ok, made.text()
    where = f"{address}/collections?collection={made.json()['id']}"
    page.goto(where)
    return where


def box(page: Page, label: str) -> Locator:
    return page.get_by_label(label, exact=True)


@pytest.mark.parametrize("place_of", [webdav, bucket, website, sharepoint, google_drive])
def test_a_place_is_checked_followed_and_synced_again(
    services: Services, tab: Page, place_of: Callable[[Services], Place]
) -> None:
    place = place_of(services)
    where = make_collection(tab, services, f"From {place.name}")
    tab.get_by_text(place.name, exact=True).first.click()
    for label, value in place.fields.items():
        box(tab, label).fill(value)
    if place.groups:
        tab.get_by_text("Only groups that may read it there may read it here").click()

    # What is wrong is said before anything is kept; what is right shows the first documents.
    check = tab.get_by_role("button", name="Check the connection")
    label, value = place.wrong
    box(tab, label).fill(value)
    check.click()
    expect(tab.get_by_test_id("stAlert").first).to_be_visible()
    expect(tab.get_by_text("It can be read.")).to_have_count(0)
    box(tab, label).fill(place.fields[label])
    check.click()
    expect(tab.get_by_text("It can be read. The first documents:")).to_be_visible()
    expect(tab.get_by_text("Synced from")).to_have_count(0)

    tab.get_by_role("button", name="Follow", exact=True).click()
    expect(tab.get_by_text("2 added", exact=False).first).to_be_visible(timeout=patient(60_000))
    place.grow()
    settle(tab)
    tab.get_by_role("button", name="Sync now").click()
    expect(tab.get_by_text(re.compile(r"1 added.*2 unchanged|1 added, 1 changed")).first).to_be_visible(
        timeout=patient(60_000)
    )
    settle(tab)
    tab.get_by_text("Earlier syncs").click()
    expect(cells(tab, "2 added")).not_to_have_count(0)
    expect(cells(tab, place.name)).not_to_have_count(0)
    # It goes on by itself where that is wanted, and nobody sees the keys again.
    tab.get_by_role("combobox", name="How often it is synced").click()
    tab.get_by_role("option", name="Every day").click()
    expect(tab.get_by_text("Next: in")).to_be_visible()
    for secret in (PASSWORD, SECRET_KEY, SECRET, "PRIVATE KEY"):
        assert secret not in tab.content()
    if place.groups:
        expect(tab.get_by_text("Only for " + ", ".join(place.groups)).first).to_be_visible()

    tab.goto(services.product.address + "/documents")
    tab.get_by_placeholder("Search in titles and text").fill(place.titles[0].split()[0])
    for title in place.titles:
        expect(cells(tab, title)).not_to_have_count(0, timeout=patient(60_000))
    expect(cells(tab, "Web secrets")).to_have_count(0)

    tab.goto(where)
    tab.get_by_role("button", name="Stop following").click()
    tab.get_by_role("dialog").get_by_role("button", name="Stop following").click()
    expect(tab.get_by_text(f"{place.name} is no longer followed.")).to_be_visible()
    tab.get_by_role("button", name="Undo").click()
    expect(tab.get_by_text("Next: in")).to_be_visible()


def test_a_folder_of_google_drive_is_followed_as_the_person_who_signed_in_there(services: Services, tab: Page) -> None:
    services.drive.put("file-own", "own notes.md", b"# Own notes\n\nWhat one person wrote down about leave.")
    where = make_collection(tab, services, "From my own Drive")
    tab.get_by_text("Google Drive", exact=True).first.click()
    tab.get_by_role("link", name="Sign in with Google").click()
    expect(tab.get_by_text("Signed in with Google as hr@example.com")).to_be_visible()
    assert tab.url.startswith(where), "they come back to the collection"
    box(tab, "Address of the folder or the shared drive").fill(
        f"https://drive.google.com/drive/folders/{drive_standin.ROOT}"
    )
    tab.get_by_role("button", name="Check the connection").click()
    expect(tab.get_by_text("It can be read. The first documents:")).to_be_visible()
    tab.get_by_role("button", name="Follow", exact=True).click()
    expect(tab.get_by_text(re.compile(r"\d added")).first).to_be_visible(timeout=patient(60_000))
    tab.goto(services.product.address + "/documents")
    tab.get_by_placeholder("Search in titles and text").fill("own notes")
    expect(cells(tab, "Own notes")).not_to_have_count(0, timeout=patient(60_000))
