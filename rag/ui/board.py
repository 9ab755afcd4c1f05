"""Draw a notice board: the posts, a single post with its cited passage, and the syncs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date
from urllib.parse import urlsplit

import streamlit as st

from rag import language
from rag.ingestion.sources.runs import SCHEDULE, SyncRun
from rag.language import N_, _, table_date, translated
from rag.retrieval.ranking import attachments_of, category_of, web_address, without_attachments, written_on
from rag.types import Document
from rag.ui.formats import STATUSES, ago, count, file_size, money, status_badge, stored_cost, thousands
from rag.ui.text import marked, plain

#: Excerpts with this length are cut; the post has the rest.
EXCERPT_SHOWN = 200
MARKS = {"isPinned": N_("Pinned"), "isImportant": N_("Important")}


def draw_posts(
    posts: Sequence[Document], opened: str | None, *, with_costs: bool, on_open: Callable[[str | None], None]
) -> None:
    """Draw the posts as a table. `on_open` is called with the selected post's id, or `None`."""
    from rag.ui import lists  # Imported here: source cards need this module, and startup should not wait for pandas.

    ids = [str(post.id) for post in posts]
    marks, states = list(zip(map(_, MARKS.values()), ("orange", "red"), strict=True)), map(status_badge, STATUSES)
    columns = {
        _("Title"): lists.texts((post.title for post in posts), 220),
        _("Category"): lists.texts((category_of(post.metadata) for post in posts), 110),
        _("Date"): lists.Column(
            [post_day(post) for post in posts], st.column_config.DateColumn(format=table_date(), width=100)
        ),
        _("Labels"): lists.badges(map(_marks, posts), marks, 150),
        _("Files"): lists.numbers((int(post.metadata.get("attachmentCount") or 0) for post in posts), 50),
    }
    if with_costs:
        columns[_("Status")] = lists.badges(([status_badge(post.status)[0]] for post in posts), states, 85)
        costs = (money(stored_cost(post.costs, "total")) if post.costs else "–" for post in posts)
        columns[_("Cost")] = lists.amounts(costs, 75)
    key = lists.table_key("board_table", ids)

    def open_selected() -> None:
        rows = st.session_state[key].selection.rows
        on_open(ids[rows[0]] if rows else None)

    lists.draw(
        columns,
        key=key,
        on_select=open_selected,
        selection_mode="single-row",
        selection_default={"selection": {"rows": [ids.index(opened)]}} if opened in ids else None,
        alt=_("Posts of the notice board"),
    )


def _marks(post: Document) -> list[str]:
    return [_(words) for name, words in MARKS.items() if post.metadata.get(name) is True]


def draw_cards(posts: Sequence[Document], *, on_open: Callable[[str | None], None]) -> None:
    """Draw the posts as cards: title, category, date, badges, excerpt and files. `on_open` opens a post."""
    for post in posts:
        metadata = post.metadata
        with st.container(border=True, gap="small"):
            st.markdown(f"**{plain(post.title)}**")
            st.markdown(_marks_of(post))
            excerpt = str(metadata.get("excerpt") or "")
            if begins := " ".join(excerpt.split()).removeprefix(post.title).strip():
                st.markdown(f":gray[{plain(begins)}{'…' if len(excerpt) >= EXCERPT_SHOWN else ''}]")
            if files := attachments_of(metadata):
                names = ", ".join(str(item.get("fileName") or "") for item in files)
                st.caption(f":material/attach_file: {plain(names)}")
            st.button(
                _("Read"),
                key=f"board_read_{post.id}",
                icon=":material/article:",
                type="tertiary",
                on_click=on_open,
                args=(str(post.id),),
            )


def is_post(document: Document) -> bool:
    return "postId" in document.metadata


def post_day(document: Document) -> date:
    """Return the date in a post's metadata, else the day it was added."""
    return written_on(document.metadata) or document.created_at.date()


def marks_line(*, category: str, day: str, is_pinned: bool, is_important: bool) -> str:
    """Return a post's category, date, and badges for pinned and important posts, on a line in Markdown."""
    badges = [f":blue-badge[{plain(category)}]"] if category else []
    badges += [_(":orange-badge[:material/keep: Pinned]")] if is_pinned else []
    badges += [_(":red-badge[:material/priority_high: Important]")] if is_important else []
    return " ".join([*badges, *([f":gray[{plain(day)}]"] if day else [])])


