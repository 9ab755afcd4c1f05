"""Draw the analytics tabs: key metrics, outcomes, costs, and durations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from functools import partial
from typing import Any, Literal, NamedTuple
from uuid import UUID

import pandas as pd
import streamlit as st
from streamlit.errors import StreamlitAPIException

from rag.language import N_, _, day, ngettext, number, percentage, pgettext
from rag.records.analytics import (
    FIRST,
    STAGES,
    WHOLE,
    Analytics,
    CostsBy,
    Filters,
    ModelCost,
    PartsBy,
    Period,
    QuestionFilters,
    Summary,
    Totals,
    Unit,
)
from rag.records.forecast import CHAT_OPERATIONS, forecast, priced_chat_models, with_other_model
from rag.types import Identity, Role
from rag.ui import lists
from rag.ui.charts import (
    OPERATION_NAMES,
    STAGE_NAMES,
    cost_figure,
    draw_chart,
    histogram_figure,
    outcome_figure,
    outcome_names,
    outcomes_of,
    stage_figure,
)
from rag.ui.formats import duration, money, percent, thousands
from rag.ui.question_details import OUTCOME_WORDS
from rag.ui.search_metrics import draw_errors, part_name
from rag.ui.text import plain
from rag.ui.widgets import choose_word, draw_head, filter_box, words_of

DeltaColor = Literal["normal", "inverse", "off"]
#: Takes a filter from a table row: the name in `Filters`, and the value.
Choose = Callable[[str, str | UUID], None]
#: Draws one question in full.
DrawDetails = Callable[[UUID], None]
SLOWEST = 8
#: Fewest days with questions for drawing a trend.
LEAST_POINTS = 3
COSTS_BY: Mapping[CostsBy, str] = {
    "operation": N_("Operation"),
    "model": N_("Model"),
    "collection": N_("Collection"),
    "group": N_("Group"),
    "purpose": N_("Purpose"),
}
UNITS: Mapping[Unit, str] = {"day": N_("By day"), "week": N_("By week"), "month": N_("By month")}
PERCENTILES = {"p50": N_("Time for half of the answers"), "p95": N_("Time for 95 % of the answers")}
WAITED = {WHOLE: N_("Time to the whole answer"), FIRST: N_("Time to the first words")} | {
    stage: STAGE_NAMES[stage] for stage in STAGES
}
PARTS_BY: Mapping[PartsBy, str] = {"group": N_("Group"), "language": N_("Language"), "collection": N_("Collection")}
PURPOSE_NAMES = {
    "question": N_("Questions"),
    "search": N_("Searches by programs"),
    "evaluation": N_("Test runs"),
    "document": N_("Documents"),
    "other": N_("Other"),
}


#: Ratings to filter by, as named in the list of questions.
RATINGS = {0: N_("Rated not helpful"), 1: N_("Rated helpful")}


def show_gaps() -> None:
    """Open the tab with gaps on the next run."""
    st.session_state["analytics_view"] = _("Unanswered questions")


def show_questions(*, outcome: str | None = None, rating: int | None = None) -> None:
    """Open the list of questions on the next run, filtered by outcome or rating."""
    st.session_state["analytics_view"] = _("Questions")
    st.session_state["analytics_text"] = ""
    for key, choice, words in (
        ("analytics_outcome", outcome, OUTCOME_WORDS.get(outcome or "", "")),
        ("analytics_rating", rating, RATINGS[rating] if rating is not None else ""),
    ):
        st.session_state[key] = choice
        # Query parameters bound to a drawn widget cannot be changed; a widget not drawn yet does not set them.
        with suppress(StreamlitAPIException):
            st.query_params.pop(key, None)
            if words:
                st.query_params[key] = _(words)


class Change(NamedTuple):
    """A metric's change since the previous period; `None` without a previous value. A notable change is drawn in
    colour.
    """

    delta: str | int | None
    is_notable: bool = False
    #: "normal" if growth is good, "inverse" if it is bad, "off" if neither.
    color: DeltaColor = "off"


class Trend(NamedTuple):
    """A metric's values over the period, oldest first. A trend with fewer than three values is not drawn."""

    points: Sequence[float]
    kind: Literal["line", "bar", "area"] = "line"


