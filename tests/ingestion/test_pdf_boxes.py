"""Boxes beside each other on a page: drawings of which no table is made, and tables that look like them."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence

import pytest
from reportlab.pdfgen.canvas import Canvas

from rag.ingestion.loaders.pdf import load_pdf
from tests.hostile import raw_pdf, stream

Draw = Callable[[Canvas], None]
#: Left, bottom, width, height, and the lines within.
Drawn = tuple[float, float, float, float, Sequence[str]]


def read(content: bytes) -> str:
    return load_pdf(content).pages[0].text


def page_of(boxes: Sequence[Drawn], *, rounded: float = 0, by_line: bool = False) -> str:
    """Read a page of boxes; with `by_line`, the first lines of all are drawn before the second ones."""
    buffer = io.BytesIO()
    canvas = Canvas(buffer, invariant=1)
    canvas.setFont("Helvetica", 10)
    for left, bottom, width, height, _ in boxes:
        canvas.roundRect(left, bottom, width, height, rounded) if rounded else canvas.rect(left, bottom, width, height)
    texts = [
        (place, left + 6, bottom + height - 14 - 12 * place, line)
        for left, bottom, _, height, lines in boxes
        for place, line in enumerate(lines)
    ]
    for _, x, y, line in sorted(texts, key=lambda text: (-text[2], text[1])) if by_line else texts:
        canvas.drawString(x, y, line)
    canvas.save()
    return read(buffer.getvalue())


def grid(rows: Sequence[Sequence[Sequence[str]]], *, gap: float, height: float = 40) -> list[Drawn]:
    return [
        (60 + (120 + gap) * column, 700 - (height + gap) * row, 120, height, lines)
        for row, cells in enumerate(rows)
        for column, lines in enumerate(cells)
    ]


def lines_of(rows: Sequence[Sequence[Sequence[str]]]) -> list[str]:
    return [line for row in rows for cell in row for line in cell]


PEOPLE = [
    [["Anna Berger", "Head of Sales"], ["Tom Hill", "Head of People"], ["Mei Tanaka", "Head of Finance"]],
    [["Lars Holm", "Planner"], ["Ada Okoro", "Clerk"], ["Ivo Novak", "Accountant"]],
]
STEPS = [[["You ask"], ["Manager decides"], ["People records"], ["It is shown"]]]


@pytest.mark.parametrize("by_line", [False, True])
@pytest.mark.parametrize("rounded", [0, 6])
@pytest.mark.parametrize("gap", [6, 20])
@pytest.mark.parametrize("rows", [PEOPLE, STEPS], ids=["chart", "steps"])
def test_boxes_that_stand_apart_are_read_one_after_the_other(
    rows: Sequence[Sequence[Sequence[str]]], gap: float, rounded: float, *, by_line: bool
) -> None:
    text = page_of(grid(rows, gap=gap), rounded=rounded, by_line=by_line)
    assert text.split("\n") == lines_of(rows)


def test_a_form_of_boxes_keeps_each_name_with_its_value() -> None:
    rows = [
        [["Name", "Anna Berger"], ["Department", "Sales"]],
        [["First day", "2026-07-01"], ["Last day", "2026-07-14"]],
    ]
    text = page_of(grid(rows, gap=10), by_line=True)
    assert text.split("\n") == lines_of(rows)


def test_cells_that_touch_or_nearly_touch_are_a_table() -> None:
    for gap in (0, 2):
        lines = page_of(grid(PEOPLE, gap=gap)).split("\n")
        assert lines == [" | ".join(" ".join(cell) for cell in row) for row in PEOPLE]


def test_boxes_of_one_line_below_each_other_are_a_table() -> None:
    rows = [[["Grade"], ["Salary"], ["Leave"]], [["A1"], ["2,800"], ["24"]], [["B2"], ["3,200"], ["25"]]]
    lines = page_of(grid(rows, gap=8, height=20)).split("\n")
    assert lines == [" | ".join(cell[0] for cell in row) for row in rows]


def test_lines_to_sign_on_are_no_table() -> None:
    # As WeasyPrint draws a border above: a box less a box that is lower, of which only the difference is seen.
    drawn: list[str] = []
    for left, bottom, lines in (
        (62, 700, ("Leeds, for the company", "Tom Hill, Head of People")),
        (272, 700, ("Place, date", "The employee")),
        (62, 642, ("Witness",)),
        (272, 642, ("Works council",)),
    ):
        height = 12 * len(lines)
        drawn.append(f"{left} {bottom} 165 {height}.8 re {left} {bottom} 165 {height} re f*")
        drawn += [
            f"BT /F 8 Tf 1 0 0 1 {left} {bottom + height - 10 - 11 * place} Tm ({line}) Tj ET"
            for place, line in enumerate(lines)
        ]
    content = raw_pdf(
        {
            1: b"<< /Type /Catalog /Pages 2 0 R >>",
            2: b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
            3: b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R "
            b"/Resources << /Font << /F 5 0 R >> >> >>",
            4: stream("\n".join(drawn).encode()),
            5: b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        }
    )
    text = read(content)
    assert " | " not in text
    assert text.split("\n")[:4] == ["Leeds, for the company", "Tom Hill, Head of People", "Place, date", "The employee"]
