"""Tables of PDFs as rows with their heads, and what chunks make of them."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from fpdf import FPDF, FontFace
from fpdf.enums import TableBordersLayout
from reportlab.lib import colors
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import getSampleStyleSheet
from reportlab.pdfbase.pdfmetrics import stringWidth
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import Flowable, PageBreak, Paragraph, SimpleDocTemplate, Table, TableStyle

import rag.samples
from rag.ingestion.chunking import chunk_document
from rag.ingestion.loaders.pdf import load_pdf
from rag.ingestion.loaders.pictures import draw_page
from rag.text.tables import lines_of
from rag.types import ChunkingMethod, Page

PLANS = [
    ["Plan", "Monthly cost", "Crowns", "Waiting time"],
    ["Dental Core", "£6.50", "not covered", "none"],
    ["Dental Plus", "£14.80", "50 %", "6 months"],
    ["Dental Max", "£22.00", "80 %", "3 months"],
]
AS_LINES = [" | ".join(row) for row in PLANS]
RULED = ("GRID", (0, 0), (-1, -1), 0.5, colors.black)


def prose(text: str) -> Paragraph:
    return Paragraph(text, getSampleStyleSheet()["Normal"])


INTRODUCTION = "The dental plans are listed below with what they cost, and everyone may choose one of them. " * 4


def pages_of(*parts: Flowable) -> list[Page]:
    written = io.BytesIO()
    document = SimpleDocTemplate(written, pagesize=A4, invariant=1)
    document.build([prose(INTRODUCTION), *parts, prose("You choose a plan in November. " * 12)])
    return list(load_pdf(written.getvalue()).pages)


def rows_of(page: Page) -> list[str]:
    return [line for line in page.text.split("\n") if " | " in line]


@pytest.mark.parametrize(
    "styles",
    [
        [RULED],
        [],
        [("LINEBELOW", (0, 0), (-1, -1), 0.5, colors.grey)],
        [("LINEBELOW", (0, 0), (-1, 0), 1, colors.black), ("BACKGROUND", (0, 0), (-1, 0), colors.lightgrey)],
        [("ROWBACKGROUNDS", (0, 0), (-1, -1), [colors.whitesmoke, colors.lightgrey])],
        [("BOX", (0, 0), (-1, -1), 1, colors.black)],
    ],
    ids=["ruled", "bare", "lines below", "head line", "zebra", "boxed"],
)
def test_a_table_is_read_row_by_row_however_it_is_ruled(styles: list[tuple[object, ...]]) -> None:
    (page,) = pages_of(Table(PLANS, style=TableStyle(styles)))
    assert rows_of(page) == AS_LINES
    assert page.text.startswith("The dental plans are listed below")
    assert "\n\nYou choose a plan" in page.text


def test_words_that_wrap_in_a_cell_stay_in_it() -> None:
    rows = [
        ["Plan", "What it pays", "Cost"],
        ["Core", "Check-ups twice a year and fillings up to sixty per cent of the bill", "£6.50"],
        ["Plus", "Crowns and bridges up to half, after a waiting time of six months", "£14.80"],
    ]
    flowing = [[prose(cell) for cell in row] for row in rows]
    (page,) = pages_of(Table(flowing, colWidths=[60, 150, 60], style=TableStyle([RULED])))
    assert rows_of(page) == [" | ".join(row) for row in rows]


def test_cells_over_rows_and_columns_are_said_in_each_row_and_under_their_head() -> None:
    rows = [
        ["Service", "Notice", "", ""],
        ["", "Employee", "Company", "Extra"],
        ["Up to 2 years", "1 week", "1 month", "none"],
        ["More", "1 month", "2 months", "1 week"],
        ["", "2 months", "3 months", "2 weeks"],
    ]
    spans = [("SPAN", (1, 0), (3, 0)), ("SPAN", (0, 0), (0, 1)), ("SPAN", (0, 3), (0, 4))]
    (page,) = pages_of(Table(rows, style=TableStyle([RULED, *spans])))
    assert rows_of(page) == [
        "Service | Notice Employee | Notice Company | Notice Extra",
        "Up to 2 years | 1 week | 1 month | none",
        "More | 1 month | 2 months | 1 week",
        "More | 2 months | 3 months | 2 weeks",
    ]


@pytest.mark.parametrize("repeats", [0, 1], ids=["heads once", "heads on each page"])
def test_a_table_over_two_pages_has_its_heads_on_both(repeats: int) -> None:
    rows = [["Grade", "Days", "Bonus"], *([f"Grade {n}", str(20 + n), f"{n} %"] for n in range(1, 60))]
    first, second = pages_of(Table(rows, style=TableStyle([RULED]), repeatRows=repeats))
    assert rows_of(first)[0] == rows_of(second)[0] == "Grade | Days | Bonus"
    assert [*rows_of(first)[1:], *rows_of(second)[1:]] == [" | ".join(row) for row in rows[1:]]


def test_heads_at_the_top_of_every_page_are_no_running_head() -> None:
    rows = [["Grade", "Days", "Bonus"], *([f"Grade {n}", str(20 + n), f"{n} %"] for n in range(1, 200))]
    pages = pages_of(Table(rows, style=TableStyle([RULED]), repeatRows=1))
    assert len(pages) >= 4
    assert all(rows_of(page)[0] == "Grade | Days | Bonus" for page in pages)


def test_a_cell_over_rows_of_two_pages_names_them_all_and_the_heads_stay() -> None:
    rows = [
        ["Region", "Town", "Days"],
        *(["" if n % 5 else f"Region {n // 5}", f"Town {n}", str(n)] for n in range(150)),
    ]
    spans = [("SPAN", (0, first), (0, first + 4)) for first in range(1, 150, 5)]
    # Drawn in three tables of other lengths than the cells have, as programs that break within a cell do.
    parts = [rows[:33], rows[33:69], rows[69:104], rows[104:139]]
    styles, begin = [], 0
    for part in parts:
        end = begin + len(part) - 1
        held = [(max(top, begin), min(last, end)) for _, (_, top), (_, last) in spans if top <= end and last >= begin]
        styles.append([RULED, *(("SPAN", (0, top - begin), (0, last - begin)) for top, last in held if last > top)])
        begin = end + 1
    flowing: list[Flowable] = []
    for part, style in zip(parts, styles, strict=True):
        flowing += [Table(part, colWidths=[80, 60, 40], style=TableStyle(style)), PageBreak()]
    written = io.BytesIO()
    SimpleDocTemplate(written, pagesize=A4, invariant=1).build(flowing)
    pages = load_pdf(written.getvalue()).pages
    assert len(pages) >= 3
    for page, part in zip(pages, (rows[1:33], rows[33:69], rows[69:104], rows[104:139]), strict=True):
        assert rows_of(page)[0] == "Region | Town | Days"
        assert rows_of(page)[1:] == [f"Region {int(row[2]) // 5} | {row[1]} | {row[2]}" for row in part]


def test_rows_without_a_line_between_them_are_rows_of_their_own() -> None:
    rows = [
        ["Case", "Courts", "Congress"],
        ["Radio", "None", "Licence"],
        ["Cable", "None", "Fee"],
        ["Tapes", "No", "No"],
    ]
    lines = [("BOX", (0, 0), (-1, -1), 1, colors.black), ("LINEBELOW", (0, 0), (-1, 0), 1, colors.black)]
    (page,) = pages_of(Table(rows, style=TableStyle([*lines, ("LINEAFTER", (0, 0), (1, -1), 1, colors.black)])))
    assert rows_of(page) == [" | ".join(row) for row in rows]


BARE = [("VALIGN", (0, 0), (-1, -1), "TOP"), ("LINEBELOW", (0, 0), (-1, 0), 1, colors.black)]


def test_lines_of_a_wrapped_cell_stay_in_their_row_without_ruling_lines() -> None:
    rows = [["Benefit", "Who may have it", "Share", "How to ask"]]
    rows += [["Season ticket", "Nobody who is paid by the hour or by the day", "36 %", "Form 12, with two signatures"]]
    rows += [["Home office", "Anyone with a child under 12", "8 %", "Ask your manager by 30 June"]]
    rows += [["Job bike", "Everyone after the trial period of six months", "72 %", "Write to the office by mail"]]
    flowing = [[prose(text) for text in row] for row in rows]
    (page,) = pages_of(Table(flowing, colWidths=[50, 120, 60, 100], style=TableStyle(BARE)))
    assert rows_of(page) == [" | ".join(row) for row in rows]


def test_cells_slide_into_no_other_column_where_no_row_is_full() -> None:
    rows = [["Country", "Breakfast", "Lunch", "Dinner", "Night", "Taxi"]]
    rows += [["Norway", "", "", "69", "", "238"], ["Ghana", "", "125", "231", "", ""]]
    rows += [["Chile", "196", "207", "235", "", ""], ["Japan", "", "28", "", "", ""], ["Malta", "28", "83", "", "", ""]]
    (page,) = pages_of(Table(rows))
    assert rows_of(page) == [" ".join(" | ".join(row).split()) for row in rows]


@pytest.mark.parametrize("place", [0, 1], ids=["on top", "in the middle"])
def test_a_name_beside_a_group_of_rows_is_said_in_each_without_ruling_lines(place: int) -> None:
    rows = [["Staff", "Service", "Notice", "Pay"]]
    for staff in ("Office", "Works"):
        for row, service in enumerate(("one year", "two years", "later")):
            rows.append([staff if row == place else "", service, f"{row + 2} weeks", f"{row + 5} %"])
    (page,) = pages_of(Table(rows, style=TableStyle(BARE)))
    assert rows_of(page)[1:] == [
        f"{staff} | {service} | {row + 2} weeks | {row + 5} %"
        for staff in ("Office", "Works")
        for row, service in enumerate(("one year", "two years", "later"))
    ]


def test_a_missing_name_is_not_made_up() -> None:
    rows = [["Staff", "Service", "Notice"], ["Office", "one year", "2 weeks"], ["", "later", "4 weeks"]]
    rows += [["Works", "always", "3 weeks"], ["Total", "", "9 weeks"]]
    (page,) = pages_of(Table(rows, style=TableStyle(BARE)))
    assert "| later | 4 weeks" in rows_of(page)


def test_a_head_is_repeated_over_its_columns_only_where_its_place_tells_them() -> None:
    rows = [["Staff", "Notice of", "", "Leave of", ""], ["", "employee", "employer", "year one", "later"]]
    rows += [
        ["Office", "2 weeks", "4 weeks", "20 days", "25 days"],
        ["Works", "1 week", "3 weeks", "22 days", "27 days"],
    ]
    (page,) = pages_of(Table(rows, style=TableStyle([("SPAN", (1, 0), (2, 0)), ("SPAN", (3, 0), (4, 0))])))
    assert rows_of(page)[0] == "Staff | Notice of employee | Notice of employer | Leave of year one | Leave of later"


def test_rows_whose_cells_are_set_in_the_middle_are_not_mixed() -> None:
    rows = [["Benefit", "Who may have it", "Share", "How to ask"]]
    rows += [["Job bike", "Everyone after the trial period, apprentices included", "68 %", "Form 12, with a signature"]]
    rows += [["Season ticket", "Anyone with a child under 12", "64 %", "Ask your manager by 30 June"]]
    rows += [["Home office", "Managers, but not their deputies, from the second year on", "9 %", "Write to the office"]]
    pdf = FPDF(format="A4")
    pdf.set_font("Helvetica", size=9)
    pdf.add_page()
    with pdf.table(rows, borders_layout=TableBordersLayout.SINGLE_TOP_LINE, headings_style=FontFace()):
        pass
    (page,) = load_pdf(bytes(pdf.output())).pages
    text = " ".join(page.text.replace(" | ", " ").split())
    assert "Season ticket Anyone with a child under 12 64 %" in text
    assert "Managers, but not their deputies, from the second year on 9 %" in text


def test_text_in_columns_lists_and_prose_are_no_tables() -> None:
    long = "Everyone may take part in the yearly outing to the sea"
    columns = [[f"{long} {n}.", f"The other column says {n} more about the outing."] for n in range(8)]
    bullets = [["•", f"Point number {n} of the list"] for n in range(6)]
    (page,) = pages_of(Table(columns), Table(bullets))
    assert " | " not in page.text


def drawn(*pieces: tuple[float, float, str], large: str = "") -> str:
    """The text of a page with these pieces, each by its place from the top left in points; one is in large letters."""
    written = io.BytesIO()
    canvas = Canvas(written, pagesize=A4, invariant=1)
    for x, y, text in pieces:
        canvas.setFont("Helvetica", 14 if text == large else 10)
        canvas.drawString(x, A4[1] - y, text)
    canvas.save()
    (page,) = load_pdf(written.getvalue()).pages
    return page.text


def stretched(y: float, words: str, right: float = 500) -> list[tuple[float, float, str]]:
    """A line with all the blank space between its words that its width asks for."""
    parts = words.split()
    widths = [stringWidth(part, "Helvetica", 10) for part in parts]
    gap = (right - 72 - sum(widths)) / (len(parts) - 1)
    return [(72 + sum(widths[:n]) + gap * n, y, part) for n, part in enumerate(parts)]


def test_lines_stretched_to_the_width_of_their_text_are_no_rows() -> None:
    lines = [
        "Whoever is ill for three days or more sends",
        "the certificate to personnel without being",
        "asked, and afterwards waits until called for",
    ]
    text = drawn(
        *(piece for row, line in enumerate(lines) for piece in stretched(100 + 13 * row, line)),
        (72, 139, "the answer."),
    )
    assert text == "\n".join([*lines, "the answer."])


def test_a_table_of_contents_is_no_table() -> None:
    entries = ["Leave", "Sick pay", "Business trips", "Notice periods", "Pensions"]
    rows = [(72.0, 100.0, "1 What holds for everyone"), (490.0, 100.0, "3")]
    for place, entry in enumerate(entries):
        y = 115.0 + 13 * place
        rows += [(72, y, f"1.{place + 1}"), (110, y, f"{entry} " + ". " * 40), (490, y, str(place + 4))]
    text = drawn(*rows)
    assert " | " not in text
    assert text.count("What holds for everyone") == 1


def test_words_over_two_columns_of_a_row_are_said_once() -> None:
    table = [(72.0, "Grade"), (150.0, "Notice"), (220.0, "Bonus"), (290.0, "Leave")]
    pieces = [(x, 100.0, text) for x, text in table]
    for row in range(4):
        y = 115.0 + 15 * row
        pieces += [(72, y, f"Grade {row}"), (150, y, f"{row + 2} weeks"), (220, y, f"{row} %"), (290, y, "25 days")]
    pieces += [(72, 175, "Trainees"), (150, 175, "as their contract has it"), (290, 175, "20 days")]
    text = drawn(*pieces)
    assert "Grade 3 | 5 weeks | 3 % | 25 days" in text
    assert text.count("as their contract has it") == 1
    assert "Trainees | as their contract has it | | 20 days" in text


def test_a_row_of_equal_cells_is_a_row() -> None:
    rows = [["Year one", "Year two", "Later"], ["20", "22", "25"], ["30", "30", "30"], ["31", "32", "33"]]
    lined, bare = pages_of(Table(rows, style=TableStyle([RULED]))), pages_of(Table(rows))
    assert rows_of(*lined) == rows_of(*bare) == [" | ".join(row) for row in rows]
    assert lines_of(rows, 1) == [" | ".join(row) for row in rows]


def test_rows_without_a_line_between_them_are_rows_in_pairs_and_a_heading_above_is_none() -> None:
    rows = [["Case", "Type", "Share"], *([f"Case {n}", "Real", f"{n} %"] for n in range(1, 6))]
    lines = [("BOX", (0, 0), (-1, -1), 1, colors.black), ("LINEAFTER", (0, 0), (1, -1), 1, colors.black)]
    lines += [("LINEBELOW", (0, row), (-1, row), 1, colors.black) for row in (0, 3)]
    heading = Table([["4.2", "Dental plans for all"]], colWidths=[60, 140])
    (page,) = pages_of(heading, Table(rows, colWidths=[70] * 3, style=TableStyle(lines)))
    assert rows_of(page) == [" | ".join(row) for row in rows]
    assert "\n4.2 Dental plans for all\n" in page.text


def test_a_form_says_its_long_cells_once() -> None:
    question = (
        "Which of the following training courses did you take during the last twelve months, and when did you end it?"
    )
    rows = [["Application", "", "", ""], ["Department", "Works", "Since", "2024"], ["Name", "", "Robin", ""]]
    rows += [[question, "", "", ""], ["", "", "", ""], ["Grade", "5", "Place", "Leeds"], ["Signed", "", "", "yes"]]
    spans = [((0, 0), (3, 0)), ((0, 2), (1, 2)), ((2, 2), (3, 2)), ((0, 3), (3, 4)), ((0, 6), (2, 6))]
    flowing = [[prose(cell) if cell == question else cell for cell in row] for row in rows]
    style = TableStyle([RULED, *(("SPAN", *span) for span in spans)])
    (page,) = pages_of(Table(flowing, colWidths=[80] * 4, style=style))
    assert " ".join(page.text.split()).count(question) == 1
    assert page.text.count("Application") == 1
    assert "Department | Works | Since | 2024" in rows_of(page)


def test_words_within_the_frame_of_a_table_that_are_in_no_row_are_kept() -> None:
    pieces = [(72.0, 100.0, "Key"), (180.0, 100.0, "Use of the key"), (330.0, 100.0, "Where it works")]
    for row in range(6):
        y = 115.0 + 15 * row
        pieces += [(72, y, f"Key {row}"), (180, y, f"copies and pastes {row}"), (330, y, "everywhere else")]
    pieces += [(72, 220, "Key 9"), (180, 224, "Big"), (330, 220, "everywhere else"), (72, 230, "Note 7.")]
    text = drawn(*pieces, large="Big")
    assert "Key 9 | Big | everywhere else" in text
    assert "Note 7." in text


def test_a_count_of_a_pages_letters_names_what_was_not_read() -> None:
    rows = [["Kind", "Leave of", ""], ["Kind", "year one", "later"], ["Care", "10 days", "12 days"]]
    rows += [["Move", "1 day", "2 days"]]
    (page,) = pages_of(Table(rows, style=TableStyle([RULED, ("SPAN", (1, 0), (2, 0))])))
    assert rows_of(page)[0] == "Kind | Leave of year one | Leave of later"
    assert page.warnings == ("4 characters of the text were not read.",)


def test_the_tables_of_the_sample_documents_are_read_as_tables() -> None:
    content = (Path(rag.samples.FOLDER) / "benefits_guide.pdf").read_bytes()
    pages = load_pdf(content).pages
    assert "Plan | Core | Plus\nCost for you, per month | £6.50 | £14.80\n" in pages[1].text
    assert "You pay | The company pays | Together\n3 % | 7 % | 10 %\n" in pages[0].text


def test_a_quoted_row_is_marked_on_the_page() -> None:
    content = (Path(rag.samples.FOLDER) / "benefits_guide.pdf").read_bytes()
    passage = "Plan | Core | Plus\nCost for you, per month | £6.50 | £14.80"
    plain = draw_page(content, 2, highlight="", scale=1)
    assert draw_page(content, 2, highlight=passage, scale=1) != plain


LONG_TABLE = "\n".join(["Office | Allowance | Note", *(f"Office {n} | £{n}00 | Ask. Then wait." for n in range(1, 80))])


@pytest.mark.parametrize("method", ["smart", "sentences", "paged"])
def test_a_chunk_never_cuts_a_row_and_begins_with_the_heads(method: ChunkingMethod) -> None:
    page = Page(number=1, text=f"Allowances differ by office.\n\n{LONG_TABLE}\n\nThey are paid in May.")
    chunks = chunk_document([page], [], method=method, chunk_size=500, overlap=100, minimum_chunk_size=50)
    assert len(chunks) > 3
    rows = set(LONG_TABLE.split("\n"))
    for chunk in chunks:
        lines = [line for line in chunk.content.split("\n") if "|" in line]
        assert set(lines) <= rows
        assert not lines or lines[0] == "Office | Allowance | Note"
        assert lines.count("Office | Allowance | Note") <= 1
    assert chunks == chunk_document([page], [], method=method, chunk_size=500, overlap=100, minimum_chunk_size=50)
