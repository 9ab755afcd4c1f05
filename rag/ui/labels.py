"""Labels of what a widget lets people choose from.

Streamlit sends the label of a choice back, not the choice: of two options with one label the first is chosen, whichever
was clicked. So labels of things that people name themselves are made distinct here, and a widget is given the labels of
the run before as its value, so that a label may change while something is chosen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import Generic, TypeVar
from uuid import UUID

import streamlit as st

from rag.types import Document, DocumentName
from rag.ui.formats import date_time, time_zone

Option = TypeVar("Option", bound=Hashable)
Thing = TypeVar("Thing")
SHORT_ID = 8


class Labels(Mapping[Option, str], Generic[Option]):
    """Labels by option, no two equal. `of` is for `format_func`: it also names what is no longer there."""

    def __init__(self, labels: Mapping[Option, str], gone: str) -> None:
        self._labels = dict(labels)
        self._gone = gone

    def of(self, option: Option) -> str:
        return self._labels.get(option, self._gone)

    def as_text(self) -> Labels[str]:
        """The same labels by the options as text, as an address has them."""
        return Labels({str(option): label for option, label in self._labels.items()}, self._gone)

    def __getitem__(self, option: Option) -> str:
        return self._labels[option]

    def __iter__(self) -> Iterator[Option]:
        return iter(self._labels)

    def __len__(self) -> int:
        return len(self._labels)


def distinct_labels(
    things: Iterable[Thing],
    option: Callable[[Thing], Option],
    *parts: Callable[[Thing], str],
    gone: str = "No longer there",
) -> Labels[Option]:
    """Label each thing by its first part; those with equal labels by the next parts as well, at last by their ids."""
    named = {option(thing): thing for thing in things}
    labels = {key: parts[0](thing) for key, thing in named.items()}
    for part in (*parts[1:], None):
        # Told apart as people see them: Markdown and browsers show any number of spaces as one.
        times = Counter(map(_seen, labels.values()))
        for key, label in labels.items():
            if times[_seen(label)] > 1:
                more = part(named[key]) if part else str(key)[:SHORT_ID]
                labels[key] = f"{label} · {more}" if more else label
    if len(set(map(_seen, labels.values()))) < len(labels):
        labels = {key: f"{label} · {key}" for key, label in labels.items()}
    return Labels(labels, gone)


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


def _seen(label: str) -> str:
    return " ".join(label.split())