def _marks_of(post: Document) -> str:
    metadata, day = post.metadata, language.day(post_day(post))
    is_pinned, is_important = metadata.get("isPinned") is True, metadata.get("isImportant") is True
    return marks_line(category=category_of(metadata), day=day, is_pinned=is_pinned, is_important=is_important)


def draw_post(document: Document, text: str, *, passage: str = "", terms: Sequence[str] = ()) -> None:
    """Draw a post: badges, text and attachments. A cited `passage` comes first, with `terms` highlighted."""
    metadata = document.metadata
    st.markdown(_marks_of(document))
    if passage:
        with st.container(border=True, gap="small"):
            st.markdown(_(":small[:gray[Cited passage]]"))
            st.markdown(marked(without_attachments(passage, metadata), terms))
    st.markdown(paragraphs(without_attachments(text, metadata)))
    draw_attachments(document)
    if address := web_address(metadata.get("postUrl")):
        host = plain(str(urlsplit(address).hostname))
        st.link_button(_("Open the original post"), address, icon=":material/open_in_new:", help=host)


def paragraphs(text: str) -> str:
    """Format a post's text as Markdown with all line breaks, for example in lists."""
    blocks = (block.strip("\n").split("\n") for block in text.split("\n\n"))
    return "\n\n".join("  \n".join(plain(line) for line in lines if line.strip()) for lines in blocks)


def draw_attachments(document: Document) -> None:
    """Draw a post's attachments with their descriptions."""
    attachments = attachments_of(document.metadata)
    if not attachments:
        return
    st.markdown(f"**{count(len(attachments), 'attachment')}**")
    for item in attachments:
        icon = ":material/image:" if item.get("kind") == "image" else ":material/attach_file:"
        size = item.get("fileSize")
        name, shown_size = plain(str(item.get("fileName") or "")), file_size(int(size)) if size else ""
        if address := str(item["url"]):
            st.link_button(f"{name} {shown_size}", address, icon=icon, help=plain(str(urlsplit(address).hostname)))
        else:
            st.markdown(f"{icon} {name} :gray[{shown_size}]")
        if description := str(item.get("description") or "") or translated(str(item.get("note") or "")):
            st.caption(plain(description))


RUN_WORDS = {"waiting": N_("Waiting"), "running": N_("Under way"), "done": N_("Done"), "failed": N_("Failed")}


RUN_COLORS = {"waiting": "gray", "running": "blue", "done": "green", "failed": "red"}


def draw_run(run: SyncRun) -> None:
    """Draw a sync on a single line, with a progress bar while the sync runs, and with its error, if any."""
    if run.is_open:
        st.progress(
            min(1.0, run.items_done / run.items_total) if run.items_total else 0.0,
            text=_("Comparing with the source: {run}", run=_so_far(run))
            if run.status == "running"
            else _("Waiting to begin"),
        )
    else:
        st.markdown(f":{RUN_COLORS[run.status]}-badge[{_(RUN_WORDS[run.status])}] {run_words(run)}")
    if run.message:
        st.caption(plain(language.translated(run.message)))


def _so_far(run: SyncRun) -> str:
    return (
        _("{items_done} of {items_total}", items_done=thousands(run.items_done), items_total=thousands(run.items_total))
        if run.items_total
        else _("{items_done} so far", items_done=thousands(run.items_done))
    )


def run_words(run: SyncRun) -> str:
    """Describe a sync: "2 added, 1 changed, 8 unchanged, 5 min ago, $0.0004"."""
    schedule_note = _(" · started by its schedule") if run.asked_by == SCHEDULE else ""
    when = ago(run.finished_at or run.created_at)
    return f"{plain(changed_words(run))} · {when} · {plain(cost_words(run))}{schedule_note}"


def changed_words(run: SyncRun) -> str:
    """Describe a sync's changes: "2 added, 1 changed, 8 unchanged"."""
    counted = [
        (run.added, N_("{number} added")),
        (run.updated, N_("{number} changed")),
        (run.unchanged, N_("{number} unchanged")),
        (run.removed, N_("{number} removed")),
        (run.failed, N_("{number} could not be read")),
    ]
    numbers = [_(words, number=thousands(number)) for number, words in counted if number]
    return ", ".join(numbers) or _("No documents found")


def cost_words(run: SyncRun) -> str:
    """Format a sync's cost; "free of charge" if no paid call was made."""
    return money(run.cost) if run.cost is not None or not run.is_priced else _("free of charge")
