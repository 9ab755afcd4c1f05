"""Manage documents: the library with its bulk actions, uploads and replacements, live progress, the bin.

Files go straight into the database and the file store, and the page reads everything from there. Progress therefore
survives a refresh and is the same in every administrator's browser.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID

import streamlit as st

from rag.errors import DocumentAlreadyStored, PasswordNeeded, RagError
from rag.ingestion.loaders.values import ExtractionLimits
from rag.language import N_, _, ngettext
from rag.library.bin import BIN_DAYS
from rag.library.metadata import SavedView
from rag.samples.load import empty_sample_boards, find_samples
from rag.services import require, services
from rag.storage.database import one_act
from rag.types import (
    ChunkingMethod,
    Collection,
    Document,
    DocumentFigures,
    DocumentFilters,
    DocumentName,
    DocumentRow,
    DocumentStatus,
    PdfType,
    Role,
    Step,
    UploadOptions,
)
from rag.ui import actions
from rag.ui.document_details import DetailTabs, draw_document, draw_repository
from rag.ui.document_form import (
    all_unsaved_edits,
    date_remark,
    discard_edits,
    draw_ask,
    draw_form,
    draw_questions,
    draw_replacing,
    draw_replacing_several,
)
from rag.ui.document_library import (
    MOST_ROWS,
    VIEWS,
    BulkActions,
    LibraryContents,
    LibraryQuery,
    draw_bin,
    draw_bulk,
    draw_opener,
    draw_table,
    draw_toolbar,
    status_words,
    totals,
    view_keys,
)
from rag.ui.document_steps import (
    draw_meaning,
    draw_queue_state,
    draw_reference_steps,
    draw_steps,
    draw_trouble,
)
from rag.ui.document_upload import (
    EstimateActions,
    Locked,
    Refused,
    UploadActions,
    UploadChoice,
    WaitingFile,
    draw_estimates,
    draw_finished,
    draw_locked,
    draw_many_finished,
    draw_progress,
    draw_refused_files,
    draw_remarks,
    draw_rest,
    draw_upload,
)
from rag.ui.embedding_moves import draw_moves
from rag.ui.formats import STATUSES, thousands, time_zone
from rag.ui.lists import draw_table_again
from rag.ui.page_corrections import Correcting, Draft, drafts, give_up
from rag.ui.page_view import draw_original_link
from rag.ui.text import plain
from rag.ui.widgets import dialog, draw_empty, red

ACTIVE = (DocumentStatus.READING, DocumentStatus.PROCESSING)
#: More finished documents are shown as a single table.
SINGLE_CARDS = 3
#: Most cards of a kind.
MOST_CARDS = 20
#: The most progress bars: the library stays in sight while thousands of documents are read.
MOST_PROGRESS = 3
#: Most documents offered by name.
MOST_OFFERED = 50
TROUBLED = (DocumentStatus.FAILED, DocumentStatus.NEEDS_OCR)
#: Wide enough for a page's picture beside its text.
DRAWER_PIXELS = 980


identity = require(Role.ADMIN)
library = services().documents
state = st.session_state
state.setdefault("documents_upload_number", 0)
state.setdefault("documents_handled", set())
state.setdefault("documents_locked", [])
state.setdefault("documents_selected", [])
state.setdefault("documents_finished", [])
state.setdefault("documents_followed", set())
state.setdefault("documents_notice", "")
state.setdefault("documents_binned", [])
state.setdefault("documents_copies", [])
state.setdefault("documents_cards", {})
if state.pop("frame_is_entered", False):
    state.documents_cards = {}
    state.documents_locked = [locked for locked in state.documents_locked if not locked.is_open]
today = datetime.now(time_zone(st.context.timezone)).date()


# What the buttons do


def attempt(action: Callable[..., object], *arguments: Any) -> None:
    """Run a change. An error is shown on the page, and the page continues."""
    actions.attempt("documents_notice", action, *arguments)


attempted = actions.attempted("documents_notice")


def follow(document_id: UUID) -> None:
    """Announce this document on the page as soon as it is ready."""
    state.documents_followed.add(document_id)


@attempted
def confirm(document: Document) -> None:
    library.confirm(identity, document.id)
    follow(document.id)
    decide(document, _("The file is being processed."))


def decide(document: Document, decision: str, *, is_removed: bool = False) -> None:
    """Store the decision about a file, and show the decision on the file's card.

    The card stays, because the next card would move under the mouse pointer.
    """
    if document.id in state.documents_cards:
        card: WaitingFile = state.documents_cards[document.id]
        state.documents_cards[document.id] = card._replace(decision=decision, is_removed=is_removed)


@attempted
def confirm_all(until: datetime) -> None:
    library.confirm_all(identity, until=until)
    state.documents_cards = {}


def discard_one(document: Document) -> None:
    put = partial(library.bin.put, identity, [document.id], is_unconfirmed=True)
    if actions.attempt("documents_notice", put):
        decide(document, _("The file is in the bin."), is_removed=True)


def undo_discard(document: Document) -> None:
    take_back([document.id])


@attempted
def keep_both(document: Document) -> None:
    library.keep_both(identity, document.id)
    decide(document, _("Kept as a separate document."))


@attempted
def run_step(document: Document, step: Step, only_missing: bool, method: ChunkingMethod | None) -> None:
    library.versions.run_again(identity, document.id, step, only_missing=only_missing, chunking_method=method)


@attempted
def read_again(document: Document, pdf_type: PdfType) -> None:
    limit = library.spending_limit(identity)
    follow(library.versions.read_again(identity, document.id, pdf_type=pdf_type, confirmed_up_to=limit).id)


@attempted
def restore(version: Document) -> None:
    library.versions.restore(identity, version.id)
    open_document(str(version.id))


def open_corrected(document: Document, page: int) -> None:
    """Open the version which a correction has created, at the same page."""
    follow(document.id)
    if page > 1:
        state[f"documents_page_{document.id}"] = page
    open_document(str(document.id))


def each(named: Iterable[tuple[str, Callable[[], object]]]) -> None:
    """Run actions, each with a name. Failures are shown by name, and the remaining actions still run."""
    sentences = []
    with one_act():
        for name, action in named:
            try:
                action()
            except RagError as error:
                sentences.append(f"{name}: {error.message}")
    more = len(sentences) - MOST_CARDS
    rest = [ngettext("And {count} more.", "And {count} more.", more)] if more > 0 else []
    state.documents_notice = "  \n".join([*sentences[:MOST_CARDS], *rest])


def each_document(action: Callable[[UUID], object], document_ids: Sequence[UUID]) -> None:
    names = library.names(identity, DocumentFilters(document_ids=tuple(document_ids)), limit=None)
    each((name.title, partial(action, name.id)) for name in names)


def selected_in(statuses: Sequence[DocumentStatus]) -> list[UUID]:
    """Return the selected documents currently in any of these states."""
    filters = DocumentFilters(document_ids=tuple(state.documents_selected), statuses=tuple(statuses))
    return [name.id for name in library.names(identity, filters, limit=None)]


def put_in_bin(document_ids: Sequence[UUID], *, is_unconfirmed: bool = False) -> None:
    """Delete documents, with an undo on the page.

    If `is_unconfirmed`, documents which have been confirmed meanwhile are kept.
    """
    put = partial(library.bin.put, identity, list(document_ids), is_unconfirmed=is_unconfirmed)
    if actions.attempt("documents_notice", put):
        state.documents_binned = list(document_ids)
        removed = set(document_ids)
        state.documents_selected = [i for i in state.documents_selected if i not in removed]
        # The browser remembers ticked rows by the table's key. With the same key they would come back ticked.
        draw_table_again("documents_table")
        if st.query_params.get("document") in set(map(str, removed)):
            open_document(None)
    elif state.get("frame_sign_in_again"):
        # Only one dialog can be open: the panel closes for the sign-in dialog.
        state.documents_gives_way = True


def delete_samples(samples: Sequence[UUID]) -> None:
    """Delete the sample documents and the sample notice board, because people could otherwise still ask the board.

    Restoring the board's posts restores the board.
    """
    with one_act():
        put_in_bin(samples)
        for board in empty_sample_boards(services(), identity):
            attempt(library.bin.put_collection, identity, board.id)


def take_back(document_ids: Sequence[UUID]) -> None:
    state.documents_binned = []
    words = ngettext("Restoring {count} document", "Restoring {count} documents", len(document_ids))
    st.toast(words, icon=":material/hourglass_top:")
    state.documents_notice = "  \n".join(library.bin.take_back_all(identity, document_ids))


def take_back_with_page(document_ids: Sequence[UUID]) -> None:
    """Restore documents in the next full page run, because a page fragment's callback must not show a toast."""
    state.documents_wanted_back = document_ids


