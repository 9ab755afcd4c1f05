"""Workbooks: what each sheet shows, its tables with their heads, and what was not read."""

from __future__ import annotations

from dataclasses import replace
from uuid import uuid4

import pytest

from rag.answering.citations import title_with_place, with_rows
from rag.errors import DocumentError, FileDamaged, FileNotAsNamed, FileProtected, FileTooLarge
from rag.ingestion.chunking import chunk_document
from rag.ingestion.loaders import check, load
from rag.ingestion.loaders.detection import kind_of
from rag.ingestion.loaders.sandbox import Sandbox
from rag.ingestion.loaders.sheets.languages import LANGUAGES
from rag.ingestion.loaders.sheets.numbers import format_number, format_text
from rag.ingestion.loaders.sheets.sheet import column_name, column_number, span_of
from rag.ingestion.loaders.signatures import COMPOUND
from rag.ingestion.loaders.values import ExtractedDocument, ExtractionLimits, LoadOptions
from rag.ingestion.pipeline import IngestionPipeline
from rag.library.documents import DocumentLibrary
from rag.records.chat_logs import ChatLogs, SheetPage
from rag.storage.database import Database
from rag.text.tables import tables_in
from rag.types import Citation, Collection
from rag.ui.sources import shown_path
from tests.ingestion.sheet_files import SCHEMAS, cell, rows_of, xlsx_file

BANDS = rows_of(["Grade", "Low", "High"], ["G1", 30000, 45000], ["G2", 35000, 50000])


def read(content: bytes, name: str = "a.xlsx") -> ExtractedDocument:
    return load(content, name)


def text_of(rows: str, **options: object) -> str:
    return read(xlsx_file({"Sheet1": rows}, **options)).pages[0].text  # type: ignore[arg-type]


def warnings_of(document: ExtractedDocument) -> list[str]:
    return [warning for page in document.pages for warning in page.warnings]


# Numbers


@pytest.mark.parametrize(
    ("value", "code", "expected"),
    [
        (0.25, "0%", "25%"), (0.255, "0.0%", "25.5%"), (0.25, "0.00 %", "25.00 %"), (12, "General", "12"),
        (0.1 + 0.2, "General", "0.3"), (1 / 3, "General", "0.333333333"), (123456789012, "General", "123456789012"),
        (1234.5, '#,##0.00 "€"', "1,234.50 €"), (1234.5, "[$£-809]#,##0.00", "£1,234.50"), (2.675, "0.00", "2.68"),
        (-1234.5, "#,##0.00_);(#,##0.00)", "(1,234.50)"), (-5, '"$"#,##0.00', "-$5.00"), (0, '0;-0;"none"', "none"),
        (-5, '_-* #,##0.00 "€"_-;-* #,##0.00 "€"_-', "-5.00 €"), (1234567, '0.0,,"M"', "1.2M"),
        (7, '0" days"', "7 days"),
        (42, '"EMP-"00000', "EMP-00042"), (5, "0.##", "5"), (0.5, "# ?/?", "1/2"), (2.75, "# ??/??", "2 3/4"),
        (12345, "0.00E+00", "1.23E+04"), (45, "[<50]0.0;[>=50]0", "45.0"), (3, ";;;", ""), (3, "@", "3"),
        (45373, "yyyy-mm-dd", "2024-03-22"), (45373, "dd.mm.yyyy", "22.03.2024"), (45373.75, "h:mm AM/PM", "6:00 PM"),
        (1.75, "[h]:mm", "42:00"), (0.5, "hh:mm:ss", "12:00:00"), (45373, "[$-407]dddd, d. mmmm yyyy",
                                                                    "Freitag, 22. März 2024"),
        (45373, 'yyyy"년" m"월" d"일"', "2024년 3월 22일"), (45373, "mmm-yy", "Mar-24"), (-1, "yyyy-mm-dd", "-1"),
        (59, "d/m/yyyy", "28/2/1900"), (60, "d/m/yyyy", "29/2/1900"), (61, "d/m/yyyy", "1/3/1900"),
        (0.0416666, "mm:ss.0", "59:59.9"), (1e12, "0", "1000000000000"), (5, "broken [", "broken 5"),
    ],
)  # fmt: skip
def test_a_number_is_written_as_its_cell_shows_it(value: float, code: str, expected: str) -> None:
    if code == "broken [":
        assert format_number(value, code)
    else:
        assert format_number(value, code) == expected


