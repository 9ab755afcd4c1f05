"""Browse what can be asked about: the documents open to this person, their pages, and the words in them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from uuid import UUID

import streamlit as st

from rag import language
from rag.errors import NotFound
from rag.language import _
from rag.library.text_search import Finding, find_in_pages, page_with_words
from rag.profiles import holds_posts
from rag.services import require, services
from rag.types import Document, DocumentFilters, DocumentStatus, Role
from rag.ui.board import is_post
from rag.ui.formats import count, language_name, thousands
from rag.ui.lists import paging
from rag.ui.page_view import has_pictures, open_page_view, turn_to
from rag.ui.text import marked, plain
from rag.ui.widgets import choose_collection, search_box

PAGE_ROWS = 15
#: The most places listed in a document; a word found everywhere is no help.
MOST_PLACES = 30

identity = require(Role.EMPLOYEE)
running = services()
library = running.documents
state = st.session_state


# What the buttons do


def open_document(document_id: UUID | None) -> None:
    """Store the opened document's id in the address, to survive a refresh and to share the link with its readers."""
    text = state.get("library_text") or ""
    page = page_with_words(library.pages(identity, document_id), text) if document_id is not None and text else 1
    turn_to(page)
    if document_id is not None:
        st.query_params["document"] = str(document_id)
    elif "document" in st.query_params:
        del st.query_params["document"]


def ask_document(document: Document) -> None:
    """Begin a new conversation about this document alone."""
    state.chat_collection = document.collection_id
    state.chat_documents = [document.id]
    state.library_asks = True


# What the page is about


def opened_document() -> Document | None:
    try:
        document = library.get(identity, UUID(st.query_params["document"]))
    except (KeyError, ValueError):
        return None
    except NotFound:
        st.toast(_("This document does not exist, or you may not open it."), icon=":material/info:")
        open_document(None)
        return None
    return document if document.status == DocumentStatus.COMPLETED else None


def draw_list(opened: Document | None) -> None:
    names = {c.id: c.name for c in library.collections(identity) if not holds_posts(c)}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        text = search_box(_("Search in titles and text"), key="library_text", live="60ms", persist_state="page")
        chosen = None
        if len(names) > 1:
            chosen = choose_collection(names, key="library_collection", everything=_("All collections"), width=240)
    filters = DocumentFilters(statuses=(DocumentStatus.COMPLETED,), text=text, collection_id=chosen)
    if filters.text.strip():
        filters = replace(filters, found_ids=library.with_words(identity, filters.text))
    total, _newest = library.count_found(identity, filters)
    if not total:
        st.caption(_("Nothing contains these words.") if text else _("There are no documents yet."))
        return
    paged = paging("library_page", (text, chosen), total, rows=PAGE_ROWS)
    st.caption(count(total, "document", "documents"))
    documents = library.find(identity, filters, sort="title", limit=PAGE_ROWS, offset=paged.offset)
    titles = Counter(document.title for document in documents)
    for document in documents:
        # Add the file name and collection to distinguish equal titles.
        collection = names.get(document.collection_id, "") if len(names) > 1 else ""
        details = [document.file_name, collection] if titles[document.title] > 1 else []
        draw_row(document, opened, details=details)
    paged.draw()


def draw_row(document: Document, opened: Document | None, *, details: Sequence[str]) -> None:
    is_opened = opened is not None and document.id == opened.id
    facts = [
        *details,
        count(document.page_count, "page", "pages") if has_pictures(document) else "",
        language_name(document.language) if document.language else "",
        language.day(document.updated_at),
    ]
    # Equal titles are distinguished by their files.
    place = plain(document.file_name) if document.file_name and not is_post(document) else ""
    icon = "campaign" if is_post(document) else "menu_book" if is_opened else "description"
    with st.container(
        horizontal=True, vertical_alignment="center", gap="small", key=f"library_row_{document.id}", border=is_opened
    ):
        with st.container(width="content", gap=None):
            st.button(
                plain(document.title),
                key=f"library_open_{document.id}",
                icon=f":material/{icon}:",
                type="tertiary",
                help=place or None,
                on_click=open_document,
                args=(document.id,),
            )
        if opened is not None:
            # Beside an open document there is room for titles alone.
            if any(details):
                st.caption(plain(" · ".join(filter(None, details))), width="content")
            return
        st.space("stretch")
        st.caption(plain(" · ".join(filter(None, facts))), width="content")


def draw_opened(document: Document) -> None:
    with st.container(border=True, key="library_opened"):
        st.markdown(f"**{plain(document.title)}**")
        draw_search(document)
    open_page_view(library, identity, document.id, on_close=partial(open_document, None))


def draw_search(document: Document) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        text = search_box(_("Find in this document"), key=f"library_find_{document.id}", live="60ms", width=280)
        st.button(
            _("Ask this document"),
            key="library_ask",
            icon=":material/forum:",
            type="primary",
            on_click=ask_document,
            args=(document,),
        )
    if text.strip():
        findings = find_in_pages(library.pages(identity, document.id), text, limit=MOST_PLACES)
        draw_places(findings, has_pages=has_pictures(document))


def draw_places(findings: list[Finding], *, has_pages: bool) -> None:
    if not findings:
        st.caption(_("Nothing in this document contains these words."))
    with (
        st.container(height=min(64 * len(findings) + 16, 230), border=False, gap="xsmall")
        if findings
        else st.container()
    ):
        for number, place in enumerate(findings):
            with st.container(horizontal=True, vertical_alignment="center", wrap=False):
                if has_pages:
                    st.button(
                        _("Page {page}", page=thousands(place.page)),
                        key=f"library_place_{number}",
                        type="tertiary",
                        on_click=turn_to,
                        args=(place.page,),
                    )
                st.markdown(f":small[{marked(place.text, place.words)}]")


# The page

if state.pop("library_asks", False):
    st.switch_page("chat.py")
opened = opened_document()
st.title(_("Library"), anchor=False)
if opened is None:
    st.caption(
        _(
            "Every document that you can ask about. Open a document to read it, to search in it, or to ask "
            "questions about it."
        )
    )
else:
    draw_opened(opened)
draw_list(opened)
