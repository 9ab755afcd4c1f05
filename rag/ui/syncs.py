"""A sync of a collection with its source, in words."""

from __future__ import annotations

import streamlit as st

from rag.ingestion.sources.runs import SyncRun
from rag.ui.formats import ago, money
from rag.ui.text import plain

RUN_WORDS = {"waiting": "Waiting", "running": "Under way", "done": "Done", "failed": "Failed"}
RUN_COLORS = {"waiting": "gray", "running": "blue", "done": "green", "failed": "red"}


def draw_run(run: SyncRun) -> None:
    """A sync in one line, with a bar while it is under way and what kept it from ending."""
    if run.is_open:
        st.progress(
            min(1.0, run.items_done / run.items_total) if run.items_total else 0.0,
            text=f"Comparing: {_so_far(run)}" if run.status == "running" else "Waiting to begin",
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