def test_numbers_and_dates_are_written_in_the_language_of_the_program() -> None:
    german, korean = LANGUAGES["de"], LANGUAGES["ko"]
    assert format_number(1234.5, '#,##0.00 "€"', german) == "1.234,50 €"
    assert format_number(0.5, "General", german) == "0,5"
    assert format_number(45373.75, '[$-412]AM/PM h"시" mm"분"', korean) == "오후 6시 00분"
    # A date with a language of its own keeps it.
    assert format_number(45373, "[$-409]mmmm yyyy", german) == "March 2024"
    assert format_number(45373, "yyyy-mm-dd", is_1904=True) == "2028-03-23"
    assert format_text("x", '0;0;0;"No. "@') == "No. x"
    assert format_text("x", ";;;") == ""


def test_the_language_of_the_program_is_told_by_its_own_words() -> None:
    rows = f'<row r="1">{cell("A1", 1234.5, 1)}{cell("B1", 45373, 2)}</row>'
    assert text_of(rows, formats=("#,##0.00",), said="Arbeitsblätter") == "1.234,50: 22.03.2024"
    assert text_of(rows, formats=("#,##0.00",), said="워크시트") == "1,234.50: 2024-03-22"
    # Without a language a date is written in the one form that nobody takes for another.
    assert text_of(rows, formats=("#,##0.00",)) == "1,234.50: 2024-03-22"


# Tables


def test_a_sheet_is_a_page_of_rows_with_its_heads_and_its_name() -> None:
    document = read(xlsx_file({"Salaries": BANDS, "Sheet2": rows_of(["Only one"])}))
    assert [page.text for page in document.pages] == [
        "Salaries\nGrade | Low | High\nG1 | 30000 | 45000\nG2 | 35000 | 50000",
        "Only one",
    ]
    assert [(s.title, s.level, s.page, s.start) for s in document.sections] == [
        ("Salaries", 1, 1, 0),
        ("Sheet2", 1, 2, len(document.pages[0].text) + 1),
    ]
    assert document.pages[0].label == "Salaries 1–3"
    assert warnings_of(document) == []


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (rows_of(["Travel 2026"], ["Valid from:", "May"], ["City", "Hotel", "Notes"], ["Rome", 180, ""],
                 ["Oslo", 90, "b"]),
         "Travel 2026\nValid from: May\nCity | Hotel | Notes\nRome | 180 | \nOslo | 90 | b"),
        (rows_of(["Request"], ["Name", "Kim"], ["Days", 5], ["Reason", "family"]),
         "Request\nName: Kim\nDays: 5\nReason: family"),
        (rows_of(["Kind", "Days"], ["Paid", 25], ["Sick", 10]) + rows_of(["City", "Days"], ["Rome", 1], first=5),
         "Kind | Days\nPaid | 25\nSick | 10\n\nCity | Days\nRome | 1"),
        (rows_of(["Grade", "Pay", "", "Office", "Desks"], ["A", 10, "", "Rome", 5], ["B", 20, "", "Oslo", 7],
                 ["C", 30]),
         "Grade | Pay\nA | 10\nB | 20\nC | 30\n\nOffice | Desks\nRome | 5\nOslo | 7"),
        (rows_of(["Name", "2025", "", "2026"], ["", "Days", "Over", "Days", "Over"], ["Ann", 1, 2, 3, 4])
         + '|<mergeCells><mergeCell ref="A1:A2"/><mergeCell ref="B1:C1"/><mergeCell ref="D1:E1"/></mergeCells>',
         "Name | 2025 Days | 2025 Over | 2026 Days | 2026 Over\n--- | --- | --- | --- | ---\nAnn | 1 | 2 | 3 | 4"),
        (rows_of(["Dept", "Level", "Days"], ["Sales", "Junior", 25], ["", "Senior", 28])
         + '|<mergeCells><mergeCell ref="A2:A3"/></mergeCells>',
         "Dept | Level | Days\nSales | Junior | 25\nSales | Senior | 28"),
        (rows_of(["Team", "Head", "Phone"], ["", "Bo", ""], ["South", "Di", 7]),
         "Team | Head | Phone\n | Bo | –\nSouth | Di | 7"),
        (rows_of(["a | b", "line\nbreak", "c"], ["1", "2", "3"]), "a / b | line break | c\n1 | 2 | 3"),
    ],
    ids=["heads below", "form", "two below", "two beside", "two lines of heads", "merged down", "empty ends", "bars"],
)  # fmt: skip
def test_tables_are_found_where_they_stand(rows: str, expected: str) -> None:
    assert text_of(rows) == expected


