from __future__ import annotations

import io
from collections.abc import Sequence

import pypdfium2
import pytest
from pypdf import PdfReader, PdfWriter
from pypdf.generic import DictionaryObject, NameObject, RectangleObject
from reportlab.lib.pagesizes import A4
from reportlab.pdfgen.canvas import Canvas

from rag.errors import (
    DocumentError,
    FileEmpty,
    FileTooLarge,
    NotAPdf,
    PasswordNeeded,
    PasswordWrong,
    PdfDamaged,
    PdfHasNoPages,
    TooManyPages,
)
from rag.ingestion.loaders.pdf import check_pdf, load_pdf
from rag.ingestion.loaders.values import ExtractedDocument, ExtractionLimits, LoadOptions
from tests import hostile

LIMITS = ExtractionLimits()


def read(content: bytes, password: str | None = None) -> ExtractedDocument:
    return load_pdf(content, LoadOptions(password=password, limits=LIMITS))


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (b"", FileEmpty),
        (hostile.html_named_pdf(), NotAPdf),
        (b"%PDF", NotAPdf),
        (hostile.truncated(), PdfDamaged),
        (hostile.without_pages(), PdfHasNoPages),
        (hostile.encrypted(), PasswordNeeded),
        (b"%PDF-1.7\n" + b"\x00\xff" * 500, PdfDamaged),
    ],
    ids=["empty", "html", "four-bytes", "truncated", "no-pages", "encrypted", "noise"],
)
def test_a_file_that_cannot_be_read_says_why(content: bytes, error: type[DocumentError]) -> None:
    with pytest.raises(error):
        check_pdf(content, password=None, limits=LIMITS)


def test_a_wrong_password_is_told_from_a_missing_one() -> None:
    with pytest.raises(PasswordWrong):
        check_pdf(hostile.encrypted("right"), password="wrong", limits=LIMITS)


def test_the_right_password_gives_an_open_copy() -> None:
    checked = check_pdf(hostile.encrypted("right"), password="right", limits=LIMITS)
    assert checked.decrypted is not None
    assert "25 days" in read(checked.decrypted).pages[0].text
    assert check_pdf(checked.decrypted, password=None, limits=LIMITS).decrypted is None


def test_a_pdf_protected_against_changes_only_is_read_without_a_password() -> None:
    assert "25 days" in read(hostile.protected_against_changes()).pages[0].text


def test_size_and_pages_have_limits() -> None:
    with pytest.raises(FileTooLarge):
        check_pdf(hostile.leave_policy(), password=None, limits=ExtractionLimits(maximum_bytes=500))
    with pytest.raises(TooManyPages, match="12 pages"):
        check_pdf(hostile.blank_pages(12), password=None, limits=ExtractionLimits(maximum_pages=10))


def test_a_page_tree_that_holds_itself_is_read() -> None:
    assert next(page.text for page in read(hostile.cyclic_page_tree()).pages) == "Potato salad"


def test_three_thousand_blank_pages_have_no_text() -> None:
    extracted = read(hostile.blank_pages(3000))
    assert len(extracted.pages) == 3000
    assert {page.method for page in extracted.pages} == {"none"}


def test_a_picture_between_text_is_the_only_page_without() -> None:
    assert [page.method for page in read(hostile.partly_scanned()).pages] == ["text", "none", "text"]


def test_text_in_a_wrong_encoding_is_flagged_and_left_out() -> None:
    page = read(hostile.mojibake()).pages[0]
    assert page.text == ""
    assert "cannot be used" in page.warnings[0]


def test_a_file_without_its_end_mark_is_read_with_a_warning() -> None:
    page = read(hostile.without_end_mark()).pages[0]
    assert "25 days" in page.text
    assert "end mark" in page.warnings[0]


def test_running_heads_are_left_out_and_facts_kept() -> None:
    pages = read(hostile.running_heads()).pages
    assert pages[6].text == "Office 7: the allowance is 107 EUR."


def test_printed_page_numbers_are_kept_where_they_differ() -> None:
    assert [page.label for page in read(hostile.labelled_pages()).pages] == ["i", "ii", "1", "2"]


def test_the_outline_gives_the_sections_with_their_place() -> None:
    content = hostile.pdf_of([["Leave", "25 days."], ["Pay", "On the 25th."]], title="Rules of work", outline=True)
    extracted = read(content)
    text = "\n".join(page.text for page in extracted.pages)
    assert [(section.title, section.page) for section in extracted.sections] == [("Leave", 1), ("Pay", 2)]
    assert [text[section.start :][: len(section.title)] for section in extracted.sections] == ["Leave", "Pay"]
    assert extracted.title == "Rules of work"


