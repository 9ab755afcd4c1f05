"""What integrations add to pages: places that collections follow, and programs. Each is in its `in_browser.py`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from types import ModuleType

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.browser.conftest import Product, settle, sign_up, start_product
from tests.browser.following import Place, box, make_collection
from tests.browser.tables import cells
from tests.integration_rows import modules
from tests.patience import patient

pytestmark = pytest.mark.browser

SOURCES = {name: module for name, module in modules("in_browser", "sources").items() if hasattr(module, "place")}


def tries(found: Mapping[str, ModuleType]) -> list[object]:
    """What modules try beside following a place, named after the integration."""
    return [
        pytest.param(name, function, id=f"{name}-{wanted.removeprefix('try_')}")
        for name, module in found.items()
        for wanted, function in vars(module).items()
        if wanted.startswith("try_")
    ]


@dataclass
class Followed:
    """The places, the product that may reach them, and its first administrator."""

    product: Product
    context: BrowserContext
    places: Mapping[str, Place]


@pytest.fixture(scope="module")
def followed(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Followed]:
    folder = tmp_path_factory.mktemp("sources")
    with ExitStack() as stack:
        places = {name: stack.enter_context(module.place(folder / name)) for name, module in SOURCES.items()}
        trusted = folder / "trusted.pem"
        trusted.write_bytes(b"".join(one.certificate.read_bytes() for one in places.values() if one.certificate))
        environment = {name: value for place in places.values() for name, value in place.environment.items()}
        product = start_product(
            folder / "data",
            RAG_SAMPLES="false",
            RAG_SYNC_HOSTS=",".join(host for place in places.values() for host in place.hosts),
            SSL_CERT_FILE=str(trusted),
            **environment,
        )
        stack.callback(product.stop)
        signed_in = sign_up(browser, product)
        # The browser too goes to the stand-ins, whose certificates nobody else knows.
        context = browser.new_context(
            viewport={"width": 1280, "height": 860},
            locale="en-US",
            ignore_https_errors=True,
            storage_state=signed_in.storage_state(),
        )
        signed_in.close()
        stack.callback(context.close)
        yield Followed(product, context, places)


@pytest.fixture
def tab(followed: Followed) -> Iterator[Page]:
    opened = followed.context.new_page()
    yield opened
    opened.close()


@pytest.mark.parametrize("source", SOURCES)
def test_a_place_is_checked_followed_and_synced_again(followed: Followed, tab: Page, source: str) -> None:
    place, address = followed.places[source], followed.product.address
    where = make_collection(tab, address, f"From {place.name}")
    tab.get_by_text(place.name, exact=True).first.click()
    for label, value in place.fields.items():
        box(tab, label).fill(value)
    if place.groups:
        tab.get_by_text("Only groups with access in the source have access here").click()

    # What is wrong is said before anything is kept; what is right shows the first documents.
    check = tab.get_by_role("button", name="Check the connection")
    label, value = place.wrong
    box(tab, label).fill(value)
    check.click()
    expect(tab.get_by_test_id("stAlert").first).to_be_visible()
    expect(tab.get_by_text("The source can be read.")).to_have_count(0)
    box(tab, label).fill(place.fields[label])
    check.click()
    expect(tab.get_by_text("The source can be read. The first documents:")).to_be_visible()
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
    tab.get_by_role("combobox", name="How often the source is synced").click()
    tab.get_by_role("option", name="Every day").click()
    expect(tab.get_by_text("Next sync: in")).to_be_visible()
    for secret in place.secrets:
        assert secret not in tab.content()
    if place.groups:
        expect(tab.get_by_text("Only for " + ", ".join(place.groups)).first).to_be_visible()

    tab.goto(address + "/documents")
    tab.get_by_placeholder("Search in titles and text").fill(place.titles[0].split()[0])
    for title in place.titles:
        expect(cells(tab, title)).not_to_have_count(0, timeout=patient(60_000))
    if place.left_out:
        expect(cells(tab, place.left_out)).to_have_count(0)

    tab.goto(where)
    tab.get_by_role("button", name="Stop following").click()
    tab.get_by_role("dialog").get_by_role("button", name="Stop following").click()
    expect(tab.get_by_text(f"{place.name} is no longer followed.")).to_be_visible()
    tab.get_by_role("button", name="Undo").click()
    expect(tab.get_by_text("Next sync: in")).to_be_visible()


@pytest.mark.parametrize(("source", "attempt"), tries(SOURCES))
def test_a_source_is_followed(
    followed: Followed, tab: Page, source: str, attempt: Callable[[str, Page, Place], None]
) -> None:
    attempt(followed.product.address, tab, followed.places[source])


@pytest.mark.parametrize(("channel", "attempt"), tries(modules("in_browser", "channels")))
def test_a_channel_is_set_up(
    offline_product: Product, offline_page: Page, channel: str, attempt: Callable[[str, Page], None]
) -> None:
    offline_page.goto(offline_product.address + "/other-programs")
    attempt(offline_product.address, offline_page)
