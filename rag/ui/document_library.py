"""Draw the library: totals, filters and views, the table, bulk actions, and the bin."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from decimal import Decimal
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

import streamlit as st

from rag.answering.labels import Labels, distinct_labels
from rag.language import N_, _, day, ngettext
from rag.library.bin import BIN_DAYS, MOST_LISTED, BinnedDocument
from rag.library.metadata import SavedView, Shelves
from rag.types import (
    Document,
    DocumentFigures,
    DocumentFilters,
    DocumentName,
    DocumentRow,
    DocumentSort,
    DocumentStatus,
)
from rag.ui import lists
from rag.ui.document_details import COST_STEPS
from rag.ui.formats import (
    STATUSES,
    TAGS_WAITING,
    WAITING,
    count,
    duration,
    kind_name,
    language_name,
    money,
    status_badge,
    stored_cost,
    thousands,
)
from rag.ui.text import plain
from rag.ui.widgets import (
    ask_to_confirm,
    document_labels,
    drawn,
    keep_chosen,
    name_labels,
    red,
    search_box,
    words_of,
)

Listed = TypeVar("Listed", Document, DocumentRow, BinnedDocument)

SORTS: Mapping[DocumentSort, str] = {
    "newest": N_("Newest first"),
    "oldest": N_("Oldest first"),
    "title": N_("By title"),
    "language": N_("By language"),
    "pages": N_("Most pages first"),
    "chunks": N_("Most passages first"),
    "size": N_("Largest first"),
    "cost": N_("Most expensive first"),
}
#: The most documents in the table; a filter finds the rest.
MOST_ROWS = 20_000
#: Visible rows: the page does not scroll on a laptop.
VISIBLE_ROWS = 13
DUE: Mapping[str, str] = {"": N_("Any date"), "expired": N_("No longer valid"), "review": N_("To be reviewed")}
#: Views available to everyone, with their filters.
VIEWS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "all": (N_("All documents"), {}),
    "attention": (N_("Needs attention"), {"statuses": ["failed", "needs_ocr", "estimated"]}),
    "expired": (N_("No longer valid"), {"due": "expired"}),
    "review": (N_("To be reviewed"), {"due": "review"}),
    "mine": (N_("Owned by me"), {"owner_id": "me"}),
}


def totals(figures: Sequence[DocumentFigures]) -> str:
    """Format the library's counts and costs as a line in Markdown."""
    ready = [f for f in figures if f.status is DocumentStatus.COMPLETED]
    unpriced = sum(f.unpriced for f in figures)
    cost = plain(money(sum((f.cost for f in figures), Decimal(0))))
    facts = [
        ngettext("**{count} document** ready", "**{count} documents** ready", sum(f.documents for f in ready)),
        count(sum(f.pages for f in ready), "page"),
        count(sum(f.chunks for f in ready), "passage"),
        _("{cost} spent on processing", cost=cost),
    ]
    if unpriced:
        facts.append(_("{documents} with no known price", documents=count(unpriced, "document")))
    return " · ".join(facts)


# Filters


#: Choices hidden inside the filters: the button says how many are set.
WITHIN_FILTERS = (
    "documents_wanted",
    "documents_language",
    "documents_kind",
    "documents_only",
    "documents_owner",
    "documents_due",
)


class LibraryQuery(NamedTuple):
    """The filters and the sort order chosen in the toolbar, and whether the bin is open."""

    filters: DocumentFilters
    sort: DocumentSort
    is_bin: bool


def view_keys(filters: Mapping[str, Any], *, me: UUID) -> dict[str, Any]:
    """Return the values which a saved view gives the toolbar's widgets, by widget key."""
    owner = filters.get("owner_id") or None
    collection = filters.get("collection_id") or None
    return {
        "documents_text": filters.get("text", ""),
        "documents_wanted": [DocumentStatus(status) for status in filters.get("statuses", [])],
        "documents_language": filters.get("language", ""),
        "documents_kind": filters.get("mime_type", ""),
        "documents_folder": filters.get("folder", ""),
        "documents_tag": filters.get("tag", ""),
        "documents_due": filters.get("due", ""),
        "documents_owner": me if owner == "me" else UUID(str(owner)) if owner else None,
        "documents_only": UUID(str(collection)) if collection else None,
    }


