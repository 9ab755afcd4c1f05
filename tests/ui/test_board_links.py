"""Links of attachments on the notice board."""

from __future__ import annotations

import json
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from rag.language import LANGUAGES, speaking, translated
from rag.profiles.notices.reading import MORE_SCANNED, MOST_SCANNED_PAGES, NOT_FETCHED, SCANNED
from rag.retrieval.ranking import attachments_of, web_address


@pytest.mark.parametrize(
    "address",
    [
        "javascript:alert(1)",
        "data:text/html,x",
        "//example.com/a",
        "https://user:secret@example.com/",
        "file:///etc",
        "",
    ],
)
def test_a_link_leads_to_web_pages_only(address: str) -> None:
    assert web_address(address) == ""
    assert web_address("https://files.example.com/a%20b.pdf?x=1") == "https://files.example.com/a%20b.pdf?x=1"


def test_every_reader_of_attachments_gets_guarded_addresses_in_their_order() -> None:
    stored = [
        {"fileName": "b.pdf", "url": "javascript:alert(1)"},
        {"fileName": "a.pdf", "fileUrl": "https://x.example/a"},
    ]
    for metadata in ({"attachmentsJson": json.dumps(stored)}, {"attachments": stored}):
        shown = [(item["fileName"], item["url"]) for item in attachments_of(metadata)]
        assert shown == [("b.pdf", ""), ("a.pdf", "https://x.example/a")]
    for broken in ("{", "null", 7, None, [7]):
        assert attachments_of({"attachmentsJson": broken}) == []


REMARKS = [NOT_FETCHED, SCANNED, MORE_SCANNED.format(count=MOST_SCANNED_PAGES)]


@pytest.mark.parametrize("language", [language for language in LANGUAGES if language != "en"])
def test_remarks_on_attachments_are_in_every_language(language: str) -> None:
    with speaking(language):
        said = [translated(remark) for remark in REMARKS]
    assert not set(said) & set(REMARKS)
    assert str(MOST_SCANNED_PAGES) in said[-1]


def test_the_page_says_a_remark_in_the_language_of_the_reader() -> None:
    def page(note: str) -> None:
        from types import SimpleNamespace

        from rag.language import speaking
        from rag.ui.board import draw_attachments

        with speaking("de"):
            post: Any = SimpleNamespace(metadata={"attachments": [{"fileName": "a.pdf", "note": note}]})
            draw_attachments(post)

    tab = AppTest.from_function(page, args=(NOT_FETCHED,)).run()
    assert not tab.exception
    assert tab.caption[0].value == "Dieser Anhang wurde nicht abgerufen, deshalb ist nur sein Name bekannt\\."