def test_without_an_outline_lines_set_larger_are_the_sections() -> None:
    extracted = read(hostile.long_document(3))
    assert [section.title for section in extracted.sections] == ["Chapter 1", "Chapter 2", "Chapter 3"]


def test_korean_text_is_read_with_articles_as_sections() -> None:
    content = hostile.pdf_of(
        [["제3조(육아휴직)", "직원은 자녀 한 명당 1년까지 쉴 수 있다."]], font="HYSMyeongJo-Medium"
    )
    extracted = read(content)
    assert "육아휴직" in extracted.pages[0].text
    assert [section.title for section in extracted.sections] == ["제3조(육아휴직)"]


def test_text_that_nobody_sees_is_left_out_and_reported() -> None:
    page = read(hostile.hidden_text()).pages[0]
    assert [line for line in page.text.split("\n") if line] == [
        "Everyone has 25 days of paid leave a year.",
        "White on dark.",
        "Up to five days may be carried over.",
    ]
    (warning,) = page.warnings
    assert "invisible, microscopic, off the page, white" in warning
    assert "White secret. Tiny secret. Right secret. Below secret. Invisible secret." in warning


def test_a_page_that_has_its_box_from_all_pages_is_read_to_its_edges() -> None:
    """Many programs write the size once for all pages; A4 is higher than the letter format that is guessed else."""
    buffer = io.BytesIO()
    canvas = Canvas(buffer, pagesize=A4)
    for y, line in ((810, "Annual leave"), (700, "Everyone has 25 days."), (30, "Version of May")):
        canvas.drawString(60, y, line)
    canvas.save()
    writer = PdfWriter(clone_from=PdfReader(buffer))
    pages = writer.root_object["/Pages"].get_object()
    assert isinstance(pages, DictionaryObject)
    pages[NameObject("/MediaBox")] = writer.pages[0].pop("/MediaBox")
    buffer = io.BytesIO()
    writer.write(buffer)
    (page,) = read(buffer.getvalue()).pages
    assert (page.text.split("\n"), page.warnings) == (["Annual leave", "Everyone has 25 days.", "Version of May"], ())


def sheet(left: str, right: str, *, crop: tuple[int, int, int, int], all_pages: Sequence[str] = ()) -> bytes:
    """A sheet of two pages beside each other and a box of what is shown; `all_pages` hold those boxes for all pages."""
    buffer = io.BytesIO()
    canvas = Canvas(buffer, pagesize=(1190, 842))
    for x, text in ((60, left), (655, right)):
        for number, line in enumerate(text.split("\n")):
            canvas.drawString(x, 700 - 14 * number, line)
    canvas.save()
    writer = PdfWriter(clone_from=PdfReader(buffer))
    page, pages = writer.pages[0], writer.root_object["/Pages"].get_object()
    assert isinstance(pages, DictionaryObject)
    page[NameObject("/CropBox")] = RectangleObject(crop)
    for name in all_pages:
        pages[NameObject(name)] = page.pop(name)
    buffer = io.BytesIO()
    writer.write(buffer)
    return buffer.getvalue()


@pytest.mark.parametrize("all_pages", [(), ("/MediaBox",), ("/CropBox",), ("/MediaBox", "/CropBox")])
def test_text_outside_the_part_of_a_page_that_is_shown_is_left_out(all_pages: Sequence[str]) -> None:
    other = "Everyone had 20 days.\nUntil 2019."
    content = sheet("Everyone has 25 days of paid leave.", other, crop=(0, 0, 595, 842), all_pages=all_pages)
    (page,) = read(content).pages
    assert page.text == "Everyone has 25 days of paid leave."
    (warning,) = page.warnings
    assert "(off the page): “Everyone had 20 days. Until 2019.”" in warning


def test_the_smaller_half_of_a_sheet_is_read_alone() -> None:
    content = sheet("Old rules.\n" * 20, "Everyone has 25 days.", crop=(595, 0, 1190, 842))
    assert read(content).pages[0].text == "Everyone has 25 days."


def test_a_box_around_nothing_hides_no_text() -> None:
    content = sheet("Everyone has 25 days.", "Others too.", crop=(0, 0, 40, 40))
    assert read(content).pages[0].text.startswith("Everyone has 25 days.")


