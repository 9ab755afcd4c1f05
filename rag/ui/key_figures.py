"""The row of figures on top of analytics: each with its change against the period before and its course by day."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Literal, NamedTuple

import streamlit as st

from rag.records.analytics import Period, Summary
from rag.ui.formats import count, duration, money, percent
from rag.ui.text import plain

DeltaColor = Literal["normal", "inverse", "off"]
HELP = {
    "median": "Half of the answers were complete within this time.",
    "p95": "95 of 100 answers were complete within this time.",
    "answered": "Of all questions that came to an end, small talk left out. The rest was answered perhaps, not in the "
    "documents, stopped, refused or failed.",
}


class Change(NamedTuple):
    """What stands under a figure; None where there is nothing to compare with. Only a notable change has a colour."""

    shown: str | int | None
    is_notable: bool = False


def draw_key_figures(summary: Summary, period: Period) -> None:
    now, before, days = summary.current, summary.previous, summary.by_day
    cost = "unpriced" if now.known_cost is None else plain(money(now.known_cost))
    cost_help = "From the ledger: answering questions and processing documents."
    if now.unpriced_calls:
        cost_help += f" {count(now.unpriced_calls, 'call')} without a known price on top."
    medians = [day.median_ms for day in days if day.median_ms is not None]
    slowest = [day.p95_ms for day in days if day.p95_ms is not None]
    answered = [day.answered / day.closed for day in days if day.closed]
    helpful = [day.helpful / day.rated for day in days if day.rated]
    # Three beside each other, two on a phone: the six never leave one alone in a row.
    with st.grid(3, min_column_width=150):
        _draw_figure(
            "Questions",
            f"{now.questions:,}",
            grown(now.questions, before.questions),
            "off",
            [d.questions for d in days],
            "bar",
        )
        _draw_figure(
            "Cost", cost, grown(now.cost, before.cost), "inverse", [float(d.cost) for d in days], "area", cost_help
        )
        _draw_figure(
            "Median time",
            duration(now.median_ms),
            grown(now.median_ms, before.median_ms),
            "inverse",
            medians,
            "line",
            HELP["median"],
        )
        _draw_figure(
            "p95 time", duration(now.p95_ms), grown(now.p95_ms, before.p95_ms), "inverse", slowest, "line", HELP["p95"]
        )
        _draw_figure(
            "Answered",
            percent(now.answered_rate),
            moved(now.answered_rate, before.answered_rate),
            "normal",
            answered,
            "line",
            HELP["answered"],
        )
        _draw_figure(
            "Helpful",
            percent(now.helpful_rate),
            moved(now.helpful_rate, before.helpful_rate),
            "normal",
            helpful,
            "line",
            f"Of {count(now.rated, 'answer')} rated.",
        )
    words = (
        f":small[:gray[Changes are against the {count(period.days, 'day')} before. Days are UTC. "
        ":material/shield_person: Questions are personal: you see groups, never names or addresses.]]"
    )
    if now.unpriced_calls:
        words += f" :orange-badge[{count(now.unpriced_calls, 'unpriced call')} not in the cost]"
    st.markdown(words)


def _draw_figure(
    label: str,
    value: str,
    change: Change,
    color: DeltaColor,
    trend: Sequence[float],
    kind: Literal["line", "bar", "area"],
    help_text: str | None = None,
) -> None:
    st.metric(
        label,
        value,
        change.shown,
        color if change.is_notable else "off",
        border=True,
        height="stretch",
        chart_data=trend if len(trend) > 1 else None,
        chart_type=kind,
        help=help_text,
    )


def grown(now: float | Decimal | None, before: float | Decimal | None) -> Change:
    """Relative change; notable from 2 %."""
    if now is None or not before:
        return Change(None)
    change = float(now) / float(before) - 1
    return Change(0 if abs(change) < 0.0005 else f"{change:+.1%}", abs(change) >= 0.02)


def moved(now: float | None, before: float | None) -> Change:
    """Change of a rate in percentage points; notable from one point."""
    if now is None or before is None:
        return Change(None)
    change = (now - before) * 100
    return Change(0 if abs(change) < 0.05 else f"{change:+.1f} pts", abs(change) >= 1)