def delete_for_good(document_ids: Sequence[UUID]) -> None:
    attempt(library.bin.delete_for_good, identity, document_ids)


def discard_all(until: datetime) -> None:
    waiting = DocumentFilters(statuses=(DocumentStatus.ESTIMATED,))
    documents = library.find(identity, waiting, sort="oldest", limit=MOST_ROWS)
    put_in_bin([document.id for document in documents if document.updated_at <= until], is_unconfirmed=True)
    state.documents_cards = {}


def select(document_ids: list[UUID]) -> None:
    state.documents_selected = document_ids


def clear_selection() -> None:
    state.documents_selected = []
    draw_table_again("documents_table")


def open_document(document_id: str | None) -> None:
    """Store the opened document's id in the address, to survive a refresh and to share the link."""
    if document_id is not None:
        st.query_params["document"] = document_id
    elif "document" in st.query_params:
        del st.query_params["document"]


def take(name: str, content: bytes, choice: UploadChoice, key: str, password: str | None = None) -> None:
    """Upload a file to the library. An unusable file is added to the list of refused files, with the reason."""
    state.documents_finished = [finished for finished in state.documents_finished if str(finished) != key]
    places = [locked.key for locked in state.documents_locked]
    try:
        document = library.upload(
            identity,
            choice.collection,
            name,
            content,
            replace(choice.options, password=password, confirmed_up_to=library.spending_limit(identity)),
        )
        follow(document.id)
        if key in places:
            state.documents_locked[places.index(key)] = Locked(key, name, "", b"", choice, is_open=True)
    except PasswordNeeded as error:
        locked = Locked(key, name, error.message, content, choice)
        if key in places:
            state.documents_locked[places.index(key)] = locked
        else:
            state.documents_locked.append(locked)
    except DocumentAlreadyStored as error:
        forget(key)
        copy = (name, error.details.get("document_id"), error.details.get("title") or name)
        # The same file uploaded again is a single line.
        state.documents_copies[:] = [earlier for earlier in state.documents_copies if earlier[:2] != copy[:2]] + [copy]
    except RagError as error:
        forget(key)
        refuse(Refused(name, len(content), error.message))


