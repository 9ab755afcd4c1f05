"""Spreadsheets from LibreOffice: what each sheet shows, and what was not read."""

from __future__ import annotations

import pytest

from rag.errors import DocumentError, FileDamaged, FileProtected
from rag.ingestion.loaders import load
from rag.ingestion.loaders.detection import kind_of
from tests.ingestion.test_spreadsheets import read, warnings_of
from tests.integrations.formats.libreoffice.open_document_files import odf_file


def ods_cell(text: str, attributes: str = "", style: str = "") -> str:
    return (
        f'<table:table-cell office:value-type="string" table:style-name="{style}" {attributes}>'
        f"<text:p>{text}</text:p></table:table-cell>"
    )


def test_a_sheet_of_libreoffice_shows_the_text_that_the_file_keeps() -> None:
    styles = (
        '<style:style style:name="gone"><style:table-properties table:display="false"/></style:style>'
        '<style:style style:name="struck"><style:text-properties style:text-line-through-style="solid"/></style:style>'
    )
    row = "<table:table-row {}>{}</table:table-row>".format
    body = (
        '<table:table table:name="Leave"><table:table-column table:number-columns-repeated="2"/>'
        '<table:table-column table:visibility="collapse"/>'
        + row("", ods_cell("Leave of 2026", 'table:number-columns-spanned="2"') + "<table:covered-table-cell/>")
        + row("", ods_cell("Kind") + ods_cell("Days") + ods_cell("Cost"))
        + row("", ods_cell("Paid<text:s/>leave") + '<table:table-cell office:value-type="float" office:value="0.25">'
              "<office:annotation><text:p>note</text:p></office:annotation><text:p>25 %</text:p></table:table-cell>")
        + row('table:visibility="filter"', ods_cell("Unpaid") + ods_cell("10"))
        + row("", ods_cell("Old", style="struck") + ods_cell("3"))
        + row('table:number-rows-repeated="1048000"', '<table:table-cell table:number-columns-repeated="16384"/>')
        + "<table:shapes><draw:frame><draw:text-box><text:p>Ask HR.</text:p></draw:text-box></draw:frame>"
        '<draw:frame svg:width="9cm" svg:height="9cm"><draw:image/></draw:frame></table:shapes></table:table>'
        f'<table:table table:name="Secret" table:style-name="gone">{row("", ods_cell("secret"))}</table:table>'
    )  # fmt: skip
    document = read(odf_file(body, "spreadsheet", styles), "a.ods")
    assert [page.text for page in document.pages] == [
        "Leave\nLeave of 2026\nKind | Days\nPaid leave | 25 %\n | 3\n\nAsk HR."
    ]
    assert warnings_of(document) == [
        "1 hidden sheet was not read: “Secret”.",
        "Sheet “Leave”: 1 hidden row was not read.",
        "Sheet “Leave”: 1 hidden column was not read.",
        "Sheet “Leave”: 1 struck-through cell was left out.",
        "Sheet “Leave”: 1 comment was not read.",
        "Sheet “Leave”: 1 picture may contain text that was not read.",
    ]


def test_raised_figures_of_a_cell_make_no_other_number() -> None:
    styles = '<style:style style:name="up"><style:text-properties style:text-position="super 58%"/></style:style>'
    body = (
        '<table:table table:name="Leave"><table:table-row>'
        + ods_cell('30<text:span text:style-name="up">1</text:span> days')
        + "</table:table-row></table:table>"
    )
    assert read(odf_file(body, "spreadsheet", styles), "a.ods").pages[0].text == "30 ¹ days"


def test_workbooks_are_told_by_their_content() -> None:
    assert kind_of(odf_file("", "spreadsheet"), "export") == "ods"


def test_what_cannot_be_read_says_why() -> None:
    cases: list[tuple[bytes, type[DocumentError]]] = [
        (odf_file("", "spreadsheet", manifest="<encryption-data/>"), FileProtected),
        (b"PK\x03\x04broken", FileDamaged),
    ]
    for content, error in cases:
        with pytest.raises(error):
            load(content, "a.ods")
