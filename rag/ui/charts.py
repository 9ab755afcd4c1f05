"""Draw analytics with Plotly: costs, outcomes and times by day, distributions, a question's stages."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from rag.language import N_, _, ngettext, number, short_day, table_date
from rag.records.analytics import STAGES, DailyCost, Day, Period, StageTimes, TimeBucket
from rag.ui.formats import duration, money
from rag.ui.text import in_chart
from rag.ui.theme import OPERATION_COLOR_INDEX, PLOTLY_CONFIG

#: Outcomes in stacking order, with their colours: good outcomes at the bottom.
OUTCOME_COLORS = {"answered": 1, "perhaps": 0, "no_context": 2, "refused": 4, "stopped": 7, "failed": 3, "aside": 8}
#: Number of bars per unit of similarity.
SCORE_STEPS = 25
#: The first series have separate colours; the rest are drawn together.
MOST_SERIES = 8
OTHERS = "others"


def draw_chart(figure: Any, table: pd.DataFrame, *, key: str, alt: str) -> None:
    """Draw a figure, with its numbers in a table below for reading or copying."""
    st.plotly_chart(figure, config=PLOTLY_CONFIG, key=key, alt=alt)
    with st.expander(_("As a table"), icon=":material/table_rows:"):
        st.dataframe(table, hide_index=True, placeholder="–", key=f"{key}_table", alt=alt)


#: A stage has the same colour as the operation it pays for; search has no cost.
STAGE_COLOR_INDEX = {"translation": 3, "embedding": 1, "search": 6, "reranking": 2, "model": 0, "other": 7}


STAGE_NAMES = {
    "translation": N_("Translation"),
    "embedding": N_("Preparing for search"),
    "search": N_("Search"),
    "reranking": N_("Second sorting"),
    "model": N_("Model"),
    "other": N_("Everything else"),
}


OPERATION_NAMES = {
    "chat": N_("Chat"),
    "embedding": N_("Preparing for search"),
    "chunking": N_("Splitting"),
    "reranking": N_("Second sorting"),
    "translation": N_("Translation"),
    "tagging": N_("Tagging"),
    "ocr": "OCR",
}


#: Days with a label below a chart; few enough for a phone.
MOST_DAYS_NAMED = 4
#: Letters in table date formats, with Plotly's format codes.
PLOTLY_FORMATS = {"YYYY": "%Y", "MMM": "%b", "MM": "%m", "M": "%-m", "DD": "%d", "D": "%-d"}
DATE_PARTS = re.compile("YYYY|MMM|MM?|DD?")
#: Up to this many questions, the axis has a line for each number.
FEW = 5


#: Ticks on a logarithmic axis in milliseconds.
TIME_TICKS = (1, 10, 100, 1_000, 10_000, 60_000)
FINE_TICKS = (1, 10, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 60_000)


def chart_color(index: int) -> str:
    """Return a colour from the theme's `chartCategoricalColors` by index.

    The colours are placeholders, like in Streamlit's Plotly template. The frontend replaces them by the colours for the
    light or dark theme.
    """
    return f"#0000{index % 10 + 1:02d}"


def outcome_names() -> dict[str, str]:
    """Return the displayed names for question outcomes, in the order in which charts stack them."""
    return {
        "answered": _("Answered"),
        "perhaps": _("Partly"),
        "no_context": _("Not in the documents"),
        "refused": _("Refused"),
        "stopped": _("Stopped"),
        "failed": _("Failed"),
        "aside": _("Small talk"),
    }


def outcomes_of(day: Day) -> dict[str, int]:
    """Count a day's questions by outcome, with the keys from `outcome_names`."""
    counted = {name: int(getattr(day, name)) for name in OUTCOME_COLORS if name != "aside"}
    return counted | {"aside": day.small_talk + day.asked_back}


def outcome_figure(days: Sequence[Day], period: Period) -> Any:
    """Draw how many questions had each outcome by day, stacked."""
    figure = go.Figure()
    for name, words in outcome_names().items():
        counts = [outcomes_of(day)[name] for day in days]
        if any(counts):
            figure.add_bar(
                x=[day.day for day in days],
                y=counts,
                name=words,
                marker_color=chart_color(OUTCOME_COLORS[name]),
                hovertemplate="%{y}",
            )
    figure.update_layout(barmode="stack", legend_traceorder="normal")
    _count_upwards(figure, max((day.questions for day in days), default=0))
    # On a phone, the seven long names form a column, and the bars need room below it.
    return _by_day(_apply_plain_look(figure, height=340), period)


