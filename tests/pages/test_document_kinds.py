"""Documents that are no digital PDFs, on the pages: taken in, explained, opened."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from rag.language import speaking
from rag.services import Services
from rag.types import Collection, DocumentStatus, Identity, Role
from rag.ui.page_view import MARK, STRONG_MARK
from tests import hostile

SignIn = Callable[[Role], tuple[AppTest, Identity]]


@pytest.fixture
def page(running: Services, signed_in: SignIn, collection: Collection) -> AppTest:
    """The documents page as an administrator sees it."""
    tab, _ = signed_in(Role.ADMIN)
    return tab.run().switch_page("documents.py").run()


def texts(page: AppTest) -> str:
    return "\n".join(str(m.value) for m in (*page.markdown, *page.caption, *page.info)).replace("\\", "")


def test_a_file_that_is_not_what_its_name_says_is_refused_with_what_it_is(page: AppTest, running: Services) -> None:
    page.file_uploader[0].upload("rules.html", hostile.leave_policy(), "text/html").run()
    assert not page.exception
    assert (
        "The name of this file ends in .html, but the file is a PDF. "
        "Rename the file so that its name ends in .pdf, and upload it again."
    ) in texts(page)
    assert running.documents.list("demo") == []


def test_an_archive_is_taken_apart_and_what_cannot_be_read_is_named(page: AppTest, running: Services) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("a/parking.txt", "Parking is free.")
        archive.writestr("a/rules.pdf", hostile.leave_policy())
        archive.writestr("a/broken.html", b"\x00\x01\x02" * 99)
    page.file_uploader[0].upload("pack.zip", packed.getvalue(), "application/zip").run()
    assert not page.exception
    kinds = {d.file_name: d.mime_type for d in running.documents.list("demo")}
    assert kinds == {"parking.txt": "text/plain", "rules.pdf": "application/pdf"}
    assert "broken.html" in texts(page)
    assert "the file holds no text" in texts(page)


def test_why_a_file_of_an_archive_was_left_out_is_said_in_its_readers_language(
    running: Services, signed_in: SignIn, collection: Collection
) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("../rules.txt", "Parking is free.")
        archive.writestr("parking.txt", "Parking is free.")
    tab, identity = signed_in(Role.ADMIN)
    running.sessions.set_language("demo", identity.account_id, "de")
    page = tab.run().switch_page("documents.py").run()
    with speaking("de"):
        page.file_uploader[0].upload("pack.zip", packed.getvalue(), "application/zip").run()
    assert not page.exception
    assert "Der Name führt aus dem Archiv hinaus." in texts(page)


@pytest.mark.parametrize(("content", "words"), [(b"PK\x03\x04", "damaged"), (b"PK\x05\x06" + b"\0" * 18, "no file")])
def test_an_archive_that_holds_nothing_says_so(content: bytes, words: str, page: AppTest, running: Services) -> None:
    page.file_uploader[0].upload("pack.zip", content, "application/zip").run()
    assert not page.exception
    assert words in texts(page)


def test_the_way_to_cut_and_the_kind_of_pdfs_are_those_of_the_collection_until_another_is_chosen(
    page: AppTest, running: Services, signed_in: SignIn
) -> None:
    _, admin = signed_in(Role.ADMIN)
    legal = running.documents.create_collection(admin, "Guidelines", "legal", embedding_model="builtin/lexical@1536")
    page.run().selectbox(key="documents_collection").set_value(legal.id).run()
    page.file_uploader[0].upload("a.pdf", hostile.leave_policy(), "application/pdf").run()
    assert not page.exception
    (document,) = running.documents.list("demo")
    assert (document.chunking_method, document.pdf_type) == ("paged", "scanned")
    page.selectbox(key=f"documents_method_{legal.id}_paged").set_value("recursive").run()
    assert "largest break" in texts(page)
    page.file_uploader[0].upload("b.md", b"# B\n\nText.", "text/markdown").run()
    assert running.documents.list("demo")[0].chunking_method == "recursive"


def test_a_scan_says_what_is_missing_and_offers_recognition_once_it_is_there(
    page: AppTest, running: Services, collection: Collection, signed_in: SignIn, tmp_path: Path
) -> None:
    _, admin = signed_in(Role.ADMIN)
    document = running.documents.upload(admin, collection, "scan.pdf", hostile.image_only())
    running.pipeline.run("demo", document.id)
    assert running.documents.get("demo", document.id).status is DocumentStatus.NEEDS_OCR
    page.run()
    assert "Paste a key of Upstage on the page Set-up" in texts(page)
    button = page.button(f"documents_retry_{document.id}")
    assert button.label == "Try again"
    button.click().run()
    assert not page.exception
    assert running.documents.get("demo", document.id).status is DocumentStatus.READING


def test_a_document_without_pages_to_draw_is_opened_as_text(
    page: AppTest, running: Services, collection: Collection
) -> None:
    result = running.pipeline.process_document(
        file=b"<h1>Canteen</h1><p>It opens at <b>11:30</b>.</p>",
        file_name="canteen.html",
        tenant_id="demo",
        collection=collection,
    )
    page.query_params["document"] = str(result.document_id)
    page.run()
    assert not page.exception
    drawn = "".join(str(getattr(html, "value", "")) for html in page.get("html"))
    assert "It opens at 11:30." in drawn
    assert "<img" not in drawn
    page.session_state[f"documents_tabs_{result.document_id}"] = "Details"
    page.run()
    assert not page.exception


def test_a_source_without_pages_opens_as_text_with_the_passage_marked(
    running: Services, signed_in: SignIn, collection: Collection
) -> None:
    filler = "Nothing of note is said in this line.\n" * 300
    running.pipeline.process_document(
        file=f"{filler}\nThe bicycle allowance is 37 euro a month.\n{filler}".encode(),
        file_name="bicycle.md",
        tenant_id="demo",
        collection=collection,
    )
    tab, _ = signed_in(Role.EMPLOYEE)
    chat = tab.run()
    chat.chat_input[0].set_value("How much is the bicycle allowance?").run()
    opener = next(b for b in chat.button if b.label == "Open passage")
    opener.click().run()
    assert not chat.exception
    marked = [text for html in chat.get("html") if "<mark" in (text := str(getattr(html, "value", "")))]
    assert len(marked) == 1
    # The passage lightly, the sentence in it strongly.
    passage, sentence = (f'<mark style="{style}">' for style in (MARK, STRONG_MARK))
    assert marked[0].split(passage)[1].startswith("Nothing of note")
    assert marked[0].split(sentence)[1].startswith("The bicycle allowance is 37 euro a month.</mark>")
    assert any("Part " in str(m.value) for m in chat.markdown)


def test_reading_again_from_the_menu_makes_a_version_to_confirm(
    page: AppTest, running: Services, collection: Collection
) -> None:
    result = running.pipeline.process_document(
        file=hostile.partly_scanned(), file_name="mixed.pdf", tenant_id="demo", collection=collection
    )
    page.query_params["document"] = str(result.document_id)
    page.run()
    page.button(f"documents_again_read_{result.document_id}").click().run()
    assert not page.exception
    newest = running.documents.list("demo")[0]
    assert (newest.version, newest.status) == (2, DocumentStatus.READING)
