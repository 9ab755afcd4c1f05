"""A place that a collection follows in a browser: each source has one in `in_browser.py` beside its tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playwright.sync_api import Locator, Page


@dataclass(frozen=True, kw_only=True)
class Place:
    """A place that holds two documents, and what is typed to follow it."""

    #: The name on the page.
    name: str
    fields: Mapping[str, str]
    #: A field and what refuses it.
    wrong: tuple[str, str]
    #: Adds a third document.
    grow: Callable[[], object]
    titles: tuple[str, str, str]
    #: Groups that may read it.
    groups: tuple[str, ...] = ()
    #: Values that no page shows again.
    secrets: tuple[str, ...] = ()
    #: A title that is not followed.
    left_out: str = ""
    #: Servers that the product may reach, with settings and a certificate for them.
    hosts: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    certificate: Path | None = None
    #: What plays the service.
    standin: Any = None


def make_collection(page: Page, address: str, name: str) -> str:
    """Make a collection by the API, and open its page; the address of it."""
    made = page.request.post(
        f"{address}/api/collections", data={"name": name, "profile": "hr"}, headers={"Origin": address}
    )
    assert made.ok, made.text()
    where = f"{address}/collections?collection={made.json()['id']}"
    page.goto(where)
    return where


def box(page: Page, label: str) -> Locator:
    return page.get_by_label(label, exact=True)
