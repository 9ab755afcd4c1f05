"""Tables of items: columns with their widths, and the selected rows.

A page names the rows and, by title, the columns:

    gap = lists.choose_row(gaps, {_("Question"): lists.texts((gap.question for gap in gaps), 215)}, key="gaps", alt="…")
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any, Literal, NamedTuple, TypeVar

import pandas as pd
import streamlit as st

from rag.language import table_date

Row = TypeVar("Row")
#: Pixels, or a Streamlit size; `None` fits the content.
Width = int | Literal["small", "medium", "large"] | None
#: Pixels of a letter in a head, of a square letter, and of the space around a head.
LETTER, SQUARE_LETTER, AROUND = 7.8, 13.2, 16
by_id: Callable[[Any], Hashable] = attrgetter("id")


class Column(NamedTuple):
    """A table's column: `values`, one per row, and `look`, a value from `st.column_config`."""

    values: Any
    look: Any


#: Columns by title. Plain values get the look that fits their type.
Columns = Mapping[str, Any]


def texts(values: Iterable[str | None], width: Width = None) -> Column:
    return Column(values, st.column_config.TextColumn(width=width))


def amounts(values: Iterable[str], width: Width = None, *, help_text: str | None = None) -> Column:
    """Return a table column with formatted figures, aligned on the right."""
    return Column(values, st.column_config.TextColumn(alignment="right", width=width, help=help_text))


def numbers(
    values: Iterable[float | None], width: Width = None, *, style: Any = None, help_text: str | None = None
) -> Column:
    """Return a table column with numbers; `style` is a Streamlit number format, for example "localized"."""
    return Column(values, st.column_config.NumberColumn(width=width, format=style, help=help_text))


def bars(values: Iterable[float | None], width: Width = None) -> Column:
    """Return a table column which shows bars for numbers. The largest number has a full bar."""
    values = list(values)
    most = max((value for value in values if value is not None), default=0) or 1
    return Column(values, st.column_config.ProgressColumn(min_value=0, max_value=most, format="localized", width=width))


def times(values: Iterable[Any], width: Width = None, *, with_year: bool = True, with_time: bool = True) -> Column:
    """Return a table column with times in the reader's language and time zone."""
    date_format = table_date(with_year=with_year, with_time=with_time)
    zone = st.context.timezone
    return Column(values, st.column_config.DatetimeColumn(format=date_format, timezone=zone, width=width))


def badges(values: Iterable[Sequence[str]], colors: Iterable[tuple[str, str]], width: Width = None) -> Column:
    """Return a table column which shows lists of words as badges. `colors` has pairs (word, colour)."""
    options, color = zip(*colors, strict=True)
    return Column(values, st.column_config.MultiselectColumn(options=list(options), color=list(color), width=width))


def draw(columns: Columns, *, alt: str, key: str | None = None, **options: Any) -> Any:
    """Draw a table and return the value from `st.dataframe`. `options` are further arguments for `st.dataframe`."""
    values = {title: column.values if isinstance(column, Column) else column for title, column in columns.items()}
    looks = {title: _with_room(title, c.look) for title, c in columns.items() if isinstance(c, Column)}
    frame = pd.DataFrame({title: list(v) if isinstance(v, Iterator) else v for title, v in values.items()})
    return st.dataframe(frame, hide_index=True, placeholder="–", key=key, column_config=looks, alt=alt, **options)


def _with_room(title: str, look: Any) -> Any:
    if not isinstance(look, dict) or not isinstance(look["width"], int):
        return look
    letters = sum(SQUARE_LETTER if ord(letter) > 0x2E80 else LETTER for letter in look["label"] or title)
    return look | {"width": max(look["width"], round(letters + AROUND))}


def choose_row(
    rows: Sequence[Row], columns: Columns, *, key: str, alt: str, of: Callable[[Row], Hashable] = by_id
) -> Row | None:
    """Draw rows as a table, and return the selected row, or `None`.

    `of(row)` returns a hashable value with everything the table shows about the row. If the rows or these values
    change, the selection is cleared.
    """
    key = table_key(key, map(of, rows))
    chosen = draw(columns, alt=alt, key=key, on_select="rerun", selection_mode="single-row")
    return next(iter(_selected(chosen, rows)), None)


def choose_rows(
    rows: Sequence[Row], columns: Columns, *, key: str, alt: str, of: Callable[[Row], Hashable] = by_id
) -> list[Row]:
    """Draw rows as a table like `choose_row`, and return the ticked rows in their order."""
    key = table_key(key, map(of, rows))
    chosen = draw(columns, alt=alt, key=key, on_select="rerun", selection_mode="multi-row")
    return _selected(chosen, rows)


def act_on_row(
    rows: Sequence[Row],
    columns: Columns,
    on_choose: Callable[[Row], object],
    *,
    key: str,
    alt: str,
    of: Callable[[Row], Hashable] = by_id,
) -> None:
    """Draw rows as a table like `choose_row`. `on_choose` gets the selected row before the page is drawn again."""
    key = table_key(key, map(of, rows))

    def pass_on() -> None:
        for row in _selected(st.session_state[key], rows):
            on_choose(row)

    draw(columns, alt=alt, key=key, on_select=pass_on, selection_mode="single-row")


def _selected(table: Any, rows: Sequence[Row]) -> list[Row]:
    return [rows[place] for place in sorted(table.selection.rows) if place < len(rows)]


def table_key(name: str, of: Iterable[Hashable]) -> str:
    """Return a key for a table with these rows. When the rows change, the key changes to a value never used before.

    A browser sends row numbers, and remembers the selection by key. With a reused key, the numbers would mean different
    items.
    """
    state, rows = st.session_state, hash(tuple(of))
    version, before = state.get(f"{name}_turn", (0, None))
    if before != rows:
        version += 1
        state[f"{name}_turn"] = (version, rows)
    return f"{name}_{version}"


def draw_table_again(name: str) -> None:
    """Make the next run draw a table without a selection, although its rows are unchanged."""
    version, _rows = st.session_state.get(f"{name}_turn", (0, None))
    st.session_state[f"{name}_turn"] = (version, None)


class Paging(NamedTuple):
    """The current page of a long list, from 1 and never past the last."""

    page: int
    pages: int
    rows: int
    key: str

    @property
    def offset(self) -> int:
        """The number of rows before this page."""
        return (self.page - 1) * self.rows

    def draw(self) -> None:
        """Draw the page numbers to choose from, if there are several pages."""
        if self.pages > 1:
            st.pagination(self.pages, key=self.key)


def paging(key: str, looked_for: object, total: int, *, rows: int) -> Paging:
    """Return the page to show, if `total` items are divided into pages with `rows` items each.

    `looked_for` is the search; when it changes, the first page is shown.
    """
    state, pages = st.session_state, max(-(-total // rows), 1)
    version, before = state.get(f"{key}_turn", (0, looked_for))
    if before != looked_for:
        version += 1
    state[f"{key}_turn"] = (version, looked_for)
    return Paging(min(int(state.get(f"{key}_{version}", 1)), pages), pages, rows, f"{key}_{version}")
