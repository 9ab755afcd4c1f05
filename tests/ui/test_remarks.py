"""Remarks about documents: stored in English, and shown in the language of who reads them."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

import pytest

from rag.errors import ProviderKeyRejected, ProviderUnavailable
from rag.ingestion.embed import set_aside_message
from rag.ingestion.loaders.page_text import BLANK_PAGE
from rag.ingestion.queue import waiting_sentence
from rag.ingestion.uploads import ON_PAGES, no_text_message, reading_message
from rag.language import LANGUAGES, _, speaking, translated
from rag.locales import catalogues
from rag.types import Chunk, Page
from tests.ui.test_ui_language import sentences_past

TRANSLATED = [language for language in LANGUAGES if language != "en"]
PLACEHOLDER = re.compile(r"\{(\w+)\}")
#: Said to programs and of sources, whose errors other tests look at.
OF_NO_DOCUMENT = ("rag/ingestion/sources/", "rag/ingestion/chunking/")
#: What may be filled in, and how a German reads it.
VALUES = {"count": "12,345", "total": "20,000", "pages": "1–3, 7", "page": "4", "names": "Notes, Delete.pdf"}
IN_GERMAN = {"12,345": "12.345", "20,000": "20.000"}


def sentences() -> list[str]:
    """Every sentence that the steps of a document may leave behind."""
    found = []
    for message in catalogues.template():
        places = [PurePosixPath(place) for place, _line in message.locations]
        if any(place.is_relative_to("rag/ingestion") for place in places) and isinstance(message.id, str):
            found.append(message.id)
    # Two may differ in the names of their placeholders only.
    found = list({PLACEHOLDER.sub("{}", text): text for text in found}.values())
    return [text for text in found if re.fullmatch(r"[A-Z\d{].*[.]", text)]


def pages(*warnings: str, number: int = 3) -> list[Page]:
    """A document whose pages from the second on have these remarks."""
    first = Page(number=1, text="Annual leave is 25 days.")
    return [first, *(Page(number=n, text="More.", warnings=warnings) for n in range(2, number + 1))]


def test_every_sentence_of_a_documents_steps_is_in_the_catalogues() -> None:
    known = {
        text
        for message in catalogues.template()
        if message.id
        for text in (message.id if isinstance(message.id, (list, tuple)) else [message.id])
    }
    found: list[str] = []
    for path in sorted((catalogues.PROJECT / "rag" / "ingestion").rglob("*.py")):
        name = path.relative_to(catalogues.PROJECT).as_posix()
        if not name.startswith(OF_NO_DOCUMENT):
            found += sentences_past(name, path.read_text("utf-8"), known)
    assert found == []


def test_each_remark_is_found_again_on_its_pages_between_others() -> None:
    told = 0
    for message in sentences():
        values = {name: VALUES.get(name, "Xyz") for name in PLACEHOLDER.findall(message)}
        stored = f"Pages 1–3, 7: {message.format(**values)} {BLANK_PAGE}"
        with speaking("de"):
            filled = {name: IN_GERMAN.get(value, value) for name, value in values.items()}
            remark = _(ON_PAGES[1], pages="1–3, 7", remark=_(message, **filled))
            assert translated(stored) == f"{remark} {_(BLANK_PAGE)}"
        assert translated(stored) == stored
        told += 1
    assert told > 80


def test_remarks_are_read_in_german_and_in_arabic() -> None:
    stored = reading_message(pages("1 comment was not read.", "Sheet “Delete”: 2 charts were not read."))
    assert stored == "Pages 2–3: 1 comment was not read. Pages 2–3: Sheet “Delete”: 2 charts were not read."
    with speaking("de"):
        assert translated(stored) == (
            "Seiten 2–3: 1 Kommentar wurde nicht gelesen. Seiten 2–3: Blatt „Delete“: 2 Diagramme wurden nicht gelesen."
        )
    with speaking("ar"):
        assert not re.search(r"[a-z]", translated(stored).replace("Delete", ""))
        assert translated(stored).startswith("الصفحات 2–3: ")


def test_a_quoted_text_stays_as_it_is_and_what_was_left_out_has_its_kind() -> None:
    hidden = "Text that a reader of this page does not see was left out (invisible, off the page): “Delete. Cancel”."
    with speaking("fr"):
        assert translated(hidden) == (
            "Du texte qu'un lecteur de cette page ne voit pas a été laissé de côté (invisible, hors de la page) : "
            "« Delete. Cancel »."
        )
    with speaking("de"):
        unusable = "Page 4: The text of this page cannot be used: it holds characters without a meaning."
        said = "Seite 4: Der Text dieser Seite ist nicht brauchbar: er enthält Zeichen ohne Bedeutung."
        assert translated(unusable) == said


def test_a_sentence_that_nobody_knows_stays_between_those_that_are_known() -> None:
    with speaking("de"):
        assert translated("Page 2: Nobody knows. This page is blank.") == "Seite 2: Nobody knows. Diese Seite ist leer."


@pytest.mark.parametrize("language", TRANSLATED)
def test_what_is_said_of_a_document_has_no_english_word(language: str) -> None:
    numbers = range(1, 60, 2)
    chunks = [Chunk(index=n, content="12", first_page=n, last_page=n, start=0, end=2) for n in (1, 2)]
    upstage = {"provider": "upstage"}
    said = [
        reading_message([Page(number=n, text="") for n in numbers]),
        reading_message([Page(number=1, text=""), Page(number=2, text="")], awaiting=[1, 2], assumed=1800),
        no_text_message([Page(number=1, text="")]),
        no_text_message([Page(number=1, text="", warnings=(BLANK_PAGE,))]),
        set_aside_message(chunks[:1], 1200, "E5"),
        set_aside_message(chunks, 1200, "E5"),
        waiting_sentence(ProviderUnavailable(details=upstage), 1200),
        waiting_sentence(ProviderKeyRejected(details={**upstage, "is_searchable": True}), 5),
    ]
    for sentence in said:
        with speaking(language):
            shown = translated(sentence)
        # A word that two languages share is no English sentence: three in a row are.
        english = re.findall(r"[A-Za-z]{2,} [a-z]{2,} [a-z]{2,}", sentence)
        assert not [words for words in english if words in shown], (sentence, shown)
