"""The documents page around its cards: figures on top, what waits for a yes, what became ready, and deleting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal

import streamlit as st

from rag.types import Document, DocumentStatus
from rag.ui.document_cards import draw_estimate
from rag.ui.document_details import known_cost
from rag.ui.document_table import draw_cost_table
from rag.ui.formats import count, money
from rag.ui.text import plain

OnOne = Callable[[Document], None]


def draw_figures(documents: Sequence[Document]) -> None:
    """What the library holds and what it cost."""
    ready = [d for d in documents if d.status is DocumentStatus.COMPLETED]
    totals = [known_cost(d.costs, "total") for d in documents]
    unpriced = sum(total is None for total in totals)
    cost = money(sum((t for t in totals if t is not None), Decimal(0)))
    with st.grid(4, min_column_width=150):
        st.metric("Ready documents", f"{len(ready):,}", icon=":material/task:", border=True)
        st.metric("Pages", f"{sum(d.page_count for d in ready):,}", icon=":material/auto_stories:", border=True)
        st.metric("Chunks", f"{sum(d.chunk_count for d in ready):,}", icon=":material/grid_view:", border=True)
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
    estimated: Sequence[Document], *, on_confirm: Callable[[Sequence[Document]], None], on_discard: OnOne
) -> None:
    """Every document that waits for a yes, and one button for all of them."""

    def confirm_one(document: Document) -> None:
        on_confirm([document])

    totals = [known_cost(d.estimate, "total") for d in estimated]
    total = money(sum((t for t in totals if t is not None), Decimal(0)))
    words = total if None not in totals else f"{total} + unpriced"
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.subheader("Confirm before anything is spent", anchor=False, width="content")
        if len(estimated) > 1:
            st.button(
                f"Confirm all {len(estimated)} ({plain(words)})",
                key="documents_confirm_all",
                icon=":material/done_all:",
                type="primary",
                on_click=on_confirm,
                args=(list(estimated),),
            )
    for document in reversed(estimated):
        draw_estimate(document, is_only=len(estimated) == 1, on_confirm=confirm_one, on_discard=on_discard)


def draw_many_finished(ready: Sequence[Document], *, on_dismiss: Callable[[], None]) -> None:
    """One card for many that became ready while this page was open."""
    with st.container(border=True, key="documents_finished", gap="small"):
        with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
            st.markdown(f":green[:material/check_circle:] **{len(ready)} documents** are ready", width="stretch")
            st.button(
                "Dismiss",
                key="documents_done_all",
                icon=":material/close:",
                type="tertiary",
                on_click=on_dismiss,
            )
        draw_cost_table(ready)


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
