"""Draw the library: its totals, the filters, the table of documents, and actions on many at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any
from uuid import UUID

import pandas as pd
import streamlit as st

from rag.answering.labels import Labels
from rag.types import (
    Document,
    DocumentFigures,
    DocumentFilters,
    DocumentSort,
    DocumentStatus,
)
from rag.ui.board import is_post
from rag.ui.document_details import COST_STEPS
from rag.ui.formats import (
    KINDS,
    METHODS,
    STATUSES,
    TAGS_WAITING,
    WAITING,
    count,
    duration,
    file_size,
    known_cost,
    money,
)
from rag.ui.text import plain
from rag.ui.widgets import choose_collection, document_labels, drawn, keep_chosen, name_labels

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
    """Draw the filters that have something to choose, and the order; return both."""
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
            only = choose_collection(collections, key="documents_only", everything="All collections", width=240)
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
        collection_id=only,
    )
    return filters, sort


def status_labels(figures: Sequence[DocumentFigures]) -> Labels[DocumentStatus]:
    """Return the states of documents, with how many documents have each."""
    counted = {status: sum(f.documents for f in figures if f.status is status) for status in DocumentStatus}
    return name_labels({status: f"{STATUSES[status][0]} {number}" for status, number in counted.items() if number})


def _choice(label: str, everything: str, values: Mapping[str, str], key: str) -> str:
    names = name_labels({"": everything, **{value: values[value] for value in sorted(values) if value}})
    keep_chosen(key)
    return (
        st.selectbox(label, list(names), format_func=names.of, key=key, label_visibility="collapsed", width=150) or ""
    )


def draw_totals(figures: Sequence[DocumentFigures]) -> None:
    """Draw what the library holds and what it cost."""
    ready = [f for f in figures if f.status is DocumentStatus.COMPLETED]
    unpriced = sum(f.unpriced for f in figures)
    cost = money(sum((f.cost for f in figures), Decimal(0)))
    with st.grid(4, min_column_width=150):
        st.metric("Ready documents", f"{sum(f.documents for f in ready):,}", icon=":material/task:", border=True)
        st.metric("Pages", f"{sum(f.pages for f in ready):,}", icon=":material/auto_stories:", border=True)
        st.metric("Chunks", f"{sum(f.chunks for f in ready):,}", icon=":material/grid_view:", border=True)
        st.metric(
            "Processing cost",
            plain(cost) + (" \\+" if unpriced else ""),
            icon=":material/payments:",
            border=True,
            help=f"Of the documents below. {count(unpriced, 'document')} with unpriced calls come on top."
            if unpriced
            else "Of the documents below.",
        )


def status_words(document: Document) -> str:
    """Return the words of a document's badge."""
    if not document.is_waiting:
        return STATUSES[document.status][0]
    return (TAGS_WAITING if document.status is DocumentStatus.COMPLETED else WAITING)[0]


def draw_table(
    shown: Sequence[Document],
    opened: str | None,
    *,
    collections: Mapping[UUID, str] | None = None,
    on_open: Callable[[str | None], None],
) -> None:
    """Draw the documents as a table, with the names of their `collections` where given.

    `on_open` is called with the id of the selected row, or None.
    """
    ids = [str(d.id) for d in shown]
    table = pd.DataFrame(
        {
            "Title": [d.title if d.version == 1 else f"{d.title} (version {d.version})" for d in shown],
            **({"Collection": [collections.get(d.collection_id, "–") for d in shown]} if collections else {}),
            "Status": [[status_words(d)] for d in shown],
            **columns_of_kinds(shown),
            "Kind": ["Post" if is_post(d) else KINDS.get(d.mime_type, "–") for d in shown],
            "Pages": [d.page_count for d in shown],
            "Chunks": [d.chunk_count for d in shown],
            "Size": [file_size(d.file_size) for d in shown],
            "Cost": [money(known_cost(d.costs, "total")) if d.costs else "–" for d in shown],
            "Added by": [d.added_by_name or "–" for d in shown],
            "Added": [d.created_at for d in shown],
            "Chunking": [METHODS.get(d.chunking_method, d.chunking_method) for d in shown],
            "Language": [d.language for d in shown],
        }
    )
    # A selection is a row number: with other rows it would open another document, so the rows are part of the key.
    turn = st.session_state.setdefault("documents_table_turn", 0)
    key = f"documents_table_{turn}_{hash(tuple(ids))}"

    def open_selected() -> None:
        rows = st.session_state[key].selection.rows
        on_open(ids[rows[0]] if rows else None)

    st.dataframe(
        table,
        key=key,
        on_select=open_selected,
        selection_mode="single-row",
        selection_default={"selection": {"rows": [ids.index(opened)]}} if opened in ids else None,
        hide_index=True,
        placeholder="–",
        column_config={
            "Title": st.column_config.TextColumn(width=260),
            "Status": st.column_config.MultiselectColumn(
                options=[words for words, _ in (*STATUSES.values(), WAITING, TAGS_WAITING)],
                color=[color for _, color in (*STATUSES.values(), WAITING, TAGS_WAITING)],
                width=110,
            ),
            "Kind": st.column_config.TextColumn(width=80),
            "Pages": st.column_config.NumberColumn(format="localized", width=70),
            "Chunks": st.column_config.NumberColumn(format="localized", width=75),
            "Chunking": st.column_config.TextColumn(width=90),
            "Language": st.column_config.TextColumn(width=80),
            **column_settings(),
            "Size": st.column_config.TextColumn(alignment="right", width=80),
            "Cost": st.column_config.TextColumn(alignment="right", width=85),
            "Added by": st.column_config.TextColumn(width=120),
            "Added": st.column_config.DatetimeColumn(
                format="D MMM YYYY, HH:mm", timezone=st.context.timezone, width=150
            ),
        },
        alt="Documents of the library",
    )


