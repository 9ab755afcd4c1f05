"""The library: every document that the filters let through, as a table with one document opened below it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

import streamlit as st

from rag.types import Document, DocumentStatus
from rag.ui.document_names import KINDS, METHODS, STATUSES


@dataclass(frozen=True)
class Wanted:
    """What the filters ask for; empty means anything."""

    text: str = ""
    statuses: tuple[DocumentStatus, ...] = ()
    language: str = ""
    method: str = ""
    kind: str = ""
    collection_id: UUID | None = None

    def fits(self, document: Document) -> bool:
        return (
            (not self.statuses or document.status in self.statuses)
            and self.language in ("", document.language)
            and self.method in ("", document.chunking_method)
            and self.kind in ("", document.mime_type)
            and self.collection_id in (None, document.collection_id)
            and (self.text in document.title.casefold() or self.text in document.file_name.casefold())
        )


def draw_empty_library() -> None:
    with st.container(border=True, horizontal_alignment="center"):
        st.space("small")
        st.markdown(":material/library_books: **No documents yet**", width="content")
        st.caption("Add documents above. They are answered from as soon as they are ready.", width="content")
        st.space("small")


def draw_filters(documents: Sequence[Document], collections: Mapping[UUID, str]) -> Wanted:
    """The row of filters; each is there only where there is something to choose."""
    present = [status for status in DocumentStatus if any(d.status is status for d in documents)]
    with st.container(horizontal=True, vertical_alignment="center"):
        text = st.text_input(
            "Search by name",
            type="search",
            live=True,
            placeholder="Search by title or file name",
            key="documents_text",
            label_visibility="collapsed",
            width=320,
        )
        only = None
        if collections:
            only = st.selectbox(
                "Collection",
                list(collections),
                index=None,
                placeholder="All collections",
                format_func=lambda i: collections.get(i, "Deleted collection"),
                key="documents_only",
                label_visibility="collapsed",
                width=240,
            )
        kind = _choice("Kind", "All kinds", {d.mime_type for d in documents}, KINDS.get, "documents_kind")
        language = _choice("Language", "All languages", {d.language for d in documents}, None, "documents_language")
        method = _choice(
            "Chunking",
            "Any chunking",
            {str(d.chunking_method) for d in documents},
            lambda name: METHODS.get(name),  # type: ignore[call-overload]
            "documents_filter_method",
        )
        statuses = st.pills(
            "Status",
            present,
            selection_mode="multi",
            format_func=lambda status: f"{STATUSES[status][0]} {sum(d.status is status for d in documents)}",
            key="documents_wanted",
            label_visibility="collapsed",
        )
    return Wanted(
        text=(text or "").casefold().strip(),
        statuses=tuple(statuses),
        language=language,
        method=method,
        kind=kind,
        collection_id=only,
    )


def _choice(label: str, everything: str, values: set[str], names: Callable[[str], str | None] | None, key: str) -> str:
    return (
        st.selectbox(
            label,
            ["", *sorted(value for value in values if value)],
            format_func=lambda value: ((names(value) if names else None) or value) if value else everything,
            key=key,
            label_visibility="collapsed",
            width=150,
        )
        or ""
    )