def test_the_text_layer_of_a_scan_is_read() -> None:
    page = read(hostile.scanned_with_text_layer()).pages[0]
    assert (page.text, page.warnings) == ("Recognised text.", ())


@pytest.mark.parametrize("degrees", [0, 90, 180, 270])
def test_a_turned_page_is_read_upright(degrees: int) -> None:
    assert read(hostile.rotated(degrees)).pages[0].text.split("\n") == hostile.LEAVE


def test_columns_are_read_one_after_the_other() -> None:
    lines = read(hostile.two_columns()).pages[0].text.split("\n")
    assert lines[1:5] == [f"Column 1 line {line} ends." for line in range(1, 5)]


def test_a_row_of_a_table_stays_a_row() -> None:
    lines = read(hostile.table()).pages[0].text.split("\n")
    assert lines == ["Kind | Days | Who", "Paid leave | 25 | All", "Care leave | 10 | Parents"]


def drawn(pieces: Sequence[tuple[float, float, str]], *, size: float = 10) -> bytes:
    """A page with texts at places."""
    buffer = io.BytesIO()
    canvas = Canvas(buffer, invariant=1)
    canvas.setFont("Helvetica", size)
    for x, y, text in pieces:
        canvas.drawString(x, y, text)
    canvas.save()
    return buffer.getvalue()


def test_a_page_that_pdfium_does_not_find_is_read_by_pypdf_and_says_so() -> None:
    content = hostile.pdf_of([["One"], ["Two"]]).replace(b"/Count 2", b"/Count 1")
    first, second = read(content).pages
    assert (first.text, first.warnings) == ("One", ())
    assert second.text == "Two"
    assert second.warnings == (
        "A second program (pypdf) read this page, because the text found by the first program could not be read.",
    )


def test_a_file_that_pdfium_cannot_open_is_written_again_by_pypdf_and_read() -> None:
    content = hostile.leave_policy().replace(b"/Root", b"/Rout")
    with pytest.raises(pypdfium2.PdfiumError):
        pypdfium2.PdfDocument(content)
    assert "25 days" in read(content).pages[0].text


def test_words_broken_at_a_line_end_are_whole_and_compounds_keep_their_hyphen() -> None:
    lines = ["A well-being day is free, and so is the exami-", "nation by a doctor. Both add to your well-", "being."]
    text = read(drawn([(60, 700 - 12 * n, line) for n, line in enumerate(lines)])).pages[0].text
    assert "the examination by a doctor" in text
    assert text.endswith("your well-being.")


def test_an_empty_paragraph_ends_a_paragraph() -> None:
    content = drawn([(60, 700, "Leave is paid."), (60, 688, " "), (60, 676, "Care leave"), (60, 664, "is half paid.")])
    assert read(content).pages[0].text == "Leave is paid.\n\nCare leave\nis half paid."


def test_a_narrow_space_drawn_by_itself_parts_two_words() -> None:
    content = drawn([(60, 700, "ERISA"), (94, 700, " "), (95.3, 700, "sets standards.")])
    assert read(content).pages[0].text == "ERISA sets standards."


def test_a_raised_figure_does_not_end_its_line() -> None:
    content = drawn([(60, 700, "The software movement"), (161, 704, "2"), (167, 700, ", which began then, is free.")])
    assert "\n" not in read(content).pages[0].text


def test_columns_with_gaps_that_are_drawn_one_after_the_other_are_no_table() -> None:
    columns = [[f"{name}, {page}, {page + 40}" for page in range(10, 24)] for name in ("Leave", "Pension")]
    pieces = [
        (60 + 200 * column, 700 - 12 * n, line) for column, lines in enumerate(columns) for n, line in enumerate(lines)
    ]
    assert read(drawn(pieces)).pages[0].text.split("\n") == [*columns[0], *columns[1]]
    by_row = sorted(pieces, key=lambda piece: (-piece[1], piece[0]))
    assert read(drawn(by_row)).pages[0].text.split("\n")[0] == f"{columns[0][0]} | {columns[1][0]}"


def test_a_page_that_shows_nothing_says_so_and_one_with_a_drawing_does_not() -> None:
    assert read(hostile.blank_pages(1)).pages[0].warnings == ("This page is blank.",)
    assert read(hostile.image_only()).pages[0].warnings == ()