def refuse(refused: Refused) -> None:
    attempt(library.note_refused, identity, refused.name, refused.size_bytes, refused.sentence)


def upload_next(document_id: UUID, name: str, content: bytes) -> None:
    """Upload a document's next version."""
    collection = library.collection(identity, library.get(identity, document_id).collection_id)
    follow(library.upload(identity, collection, name, content, UploadOptions(replaces=document_id)).id)


def replace_file(document: Document, name: str, content: bytes) -> None:
    attempt(upload_next, document.id, name, content)
    open_document(None)


def replace_files(files: Sequence[tuple[UUID, str, bytes]]) -> None:
    """Upload the next versions of several documents. Each must be reviewed before it replaces the document."""
    each([(name, partial(upload_next, document_id, name, content)) for document_id, name, content in files])
    ask_to_replace(is_open=False)
    clear_selection()


def ask_to_replace(*, is_open: bool) -> None:
    state.documents_replacing = is_open


@dialog(
    N_("Replace documents"),
    width="medium",
    icon=":material/swap_horiz:",
    on_dismiss=partial(ask_to_replace, is_open=False),
)
def ask_for_files() -> None:
    """Draw a dialog in which people choose the selected documents' new files."""
    filters = DocumentFilters(document_ids=tuple(state.documents_selected))
    draw_replacing_several(
        library.names(identity, filters, limit=None),
        largest_mb=ExtractionLimits.of(services().settings).maximum_bytes // 2**20,
        on_files=replace_files,
    )


def unlock(locked: Locked) -> None:
    password = state.get(f"documents_password_{locked.key}", "")
    if password:
        take(locked.name, locked.content, locked.choice, locked.key, password)


def forget(key: str) -> None:
    state.documents_locked = [locked for locked in state.documents_locked if locked.key != key]
    state.documents_finished = [finished for finished in state.documents_finished if str(finished) != key]


def draw_bin_opener(binned: int) -> None:
    """Draw a button which opens the bin, unless the bin is empty."""
    if binned:
        words = _("Bin ({number})", number=thousands(binned))
        st.button(words, key="documents_open_bin", icon=":material/delete:", type="tertiary", on_click=open_bin)


def open_bin() -> None:
    show_all()
    clear_selection()
    state.documents_view = "bin"


def show_all() -> None:
    """Clear the search text and all filters."""
    state.documents_view = "all"
    state.update(view_keys({}, me=identity.account_id))


