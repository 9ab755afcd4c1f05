"""Tables of items: a head is whole in its column."""

from __future__ import annotations

import json
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest


def drawn(heads: dict[str, int]) -> dict[str, Any]:
    def table(heads: dict[str, int]) -> None:
        from rag.ui import lists

        lists.draw({head: lists.texts(["–"], width) for head, width in heads.items()}, alt="Figures")

    page = AppTest.from_function(table, args=(heads,)).run()
    looks: dict[str, Any] = json.loads(page.dataframe[0].proto.columns)
    return looks


#: Pixels of these words in the table's font, measured in Chromium, without the 8 pixels on each side.
@pytest.mark.parametrize(
    ("head", "pixels"), [("Questions", 63), ("Answered", 62), ("Nicht gefunden", 96), ("質問数", 39)]
)
def test_a_column_has_room_for_its_head(head: str, pixels: int) -> None:
    assert drawn({head: 40})[head]["width"] >= pixels + 16


def test_a_wider_column_stays_as_it_is() -> None:
    assert drawn({"Group": 180})["Group"]["width"] == 180