def histogram_figure(buckets: Sequence[TimeBucket], times: StageTimes) -> Any:
    """Draw a histogram of durations, with lines for the median and the 95th percentile."""
    figure = go.Figure()
    figure.add_bar(
        x=[bucket.ms for bucket in buckets],
        y=[bucket.questions for bucket in buckets],
        width=[bucket.ms * 0.09 for bucket in buckets],
        marker_color=chart_color(0),
        customdata=[duration(bucket.ms) for bucket in buckets],
        hovertemplate="%{customdata}: %{y}<extra></extra>",
    )
    for ms, words, side in ((times.p50_ms, _("half within"), "right"), (times.p95_ms, _("95 % within"), "left")):
        figure.add_vline(x=ms, line={"dash": "dot", "width": 1.5, "color": chart_color(2)})
        figure.add_annotation(
            # On a logarithmic axis, annotations take the logarithm and lines the value.
            x=math.log10(ms),
            y=1,
            yref="paper",
            yanchor="bottom",
            xanchor=side,
            showarrow=False,
            text=f"{words} {duration(ms, is_about=times.is_about)}",
        )
    figure = _apply_plain_look(figure, height=280, legend=False)
    _count_upwards(figure, max((bucket.questions for bucket in buckets), default=0))
    figure.update_layout(hovermode="closest", margin_t=28)
    figure.update_xaxes(type="log", tickvals=FINE_TICKS, ticktext=[duration(tick) for tick in FINE_TICKS])
    return _remove_title_space(figure)


def score_figure(answered: Sequence[float], missed: Sequence[float]) -> tuple[Any, list[tuple[float, int, int]]]:
    """Draw a histogram of best scores, for answered and unanswered questions.

    Returns the figure and a row per bar: the bar's lowest score, answered questions, unanswered questions.
    """
    counted: dict[int, list[int]] = {}
    for place, values in enumerate((answered, missed)):
        for value in values:
            counted.setdefault(min(SCORE_STEPS - 1, max(0, int(value * SCORE_STEPS))), [0, 0])[place] += 1
    steps = range(min(counted), max(counted) + 1)
    rows = [(step / SCORE_STEPS, *counted.get(step, (0, 0))) for step in steps]
    figure = go.Figure()
    for place, (words, color) in enumerate(((_("Answered"), 1), (_("Not answered"), 2)), start=1):
        figure.add_bar(
            x=[row[0] + 0.5 / SCORE_STEPS for row in rows],
            y=[row[place] for row in rows],
            name=words,
            marker_color=chart_color(color),
            hovertemplate="%{y}",
        )
    figure.update_layout(barmode="stack", legend_traceorder="normal")
    figure = _apply_plain_look(figure, height=280)
    _count_upwards(figure, max(sum(counts) for counts in counted.values()))
    figure.update_xaxes(tickformat=".2f", nticks=8)
    return _remove_title_space(figure), [(low, int(first), int(second)) for low, first, second in rows]


def cost_figure(costs: Sequence[DailyCost], period: Period, *, names: Mapping[str, str] | None = None) -> Any:
    """Draw known costs by day, stacked by name: operations, or models if `names` is missing.

    `names` maps operations to displayed names. Unpriced calls have no bar.
    """
    priced = [cost for cost in costs if cost.cost is not None]
    totals: dict[str, float] = {}
    for cost in priced:
        totals[cost.name] = totals.get(cost.name, 0.0) + float(cost.cost or 0)
    figure = go.Figure()
    ordered = sorted(totals, key=lambda n: -totals[n])
    series = [(name, [name]) for name in ordered[:MOST_SERIES]]
    series += [(OTHERS, ordered[MOST_SERIES:])] if ordered[MOST_SERIES:] else []
    for place, (name, members) in enumerate(series):
        rows = [cost for cost in priced if cost.name in members]
        index = OPERATION_COLOR_INDEX.get(name, place) if names else place
        figure.add_bar(
            x=[row.day for row in rows],
            y=[float(row.cost or 0) for row in rows],
            name=in_chart(_((names or {}).get(name, name))) or _("none"),
            marker_color=chart_color(index),
            customdata=[[_cost_of_calls(row.cost, row.calls)] for row in rows],
            hovertemplate="%{customdata[0]}",
        )
    figure.update_layout(barmode="stack", legend_traceorder="normal")
    return _by_day(_apply_plain_look(figure, height=280, money_axis=True), period)