def test_bold_heads_are_heads_also_where_they_look_like_figures() -> None:
    heads = "".join(
        cell(f"{column}1", text, 2) for column, text in zip("ABC", ["Team", "01/2026", "02/2026"], strict=True)
    )
    text = text_of(f'<row r="1">{heads}</row>' + rows_of(["North", 4, 6], ["South", 5, 7], first=2))
    assert text == "Team | 01/2026 | 02/2026\n--- | --- | ---\nNorth | 4 | 6\nSouth | 5 | 7"


def test_a_long_sheet_has_several_pages_and_its_chunks_repeat_the_heads() -> None:
    document = read(
        xlsx_file({"Staff": rows_of(["Name", "Room", "Phone"], *([f"Person {n}", n, f"+49 {n}"] for n in range(900)))})
    )
    assert len(document.pages) > 3
    chunks = chunk_document(document.pages, document.sections)
    assert all("Name | Room | Phone\n" in chunk.content for chunk in chunks)
    assert {chunk.section for chunk in chunks} == {"Staff"}
    second = document.pages[1].text.split("\n")[0]
    row = int(second.split(" | ")[1]) + 2
    assert document.metadata["sheet_rows"]["2"] == [[0, row, "A", "C"]]
    with pytest.raises(DocumentError):
        load(
            xlsx_file({"a": BANDS, "b": BANDS}), "a.xlsx", options=LoadOptions(limits=ExtractionLimits(maximum_pages=1))
        )


def test_no_chunk_is_of_two_sheets() -> None:
    content = xlsx_file(
        {"Pay": BANDS, "Empty": "", "Travel": rows_of(["City", "Hotel"], ["Rome", 180]), "Sheet4": BANDS}
    )
    document = read(content)
    whole = "\n".join(page.text for page in document.pages)
    chunks = chunk_document(document.pages, document.sections, file_name="a.xlsx")
    assert [(chunk.index, chunk.section, chunk.first_page, chunk.last_page) for chunk in chunks] == [
        (0, "Pay", 1, 1),
        (1, "Travel", 2, 2),
        (2, "Sheet4", 3, 3),
    ]
    assert all(chunk.content == whole[chunk.start : chunk.end] for chunk in chunks)
    assert len(chunk_document(document.pages, document.sections, file_name="a.docx")) == 1


def test_heads_that_look_like_figures_are_repeated_as_heads() -> None:
    heads = "".join(
        cell(f"{column}1", text, 2) for column, text in zip("ABC", ["Team", "01/2026", "02/2026"], strict=True)
    )
    rows = rows_of(*([f"Team {n}", n, n + 1] for n in range(300)), first=2)
    pages = read(xlsx_file({"Sheet1": f'<row r="1">{heads}</row>{rows}'})).pages
    chunks = chunk_document(pages, [])
    assert len(chunks) > 2
    for chunk in chunks:
        (table,) = tables_in(chunk.content)
        assert table.heads is not None
        assert table.heads.cells == ("Team", "01/2026", "02/2026")


# What is not read


def test_hidden_sheets_rows_and_columns_are_left_out_and_counted() -> None:
    rows = BANDS.replace('<row r="2">', '<row r="2" hidden="1">')
    content = xlsx_file(
        {"Pay": '<cols><col min="3" max="3" hidden="1"/></cols><!>' + rows, "Secret": BANDS, "Old": BANDS},
        hidden=("Secret", "Old"),
    )
    document = read(content)
    assert [page.text for page in document.pages] == ["Grade | Low\nG2 | 35000"]
    assert warnings_of(document) == [
        "2 hidden sheets were not read: “Secret”, “Old”.",
        "Sheet “Pay”: 1 hidden row was not read.",
        "Sheet “Pay”: 1 hidden column was not read.",
    ]


def test_a_merged_cell_that_begins_in_a_hidden_column_is_shown() -> None:
    rows = rows_of(["Name", "2026"], ["", "Days", "Over", "Sick"], ["Ann", 1, 2, 3])
    merged = '|<mergeCells><mergeCell ref="A1:A2"/><mergeCell ref="B1:D1"/></mergeCells>'
    text = text_of('<cols><col min="2" max="2" hidden="1"/></cols><!>' + rows + merged)
    assert text == "Name | 2026 Over | 2026 Sick\n--- | --- | ---\nAnn | 2 | 3"


