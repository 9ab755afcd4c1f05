"""Steps by hand: on one document, on many at once, and on a whole collection's vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Protocol

import streamlit as st

from rag.ingestion.reembedding import Reembedding
from rag.types import ChunkingMethod, Collection, Document, PdfType, Step
from rag.ui.document_names import METHODS, PDF_TYPE_HELP, PDF_TYPES
from rag.ui.formats import count, money
from rag.ui.page_view import has_pictures
from rag.ui.text import plain

RunStep = Callable[[Document, Step, bool, ChunkingMethod | None], None]


class QueueState(Protocol):
    @property
    def waiting(self) -> int: ...
    @property
    def later(self) -> int: ...
    @property
    def running(self) -> int: ...
    @property
    def next_try_at(self) -> datetime | None: ...


def draw_steps(
    document: Document, *, engine: str | None, on_run: RunStep, on_read: Callable[[Document, PdfType], None]
) -> None:
    """The menu of a document that is ready: read, chunk, embed or tag again."""
    with st.popover("Run again", icon=":material/replay:", key=f"documents_steps_{document.id}"):
        st.caption("The document goes on answering. What costs money is estimated first and waits for your yes.")
        _draw_reading(document, engine, on_read)
        method = st.selectbox(
            "Chunk again",
            list(METHODS),
            index=list(METHODS).index(document.chunking_method),
            format_func=METHODS.__getitem__,
            key=f"documents_again_method_{document.id}",
        )
        buttons = (
            ("Chunk and embed", Step.CHUNK, False, method, "A new version with other chunks and new vectors."),
            ("Embed what is missing", Step.EMBED, True, None, "Makes vectors only where there are none."),
            ("Embed all again", Step.EMBED, False, None, "A new version with the same chunks and new vectors."),
            ("Tag what is missing", Step.TAG, True, None, "Writes tags only where there are none."),
            ("Tag all again", Step.TAG, False, None, "Writes all tags anew."),
        )
        for words, step, only_missing, chosen, text in buttons:
            st.button(
                words,
                key=f"documents_again_{words.split()[0]}_{only_missing}_{document.id}",
                help=text,
                width="stretch",
                on_click=on_run,
                args=(document, step, only_missing, chosen),
            )


def _draw_reading(document: Document, engine: str | None, on_read: Callable[[Document, PdfType], None]) -> None:
    """Reading again: for PDFs with or without text recognition."""
    chosen: PdfType = "auto"
    if has_pictures(document):
        chosen = st.selectbox(
            "Read again as",
            list(PDF_TYPES),
            format_func=PDF_TYPES.__getitem__,
            index=list(PDF_TYPES).index(document.pdf_type),
            key=f"documents_again_pdf_type_{document.id}",
            help=PDF_TYPE_HELP if engine else f"{PDF_TYPE_HELP} It is not set up here.",
        )
    st.button(
        "Read the file again",
        key=f"documents_again_read_{document.id}",
        help="A new version of the same file, read, cut and embedded anew.",
        width="stretch",
        on_click=on_read,
        args=(document, chosen),
    )


def draw_queue_state(state: QueueState) -> None:
    """One line on what the queue does; nothing when it is empty."""
    words = []
    if state.running:
        words.append(f"{count(state.running, 'job')} under way")
    if state.waiting:
        words.append(f"{state.waiting:,} waiting")
    if state.later:
        at = f", the next at {state.next_try_at:%H:%M:%S} UTC" if state.next_try_at else ""
        words.append(f"{state.later:,} waiting for another try{at}")
    if words:
        st.caption(f":material/queue: Queue: {', '.join(words)}")


def draw_meaning(done: int, passages: int) -> None:
    """One line on passages that are not compared by meaning yet; nothing when all are."""
    if done < passages:
        st.caption(
            f":material/translate: Meaning: {done:,} of {count(passages, 'passage')}. Documents are "
            "found by their words already; questions in other words find them as this goes on."
        )


def draw_bulk(
    number: int,
    *,
    count_shares: Callable[[], tuple[int, int]],
    on_retry: Callable[[], None],
    on_tag: Callable[[], None],
    on_delete: Callable[[], None],
) -> None:
    """Actions on all documents that the filters let through, of this page of the table and the others.

    How many of them failed and how many lack tags is counted only while the menu is open.
    """
    menu = st.popover(f"All {number:,} shown", icon=":material/checklist:", key="documents_bulk", on_change="rerun")
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


def draw_reembedding(
    collection: Collection,
    moves: Sequence[Reembedding],
    *,
    on_estimate: Callable[[Collection, str], None],
    on_confirm: Callable[[Reembedding], None],
    on_cancel: Callable[[Reembedding], None],
    on_undo: Callable[[Reembedding], None],
    on_clean_up: Callable[[Collection], None],
) -> None:
    """A collection's embedding model, the move to another one, and the way back."""
    st.markdown(f"**{plain(collection.name)}** is embedded with {plain(collection.embedding_model)}")
    latest = next((move for move in moves if move.status != "cancelled"), None)
    if latest is not None and latest.is_open:
        _draw_move(latest, on_confirm, on_cancel)
        return
    if latest is not None and latest.can_be_undone:
        st.caption(f"Moved from {plain(latest.from_model)}, whose vectors are kept until they are cleaned up.")
        with st.container(horizontal=True):
            st.button(
                "Undo", key=f"documents_undo_{latest.id}", icon=":material/undo:", on_click=on_undo, args=(latest,)
            )
            st.button(
                "Clean up",
                key=f"documents_clean_{latest.id}",
                icon=":material/cleaning_services:",
                type="tertiary",
                help="Removes the old vectors. It cannot be undone after that.",
                on_click=on_clean_up,
                args=(collection,),
            )
    with st.form(f"documents_reembed_{collection.id}", border=False):
        model = st.text_input(
            "Another embedding model",
            placeholder="openai/text-embedding-3-large@1536",
            key=f"documents_reembed_model_{collection.id}",
            help="provider/model@dimensions. Searches stay on the old vectors until all new ones are there.",
        )
        if st.form_submit_button("Show the cost", icon=":material/calculate:") and model:
            on_estimate(collection, model.strip())
            st.rerun()


def _draw_move(
    move: Reembedding, on_confirm: Callable[[Reembedding], None], on_cancel: Callable[[Reembedding], None]
) -> None:
    st.markdown(
        f"To {plain(move.to_model)}: {count(move.chunks_total, 'chunk')}, about {plain(money(move.estimated_cost))}"
    )
    if move.status == "running":
        part = move.chunks_done / move.chunks_total if move.chunks_total else 1.0
        st.progress(min(part, 1.0), text=f"{move.chunks_done:,} of {move.chunks_total:,} chunks have their new vector")
    if move.message:
        st.caption(f":red[{plain(move.message)}]")
    with st.container(horizontal=True):
        if move.status != "running":
            st.button(
                "Try again" if move.status == "failed" else "Embed again",
                key=f"documents_reembed_confirm_{move.id}",
                type="primary",
                icon=":material/check:",
                on_click=on_confirm,
                args=(move,),
            )
        st.button(
            "Cancel",
            key=f"documents_reembed_cancel_{move.id}",
            type="tertiary",
            icon=":material/close:",
            help="Vectors made so far are removed; searches were never on them.",
            on_click=on_cancel,
            args=(move,),
        )
