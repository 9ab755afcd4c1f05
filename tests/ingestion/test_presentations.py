"""Presentations: what each slide shows, and what was not read."""

from __future__ import annotations

import pytest

from rag.errors import DocumentError, FileDamaged, FileNotAsNamed, FileProtected, TooManyPages
from rag.ingestion.loaders import check, load
from rag.ingestion.loaders.detection import kind_of
from rag.ingestion.loaders.sandbox import Sandbox
from rag.ingestion.loaders.signatures import COMPOUND
from rag.ingestion.loaders.values import ExtractionLimits, LoadOptions
from rag.types import Page
from rag.ui.formats import has_pages
from tests.ingestion.slide_files import SCHEMAS, frame, paragraph, pptx_file, shape, table
from tests.ingestion.word_files import word_file


def page_of(shapes: str, **parts: str) -> Page:
    return load(pptx_file(shapes, parts={1: parts}), "a.pptx").pages[0]


def test_each_slide_is_a_page_with_its_title_first_and_its_notes_last() -> None:
    first = shape("25 days for all.", "Pro rata for part-timers.", kind="") + shape("Leave", kind="title")
    document = load(
        pptx_file(first, shape("Just a box"), parts={1: {"notesSlide": shape("Say it slowly.", kind="body")}}), "a.pptx"
    )
    assert [page.text for page in document.pages] == [
        "Leave\n- 25 days for all.\n- Pro rata for part-timers.\nNotes: Say it slowly.",
        "Just a box",
    ]
    assert [(s.title, s.page, s.start) for s in document.sections] == [
        ("Leave", 1, 0),
        ("Just a box", 2, len(document.pages[0].text) + 1),
    ]
    assert all(not page.warnings for page in document.pages)


@pytest.mark.parametrize(
    ("shapes", "expected"),
    [
        (table(["Grade", "Low", "High"], ["G1", "30", "45"]), "Grade | Low | High\nG1 | 30 | 45"),
        (table(["Plan", "Monthly cost", ">"], ["^", "Single", "Family"], ["Basic", "45", "78"]),
         "Plan | Monthly cost Single | Monthly cost Family\nBasic | 45 | 78"),
        (f"<p:grpSp><p:grpSp>{shape('In a group')}</p:grpSp></p:grpSp>", "In a group"),
        (shape(paragraph("One", "<a:buAutoNum/>"), paragraph("Two", "<a:buAutoNum/>"), paragraph("Dot", "<a:buChar/>")),
         "1. One\n2. Two\n- Dot"),
        (shape("<a:p><a:r><a:t>30</a:t></a:r><a:r><a:rPr baseline='30000'/><a:t>1</a:t></a:r><a:r><a:t> days, 5 m</a:t>"
               "</a:r><a:r><a:rPr baseline='30000'/><a:t>2</a:t></a:r></a:p>"), "30 ¹ days, 5 m²"),
        (f"<mc:AlternateContent><mc:Choice>{shape('New')}</mc:Choice><mc:Fallback>{shape('New')}</mc:Fallback>"
         "</mc:AlternateContent>", "New"),
        (shape("<a:p><a:r><a:t>One</a:t></a:r><a:br/><a:fld><a:t>line</a:t></a:fld></a:p>", "<a:p/>"), "One line"),
    ],
    ids=["table", "merged heads", "groups", "lists", "raised", "two forms", "breaks"],
)  # fmt: skip
def test_shapes_are_written_as_they_are_shown(shapes: str, expected: str) -> None:
    page = page_of(shapes)
    assert (page.text, page.warnings) == (expected, ())


def test_footers_and_texts_of_the_layout_are_written_once_and_slide_numbers_never() -> None:
    slide = shape("Body") + shape("Confidential", kind="ftr") + shape("7", kind="sldNum")
    layout = {"slideLayout": shape("Example Ltd") + shape("Click to add", kind="body")}
    pages = load(pptx_file(slide, slide, parts={1: layout, 2: layout}), "a.pptx").pages
    assert [page.text for page in pages] == ["Body\nConfidential\nExample Ltd", "Body"]
    assert [page.warnings for page in pages] == [(), ()]


def test_diagrams_are_read_point_by_point() -> None:
    points = "".join(f"<dgm:pt><dgm:t>{paragraph(text)}</dgm:t></dgm:pt>" for text in ("Apply", "Approve"))
    shapes = frame('<dgm:relIds r:dm="diagramData"/>', f"{SCHEMAS}/drawingml/2006/diagram")
    page = page_of(shapes, diagramData=f"<dgm:ptLst>{points}</dgm:ptLst>")
    assert (page.text, page.warnings) == ("Apply\nApprove", ())
    assert page_of(shapes).warnings == ("1 diagram (SmartArt) was not read.",)


def test_what_is_hidden_or_no_text_is_left_out_and_counted() -> None:
    struck = "<a:p><a:r><a:rPr strike='sngStrike'/><a:t>20</a:t></a:r><a:r><a:t>25 days</a:t></a:r></a:p>"
    shapes = (
        shape(struck) + shape("Draft", is_hidden=True) + "<p:pic/><p:pic/>"
        + "<p:pic><p:nvPicPr><p:nvPr><a:videoFile/></p:nvPr></p:nvPicPr></p:pic>"
        + frame("", f"{SCHEMAS}/drawingml/2006/chart") + frame("", f"{SCHEMAS}/presentationml/2006/ole")
    )  # fmt: skip
    page = page_of(shapes, comments="<p:cm/>")
    assert page.text == "25 days"
    assert page.warnings == (
        "Struck-through text was left out: “20”.",
        "1 hidden shape was not read.",
        "1 comment was not read.",
        "1 chart was not read.",
        "1 embedded file was not read.",
        "1 video or sound was not read.",
        "2 pictures may contain text that was not read.",
    )


def test_text_that_the_walk_does_not_reach_is_counted() -> None:
    assert page_of(f"<p:odd>{shape('Hello')}</p:odd>").warnings == ("5 characters of the text were not read.",)


def test_hidden_slides_are_named_and_keep_their_number() -> None:
    pages = load(pptx_file(shape("One"), shape("Two"), "", hidden=[2]), "a.pptx").pages
    assert [(page.number, page.text, page.warnings) for page in pages] == [
        (1, "One", ()),
        (2, "", ("This slide is hidden and was not read.",)),
        (3, "", ("This page is blank.",)),
    ]


def test_presentations_are_told_by_their_content_and_refused_with_a_reason(sandbox: Sandbox) -> None:
    content = pptx_file(shape("One"), shape("Two"))
    assert kind_of(content, "export") == "pptx"
    assert sandbox.check(content, file_name="a.pptx").page_count == 2
    assert sandbox.load(content, file_name="a.pptx").pages[1].text == "Two"
    assert has_pages("a.pptx")
    for other, name, error in [
        (content, "a.docx", FileNotAsNamed), (word_file(""), "a.pptx", FileNotAsNamed),
        (b"PK\x03\x04broken", "a.pptx", FileDamaged), (b"%PDF-1.7", "a.pptx", FileNotAsNamed),
        (COMPOUND + "EncryptedPackage".encode("utf-16-le"), "a.pptx", FileProtected),
        (COMPOUND, "a.pptx", FileDamaged),
    ]:  # fmt: skip
        with pytest.raises(DocumentError) as caught:
            check(other, name)
        assert type(caught.value) is error
    with pytest.raises(TooManyPages):
        load(content, "a.pptx", options=LoadOptions(limits=ExtractionLimits(maximum_pages=1)))