def test_formulas_without_results_and_cells_that_show_nothing_are_counted() -> None:
    rows = (
        f'<row r="1">{cell("A1", "Sum")}{cell("B1", None, formula="SUM(B2:B9)")}</row>'
        f'<row r="2">{cell("A2", "Seen")}{cell("B2", 7, 1)}</row>'
        f'<row r="3">{cell("A3", "Struck", 4)}{cell("B3", 8, formula="4+4")}</row>'
        '<row r="4"><c r="A4" t="s"><v>99</v></c></row>'
    )
    document = read(xlsx_file({"Sheet1": rows}, formats=(";;;",)))
    assert document.pages[0].text == "Sum\nSeen\n8"
    assert warnings_of(document) == [
        "Sheet “Sheet1”: 1 cell was not read because its number format hides it.",
        "Sheet “Sheet1”: 1 struck-through cell was left out.",
        "Sheet “Sheet1”: 1 formula has no stored result and was not read. Open the file in a spreadsheet program, save "
        "it and upload it again.",
        "Sheet “Sheet1”: 1 cell was not read.",
    ]


def test_cells_under_a_merged_one_are_not_shown() -> None:
    document = read(xlsx_file({"Sheet1": BANDS + '|<mergeCells><mergeCell ref="A1:XFD1048576"/></mergeCells>'}))
    assert document.pages[0].text == "Grade"
    assert warnings_of(document) == ["Sheet “Sheet1”: 8 cells hidden by merged cells were not read."]


def test_shared_texts_leave_out_reading_aids_and_struck_words() -> None:
    strings = (
        "<si><t>漢字</t><rPh><t>かんじ</t></rPh></si><si><r><t>25 </t></r><r><rPr><strike/></rPr><t>20 </t></r><r>"
        "<t>days</t></r></si>"
    )
    rows = '<row r="1"><c r="A1" t="s"><v>0</v></c></row><row r="2"><c r="A2" t="s"><v>1</v></c></row>'
    assert text_of(rows, strings=strings) == "漢字\n25 days"
    document = read(xlsx_file({"Sheet1": rows}, strings=strings))
    assert warnings_of(document) == ["Sheet “Sheet1”: Struck-through text was left out of 1 cell."]


def test_raised_and_lowered_figures_of_a_cell_make_no_other_number() -> None:
    run = '<r><rPr><vertAlign val="{}"/></rPr><t>{}</t></r>'.format
    strings = (
        f"<si><t>30</t>{run('superscript', 1)}<r><t> days</t></r></si><si><r><t>10</t></r>{run('superscript', 3)}"
        f"<r><t> kg of CO</t></r>{run('subscript', 2)}</si>"
    )
    rows = '<row r="1"><c r="A1" t="s"><v>0</v></c></row><row r="2"><c r="A2" t="s"><v>1</v></c></row>'
    assert text_of(rows, strings=strings) == "30 ¹ days\n10³ kg of CO₂"


def test_text_boxes_are_read_and_pictures_charts_and_comments_are_counted() -> None:
    spaces = f'xmlns:xdr="{SCHEMAS}/drawingml/2006/spreadsheetDrawing" xmlns:a="{SCHEMAS}/drawingml/2006/main"'
    drawing = (
        f"<xdr:wsDr {spaces}><xdr:twoCellAnchor><xdr:sp><xdr:txBody><a:p><a:r><a:t>Ask HR </a:t></a:r><a:r><a:t>first."
        "</a:t></a:r></a:p></xdr:txBody></xdr:sp></xdr:twoCellAnchor><xdr:pic/><xdr:graphicFrame><a:graphic>"
        f'<a:graphicData uri="{SCHEMAS}/drawingml/2006/chart"/></a:graphic></xdr:graphicFrame></xdr:wsDr>'
    )
    main = f'xmlns="{SCHEMAS}/spreadsheetml/2006/main"'
    content = xlsx_file(
        {"Pay": BANDS + '|<headerFooter><oddFooter>&amp;CConfidential</oddFooter></headerFooter><drawing r:id="d"/>'},
        parts={
            "xl/drawings/drawing1.xml": drawing,
            "xl/comments1.xml": f"<comments {main}><commentList><comment/><comment/></commentList></comments>",
        },
        links={"d": "drawing ../drawings/drawing1.xml", "c": "comments ../comments1.xml"},
    )
    document = read(content)
    assert document.pages[0].text.endswith("G2 | 35000 | 50000\n\nAsk HR first.")
    assert warnings_of(document) == [
        "Sheet “Pay”: 2 comments were not read.",
        "Sheet “Pay”: 1 chart was not read.",
        "Sheet “Pay”: 1 picture may contain text that was not read.",
        "Sheet “Pay”: The headers and footers for printing were not read.",
    ]


def test_an_empty_workbook_is_blank_and_an_empty_sheet_is_no_page() -> None:
    assert warnings_of(read(xlsx_file({"Sheet1": ""}))) == ["This page is blank."]
    document = read(xlsx_file({"Sheet1": "", "Pay": BANDS, "Sheet3": ""}))
    assert [page.number for page in document.pages] == [1]
    assert [section.title for section in document.sections] == ["Pay"]


