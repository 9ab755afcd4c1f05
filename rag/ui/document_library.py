"""Draw the library: its totals, the filters, the table of documents, and actions on many at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any
from uuid import UUID

import pandas as pd
import streamlit as st

from rag.answering.labels import Labels
from rag.language import N_, _
from rag.types import (
    Document,
    DocumentFigures,
    DocumentFilters,
    DocumentSort,
    DocumentStatus,
)
from rag.ui.board import is_post
from rag.ui.document_details import COST_STEPS
from rag.ui.formats import (
    STATUSES,
    TAGS_WAITING,
    WAITING,
    count,
    duration,
    file_size,
    kind_name,
    known_cost,
    method_name,
    money,
    status_badge,
    thousands,
)
from rag.ui.text import plain
from rag.ui.widgets import choose_collection, document_labels, drawn, keep_chosen, name_labels, words_of

SORTS: Mapping[DocumentSort, str] = {
    "newest": N_("Newest first"),
    "oldest": N_("Oldest first"),
    "title": N_("By title"),
    "language": N_("By language"),
    "pages": N_("Most pages first"),
    "chunks": N_("Most chunks first"),
    "size": N_("Largest first"),
    "cost": N_("Most expensive first"),
}


def draw_empty_library() -> None:
    with st.container(border=True, horizontal_alignment="center"):
        st.space("small")
        st.markdown(f":material/library_books: {_('**No documents yet**')}", width="content")
        st.caption(_("Add documents above. They are answered from as soon as they are ready."), width="content")
        st.space("small")


def draw_filters(
    figures: Sequence[DocumentFigures], collections: Mapping[UUID, str]
) -> tuple[DocumentFilters, DocumentSort]:
    """Draw the filters that have something to choose, and the order; return both."""
    statuses = status_labels(figures)
    with st.container(horizontal=True, vertical_alignment="center"):
        text = st.text_input(
            _("Search by name"),
            type="search",
            live=True,
            placeholder=_("Search by title or file name"),
            key="documents_text",
            label_visibility="collapsed",
            width=320,
        )
        only = None
        if collections:
            only = choose_collection(collections, key="documents_only", everything=_("All collections"), width=240)
        kinds = {f.mime_type: kind_name(f.mime_type) for f in figures}
        kind = _choice(_("Kind"), _("All kinds"), kinds, "documents_kind")
        languages = {f.language: f.language for f in figures}
        language = _choice(_("Language"), _("All languages"), languages, "documents_language")
        methods = {str(f.chunking_method): method_name(f.chunking_method) for f in figures}
        method = _choice(_("Chunking"), _("Any chunking"), methods, "documents_filter_method")
        sort = st.selectbox(
            _("Order"),
            list(SORTS),
            format_func=words_of(SORTS),
            key="documents_sort",
            label_visibility="collapsed",
            width=180,
        )
        wanted = st.pills(
            _("Status"),
            list(statuses),
            selection_mode="multi",
            format_func=drawn(statuses),
            key="documents_wanted",
            label_visibility="collapsed",
        )
    filters = DocumentFilters(
        text=text or "",
        statuses=tuple(wanted),
        language=language,
        method=method,
        mime_type=kind,
        collection_id=only,
    )
    return filters, sort


def status_labels(figures: Sequence[DocumentFigures]) -> Labels[DocumentStatus]:
    """Return the states of documents, with how many documents have each."""
    counted = {status: sum(f.documents for f in figures if f.status is status) for status in DocumentStatus}
    return name_labels({status: f"{status_badge(status)[0]} {number}" for status, number in counted.items() if number})


def _choice(label: str, everything: str, values: Mapping[str, str], key: str) -> str:
    names = name_labels({"": everything, **{value: values[value] for value in sorted(values) if value}})
    keep_chosen(key)
    return (
        st.selectbox(label, list(names), format_func=names.of, key=key, label_visibility="collapsed", width=150) or ""
    )


def draw_totals(figures: Sequence[DocumentFigures]) -> None:
    """Draw what the library holds and what it cost."""
    ready = [f for f in figures if f.status is DocumentStatus.COMPLETED]
    unpriced = sum(f.unpriced for f in figures)
    cost = money(sum((f.cost for f in figures), Decimal(0)))
    with st.grid(4, min_column_width=150):
        st.metric(_("Ready documents"), f"{sum(f.documents for f in ready):,}", icon=":material/task:", border=True)
        st.metric(_("Pages"), f"{sum(f.pages for f in ready):,}", icon=":material/auto_stories:", border=True)
        st.metric(_("Chunks"), f"{sum(f.chunks for f in ready):,}", icon=":material/grid_view:", border=True)
        st.metric(
            _("Processing cost"),
            plain(cost) + (" \\+" if unpriced else ""),
            icon=":material/payments:",
            border=True,
            help=_(
                "Of the documents below. {unpriced} with unpriced calls come on top.",
                unpriced=count(unpriced, "document"),
            )
            if unpriced
            else _("Of the documents below."),
        )


def status_words(document: Document) -> str:
    """Return the words of a document's badge."""
    if not document.is_waiting:
        return status_badge(document.status)[0]
    return _((TAGS_WAITING if document.status is DocumentStatus.COMPLETED else WAITING)[0])


