"""A document on its way into the library, as a card: refused, read, to be confirmed, processed, ready."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

import streamlit as st

from rag.types import ChunkingMethod, Collection, Document, DocumentStatus, PdfType, Step
from rag.ui.document_details import cost_line, known_cost, page_ranges
from rag.ui.formats import count, duration, file_size, money
from rag.ui.text import plain

STEP_NAMES = {
    Step.EXTRACT: "Read",
    Step.RECOGNISE: "Recognise text",
    Step.CHUNK: "Chunk",
    Step.EMBED: "Embed",
    Step.TAG: "Metadata",
    Step.PUBLISH: "Publish",
}


class UploadOptions(NamedTuple):
    """What was chosen for a file before it was uploaded."""

    collection: Collection
    chunking_method: ChunkingMethod
    generate_metadata: bool
    pdf_type: PdfType = "auto"
    #: What searches may be narrowed by.
    metadata: Mapping[str, str] = MappingProxyType({})


class Refused(NamedTuple):
    """A file that was not taken. Its content is kept only while its password is being asked for."""

    key: str
    name: str
    size_bytes: int
    sentence: str
    content: bytes | None
    options: UploadOptions


def draw_refused(refused: Refused, *, on_dismiss: Callable[[str], None], on_unlock: Callable[[Refused], None]) -> None:
    """Why a file was not taken; where a password is missing, the place to enter it."""
    with st.container(border=True, key=f"documents_refused_{refused.key}", gap="xsmall"):
        icon = ":orange[:material/lock:]" if refused.content else ":red[:material/error:]"
        _draw_head(
            f"{icon} **{plain(refused.name)}** :gray[{file_size(refused.size_bytes)}]",
            f"documents_dismiss_{refused.key}",
            on_dismiss,
            refused.key,
        )
        st.markdown(plain(refused.sentence))
        if refused.content is None:
            return
        with (
            st.form(f"documents_unlock_{refused.key}", border=False),
            st.container(horizontal=True, vertical_alignment="bottom"),
        ):
            st.text_input(
                "Password of this PDF",
                type="password",
                autocomplete="off",
                key=f"documents_password_{refused.key}",
                width=280,
            )
            st.form_submit_button("Unlock", icon=":material/lock_open:", on_click=on_unlock, args=(refused,))


def draw_estimate(
    document: Document,
    *,
    is_only: bool,
    on_confirm: Callable[[Document], None],
    on_discard: Callable[[Document], None],
) -> None:
    """What a document holds and what processing it would cost, with the two ways on."""
    estimate = document.estimate or {}
    with st.container(border=True, key=f"documents_estimate_{document.id}", gap="xsmall"):
        st.markdown(f"**{plain(document.title)}** :gray[{plain(document.file_name)}]")
        facts = (
            count(estimate.get("pages", document.page_count), "page"),
            count(estimate.get("characters", document.character_count), "character"),
            f"about {count(estimate.get('tokens', 0), 'token')}",
            f"about {count(estimate.get('chunks', 0), 'chunk')}",
        )
        st.markdown(" · ".join(facts))
        st.markdown(f":gray[{cost_line(estimate)}]")
        draw_remarks(document)
        with st.container(horizontal=True, vertical_alignment="center"):
            st.button(
                f"Confirm ({plain(money(known_cost(estimate, 'total')))})",
                key=f"documents_confirm_{document.id}",
                icon=":material/check:",
                type="primary" if is_only else "secondary",
                on_click=on_confirm,
                args=(document,),
            )
            st.button(
                "Discard",
                key=f"documents_discard_{document.id}",
                icon=":material/close:",
                type="tertiary",
                on_click=on_discard,
                args=(document,),
            )


def draw_progress(document: Document) -> None:
    """How far the step under way has come, and which steps are done."""
    has_recognition = document.step is Step.RECOGNISE or document.ocr_pages
    steps = [
        *([Step.RECOGNISE] if has_recognition else []),
        Step.CHUNK,
        Step.EMBED,
        *([Step.TAG] if document.generate_metadata else []),
        Step.PUBLISH,
    ]
    with st.container(key=f"documents_progress_{document.id}", gap="xsmall"):
        part = document.steps_done / document.steps_total if document.steps_total else 0.0
        st.progress(min(part, 1.0), text=f"**{plain(document.title)}** · {plain(step_words(document))}")
        if document.status is DocumentStatus.PROCESSING and document.step in steps:
            at = steps.index(document.step)
            colors = ["green" if i < at else "blue" if i == at else "gray" for i in range(len(steps))]
            marks = [f":{color}-badge[{STEP_NAMES[step]}]" for color, step in zip(colors, steps, strict=True)]
            st.markdown(" ".join(marks))
        if document.message:
            st.caption(plain(document.message))


def draw_finished(document: Document, *, on_dismiss: Callable[[str], None]) -> None:
    """A document that became ready while this page was open: what it holds and what it cost."""
    with st.container(border=True, key=f"documents_finished_{document.id}", gap="xsmall"):
        _draw_head(
            f":green[:material/check_circle:] **{plain(document.title)}** is ready",
            f"documents_done_{document.id}",
            on_dismiss,
            str(document.id),
        )
        facts = [count(document.page_count, "page"), count(document.chunk_count, "chunk")]
        st.markdown(" · ".join([*facts, f"processed in {plain(duration(document.processing_ms))}"]))
        st.markdown(f":gray[{cost_line(document.costs)}]")
        draw_remarks(document)


def draw_remarks(document: Document) -> None:
    """What to know about a document: its message, else the pages without text."""
    if document.message:
        st.caption(plain(document.message))
    elif document.empty_pages and document.status is not DocumentStatus.FAILED:
        word = "page" if len(document.empty_pages) == 1 else "pages"
        st.caption(f":orange[:material/image:] No text on {word} {plain(page_ranges(document.empty_pages))}")


def step_words(document: Document) -> str:
    """The step under way in words: `Reading page 12 of 105`."""
    done, total = document.steps_done, document.steps_total
    if document.is_waiting:
        return "Waiting for the provider"
    if not total:
        return "Waiting for its turn"
    return {
        Step.EXTRACT: f"Reading page {min(done + 1, total):,} of {total:,}",
        Step.RECOGNISE: f"Recognising the text of page {min(done + 1, total):,} of {total:,}",
        Step.CHUNK: "Cutting into chunks",
        Step.EMBED: f"Embedding chunk {min(done + 1, total):,} of {total:,}",
        Step.TAG: "Writing metadata",
        Step.PUBLISH: "Making it searchable",
    }[document.step]


def _draw_head(words: str, key: str, on_dismiss: Callable[[str], None], dismissed: str) -> None:
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.markdown(words, width="stretch")
        st.button("Dismiss", key=key, icon=":material/close:", type="tertiary", on_click=on_dismiss, args=(dismissed,))
