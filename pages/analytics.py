"""Show costs, response times, unanswered questions and single questions. For managers.

Every figure is computed in SQL. Period and filters are query parameters, which makes views shareable. Questions are
personal: each company decides who sees the names of the people who asked. By default, administrators see the names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import date
from functools import partial
from typing import Literal
from uuid import UUID

import streamlit as st

from rag.errors import NotFound, PackagesMissing
from rag.language import N_, NP_, _, current, speaking
from rag.records.analytics import Filters, Period, QuestionFilters
from rag.records.chat_logs import ChatLogEntry
from rag.records.pdf_exports import PdfExports
from rag.scheduled_work import Recipients
from rag.services import require, services
from rag.types import DocumentFilters, DocumentStatus, Role
from rag.ui import actions, lists
from rag.ui.analytics import (
    COSTS_BY,
    PARTS_BY,
    PERCENTILES,
    RATINGS,
    UNITS,
    WAITED,
    draw_costs,
    draw_metrics,
    draw_overview,
    draw_times,
    open_document,
    seconds,
)
from rag.ui.budgets import draw_warnings
from rag.ui.formats import count, language_name, time_zone
from rag.ui.gaps import STATES, draw_gaps
from rag.ui.quality import ABOUT_GOLDEN, add_golden_from, draw_quality
from rag.ui.question_details import (
    IN_PROGRESS,
    OUTCOME_WORDS,
    OUTCOMES,
    draw_question,
    draw_run_again,
    known_cost_words,
)
from rag.ui.search_metrics import SCORES, SEARCHES_BY, draw_search
from rag.ui.text import plain
from rag.ui.widgets import (
    choose_collection,
    choose_word,
    document_labels,
    draw_empty,
    filter_box,
    read_address,
    search_box,
    words_of,
)

VIEWS = (
    N_("Overview"), N_("Costs"), NP_("how long answers take", "Times"), N_("Search"), N_("Questions"),
    N_("Unanswered questions"), N_("Quality"),
)  # fmt: skip
PERIODS = {N_("7 days"): 7, N_("30 days"): 30, N_("90 days"): 90, N_("365 days"): 365, N_("Custom"): 0}
ROWS_PER_PAGE = 25
ANSWERING = DocumentFilters(statuses=(DocumentStatus.COMPLETED,))
ORDERS = {"Newest": N_("Newest"), "Slowest": N_("Slowest")}
KINDS: dict[Literal["question", "search"], str] = {"question": N_("Questions"), "search": N_("Searches")}
#: The English words which an address may set, by the key of the bound widget.
IN_ADDRESS: Mapping[str, Iterable[str]] = {
    "analytics_period": PERIODS,
    "analytics_view": VIEWS,
    "analytics_outcome": OUTCOME_WORDS.values(),
    "analytics_rating": RATINGS.values(),
    "analytics_order": ORDERS.values(),
    "analytics_kind": KINDS.values(),
    "analytics_gap_state": STATES.values(),
    "analytics_parts": PARTS_BY.values(),
    "analytics_cost_by": COSTS_BY.values(),
    **{f"analytics_cost_unit_{unit}": UNITS.values() for unit in UNITS},
    "analytics_percentile": PERCENTILES.values(),
    "analytics_spread": WAITED.values(),
    "analytics_score": SCORES.values(),
    "analytics_search_by": SEARCHES_BY.values(),
}
#: Most documents in the list to choose from; more are searched for.
MOST_OFFERED = 50
REPORT_PROBLEM = "analytics_report_problem"
REPORT_READERS = {
    "nobody": N_("Nobody"), "manager": N_("Managers and administrators"), "admin": N_("Administrators")
}  # fmt: skip

identity = require(Role.MANAGER)
analytics = services().analytics
zone = time_zone(st.context.timezone)
today = analytics.zones.today(identity)


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
    ends = days if isinstance(days, tuple) else (days,)
    dates = [day for day in ends if isinstance(day, date)]
    # If only the first end is chosen, show this day.
    return Period(min(dates), max(dates)) if dates else default


def choose_document() -> UUID | None:
    """Draw a selection box for a document: a short list or, with many documents, search results."""
    library = services().documents
    document_id = uuid_of(st.query_params.get("analytics_document", ""))
    offered = library.names(identity, ANSWERING, limit=MOST_OFFERED + 1)
    if len(offered) > MOST_OFFERED:
        text = search_box(_("Find a document"), key="analytics_document_text", live=True, width=200)
        matches = library.names(identity, replace(ANSWERING, text=text), limit=MOST_OFFERED) if text else offered
        offered = matches[:MOST_OFFERED]
    if document_id is not None and document_id not in {name.id for name in offered}:
        offered = [*library.names(identity, replace(ANSWERING, document_ids=(document_id,)), limit=1), *offered]
    titles = document_labels(offered)
    key = f"analytics_document_{hash((document_id, *titles.items()))}"

    chosen = filter_box(
        _("Document"), titles, everything=_("All documents"), key=key, width=220,
        index=list(titles).index(document_id) if document_id is not None and document_id in titles else None,
        on_change=lambda: put_in_address("analytics_document", st.session_state[key]),
    )  # fmt: skip
    if chosen not in titles:
        return None
    st.page_link(
        "library.py", label=_("Open"), icon=":material/open_in_new:", query_params={"document": str(chosen)},
    )  # fmt: skip
    return chosen


def put_in_address(name: str, chosen: object) -> None:
    """Store a filter's choice in the address by id or code, because names change and may be equal."""
    if chosen:
        st.query_params[name] = str(chosen)
    else:
        st.query_params.pop(name, None)