def save_view(name: str, filters: DocumentFilters) -> None:
    attempt(library.metadata.save_view, identity, name, filters)


def drop_view(view: SavedView) -> None:
    state.documents_view = "all"
    if actions.attempt("documents_notice", library.metadata.drop_view, identity, view.id):
        back = partial(library.metadata.keep_view, identity, view)
        actions.offer_undo("documents", _("The view {name} is removed.", name=view.name), back)


def tag(add: Sequence[str], remove: Sequence[str]) -> None:
    """Change the selected documents' tags, with an undo."""
    metadata, chosen = library.metadata, list(state.documents_selected)
    before = {row.id: set(row.tags) for row in state.documents_rows[1] if row.id in set(chosen)}

    def take_back() -> None:
        with one_act():
            for name in add:
                without = [i for i, tags in before.items() if name not in tags]
                if without and name not in remove:
                    metadata.tag(identity, without, remove=[name])
            for name in remove:
                if having := [i for i, tags in before.items() if name in tags]:
                    metadata.tag(identity, having, add=[name])

    if actions.attempt("documents_notice", metadata.tag, identity, chosen, add=add, remove=remove):
        words = ngettext(
            "The tags of {count} document were changed.", "The tags of {count} documents were changed.", len(chosen)
        )
        actions.offer_undo("documents", words, take_back)


def move(folder: str) -> None:
    """Move the selected documents into a folder, with an undo."""
    metadata, chosen = library.metadata, list(state.documents_selected)
    before: dict[str, list[UUID]] = {}
    for row in state.documents_rows[1]:
        if row.id in set(chosen):
            before.setdefault(row.folder, []).append(row.id)

    def take_back() -> None:
        with one_act():
            for name, document_ids in before.items():
                metadata.move(identity, document_ids, name)

    if actions.attempt("documents_notice", metadata.move, identity, chosen, folder):
        words = (
            ngettext(
                "{count} document is in {folder}.", "{count} documents are in {folder}.", len(chosen), folder=folder
            )
            if folder
            else ngettext("{count} document is in no folder.", "{count} documents are in no folder.", len(chosen))
        )
        actions.offer_undo("documents", words, take_back)


# Cards


def draw_queue() -> None:
    """Draw the documents being read, waiting for confirmation, being processed or just finished.

    While documents are processed, this part is redrawn regularly.
    """
    # Do not read the same state a second time right after a full run.
    full_state = state.pop("documents_drawn_whole", None)
    figures, (at_work, total) = full_state or read_state()
    snapshot = (at_work, total, [(f.status, f.documents) for f in figures])
    before = state.get("documents_seen")
    state.documents_seen = snapshot
    note_finished(before[0] if before else {}, at_work)
    if before != snapshot and full_state is None:
        st.rerun()  # figures and table above and below change too, and polling starts or ends

    if files := waiting_files(figures):
        decided = EstimateActions(
            confirm, confirm_all, discard_one, discard_all, keep_both, lambda d: take_back([d.id])
        )
        draw_estimates(files, figures, library, decided)
    draw_queue_state(library.queue_state(identity.tenant_id))
    totals = library.meaning_totals(identity.tenant_id)
    draw_meaning(totals.done, totals.passages)
    if at_work:
        st.header(_("In progress"), anchor=False)
        order = list(at_work)[:MOST_PROGRESS]
        active = library.find(identity, DocumentFilters(document_ids=tuple(order)))
        for document in sorted(active, key=lambda d: order.index(d.id)):
            draw_progress(document)
        draw_rest(total - len(order), DocumentStatus.PROCESSING)
    draw_just_finished()


def waiting_files(figures: Sequence[DocumentFigures]) -> list[WaitingFile]:
    """Return the files which wait for a decision, and the files decided on since the page was opened.

    The order is stable.
    """
    estimated = find_carded(figures, DocumentFilters(statuses=(DocumentStatus.ESTIMATED,)), newest_first=False)
    cards: dict[UUID, WaitingFile] = state.documents_cards
    for document in estimated:
        other = library.replaced_by(identity, document)
        differing = library.differing_pages(identity, document, other) if other is not None else ()
        cards[document.id] = WaitingFile(document, other, differing)
    waiting = {document.id for document in estimated}
    for document_id, card in cards.items():
        if document_id not in waiting and not card.decision:
            cards[document_id] = card._replace(decision=_("This file no longer needs a decision."))
    return list(cards.values())