def draw_metrics(who: Identity, summary: Summary, period: Period, *, zone: str, shows_names: bool = False) -> None:
    """Draw the period's metrics, each compared with the previous period."""
    now, before, days = summary.current, summary.previous, summary.by_day
    # Four, two or one per row leave complete rows on a narrow screen; three would.
    with st.grid(4, min_column_width=150):
        draw_metric(
            _("Questions"), number(now.questions), grown(now.questions, before.questions),
            trend=Trend([day.questions for day in days], "bar"),
            help_text=_("All questions, small talk included."),
        )  # fmt: skip
        draw_metric(
            _("People"), number(now.people), grown(now.people, before.people),
            help_text=_("How many different people asked. Programs that ask are not counted here."),
        )  # fmt: skip
        draw_metric(
            _("Answered"), percent(now.answered_rate), moved(now.answered_rate, before.answered_rate, "normal"),
            trend=Trend([rate for day in days if (rate := day.answered_rate) is not None]),
            help_text=_(
                "The share of finished questions whose answer is supported by a source. Small talk is not counted. "
                "The other questions were answered only in part, have no answer in the documents, were stopped or "
                "refused, or failed."
            ),
        )  # fmt: skip
        draw_metric(
            _("Helpful"), percent(now.helpful_rate), moved(now.helpful_rate, before.helpful_rate, "normal"),
            trend=Trend([day.helpful / day.rated for day in days if day.rated]),
            help_text=ngettext("Based on {count} rated answer.", "Based on {count} rated answers.", now.rated),
        )  # fmt: skip
        _draw_time(_("Time to the first "
                     "words"), FIRST, summary, _("Half of the answers began within this time. “95 % within” is "
                                                       "the time in which 95 of 100 answers began."))  # fmt: skip
        _draw_time(
            _("Time to the whole answer"),
            WHOLE,
            summary,
            _(
                "Half of the answers were complete within this time. “95 % within” is the time in which 95 of 100 "
                "answers were complete."
            ),
        )
        draw_metric(
            _("Cost"), _("price not known") if now.known_cost is None else plain(money(now.known_cost)),
            grown(now.cost, before.cost, "inverse"), trend=Trend([float(day.cost) for day in days], "area"),
            help_text=_("All recorded costs: questions, searches by programs, test runs, and the processing of "
                        "documents with text recognition."),
        )  # fmt: skip
        draw_metric(
            _("Cost per answer"), "–" if now.cost_per_answer is None else plain(money(now.cost_per_answer)),
            grown(now.cost_per_answer, before.cost_per_answer, "inverse"),
            help_text=_("The cost of all questions, including those without an answer, divided by the number of "
                        "answers."),
        )  # fmt: skip
    _draw_context(who, summary, period, zone=zone, shows_names=shows_names)


def _draw_context(who: Identity, summary: Summary, period: Period, *, zone: str, shows_names: bool) -> None:
    now, before = summary.current, summary.previous
    words = ""
    if before.questions:
        words = ngettext(
            "Changes compare this period with the day before.",
            "Changes compare this period with the {count} days before.",
            period.days,
        )
    elif now.questions:
        active_days = sum(1 for day in summary.by_day if day.questions)
        words = _(
            "These are the first questions, so there is nothing to compare them with yet. Trend lines appear from "
            "the third day with questions, and the forecast for the month appears from the eighth day."
        )
        if active_days > LEAST_POINTS:
            words = _("There were no questions in the previous period, so nothing is compared.")
    about = (
        _("Each question shows who asked it. The audit log records when you read a question of somebody else.")
        if shows_names
        else _("Questions are personal, so you see only groups, never names or addresses.")
    )
    days = _("Days begin and end in the time zone {zone}.", zone=zone)
    st.markdown(f":small[:gray[:material/shield_person: {plain(f'{words} {days} {about}')}]]")
    if now.unpriced_calls:
        missing = ngettext(
            "{count} call without a price is not included in the cost",
            "{count} calls without a price are not included in the cost",
            now.unpriced_calls,
        )
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f":orange-badge[{plain(missing)}]", width="content")
            if who.may(Role.ADMIN):
                st.page_link("prices.py", label=_("Set a price"), icon=":material/payments:")