class LibraryContents(NamedTuple):
    """The choices for each filter in the toolbar, and the counts shown there."""

    figures: Sequence[DocumentFigures]
    #: Names by id; empty if there is only one collection.
    collections: Mapping[UUID, str]
    shelves: Shelves
    views: Sequence[SavedView]
    owners: Mapping[UUID, str]
    #: The number of documents in the bin.
    binned: int


def draw_toolbar(
    contents: LibraryContents,
    *,
    me: UUID,
    on_save: Callable[[str, DocumentFilters], None],
    on_drop: Callable[[SavedView], None],
) -> LibraryQuery:
    """Draw the search box, the views and the filters. The widgets' values are ids, never names."""
    saved = {str(view.id): view for view in contents.views}
    names = {key: _(words) for key, (words, _filters) in VIEWS.items()}
    names |= {key: view.name for key, view in saved.items()}
    names["bin"] = _("Bin ({number})", number=thousands(contents.binned)) if contents.binned else _("Bin")
    labels = name_labels(names)

    def use_view() -> None:
        key = st.session_state.documents_view
        filters = saved[key].filters if key in saved else VIEWS[key][1] if key in VIEWS else {}
        st.session_state.update(view_keys(filters, me=me))
        st.session_state.documents_selected = []
        lists.draw_table_again("documents_table")

    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        text = search_box(_("Search in titles and text"), key="documents_text", live="60ms", width=225)
        keep_chosen("documents_view")
        view = st.selectbox(
            _("View"),
            list(labels),
            format_func=labels.of,
            key="documents_view",
            on_change=use_view,
            label_visibility="collapsed",
            width=196,
        )
        in_folders = all_folders(contents.shelves.folders)
        folders = {"": _("All folders"), **{name: f"{name} ({thousands(n)})" for name, n in in_folders.items()}}
        folder = _choice(_("Folder"), folders, "documents_folder", width=165)
        tags = {"": _("All tags"), **{name: f"{name} ({thousands(n)})" for name, n in contents.shelves.tags.items()}}
        tag = _choice(_("Tag"), tags, "documents_tag", width=182)
        set_within = sum(bool(st.session_state.get(key)) for key in WITHIN_FILTERS)
        words = _("Filters ({number})", number=set_within) if set_within else _("Filters")
        with st.popover(words, icon=":material/tune:", key="documents_filters", width="content"):
            statuses = status_labels(contents.figures)
            keep_chosen("documents_wanted")
            chosen_statuses = st.pills(
                _("Status"),
                list(statuses),
                selection_mode="multi",
                format_func=drawn(statuses),
                key="documents_wanted",
            )
            used_languages = {f.language: language_name(f.language) for f in contents.figures if f.language}
            languages = {"": _("All languages"), **used_languages}
            language = _choice(_("Language"), languages, "documents_language")
            kinds = {"": _("All kinds"), **{f.mime_type: kind_name(f.mime_type) for f in contents.figures}}
            kind = _choice(_("Kind of file"), kinds, "documents_kind")
            everywhere = _("All collections")
            only = (
                _id_choice(_("Collection"), everywhere, contents.collections, "documents_only")
                if contents.collections
                else None
            )
            owner = _id_choice(_("Owner"), _("Any owner"), contents.owners, "documents_owner")
            dates = {name: _(words) for name, words in DUE.items()}
            due = _choice(_("Dates"), dates, "documents_due")
            sort = st.selectbox(_("Order"), list(SORTS), format_func=words_of(SORTS), key="documents_sort")
            filters = DocumentFilters(
                text=text,
                statuses=tuple(chosen_statuses),
                language=language,
                mime_type=kind,
                collection_id=only,
                folder=folder,
                tag=tag,
                owner_id=owner,
                due="expired" if due == "expired" else "review" if due == "review" else "",
            )
            _draw_saving(filters, saved.get(view), on_save, on_drop)
    return LibraryQuery(filters, sort, view == "bin")