def read_state() -> tuple[list[DocumentFigures], tuple[dict[UUID, DocumentStatus], int]]:
    """Return the library's totals, and the documents being processed: their states, and the total number."""
    # Read in this order: a document finished in between is then counted in the totals and drawn.
    at_work = library.at_work(identity, limit=2 * MOST_CARDS)
    return library.figures(identity), at_work


def note_finished(before: dict[UUID, DocumentStatus], at_work: dict[UUID, DocumentStatus]) -> None:
    """Remember documents which were being processed or uploaded on this page and have become ready, to announce
    them.
    """
    worked_on = {i for i, was in before.items() if was in ACTIVE}
    ended = tuple((worked_on | state.documents_followed) - at_work.keys())
    if ended:
        filters = DocumentFilters(document_ids=ended, statuses=(DocumentStatus.COMPLETED,))
        finished = [name.id for name in library.names(identity, filters, limit=None)]
        state.documents_followed.difference_update(finished)
        state.documents_finished = list(dict.fromkeys([*state.documents_finished, *finished]))


def draw_just_finished() -> None:
    """Draw the documents which became ready while this page was open."""
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


def find_carded(
    figures: Sequence[DocumentFigures], filters: DocumentFilters, *, newest_first: bool = True
) -> Sequence[Document]:
    """Return the documents to draw on cards: with these states, at most `MOST_CARDS`.

    If the totals have no document with these states, the database is not queried.
    """
    if not any(f.status in filters.statuses for f in figures):
        return []
    return library.find(identity, filters, sort="newest" if newest_first else "oldest", limit=MOST_CARDS)


def draw_troubled(figures: Sequence[DocumentFigures]) -> None:
    troubled = find_carded(figures, DocumentFilters(statuses=TROUBLED))
    if troubled:
        st.header(_("Needs attention"), anchor=False)
    for document in troubled:
        retry = (library.retry, identity, document.id)
        if draw_trouble(document, engine=library.recognition_engine, on_retry=attempt, retry=retry):
            put_in_bin([document.id])
            st.rerun()
    if troubled:
        number = sum(f.documents for f in figures if f.status in TROUBLED)
        draw_rest(number - len(troubled), DocumentStatus.FAILED)


# The library


def draw_library(figures: Sequence[DocumentFigures], collections: Sequence[Collection]) -> None:
    """Draw the library. A search or a ticked box redraws only this part of the page."""
    if state.pop("documents_whole", False):
        st.rerun()
    binned = library.bin.count(identity)
    if not figures and not binned:
        draw_empty(
            ":material/library_books:",
            _("**No documents yet**"),
            _("Add documents above. Answers use them as soon as they are ready."),
        )
        return
    names = {c.id: c.name for c in collections} if len(collections) > 1 else {}
    metadata = library.metadata
    shelves, views = metadata.shelves(identity), metadata.views(identity)
    query = draw_toolbar(
        LibraryContents(figures, names, shelves, views, owners(), binned),
        me=identity.account_id,
        on_save=with_page(save_view),
        on_drop=with_page(drop_view),
    )
    if query.is_bin:
        words = query.filters.text.casefold().split()
        draw_bin(
            [d for d in library.bin.list(identity) if all(w in f"{d.title} {d.file_name}".casefold() for w in words)],
            binned,
            on_restore=with_page(take_back_with_page),
            on_delete=delete_for_good,
            on_leave=show_all,
            is_confirmed_needed=lambda: actions.is_needed(identity),
        )
        return
    rows = rows_of(query, figures)
    present = {row.id for row in rows}
    state.documents_selected = [i for i in state.documents_selected if i in present]
    if not rows:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.caption(_("No document matches."), width="content")
            st.button(_("Show all documents"), key="documents_show_all", type="tertiary", on_click=show_all)
            draw_bin_opener(binned)
        return
    open_in_panel = with_page(lambda document_id: open_document(str(document_id)))
    # The row above the table has the same height with and without actions: ticking a box must not move the boxes.
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        if state.documents_selected:
            draw_selected()
        else:
            sentences = [ngettext("{count} document.", "{count} documents.", len(rows))]
            is_narrowed = query.filters != DocumentFilters()
            if len(rows) == MOST_ROWS:
                sentences.append(_("There are more documents. Search more precisely to see them."))
            elif is_narrowed:
                total = sum(f.documents for f in figures)
                sentences = [_("{shown} of {total} documents.", shown=thousands(len(rows)), total=thousands(total))]
            with st.container(horizontal=True, vertical_alignment="center", width="content"):
                if is_narrowed:
                    st.caption(" ".join(sentences), width="content")
                    st.button(_("Show all documents"), key="documents_show_all", type="tertiary", on_click=show_all)
                else:
                    sentences.append(_("Click a document to open it. Tick boxes to select documents."))
                    st.caption(" ".join(sentences), width="content")
                draw_bin_opener(binned)
            offered = [
                DocumentName(id=row.id, title=row.title, file_name=row.file_name, created_at=row.updated_at)
                for row in rows[:MOST_OFFERED]
            ]
            draw_opener(offered, on_open=open_in_panel)
    draw_table(rows, collections=names, today=today, on_open=open_in_panel, on_select=select)


