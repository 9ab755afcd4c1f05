"""Show the notice board: the posts and the post behind a citation. Administrators also see the sync.

Everyone may read the searchable posts. Only administrators see the posts' state, the costs and the source.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

import streamlit as st

from rag.errors import RagError
from rag.language import N_, _, ngettext, translated
from rag.library.documents import DOCUMENTS_PER_PAGE
from rag.profiles import holds_posts
from rag.profiles.notices.posts import PostsMapping
from rag.profiles.notices.sources import SampleBoard
from rag.profiles.notices.table import PostsTable
from rag.services import require, services
from rag.types import Collection, Document, DocumentStatus, PostFilters, Role
from rag.ui.actions import attempt, draw_problem
from rag.ui.board import draw_cards, draw_post, draw_posts, draw_run, is_post
from rag.ui.collection_sources import draw_schedule
from rag.ui.formats import count, field_label, status_badge, thousands
from rag.ui.lists import paging
from rag.ui.text import plain
from rag.ui.widgets import choose_collection, draw_empty, drawn, name_labels, search_box, words_of

identity = require(Role.EMPLOYEE)
running = services()
library = running.documents
is_admin = identity.may(Role.ADMIN)
state = st.session_state
state.setdefault("board_problem", "")
MARKS = {"isPinned": N_("Pinned"), "isImportant": N_("Important"), "attachmentCount": N_("With attachments")}
#: By mark in a post's metadata: the figure which counts the board's posts with this mark.
MARKED_BY = {"isPinned": "pinned", "isImportant": "important", "attachmentCount": "with_attachments"}
MOST_RUNS = 10
GROUP_WORDS = {"": N_("Posts"), "categories": N_("Categories"), "attachments": N_("Attachments")}


# What the buttons do


def open_post(document_id: str | None) -> None:
    """Store the opened post's id in the address, to survive a refresh and to share the link."""
    if document_id is not None:
        st.query_params["post"] = document_id
    elif "post" in st.query_params:
        del st.query_params["post"]


def sync(collection: Collection) -> None:
    attempt("board_problem", running.syncs.request, identity, collection)


def save_source(collection: Collection) -> None:
    state.board_problem = ""
    settings: dict[str, Any] = {}
    for group, names in column_groups().items():
        columns = {name: state[f"board_column_{group}_{name}"].strip() for name in names}
        changed = {name: value for name, value in columns.items() if value and value != names[name]}
        settings |= changed if not group else {group: changed} if changed else {}
    hidden = [status.strip().lower() for status in state.board_hidden.split(",") if status.strip()]
    settings["hidden_statuses"] = hidden
    try:
        running.syncs.set_source(identity, collection, PostsTable.kind, settings)
        st.toast(_("The source is saved."), icon=":material/check:")
    except RagError as error:
        state.board_problem = error.message


def column_groups() -> dict[str, dict[str, str]]:
    """Return the default column names of the source tables, by group: posts under "", categories, attachments."""
    usual = PostsMapping()
    return {
        "": {name: value for name, value in usual.model_dump().items() if isinstance(value, str)},
        "categories": usual.categories.model_dump(),
        "attachments": usual.attachments.model_dump(),
    }


def ask_board(collection: Collection) -> None:
    """Begin a new conversation with this board on the page Chat."""
    state.chat_collection = collection.id
    state.board_asks = True


# Drawing


def draw_sync(collection: Collection) -> None:
    """Draw the board's last sync; while a sync runs, update the drawing."""
    runs = running.syncs.runs(identity, collection.id, limit=MOST_RUNS)
    at_work = sum(f.at_work for f in library.board_figures(identity, collection.id, only_ready=False))
    if state.get("board_was_active") and not at_work and not any(run.is_open for run in runs):
        state.board_was_active = False
        st.rerun()  # Show the current posts in the table and the figures.
    if at_work or any(run.is_open for run in runs):
        state.board_was_active = True
    for source in running.syncs.sources(collection):
        if source.kind != SampleBoard.kind:
            with st.container(horizontal=True, vertical_alignment="center"):
                st.markdown(f":material/schedule: {_('**Follows its source**')}", width="content")
                draw_schedule(running.syncs, identity, collection, source, problem="board_problem")
    if not runs:
        if not is_sample(collection):
            st.caption(_("This board has not been synced yet. Enter below where its posts come from, then sync."))
        return
    draw_run(runs[0])
    if at_work:
        st.caption(
            ngettext(
                "{count} post is being read and prepared for the search.",
                "{count} posts are being read and prepared for the search.",
                at_work,
            )
        )
    if len(runs) > 1:
        with st.expander(_("Earlier syncs"), icon=":material/history:"):
            for run in runs[1:]:
                draw_run(run)


def is_sample(collection: Collection) -> bool:
    return any(source.kind == SampleBoard.kind for source in running.syncs.sources(collection))


def draw_source(collection: Collection) -> None:
    """Draw a form with the names for the source table and columns from which the posts come."""
    sources = running.syncs.sources(collection)
    if is_sample(collection):
        st.caption(
            _(
                "These posts are samples that come with the product. For your own board, make a collection on the "
                "page Collections with the profile Notice board. Then enter here which table of your database holds "
                "the posts."
            )
        )
        return
    settings = next((source.settings for source in sources if source.kind == PostsTable.kind), {})
    with st.expander(_("Where the posts come from"), icon=":material/database:"), st.form("board_source", border=False):
        st.caption(
            _(
                "Write the names of the table and its columns in your database. If a field is empty, the usual name is "
                "used."
            )
        )
        for group, names in column_groups().items():
            st.markdown(f"**{_(GROUP_WORDS[group])}**")
            stored_names = settings.get(group, {}) if group else settings
            with st.container(horizontal=True):
                for name, usual in names.items():
                    st.text_input(
                        plain(field_label(name)),
                        str(stored_names.get(name, usual)),
                        key=f"board_column_{group}_{name}",
                        max_chars=127,
                        placeholder=usual,
                        width=200,
                    )
        hidden = settings.get("hidden_statuses", PostsMapping().hidden_statuses)
        st.text_input(_("Posts with these statuses are left out"), ", ".join(hidden), key="board_hidden", max_chars=500)
        st.form_submit_button(_("Save"), key="board_save_source", on_click=save_source, args=(collection,))


