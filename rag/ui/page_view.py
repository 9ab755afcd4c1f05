"""A page of a document in a drawer beside the answer, with the cited passage highlighted.

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
from rag.types import Document, DocumentPage
from rag.ui.posts import draw_post, is_post
from rag.ui.text import marked, plain

#: Wide enough to read an A4 page, narrow enough to keep the answer in sight on a laptop.
DRAWER_PIXELS = 860


class Documents(Protocol):
    def get(self, tenant_id: str, document_id: UUID) -> Document: ...

    def pages(self, tenant_id: str, document_id: UUID) -> list[DocumentPage]: ...


def page_image_url(document_id: UUID, page: int, chunk_id: UUID | None = None) -> str:
    highlight = f"?highlight={chunk_id}" if chunk_id else ""
    return f"/api/documents/{document_id}/pages/{page}.png{highlight}"


def file_url(document_id: UUID, page: int = 1) -> str:
    return f"/api/documents/{document_id}/file#page={page}"


def open_page_view(
    documents: Documents,
    tenant_id: str,
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
            document = documents.get(tenant_id, document_id)
        except NotFound:
            st.info("This document has been deleted.", icon=":material/info:")
            return
        if is_post(document):
            st.markdown(f"**{plain(document.title)}**")
            text = "\n".join(page.text for page in documents.pages(tenant_id, document_id))
            draw_post(document, text, passage=passage, terms=terms)
            return
        last = max(document.page_count, 1)
        shown = min(max(int(st.session_state.get("page_view_page") or page), 1), last)

        st.markdown(f"**{plain(document.title)}**" + (f"  \n:gray[{plain(section)}]" if section else ""))
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            # Never disabled: a button disabled while it has the focus loses it, and Esc would no longer close.
            st.button(
                "Previous",
                key="page_view_previous",
                icon=":material/chevron_left:",
                on_click=turn_to,
                args=(max(shown - 1, 1),),
            )
            st.button(
                "Next",
                key="page_view_next",
                icon=":material/chevron_right:",
                icon_position="right",
                on_click=turn_to,
                args=(min(shown + 1, last),),
            )
            st.markdown(f":gray[Page {shown} of {last}]", width="content")
            st.space("stretch")
            st.link_button(
                "Open PDF",
                file_url(document_id, shown),
                key="page_view_open",
                icon=":material/open_in_new:",
                help="Opens the original at this page in a new tab.",
            )
        st.html(
            f'<img src="{escape(page_image_url(document_id, shown, chunk_id))}" '
            f'alt="Page {shown} of {escape(document.title, quote=True)}" '
            'style="display:block;width:100%;min-height:320px;background:#fff;color:#555;'
            'border:1px solid rgba(128,138,165,.35);border-radius:8px">'
        )
        if passage and shown != page:
            st.button(
                f"Back to page {page}",
                key="page_view_back",
                icon=":material/undo:",
                type="tertiary",
                on_click=turn_to,
                args=(page,),
            )
        elif passage:
            with st.expander("Cited passage as text"):
                st.markdown(marked(passage, terms))

    drawer()


def turn_to(page: int) -> None:
    """Choose the page the drawer shows; call it in the callback that opens one."""
    st.session_state.page_view_page = page
