"""Draw the analytics tab on search: scores, effects of reranking and translation, passages, and errors."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

import pandas as pd
import streamlit as st

from rag.language import N_, _, ngettext, number, translated
from rag.records.analytics import LATEST, Analytics, Filters, LoggedSearch, PartsBy, Period
from rag.types import Who
from rag.ui import lists
from rag.ui.charts import OPERATION_NAMES, draw_chart, score_figure
from rag.ui.formats import language_name, pages, percent
from rag.ui.text import plain
from rag.ui.widgets import choose_word, draw_head

SCORES = {"similarity": N_("Similarity"), "score": N_("Score of the second sorting")}
SEARCHES_BY: Mapping[PartsBy, str] = {"group": N_("Group"), "language": N_("Language"), "collection": N_("Collection")}


def draw_search(
    analytics: Analytics, who: Who, period: Period, filters: Filters, open_document: Callable[[UUID], None]
) -> None:
    """Draw how well a period's searches worked. A chosen passage opens its document."""
    searches = analytics.searches(who, period, filters)
    if len(searches) >= LATEST:
        st.caption(_("Based on the latest {count} questions of this period.", count=number(LATEST)))
    left, right = st.columns(2)
    with left.container(border=True, height="stretch"):
        _draw_scores(searches)
    with right.container(border=True, height="stretch"):
        _draw_changes(searches)
    with st.container(border=True):
        _draw_by_part(searches)
    with st.container(border=True):
        _draw_passages(analytics, who, period, filters, open_document)


def _draw_scores(searches: Sequence[LoggedSearch]) -> None:
    with draw_head(_("How similar the best passage was")):
        kind = choose_word(_("Score"), SCORES, key="analytics_score", default="similarity")
    scored = [(s, value) for s in searches if (value := s.score if kind == "score" else s.similarity) is not None]
    if not scored:
        st.caption(
            _("No results in this period were sorted a second time.")
            if kind == "score"
            else _("No search in this period has scores.")
        )
        return
    answered = [value for search, value in scored if search.is_answered]
    missed = [value for search, value in scored if not search.is_answered]
    figure, rows = score_figure(answered, missed)
    draw_chart(
        figure,
        pd.DataFrame(rows, columns=[_("From"), _("Answered"), _("Not answered")]),
        key=f"analytics_score_chart_{kind}",
        alt=_("Number of questions, by the score of the best passage"),
    )
    st.caption(
        _(
            "If answered and unanswered questions have clearly different scores, the score shows whether a question "
            "can be answered."
        )
    )


def _draw_changes(searches: Sequence[LoggedSearch]) -> None:
    st.header(_("What the second sorting and the translation changed"), anchor=False)
    reranked = reranking_of(searches)
    if reranked is not None:
        with st.container(horizontal=True):
            st.metric(
                _("Second sorting put another passage first"), percent(reranked.moved),
                help=_("Of the questions with a second sorting, the share for which the second sorting put another "
                       "passage first."),
            )  # fmt: skip
            if reranked.place is not None:
                st.metric(
                    _("Previous place of the passages that are now first"), f"{reranked.place:g}",
                    help=_("The middle value (median) of the places from which the second sorting moved these "
                           "passages to the first place."),
                )  # fmt: skip
            st.metric(
                _("Best passage moved up from below place 5"), percent(reranked.far),
                help=_("Without the second sorting, these passages might not have been read at all."),
            )  # fmt: skip
        words = ngettext(
            "The results of {count} question were sorted a second time.",
            "The results of {count} questions were sorted a second time.",
            reranked.questions,
        )
        st.caption(plain(words))
    else:
        st.caption(_("No results in this period were sorted a second time."))
    groups = []
    for words, chosen in (
        (_("Translated for the search"), [search for search in searches if search.is_translated]),
        (_("Searched without translation"), [search for search in searches if not search.is_translated]),
        (_("Sorted a second time"), [search for search in searches if search.is_reranked]),
        (_("Not sorted a second time"), [search for search in searches if not search.is_reranked]),
    ):
        if chosen:
            groups.append((words, search_group(words, chosen)))
    lists.draw(
        {
            _("Kind of question"): [words for words, _group in groups],
            _("Questions"): [group.questions for _words, group in groups],
            _("Answered"): lists.amounts(percent(group.answered) for _words, group in groups),
            _("Similarity of the best passage"): [group.similarity for _words, group in groups],
        },
        key="analytics_search_changes",
        alt=_("Questions with and without translation and second sorting"),
    )


def _draw_by_part(searches: Sequence[LoggedSearch]) -> None:
    with draw_head(_("Where the search works well")):
        by = choose_word(_("Show searches by"), SEARCHES_BY, key="analytics_search_by", default="language")
    groups = search_groups(searches, by)
    lists.draw(
        {
            _(SEARCHES_BY[by]): [part_name(by, group.name) for group in groups],
            _("Questions"): lists.bars((group.questions for group in groups), 140),
            _("Answered"): lists.amounts(percent(group.answered) for group in groups),
            _("Similarity of the best passage"): lists.numbers(
                (group.similarity for group in groups),
                style="localized",
                help_text=_(
                    "The middle value (median): half of the questions have a higher value, and half have a lower value."
                ),
            ),
            _("Translated"): [group.translated for group in groups],
            _("Sorted a second time"): [group.reranked for group in groups],
        },
        key=f"analytics_search_parts_{by}",
        alt=_("Search results by {kind}", kind=_(SEARCHES_BY[by]).lower()),
    )


