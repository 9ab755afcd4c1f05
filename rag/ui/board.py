"""A notice board as a table of its posts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pandas as pd
import streamlit as st

from rag.retrieval.posts import category_of
from rag.types import Document
from rag.ui.document_details import known_cost
from rag.ui.document_names import STATUSES
from rag.ui.formats import money
from rag.ui.posts import post_day

MARKS = {"isPinned": "Pinned", "isImportant": "Important"}


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
