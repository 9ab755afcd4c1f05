"""Draw the tab of analytics about the search: scores, what reranking and translation changed, passages, and errors."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import cast

import pandas as pd
import streamlit as st

from rag.language import N_, _, ngettext, number, translated
from rag.records.analytics import LATEST, Analytics, Filters, LoggedSearch, PartsBy, Period
from rag.types import Who
from rag.ui.charts import OPERATION_NAMES, draw_chart, score_figure
from rag.ui.formats import pages, percent
from rag.ui.widgets import time_column, words_of

SCORES = {"similarity": N_("Similarity"), "score": N_("Rerank score")}
SEARCHES_BY = {"group": N_("Group"), "language": N_("Language"), "collection": N_("Collection")}


def draw_search(analytics: Analytics, who: Who, period: Period, filters: Filters) -> None:
    """Draw what was found for the questions of a period, and how well."""
    searches = analytics.searches(who, period, filters)
    if len(searches) >= LATEST:
        st.caption(_("Of the latest {count} questions of this period.", count=number(LATEST)))
    left, right = st.columns(2)
    with left.container(border=True, height="stretch"):
        _draw_scores(searches)
    with right.container(border=True, height="stretch"):
        _draw_changes(searches)
    with st.container(border=True):
        _draw_by_part(searches)
    with st.container(border=True):
        _draw_passages(analytics, who, period, filters)


def _draw_scores(searches: Sequence[LoggedSearch]) -> None:
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.header(_("How near the best passage was"), anchor=False, width="content")
        kind = st.segmented_control(
            _("Score"), list(SCORES), default="similarity", required=True, format_func=words_of(SCORES),
            key="analytics_score", label_visibility="collapsed", bind="query-params",
        )  # fmt: skip
    found = [(s, value) for s in searches if (value := s.score if kind == "score" else s.similarity) is not None]
    if not found:
        st.caption(
            _("Nothing was reranked in this period.") if kind == "score" else _("No search of this period has scores.")
        )
        return
    answered = [value for search, value in found if search.is_answered]
    missed = [value for search, value in found if not search.is_answered]
    figure, rows = score_figure(answered, missed)
    draw_chart(
        figure,
        pd.DataFrame(rows, columns=[_("From"), _("Answered"), _("Not answered")]),
        key=f"analytics_score_chart_{kind}",
        alt=_("How many questions by the score of their best passage"),
    )
    st.caption(_("Where answered and not answered questions lie apart, the score tells them apart."))


def _draw_changes(searches: Sequence[LoggedSearch]) -> None:
    st.header(_("What reranking and translation changed"), anchor=False)
    reranked = [search for search in searches if search.moved_from is not None]
    if reranked:
        moved = [search for search in reranked if (search.moved_from or 1) > 1]
        with st.container(horizontal=True):
            st.metric(
                _("Another passage came first"), percent(len(moved) / len(reranked)),
                help=_("Of the reranked questions: the best passage after reranking was not the first before."),
            )  # fmt: skip
            if moved:
                middle = statistics.median(search.moved_from or 1 for search in moved)
                st.metric(_("It had been at place"), f"{middle:g}", help=_("The median of those places."))
            far = sum(1 for search in reranked if (search.moved_from or 1) > 5)
            st.metric(
                _("From below the fifth place"), percent(far / len(reranked)),
                help=_("Without reranking, these passages might not have been read at all."),
            )  # fmt: skip
        st.caption(ngettext("{count} question was reranked.", "{count} questions were reranked.", len(reranked)))
    else:
        st.caption(_("Nothing was reranked in this period."))
    rows = []
    for words, chosen in (
        (_("Translated for the search"), [search for search in searches if search.is_translated]),
        (_("Searched as asked"), [search for search in searches if not search.is_translated]),
        (_("Reranked"), [search for search in searches if search.is_reranked]),
        (_("Not reranked"), [search for search in searches if not search.is_reranked]),
    ):
        if chosen:
            rows.append((words, len(chosen), percent(_answered(chosen)), _middle(chosen)))
    st.dataframe(
        pd.DataFrame(rows, columns=[_("Questions that were"), _("Questions"), _("Answered"), _("Best similarity")]),
        hide_index=True, height="content", key="analytics_search_changes",
        column_config={_("Answered"): st.column_config.TextColumn(alignment="right")},
        alt=_("Questions with and without translation and reranking"),
    )  # fmt: skip


def _draw_by_part(searches: Sequence[LoggedSearch]) -> None:
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.header(_("Where the search does well"), anchor=False, width="content")
        by = cast(
            PartsBy,
            st.segmented_control(
                _("Searches by"), list(SEARCHES_BY), default="language", required=True,
                format_func=words_of(SEARCHES_BY), key="analytics_search_by", label_visibility="collapsed",
                bind="query-params",
            ),
        )  # fmt: skip
    parts: dict[str, list[LoggedSearch]] = {}
    for search in searches:
        name = {"language": search.language, "group": search.user_group, "collection": search.collection}[by]
        parts.setdefault(name, []).append(search)
    ordered = sorted(parts.items(), key=lambda part: (-len(part[1]), part[0]))
    st.dataframe(
        pd.DataFrame(
            {
                _(SEARCHES_BY[by]): [name or _("none") for name, _searches in ordered],
                _("Questions"): [len(found) for _name, found in ordered],
                _("Answered"): [percent(_answered(found)) for _name, found in ordered],
                _("Best similarity"): [_middle(found) for _name, found in ordered],
                _("Translated"): [sum(search.is_translated for search in found) for _name, found in ordered],
                _("Reranked"): [sum(search.is_reranked for search in found) for _name, found in ordered],
            }
        ),
        hide_index=True,
        height="content",
        key=f"analytics_search_parts_{by}",
        column_config={
            _("Questions"): st.column_config.ProgressColumn(
                min_value=0, max_value=max((len(found) for found in parts.values()), default=1), format="%d", width=140
            ),
            _("Answered"): st.column_config.TextColumn(alignment="right"),
            _("Best similarity"): st.column_config.NumberColumn(help=_("The median over the questions.")),
        },
        alt=_("What the search brought by {kind}", kind=_(SEARCHES_BY[by]).lower()),
    )


def _draw_passages(analytics: Analytics, who: Who, period: Period, filters: Filters) -> None:
    st.header(_("Passages that answers name most"), anchor=False)
    found = analytics.top_passages(who, period, filters)
    if not found:
        st.caption(_("Passages are counted here from the first answers on whose sources were kept."))
        return
    st.dataframe(
        pd.DataFrame(
            {
                _("Document"): [use.title for use in found],
                _("Page"): [pages(use.first_page, use.last_page) for use in found],
                _("Answers"): [use.questions for use in found],
                _("Does not hold"): [use.not_held for use in found],
                _("Passage"): [" ".join(use.text.split()) for use in found],
            }
        ),
        hide_index=True,
        height="content" if len(found) <= 10 else 390,
        key="analytics_top_passages",
        column_config={
            _("Document"): st.column_config.TextColumn(width=190),
            _("Page"): st.column_config.TextColumn(width=75),
            _("Answers"): st.column_config.ProgressColumn(
                min_value=0, max_value=max(use.questions for use in found), format="%d", width=110
            ),
            _("Does not hold"): st.column_config.NumberColumn(
                width=110, help=_("Answers that name it for something it does not say.")
            ),
            _("Passage"): st.column_config.TextColumn(width="large"),
        },
        alt=_("Passages by the number of answers that name them"),
    )


def draw_errors(analytics: Analytics, who: Who, period: Period, filters: Filters) -> None:
    """Draw why questions failed, and which calls were cut off or repeated."""
    st.header(_("Errors and repeated calls"), anchor=False)
    errors, repeated = analytics.errors(who, period, filters), analytics.repeated_calls(who, period)
    if not errors and not repeated:
        st.caption(_("No question failed in this period, and no call had to be repeated."))
        return
    if errors:
        st.dataframe(
            pd.DataFrame(
                {
                    _("What was said"): [translated(error.error) for error in errors],
                    _("Times"): [error.times for error in errors],
                    _("Last"): [error.last_at for error in errors],
                }
            ),
            hide_index=True,
            height="content" if len(errors) <= 6 else 250,
            key="analytics_errors",
            column_config={
                _("What was said"): st.column_config.TextColumn(width="large"),
                _("Last"): time_column(with_year=False, width=110),
            },
            alt=_("Why questions failed or were refused"),
        )
    if repeated:
        st.caption(_("Calls that were cut off or repeated, charged by estimate:"))
        st.dataframe(
            pd.DataFrame(
                {
                    _("Model"): [f"{row.provider}/{row.model}" for row in repeated],
                    _("For"): [_(OPERATION_NAMES.get(row.operation, row.operation)) for row in repeated],
                    _("Calls"): [row.calls for row in repeated],
                }
            ),
            hide_index=True,
            height="content" if len(repeated) <= 6 else 250,
            key="analytics_repeated",
            alt=_("Calls that were cut off or repeated"),
        )


def _answered(searches: Sequence[LoggedSearch]) -> float:
    return sum(search.is_answered for search in searches) / len(searches)


def _middle(searches: Sequence[LoggedSearch]) -> float | None:
    values = [search.similarity for search in searches if search.similarity is not None]
    return round(statistics.median(values), 3) if values else None
