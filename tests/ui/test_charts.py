"""Axes of charts: days, money and numbers as the reader writes them, and no halves of questions."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest

from rag.language import LANGUAGES, short_day, speaking
from rag.records.analytics import DailyCost, Period, StageTimes, TimeBucket
from rag.ui.charts import MOST_DAYS_NAMED, cost_figure, histogram_figure

PERIOD = Period(date(2026, 2, 1), date(2026, 5, 1))


@pytest.mark.parametrize("spoken", LANGUAGES)
def test_days_below_a_chart_are_in_the_readers_language(spoken: str) -> None:
    with speaking(spoken):
        axis = cost_figure([], PERIOD, names={}).layout.xaxis
        assert list(axis.ticktext) == [short_day(day) for day in axis.tickvals]
        assert 2 <= len(axis.ticktext) <= MOST_DAYS_NAMED
        assert axis.tickvals[0] == PERIOD.last
        assert ("%b" in axis.hoverformat) == (spoken == "en"), "Plotly knows the months of English alone"
        assert not set("DMY") & set(axis.hoverformat.replace("%Y", ""))


@pytest.mark.parametrize(
    ("spoken", "separators", "before", "after"),
    [("en", ".,", "$", ""), ("de", ",.", "", "\xa0$"), ("tr", ",.", "$", "")],
)
def test_money_beside_a_chart_is_written_as_the_reader_writes_it(
    spoken: str, separators: str, before: str, after: str
) -> None:
    cost = DailyCost(day=PERIOD.first, name="chat", cost=Decimal("0.5"), calls=1, unpriced_calls=0)
    with speaking(spoken):
        layout = cost_figure([cost], PERIOD, names={"chat": "Chat"}).layout
    assert layout.separators == separators
    assert (layout.yaxis.tickprefix, layout.yaxis.ticksuffix) == (before, after)


@pytest.mark.parametrize(("most", "step"), [(2, 1), (500, None)])
def test_few_questions_are_counted_one_by_one(most: int, step: int | None) -> None:
    times = StageTimes(day=PERIOD.first, stage="total", questions=2, p50_ms=80, p95_ms=90, is_about=False)
    figure = histogram_figure([TimeBucket(ms=100, questions=most)], times)
    assert figure.layout.yaxis.dtick == step
