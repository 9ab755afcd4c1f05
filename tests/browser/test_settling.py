"""`settle` waits for a server that has not begun yet with what a click asked for."""

from __future__ import annotations

import re
import signal
from threading import Timer

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Product, settle
from tests.forked import pause

pytestmark = pytest.mark.browser


def test_a_run_is_waited_for_before_its_server_takes_it_up(offline_product: Product, offline_page: Page) -> None:
    page, server = offline_page, offline_product.process
    page.goto(offline_product.address + "/documents")
    expect(page.get_by_test_id("stDataFrame").first).to_be_visible()
    settle(page)
    pause(server)
    resumed = Timer(1.5, server.send_signal, [signal.SIGCONT])
    try:
        page.get_by_placeholder("Search in titles and text").fill("handbook")
        page.keyboard.press("Enter")
        resumed.start()
        settle(page)
        assert resumed.finished.is_set()
        assert page.get_by_text(re.compile(r"^\d+ of \d+ documents\.")).is_visible()
    finally:
        server.send_signal(signal.SIGCONT)