def _draw_time(label: str, stage: str, summary: Summary, help_text: str) -> None:
    now, before = summary.times.get(stage), summary.previous_times.get(stage)
    draw_metric(
        label,
        duration(now.p50_ms, is_about=now.is_about) if now else duration(None),
        grown(now.p50_ms if now else None, before.p50_ms if before else None, "inverse"),
        trend=Trend([row.p50_ms for row in summary.times_by_day if row.stage == stage]),
        help_text=help_text,
        second_figure=f"{_('95 % within')} {duration(now.p95_ms, is_about=now.is_about)}" if now else None,
    )


def draw_metric(
    label: str,
    value: str,
    change: Change,
    *,
    trend: Trend | None = None,
    help_text: str | None = None,
    second_figure: str | None = None,
) -> None:
    """Draw a metric with change and trend.

    `second_figure`, for example the 95th percentile, is drawn beside the change, or alone if there is no change.
    """
    # A line with one or two points, or along zero, says nothing.
    shown_trend = trend if trend and sum(1 for point in trend.points if point) >= LEAST_POINTS else None
    # A bare zero below a figure looks like another figure.
    delta = "±0" if change.delta == 0 else change.delta
    st.metric(
        label,
        value,
        delta if delta is not None or second_figure is None else second_figure,
        change.color if change.is_notable else "off",
        border=True,
        height="stretch",
        chart_data=shown_trend.points if shown_trend else None,
        chart_type=shown_trend.kind if shown_trend else "line",
        help=help_text,
        delta_description=second_figure if delta is not None else None,
        delta_arrow="auto" if change.delta else "off",
    )


def grown(now: float | Decimal | None, before: float | Decimal | None, color: DeltaColor = "off") -> Change:
    """Return a metric's relative change since the previous period. A change of 2 % or more is notable."""
    if now is None or not before:
        return Change(None)
    change = float(now) / float(before) - 1
    delta = signed(change, percentage(abs(change), 1 if abs(change) < 10 else 0))
    return Change(0 if abs(change) < 0.0005 else delta, abs(change) >= 0.02, color)


def moved(now: float | None, before: float | None, color: DeltaColor = "off") -> Change:
    """Return a rate's change in percentage points since the previous period. A change of 1 point or more is notable."""
    if now is None or before is None:
        return Change(None)
    change = (now - before) * 100
    delta = _("{change} points", change=signed(change, number(abs(change), 1)))
    return Change(0 if abs(change) < 0.05 else delta, abs(change) >= 1, color)


def signed(change: float, size: str) -> str:
    """Return `size` with "+" or "-" in front. By this sign, Streamlit draws an arrow up or down."""
    return f"{'-' if change < 0 else '+'}{size}"


def draw_overview(
    analytics: Analytics, who: Identity, period: Period, filters: Filters, summary: Summary, choose: Choose
) -> None:
    """Draw the outcomes, the most frequent questions, and the questions by language, group and collection.

    `choose` is called with the row which a person selects.
    """
    left, right = st.columns([2, 3])
    days = summary.by_day
    with left.container(border=True, height="stretch"):
        st.header(_("How questions ended"), anchor=False)
        names = outcome_names()
        draw_chart(
            outcome_figure(days, period),
            pd.DataFrame({_("From"): [day.day for day in days]}
                         | {words: [outcomes_of(day)[name] for day in days] for name, words in names.items()}),
            key="analytics_outcome_chart",
            alt=_("Questions by day and outcome"),
        )  # fmt: skip
        _draw_ways_on(summary.current)
    with right.container(border=True, height="stretch"):
        _draw_parts(analytics, who, period, filters, choose)
    left, right = st.columns(2)
    with left.container(border=True, height="stretch"):
        _draw_top_documents(analytics, who, period, filters, choose)
    with right.container(border=True, height="stretch"):
        _draw_unused_documents(analytics, who, period, filters)


