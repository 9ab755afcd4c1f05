"""Draw the overview of analytics: key metrics, cost and time by day, the most asked documents, the models used."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Literal, NamedTuple

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from rag.language import N_, _, ngettext
from rag.records.analytics import STAGES, Analytics, DailyCost, Filters, Period, StageTimes, Summary
from rag.types import Who
from rag.ui.formats import count, duration, money, percent, thousands
from rag.ui.text import in_chart, plain
from rag.ui.theme import OPERATION_COLOR_INDEX, PLOTLY_CONFIG, quiet_figure

DeltaColor = Literal["normal", "inverse", "off"]


HELP = {
    "median": N_("Half of the answers were complete within this time."),
    "p95": N_("95 of 100 answers were complete within this time."),
    "answered": N_(
        "Of all questions that came to an end, small talk left out. The rest was answered perhaps, not in the "
        "documents, stopped, refused or failed."
    ),
}


class Change(NamedTuple):
    """Change of a metric against the period before; None without one. Only a notable change has a colour."""

    shown: str | int | None
    is_notable: bool = False


def draw_metrics(summary: Summary, period: Period) -> None:
    now, before, days = summary.current, summary.previous, summary.by_day
    cost = _("unpriced") if now.known_cost is None else plain(money(now.known_cost))
    cost_help = _("From the ledger: answering questions and processing documents.")
    if now.unpriced_calls:
        cost_help += _(
            " {unpriced_calls} without a known price on top.", unpriced_calls=count(now.unpriced_calls, "call")
        )
    medians = [day.median_ms for day in days if day.median_ms is not None]
    slowest = [day.p95_ms for day in days if day.p95_ms is not None]
    answered = [day.answered / day.closed for day in days if day.closed]
    helpful = [day.helpful / day.rated for day in days if day.rated]
    # Three beside each other, two on a phone: the six never leave one alone in a row.
    with st.grid(3, min_column_width=150):
        _draw_metric(
            _("Questions"),
            f"{now.questions:,}",
            grown(now.questions, before.questions),
            "off",
            [d.questions for d in days],
            "bar",
        )
        _draw_metric(
            _("Cost"), cost, grown(now.cost, before.cost), "inverse", [float(d.cost) for d in days], "area", cost_help
        )
        _draw_metric(
            _("Median time"),
            duration(now.median_ms),
            grown(now.median_ms, before.median_ms),
            "inverse",
            medians,
            "line",
            _(HELP["median"]),
        )
        _draw_metric(
            _("p95 time"),
            duration(now.p95_ms),
            grown(now.p95_ms, before.p95_ms),
            "inverse",
            slowest,
            "line",
            _(HELP["p95"]),
        )
        _draw_metric(
            _("Answered"),
            percent(now.answered_rate),
            moved(now.answered_rate, before.answered_rate),
            "normal",
            answered,
            "line",
            _(HELP["answered"]),
        )
        _draw_metric(
            _("Helpful"),
            percent(now.helpful_rate),
            moved(now.helpful_rate, before.helpful_rate),
            "normal",
            helpful,
            "line",
            _("Of {rated} rated.", rated=count(now.rated, "answer")),
        )
    words = _(
        ":small[:gray[Changes are against the {days} before. Days are UTC. :material/shield_person: Questions are "
        "personal: you see groups, never names or addresses.]]",
        days=count(period.days, "day"),
    )
    if now.unpriced_calls:
        words += _(
            " :orange-badge[{unpriced_calls} not in the cost]",
            unpriced_calls=count(now.unpriced_calls, "unpriced call"),
        )
    st.markdown(words)


def _draw_metric(
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
    """Return the relative change; notable from 2 %."""
    if now is None or not before:
        return Change(None)
    change = float(now) / float(before) - 1
    return Change(0 if abs(change) < 0.0005 else f"{change:+.1%}", abs(change) >= 0.02)


def moved(now: float | None, before: float | None) -> Change:
    """Return the change of a rate in percentage points; notable from one point."""
    if now is None or before is None:
        return Change(None)
    change = (now - before) * 100
    return Change(0 if abs(change) < 0.05 else _("{change} pts", change=f"{change:+.1f}"), abs(change) >= 1)


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
            label, options, default=options[0], required=True, format_func=_, key=key, label_visibility="collapsed"
        )
    return chosen or options[0]


def _draw_costs(analytics: Analytics, who: Who, period: Period, filters: Filters) -> None:
    by = _draw_head(_("Cost per day"), _("Costs by"), [N_("Operation"), N_("Model")], "analytics_cost_by")
    read: Callable[[Who, Period, Filters], list[DailyCost]] = (
        analytics.cost_by_day_and_operation if by == "Operation" else analytics.cost_by_day_and_model
    )
    costs = read(who, period, filters)
    if any(cost.cost for cost in costs):
        st.plotly_chart(
            cost_figure(costs, period, names=OPERATION_NAMES if by == "Operation" else None),
            config=PLOTLY_CONFIG,
            key="analytics_cost_chart",
            alt=_("Cost per day by {lower}", lower=_(by).lower()),
        )
    else:
        st.caption(_("Nothing was paid in this period: the built-in search and answers cost nothing."))
    unpriced = {cost.name: 0 for cost in costs if cost.unpriced_calls}
    for cost in costs:
        if cost.unpriced_calls:
            unpriced[cost.name] += cost.unpriced_calls
    if unpriced:
        names = ", ".join(f"{plain(_(OPERATION_NAMES.get(n, n)))} {calls:,}" for n, calls in unpriced.items())
        st.caption(_(":orange[:material/help: Unpriced calls, not in the bars: {names}]", names=names))


def _draw_times(analytics: Analytics, who: Who, period: Period, filters: Filters) -> None:
    chosen = _draw_head(_("Time per stage"), _("Percentile"), [N_("Median"), "p95"], "analytics_percentile")
    times = analytics.stage_percentiles(who, period, filters)
    if times:
        st.plotly_chart(
            stage_figure(times, period, percentile="p95" if chosen == "p95" else "p50"),
            config=PLOTLY_CONFIG,
            key="analytics_time_chart",
            alt=_("{chosen} time of each stage by day", chosen=_(chosen)),
        )
        st.caption(_("Each stage over the questions in which it ran; the axis is logarithmic."))
    else:
        st.caption(_("No stage ran in this period."))


def _draw_top_documents(analytics: Analytics, who: Who, period: Period, filters: Filters) -> None:
    st.subheader(_("Most asked documents"), anchor=False)
    used = analytics.top_documents(who, period, filters)
    if not used:
        st.caption(_("No answer was built on a document in this period."))
        return
    st.dataframe(
        pd.DataFrame(
            {
                _("Document"): [u.title for u in used],
                _("Questions"): [u.questions for u in used],
                _("Helpful"): [
                    _("{helpful} of {rated}", helpful=u.helpful, rated=u.rated) if u.rated else "–" for u in used
                ],
            }
        ),
        hide_index=True,
        key="analytics_top_documents",
        column_config={
            _("Document"): st.column_config.TextColumn(width=165),
            _("Questions"): st.column_config.ProgressColumn(
                min_value=0, max_value=max(u.questions for u in used), format="%d", width=125
            ),
            _("Helpful"): st.column_config.TextColumn(
                alignment="right", width=85, help=_("Of the answers that were rated.")
            ),
        },
        alt=_("Documents by the number of questions answered from them"),
    )


def _draw_models(analytics: Analytics, who: Who, period: Period, filters: Filters) -> None:
    st.subheader(_("Models"), anchor=False)
    models = analytics.cost_by_model(who, period, filters)
    if not models:
        st.caption(_("No paid model was called in this period."))
        return
    st.dataframe(
        pd.DataFrame(
            {
                _("Model"): [m.model for m in models],
                _("For"): [_(OPERATION_NAMES.get(m.operation, m.operation)) for m in models],
                # On a small screen the last columns are out of sight.
                _("Cost"): [_model_cost(m.cost, m.unpriced_calls) for m in models],
                _("Calls"): [m.calls for m in models],
                _("Tokens"): [m.input_tokens + m.output_tokens for m in models],
            }
        ),
        hide_index=True,
        key="analytics_models",
        column_config={
            _("Model"): st.column_config.TextColumn(width=150),
            _("For"): st.column_config.TextColumn(width=80),
            _("Calls"): st.column_config.NumberColumn(format="localized", width=50),
            _("Tokens"): st.column_config.NumberColumn(format="compact", width=58),
            _("Cost"): st.column_config.TextColumn(alignment="right", width=95),
        },
        alt=_("Models by what they cost"),
    )


def _cost_of_calls(cost: Decimal | None, calls: int) -> str:
    return ngettext("{cost} for {count} calls", "{cost} for {count} calls", calls, cost=money(cost))


def _model_cost(cost: Decimal | None, unpriced_calls: int) -> str:
    if cost is None:
        return _("{unpriced_calls} unpriced", unpriced_calls=thousands(unpriced_calls))
    return money(cost) + (
        _(" + {unpriced_calls} unpriced", unpriced_calls=thousands(unpriced_calls)) if unpriced_calls else ""
    )


#: The same stage has the colour of the operation it pays for; search pays for nothing.
STAGE_COLOR_INDEX = {"translation": 3, "embedding": 1, "search": 6, "reranking": 2, "model": 0, "other": 7}


STAGE_NAMES = {
    "translation": N_("Translation"),
    "embedding": N_("Embedding"),
    "search": N_("Search"),
    "reranking": N_("Reranking"),
    "model": N_("Model"),
    "other": N_("Everything else"),
}


OPERATION_NAMES = {
    "chat": N_("Chat"),
    "embedding": N_("Embedding"),
    "chunking": N_("Chunking"),
    "reranking": N_("Reranking"),
    "translation": N_("Translation"),
    "tagging": N_("Tagging"),
    "ocr": "OCR",
}


#: Ticks of a logarithmic axis of milliseconds.
TIME_TICKS = (1, 10, 100, 1_000, 10_000, 60_000)


def chart_color(index: int) -> str:
    """Return the colour at this place of the theme's `chartCategoricalColors`.

    Streamlit's browser side replaces these stand-ins by the theme's colours, light or dark, as it does for its own
    Plotly template.
    """
    return f"#0000{index % 10 + 1:02d}"


def cost_figure(costs: Sequence[DailyCost], period: Period, *, names: Mapping[str, str] | None = None) -> Any:
    """Draw known costs by day, stacked by operation (with `names`) or by model. Unpriced calls have no bar."""
    known = [cost for cost in costs if cost.cost is not None]
    totals: dict[str, float] = {}
    for cost in known:
        totals[cost.name] = totals.get(cost.name, 0.0) + float(cost.cost or 0)
    figure = go.Figure()
    for place, name in enumerate(sorted(totals, key=lambda n: -totals[n])):
        rows = [cost for cost in known if cost.name == name]
        index = OPERATION_COLOR_INDEX.get(name, place) if names else place
        figure.add_bar(
            x=[row.day for row in rows],
            y=[float(row.cost or 0) for row in rows],
            name=in_chart(_((names or {}).get(name, name))),
            marker_color=chart_color(index),
            customdata=[[_cost_of_calls(row.cost, row.calls)] for row in rows],
            hovertemplate="%{customdata[0]}",
        )
    figure.update_layout(barmode="stack", legend_traceorder="normal")
    return _by_day(quiet_figure(figure, height=280, money_axis=True), period)


def stage_figure(times: Sequence[StageTimes], period: Period, *, percentile: str) -> Any:
    """Draw `p50` or `p95` of each stage by day on a logarithmic axis: stages differ by a factor of a hundred."""
    figure = go.Figure()
    for stage in STAGES:
        rows = [row for row in times if row.stage == stage]
        values = [row.p95_ms if percentile == "p95" else row.p50_ms for row in rows]
        if rows:
            figure.add_scatter(
                x=[row.day for row in rows],
                y=values,
                name=_(STAGE_NAMES[stage]),
                mode="lines+markers" if len(rows) < 4 else "lines",
                line={"color": chart_color(STAGE_COLOR_INDEX[stage]), "width": 2},
                customdata=[duration(value) for value in values],
                hovertemplate="%{customdata}",
            )
    figure = _by_day(quiet_figure(figure, height=280), period)
    figure.update_yaxes(
        type="log", tickvals=TIME_TICKS, ticktext=[duration(tick) for tick in TIME_TICKS], minor={"showgrid": False}
    )
    return figure


def waterfall_figure(timing: Mapping[str, float]) -> Any:
    """Draw the stages of one question as bars, each from where it began. `timing` is the logged one."""
    parts = [(stage, float(timing.get(_field(stage)) or 0)) for stage in STAGES]
    total = float(timing.get("totalMs") or 0)
    rest = total - sum(ms for _, ms in parts)
    parts = [part for part in parts if part[1] > 0] + ([("other", rest)] if rest >= 1 else [])
    figure = go.Figure()
    begins = 0.0
    for stage, ms in parts:
        figure.add_bar(
            x=[ms],
            y=[_(STAGE_NAMES[stage])],
            base=[begins],
            orientation="h",
            marker_color=chart_color(STAGE_COLOR_INDEX[stage]),
            text=[duration(ms)],
            textposition="outside",
            cliponaxis=False,
            hovertemplate=_(
                "{stage}: {duration}, begins at {start}",
                stage=_(STAGE_NAMES[stage]),
                duration=duration(ms),
                start=duration(begins),
            )
            + "<extra></extra>",
        )
        begins += ms
    figure = quiet_figure(figure, height=70 + 34 * max(len(parts), 1), legend=False)
    figure.update_layout(hovermode="closest", bargap=0.35)
    longest = max(total, begins, 1.0)
    figure.update_xaxes(range=[0, longest * 1.12], ticksuffix=" ms", nticks=6)
    figure.update_yaxes(autorange="reversed")
    return _close_below(figure)


def _field(stage: str) -> str:
    return "openaiMs" if stage == "model" else f"{stage}Ms"


def _by_day(figure: Any, period: Period) -> Any:
    figure.update_xaxes(
        type="date", range=[_noon_before(period), f"{period.last}T12:00"], tickformat="%-d %b", nticks=7
    )
    figure.update_layout(hoverlabel={"namelength": -1})
    return _close_below(figure)


def _close_below(figure: Any) -> Any:
    """Remove the room that Plotly keeps for an axis title, which there is none of."""
    figure.update_xaxes(automargin=False)
    figure.update_layout(margin_b=30)
    return figure


def _noon_before(period: Period) -> str:
    previous = period.previous
    return f"{previous.last}T12:00"