def all_folders(folders: Mapping[str, int]) -> dict[str, int]:
    """Return all folders and parent folders, each with the number of documents below."""
    counted: dict[str, int] = {}
    for name, number in folders.items():
        parts = name.split("/")
        for depth in range(1, len(parts) + 1):
            within = "/".join(parts[:depth])
            counted[within] = counted.get(within, 0) + number
    return dict(sorted(counted.items()))


def _draw_saving(
    filters: DocumentFilters,
    opened: SavedView | None,
    on_save: Callable[[str, DocumentFilters], None],
    on_drop: Callable[[SavedView], None],
) -> None:
    st.divider()
    name = st.text_input(
        _("Save these filters as a view"), placeholder=_("Name of the view"), key="documents_view_name"
    )
    with st.container(horizontal=True):
        st.button(
            _("Save view"),
            key="documents_view_save",
            icon=":material/bookmark_add:",
            disabled=not (name or "").strip(),
            on_click=on_save,
            args=(name, filters),
        )
        if opened is not None:
            st.button(
                red(_("Remove the view {name}", name=plain(opened.name))),
                key=f"documents_view_drop_{opened.id}",
                on_click=on_drop,
                args=(opened,),
                help=_("The documents stay as they are."),
            )


def status_labels(figures: Sequence[DocumentFigures]) -> Labels[DocumentStatus]:
    """Label document states with the number of documents in each."""
    counted = {status: sum(f.documents for f in figures if f.status is status) for status in DocumentStatus}
    return name_labels({status: f"{status_badge(status)[0]} {number}" for status, number in counted.items() if number})


def _choice(label: str, names: Mapping[str, str], key: str, *, width: int | None = None) -> str:
    """Draw a select box. If `width` is given, the label is hidden.

    A value which is no longer offered becomes "", which means no choice.
    """
    if st.session_state.get(key, "") not in names:
        st.session_state[key] = ""
    labels = name_labels(names)
    keep_chosen(key)
    chosen = st.selectbox(
        label,
        list(labels),
        format_func=labels.of,
        key=key,
        label_visibility="collapsed" if width else "visible",
        width=width or "stretch",
    )
    return str(chosen or "")


def _id_choice(label: str, everything: str, names: Mapping[UUID, str], key: str) -> UUID | None:
    if st.session_state.get(key) not in names:
        st.session_state[key] = None
    labels = name_labels(names)
    keep_chosen(key)
    chosen = st.selectbox(label, list(labels), index=None, placeholder=everything, format_func=labels.of, key=key)
    return chosen if isinstance(chosen, UUID) else None


# The table


def status_words(document: Document | DocumentRow) -> str:
    """Return the words on a document's badge."""
    if not document.is_waiting:
        return status_badge(document.status)[0]
    return _((TAGS_WAITING if document.status is DocumentStatus.COMPLETED else WAITING)[0])