def _draw_ways_on(now: Totals) -> None:
    not_helpful = now.rated - now.helpful
    ways: list[tuple[int, str, str, Callable[..., None]]] = [
        (
            now.no_context,
            ngettext(
                "{count} question was not in the documents",
                "{count} questions were not in the documents",
                now.no_context,
            ),
            "not_found",
            show_gaps,
        ),
        (
            not_helpful,
            ngettext("{count} answer was not helpful", "{count} answers were not helpful", not_helpful),
            "not_helpful",
            partial(show_questions, rating=0),
        ),
        (
            now.failed,
            ngettext("{count} failed", "{count} failed", now.failed),
            "failed",
            partial(show_questions, outcome="failed"),
        ),
        (
            now.refused,
            ngettext("{count} question was refused", "{count} questions were refused", now.refused),
            "refused",
            partial(show_questions, outcome="refused"),
        ),
    ]
    with st.container(horizontal=True, key="analytics_ways_on"):
        for questions, words, name, go in ways:
            if questions:
                st.button(plain(words), key=f"analytics_to_{name}", type="tertiary", icon=":material/arrow_forward:",
                          on_click=go)  # fmt: skip


def draw_costs(
    analytics: Analytics, who: Identity, period: Period, filters: Filters, own_prices: Mapping[str, Any]
) -> None:
    """Draw costs by kind, the month's forecast, and the price with a different model."""
    with st.container(border=True):
        _draw_costs(analytics, who, period, filters)
    models = analytics.cost_by_model(who, period, filters)
    left, right = st.columns([5, 4])
    with left.container(border=True, height="stretch"):
        _draw_models(models)
    with right.container(border=True, height="stretch"):
        _draw_forecast(analytics, who, filters)
        _draw_other_model(models, own_prices)


def draw_times(
    analytics: Analytics, who: Identity, period: Period, filters: Filters, draw_details: DrawDetails
) -> None:
    """Draw stage durations by day, their distribution, the slowest questions, and errors."""
    drawn: set[UUID] = set()

    def draw_once(question: UUID) -> None:
        """Draw a selected question, unless this run has drawn it already, because widget keys must be unique."""
        if question in drawn:
            st.caption(_("This question is already open further up."))
            return
        drawn.add(question)
        draw_details(question)

    left, right = st.columns(2)
    with left.container(border=True, height="stretch"):
        _draw_times(analytics, who, period, filters)
    with right.container(border=True, height="stretch"):
        _draw_histogram(analytics, who, period, filters)
    with st.container(border=True):
        _draw_slowest(analytics, who, period, filters, draw_once)
    with st.container(border=True):
        draw_errors(analytics, who, period, filters, draw_once)


