"""Documents as tables: the library, and what processing many of them cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from uuid import UUID

import pandas as pd
import streamlit as st

from rag.types import Document, DocumentStatus
from rag.ui.document_details import COST_STEPS, known_cost
from rag.ui.document_kinds import column_settings, columns_of_kinds
from rag.ui.document_names import KINDS, METHODS, STATUSES, TAGS_WAITING, WAITING
from rag.ui.formats import duration, file_size, money
from rag.ui.labels import document_labels
from rag.ui.posts import is_post


def status_words(document: Document) -> str:
    """What a document is at, in the words of its badge."""
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
    """The documents as a table, with the names of their `collections` where these are given.

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
    """The same choice as a box to type in: rows of a table are hard to reach with a keyboard or a screen reader.

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
    """What processing cost, a row per document and a column per step."""
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