def draw_table(
    rows: Sequence[DocumentRow],
    *,
    collections: Mapping[UUID, str],
    today: date,
    on_open: Callable[[UUID], None],
    on_select: Callable[[list[UUID]], None],
) -> None:
    """Draw the documents as a table. Only the visible rows are read.

    `on_open` is called with a document's id when its row is clicked, and `on_select` with the ids of the ticked rows.
    Each title is a button, and the script `document_rows` turns a click anywhere in a row into a click on the title.
    Cells do not open documents themselves, because every arrow key would then open a document. The table's key changes
    with its rows: a click never refers to a different table's rows.
    """
    ids = [row.id for row in rows]
    state = st.session_state
    key = lists.table_key("documents_table", ids)
    if state.get("documents_table_drawn", ("",))[0] != key:
        chosen = set(state.get("documents_selected", []))
        state.documents_table_drawn = (key, [place for place, document_id in enumerate(ids) if document_id in chosen])

    def open_clicked() -> None:
        clicked = state[f"{key}_open"]
        if clicked is not None and 0 <= clicked["row"] < len(ids):
            on_open(ids[clicked["row"]])

    def take_selected() -> None:
        on_select([ids[place] for place in state[key].selection.rows if place < len(ids)])

    columns = _columns(rows, collections, today)
    button = st.column_config.ButtonColumn(
        width=226,
        alignment="left",
        type="tertiary",
        on_click=open_clicked,
        key=f"{key}_open",
        # Only where there is something to scroll to: a pinned column does not grow with the page.
        pinned=len(columns) >= VISIBLE_COLUMNS,
    )
    # A button's label draws icons by name; a name typed by a person must stay text.
    names = [title.replace(":material/", ":\u200bmaterial/") for title in titles(rows, _title)]
    lists.draw(
        {_("Title"): lists.Column(names, button)} | columns,
        key=key,
        on_select=take_selected,
        selection_mode="multi-row",
        selection_default={"selection": {"rows": state.documents_table_drawn[1]}},
        height=36 + 33 * min(max(len(rows), 1), VISIBLE_ROWS),
        alt=_("Documents of the library. A click on a row opens its document; a ticked box selects it."),
    )


#: The number of columns a page with 1280 pixels has room for.
VISIBLE_COLUMNS = 8
#: The badge for a document in use after its last day.
EXPIRED = (N_("Expired"), "red")


def _columns(rows: Sequence[DocumentRow], collections: Mapping[UUID, str], today: date) -> dict[str, lists.Column]:
    def status(row: DocumentRow) -> list[str]:
        is_over = row.valid_until is not None and row.valid_until < today and row.status is DocumentStatus.COMPLETED
        return [_(EXPIRED[0]) if is_over else status_words(row)]

    states = [(_(words), color) for words, color in (*STATUSES.values(), WAITING, TAGS_WAITING, EXPIRED)]
    columns = {
        _("File name"): lists.texts((row.file_name for row in rows), 128),
        _("Status"): lists.badges(map(status, rows), states, 92),
        _("Language"): lists.texts((language_name(row.language) for row in rows), 104),
        _("Owner"): lists.texts((row.owner_name or "–" for row in rows), 80),
        _("Updated"): lists.times((row.updated_at for row in rows), 94, with_time=False),
        _("Cost"): lists.amounts((money(row.cost) if row.has_cost else "–" for row in rows), 72),
    }
    if any(row.folder for row in rows):
        columns[_("Folder")] = lists.texts((row.folder for row in rows), 102)
    if any(row.tags for row in rows):
        columns[_("Tags")] = lists.Column([row.tags for row in rows], st.column_config.ListColumn(width=140))
    columns |= columns_of_kinds(rows)
    if collections:
        columns[_("Collection")] = lists.texts((collections.get(row.collection_id, "–") for row in rows), 108)
    return columns


def titles(rows: Sequence[Listed], title: Callable[[Listed], str] = attrgetter("title")) -> list[str]:
    """Return the rows' titles. Equal titles are distinguished by the file name, then by the day."""
    labels = distinct_labels(
        rows,
        lambda row: row.id,
        title,
        lambda row: row.file_name,
        lambda row: day(row.binned_at if isinstance(row, BinnedDocument) else row.updated_at),
    )
    return [labels.of(row.id) for row in rows]


def _title(row: DocumentRow) -> str:
    return row.title if row.version == 1 else _("{title} (version {version})", title=row.title, version=row.version)


# Actions on the selected documents


class BulkActions(NamedTuple):
    """Callbacks for actions on the selected documents."""

    on_tag: Callable[[list[str], list[str]], None]
    on_move: Callable[[str], None]
    on_retry: Callable[[], None]
    on_write_tags: Callable[[], None]
    on_read: Callable[[], None]
    on_replace: Callable[[], None]
    on_delete: Callable[[], None]
    on_clear: Callable[[], None]


