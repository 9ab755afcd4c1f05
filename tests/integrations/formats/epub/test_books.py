"""Books: chapters in reading order, read as HTML is."""

from __future__ import annotations

import pytest

from rag.errors import DocumentError, FileDamaged, FileNotAsNamed, FileProtected
from rag.ingestion.loaders import check, load
from rag.ingestion.loaders.detection import kind_of
from rag.ingestion.loaders.sandbox import Sandbox
from tests.ingestion.word_files import word_file
from tests.integrations.formats.epub.book_files import epub_file


def test_each_chapter_is_a_page_with_its_headings() -> None:
    document = load(
        epub_file("<h1>Leave</h1><p>25 days für alle.</p>", '<h2>Pay</h2><p>Monthly.</p><img src="a.png"/>'), "a.epub"
    )
    assert [page.text for page in document.pages] == ["Leave\n\n25 days für alle.", "Pay\n\nMonthly."]
    assert [page.warnings for page in document.pages] == [(), ("1 picture may contain text that was not read.",)]
    assert (document.title, document.author, document.language) == ("Handbook", "Example Ltd", "de")
    whole = "\n".join(page.text for page in document.pages)
    assert [(s.title, s.level, s.page, whole[s.start :][: len(s.title)]) for s in document.sections] == [
        ("Leave", 1, 1, "Leave"),
        ("Pay", 2, 2, "Pay"),
    ]


def test_books_are_told_by_their_content_and_refused_with_a_reason(sandbox: Sandbox) -> None:
    content = epub_file("<p>One</p>", "<p>Two</p>")
    assert kind_of(content, "export") == "epub"
    assert sandbox.check(content, file_name="a.epub").page_count == 2
    assert sandbox.load(content, file_name="a.epub").pages[1].text == "Two"
    # Fonts alone may be protected.
    assert load(epub_file("<p>One</p>", locked="OEBPS/a.ttf"), "a.epub").pages[0].text == "One"
    for other, name, error in [
        (epub_file("<p>One</p>", locked="OEBPS/chapter%201.xhtml"), "a.epub", FileProtected),
        (word_file(""), "a.epub", FileNotAsNamed),
        (content, "a.docx", FileNotAsNamed),
        (b"PK\x03\x04broken", "a.epub", FileDamaged),
    ]:
        with pytest.raises(DocumentError) as caught:
            check(other, name)
        assert type(caught.value) is error


def test_the_style_sheets_of_a_book_hide_strike_and_raise() -> None:
    styles = ".gone { display: none } .old { text-decoration: line-through } .up { vertical-align: super }"
    body = '<p>10<i class="up">3</i> euros. <i class="old">Monday</i> Tuesday. <i class="gone">x y</i></p>'
    page = load(epub_file(body, styles=styles), "a.epub").pages[0]
    assert page.text == "10³ euros. Tuesday."
    assert page.warnings == (
        "Text that a reader does not see was left out: “x y”.",
        "Struck-through text was left out: “Monday”.",
    )
    assert load(epub_file(body), "a.epub").pages[0].text == "103 euros. Monday Tuesday. x y"


def test_a_note_that_begins_with_a_number_of_its_own_keeps_it() -> None:
    body = (
        '<p>Leave is 27<a href="#n1"><sup>1</sup></a> days. Pay is monthly<a href="#n2"><sup>2</sup></a>.</p>'
        '<aside id="n1"><p>28 days from 2027.</p></aside><aside id="n2"><p>2. On the 27th.</p></aside>'
    )
    text = load(epub_file(body), "a.epub").pages[0].text
    assert text == "Leave is 27 days (¹ 28 days from 2027). Pay is monthly (² On the 27th)."
