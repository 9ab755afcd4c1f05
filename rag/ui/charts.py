"""The figures of the analytics page as Plotly figures; numbers in, no reading and no Streamlit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import plotly.graph_objects as go

from rag.records.analytics import STAGES, DailyCost, Period, StageTimes
from rag.ui.formats import duration, money
from rag.ui.text import in_chart
from rag.ui.theme import OPERATION_COLOR_INDEX, quiet_figure

#: The same stage has the colour of the operation it pays for; search pays for nothing.
STAGE_COLOR_INDEX = {"translation": 3, "embedding": 1, "search": 6, "reranking": 2, "model": 0, "other": 7}
STAGE_NAMES = {
    "translation": "Translation",
    "embedding": "Embedding",
    "search": "Search",
    "reranking": "Reranking",
    "model": "Model",
    "other": "Everything else",
}
OPERATION_NAMES = {
    "chat": "Chat",
    "embedding": "Embedding",
    "chunking": "Chunking",
    "reranking": "Reranking",
    "translation": "Translation",
    "tagging": "Tagging",
    "ocr": "OCR",
}
#: Ticks of a logarithmic axis of milliseconds.
TIME_TICKS = (1, 10, 100, 1_000, 10_000, 60_000)


def chart_color(index: int) -> str:
    """The colour at this place of the theme's `chartCategoricalColors`.

    Streamlit's browser side replaces these stand-ins by the theme's colours, light or dark, as it does for its own
    Plotly template.
    """
    return f"#0000{index % 10 + 1:02d}"


def cost_figure(costs: Sequence[DailyCost], period: Period, *, names: Mapping[str, str] | None = None) -> Any:
    """Known costs by day, stacked by operation (with `names`) or by model. Unpriced calls have no bar."""
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
            name=in_chart((names or {}).get(name, name)),
            marker_color=chart_color(index),
            customdata=[[money(row.cost), row.calls] for row in rows],
            hovertemplate="%{customdata[0]} for %{customdata[1]} calls",
        )
    figure.update_layout(barmode="stack", legend_traceorder="normal")
    return _by_day(quiet_figure(figure, height=280, money_axis=True), period)


def stage_figure(times: Sequence[StageTimes], period: Period, *, percentile: str) -> Any:
    """Each stage's `p50` or `p95` by day on a logarithmic axis: stages differ by a factor of a hundred."""
    figure = go.Figure()
    for stage in STAGES:
        rows = [row for row in times if row.stage == stage]
        values = [row.p95_ms if percentile == "p95" else row.p50_ms for row in rows]
        if rows:
            figure.add_scatter(
                x=[row.day for row in rows],
                y=values,
                name=STAGE_NAMES[stage],
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
    """The stages of one question, one after the other, as bars from where they began. `timing` is the logged one."""
    parts = [(stage, float(timing.get(_field(stage)) or 0)) for stage in STAGES]
    total = float(timing.get("totalMs") or 0)
    rest = total - sum(ms for _, ms in parts)
    parts = [part for part in parts if part[1] > 0] + ([("other", rest)] if rest >= 1 else [])
    figure = go.Figure()
    begins = 0.0
    for stage, ms in parts:
        figure.add_bar(
            x=[ms],
            y=[STAGE_NAMES[stage]],
            base=[begins],
            orientation="h",
            marker_color=chart_color(STAGE_COLOR_INDEX[stage]),
            text=[duration(ms)],
            textposition="outside",
            cliponaxis=False,
            hovertemplate=f"{STAGE_NAMES[stage]}: {duration(ms)}, begins at {duration(begins)}<extra></extra>",
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
    """Without this, room for the axis title that is not there is kept below the figure."""
    figure.update_xaxes(automargin=False)
    figure.update_layout(margin_b=30)
    return figure


def _noon_before(period: Period) -> str:
    previous = period.previous
    return f"{previous.last}T12:00"
