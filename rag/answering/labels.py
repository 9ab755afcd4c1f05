"""Label things for lists and widgets, and tell things with the same name apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import Generic, TypeVar

Option = TypeVar("Option", bound=Hashable)
Thing = TypeVar("Thing")
SHORT_ID = 8


class Labels(Mapping[Option, str], Generic[Option]):
    """A mapping from options to labels. `of` also has a label for deleted options, for Streamlit's `format_func`."""

    def __init__(self, labels: Mapping[Option, str], missing_label: str) -> None:
        self._labels = dict(labels)
        self._missing_label = missing_label

    def of(self, option: Option) -> str:
        return self._labels.get(option, self._missing_label)

    def as_text(self) -> Labels[str]:
        """Return the same labels keyed by `str(option)`, for use in URLs."""
        return Labels({str(option): label for option, label in self._labels.items()}, self._missing_label)

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
    missing_label: str = "No longer there",
) -> Labels[Option]:
    """Return a label for each thing.

    `parts` are functions. A label is the first part's text; equal labels also get the next parts, and finally the id.
    `option` returns a thing's key. `missing_label` is the label for unknown keys.
    """
    named = {option(thing): thing for thing in things}
    labels = {key: parts[0](thing) for key, thing in named.items()}
    for part in (*parts[1:], None):
        # Labels which differ only in spaces look the same, because Markdown and browsers join spaces.
        times = Counter(map(_collapse_spaces, labels.values()))
        for key, label in labels.items():
            if times[_collapse_spaces(label)] > 1:
                more = part(named[key]) if part else str(key)[:SHORT_ID]
                labels[key] = f"{label} · {more}" if more else label
    if len(set(map(_collapse_spaces, labels.values()))) < len(labels):
        labels = {key: f"{label} · {key}" for key, label in labels.items()}
    return Labels(labels, missing_label)


def _collapse_spaces(label: str) -> str:
    return " ".join(label.split())
