"""Links of attachments on the notice board."""

from __future__ import annotations

import pytest

from rag.ui.board import safe_address


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
    assert safe_address(address) == ""
    assert safe_address("https://files.example.com/a%20b.pdf?x=1") == "https://files.example.com/a%20b.pdf?x=1"