def draw_table(
    shown: Sequence[Document],
    opened: str | None,
    *,
    collections: Mapping[UUID, str] | None = None,
    on_open: Callable[[str | None], None],
) -> None:
    """Draw the documents as a table, with the names of their `collections` where given.

    `on_open` is called with the id of the selected row, or None.
    """
    ids = [str(d.id) for d in shown]
    table = pd.DataFrame(
        {
            _("Title"): [
                d.title if d.version == 1 else _("{title} (version {version})", title=d.title, version=d.version)
                for d in shown
            ],
            **({_("Collection"): [collections.get(d.collection_id, "–") for d in shown]} if collections else {}),
            _("Status"): [[status_words(d)] for d in shown],
            **columns_of_kinds(shown),
            _("Kind"): [_("Post") if is_post(d) else kind_name(d.mime_type, "–") for d in shown],
            _("Pages"): [d.page_count for d in shown],
            _("Chunks"): [d.chunk_count for d in shown],
            _("Size"): [file_size(d.file_size) for d in shown],
            _("Cost"): [money(known_cost(d.costs, "total")) if d.costs else "–" for d in shown],
            _("Added by"): [d.added_by_name or "–" for d in shown],
            _("Added"): [d.created_at for d in shown],
            _("Chunking"): [method_name(d.chunking_method) for d in shown],
            _("Language"): [d.language for d in shown],
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
            _("Title"): st.column_config.TextColumn(width=260),
            _("Status"): st.column_config.MultiselectColumn(
                options=[_(words) for words, _color in (*STATUSES.values(), WAITING, TAGS_WAITING)],
                color=[color for _words, color in (*STATUSES.values(), WAITING, TAGS_WAITING)],
                width=110,
            ),
            _("Kind"): st.column_config.TextColumn(width=80),
            _("Pages"): st.column_config.NumberColumn(format="localized", width=70),
            _("Chunks"): st.column_config.NumberColumn(format="localized", width=75),
            _("Chunking"): st.column_config.TextColumn(width=90),
            _("Language"): st.column_config.TextColumn(width=80),
            **column_settings(),
            _("Size"): st.column_config.TextColumn(alignment="right", width=80),
            _("Cost"): st.column_config.TextColumn(alignment="right", width=85),
            _("Added by"): st.column_config.TextColumn(width=120),
            _("Added"): st.column_config.DatetimeColumn(
                format="D MMM YYYY, HH:mm", timezone=st.context.timezone, width=150
            ),
        },
        alt=_("Documents of the library"),
    )


def draw_opener(
    shown: Sequence[Document], opened: str | None, *, is_whole: bool, on_open: Callable[[str | None], None]
) -> None:
    """Draw a box to open a document by name: a table's rows are hard to reach by keyboard or screen reader.

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
        _("Open a document"),
        list(titles),
        index=list(titles).index(opened) if opened is not None and opened in titles else None,
        format_func=titles.of,
        placeholder=_("Open a document") if is_whole else _("Open a document of this page"),
        key=key,
        on_change=open_chosen,
        label_visibility="collapsed",
        width=320,
    )


def draw_cost_table(documents: Sequence[Document]) -> None:
    """Draw what processing cost, a row per document and a column per step."""
    steps = {**{step: _(label) for step, label in COST_STEPS.items()}, "total": _("Total")}
    st.dataframe(
        pd.DataFrame(
            {
                _("Title"): [d.title for d in documents],
                _("Pages"): [d.page_count for d in documents],
                _("Chunks"): [d.chunk_count for d in documents],
                **{label: [money(known_cost(d.costs, step)) for d in documents] for step, label in steps.items()},
                _("Time"): [duration(d.processing_ms) for d in documents],
            }
        ),
        key="documents_cost_table",
        hide_index=True,
        height=min(38 + 35 * len(documents), 260),
        column_config={
            _("Title"): st.column_config.TextColumn(width=260),
            **{label: st.column_config.TextColumn(alignment="right") for label in (*steps.values(), _("Time"))},
        },
        alt=_("Cost per step of the documents that became ready"),
    )


def columns_of_kinds(shown: Sequence[Document]) -> dict[str, list[Any]]:
    """Return columns that only some documents fill: stars, topics, department; none where nothing has them."""
    repositories = [d.metadata.get("repository") or {} for d in shown]
    columns: dict[str, list[Any]] = {}
    if any(repositories):
        columns["Stars"] = [r.get("stars") if r else None for r in repositories]
        columns["Topics"] = [", ".join(map(str, r.get("topics") or [])) for r in repositories]
    if any(d.metadata.get("department") for d in shown):
        columns["Department"] = [str(d.metadata.get("department") or "–") for d in shown]
    return columns


def column_settings() -> dict[str, Any]:
    """Return the settings of these columns."""
    return {
        "Stars": st.column_config.NumberColumn(format="localized", width=70),
        "Topics": st.column_config.TextColumn(width=160),
        "Department": st.column_config.TextColumn(width=120),
    }


def draw_bulk(
    number: int,
    *,
    count_shares: Callable[[], tuple[int, int]],
    on_retry: Callable[[], None],
    on_tag: Callable[[], None],
    on_delete: Callable[[], None],
) -> None:
    """Draw the actions on all documents that pass the filters, on every page of the table.

    How many of them failed and how many lack tags is counted only while the menu is open.
    """
    menu = st.popover(
        _("All {number}", number=count(number, "document")),
        icon=":material/checklist:",
        key="documents_bulk",
        on_change="rerun",
    )
    if not menu.open:
        return
    with menu:
        failed, untagged = count_shares()
        st.button(
            _("Try {failed} failed again", failed=thousands(failed)),
            key="documents_bulk_retry",
            width="stretch",
            disabled=not failed,
            on_click=on_retry,
        )
        st.button(
            _("Tag {untagged} without tags", untagged=thousands(untagged)),
            key="documents_bulk_tag",
            width="stretch",
            disabled=not untagged,
            on_click=on_tag,
        )
        sure = st.checkbox(_("Yes, delete them for good"), key="documents_bulk_sure")
        st.button(
            _("Delete {number}", number=thousands(number)),
            key="documents_bulk_delete",
            width="stretch",
            disabled=not sure,
            on_click=on_delete,
        )
