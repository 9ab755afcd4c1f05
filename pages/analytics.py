"""Show what the assistant costs, how fast it answers, what it cannot answer, and single questions in full.

For managers. Every figure is counted in SQL; the period and the filters are in the address, so a view can be shared.
Questions are personal: who sees the names beside them is set for each company; without that, administrators do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from functools import partial
from uuid import UUID

import pandas as pd
import streamlit as st

from rag.errors import NotFound
from rag.language import N_, _
from rag.records.analytics import Filters, Period, QuestionFilters
from rag.services import require, services
from rag.types import DocumentFilters, DocumentStatus, Role
from rag.ui import actions
from rag.ui.analytics import draw_costs, draw_metrics, draw_overview, draw_times
from rag.ui.budgets import draw_warnings
from rag.ui.formats import count, time_zone
from rag.ui.gaps import draw_gaps
from rag.ui.quality import draw_quality
from rag.ui.question_details import IN_PROGRESS, OUTCOME_WORDS, OUTCOMES, cost_words, draw_question, draw_run_again
from rag.ui.reports import draw_report
from rag.ui.search_figures import draw_search
from rag.ui.widgets import choose_collection, document_labels, time_column, words_of

PERIODS = {N_("7 days"): 7, N_("30 days"): 30, N_("90 days"): 90, N_("365 days"): 365, N_("Custom"): 0}
ROWS_PER_PAGE = 25
ANSWERING = DocumentFilters(statuses=(DocumentStatus.COMPLETED,))
#: Most documents in the list to choose from; more are searched for.
MOST_OFFERED = 50


identity = require(Role.MANAGER)
analytics = services().analytics
zone = time_zone(st.context.timezone)
today = datetime.now(UTC).date()


# Period and filters


def choose_period() -> Period:
    with st.container(horizontal=True, vertical_alignment="bottom", horizontal_alignment="distribute"):
        st.title(_("Analytics"), anchor=False, width="content")
        with st.container(horizontal=True, vertical_alignment="bottom", width="content"):
            chosen = st.segmented_control(
                _("Period"),
                list(PERIODS),
                default="30 days",
                format_func=_,
                required=True,
                key="analytics_period",
                bind="query-params",
            )
            if chosen != "Custom":
                return Period.of_days(PERIODS[chosen or "30 days"], until=today)
            default = Period.of_days(30, until=today)
            days = st.date_input(
                _("From and to"),
                (default.first, default.last),
                max_value=today,
                key="analytics_days",
                bind="query-params",
                width=230,
            )
    given = days if isinstance(days, tuple) else (days,)
    dates = [day for day in given if isinstance(day, date)]
    # While only the first end has been chosen, that day is shown.
    return Period(min(dates), max(dates)) if dates else default


def choose_document() -> UUID | None:
    """Draw the choice of one document: a list where there are few, else those that a search finds.

    The address has the document's id: titles change, and two documents can have the same.
    """
    library = services().documents
    kept = uuid_of(st.query_params.get("analytics_document", ""))
    offered = library.names(identity, ANSWERING, limit=MOST_OFFERED + 1)
    if len(offered) > MOST_OFFERED:
        text = st.text_input(
            _("Find a document"),
            type="search",
            live=True,
            placeholder=_("Find a document"),
            key="analytics_document_text",
            label_visibility="collapsed",
            width=200,
        )
        found = library.names(identity, replace(ANSWERING, text=text), limit=MOST_OFFERED) if text else offered
        offered = found[:MOST_OFFERED]
    if kept is not None and kept not in {name.id for name in offered}:
        offered = [*library.names(identity, replace(ANSWERING, document_ids=(kept,)), limit=1), *offered]
    titles = document_labels(offered)
    key = f"analytics_document_{hash((kept, *titles.items()))}"

    def keep() -> None:
        chosen = st.session_state[key]
        if chosen in titles:
            st.query_params["analytics_document"] = str(chosen)
        else:
            st.query_params.pop("analytics_document", None)

    chosen = st.selectbox(
        _("Document"),
        list(titles),
        index=list(titles).index(kept) if kept is not None and kept in titles else None,
        format_func=titles.of,
        placeholder=_("All documents"),
        key=key,
        on_change=keep,
        label_visibility="collapsed",
        width=220,
    )
    return chosen if chosen in titles else None


def uuid_of(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


def choose_filters(period: Period) -> Filters:
    with st.container(horizontal=True, vertical_alignment="center"):
        document = choose_document()
        group = st.selectbox(
            _("User group"),
            analytics.user_groups(identity, period),
            index=None,
            placeholder=_("All user groups"),
            key="analytics_group",
            bind="query-params",
            label_visibility="collapsed",
            width=150,
        )
        languages = analytics.languages(identity, period)
        language = (
            st.selectbox(
                _("Language"),
                languages,
                index=None,
                placeholder=_("All languages"),
                key="analytics_language",
                bind="query-params",
                label_visibility="collapsed",
                width=130,
            )
            if len(languages) > 1
            else None
        )
        names = {collection.id: collection.name for collection in services().documents.collections(identity)}
        chosen = (
            choose_collection(names, key="analytics_collection", everything=_("All collections"), width=170)
            if len(names) > 1
            else None
        )
        draw_report(identity, period)
    return Filters(document_id=document, user_group=group, language=language, collection_id=chosen)


# Questions


def draw_questions(period: Period, filters: Filters) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        text = st.text_input(
            _("Search questions and answers"),
            type="search",
            placeholder=_("Search questions and answers"),
            key="analytics_text",
            bind="query-params",
            label_visibility="collapsed",
            width=300,
        )
        outcome = st.selectbox(
            _("Outcome"),
            list(OUTCOMES),
            index=None,
            format_func=words_of(OUTCOME_WORDS),
            placeholder=_("Any outcome"),
            key="analytics_outcome",
            bind="query-params",
            label_visibility="collapsed",
            width=210,
        )
        order = st.segmented_control(
            _("Order"),
            [N_("Newest"), N_("Slowest")],
            default="Newest",
            format_func=_,
            required=True,
            key="analytics_order",
            label_visibility="collapsed",
        )
        kind = st.segmented_control(
            _("Kind"),
            [N_("Questions"), N_("Searches")],
            default="Questions",
            format_func=_,
            required=True,
            key="analytics_kind",
            label_visibility="collapsed",
            help=_(
                "Searches of programs that were paid for, without an answer. No figure above counts them as "
                "questions; the costs hold what they cost."
            ),
        )
        wanted = QuestionFilters(text=text or "", outcome=outcome, kind="search" if kind == "Searches" else "question")
        actions.draw_export(
            identity,
            _("Export CSV"),
            partial(export, period, filters, wanted),
            f"questions_{period.first}_{period.last}.csv",
            key="analytics_export",
        )
    total = analytics.count_questions(identity, period, filters, wanted)
    if not total:
        st.caption(_("No question matches. Change the search, the outcome or the period."))
        return
    last_page = -(-total // ROWS_PER_PAGE)
    # The page chosen for other filters may be past the end of these.
    page = min(int(st.session_state.get("analytics_page", 1)), last_page)
    rows = analytics.questions(
        identity,
        period,
        filters,
        wanted,
        slowest_first=order == "Slowest",
        limit=ROWS_PER_PAGE,
        offset=(page - 1) * ROWS_PER_PAGE,
    )
    slowest = max((row.total_ms or 0 for row in rows), default=0) or 1
    table = pd.DataFrame(
        {
            _("Asked"): [row.created_at for row in rows],
            _("Question"): [row.question for row in rows],
            _("Outcome"): [[_(OUTCOMES.get(row.outcome or "", IN_PROGRESS)[0])] for row in rows],
            _("Group"): [row.user_group or "–" for row in rows],
            **({_("Asked by"): [row.asker or "–" for row in rows]} if analytics.shows_names(identity) else {}),
            _("Language"): [row.language for row in rows],
            _("Time (s)"): [None if row.total_ms is None else row.total_ms / 1000 for row in rows],
            _("Cost"): [cost_words(row.cost, row.is_priced) for row in rows],
            _("Rated"): [{1: _("helpful"), 0: _("not helpful"), None: ""}[row.rating] for row in rows],
        }
    )
    outcomes = [(_(words), color) for words, color in (*OUTCOMES.values(), IN_PROGRESS)]
    ids = [row.id for row in rows]
    chosen = st.dataframe(
        table,
        # A selection is a row number; with other rows it would open another question.
        key=f"analytics_questions_{hash(tuple(ids))}",
        on_select="rerun",
        selection_mode="single-row",
        hide_index=True,
        height="content" if len(rows) <= 10 else 390,
        column_config={
            _("Asked"): time_column(with_year=False, width=105),
            _("Question"): st.column_config.TextColumn(width=280),
            _("Outcome"): st.column_config.MultiselectColumn(
                options=[words for words, _ in outcomes], color=[color for _, color in outcomes], width=158
            ),
            _("Group"): st.column_config.TextColumn(width=95),
            _("Asked by"): st.column_config.TextColumn(width=110),
            _("Language"): st.column_config.TextColumn(_("Lang"), width=50),
            _("Time (s)"): st.column_config.ProgressColumn(
                min_value=0, max_value=slowest / 1000, format="%.1f", width=110
            ),
            _("Cost"): st.column_config.TextColumn(alignment="right", width=90),
            _("Rated"): st.column_config.TextColumn(width=85),
        },
        alt=_("Questions asked in this period"),
    )
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.caption(
            _(
                "{total}. Select a row (Shift + Space on the keyboard) to see everything about it.",
                total=count(total, "question"),
            ),
            width="content",
        )
        if last_page > 1:
            st.pagination(last_page, key="analytics_page")
    draw_selected(ids, chosen.selection.rows)


def export(period: Period, filters: Filters, wanted: QuestionFilters) -> bytes:
    """Return the questions as CSV."""
    return analytics.export_csv(identity, period, filters, wanted)


def draw_selected(ids: Sequence[UUID], rows: Sequence[int]) -> None:
    if rows and rows[0] < len(ids):
        with st.container(border=True):
            draw_details(ids[rows[0]])


def draw_details(chat_log_id: UUID) -> None:
    try:
        entry = analytics.question(identity, chat_log_id)
    except NotFound:
        st.caption(_("This question is no longer there."))
    else:
        draw_question(entry, zone)
        draw_run_again(identity, entry)


def draw_nothing(filters: Filters) -> None:
    filtered = filters != Filters()
    with st.container(border=True, horizontal_alignment="center"):
        st.space("small")
        st.markdown(f":material/monitoring: {_('**Nothing was asked in this period**')}", width="content")
        st.caption(
            _("Choose a longer period or take the filters away.")
            if filtered
            else _(
                "Figures appear with the first question in the chat: what it cost, how long each stage took, what "
                "was found for it. Choose a longer period to look further back."
            ),
            width="content",
            text_alignment="center",
        )
        st.space("small")


# The page

period = choose_period()
filters = choose_filters(period)
summary = analytics.summary(identity, period, filters)
draw_warnings(identity)
if summary.current.questions or summary.current.calls:
    overview, costs, times, search, questions, gaps, quality = st.tabs(
        [_("Overview"), _("Costs"), _("Times"), _("Search"), _("Questions"), _("Gaps"), _("Quality")],
        key="analytics_view",
        on_change="rerun",
        bind="query-params",
    )
    if overview.open:
        with overview:
            draw_metrics(summary, period, shows_names=analytics.shows_names(identity))
            draw_overview(analytics, identity, period, filters, summary.by_day)
    if costs.open:
        with costs:
            draw_metrics(summary, period, shows_names=analytics.shows_names(identity))
            draw_costs(analytics, identity, period, filters, services().chat_logs.tenant_prices(identity.tenant_id))
    if times.open:
        with times:
            draw_metrics(summary, period, shows_names=analytics.shows_names(identity))
            draw_times(analytics, identity, period, filters)
    if search.open:
        with search:
            draw_search(analytics, identity, period, filters)
    if questions.open:
        with questions:
            st.fragment(draw_questions)(period, filters)
    if gaps.open:
        with gaps:
            st.fragment(draw_gaps)(identity, period, filters, draw_details)
    if quality.open:
        with quality:
            draw_quality(identity)
else:
    draw_nothing(filters)
