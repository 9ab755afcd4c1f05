"""The overview of analytics: cost and time by day, the most asked documents, the models and what they cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal

import pandas as pd
import streamlit as st

from rag.records.analytics import Analytics, DailyCost, Filters, Period
from rag.types import Who
from rag.ui.charts import OPERATION_NAMES, cost_figure, stage_figure
from rag.ui.formats import money
from rag.ui.text import plain
from rag.ui.theme import PLOTLY_CONFIG


def draw_overview(analytics: Analytics, who: Who, period: Period, filters: Filters) -> None:
    """Draw cost and time by day, the most asked documents and the models used."""
    left, right = st.columns(2)
    with left.container(border=True, height="stretch"):
        _draw_costs(analytics, who, period, filters)
    with right.container(border=True, height="stretch"):
        _draw_times(analytics, who, period, filters)
    left, right = st.columns(2)
    with left.container(border=True, height="stretch"):
        _draw_top_documents(analytics, who, period, filters)
    with right.container(border=True, height="stretch"):
        _draw_models(analytics, who, period, filters)


def _draw_head(title: str, label: str, options: Sequence[str], key: str) -> str:
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.subheader(title, anchor=False, width="content")
        chosen = st.segmented_control(
            label, options, default=options[0], required=True, key=key, label_visibility="collapsed"
        )
    return chosen or options[0]


def _draw_costs(analytics: Analytics, who: Who, period: Period, filters: Filters) -> None:
    by = _draw_head("Cost per day", "Costs by", ["Operation", "Model"], "analytics_cost_by")
    read: Callable[[Who, Period, Filters], list[DailyCost]] = (
        analytics.cost_by_day_and_operation if by == "Operation" else analytics.cost_by_day_and_model
    )
    costs = read(who, period, filters)
    if any(cost.cost for cost in costs):
        st.plotly_chart(
            cost_figure(costs, period, names=OPERATION_NAMES if by == "Operation" else None),
            config=PLOTLY_CONFIG,
            key="analytics_cost_chart",
            alt=f"Cost per day by {by.lower()}",
        )
    else:
        st.caption("Nothing was paid in this period: the built-in search and answers cost nothing.")
    unpriced = {cost.name: 0 for cost in costs if cost.unpriced_calls}
    for cost in costs:
        if cost.unpriced_calls:
            unpriced[cost.name] += cost.unpriced_calls
    if unpriced:
        names = ", ".join(f"{plain(OPERATION_NAMES.get(n, n))} {calls:,}" for n, calls in unpriced.items())
        st.caption(f":orange[:material/help: Unpriced calls, not in the bars: {names}]")


def _draw_times(analytics: Analytics, who: Who, period: Period, filters: Filters) -> None:
    chosen = _draw_head("Time per stage", "Percentile", ["Median", "p95"], "analytics_percentile")
    times = analytics.stage_percentiles(who, period, filters)
    if times:
        st.plotly_chart(
            stage_figure(times, period, percentile="p95" if chosen == "p95" else "p50"),
            config=PLOTLY_CONFIG,
            key="analytics_time_chart",
            alt=f"{chosen} time of each stage by day",
        )
        st.caption("Each stage over the questions in which it ran; the axis is logarithmic.")
    else:
        st.caption("No stage ran in this period.")


def _draw_top_documents(analytics: Analytics, who: Who, period: Period, filters: Filters) -> None:
    st.subheader("Most asked documents", anchor=False)
    used = analytics.top_documents(who, period, filters)
    if not used:
        st.caption("No answer was built on a document in this period.")
        return
    st.dataframe(
        pd.DataFrame(
            {
                "Document": [u.title for u in used],
                "Questions": [u.questions for u in used],
                "Helpful": [f"{u.helpful} of {u.rated}" if u.rated else "–" for u in used],
            }
        ),
        hide_index=True,
        key="analytics_top_documents",
        column_config={
            "Document": st.column_config.TextColumn(width="medium"),
            "Questions": st.column_config.ProgressColumn(
                min_value=0, max_value=max(u.questions for u in used), format="%d"
            ),
            "Helpful": st.column_config.TextColumn(alignment="right", help="Of the answers that were rated."),
        },
        alt="Documents by the number of questions answered from them",
    )


def _draw_models(analytics: Analytics, who: Who, period: Period, filters: Filters) -> None:
    st.subheader("Models", anchor=False)
    models = analytics.cost_by_model(who, period, filters)
    if not models:
        st.caption("No paid model was called in this period.")
        return
    st.dataframe(
        pd.DataFrame(
            {
                "Model": [m.model for m in models],
                "For": [OPERATION_NAMES.get(m.operation, m.operation) for m in models],
                "Calls": [m.calls for m in models],
                "Tokens": [m.input_tokens + m.output_tokens for m in models],
                "Cost": [_model_cost(m.cost, m.unpriced_calls) for m in models],
            }
        ),
        hide_index=True,
        key="analytics_models",
        column_config={
            "Model": st.column_config.TextColumn(width=165),
            "For": st.column_config.TextColumn(width=80),
            "Calls": st.column_config.NumberColumn(format="localized", width=50),
            "Tokens": st.column_config.NumberColumn(format="compact", width=58),
            "Cost": st.column_config.TextColumn(alignment="right", width=95),
        },
        alt="Models by what they cost",
    )


def _model_cost(cost: Decimal | None, unpriced_calls: int) -> str:
    if cost is None:
        return f"{unpriced_calls:,} unpriced"
    return money(cost) + (f" + {unpriced_calls:,} unpriced" if unpriced_calls else "")