def draw_bulk(number: int, shelves: Shelves, actions: BulkActions) -> None:
    # A single row in every language, ending before the table's tools on the right. A wrapped row would move the boxes
    # away from the mouse.
    with st.container(key="documents_bulk", horizontal=True, vertical_alignment="center", gap="xsmall"):
        st.button(
            _("**{number} selected**", number=thousands(number)),
            key="documents_bulk_clear",
            type="tertiary",
            icon=":material/close:",
            help=_("Clear the selection"),
            on_click=actions.on_clear,
        )
        with st.popover(_("Tag"), icon=":material/label:", key="documents_bulk_tags"), st.form("documents_bulk_tag"):
            add = st.multiselect(_("Add"), list(shelves.tags), accept_new_options=True, key="documents_bulk_tag_add")
            remove = st.multiselect(_("Remove"), list(shelves.tags), key="documents_bulk_tag_remove")
            if st.form_submit_button(_("Change {number}", number=count(number, "document")), icon=":material/check:"):
                actions.on_tag(add, remove)
                st.rerun()
        with (
            st.popover(_("Move"), icon=":material/drive_file_move:", key="documents_bulk_folders"),
            st.form("documents_bulk_move"),
        ):
            folder = st.selectbox(
                _("Move to the folder"),
                list(all_folders(shelves.folders)),
                index=None,
                accept_new_options=True,
                placeholder=_("No folder"),
                key="documents_bulk_folder",
                help=_("A new name makes a folder. Policies/Leave is the folder Leave within Policies."),
            )
            if st.form_submit_button(_("Move {number}", number=count(number, "document")), icon=":material/check:"):
                actions.on_move(folder or "")
                st.rerun()
        with st.popover(_("More"), icon=":material/more_horiz:", key="documents_bulk_more"):
            st.button(
                _("Replace with new files"),
                key="documents_bulk_replace",
                width="stretch",
                help=_("You see which pages differ before anything is replaced."),
                on_click=actions.on_replace,
            )
            for words, key, action in (
                (_("Read the files again"), "documents_bulk_read", actions.on_read),
                (_("Try failed documents again"), "documents_bulk_retry", actions.on_retry),
                (_("Write missing summaries and topics"), "documents_bulk_write", actions.on_write_tags),
            ):
                st.button(words, key=key, width="stretch", on_click=action)
            st.caption(
                _(
                    "In the meantime, answers still use the documents. Steps that cost money start only after you "
                    "confirm their cost."
                )
            )
        st.button(
            red(_("Delete {number}", number=count(number, "document"))),
            key="documents_bulk_delete",
            icon=":material/delete:",
            help=_("You can restore these documents from the bin for {BIN_DAYS} days.", BIN_DAYS=BIN_DAYS),
            on_click=actions.on_delete,
        )


def draw_opener(offered: Sequence[DocumentName], *, on_open: Callable[[UUID], None]) -> None:
    """Draw a box to open a document by name. With a screen reader, rows in a table are hard to reach."""
    labels = document_labels(offered)
    # The labels are part of the key: the browser answers with a label it was sent.
    key = f"documents_opener_{hash(tuple(labels.items()))}"

    def open_chosen() -> None:
        chosen = st.session_state[key]
        if isinstance(chosen, UUID):
            on_open(chosen)
        st.session_state[key] = None

    st.selectbox(
        _("Open a document"),
        list(labels),
        index=None,
        format_func=labels.of,
        placeholder=_("Open a document by its name"),
        key=key,
        on_change=open_chosen,
        label_visibility="collapsed",
        width=320,
    )


# The bin


