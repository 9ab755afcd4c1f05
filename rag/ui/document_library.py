"""The library: what the documents shown are narrowed by and ordered by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

import streamlit as st

from rag.types import DocumentFigures, DocumentFilters, DocumentSort, DocumentStatus
from rag.ui.document_names import KINDS, METHODS, STATUSES
from rag.ui.labels import Labels, drawn, keep_chosen, name_labels

SORTS: Mapping[DocumentSort, str] = {
    "newest": "Newest first",
    "oldest": "Oldest first",
    "title": "By title",
    "language": "By language",
    "pages": "Most pages first",
    "chunks": "Most chunks first",
    "size": "Largest first",
    "cost": "Most expensive first",
}


def draw_empty_library() -> None:
    with st.container(border=True, horizontal_alignment="center"):
        st.space("small")
        st.markdown(":material/library_books: **No documents yet**", width="content")
        st.caption("Add documents above. They are answered from as soon as they are ready.", width="content")
        st.space("small")


def draw_filters(
    figures: Sequence[DocumentFigures], collections: Mapping[UUID, str]
) -> tuple[DocumentFilters, DocumentSort]:
    """The row of filters, each there only where there is something to choose, and the order."""
    statuses = status_labels(figures)
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
            names = name_labels(collections, gone="Deleted collection")
            keep_chosen("documents_only")
            only = st.selectbox(
                "Collection",
                list(names),
                index=None,
                placeholder="All collections",
                format_func=names.of,
                key="documents_only",
                label_visibility="collapsed",
                width=240,
            )
        kinds = {f.mime_type: KINDS.get(f.mime_type, f.mime_type) for f in figures}
        kind = _choice("Kind", "All kinds", kinds, "documents_kind")
        languages = {f.language: f.language for f in figures}
        language = _choice("Language", "All languages", languages, "documents_language")
        methods = {str(f.chunking_method): METHODS.get(f.chunking_method, f.chunking_method) for f in figures}
        method = _choice("Chunking", "Any chunking", methods, "documents_filter_method")
        sort = st.selectbox(
            "Order",
            list(SORTS),
            format_func=SORTS.__getitem__,
            key="documents_sort",
            label_visibility="collapsed",
            width=180,
        )
        wanted = st.pills(
            "Status",
            list(statuses),
            selection_mode="multi",
            format_func=drawn(statuses),
            key="documents_wanted",
            label_visibility="collapsed",
        )
    filters = DocumentFilters(
        text=text or "",
        statuses=tuple(wanted),
        language=language,
        method=method,
        mime_type=kind,
        # A label that was sent before it changed comes back as it is.
        collection_id=only if isinstance(only, UUID) else None,
    )
    return filters, sort


def status_labels(figures: Sequence[DocumentFigures]) -> Labels[DocumentStatus]:
    """The states that documents are in, with how many are."""
    counted = {status: sum(f.documents for f in figures if f.status is status) for status in DocumentStatus}
    return name_labels({status: f"{STATUSES[status][0]} {number}" for status, number in counted.items() if number})


def _choice(label: str, everything: str, values: Mapping[str, str], key: str) -> str:
    names = name_labels({"": everything, **{value: values[value] for value in sorted(values) if value}})
    keep_chosen(key)
    return (
        st.selectbox(label, list(names), format_func=names.of, key=key, label_visibility="collapsed", width=150) or ""
    )
