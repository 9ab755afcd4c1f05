"""The library: upload with an estimate before anything is spent, live progress, costs, and every document.

Files go straight into the database and the file store; everything shown is read from there, so that progress survives a
refresh and is the same in every administrator's browser.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

import streamlit as st

from rag.errors import PasswordNeeded, RagError
from rag.ingestion.extracted import ExtractionLimits
from rag.services import require, services
from rag.types import ChunkingMethod, Collection, Document, DocumentStatus, PdfType, Role, Step
from rag.ui import attempts
from rag.ui.document_cards import (
    Refused,
    UploadOptions,
    draw_finished,
    draw_progress,
    draw_refused,
    draw_remarks,
)
from rag.ui.document_details import draw_document
from rag.ui.document_kinds import draw_reference_steps, draw_repository
from rag.ui.document_library import draw_empty_library, draw_filters
from rag.ui.document_names import STATUSES
from rag.ui.document_queue import ask_to_delete, draw_estimates, draw_figures, draw_many_finished
from rag.ui.document_steps import draw_bulk, draw_meaning, draw_queue_state, draw_reembedding, draw_steps
from rag.ui.document_table import draw_opener, draw_table
from rag.ui.document_trouble import draw_trouble
from rag.ui.document_upload import draw_upload
from rag.ui.formats import SELECT_A_ROW
from rag.ui.page_view import draw_original_link
from rag.ui.posts import is_post
from rag.ui.text import plain

ACTIVE = (DocumentStatus.READING, DocumentStatus.PROCESSING)
#: More finished documents than these are shown as one table.
SINGLE_CARDS = 3
TROUBLED = (DocumentStatus.FAILED, DocumentStatus.NEEDS_OCR)


identity = require(Role.ADMIN)
library = services().documents
state = st.session_state
state.setdefault("documents_upload_number", 0)
state.setdefault("documents_handled", set())
state.setdefault("documents_refused", [])
state.setdefault("documents_finished", [])
state.setdefault("documents_notice", "")


# What the buttons do


def attempt(action: Callable[..., object], *arguments: Any) -> None:
    """Run a change; what goes wrong is said on the page instead of ending it."""
    attempts.attempt("documents_notice", action, *arguments)


def confirm(documents: Sequence[Document]) -> None:
    def each_of_them() -> None:
        for document in documents:
            library.confirm(identity, document.id)

    attempt(each_of_them)


def discard_one(document: Document) -> None:
    attempt(library.discard, identity, document.id)


def run_step(document: Document, step: Step, only_missing: bool, method: ChunkingMethod | None) -> None:
    def run() -> None:
        library.versions.run_again(identity, document.id, step, only_missing=only_missing, chunking_method=method)

    attempt(run)


def read_again(document: Document, pdf_type: PdfType) -> None:
    def run() -> None:
        library.versions.read_again(identity, document.id, pdf_type=pdf_type)

    attempt(run)


def restore(version: Document) -> None:
    def run() -> None:
        library.versions.restore(identity, version.id)
        open_document(str(version.id))

    attempt(run)


def each(action: Callable[[Document], object], documents: Sequence[Document]) -> None:
    """Do the same to many; what goes wrong with one is said and does not keep the others from it."""
    state.documents_notice = ""
    sentences = []
    for document in documents:
        try:
            action(document)
        except RagError as error:
            sentences.append(f"{document.title}: {error.message}")
    state.documents_notice = "  \n".join(sentences)


def retry_all(documents: Sequence[Document]) -> None:
    each(lambda document: library.retry(identity, document.id), documents)


def tag_all(documents: Sequence[Document]) -> None:
    each(lambda document: library.versions.run_again(identity, document.id, Step.TAG), documents)


def delete_all(documents: Sequence[Document]) -> None:
    each(delete, documents)


def delete(document: Document) -> None:
    if st.query_params.get("document") == str(document.id):
        open_document(None)
    library.delete(identity, document.id)


def delete_one(document: Document) -> None:
    attempt(delete, document)


def open_document(document_id: str | None) -> None:
    """Keep the opened document in the address: it survives a refresh and can be shared."""
    if document_id is not None:
        st.query_params["document"] = document_id
    elif "document" in st.query_params:
        del st.query_params["document"]


def take(name: str, content: bytes, options: UploadOptions, key: str, password: str | None = None) -> None:
    """Hand one file to the library; a file that cannot be used is remembered with its sentence."""
    state.documents_refused = [refused for refused in state.documents_refused if refused.key != key]
    try:
        library.upload(
            identity,
            options.collection,
            name,
            content,
            password=password,
            chunking_method=options.chunking_method,
            generate_metadata=options.generate_metadata,
            pdf_type=options.pdf_type,
            metadata=options.metadata,
        )
    except PasswordNeeded as error:
        state.documents_refused.append(Refused(key, name, len(content), error.message, content, options))
    except RagError as error:
        state.documents_refused.append(Refused(key, name, len(content), error.message, None, options))


def unlock(refused: Refused) -> None:
    password = state.get(f"documents_password_{refused.key}", "")
    if refused.content is not None and password:
        take(refused.name, refused.content, refused.options, refused.key, password)


def forget(key: str) -> None:
    state.documents_refused = [refused for refused in state.documents_refused if refused.key != key]
    state.documents_finished = [finished for finished in state.documents_finished if str(finished) != key]


# Cards


def draw_queue() -> None:
    """What is being read, waits for a yes, is processed or has just finished; redrawn while work goes on."""
    documents = library.list(identity)
    statuses = {d.id: d.status for d in documents}
    drawn_whole = state.pop("documents_drawn_whole", False)
    finished = [i for i, was in state.get("documents_statuses", {}).items() if was in ACTIVE]
    finished = [i for i in finished if statuses.get(i) is DocumentStatus.COMPLETED]
    state.documents_finished = list(dict.fromkeys([*state.documents_finished, *finished]))
    changed = state.get("documents_statuses") != statuses
    state.documents_statuses = statuses
    if changed and not drawn_whole:
        st.rerun()  # figures and table above and below change too, and polling starts or ends

    if state.documents_notice:
        st.error(plain(state.documents_notice), icon=":material/error:")
    estimated = [d for d in documents if d.status is DocumentStatus.ESTIMATED]
    if estimated:
        draw_estimates(estimated, on_confirm=confirm, on_discard=discard_one)
    active = [d for d in documents if d.status in ACTIVE or d.pending_steps]
    draw_queue_state(library.queue_state(identity.tenant_id))
    totals = library.meaning_totals(identity.tenant_id)
    draw_meaning(totals.done, totals.passages)
    if active:
        st.subheader("In progress", anchor=False)
        for document in reversed(active):
            draw_progress(document)
    ready = [d for d in documents if d.id in state.documents_finished]
    if len(ready) > SINGLE_CARDS:
        draw_many_finished(ready, on_dismiss=state.documents_finished.clear)
    else:
        for document in ready:
            draw_finished(document, on_dismiss=forget)


def draw_troubled(troubled: Sequence[Document]) -> None:
    if troubled:
        st.subheader("Needs attention", anchor=False)
    for document in troubled:
        retry = (library.retry, identity, document.id)
        if draw_trouble(document, engine=library.recognition_engine, on_retry=attempt, retry=retry):
            ask_to_delete(document, delete_one)


# The library


def draw_library(documents: Sequence[Document], collections: Sequence[Collection]) -> None:
    st.subheader("Library", anchor=False)
    if not documents:
        draw_empty_library()
        return
    names = {c.id: c.name for c in collections} if len(collections) > 1 else {}
    wanted = draw_filters(documents, names)
    # Posts come last: they have a page of their own, and a board has many.
    shown = sorted((document for document in documents if wanted.fits(document)), key=is_post)
    if not shown:
        st.caption("No document matches.")
        return
    chosen = st.query_params.get("document")
    draw_table(shown, chosen, collections=names, on_open=open_document)
    with st.container(horizontal=True, vertical_alignment="center"):
        draw_opener(shown, chosen, on_open=open_document)
        draw_bulk(shown, on_retry=retry_all, on_tag=tag_all, on_delete=delete_all)
    opened = next((d for d in documents if str(d.id) == st.query_params.get("document")), None) or earlier_version()
    if opened is not None:
        draw_opened(opened)
    else:
        st.caption(f"{SELECT_A_ROW}, or choose a name, to open its pages, chunks and costs.")


def earlier_version() -> Document | None:
    """The document of the address when it is a version that the library does not list."""
    try:
        return library.get(identity, UUID(st.query_params.get("document", "")))
    except (ValueError, RagError):
        return None


def draw_opened(document: Document) -> None:
    words, color = STATUSES[document.status]
    with st.container(border=True):
        with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
            st.subheader(f"{plain(document.title)} :{color}-badge[{words}]", anchor=False, width="content")
            with st.container(horizontal=True, width="content"):
                if document.status is DocumentStatus.COMPLETED:
                    draw_steps(document, engine=library.recognition_engine, on_run=run_step, on_read=read_again)
                if document.file_path:
                    draw_original_link(document, key="documents_open_file")
                if st.button("Delete", key="documents_delete", icon=":material/delete:", type="tertiary"):
                    ask_to_delete(document, delete_one)
        draw_remarks(document)
        draw_repository(document)
        draw_reference(document)
        versions = library.versions.of(identity, document)
        draw_document(document, library, versions, on_restore=restore, on_open=open_document)


def draw_reference(document: Document) -> None:
    """The steps of a document of a collection of legal references."""
    references = services().references
    try:
        reference = references.get(identity, document.id)
    except RagError:
        return
    draw_reference_steps(
        document,
        reference,
        on_chunk=lambda d, text: attempt(lambda: references.chunk(identity, d.id, page_texts={1: text})),
        on_tag=lambda d: attempt(references.tag, identity, d.id),
        on_embed=lambda d: attempt(references.embed, identity, d.id),
    )


def draw_models(collections: Sequence[Collection]) -> None:
    moves = library.reembeddings.find(identity)
    is_moving = any(move.is_open for move in moves)
    with st.expander("Embedding models", icon=":material/scatter_plot:", expanded=is_moving):
        for collection in collections:
            draw_reembedding(
                collection,
                [move for move in moves if move.collection_id == collection.id],
                on_estimate=lambda c, model: attempt(library.reembeddings.estimate, identity, c.id, model),
                on_confirm=lambda move: attempt(library.reembeddings.confirm, identity, move.id),
                on_cancel=lambda move: attempt(library.reembeddings.cancel, identity, move.id),
                on_undo=lambda move: attempt(library.reembeddings.undo, identity, move),
                on_clean_up=lambda c: attempt(library.reembeddings.clean_up, identity, c.id),
            )


# The page

documents = library.list(identity)
st.title("Documents", anchor=False)
draw_figures(documents)
collections = library.collections(identity)
limits = ExtractionLimits.of(services().settings)
draw_upload(collections, limits, on_take=take, on_refuse=state.documents_refused.append)
for refused in list(state.documents_refused):
    draw_refused(refused, on_dismiss=forget, on_unlock=unlock)
state.documents_drawn_whole = True
st.fragment(draw_queue, run_every="1s" if any(d.status in ACTIVE for d in documents) else None)()
draw_troubled([d for d in documents if d.status in TROUBLED])
draw_library(documents, collections)
draw_models(collections)