def with_page(action: Callable[..., object]) -> Callable[..., None]:
    """Wrap a callback of the library, to redraw the whole page afterwards.

    Without the wrapper, only the library would be redrawn, but these actions change other parts too.
    """

    def run(*arguments: Any) -> None:
        action(*arguments)
        state.documents_whole = True

    return run


def rows_of(query: LibraryQuery, figures: Sequence[DocumentFigures]) -> list[DocumentRow]:
    """Return the rows for the current filters. They are read again only if the library or the filters have changed.

    Each click draws the page again. The totals are read each time. They change with every document, and thereby show
    whether the library has changed.
    """
    key = (query, tuple(figures))
    if state.get("documents_rows", (None,))[0] != key:
        filters = query.filters
        if filters.text:
            filters = replace(filters, found_ids=library.with_words(identity, filters.text))
        state.documents_rows = (key, library.rows(identity, filters, sort=query.sort, limit=MOST_ROWS))
    rows: list[DocumentRow] = state.documents_rows[1]
    return rows


def owners() -> dict[UUID, str]:
    """Return the possible document owners: everyone with an active account."""
    return {a.id: a.name or a.email for a in services().accounts.list(identity) if a.is_active}


def draw_selected() -> None:
    """Draw the actions for the selected documents."""
    chosen: list[UUID] = state.documents_selected

    def read_selected() -> None:
        limit = library.spending_limit(identity)
        each_document(lambda i: follow(library.versions.read_again(identity, i, confirmed_up_to=limit).id), chosen)

    def retry_selected() -> None:
        each_document(lambda i: library.retry(identity, i), selected_in(TROUBLED))

    def write_selected() -> None:
        each_document(
            lambda i: library.versions.run_again(identity, i, Step.TAG), selected_in((DocumentStatus.COMPLETED,))
        )

    draw_bulk(
        len(chosen),
        library.metadata.shelves(identity),
        BulkActions(
            on_tag=tag,
            on_move=move,
            on_retry=with_page(retry_selected),
            on_write_tags=with_page(write_selected),
            on_read=with_page(read_selected),
            on_replace=partial(ask_to_replace, is_open=True),
            on_delete=with_page(lambda: put_in_bin(chosen)),
            on_clear=clear_selection,
        ),
    )
    if state.get("documents_replacing"):
        ask_for_files()


def opened_document() -> Document | None:
    """Return the document named in the address, even a version which the library does not list."""
    try:
        return library.get(identity, UUID(st.query_params.get("document", "")))
    except (ValueError, RagError):
        return None


def draw_opened(document: Document) -> None:
    """Open a document's panel beside the library."""
    title = plain(document.title)
    icon, close = ":material/description:", partial(open_document, None)
    st.dialog(title, width=DRAWER_PIXELS, position="right", icon=icon, on_dismiss=close)(draw_panel)(document.id)


