"""Labels of what a widget lets people choose from.

Streamlit sends the label of a choice back, not the choice: of two options with one label the first is chosen, whichever
was clicked. So labels of things that people name themselves are made distinct here, and a widget is given the labels of
the run before as its value, so that a label may change while something is chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from uuid import UUID

import streamlit as st

from rag.answering.labels import Labels, Option, distinct_labels
from rag.types import Document, DocumentName
from rag.ui.formats import date_time, time_zone
from rag.ui.text import plain

__all__ = ["Labels", "distinct_labels", "document_labels", "drawn", "keep_chosen", "name_labels", "page_of_list"]


def document_labels(documents: Iterable[Document | DocumentName]) -> Labels[UUID]:
    """Documents by their titles; where these are equal also by file name and day."""
    zone = time_zone(st.context.timezone)
    return distinct_labels(
        documents,
        lambda document: document.id,
        lambda document: document.title,
        lambda document: document.file_name,
        lambda document: date_time(document.created_at, zone),
        gone="Deleted document",
    )


def name_labels(names: Mapping[Option, str], *, gone: str = "No longer there") -> Labels[Option]:
    """Things that have nothing but a name."""
    return distinct_labels(names.items(), lambda item: item[0], lambda item: item[1], gone=gone)


def drawn(labels: Labels[Option]) -> Callable[[Option], str]:
    """Labels for pills, radio buttons and segmented controls, which draw Markdown. Boxes show labels as they are."""
    return lambda option: plain(labels.of(option))


def keep_chosen(key: str) -> None:
    """Let a widget keep what is chosen in it though its options, or their labels, are others in this run.

    To be called before the widget is drawn. What is chosen is read with the labels that the browser was sent, then sent
    with those of this run.
    """
    if key in st.session_state:
        st.session_state[key] = st.session_state[key]


def page_of_list(key: str, looked_for: object, pages: int) -> tuple[int, str]:
    """The page of a list that is turned to, never one past the end, and the key of its `st.pagination`.

    When something else is looked for the key is another, and so the first page is shown.
    """
    state = st.session_state
    turn, before = state.get(f"{key}_turn", (0, looked_for))
    if before != looked_for:
        turn += 1
    state[f"{key}_turn"] = (turn, looked_for)
    return min(int(state.get(f"{key}_{turn}", 1)), pages), f"{key}_{turn}"