def _draw_costs(analytics: Analytics, who: Identity, period: Period, filters: Filters) -> None:
    with draw_head(_("Cost")):
        by = choose_word(_("Show costs by"), COSTS_BY, key="analytics_cost_by", default="operation")
    unit = choose_word(_("Time unit"), UNITS, key=f"analytics_cost_unit_{period.unit}", default=period.unit)
    costs = analytics.cost_by_day(who, period, filters, by, unit)
    words = OPERATION_NAMES if by == "operation" else PURPOSE_NAMES if by == "purpose" else None
    if any(cost.cost for cost in costs):
        draw_chart(
            cost_figure(costs, period, names=words),
            pd.DataFrame(
                {
                    _("From"): [cost.day for cost in costs],
                    _(COSTS_BY[by]): [_((words or {}).get(cost.name, cost.name)) or _("none") for cost in costs],
                    _("Cost"): [None if cost.cost is None else float(cost.cost) for cost in costs],
                    _("Calls"): [cost.calls for cost in costs],
                    _("Calls without a price"): [cost.unpriced_calls for cost in costs],
                }
            ),
            key="analytics_cost_chart",
            alt=_("Cost per day by {kind}", kind=_(COSTS_BY[by]).lower()),
        )
    else:
        st.caption(_("Nothing was paid in this period: the built-in search and answers cost nothing."))
    unpriced: dict[str, int] = {}
    for cost in costs:
        if cost.unpriced_calls:
            unpriced[cost.name] = unpriced.get(cost.name, 0) + cost.unpriced_calls
    if unpriced:
        listed = ", ".join(f"{plain(_((words or {}).get(n, n)))} {thousands(calls)}" for n, calls in unpriced.items())
        st.caption(f":orange[:material/help: {_('Calls without a price, not in the bars: {calls}', calls=listed)}]")


def _draw_forecast(analytics: Analytics, who: Identity, filters: Filters) -> None:
    st.header(_("This month"), anchor=False)
    month = forecast(analytics, who, filters, analytics.zones.today(who))
    with st.container(horizontal=True):
        st.metric(_("Spent so far"), plain(money(month.spent)))
        if month.expected is not None:
            st.metric(
                _("Expected cost by {day}", day=day(month.last_day)),
                plain(money(month.expected)),
                help=_(
                    "Spending so far, plus a forecast for the rest of the month. The forecast uses the average cost of "
                    "each weekday in the last four weeks."
                ),
            )
    if month.expected is None:
        st.caption(_("The forecast for the month appears as soon as there are costs on eight days."))
    if who.may(Role.ADMIN):
        st.page_link("prices.py", label=_("Budgets"), icon=":material/savings:")


def _draw_other_model(models: Sequence[ModelCost], own_prices: Mapping[str, Any]) -> None:
    if not any(row.operation in CHAT_OPERATIONS for row in models):
        return
    st.header(_("The same questions with another model"), anchor=False)
    names = {model: " · ".join(model) for model in priced_chat_models()}
    chosen = filter_box(_("Model"), names, everything=_("Choose a model"), key="analytics_other_model")
    if chosen is None:
        st.caption(_("Shows what this period's answers, translations and tags would have cost with another model."))
        return
    other = with_other_model(models, *chosen, own_prices)
    with st.container(horizontal=True):
        st.metric(_("Amount paid"), plain(money(other.paid)))
        change = grown(other.would_cost, other.paid) if not other.unpriced_calls else Change(None)
        st.metric(
            _("Cost with {model}", model=plain(chosen[1])), plain(money(other.would_cost)), change.delta, "inverse"
        )
    words = ngettext(
        "Calculated from the tokens of {count} call and today's prices.",
        "Calculated from the tokens of {count} calls and today's prices.",
        other.calls,
    )
    if other.unpriced_calls:
        words += " " + ngettext(
            "The price paid for {count} of the calls is not known.",
            "The prices paid for {count} of the calls are not known.",
            other.unpriced_calls,
        )
    st.caption(f"{words} " + _("Models count tokens a little differently."))


def _draw_times(analytics: Analytics, who: Identity, period: Period, filters: Filters) -> None:
    with draw_head(_("Time per stage")):
        percentile = choose_word(_("Share of the answers"), PERCENTILES, key="analytics_percentile", default="p50")
    times = analytics.stage_percentiles(who, period, filters)
    if times:
        # All rows have the same value.
        is_about = times[0].is_about
        draw_chart(
            stage_figure(times, period, percentile=percentile),
            pd.DataFrame(
                {
                    _("From"): [row.day for row in times],
                    _("Stage"): [_(STAGE_NAMES.get(row.stage, row.stage)) for row in times],
                    _("Questions"): [row.questions for row in times],
                    _("Half within (ms, about)") if is_about else _("Half within (ms)"): [
                        round(row.p50_ms, 1) for row in times
                    ],
                    _("95 % within (ms, about)") if is_about else _("95 % within (ms)"): [
                        round(row.p95_ms, 1) for row in times
                    ],
                }
            ),
            key="analytics_time_chart",
            alt=_("Time of each stage by day"),
        )
        st.caption(
            _(
                "The time of each stage, on a scale that makes long times look shorter (logarithmic). Only questions "
                "with this stage are counted. The time for choosing and checking sentences is not shown, so the stages "
                "add up to less than the whole answer."
            )
        )
    else:
        st.caption(_("There are no times for this period."))