def choose(name: str, value: str | UUID) -> None:
    """Filter by a row selected in a table.

    `value` is a collection's name, a document's id, or the name of another group.
    """
    if name == "document":
        put_in_address("analytics_document", value)
    elif name == "collection":
        named = (c.id for c in services().documents.collections(identity) if c.name == value)
        put_in_address("analytics_collection", next(named, None))
    elif name == "language":
        put_in_address("analytics_language", value)
    else:
        st.session_state[f"analytics_{name}"] = value


def uuid_of(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


def choose_filters(period: Period) -> Filters:
    with st.container(horizontal=True, vertical_alignment="center"):
        document = choose_document()
        groups = {group: group for group in analytics.user_groups(identity, period)}
        group = filter_box(
            _("User group"), groups, everything=_("All user groups"),
            key="analytics_group", bind="query-params", width=175,
        )  # fmt: skip
        language = choose_language(period)
        names = {collection.id: collection.name for collection in services().documents.collections(identity)}
        collection_id = uuid_of(st.query_params.get("analytics_collection", ""))
        key = f"analytics_collection_{collection_id}"
        chosen = (
            choose_collection(
                names, key=key, everything=_("All collections"), width=195,
                chosen=collection_id if collection_id in names else None,
                on_change=lambda: put_in_address("analytics_collection", st.session_state[key]),
            )
            if len(names) > 1
            else None
        )  # fmt: skip
        filters = Filters(document_id=document, user_group=group, language=language, collection_id=chosen)
        draw_report(period, filters)
    return filters


# Report


def draw_report(period: Period, filters: Filters) -> None:
    """Draw the button which saves the report. Administrators also choose who gets the report by e-mail."""
    scheduled = services().scheduled_work
    with st.popover(_("Report"), icon=":material/summarize:", key="analytics_report"):
        draw_pdf(period, filters)
        st.caption(
            _(
                "The report compares the figures of the chosen period and filters with the previous period. It also "
                "lists unanswered questions and the most used documents."
            )
        )
        if not identity.may(Role.ADMIN):
            return
        if not scheduled.can_send:
            st.caption(
                _(
                    "The report and alerts are sent only after the operator of this installation has set up a mail "
                    "server. The report is then sent every Monday."
                )
            )
            return
        actions.draw_problem(REPORT_PROBLEM)
        recipients = scheduled.recipients(identity.tenant_id)
        st.selectbox(
            _("Send the report by e-mail every Monday to"), list(REPORT_READERS),
            index=place_of_reader(recipients.digest_for),
            format_func=words_of(REPORT_READERS), key="analytics_report_to", on_change=save_readers,
        )  # fmt: skip
        st.selectbox(
            _("Send alerts about budgets and declining answers to"), list(REPORT_READERS),
            index=place_of_reader(recipients.alerts_for),
            format_func=words_of(REPORT_READERS), key="analytics_alerts_to", on_change=save_readers,
        )  # fmt: skip


def draw_pdf(period: Period, filters: Filters) -> None:
    pdfs = services().pdf_exports
    if pdfs is None:
        return
    if not pdfs.is_installed:
        st.button(_("Save as PDF"), icon=":material/download:", key="analytics_report_no_pdf", disabled=True)
        st.warning(plain(PackagesMissing().message), icon=":material/extension_off:")
        return
    actions.draw_export(
        identity, _("Save as PDF"), partial(report_pdf, pdfs, period, filters, current()),
        f"report_{period.first}_{period.last}.pdf", key="analytics_report_pdf", media_type="application/pdf",
    )  # fmt: skip


def report_pdf(pdfs: PdfExports, period: Period, filters: Filters, language: str) -> bytes:
    # Built on click, in a thread without a known language.
    with speaking(language):
        return pdfs.write_report(services().scheduled_work.digest(identity, period, filters, chosen=names_of(filters)))


def choose_language(period: Period) -> str | None:
    languages = analytics.languages(identity, period)
    address_language = st.query_params.get("analytics_language", "")
    # A key per address lets Back and table rows change the choice.
    key = f"analytics_language_{address_language if address_language in languages else ''}"
    if len(languages) < 2:
        return None
    names = {code: language_name(code) for code in languages}
    return filter_box(
        _("Language"), names, everything=_("All languages"), key=key, width=175,
        index=languages.index(address_language) if address_language in languages else None,
        on_change=lambda: put_in_address("analytics_language", st.session_state[key]),
    )  # fmt: skip


def names_of(filters: Filters) -> list[str]:
    """Return the displayed names of the filters in use."""
    library, document, collection = services().documents, filters.document_id, filters.collection_id
    documents = library.names(identity, replace(ANSWERING, document_ids=(document,)), limit=1) if document else []
    names = [named.name for named in library.collections(identity) if named.id == collection] if collection else []
    language = language_name(filters.language) if filters.language else ""
    return [*(named.title for named in documents), *filter(None, (filters.user_group, language)), *names]


def place_of_reader(role: Role | None) -> int:
    return list(REPORT_READERS).index("nobody" if role is None else role.value)


def save_readers() -> None:
    state = st.session_state
    chosen = [None if value == "nobody" else Role(value) for value in (state.analytics_report_to,
                                                                         state.analytics_alerts_to)]  # fmt: skip
    recipients = Recipients(digest_for=chosen[0], alerts_for=chosen[1])
    actions.attempt(REPORT_PROBLEM, services().scheduled_work.set_recipients, identity, recipients)


# Questions


def draw_questions(period: Period, filters: Filters) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        text = search_box(_("Search questions and answers"), key="analytics_text", bind="query-params", width=300)
        outcome = filter_box(
            _("Outcome"), {name: _(OUTCOME_WORDS[name]) for name in OUTCOMES}, everything=_("Any outcome"),
            key="analytics_outcome", bind="query-params", width=210,
        )  # fmt: skip
        rating = filter_box(
            _("Rating"), {rating: _(words) for rating, words in RATINGS.items()}, everything=_("Any rating"),
            key="analytics_rating", bind="query-params", width=185,
        )  # fmt: skip
        order = choose_word(_("Order"), ORDERS, key="analytics_order", default="Newest")
        kind = choose_word(
            _("Kind"),
            KINDS,
            key="analytics_kind",
            default="question",
            help_text=_(
                "Paid searches by programs that asked for no answer. The figures above do not count these searches "
                "as questions, but include their cost."
            ),
        )
        question_filters = QuestionFilters(text=text, outcome=outcome, kind=kind, rating=rating)
        actions.draw_export(
            identity,
            _("Export CSV"),
            partial(export, period, filters, question_filters),
            f"questions_{period.first}_{period.last}.csv",
            key="analytics_export",
        )
    page = int(st.session_state.get("analytics_page", 1))
    # Counting every match for a text would take long: count only enough to know whether there is another page.
    most = page * ROWS_PER_PAGE + 1 if question_filters.text.strip() else None
    total = analytics.count_questions(identity, period, filters, question_filters, most=most)
    if not total:
        st.caption(_("No question matches. Change the search, the outcome or the period."))
        return
    last_page = -(-total // ROWS_PER_PAGE)
    # The page chosen for other filters may be past the end.
    page = min(page, last_page)
    rows = analytics.questions(
        identity,
        period,
        filters,
        question_filters,
        slowest_first=order == "Slowest",
        limit=ROWS_PER_PAGE,
        offset=(page - 1) * ROWS_PER_PAGE,
    )
    states = [(_(words), color) for words, color in (*OUTCOMES.values(), IN_PROGRESS)]
    rated = {1: _("helpful"), 0: _("not helpful"), None: None}
    asker = {_("Asked by"): lists.texts((row.asker or "–" for row in rows), 112)}
    chosen = lists.choose_row(
        rows,
        {
            _("Asked"): lists.times((row.created_at for row in rows), 105, with_year=False),
            _("Question"): lists.texts((row.question for row in rows), 218),
            _("Outcome"): lists.badges(
                ([_(OUTCOMES.get(row.outcome or "", IN_PROGRESS)[0])] for row in rows), states, 192
            ),
            # On a small screen the last columns are out of sight.
            _("Time (s)"): lists.bars((seconds(row.total_ms) for row in rows), 90),
            _("Cost"): lists.amounts(
                (known_cost_words(row.cost, row.is_priced) for row in rows),
                80,
                help_text=_("“≥” means “at least”: the price of some calls is not known, so their cost is missing."),
            ),
            _("Rated"): lists.texts((rated[row.rating] for row in rows), 85),
            **(asker if analytics.shows_names(identity) else {}),
            _("Group"): lists.texts((row.user_group or "–" for row in rows), 92),
            _("Language"): lists.Column(
                [language_name(row.language) for row in rows],
                st.column_config.TextColumn(_("Lang"), width=45, help=_("Language")),
            ),
        },
        key="analytics_questions",
        alt=_("Questions asked in this period"),
    )
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.caption(
            _(
                "{total}. Select a row (Shift + Space on the keyboard) to see everything about it.",
                total=("≥ " if total == most else "") + count(total, "question"),
            ),
            width="content",
        )
        if last_page > 1:
            st.pagination(last_page, key="analytics_page")
    if chosen is not None:
        with st.container(border=True):
            draw_details(chosen.id)


def export(period: Period, filters: Filters, question_filters: QuestionFilters) -> bytes:
    """Return the questions as CSV."""
    return analytics.export_csv(identity, period, filters, question_filters)


def draw_details(chat_log_id: UUID) -> None:
    try:
        entry = analytics.question(identity, chat_log_id)
    except NotFound:
        st.caption(_("This question is no longer there."))
    else:
        draw_question(entry, zone)
        draw_golden_button(entry)
        draw_run_again(identity, entry)


def draw_golden_button(entry: ChatLogEntry) -> None:
    """Draw a button with which an administrator adds the question to the test questions."""
    if not identity.may(Role.ADMIN) or not entry.question.question:
        return
    of_it = (c for c in services().documents.collections(identity) if c.id == entry.question.collection_id)
    collection = next(of_it, None)
    key = f"analytics_golden_from_{entry.question.id}"
    if collection is not None and st.button(
        _("Make this a test question"), icon=":material/verified:", key=key, help=_(ABOUT_GOLDEN)
    ):
        add_golden_from(identity, collection, entry)


def draw_nothing(filters: Filters) -> None:
    draw_empty(
        ":material/monitoring:",
        _("**Nothing was asked in this period**"),
        _("Choose a longer period or take the filters away.")
        if filters != Filters()
        else _(
            "After the first question in the chat, figures appear here: costs, times, and what was found. Choose a "
            "longer period to look further back."
        ),
    )


# The page

read_address(IN_ADDRESS)
period = choose_period()
filters = choose_filters(period)
with st.container(key="analytics_warnings"):  # Keeps the parts below in place.
    draw_warnings(identity)
overview, costs, times, search, questions, gaps, quality = st.tabs(
    [_(view) for view in VIEWS],
    key="analytics_view",
    on_change="rerun",
    bind="query-params",
)
with_figures = (overview, costs, times, search, questions)
if any(view.open for view in with_figures):
    summary = analytics.summary(identity, period, filters)
    draw_figures = partial(
        draw_metrics,
        identity,
        summary,
        period,
        zone=analytics.zones.name(identity),
        shows_names=analytics.shows_names(identity),
    )
    has_figures = bool(summary.current.questions or summary.current.calls)
    for tab in with_figures:
        if tab.open and not has_figures:
            with tab:
                draw_nothing(filters)
    if overview.open and has_figures:
        with overview:
            draw_figures()
            draw_overview(analytics, identity, period, filters, summary, choose)
    if costs.open and has_figures:
        with costs:
            draw_figures()
            draw_costs(analytics, identity, period, filters, services().chat_logs.tenant_prices(identity.tenant_id))
    if times.open and has_figures:
        with times:
            draw_figures()
            draw_times(analytics, identity, period, filters, draw_details)
    if search.open and has_figures:
        with search:
            draw_search(analytics, identity, period, filters, partial(open_document, identity))
    if questions.open and has_figures:
        with questions:
            st.fragment(draw_questions)(period, filters)
if gaps.open:
    with gaps:
        st.fragment(draw_gaps)(identity, period, filters, draw_details)
if quality.open:
    with quality:
        draw_quality(identity, draw_details)