def draw_panel(document_id: UUID) -> None:
    """Draw a document: its actions and tabs. A click inside redraws only the panel."""
    try:
        document = library.get(identity, document_id)
    except RagError as error:
        st.info(plain(error.message), icon=":material/info:")
        return
    color = STATUSES[document.status][1]
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f":{color}-badge[{status_words(document)}] :gray[{plain(document.file_name)}]", width="content")
        if document.file_path:
            draw_original_link(document, key="documents_open_file")
        if document.status is DocumentStatus.COMPLETED:
            draw_steps(document, engine=library.recognition_engine, on_run=run_step, on_read=read_again)
        is_deleted = st.button(
            red(_("Delete this document")),
            key="documents_delete",
            icon=":material/delete:",
            type="tertiary",
            help=_("You can restore it from the bin for {BIN_DAYS} days.", BIN_DAYS=BIN_DAYS),
        )
        if is_deleted:
            put_in_bin([document.id])
            st.rerun()
    if remark := date_remark(document, today):
        st.caption(f":orange[:material/event_busy: {remark}]")
    draw_remarks(document)
    draw_repository(document)
    draw_reference(document)
    collection = library.collection(identity, document.collection_id)

    def draw_details() -> None:
        metadata = library.metadata
        draw_form(identity, document, metadata, owners(), metadata.shelves(identity), today=today)

    def draw_new_file() -> None:
        largest = ExtractionLimits.of(services().settings).maximum_bytes // 2**20
        draw_replacing(document, largest_mb=largest, on_file=replace_file)

    tabs = DetailTabs(
        details=draw_details,
        ask=lambda: draw_ask(identity, document, collection, services().answerer),
        questions=lambda: draw_questions(library.questions_of(identity, document)),
        replace=draw_new_file,
        correcting=Correcting(identity, library.corrections, open_corrected),
    )
    versions = library.versions.of(identity, document)
    draw_document(document, library, versions, tabs, on_restore=restore, on_open=open_document)


def draw_reference(document: Document) -> None:
    """Draw a reference document's processing steps, with buttons."""
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
    # After a move has started, keep following it even when it has ended: a new `expanded` value would close what is
    # open.
    if any(move.is_open for move in library.reembeddings.find(identity)):
        state.documents_moves = True
    with st.expander(
        _("Search models"),
        icon=":material/scatter_plot:",
        expanded=bool(state.get("documents_moves")),
        key="documents_models",
        on_change="rerun",
    ) as models:
        if models.open:
            draw_moves(identity, collections, problem="documents_notice")


def draw_notes() -> None:
    """Draw messages above the library: failures, duplicates, and deleted documents with a button to restore them."""
    actions.draw_problem("documents_notice")
    if binned := state.documents_binned:
        with st.container(border=True, horizontal=True, vertical_alignment="center", key="documents_undo_note"):
            sentence = ngettext(
                "{count} document is in the bin. You can restore it within {days} days.",
                "{count} documents are in the bin. You can restore them within {days} days.",
                len(binned),
                days=BIN_DAYS,
            )
            st.markdown(f":material/delete: {plain(sentence)}", width="stretch")
            st.button(_("Undo"), key="documents_undo", icon=":material/undo:", on_click=take_back, args=(binned,))
            st.button(_("Dismiss"), key="documents_undo_dismiss", type="tertiary", on_click=binned.clear)
    draw_unsaved()
    copies = state.documents_copies
    if copies:
        with st.container(border=True, key="documents_copies_note", gap="xsmall"):
            with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
                words = ngettext(
                    "{count} file is in the library already", "{count} files are in the library already", len(copies)
                )
                st.markdown(f":blue[:material/info:] **{words}**", width="stretch")
                st.button(_("Dismiss"), key="documents_copies_dismiss", type="tertiary", on_click=copies.clear)
            for name, document_id, title in copies[:MOST_CARDS]:
                with st.container(horizontal=True, vertical_alignment="center"):
                    st.caption(
                        _("{name} has the same content as “{title}”.", name=plain(name), title=plain(title)),
                        width="content",
                    )
                    if document_id is not None:
                        st.button(
                            _("Open it"),
                            key=f"documents_copy_{document_id}_{name}",
                            type="tertiary",
                            on_click=open_document,
                            args=(str(document_id),),
                        )


def draw_unsaved() -> None:
    """Draw which documents have unsaved changes, after their panel was closed without saving."""
    for document_id, unsaved in all_unsaved_edits().items():
        draw_unsaved_one(
            document_id,
            str(document_id),
            unsaved.title,
            partial(go_on_editing, document_id),
            discard_edits,
            document_id,
        )
    for key, draft in drafts().items():
        document = draft.document
        draw_unsaved_one(document.id, key, document.title, partial(go_on_correcting, draft), give_up, key)


def draw_unsaved_one(
    document_id: UUID, key: str, title: str, go_on: Callable[[], None], discard: Callable[..., None], *what: object
) -> None:
    """Draw a document's unsaved changes with the possible actions, unless its panel is open."""
    if st.query_params.get("document") == str(document_id):
        return
    with st.container(border=True, horizontal=True, vertical_alignment="center", key=f"documents_unsaved_{key}"):
        sentence = _("Your changes to “{title}” are not saved yet.", title=title)
        st.markdown(f":orange[:material/edit:] {plain(sentence)}", width="stretch")
        st.button(_("Continue editing"), key=f"documents_unsaved_open_{key}", on_click=go_on)
        st.button(
            _("Discard the changes"),
            key=f"documents_unsaved_discard_{key}",
            type="tertiary",
            on_click=discard,
            args=what,
        )