# Files


def test_workbooks_are_told_by_their_content_and_a_wrong_name_is_named() -> None:
    assert kind_of(xlsx_file({"a": BANDS}), "export") == "xlsx"
    for content, name, told in [
        (
            xlsx_file({"a": BANDS}),
            "a.docx",
            "an Excel workbook (.xlsx). Rename the file so that its name ends in .xlsx",
        ),
        (xlsx_file({"a": BANDS}), "a.txt", "an Excel workbook (.xlsx). Rename the file so that its name ends in .xlsx"),
    ]:
        with pytest.raises(FileNotAsNamed, match=r"The name of this file ends in \.\w+, but the file is ") as caught:
            check(content, name)
        assert told in caught.value.message


def test_what_cannot_be_read_says_why() -> None:
    protected = COMPOUND + "EncryptedPackage".encode("utf-16-le")
    cases: list[tuple[bytes, str, type[DocumentError]]] = [
        (protected, "a.xlsx", FileProtected),
        (b"PK\x03\x04broken", "a.xlsx", FileDamaged),
        (xlsx_file({"a": BANDS}, strings="<si><t>"), "a.xlsx", FileDamaged),
    ]
    for content, name, error in cases:
        with pytest.raises(error):
            load(content, name)
    small = LoadOptions(limits=ExtractionLimits(maximum_bytes=4000))
    with pytest.raises(FileTooLarge):
        check(xlsx_file({"a": " " * 100_000}), "a.xlsx", options=small)


def test_workbooks_come_through_the_sandbox(sandbox: Sandbox) -> None:
    content = xlsx_file({"a": BANDS})
    assert sandbox.check(content, file_name="a.xlsx").page_count == 1
    assert " | " in sandbox.load(content, file_name="a.xlsx").pages[0].text


# Citations


def test_references_of_cells_are_read() -> None:
    assert [column_name(number) for number in (1, 26, 27, 16_384)] == ["A", "Z", "AA", "XFD"]
    assert [column_number(name) for name in ("A", "Z", "AA", "XFD")] == [1, 26, 27, 16_384]
    assert span_of("B2:A1") is None


def citation(passage: str, *terms: str) -> Citation:
    return Citation(
        number=1, chunk_id=uuid4(), document_id=uuid4(), title="Pay", file_name="pay.xlsx", first_page=1, last_page=1,
        section="Bands", passage=passage, score=1.0, matched_terms=terms,
    )  # fmt: skip


def test_a_citation_names_the_cells_of_the_rows_that_an_answer_uses() -> None:
    text = "Grade | Low | High\nG1 | 30000 | 45000\nG3 | 35000 | 50000"
    pages = [SheetPage(text=f"Bands\n{text}", places=((1, 4, "B", "D"), (3, 7, "B", "D")))]
    first, second = citation(text, "G1", "30000"), citation(text, "G3", "50000")
    found = with_rows(first, [first], pages)
    assert (found.section, title_with_place(found)) == ("Bands › B5:D5", "Pay, Bands › B5:D5")
    assert with_rows(first, [first, second, first], pages).section == "Bands › B5:D5, B7:D7"
    assert with_rows(citation(text), [citation(text)], pages).section == "Bands"
    # The words of the heads are in no other line: the row is meant all the same.
    asked = citation(text, "Grade", "Low", "High", "G3")
    assert with_rows(asked, [asked], pages).section == "Bands › B7:D7"


def test_a_narrow_card_names_the_sheet_beside_the_cells() -> None:
    found = replace(citation("G1"), section="Bands › Germany › B5:D5")
    assert shown_path(found, is_wide=True) == "Bands › Germany › B5:D5"
    assert shown_path(found, is_wide=False) == "Bands › B5:D5"
    assert shown_path(replace(found, file_name="pay.docx"), is_wide=False) == "B5:D5"
    assert shown_path(replace(found, section="Bands"), is_wide=False) == "Bands"


def test_the_rows_of_a_stored_workbook_are_found_by_its_passages(
    pipeline: IngestionPipeline, library: DocumentLibrary, database: Database, collection: Collection, tenant: str
) -> None:
    result = pipeline.process_document(
        file=xlsx_file({"Bands": BANDS}), file_name="pay.xlsx", tenant_id=tenant, collection=collection
    )
    chunks = library.chunks(tenant, result.document_id)
    pages = ChatLogs(database).sheet_pages(tenant, [chunks[0].id])[chunks[0].id]
    marked = citation(chunks[0].content, "G2", "50000")
    assert with_rows(marked, [marked], pages).section == "Bands › A3:C3"
