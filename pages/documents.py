"""Manage documents: upload with an estimate before anything is spent, live progress, costs, the library.

Files go straight into the database and the file store; everything shown is read from there, so that progress survives a
refresh and is the same in every administrator's browser.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

import streamlit as st

from rag.access.sessions import require_recent
from rag.errors import PasswordNeeded, RagError
from rag.ingestion.documents import DOCUMENTS_PER_PAGE
from rag.ingestion.loaders import ExtractionLimits
from rag.language import _
from rag.services import require, services
from rag.types import (
    ChunkingMethod,
    Collection,
    Document,
    DocumentFigures,
    DocumentFilters,
    DocumentStatus,
    PdfType,
    Role,
    Step,
)
from rag.ui import actions
from rag.ui.document_details import draw_document, draw_repository
from rag.ui.document_library import draw_bulk, draw_empty_library, draw_filters, draw_opener, draw_table, draw_totals
from rag.ui.document_steps import (
    ask_to_delete,
    draw_meaning,
    draw_queue_state,
    draw_reembedding,
    draw_reference_steps,
    draw_steps,
    draw_trouble,
)
from rag.ui.document_upload import (
    Refused,
    UploadOptions,
    draw_estimates,
    draw_finished,
    draw_many_finished,
    draw_progress,
    draw_refused,
    draw_remarks,
    draw_rest,
    draw_upload,
)
from rag.ui.formats import count, status_badge, thousands
from rag.ui.page_view import draw_original_link
from rag.ui.text import plain
from rag.ui.widgets import page_of_list

ACTIVE = (DocumentStatus.READING, DocumentStatus.PROCESSING)
#: More finished documents than these are shown as one table.
SINGLE_CARDS = 3
#: Most cards of a kind, and most rows of the table of finished documents; a table with pages has the others.
MOST_CARDS = 20
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
    """Run a change; show an error on the page instead of ending it."""
    actions.attempt("documents_notice", action, *arguments)


def confirm(document: Document) -> None:
    attempt(library.confirm, identity, document.id)


def confirm_all(until: datetime) -> None:
    def confirm_seen() -> None:
        library.confirm_all(identity, until=until)

    attempt(confirm_seen)


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


def retry_all(filters: DocumentFilters, until: datetime | None) -> None:
    wanted = tuple(status for status in TROUBLED if status in (filters.statuses or TROUBLED))
    if wanted:
        each(lambda i: library.retry(identity, i), replace(filters, statuses=wanted), until)


def tag_all(filters: DocumentFilters, until: datetime | None) -> None:
    each(lambda i: library.versions.run_again(identity, i, Step.TAG), filters, until, is_untagged=True)


def each(
    action: Callable[[UUID], object], filters: DocumentFilters, until: datetime | None, *, is_untagged: bool = False
) -> None:
    """Do the same to every document that passes the filters and existed when they were shown.

    What goes wrong with one is said and does not keep the others from it.
    """
    state.documents_notice = ""
    sentences = []
    for name in library.names(identity, filters, limit=None, until=until, is_untagged=is_untagged):
        try:
            action(name.id)
        except RagError as error:
            sentences.append(f"{name.title}: {error.message}")
    more = len(sentences) - MOST_CARDS
    state.documents_notice = "  \n".join([*sentences[:MOST_CARDS], *([f"And {more:,} more."] if more > 0 else [])])


def delete(document_id: UUID) -> None:
    if st.query_params.get("document") == str(document_id):
        open_document(None)
    library.delete(identity, document_id)


def delete_one(document: Document) -> None:
    attempt(delete, document.id)


def ask_first(document: Document) -> None:
    if not actions.is_needed(identity):
        ask_to_delete(document, delete_one)


def delete_all(filters: DocumentFilters, until: datetime | None) -> None:
    # Once for all of them, else each would be refused with a line of its own.
    if actions.attempt("documents_notice", require_recent, services().database, identity):
        each(delete, filters, until)


def open_document(document_id: str | None) -> None:
    """Keep the opened document in the address: it survives a refresh and can be shared."""
    if document_id is not None:
        st.query_params["document"] = document_id
    elif "document" in st.query_params:
        del st.query_params["document"]


def take(name: str, content: bytes, options: UploadOptions, key: str, password: str | None = None) -> None:
    """Hand one file to the library; keep a file that cannot be used with the reason."""
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
    """Draw what is read, waits for confirmation, is processed or has just finished; redrawn while work goes on."""
    # What the whole page has just read is not read twice.
    drawn_whole = state.pop("documents_drawn_whole", None)
    figures, (at_work, total) = drawn_whole or read_state()
    seen = (at_work, total, [(f.status, f.documents) for f in figures])
    before = state.get("documents_seen")
    state.documents_seen = seen
    note_finished(before[0] if before else {}, at_work)
    if before != seen and drawn_whole is None:
        st.rerun()  # figures and table above and below change too, and polling starts or ends

    if state.documents_notice:
        st.error(plain(state.documents_notice), icon=":material/error:")
    waiting = DocumentFilters(statuses=(DocumentStatus.ESTIMATED,))
    if estimated := shown_of(figures, waiting, newest_first=False):
        draw_estimates(estimated, figures, on_confirm=confirm, on_confirm_all=confirm_all, on_discard=discard_one)
    draw_queue_state(library.queue_state(identity.tenant_id))
    totals = library.meaning_totals(identity.tenant_id)
    draw_meaning(totals.done, totals.passages)
    if at_work:
        st.subheader(_("In progress"), anchor=False)
        order = list(at_work)[:MOST_CARDS]
        active = library.find(identity, DocumentFilters(document_ids=tuple(order)))
        for document in sorted(active, key=lambda d: order.index(d.id)):
            draw_progress(document)
        draw_rest(total - len(order), "follows", "follow", DocumentStatus.PROCESSING)
    draw_just_finished()


def read_state() -> tuple[list[DocumentFigures], tuple[dict[UUID, DocumentStatus], int]]:
    """Return the totals of the library, and the documents being worked on."""
    return library.figures(identity), library.at_work(identity, limit=2 * MOST_CARDS)


def note_finished(before: dict[UUID, DocumentStatus], at_work: dict[UUID, DocumentStatus]) -> None:
    """Remember the documents that were being worked on and are ready now."""
    left = tuple(i for i, was in before.items() if was in ACTIVE and i not in at_work)
    if left:
        gone = DocumentFilters(document_ids=left, statuses=(DocumentStatus.COMPLETED,))
        finished = [name.id for name in library.names(identity, gone, limit=None)]
        state.documents_finished = list(dict.fromkeys([*state.documents_finished, *finished]))


def draw_just_finished() -> None:
    """Draw the documents that became ready while this page was open."""
    finished = state.documents_finished
    if not finished:
        return
    ready = library.find(identity, DocumentFilters(document_ids=tuple(finished[-MOST_CARDS:])), limit=MOST_CARDS)
    number = len(ready) + max(len(finished) - MOST_CARDS, 0)
    if number > SINGLE_CARDS:
        draw_many_finished(ready, number, on_dismiss=finished.clear)
    else:
        for document in ready:
            draw_finished(document, on_dismiss=forget)


def shown_of(
    figures: Sequence[DocumentFigures], wanted: DocumentFilters, *, newest_first: bool = True
) -> Sequence[Document]:
    """Return the documents in some states that get a card; read none where the totals know of none."""
    if not any(f.status in wanted.statuses for f in figures):
        return []
    return library.find(identity, wanted, sort="newest" if newest_first else "oldest", limit=MOST_CARDS)


def draw_troubled(figures: Sequence[DocumentFigures]) -> None:
    troubled = shown_of(figures, DocumentFilters(statuses=TROUBLED))
    if troubled:
        st.subheader(_("Needs attention"), anchor=False)
    for document in troubled:
        retry = (library.retry, identity, document.id)
        if draw_trouble(document, engine=library.recognition_engine, on_retry=attempt, retry=retry):
            ask_first(document)
    if troubled:
        number = sum(f.documents for f in figures if f.status in TROUBLED)
        draw_rest(number - len(troubled), "failed", "failed", DocumentStatus.FAILED)


# The library


def draw_library(figures: Sequence[DocumentFigures], collections: Sequence[Collection]) -> None:
    st.subheader(_("Library"), anchor=False)
    if not figures:
        draw_empty_library()
        return
    names = {c.id: c.name for c in collections} if len(collections) > 1 else {}
    filters, sort = draw_filters(figures, names)
    if filters.text:
        number, until = library.count_found(identity, filters)
    else:
        fitting = [f for f in figures if f.fits(filters)]
        number, until = sum(f.documents for f in fitting), max((f.created_at for f in fitting), default=None)
    if not number:
        st.caption(_("No document matches."))
        return
    pages = -(-number // DOCUMENTS_PER_PAGE)
    page, pager = page_of_list("documents_page", (filters, sort), pages)
    shown = library.find(identity, filters, sort=sort, offset=(page - 1) * DOCUMENTS_PER_PAGE)
    chosen = st.query_params.get("document")
    draw_table(shown, chosen, collections=names, on_open=open_document)
    if pages > 1:
        with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
            first = (page - 1) * DOCUMENTS_PER_PAGE + 1
            st.caption(
                _(
                    "{first} to {first_2} of {number}",
                    first=thousands(first),
                    first_2=thousands(first + len(shown) - 1),
                    number=count(number, "document"),
                ),
                width="content",
            )
            st.pagination(pages, key=pager)
    with st.container(horizontal=True, vertical_alignment="center"):
        draw_opener(shown, chosen, is_whole=pages == 1, on_open=open_document)
        draw_bulk(
            number,
            count_shares=lambda: library.shares(identity, filters),
            on_retry=lambda: retry_all(filters, until),
            on_tag=lambda: tag_all(filters, until),
            on_delete=lambda: delete_all(filters, until),
        )
    opened = opened_document()
    if opened is not None:
        draw_opened(opened)
    else:
        st.caption(
            _("Select a row (Shift + Space on the keyboard), or choose a name, to open its pages, chunks and costs.")
        )


def opened_document() -> Document | None:
    """Return the document in the address, also a version that the library does not list."""
    try:
        return library.get(identity, UUID(st.query_params.get("document", "")))
    except (ValueError, RagError):
        return None


def draw_opened(document: Document) -> None:
    words, color = status_badge(document.status)
    with st.container(border=True):
        with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
            st.subheader(f"{plain(document.title)} :{color}-badge[{words}]", anchor=False, width="content")
            with st.container(horizontal=True, width="content"):
                if document.status is DocumentStatus.COMPLETED:
                    draw_steps(document, engine=library.recognition_engine, on_run=run_step, on_read=read_again)
                if document.file_path:
                    draw_original_link(document, key="documents_open_file")
                if st.button(_("Delete"), key="documents_delete", icon=":material/delete:", type="tertiary"):
                    ask_first(document)
        draw_remarks(document)
        draw_repository(document)
        draw_reference(document)
        versions = library.versions.of(identity, document)
        draw_document(document, library, versions, on_restore=restore, on_open=open_document)


def draw_reference(document: Document) -> None:
    """Draw the steps of a reference document."""
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
    with st.expander(_("Embedding models"), icon=":material/scatter_plot:", expanded=is_moving):
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

figures, at_work = read_state()
st.title(_("Documents"), anchor=False)
draw_totals(figures)
collections = library.collections(identity)
limits = ExtractionLimits.of(services().settings)
default = library.choose(identity)  # the same that a question is asked in
draw_upload(collections, limits, default=default, on_take=take, on_refuse=state.documents_refused.append)
for refused in list(state.documents_refused):
    draw_refused(refused, on_dismiss=forget, on_unlock=unlock)
state.documents_drawn_whole = (figures, at_work)
# Also while a document that answers is tagged: its message changes when that is done.
state.documents_interval = "1s" if at_work[1] else None
st.fragment(draw_queue, run_every=state.documents_interval)()
draw_troubled(figures)
draw_library(figures, collections)
draw_models(collections)