def _draw_passages(
    analytics: Analytics, who: Who, period: Period, filters: Filters, open_document: Callable[[UUID], None]
) -> None:
    st.header(_("Passages that answers cite most"), anchor=False)
    uses = analytics.top_passages(who, period, filters)
    if not uses:
        st.caption(_("Nothing to show yet. Only answers with stored sources are counted here."))
        return
    chosen = lists.choose_row(
        uses,
        {
            _("Document"): lists.texts((use.title for use in uses), 190),
            _("Page"): lists.texts((pages(use.first_page, use.last_page) for use in uses), 75),
            _("Answers"): lists.bars((use.questions for use in uses), 110),
            _("Cited, does not support the answer"): lists.numbers(
                (use.not_held for use in uses),
                110,
                help_text=_("How many answers cite this passage for something that it does not say."),
            ),
            _("Passage"): lists.texts((" ".join(use.text.split()) for use in uses), "large"),
        },
        key="analytics_top_passages",
        of=lambda use: (use.document_id, use.text),
        alt=_("Passages by the number of answers that cite them"),
    )
    st.caption(_("Select a row to open the document."))
    if chosen is not None:
        open_document(chosen.document_id)


def draw_errors(
    analytics: Analytics, who: Who, period: Period, filters: Filters, draw_details: Callable[[UUID], None]
) -> None:
    """Draw why questions failed, the notices shown under answers, and model calls which were cut off or repeated."""
    st.header(_("Errors and repeated calls"), anchor=False)
    errors, repeated = analytics.errors(who, period, filters), analytics.repeated_calls(who, period)
    notices = analytics.notices(who, period, filters)
    if not errors and not notices and not repeated:
        st.caption(_("No question failed in this period, and no call had to be repeated."))
        return
    if errors:
        _draw_sentences(
            [(translated(error.error), error.times, error.last_at, error.latest_id) for error in errors],
            key="analytics_errors", alt=_("Why questions failed or were refused"), draw_details=draw_details,
        )  # fmt: skip
    if notices:
        st.caption(_("Problems that limited or prevented answers:"))
        _draw_sentences(
            [(translated(notice.notice), notice.times, notice.last_at, notice.latest_id) for notice in notices],
            key="analytics_notices", alt=_("Errors and repeated calls"), draw_details=draw_details,
        )  # fmt: skip
    if errors or notices:
        st.caption(_("Select a row (Shift + Space on the keyboard) to see everything about it."))
    if repeated:
        st.caption(_("Calls that were cut off or repeated, with their estimated cost:"))
        lists.draw(
            {
                _("Model"): [f"{row.provider}/{row.model}" for row in repeated],
                _("For"): [_(OPERATION_NAMES.get(row.operation, row.operation)) for row in repeated],
                _("Calls"): [row.calls for row in repeated],
            },
            key="analytics_repeated",
            alt=_("Calls that were cut off or repeated"),
        )


def _draw_sentences(
    rows: Sequence[tuple[str, int, datetime, UUID]],
    *,
    key: str,
    alt: str,
    draw_details: Callable[[UUID], None],
) -> None:
    chosen = lists.choose_row(
        rows,
        {
            _("Problem"): lists.texts((sentence for sentence, _times, _last, _latest in rows), "large"),
            _("How often"): [times for _sentence, times, _last, _latest in rows],
            _("Last"): lists.times((last for _sentence, _times, last, _latest in rows), 110, with_year=False),
        },
        key=key,
        of=lambda row: row[3],
        alt=alt,
    )
    if chosen is not None:
        with st.container(border=True):
            draw_details(chosen[3])


class RerankingEffect(NamedTuple):
    """The effects of reranking.

    `moved` and `far` are fractions (0 to 1) of the reranked questions, and `place` is a rank.
    """

    questions: int
    #: The first passage changed.
    moved: float
    #: The first passage's median place before reranking, if it changed; `None` if it never did.
    place: float | None
    #: The first passage came from below the fifth place.
    far: float


class SearchGroup(NamedTuple):
    """Searches with a common language, group or collection, with averages."""

    name: str
    questions: int
    answered: float
    #: The median of the best similarities.
    similarity: float | None
    translated: int
    reranked: int


def reranking_of(searches: Sequence[LoggedSearch]) -> RerankingEffect | None:
    """Return the effects of reranking; `None` if no search was reranked."""
    places = [search.moved_from for search in searches if search.moved_from is not None]
    if not places:
        return None
    moved = [place for place in places if place > 1]
    return RerankingEffect(
        questions=len(places),
        moved=len(moved) / len(places),
        place=statistics.median(moved) if moved else None,
        far=sum(place > 5 for place in places) / len(places),
    )


def part_name(by: PartsBy, name: str) -> str:
    """Return the displayed name of a group of searches: a language, a user group or a collection."""
    if by == "language" and name:
        return language_name(name)
    return name or _("none")


def search_groups(searches: Sequence[LoggedSearch], by: PartsBy) -> list[SearchGroup]:
    """Group searches by language, group or collection, largest group first."""
    groups: dict[str, list[LoggedSearch]] = {}
    for search in searches:
        name = {"language": search.language, "group": search.user_group, "collection": search.collection}[by]
        groups.setdefault(name, []).append(search)
    return sorted((search_group(*part) for part in groups.items()), key=lambda part: (-part.questions, part.name))


def search_group(name: str, searches: Sequence[LoggedSearch]) -> SearchGroup:
    """Return the averages over searches (at least one) in a group."""
    similar = [search.similarity for search in searches if search.similarity is not None]
    return SearchGroup(
        name,
        len(searches),
        sum(search.is_answered for search in searches) / len(searches),
        round(statistics.median(similar), 3) if similar else None,
        sum(search.is_translated for search in searches),
        sum(search.is_reranked for search in searches),
    )
