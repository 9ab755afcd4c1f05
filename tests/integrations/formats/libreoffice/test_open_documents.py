"""Text documents of LibreOffice: what their pages show, and what was not read."""

from __future__ import annotations

import pytest

from rag.errors import DocumentError, FileDamaged, FileNotAsNamed, FileProtected
from rag.ingestion.loaders import check, load
from rag.ingestion.loaders.detection import kind_of
from rag.ingestion.loaders.sandbox import Sandbox
from rag.types import Page
from tests.ingestion.word_files import word_file
from tests.integrations.formats.libreoffice.open_document_files import ODF, odf_file

STYLES = (
    '<style:style style:name="base"><style:text-properties style:text-line-through-style="solid"/></style:style>'
    '<style:style style:name="struck" style:parent-style-name="base"><style:text-properties/></style:style>'
    '<style:style style:name="gone"><style:text-properties text:display="none"/></style:style>'
    '<style:style style:name="up"><style:text-properties style:text-position="super 58%"/></style:style>'
    '<style:style style:name="down"><style:text-properties style:text-position="-33% 58%"/></style:style>'
    '<text:list-style style:name="L"><text:list-level-style-number text:level="1" style:num-format="1" '
    'style:num-suffix="."/><text:list-level-style-number text:level="2" style:num-format="1" style:num-suffix=")" '
    'text:display-levels="2"/></text:list-style>'
    '<text:list-style style:name="B"><text:list-level-style-bullet text:level="1"/></text:list-style>'
)


def page_of(body: str) -> Page:
    return load(odf_file(body, "text", STYLES), "a.odt").pages[0]


def p(text: str) -> str:
    return f"<text:p>{text}</text:p>"


def item(*parts: str) -> str:
    return f"<text:list-item>{''.join(parts)}</text:list-item>"


def row(*cells: str) -> str:
    made = "".join(
        cell if cell.startswith("<") else f"<table:table-cell>{p(cell)}</table:table-cell>" for cell in cells
    )
    return f"<table:table-row>{made}</table:table-row>"


def wide(text: str, attributes: str) -> str:
    return f"<table:table-cell {attributes}>{p(text)}</table:table-cell>"


COVERED = "<table:covered-table-cell/>"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (p("Two<text:s text:c='2'/>spaces,<text:tab/>a <text:span>span</text:span> and a <text:a>link</text:a>."),
         "Two spaces, a span and a link."),
        ('<text:list text:style-name="L">' + item(p("One"))
         + item(p("Two"), "<text:list>" + item(p("Deep")) + "</text:list>")
         + "</text:list>" + p("Between") + '<text:list text:style-name="L" text:continue-numbering="true">'
         + item(p("Three")) + "</text:list>", "1. One\n2. Two\n2.1) Deep\nBetween\n3. Three"),
        ('<text:list text:style-name="B">' + item(p("Dot"), p("Goes on")) + "</text:list>", "- Dot\nGoes on"),
        ("<table:table>" + row("Grade", "Low", "High") + row("G1", "30", "45") + "</table:table>",
         "Grade | Low | High\nG1 | 30 | 45"),
        ("<table:table>" + row(wide("Plan", 'table:number-rows-spanned="2"'),
                               wide("Cost", 'table:number-columns-spanned="2"'), COVERED)
         + row(COVERED, "Single", "Family") + row("Basic", "45", "78") + "</table:table>",
         "Plan | Cost Single | Cost Family\nBasic | 45 | 78"),
        (p("Leave of 30<text:note><text:note-citation>1</text:note-citation><text:note-body>" + p("Without holidays.")
           + "</text:note-body></text:note> days."), "Leave of 30 days (¹ Without holidays)."),
        (p("5 m<text:span text:style-name='up'>2</text:span> of CO<text:span text:style-name='down'>2</text:span>"),
         "5 m² of CO₂"),
        (p("Before <draw:frame><draw:text-box>" + p("In a box") + "</draw:text-box></draw:frame>") + p("After"),
         "Before\nIn a box\nAfter"),
        ("<text:tracked-changes><text:deletion>" + p("40 days") + "</text:deletion></text:tracked-changes>"
         + p('<text:change text:change-id="a"/>25 days'), "25 days"),
        ("<text:section>" + p("Within") + "</text:section>", "Within"),
        (p("<text:ruby><text:ruby-base>漢字</text:ruby-base><text:ruby-text>かんじ</text:ruby-text></text:ruby>"),
         "漢字"),
    ],
    ids=["words", "numbers", "bullets", "table", "merged heads", "note", "raised", "box", "changed", "within", "ruby"],
)  # fmt: skip
def test_what_a_page_shows_is_written(body: str, expected: str) -> None:
    page = page_of(body)
    assert (page.text, page.warnings) == (expected, ())


