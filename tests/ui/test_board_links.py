"""Links of attachments on the notice board."""

from __future__ import annotations

import json

import pytest

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