def _draw_histogram(analytics: Analytics, who: Identity, period: Period, filters: Filters) -> None:
    stage = (
        draw_head(_("How long answers took")).selectbox(
            _("Show the time of"),
            list(WAITED),
            format_func=words_of(WAITED),
            key="analytics_spread",
            label_visibility="collapsed",
            bind="query-params",
            width=300,
        )
        or WHOLE
    )
    buckets = analytics.time_histogram(who, period, filters, stage)
    stage_times = {row.stage: row for row in analytics.times(who, period, filters, stages=[stage])}
    if not buckets or stage not in stage_times:
        st.caption(_("No question was finished in this period."))
        return
    draw_chart(
        histogram_figure(buckets, stage_times[stage]),
        pd.DataFrame(
            {
                pgettext("how long something took", "About"): [duration(bucket.ms) for bucket in buckets],
                _("Questions"): [bucket.questions for bucket in buckets],
            }
        ),
        key="analytics_spread_chart",
        alt=_("Number of questions by duration"),
    )


def _draw_slowest(
    analytics: Analytics, who: Identity, period: Period, filters: Filters, draw_details: DrawDetails
) -> None:
    st.header(_("Slowest questions"), anchor=False)
    rows = analytics.questions(who, period, filters, QuestionFilters(), slowest_first=True, limit=SLOWEST)
    if not rows:
        st.caption(_("No question was finished in this period."))
        return
    chosen = lists.choose_row(
        rows,
        {
            _("Question"): lists.texts((row.question for row in rows), 330),
            _("Asked"): lists.times((row.created_at for row in rows), 110, with_year=False),
            _("Model"): [row.model or "–" for row in rows],
            _("Time to the first words (s)"): lists.numbers(
                (seconds(row.first_token_ms) for row in rows), 110, style="localized"
            ),
            _("Time (s)"): lists.bars((seconds(row.total_ms) for row in rows), 140),
        },
        key="analytics_slowest",
        alt=_("The questions that took longest"),
    )
    st.caption(_("Select a row (Shift + Space on the keyboard) to see everything about it."))
    if chosen is not None:
        with st.container(border=True):
            draw_details(chosen.id)


def seconds(milliseconds: float | None) -> float | None:
    return None if milliseconds is None else round(milliseconds / 1000, 1)


def _draw_parts(analytics: Analytics, who: Identity, period: Period, filters: Filters, choose: Choose) -> None:
    with draw_head(_("Who asks")):
        by = choose_word(_("Show questions by"), PARTS_BY, key="analytics_parts", default="group")
    parts = analytics.by_part(who, period, filters, by)
    lists.act_on_row(
        parts,
        {
            _(PARTS_BY[by]): [part_name(by, part.name) for part in parts],
            _("Questions"): lists.bars((part.questions for part in parts), 70),
            _("Answered"): lists.amounts((percent(part.answered_rate) for part in parts), 90),
            _("Not found"): lists.numbers(
                (part.no_context for part in parts), 70, help_text=_("Not in the documents.")
            ),
            _("Helpful"): lists.amounts(
                (percent(part.helpful / part.rated if part.rated else None) for part in parts), 66
            ),
        },
        lambda part: choose(by, part.name) if part.name else None,
        key=f"analytics_parts_table_{by}",
        of=lambda part: part.name,
        alt=_("Questions and outcomes by {kind}", kind=_(PARTS_BY[by]).lower()),
    )
    st.caption(_("Select a row to see the figures of this row only."))


