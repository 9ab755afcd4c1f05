"""The library: what an employee may read, found and opened there, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

import pytest
from streamlit.testing.v1 import AppTest

from rag.library.text_search import find_in_pages, page_with_words
from rag.services import Services
from rag.types import Collection, Document, DocumentPage, Identity, Role
from rag.ui.text import plain

SignIn = Callable[[Role], tuple[AppTest, Identity]]


@pytest.fixture
def document(running: Services, handbook: Collection) -> Document:
    (found,) = running.documents.list("demo", collection_id=handbook.id)
    return found


def opened(tab: AppTest, document: Document | None = None) -> AppTest:
    tab.run().switch_page("library.py")
    if document is not None:
        tab.query_params["document"] = str(document.id)
    return tab.run()


def titles(tab: AppTest) -> list[str]:
    return [button.label for button in tab.button if str(button.key).startswith("library_open_")]


def test_documents_are_found_by_their_text_read_searched_in_and_asked(signed_in: SignIn, document: Document) -> None:
    tab, _ = signed_in(Role.EMPLOYEE)
    opened(tab)
    assert titles(tab) == [document.title]
    tab.text_input("library_text").set_value("receipts handed in").run()
    assert titles(tab) == [document.title]
    tab.text_input("library_text").set_value("submarine").run()
    assert titles(tab) == []
    assert "Nothing contains these words." in [caption.value for caption in tab.caption]
    tab.text_input("library_text").set_value("").run()

    tab.button(f"library_open_{document.id}").click().run()
    assert not tab.exception
    assert any(f"/api/documents/{document.id}/pages/1.png" in html.value for html in tab.html)
    tab.text_input(f"library_find_{document.id}").set_value("receipt").run()
    tab.button("library_place_0").click().run()
    assert any(f"/api/documents/{document.id}/pages/2.png" in html.value for html in tab.html)

    tab.button("library_ask").click().run()
    assert tab.chat_input
    assert tab.session_state.chat_documents == [document.id]


def shows_page(tab: AppTest, document: Document, page: int) -> bool:
    return any(f"/api/documents/{document.id}/pages/{page}.png" in html.value for html in tab.html)


def test_a_found_document_opens_at_the_page_of_its_words(signed_in: SignIn, document: Document) -> None:
    tab, _ = signed_in(Role.EMPLOYEE)
    opened(tab).text_input("library_text").set_value("receipts handed in").run()
    tab.button(f"library_open_{document.id}").click().run()
    assert shows_page(tab, document, 2)
    tab.text_input("library_text").set_value("annual leave").run()
    tab.button(f"library_open_{document.id}").click().run()
    assert shows_page(tab, document, 1)


def test_ctrl_k_opens_a_document_at_the_page_of_its_words(signed_in: SignIn, document: Document) -> None:
    tab, _ = signed_in(Role.EMPLOYEE)
    tab.run()
    tab.button("frame_find").click().run()
    # What redraws the dialog alone in a browser draws the whole page here, which opens it by the same click.
    tab.text_input("frame_find_text").set_value("receipts")
    tab.button("frame_find").click()
    tab.button(f"frame_found_{document.id}").click().run()
    assert tab.session_state.page_view_page == 2


@pytest.mark.parametrize(
    ("text", "page"),
    [
        pytest.param("receipts", 2, id="as written"),
        pytest.param("reimbursing meals", 2, id="in another form"),
        pytest.param("submarine", 1, id="nowhere"),
        pytest.param("", 1, id="no words"),
    ],
)
def test_the_page_of_words_is_where_they_are_written_or_their_forms(text: str, page: int) -> None:
    texts = ("Annual leave is 25 days.", "Meals are reimbursed. Receipts are handed in.", "A meal.")
    pages = [
        DocumentPage(
            document_id=UUID(int=1),
            number=n,
            text=words,
            characters=len(words),
            language="en",
            method="text",
            warnings=[],
            label="",
        )
        for n, words in enumerate(texts, 1)
    ]
    assert page_with_words(pages, text) == page


def test_documents_of_one_title_are_told_apart_by_their_files(
    running: Services, signed_in: SignIn, document: Document
) -> None:
    with running.database.transaction("demo") as connection:
        connection.execute(
            "INSERT INTO documents (tenant_id, collection_id, title, file_name, sha256, status) "
            "VALUES ('demo', %s, %s, 'second.pdf', 'x', 'completed')",
            [document.collection_id, document.title],
        )
    tab, _ = signed_in(Role.EMPLOYEE)
    beside = " ".join(caption.value for caption in opened(tab).caption)
    assert titles(tab) == [document.title] * 2
    assert plain("handbook.pdf") in beside
    assert plain("second.pdf") in beside
    opened(tab, document)
    assert plain("second.pdf") in " ".join(caption.value for caption in tab.caption)


def test_what_is_closed_to_somebody_is_neither_listed_nor_opened(
    running: Services, signed_in: SignIn, document: Document
) -> None:
    with running.database.transaction("demo") as connection:
        connection.execute("UPDATE collections SET groups = '{Legal}'")
    tab, _ = signed_in(Role.EMPLOYEE)
    opened(tab, document)
    assert titles(tab) == []
    assert not any("/pages/" in html.value for html in tab.html)
    assert "This document does not exist, or you may not open it." in [toast.value for toast in tab.toast]
    assert not tab.exception


def page(number: int, text: str) -> DocumentPage:
    return DocumentPage(
        document_id=UUID(int=1), number=number, text=text, characters=len(text), method="text", language="en",
        label=str(number), warnings=[],
    )  # fmt: skip


def test_places_are_whole_words_in_the_text_around_them() -> None:
    pages = [
        page(1, "Start. " * 30 + "Holidays are booked in June. " + "End. " * 30),
        page(2, "Pay day (every month).\nNobody pays for parking."),
        page(3, "Unpaid leave."),
    ]
    (holidays,) = find_in_pages(pages, "holiday", limit=9)
    assert (holidays.page, holidays.words) == (1, ("Holidays",))
    assert holidays.text.startswith("…Start.")
    assert holidays.text.endswith("End.…")
    assert [(place.page, place.words) for place in find_in_pages(pages, "pay DAY", limit=9)] == [(2, ("Pay day",))]
    # Not side by side: on the pages that have all of them, each.
    found = find_in_pages(pages, "parking month", limit=9)
    assert {(place.page, place.words) for place in found} == {(2, ("parking",)), (2, ("month",))}
    assert find_in_pages(pages, "paid", limit=9) == []
    assert find_in_pages(pages, "(every", limit=9)[0].page == 2
    assert find_in_pages([page(4, "연차휴가 신청")], "휴가", limit=9)[0].words == ("휴가",)
    assert find_in_pages(pages, "  ", limit=9) == []
    assert len(find_in_pages([page(1, "tea\n" + "x " * 90) for _ in range(5)], "tea", limit=3)) == 3