def draw_bin(
    binned: Sequence[BinnedDocument],
    number: int,
    *,
    on_restore: Callable[[list[UUID]], None],
    on_delete: Callable[[list[UUID]], None],
    on_leave: Callable[[], None],
    is_confirmed_needed: Callable[[], bool],
) -> None:
    """Draw the deleted documents, buttons to restore or delete them, and a button to return to the library."""
    explanation = _(
        "Deleted documents are kept here for {BIN_DAYS} days. During this time, answers do not use them.",
        BIN_DAYS=BIN_DAYS,
    )
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(explanation, width="content")
        st.button(_("Show all documents"), key="documents_leave_bin", type="tertiary", on_click=on_leave)
    if not number:
        st.info(_("The bin is empty."), icon=":material/delete_outline:")
        return
    if not binned:
        st.caption(_("No document matches."))
        return
    picked = lists.choose_rows(
        binned,
        {
            _("Title"): titles(binned),
            _("File name"): [document.file_name for document in binned],
            _("Pages"): [document.page_count for document in binned],
            _("Deleted"): lists.times(document.binned_at for document in binned),
            _("Deleted by"): [document.binned_by_name or "–" for document in binned],
            _("Kept until"): lists.times(document.kept_until for document in binned),
        },
        key="documents_bin",
        alt=_("Deleted documents, who deleted them, and until when they are kept"),
    )
    if number > MOST_LISTED == len(binned):
        st.caption(_("Only the latest {SHOWN} of {number} are shown.", SHOWN=MOST_LISTED, number=thousands(number)))
    chosen = [document.id for document in picked]
    if not chosen:
        st.caption(_("Tick documents to restore them."))
        return
    with st.container(horizontal=True):
        st.button(
            ngettext("Restore {count} document", "Restore {count} documents", len(chosen)),
            key="documents_bin_restore",
            icon=":material/restore_from_trash:",
            type="primary",
            on_click=on_restore,
            args=(chosen,),
        )
        if st.button(
            red(ngettext("Delete {count} document for good", "Delete {count} documents for good", len(chosen))),
            key="documents_bin_delete",
            icon=":material/delete_forever:",
        ):
            if is_confirmed_needed():
                return
            ask_to_confirm(
                ngettext("Delete {count} document for good?", "Delete {count} documents for good?", len(chosen)),
                *(f"**{plain(document.title)}** :gray[{plain(document.file_name)}]" for document in picked[:5]),
                _(
                    "Pages, passages and files are removed now. Their costs stay in the analytics. This cannot be "
                    "undone."
                ),
                action=ngettext("Delete {count} document", "Delete {count} documents", len(chosen)),
                on_confirm=lambda: on_delete(chosen),
                key="documents_bin_sure",
                keeps=_("Keep them") if len(chosen) > 1 else "",
            )


def draw_cost_table(documents: Sequence[Document]) -> None:
    """Draw processing costs, a row per document and a column per step."""
    steps = {**{step: _(label) for step, label in COST_STEPS.items()}, "total": _("Total")}
    lists.draw(
        {
            _("Title"): lists.texts(titles(documents), 260),
            _("Pages"): [d.page_count for d in documents],
            _("Passages"): [d.chunk_count for d in documents],
            **{
                label: lists.amounts(money(stored_cost(d.costs, step)) for d in documents)
                for step, label in steps.items()
            },
            _("Time"): lists.amounts(duration(d.processing_ms) for d in documents),
        },
        key="documents_cost_table",
        alt=_("Cost of each processing step, for documents that are ready"),
    )


def columns_of_kinds(documents: Sequence[Document | DocumentRow]) -> dict[str, lists.Column]:
    """Return the columns which apply only to some kinds of documents: stars, topics, department.

    Empty columns are left out.
    """
    repositories = [d.metadata.get("repository") or {} for d in documents]
    columns = {}
    if any(repositories):
        columns[_("Stars")] = lists.numbers((r.get("stars") for r in repositories), 70, style="localized")
        columns[_("Topics")] = lists.texts((", ".join(map(str, r.get("topics") or [])) for r in repositories), 160)
    if any(d.metadata.get("department") for d in documents):
        columns[_("Department")] = lists.texts((str(d.metadata.get("department") or "–") for d in documents), 120)
    return columns