def draw_opened(document: Document) -> None:
    words, color = status_badge(document.status)
    with st.container(border=True):
        badge = f" :{color}-badge[{words}]" if is_admin else ""
        st.header(f"{plain(document.title)}{badge}", anchor=False)
        if is_admin and document.message:
            st.caption(plain(translated(document.message)))
        pages = library.pages(identity, document.id)
        draw_post(document, "\n".join(page.text for page in pages))


def opened_post(board: Collection) -> Document | None:
    """Return the post named in the address, if the post belongs to this board and this person may read it."""
    try:
        post = library.get(identity, UUID(st.query_params.get("post", "")))
    except (ValueError, RagError):
        return None
    is_shown = is_post(post) and post.collection_id == board.id and post.status is not DocumentStatus.SUPERSEDED
    return post if is_shown and (is_admin or post.status is DocumentStatus.COMPLETED) else None


# The page

boards = [c for c in library.collections(identity) if holds_posts(c)]
st.title(_("Notice board"), anchor=False)
if not boards:
    st.caption(_("There is no notice board. An administrator can make one on the page Collections."))
    st.stop()
default = running.syncs.default_collection(identity)
boards.sort(key=lambda c: default is None or c.id != default.id)
board = boards[0]
if len(boards) > 1:
    chosen = choose_collection({c.id: c.name for c in boards}, key="board_chosen", label=_("Board"), width=320)
    board = next((c for c in boards if c.id == chosen), board)
figures = library.board_figures(identity, board.id, only_ready=not is_admin)
runs = running.syncs.runs(identity, board.id, limit=1) if is_admin else []

with st.container(horizontal=True, vertical_alignment="center"):
    number, pinned = sum(f.posts for f in figures), sum(f.pinned for f in figures)
    st.markdown(
        f"{plain(board.name)} · {count(number, 'post')}" + (_(" · {pinned} pinned", pinned=pinned) if pinned else ""),
        width="content",
    )
    st.space("stretch")
    if number:
        st.button(
            _("Ask this board"),
            key="board_ask",
            icon=":material/forum:",
            type="primary",
            on_click=ask_board,
            args=(board,),
        )
    if is_admin:
        st.button(_("Sync now"), key="board_sync", icon=":material/sync:", on_click=sync, args=(board,))
if state.pop("board_asks", False):
    st.switch_page("chat.py")
with st.container(key="board_notes"):  # Keeps the parts below in place.
    draw_problem("board_problem")
if is_admin:
    is_active = any(run.is_open for run in runs) or any(f.at_work for f in figures)
    st.fragment(draw_sync, run_every="1s" if is_active else None)(board)

if figures:
    with st.container(horizontal=True, vertical_alignment="center"):
        text = search_box(_("Search by title"), key="board_text", live=True, width=280)
        categories = name_labels({f.category: f.category for f in figures})
        category = st.pills(
            _("Category"),
            list(categories),
            selection_mode="multi",
            format_func=drawn(categories),
            key="board_categories",
            label_visibility="collapsed",
            wrap=True,
        )
        marks = st.pills(
            _("Labels"),
            [name for name, counted in MARKED_BY.items() if any(getattr(f, counted) for f in figures)],
            selection_mode="multi",
            format_func=words_of(MARKS),
            key="board_marks",
            label_visibility="collapsed",
            wrap=True,
        )
    filters = PostFilters(
        collection_id=board.id,
        only_ready=not is_admin,
        text=text,
        categories=tuple(category),
        is_pinned="isPinned" in marks,
        is_important="isImportant" in marks,
        has_attachments="attachmentCount" in marks,
    )
    total = library.count_posts(identity, filters)
    paged = paging("board_page", filters, total, rows=DOCUMENTS_PER_PAGE)
    posts = library.posts(identity, filters, offset=paged.offset)
    opened = opened_post(board)
    if opened is not None:
        st.button(
            _("Close"), key="board_close", icon=":material/close:", type="tertiary", on_click=open_post, args=(None,)
        )
        draw_opened(opened)
    as_table = is_admin and (
        st.segmented_control(
            _("View"),
            [N_("Cards"), N_("Table")],
            default="Cards",
            key="board_view",
            format_func=_,
            label_visibility="collapsed",
            required=True,
        )
        == "Table"
    )
    if posts and as_table:
        draw_posts(posts, st.query_params.get("post"), with_costs=is_admin, on_open=open_post)
    elif posts:
        draw_cards(posts, on_open=open_post)
    else:
        st.caption(_("No post matches."))
    if paged.pages > 1:
        with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
            st.caption(
                _(
                    "{first} to {first_2} of {found}",
                    first=thousands(paged.offset + 1),
                    first_2=thousands(paged.offset + len(posts)),
                    found=count(total, "post"),
                ),
                width="content",
            )
            paged.draw()
else:
    draw_empty(
        ":material/campaign:",
        _("**No posts yet**"),
        _("Sync to get the posts.")
        if is_admin
        else _("You can read posts and ask about them as soon as they are here."),
    )
if is_admin:
    draw_source(board)
