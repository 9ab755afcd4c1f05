"""A website, followed on a collection's page."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.browser.following import Place
from tests.standins.website import Page, WebsiteStandin


@contextmanager
def place(folder: Path) -> Iterator[Place]:
    with WebsiteStandin() as site:
        text = "Everybody has twenty-eight days of leave a year, and asks the manager for them in good time. " * 3
        site.pages["/robots.txt"] = Page(b"User-agent: *\nDisallow: /private", kind="text/plain")
        site.write("/handbook/", "Web handbook", text, "/handbook/travel", "/private/pay")
        site.write("/handbook/travel", "Web travel", "Trains are booked in second class by everybody. " * 4)
        site.write("/private/pay", "Web secrets", "What everybody earns. " * 9)

        def grow() -> None:
            site.write("/handbook/", "Web handbook", text, "/handbook/travel", "/handbook/pay")
            site.write("/handbook/pay", "Web pay", "Salaries are paid on the 25th of each month. " * 4)

        yield Place(
            name="Website",
            fields={"Address of the first page, or of a sitemap": f"{site.url}/handbook/"},
            wrong=("Address of the first page, or of a sitemap", f"{site.url}/private/pay"),
            grow=grow,
            titles=("Web handbook", "Web travel", "Web pay"),
            left_out="Web secrets",
            hosts=(site.host,),
        )
