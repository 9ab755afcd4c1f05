"""Tables within the cells of tables of a PDF."""

from __future__ import annotations

import pytest
from reportlab.lib import colors
from reportlab.platypus import Table, TableStyle

from rag.ingestion.loaders.nested_tables import nested_frames
from tests.ingestion.test_tables import RULED, pages_of, rows_of


def ruled(rows: list[list[object]]) -> Table:
    return Table(rows, style=TableStyle([RULED]))


def test_a_table_in_a_cell_is_read_as_the_words_of_that_cell() -> None:
    junior = ruled([["Sales", "4 %"], ["Service", "not paid"]])
    senior = ruled([["Year", "Low", "High"], ["2025", "3 %", "4 %"], ["2026", "5 %", "9 %"]])
    rows: list[list[object]] = [["Level", "Bonus", "Paid in"], ["Junior", junior, "March"], ["Senior", senior, "April"]]

    (page,) = pages_of(ruled([*rows, ["Lead", "not paid", "never"]]))

    assert rows_of(page) == [
        "Level | Bonus | Paid in",
        "Junior | Sales: 4 %; Service: not paid | March",
        "Senior | Year: 2025, Low: 3 %, High: 4 %; Year: 2026, Low: 5 %, High: 9 % | April",
        "Lead | not paid | never",
    ]


def test_boxes_in_cells_are_no_tables() -> None:
    box = Table([[""]], colWidths=[10], rowHeights=[10], style=TableStyle([("BOX", (0, 0), (-1, -1), 1, colors.black)]))
    rows: list[list[object]] = [["Plan", "Chosen", "Cost"], ["Core", box, "£6.50"], ["Max", "no", "£9.00"]]

    (page,) = pages_of(ruled(rows))

    assert rows_of(page) == ["Plan | Chosen | Cost", "Core | | £6.50", "Max | no | £9.00"]


@pytest.mark.parametrize(("inset", "expected"), [(5.0, 1), (0.0, 0)], ids=["apart", "touching"])
def test_a_frame_within_a_cell_touches_none_of_the_lines_around_it(inset: float, expected: int) -> None:
    horizontal = [(y, 0.0, 300.0) for y in (0.0, 100.0, 200.0)]
    vertical = [(x, 0.0, 200.0) for x in (0.0, 100.0, 200.0, 300.0)]
    left, right, bottom, top = 100 + inset, 200 - inset, 0 + inset, 100 - inset
    horizontal += [(y, left, right) for y in (bottom, 50.0, top)]
    vertical += [(x, bottom, top) for x in (left, 150.0, right)]

    assert nested_frames(horizontal, vertical) == [(left, bottom, right, top)] * expected