def draw_opener(
    shown: Sequence[Document], opened: str | None, *, is_whole: bool, on_open: Callable[[str | None], None]
) -> None:
    """Draw a box to open a document by name: a table's rows are hard to reach by keyboard or screen reader.

    It offers the documents that the table shows; `is_whole` where these are all there are.
    """
    titles = document_labels(shown).as_text()
    # The labels are part of the key: the browser answers with one of those it was sent.
    key = f"documents_opener_{hash((opened, *titles.items()))}"

    def open_chosen() -> None:
        chosen = st.session_state[key]
        if chosen in titles:
            st.session_state["documents_table_turn"] += 1  # a table keeps its own selection as long as it is the same
            on_open(chosen)

    st.selectbox(
        "Open a document",
        list(titles),
        index=list(titles).index(opened) if opened is not None and opened in titles else None,
        format_func=titles.of,
        placeholder="Open a document" if is_whole else "Open a document of this page",
        key=key,
        on_change=open_chosen,
        label_visibility="collapsed",
        width=320,
    )


def draw_cost_table(documents: Sequence[Document]) -> None:
    """Draw what processing cost, a row per document and a column per step."""
    steps = {**COST_STEPS, "total": "Total"}
    st.dataframe(
        pd.DataFrame(
            {
                "Title": [d.title for d in documents],
                "Pages": [d.page_count for d in documents],
                "Chunks": [d.chunk_count for d in documents],
                **{label: [money(known_cost(d.costs, step)) for d in documents] for step, label in steps.items()},
                "Time": [duration(d.processing_ms) for d in documents],
            }
        ),
        key="documents_cost_table",
        hide_index=True,
        height=min(38 + 35 * len(documents), 260),
        column_config={
            "Title": st.column_config.TextColumn(width=260),
            **{label: st.column_config.TextColumn(alignment="right") for label in (*steps.values(), "Time")},
        },
        alt="Cost per step of the documents that became ready",
    )


def columns_of_kinds(shown: Sequence[Document]) -> dict[str, list[Any]]:
    """Return columns that only some documents fill: stars, topics, department; none where nothing has them."""
    repositories = [d.metadata.get("repository") or {} for d in shown]
    columns: dict[str, list[Any]] = {}
    if any(repositories):
        columns["Stars"] = [r.get("stars") if r else None for r in repositories]
        columns["Topics"] = [", ".join(map(str, r.get("topics") or [])) for r in repositories]
    if any(d.metadata.get("department") for d in shown):
        columns["Department"] = [str(d.metadata.get("department") or "–") for d in shown]
    return columns


def column_settings() -> dict[str, Any]:
    """Return the settings of these columns."""
    return {
        "Stars": st.column_config.NumberColumn(format="localized", width=70),
        "Topics": st.column_config.TextColumn(width=160),
        "Department": st.column_config.TextColumn(width=120),
    }


def draw_bulk(
    number: int,
    *,
    count_shares: Callable[[], tuple[int, int]],
    on_retry: Callable[[], None],
    on_tag: Callable[[], None],
    on_delete: Callable[[], None],
) -> None:
    """Draw the actions on all documents that pass the filters, on every page of the table.

    How many of them failed and how many lack tags is counted only while the menu is open.
    """
    menu = st.popover(
        f"All {count(number, 'document')}", icon=":material/checklist:", key="documents_bulk", on_change="rerun"
    )
    if not menu.open:
        return
    with menu:
        failed, untagged = count_shares()
        st.button(
            f"Try {failed:,} failed again",
            key="documents_bulk_retry",
            width="stretch",
            disabled=not failed,
            on_click=on_retry,
        )
        st.button(
            f"Tag {untagged:,} without tags",
            key="documents_bulk_tag",
            width="stretch",
            disabled=not untagged,
            on_click=on_tag,
        )
        sure = st.checkbox("Yes, delete them for good", key="documents_bulk_sure")
        st.button(
            f"Delete {number:,}",
            key="documents_bulk_delete",
            width="stretch",
            disabled=not sure,
            on_click=on_delete,
        )