def _cost_of_calls(cost: Decimal | None, calls: int) -> str:
    return ngettext("{cost} for {count} calls", "{cost} for {count} calls", calls, cost=money(cost))


def stage_figure(times: Sequence[StageTimes], period: Period, *, percentile: str) -> Any:
    """Draw each stage's `p50` or `p95` by day. The axis is logarithmic, because stages differ by a factor of 100."""
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
                customdata=[duration(value, is_about=row.is_about) for row, value in zip(rows, values, strict=True)],
                hovertemplate="%{customdata}",
            )
    figure = _by_day(_apply_plain_look(figure, height=280), period)
    figure.update_yaxes(
        type="log", tickvals=TIME_TICKS, ticktext=[duration(tick) for tick in TIME_TICKS], minor={"showgrid": False}
    )
    return figure


def stage_parts(timing: Mapping[str, float]) -> list[tuple[str, float, float]]:
    """Return the stages between question and answer, with start and duration in milliseconds, from the logged
    `timing`.
    """
    durations = [(stage, float(timing.get("openaiMs" if stage == "model" else f"{stage}Ms") or 0)) for stage in STAGES]
    rest = float(timing.get("totalMs") or 0) - sum(ms for _, ms in durations)
    durations = [part for part in durations if part[1] > 0] + ([("other", rest)] if rest >= 1 else [])
    begins = 0.0
    parts = []
    for stage, ms in durations:
        parts.append((stage, begins, ms))
        begins += ms
    return parts


def waterfall_figure(timing: Mapping[str, float]) -> Any:
    """Draw the stages between question and answer as bars, each starting when the stage starts.

    `timing` comes from the log.
    """
    parts = stage_parts(timing)
    total, ends = float(timing.get("totalMs") or 0), sum(ms for _, _, ms in parts)
    figure = go.Figure()
    for stage, begins, ms in parts:
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
    figure = _apply_plain_look(figure, height=70 + 34 * max(len(parts), 1), legend=False)
    figure.update_layout(hovermode="closest", bargap=0.35)
    longest = max(total, ends, 1.0)
    figure.update_xaxes(range=[0, longest * 1.12], ticksuffix=" ms", nticks=6)
    figure.update_yaxes(autorange="reversed")
    return _remove_title_space(figure)


def _apply_plain_look(figure: Any, *, height: int = 280, legend: bool = True, money_axis: bool = False) -> Any:
    figure.update_layout(
        height=height,
        margin={"l": 8, "r": 8, "t": 32 if legend else 8, "b": 8},
        showlegend=legend,
        # On a phone the legend is a single column: show all entries instead of a scrolled part.
        legend={
            "orientation": "h",
            "yanchor": "bottom",
            "y": 1.02,
            "x": 0,
            "title": {"text": ""},
            "font": {"size": 11},
            "maxheight": 0.9,
        },
        hovermode="x unified",
        bargap=0.25,
        # The decimal separator and the thousands separator.
        separators="".join(re.findall(r"\D", number(12345.6)))[::-1],
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
    )
    figure.update_xaxes(showgrid=False, zeroline=False, title_text="", automargin=True)
    before, after = re.split(r"\d.*\d", money(Decimal(1))) if money_axis else ("", "")
    figure.update_yaxes(
        zeroline=False, automargin=True, rangemode="tozero", tickprefix=before, ticksuffix=after, exponentformat="none"
    )
    return figure


def _by_day(figure: Any, period: Period) -> Any:
    # Plotly only knows English month names.
    step = max(1, -(-period.days // MOST_DAYS_NAMED))
    days = [period.last - timedelta(days=ago) for ago in range(0, period.days, step)]
    figure.update_xaxes(
        type="date",
        range=[f"{period.previous.last}T12:00", f"{period.last}T12:00"],
        tickvals=days,
        ticktext=[short_day(day) for day in days],
        tickangle=0,
        hoverformat=DATE_PARTS.sub(lambda match: PLOTLY_FORMATS[match[0]], table_date()),
    )
    figure.update_layout(hoverlabel={"namelength": -1})
    return _remove_title_space(figure)


def _count_upwards(figure: Any, most: int) -> None:
    if most <= FEW:
        figure.update_yaxes(dtick=1)


def _remove_title_space(figure: Any) -> Any:
    figure.update_xaxes(automargin=False)
    figure.update_layout(margin_b=30)
    return figure
