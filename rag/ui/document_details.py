"""One document opened: its pages as text beside the page itself, its chunks, what it cost, what is known about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from html import escape
from typing import Any, Protocol
from uuid import UUID

import pandas as pd
import streamlit as st

from rag.types import Document, DocumentChunk, DocumentPage, DocumentStatus
from rag.ui.formats import count, duration, file_size, money, pages
from rag.ui.page_view import page_image_url
from rag.ui.text import plain

#: Status as (words, colour of its badge).
STATUSES: Mapping[DocumentStatus, tuple[str, str]] = {
    DocumentStatus.READING: ("Reading", "blue"),
    DocumentStatus.ESTIMATED: ("To confirm", "orange"),
    DocumentStatus.PROCESSING: ("Processing", "blue"),
    DocumentStatus.COMPLETED: ("Ready", "green"),
    DocumentStatus.NEEDS_OCR: ("Needs OCR", "violet"),
    DocumentStatus.FAILED: ("Failed", "red"),
}
COST_STEPS = {"parsing": "Parsing", "chunking": "Chunking", "embedding": "Embedding", "metadata": "Metadata"}
METHODS = {"smart": "Smart", "fixed": "Fixed size", "semantic": "By topic"}


class Documents(Protocol):
    def pages(self, tenant_id: str, document_id: UUID) -> list[DocumentPage]: ...

    def chunks(self, tenant_id: str, document_id: UUID) -> list[DocumentChunk]: ...


def known_cost(values: Mapping[str, Any] | None, step: str) -> Decimal | None:
    """A stored cost; None when its price is not known, and zero when nothing was spent yet."""
    value = (values or {}).get(step, 0)
    return None if value is None else Decimal(str(value))


def cost_line(values: Mapping[str, Any]) -> str:
    """Cost per step and in total as one line of Markdown."""
    steps = [f"{label} {plain(money(known_cost(values, step)))}" for step, label in COST_STEPS.items()]
    return " · ".join([*steps, f"**Total {plain(money(known_cost(values, 'total')))}**"])


def page_ranges(numbers: Sequence[int]) -> str:
    """`3, 7–9` for 3, 7, 8, 9."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(f"{run[0]}–{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)


def draw_document(document: Document, documents: Documents) -> None:
    """Draw the tabs of an opened document. Only the tab in front reads from the database."""
    page_tab, chunk_tab, cost_tab, about_tab = st.tabs(
        ["Pages", "Chunks", "Costs", "About"], key=f"documents_tabs_{document.id}", on_change="rerun"
    )
    if page_tab.open:
        with page_tab:
            _draw_pages(document, documents)
    if chunk_tab.open:
        with chunk_tab:
            _draw_chunks(document, documents)
    if cost_tab.open:
        with cost_tab:
            _draw_costs(document)
    if about_tab.open:
        with about_tab:
            _draw_about(document)


def _draw_pages(document: Document, documents: Documents) -> None:
    read = documents.pages(document.tenant_id, document.id)
    if not read:
        st.caption("No page has been read yet.")
        return
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        number = st.pagination(len(read), key=f"documents_page_{document.id}")
        shows_image = st.toggle(
            "Show the page itself", key="documents_shows_image", help="Draws the page of the PDF beside its text."
        )
    page = read[min(number, len(read)) - 1]
    facts = [f"Page {page.number}" + (f" (printed {plain(page.label)})" if page.label else "")]
    facts.append(count(page.characters, "character"))
    facts += [f"language {plain(page.language)}"] if page.language else []
    facts += ["read by text recognition"] if page.method == "ocr" else []
    st.caption(" · ".join(facts))
    for warning in page.warnings:
        st.caption(f":orange[:material/warning: {plain(warning)}]")
    text, image = st.columns(2) if shows_image else (st.container(), None)
    with text:
        if page.text.strip():
            st.code(page.text, language=None, wrap_lines=True, height=None if shows_image else 460)
        else:
            st.info("This page has no text: it is empty or an image.", icon=":material/image:")
    if image is not None:
        image.html(
            f'<img src="{escape(page_image_url(document.id, page.number))}" alt="Page {page.number} as it is printed" '
            'style="display:block;width:100%;min-height:320px;background:#fff;color:#555;'
            'border:1px solid rgba(128,138,165,.35);border-radius:8px">'
        )


def _draw_chunks(document: Document, documents: Documents) -> None:
    chunks = documents.chunks(document.tenant_id, document.id)
    if not chunks:
        st.caption("There are no chunks until the document is processed.")
        return
    table = pd.DataFrame(
        {
            "#": [c.chunk_index + 1 for c in chunks],
            "Section": [c.section for c in chunks],
            "Pages": [pages(c.first_page, c.last_page) for c in chunks],
            "Tokens": [c.tokens for c in chunks],
            "Content": [" ".join(c.content.split()) for c in chunks],
        }
    )
    chosen = st.dataframe(
        table,
        key=f"documents_chunks_{document.id}",
        on_select="rerun",
        selection_mode="single-row",
        hide_index=True,
        column_config={
            "#": st.column_config.NumberColumn(width=50),
            "Section": st.column_config.TextColumn(width=200),
            "Pages": st.column_config.TextColumn(width=90),
            "Tokens": st.column_config.NumberColumn(width=70),
            "Content": st.column_config.TextColumn(width="large"),
        },
        alt=f"Chunks of {document.title}",
    )
    rows = chosen.selection.rows
    if not rows or rows[0] >= len(chunks):
        st.caption("Select a row to read the whole chunk.")
        return
    chunk = chunks[rows[0]]
    vector = f"vector of {chunk.embedding_model}" if chunk.has_embedding else "no vector yet"
    st.caption(
        f"Chunk {chunk.chunk_index + 1} · {plain(pages(chunk.first_page, chunk.last_page))} · "
        f"characters {chunk.start_character:,}–{chunk.end_character:,} · {plain(vector)}"
    )
    st.code(chunk.content, language=None, wrap_lines=True)
    if chunk.metadata:
        with st.expander("Metadata of this chunk"):
            st.json(chunk.metadata)


def _draw_costs(document: Document) -> None:
    has_costs, has_estimate = bool(document.costs), document.estimate is not None
    if not has_costs and not has_estimate:
        st.caption("Costs are known once the document has been read.")
        return
    steps = {**COST_STEPS, "total": "Total"}
    st.table(
        pd.DataFrame(
            {
                "Estimated": [_shown(document.estimate, step) for step in steps],
                "Spent": [_shown(document.costs if has_costs else None, step) for step in steps],
            },
            index=list(steps.values()),
        ),
        border="horizontal",
        width=420,
        alt="Cost per step, estimated and spent",
    )
    if document.processing_ms:
        st.caption(f"Processed in {duration(document.processing_ms)}. Unpriced means that no price is known.")


def _shown(values: Mapping[str, Any] | None, step: str) -> str:
    return "–" if values is None or step not in values else plain(money(known_cost(values, step)))


def _draw_about(document: Document) -> None:
    facts = {
        "File": plain(document.file_name),
        "Size": file_size(document.file_size),
        "Language": plain(document.language) or "–",
        "Characters": f"{document.character_count:,}",
        "Chunking": METHODS.get(document.chunking_method, document.chunking_method),
        "Pages without text": page_ranges(document.empty_pages) or "none",
        "SHA\\-256": f"`{document.sha256[:16]}…`",
    }
    st.table(facts, border="horizontal", width="content", alt="Facts about this document")
    if document.metadata:
        st.caption("Metadata")
        st.json(document.metadata)
