"""A page of a document in a drawer beside the answer, with the cited passage highlighted; its text where it has none.

The image and the file come from our own routes, which check the reader's session each time; nothing passes through
Streamlit's media files, whose addresses are not tied to a person.
"""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from typing import Protocol
from uuid import UUID

import streamlit as st

from rag.errors import NotFound
from rag.ingestion.chunking import join_pages
from rag.ingestion.loaders import LOADERS
from rag.types import Citation, Document, DocumentChunk, DocumentPage, Who
from rag.ui.original_text import page_with_most, part_with, parts_of, text_html
from rag.ui.posts import draw_post, is_post
from rag.ui.text import marked, plain

#: Wide enough to read an A4 page, narrow enough to keep the answer in sight on a laptop.
DRAWER_PIXELS = 860
#: Kinds of originals that a browser shows; all others are saved.
SHOWN = tuple(loader.media_type for loader in LOADERS if loader.served != "saved")


class Documents(Protocol):
    def get(self, who: Who, document_id: UUID) -> Document: ...

    def pages(self, who: Who, document_id: UUID) -> list[DocumentPage]: ...

    def chunks(self, who: Who, document_id: UUID, *, chunk_id: UUID | None = None) -> list[DocumentChunk]: ...


def page_image_url(document_id: UUID, page: int, chunk_id: UUID | None = None) -> str:
    highlight = f"?highlight={chunk_id}" if chunk_id else ""
    return f"/api/documents/{document_id}/pages/{page}.png{highlight}"


def file_url(document_id: UUID, page: int = 1) -> str:
    return f"/api/documents/{document_id}/file#page={page}"


def open_page_view(
    documents: Documents,
    who: Who,
    document_id: UUID,
    *,
    page: int = 1,
    chunk_id: UUID | None = None,
    section: str = "",
    passage: str = "",
    terms: tuple[str, ...] = (),
    on_close: Callable[[], None] | None = None,
) -> None:
    """Open the drawer at a page. Call it in each run while it is to stay open; `on_close` says when it was closed.

    Only one dialog can be open in a run. The page turned to is kept in `st.session_state.page_view_page`.
    """

    @st.dialog(
        "Source", width=DRAWER_PIXELS, position="right", icon=":material/find_in_page:", on_dismiss=on_close or "ignore"
    )
    def drawer() -> None:
        try:
            document = documents.get(who, document_id)
        except NotFound:
            st.info("This document has been deleted.", icon=":material/info:")
            return
        if is_post(document):
            st.markdown(f"**{plain(document.title)}**")
            text = "\n".join(page.text for page in documents.pages(who, document_id))
            draw_post(document, text, passage=passage, terms=terms)
            return
        st.markdown(f"**{plain(document.title)}**" + (f"  \n:gray[{plain(section)}]" if section else ""))
        if has_pictures(document):
            _draw_picture(document, page, chunk_id, has_passage=bool(passage))
        else:
            _draw_text(document, documents, chunk_id)
        if passage:
            with st.expander("Cited passage as text"):
                st.markdown(marked(passage, terms))

    drawer()


def picture_html(address: str, alt: str) -> str:
    """A page of a PDF as a picture from our own route, which checks who asks."""
    return (
        f'<img src="{escape(address, quote=True)}" alt="{escape(alt, quote=True)}" '
        'style="display:block;width:100%;min-height:320px;background:#fff;color:#555;'
        'border:1px solid rgba(128,138,165,.35);border-radius:8px">'
    )


def has_pictures(document: Document) -> bool:
    """Whether there are pages that can be drawn; other kinds of files have only their text."""
    return document.mime_type == "application/pdf"


def draw_original_link(document: Document, *, key: str, page: int = 1) -> None:
    """The original in a new tab: shown where that is safe, else saved."""
    is_shown = document.mime_type in SHOWN
    st.link_button(
        "Open PDF" if has_pictures(document) else "Open original" if is_shown else "Save original",
        file_url(document.id, page) if has_pictures(document) else f"/api/documents/{document.id}/file",
        key=key,
        icon=":material/open_in_new:" if is_shown else ":material/download:",
        help="Opens the original in a new tab." if is_shown else "Saves the original on this computer.",
    )


def _draw_picture(document: Document, page: int, chunk_id: UUID | None, *, has_passage: bool) -> None:
    last = max(document.page_count, 1)
    shown = min(max(int(st.session_state.get("page_view_page") or page), 1), last)
    _draw_turning(shown, last, "Page", turn_to, lambda: draw_original_link(document, key="page_view_open", page=shown))
    st.html(picture_html(page_image_url(document.id, shown, chunk_id), f"Page {shown} of {document.title}"))
    if has_passage and shown != page:
        _draw_way_back(f"Back to page {page}", turn_to, page)


def _draw_text(document: Document, documents: Documents, chunk_id: UUID | None) -> None:
    """The text in parts, opened at the one with the passage."""
    text = join_pages(documents.pages(document.tenant_id, document.id))
    found = documents.chunks(document.tenant_id, document.id, chunk_id=chunk_id) if chunk_id else []
    span = (found[0].start_character, found[0].end_character) if found else None
    parts = parts_of(text, span[0] if span else 0)
    first = part_with(parts, span[0]) + 1 if span else 1
    opened = f"{document.id} {chunk_id}"
    # Another passage opens at its own part, whatever was turned to before.
    kept = st.session_state.get("page_view_part")
    shown = min(kept[1], len(parts)) if kept and kept[0] == opened else first

    def turn(part: int) -> None:
        st.session_state.page_view_part = (opened, part)

    _draw_turning(shown, len(parts), "Part", turn, lambda: draw_original_link(document, key="page_view_open"))
    start, end = parts[shown - 1]
    mark = (max(span[0] - start, 0), min(span[1], end) - start) if span else None
    st.html(text_html(text[start:end], mark=mark, label=f"Part {shown} of {document.title}"))
    if span and shown != first:
        _draw_way_back("Back to the passage", turn, first)


def _draw_turning(shown: int, last: int, unit: str, turn: Callable[[int], None], draw_link: Callable[[], None]) -> None:
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        # Never disabled: a button disabled while it has the focus loses it, and Esc would no longer close.
        st.button(
            "Previous",
            key="page_view_previous",
            icon=":material/chevron_left:",
            on_click=turn,
            args=(max(shown - 1, 1),),
        )
        st.button(
            "Next",
            key="page_view_next",
            icon=":material/chevron_right:",
            icon_position="right",
            on_click=turn,
            args=(min(shown + 1, last),),
        )
        st.markdown(f":gray[{unit} {shown} of {last}]", width="content")
        st.space("stretch")
        draw_link()


def _draw_way_back(words: str, turn: Callable[[int], None], place: int) -> None:
    st.button(words, key="page_view_back", icon=":material/undo:", type="tertiary", on_click=turn, args=(place,))


def page_of(documents: Documents, who: Who, citation: Citation) -> int:
    """The page to open for a citation; of a passage that runs over several, the one with most of what is marked."""
    if citation.first_page == citation.last_page:
        return citation.first_page
    found = documents.chunks(who, citation.document_id, chunk_id=citation.chunk_id)
    if not found:  # was cut anew since, or deleted
        return citation.first_page
    return page_with_most(citation.matched_terms, documents.pages(who, citation.document_id), found[0])


def turn_to(page: int) -> None:
    """Choose the page the drawer shows; call it in the callback that opens one."""
    st.session_state.page_view_page = page