def _draw_unused_documents(analytics: Analytics, who: Identity, period: Period, filters: Filters) -> None:
    st.header(_("Documents that were not used"), anchor=False)
    if filters.document_id is not None:
        st.caption(_("Choose all documents to see which were not used."))
        return
    unused = analytics.unused_documents(who, period, filters)
    if not unused:
        st.caption(
            _("Every document that was available for the whole period was used in an answer.")
            if analytics.has_settled_documents(who, period, filters)
            else _("No document was available for the whole period. Choose a shorter period.")
        )
        return
    st.caption(
        _(
            "These documents were available for the whole period, but no answer used them. They may be out of "
            "date, or nobody asked about them."
        )
    )
    counts = analytics.found_documents(who, period, filters)
    chosen = lists.choose_row(
        unused,
        {
            _("Document"): [document.title for document in unused],
            _("Found, not used"): lists.numbers(
                (counts.get(document.document_id, 0) for document in unused),
                70,
                help_text=_(
                    "In how many of the latest questions the search found this document, but the answer did not use "
                    "it. 0 means that the document was never found."
                ),
            ),
            _("Added"): lists.times((document.created_at for document in unused), 110, with_time=False),
        },
        key="analytics_unused_documents",
        of=lambda document: document.document_id,
        alt=_("Documents that no answer used"),
    )
    if chosen is not None:
        open_document(who, chosen.document_id)
    st.caption(_("Select a row to open the document."))


def open_document(who: Identity, document_id: UUID) -> None:
    """Open a document's page: for editing if this person is an administrator, else for reading."""
    page = "documents.py" if who.may(Role.ADMIN) else "library.py"
    st.switch_page(page, query_params={"document": str(document_id)})


def _draw_top_documents(analytics: Analytics, who: Identity, period: Period, filters: Filters, choose: Choose) -> None:
    st.header(_("Most asked documents"), anchor=False)
    used = analytics.top_documents(who, period, filters)
    if not used:
        st.caption(_("No answer in this period used a document."))
        return
    lists.act_on_row(
        used,
        {
            _("Document"): lists.texts((u.title for u in used), 165),
            _("Questions"): lists.bars((u.questions for u in used), 100),
            _("Helpful"): lists.amounts(
                (_("{helpful} of {rated}", helpful=u.helpful, rated=u.rated) if u.rated else "–" for u in used),
                85,
                help_text=_("Based on the answers that were rated."),
            ),
        },
        lambda u: choose("document", u.document_id),
        key="analytics_top_documents",
        of=lambda u: u.document_id,
        alt=_("Documents by the number of questions answered from them"),
    )
    st.caption(_("Select a row to see the figures of this row only."))


def _draw_models(models: Sequence[ModelCost]) -> None:
    st.header(_("Models"), anchor=False)
    if not models:
        st.caption(_("No paid model was called in this period."))
        return
    lists.draw(
        {
            _("Model"): lists.texts((m.model for m in models), 190),
            # On a small screen the last columns are out of sight.
            _("Cost"): lists.amounts((_model_cost(m.cost, m.unpriced_calls) for m in models), 95),
            _("For"): lists.texts((_(OPERATION_NAMES.get(m.operation, m.operation)) for m in models), 90),
            _("Calls"): lists.numbers((m.calls for m in models), 60, style="localized"),
            # Reranking and OCR are paid for by search and by page.
            _("Tokens"): lists.numbers((m.input_tokens + m.output_tokens or None for m in models), 65, style="compact"),
        },
        key="analytics_models",
        alt=_("Models by cost"),
    )


def _model_cost(cost: Decimal | None, unpriced_calls: int) -> str:
    if cost is None:
        return _("{unpriced_calls} without a price", unpriced_calls=thousands(unpriced_calls))
    more = _(" + {unpriced_calls} without a price", unpriced_calls=thousands(unpriced_calls))
    return money(cost) + (more if unpriced_calls else "")