def go_on_correcting(draft: Draft) -> None:
    """Open a document at the page with an unsaved draft."""
    state[f"documents_tabs_{draft.document.id}"] = _("Pages")
    state[f"documents_page_{draft.document.id}"] = draft.page
    open_document(str(draft.document.id))


def go_on_editing(document_id: UUID) -> None:
    """Open a document's details with its unsaved changes."""
    state[f"documents_tabs_{document_id}"] = _("Details")
    open_document(str(document_id))


def draw_samples(total: int) -> None:
    """Offer to delete the samples if the company has other documents, because answers may come from the samples too."""
    samples = find_samples(services(), identity)
    if not 0 < len(samples) < total:
        return
    with st.container(border=True, horizontal=True, vertical_alignment="center", key="documents_samples"):
        sentence = ngettext(
            "{count} sample document from an invented company is still here and is used for answers like your own "
            "documents.",
            "{count} sample documents from an invented company are still here and are used for answers like your own "
            "documents.",
            len(samples),
        )
        st.markdown(f":material/science: {plain(sentence)}", width="stretch")
        st.button(
            red(ngettext("Delete {count} sample", "Delete {count} samples", len(samples))),
            key="documents_samples_delete",
            on_click=delete_samples,
            args=(samples,),
            help=_("You can restore these documents from the bin for {BIN_DAYS} days.", BIN_DAYS=BIN_DAYS),
        )


def draw_reminders() -> None:
    """Remind a person about their expired documents, and their documents due for review."""
    due = library.metadata.reminders(identity, owner_id=identity.account_id)
    sentences = []
    if due.expired:
        sentences.append(
            ngettext(
                "{count} document that you own is no longer valid.",
                "{count} documents that you own are no longer valid.",
                due.expired,
            )
        )
    if due.to_review:
        sentences.append(
            ngettext(
                "{count} document that you own is to be reviewed.",
                "{count} documents that you own are to be reviewed.",
                due.to_review,
            )
        )
    if sentences:
        view = _("Choose the view “{view}”.", view=_(VIEWS["mine"][0]))
        st.warning(plain(" ".join([*sentences, view])), icon=":material/event_busy:")


# The page

state.documents_whole = False
if to_restore := state.pop("documents_wanted_back", None):
    take_back(to_restore)
figures, at_work = read_state()
with st.container(
    key="documents_head", horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"
):
    st.title(_("Documents"), anchor=False, width="content")
    st.caption(totals(figures), width="content")
figures = [f for f in figures if f.documents]
collections = library.collections(identity)
limits = ExtractionLimits.of(services().settings)
default = library.choose(identity, in_chat=True)  # The same collection in which questions are asked.
# Streamlit finds a fragment by its place on the page. A note above would change the place, and Streamlit would drop a
# click already on its way. Containers keep the place.
with st.container(key="documents_above"):
    draw_upload(
        collections,
        limits,
        UploadActions(partial(attempt, library.set_spending_limit, identity), take, refuse),
        default=default,
        spending_limit=library.spending_limit(identity),
    )
    draw_notes()
    actions.draw_undo("documents", problem="documents_notice")
    draw_samples(sum(f.documents for f in figures))
    draw_reminders()
    for locked in list(state.documents_locked):
        draw_locked(locked, on_dismiss=forget, on_unlock=unlock)
    draw_refused_files(library.refused(identity), on_dismiss=lambda i: library.dismiss_refused(identity, i))
state.documents_drawn_whole = (figures, at_work)
# Also follow while a searchable document is tagged, because its message changes at the end; and while a job runs,
# because a free document waits for a moment between reading and processing.
is_followed = at_work[1] or any(f.status in ACTIVE for f in figures) or library.queue_state(identity.tenant_id).running
state.documents_interval = "1s" if is_followed else None
st.fragment(draw_queue, run_every=state.documents_interval)()
with st.container(key="documents_failures"):
    draw_troubled(figures)
st.fragment(draw_library)(figures, collections)
draw_models(collections)
opened = opened_document()
if opened is not None and not state.pop("documents_gives_way", False):
    draw_opened(opened)
