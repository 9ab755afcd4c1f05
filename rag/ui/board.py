"""A notice board as a table of its posts, and its syncs in words."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pandas as pd
import streamlit as st

from rag.ingestion.syncs import SyncRun
from rag.retrieval.posts import category_of
from rag.types import Document
from rag.ui.document_details import known_cost
from rag.ui.document_names import STATUSES
from rag.ui.formats import ago, money
from rag.ui.posts import post_day
from rag.ui.text import plain

MARKS = {"isPinned": "Pinned", "isImportant": "Important"}
RUN_WORDS = {"waiting": "Waiting", "running": "Under way", "done": "Done", "failed": "Failed"}
RUN_COLORS = {"waiting": "gray", "running": "blue", "done": "green", "failed": "red"}


def draw_posts(
    posts: Sequence[Document], opened: str | None, *, with_costs: bool, on_open: Callable[[str | None], None]
) -> None:
    """The posts as a table; `on_open` is called with the id of the selected one, or None."""
    ids = [str(post.id) for post in posts]
    table = pd.DataFrame(
        {
            "Title": [post.title for post in posts],
            "Category": [category_of(post.metadata) for post in posts],
            "Date": [post_day(post) for post in posts],
            "Marks": [[words for name, words in MARKS.items() if post.metadata.get(name) is True] for post in posts],
            "Files": [int(post.metadata.get("attachmentCount") or 0) for post in posts],
            **(
                {
                    "State": [[STATUSES[post.status][0]] for post in posts],
                    "Cost": [money(known_cost(post.costs, "total")) if post.costs else "–" for post in posts],
                }
                if with_costs
                else {}
            ),
        }
    )
    # A selection is a row number: with other rows it would open another post, so the rows are part of the key.
    key = f"board_table_{hash(tuple(ids))}"

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
        column_config={
            "Title": st.column_config.TextColumn(width=220),
            "Category": st.column_config.TextColumn(width=110),
            "Date": st.column_config.DateColumn(format="D MMM YYYY", width=100),
            "Marks": st.column_config.MultiselectColumn(
                options=list(MARKS.values()), color=["orange", "red"], width=150
            ),
            "Files": st.column_config.NumberColumn(width=50),
            "State": st.column_config.MultiselectColumn(
                options=[words for words, _ in STATUSES.values()],
                color=[color for _, color in STATUSES.values()],
                width=85,
            ),
            "Cost": st.column_config.TextColumn(alignment="right", width=75),
        },
        alt="Posts of the notice board",
    )


def draw_run(run: SyncRun) -> None:
    """A sync in one line, with a bar while it is under way and what kept it from ending."""
    if run.is_open:
        st.progress(
            min(1.0, run.items_done / run.items_total) if run.items_total else 0.0,
            text=f"Comparing posts: {_so_far(run)}" if run.status == "running" else "Waiting to begin",
        )
    else:
        st.markdown(f":{RUN_COLORS[run.status]}-badge[{RUN_WORDS[run.status]}] {run_words(run)}")
    if run.message:
        st.caption(plain(run.message))


def _so_far(run: SyncRun) -> str:
    return f"{run.items_done:,} of {run.items_total:,}" if run.items_total else f"{run.items_done:,} so far"


def run_words(run: SyncRun) -> str:
    """What a sync found: "2 added, 1 changed, 8 unchanged, 5 min ago, $0.0004"."""
    counted = [
        (run.added, "added"),
        (run.updated, "changed"),
        (run.unchanged, "unchanged"),
        (run.removed, "removed"),
        (run.failed, "could not be read"),
    ]
    found = ", ".join(f"{number:,} {word}" for number, word in counted if number) or "Nothing there"
    cost = money(run.cost) if run.cost is not None or not run.is_priced else "free of charge"
    return f"{found} · {ago(run.finished_at or run.created_at)} · {plain(cost)}"