def test_a_formula_is_written_where_it_stands() -> None:
    math = (
        '<math xmlns="http://www.w3.org/1998/Math/MathML"><semantics><mrow><mi>a</mi><mo>=</mo><mfrac><mi>b</mi><mn>4</mn>'
        "</mfrac></mrow><annotation>a = b over 4</annotation></semantics></math>"
    )
    frame = '<draw:frame><draw:object xlink:href="./Object 1"/></draw:frame>'
    document = load(odf_file(p(f"Pay is {frame} a month."), "text", parts={"Object 1/content": math}), "a.odt")
    assert document.pages[0].text == "Pay is a=b/4 a month."
    assert document.pages[0].warnings == ()


def test_headings_are_sections_and_margins_are_written_once() -> None:
    margins = (
        f"<office:document-styles {ODF}><office:master-styles><style:master-page><style:header>{p('Example Ltd')}"
        f"</style:header><style:footer>{p('Page <text:page-number>3</text:page-number>')}</style:footer>"
        "</style:master-page>"
        f"<style:master-page><style:header>{p('Example Ltd')}</style:header></style:master-page>"
        "</office:master-styles></office:document-styles>"
    )
    body = (
        '<text:h text:outline-level="1">Leave</text:h>' + p("25 days.") + '<text:h text:outline-level="2">Sick</text:h>'
    )
    document = load(odf_file(body, "text", parts={"styles": margins}), "a.odt")
    assert document.pages[0].text == "Example Ltd\nLeave\n25 days.\nSick\nPage"
    assert [(s.title, s.level, s.start) for s in document.sections] == [("Leave", 1, 12), ("Sick", 2, 27)]


def test_what_is_hidden_struck_or_no_text_is_left_out_and_counted() -> None:
    page = page_of(
        p('<text:span text:style-name="struck">20</text:span>25 days')
        + p('<text:span text:style-name="gone">secret</text:span>')
        + p(f"<office:annotation>{p('why?')}</office:annotation>"
            '<draw:frame svg:width="9cm" svg:height="9cm"><draw:image/><svg:title>A chart</svg:title></draw:frame>')
        + f'<text:section text:display="none">{p("gone")}</text:section>'
        + '<draw:frame><draw:object xlink:href="./Object 1"/></draw:frame>'
    )  # fmt: skip
    assert page.text == "25 days"
    assert page.warnings == (
        "Text that is hidden in the document was left out: 10 characters.",
        "Struck-through text was left out: “20”.",
        "1 comment was not read.",
        "1 embedded file was not read.",
        "1 picture may contain text that was not read.",
    )


def test_text_that_the_walk_does_not_reach_is_counted() -> None:
    assert page_of(f"<text:odd>{p('Hello')}</text:odd>").warnings == ("5 characters of the text were not read.",)


def test_documents_are_told_by_their_content_and_refused_with_a_reason(sandbox: Sandbox) -> None:
    content = odf_file(p("25 days"), "text")
    assert kind_of(content, "export") == "odt"
    assert sandbox.load(content, file_name="a.odt").pages[0].text == "25 days"
    for other, name, error in [
        (content, "a.ods", FileNotAsNamed), (content, "a.docx", FileNotAsNamed),
        (word_file(""), "a.odt", FileNotAsNamed),
        (odf_file("", "spreadsheet"), "a.odt", FileNotAsNamed), (b"PK\x03\x04broken", "a.odt", FileDamaged),
        (odf_file("", "text", manifest="<encryption-data/>"), "a.odt", FileProtected),
    ]:  # fmt: skip
        with pytest.raises(DocumentError) as caught:
            check(other, name)
        assert type(caught.value) is error
