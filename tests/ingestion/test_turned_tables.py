"""Text that does not run from left to right: sideways tables, upward heads, notes along the margin."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence

import pytest
from reportlab.lib import colors
from reportlab.lib.pagesizes import A4
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import Table, TableStyle

from rag.ingestion.loaders.pdf import load_pdf

BANDS = [
    ["Band", "Allowance", "Leave days", "Remote work"],
    ["Band A", "1,100", "26", "not allowed"],
    ["Band B", "1,900", "", "2 days"],
    ["Band C", "2,700", "31", "5 days"],
]
AS_LINES = [" | ".join(row).replace("|  |", "| |") for row in BANDS]
RULED: list[tuple[object, ...]] = [("GRID", (0, 0), (-1, -1), 0.5, colors.black)]
WIDTH, HEIGHT = A4


def text_of(*draw: Callable[[Canvas], object]) -> str:
    """The text of a page of A4."""
    written = io.BytesIO()
    canvas = Canvas(written, pagesize=A4, invariant=1)
    for part in draw:
        canvas.saveState()
        part(canvas)
        canvas.restoreState()
    canvas.showPage()
    canvas.save()
    return load_pdf(written.getvalue()).pages[0].text


def turn(canvas: Canvas, degrees: int) -> None:
    places = {90: (WIDTH, 0), -90: (0, HEIGHT), 180: (WIDTH, HEIGHT)}
    canvas.translate(*places[degrees])
    canvas.rotate(degrees)


def table(
    rows: Sequence[Sequence[str]], styles: list[tuple[object, ...]], x: float, top: float
) -> Callable[[Canvas], None]:
    def draw(canvas: Canvas) -> None:
        made = Table([list(row) for row in rows], style=TableStyle(styles))
        _, height = made.wrapOn(canvas, 500, 500)
        made.drawOn(canvas, x, top - height)

    return draw


def line(text: str, x: float, y: float) -> Callable[[Canvas], object]:
    return lambda canvas: canvas.drawString(x, y, text)


def upward(text: str, x: float, y: float, *, by_letter: bool = False) -> Callable[[Canvas], object]:
    def draw(canvas: Canvas) -> None:
        canvas.translate(x, y)
        canvas.rotate(90)
        if not by_letter:
            canvas.drawString(0, 0, text)
        for place in range(len(text)) if by_letter else ():
            canvas.drawString(canvas.stringWidth(text[:place]), 0, text[place])

    return draw


@pytest.mark.parametrize("styles", [RULED, []], ids=["ruled", "bare"])
@pytest.mark.parametrize("degrees", [90, -90, 180])
def test_a_table_on_its_side_is_read_as_one(degrees: int, styles: list[tuple[object, ...]]) -> None:
    def sideways(canvas: Canvas) -> None:
        turn(canvas, degrees)
        table(BANDS, styles, 60, 500)(canvas)

    text = text_of(line("These bands hold for everyone.", 60, 800), sideways)

    assert [row for row in text.split("\n") if " | " in row] == AS_LINES
    assert "These bands hold for everyone." in text


@pytest.mark.parametrize("styles", [RULED, []], ids=["ruled", "bare"])
def test_a_table_on_a_turned_page_is_read_as_one(styles: list[tuple[object, ...]]) -> None:
    def landscape(canvas: Canvas) -> None:
        canvas.setPageRotation(90)
        turn(canvas, 90)
        canvas.drawString(60, 540, "These bands hold for everyone.")
        table(BANDS, styles, 60, 500)(canvas)

    assert text_of(landscape).split("\n") == ["These bands hold for everyone.", *AS_LINES]


@pytest.mark.parametrize("by_letter", [False, True], ids=["whole", "letter by letter"])
@pytest.mark.parametrize("styles", [RULED, []], ids=["ruled", "bare"])
def test_upward_heads_stand_over_their_columns(styles: list[tuple[object, ...]], by_letter: bool) -> None:
    made = Table([[""] * 4, *BANDS[1:]], colWidths=[60] * 4, rowHeights=[80, 20, 20, 20], style=TableStyle(styles))

    def draw(canvas: Canvas) -> None:
        made.wrapOn(canvas, 500, 500)
        made.drawOn(canvas, 60, 500)

    heads = [upward(head, 85 + 60 * place, 565, by_letter=by_letter) for place, head in enumerate(BANDS[0])]
    text = text_of(line("These bands hold for everyone.", 60, 800), draw, *heads)

    assert [row for row in text.split("\n") if " | " in row] == AS_LINES


def test_upward_names_of_rows_stand_beside_their_rows() -> None:
    rows = [["", "Service", "Notice"], ["", "one year", "4 weeks"], ["", "later", "8 weeks"]]
    rows += [["", "one year", "2 weeks"], ["", "later", "6 weeks"]]
    styles = [*RULED, ("SPAN", (0, 1), (0, 2)), ("SPAN", (0, 3), (0, 4))]
    made = Table(rows, colWidths=[30, 70, 70], rowHeights=[25] * 5, style=TableStyle(styles))

    def draw(canvas: Canvas) -> None:
        made.wrapOn(canvas, 500, 500)
        made.drawOn(canvas, 60, 500)

    text = text_of(draw, upward("Office", 78, 555), upward("Works", 78, 505))

    assert text.split("\n")[1:] == [
        "Office | one year | 4 weeks",
        "Office | later | 8 weeks",
        "Works | one year | 2 weeks",
        "Works | later | 6 weeks",
    ]


def test_a_note_along_the_margin_is_no_part_of_the_table() -> None:
    note = "Draft of the works council, not in force before March"
    text = text_of(table(BANDS, RULED, 60, 700), upward(note, 45, 560, by_letter=True))

    assert [row for row in text.split("\n") if " | " in row] == AS_LINES
    assert note in text.split("\n")


def test_words_that_run_upwards_are_whole() -> None:
    text = text_of(line("Overtime is paid.", 60, 800), upward("not before 1 March 2027", 40, 500, by_letter=True))

    assert text.split("\n") == ["Overtime is paid.", "not before 1 March 2027"]


def test_a_turned_head_of_many_words_keeps_its_spaces() -> None:
    made = Table([[""] * 3, ["Band A", "26", "2"]], colWidths=[60] * 3, rowHeights=[230, 20], style=TableStyle(RULED))

    def draw(canvas: Canvas) -> None:
        made.wrapOn(canvas, 500, 500)
        made.drawOn(canvas, 60, 500)

    heads = ["Band", "Days of leave that are paid in a year", "Days at home"]
    introduction = line("The bands below hold for everyone who is employed by the company.", 60, 800)
    text = text_of(introduction, draw, *(upward(head, 85 + 60 * place, 525) for place, head in enumerate(heads)))

    assert text.split("\n")[1:] == [" | ".join(heads), "Band A | 26 | 2"]
