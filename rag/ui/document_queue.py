"""The documents page around its cards: figures on top, what waits for a yes, what became ready, and deleting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from decimal import Decimal

import streamlit as st

from rag.types import Document, DocumentFigures, DocumentStatus
from rag.ui.document_cards import draw_estimate
from rag.ui.document_names import STATUSES
from rag.ui.document_table import draw_cost_table
from rag.ui.formats import count, money
from rag.ui.text import plain

OnOne = Callable[[Document], None]


def draw_figures(figures: Sequence[DocumentFigures]) -> None:
    """What the library holds and what it cost."""
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


def draw_estimates(
    estimated: Sequence[Document],
    figures: Sequence[DocumentFigures],
    *,
    on_confirm: OnOne,
    on_confirm_all: Callable[[datetime], None],
    on_discard: OnOne,
) -> None:
    """The documents that wait longest for a yes, and one button for all of them: those of the `figures`."""
    waiting = [f for f in figures if f.status is DocumentStatus.ESTIMATED]
    number = max(sum(f.documents for f in waiting), len(estimated))
    total = money(sum((f.estimated for f in waiting), Decimal(0)))
    words = f"{total} + unpriced" if any(f.unpriced_estimates for f in waiting) else total
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.subheader("Confirm before anything is spent", anchor=False, width="content")
        if number > 1 and waiting:
            st.button(
                f"Confirm all {number} ({plain(words)})",
                key="documents_confirm_all",
                icon=":material/done_all:",
                type="primary",
                on_click=on_confirm_all,
                # What was estimated after this total was made is not confirmed with it.
                args=(max(f.updated_at for f in waiting),),
            )
    for document in estimated:
        draw_estimate(document, is_only=number == 1, on_confirm=on_confirm, on_discard=on_discard)
    draw_rest(number - len(estimated), "waits", "wait", DocumentStatus.ESTIMATED)


def draw_rest(number: int, one: str, many: str, status: DocumentStatus) -> None:
    """How many more documents there are than cards, and where they are found."""
    if number > 0:
        verb = one if number == 1 else many
        st.caption(f"{count(number, 'more document')} {verb}: choose {STATUSES[status][0]} in the library to see them.")


def draw_many_finished(ready: Sequence[Document], number: int, *, on_dismiss: Callable[[], None]) -> None:
    """One card for the `number` that became ready while this page was open, with the latest of them as a table."""
    with st.container(border=True, key="documents_finished", gap="small"):
        with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
            st.markdown(f":green[:material/check_circle:] **{number:,} documents** are ready", width="stretch")
            st.button(
                "Dismiss",
                key="documents_done_all",
                icon=":material/close:",
                type="tertiary",
                on_click=on_dismiss,
            )
        draw_cost_table(ready)
        if number > len(ready):
            st.caption(f"The latest {len(ready)} of them.")


@st.dialog("Delete this document?", icon=":material/delete:")
def ask_to_delete(document: Document, on_delete: OnOne) -> None:
    st.markdown(f"**{plain(document.title)}**  \n:gray[{plain(document.file_name)}]")
    st.markdown(
        f"Its {count(document.page_count, 'page')} and {count(document.chunk_count, 'chunk')} are removed at once, and "
        "no question will find it any more. What it cost stays in the analytics. This cannot be undone."
    )
    with st.container(horizontal=True, horizontal_alignment="right"):
        if st.button("Keep it", key="documents_keep"):
            st.rerun()
        if st.button(
            "Delete",
            key="documents_delete_confirmed",
            type="primary",
            icon=":material/delete:",
            on_click=on_delete,
            args=(document,),
        ):
            st.rerun()
