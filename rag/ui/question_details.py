"""Draw one question in full: its answer, where the time went, what was found in which order, tokens and costs."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import tzinfo
from typing import Any

import pandas as pd
import streamlit as st

from rag.records.chat_logs import ChatLogEntry
from rag.ui.charts import OPERATION_NAMES, waterfall_figure
from rag.ui.formats import count, date_time, duration, money, pages
from rag.ui.text import answer_markdown, plain
from rag.ui.theme import PLOTLY_CONFIG

#: Outcome as (words, colour of its badge).
OUTCOMES: Mapping[str, tuple[str, str]] = {
    "answered": ("Answered", "green"),
    "perhaps": ("Partly", "blue"),
    "no_context": ("Not in the documents", "orange"),
    "small_talk": ("Small talk", "gray"),
    "asked_back": ("Asked back", "blue"),
    "refused": ("Refused", "violet"),
    "stopped": ("Stopped", "gray"),
    "failed": ("Failed", "red"),
}
OUTCOME_WORDS: Mapping[str, str] = {outcome: words for outcome, (words, _) in OUTCOMES.items()}
IN_PROGRESS = ("In progress", "blue")
#: Columns of the passages where nothing was reranked.
NOT_RERANKED = ("Before", "Document", "Page", "Section", "Similarity", "Passage")


def cost_words(cost: Any, is_priced: bool) -> str:
    """Write a question's cost; calls without a known price are named, never counted as zero."""
    if is_priced:
        return money(cost)
    return f"{money(cost)} + unpriced" if cost else "unpriced"


def draw_question(entry: ChatLogEntry, zone: tzinfo) -> None:
    """Draw everything logged about a question."""
    question, details = entry.question, entry.rag_details
    words, color = OUTCOMES.get(question.outcome or "", IN_PROGRESS)
    st.subheader(f"{plain(question.question)} :{color}-badge[{words}]", anchor=False)
    facts = [date_time(question.created_at, zone), plain(question.user_group) or "no group"]
    facts += [plain(question.language)] if question.language else []
    facts.append(duration(question.total_ms))
    facts += [f"first words after {duration(question.first_token_ms)}"] if question.first_token_ms else []
    facts.append(plain(cost_words(question.cost, question.is_priced)))
    st.caption(" · ".join(facts))
    if question.error:
        st.error(plain(question.error), icon=":material/error:")
    _draw_answer(entry)
    if details.get("timing"):
        st.markdown("**Where the time went**")
        st.plotly_chart(
            waterfall_figure(details["timing"]),
            config=PLOTLY_CONFIG,
            key=f"analytics_waterfall_{question.id}",
            alt=f"Stages of this question, {duration(question.total_ms)} in total",
        )
    _draw_passages(entry)
    _draw_charges(entry)
    with st.expander("Everything logged, as JSON", icon=":material/data_object:"):
        st.json(details, expanded=1)


def _draw_answer(entry: ChatLogEntry) -> None:
    question = entry.question
    query = entry.rag_details.get("query") or {}
    if query.get("translatedQuery"):
        st.markdown(f":material/translate: Searched as “{plain(query['translatedQuery'])}”")
    if question.answer:
        with st.container(border=True):
            st.markdown(answer_markdown(question.answer))
    if question.documents:
        st.markdown(" ".join(f":blue-badge[:material/description: {plain(title)}]" for title in question.documents))
    if question.rating is not None:
        thumb = ":green[:material/thumb_up:] Helpful" if question.rating else ":red[:material/thumb_down:] Not helpful"
        st.markdown(thumb + (f": “{plain(question.comment)}”" if question.comment else ""))


def _draw_passages(entry: ChatLogEntry) -> None:
    search, reranking = (entry.rag_details.get(part) or {} for part in ("search", "reranking"))
    st.markdown("**What was found**")
    if not entry.passages:
        st.caption("No passage was found, or the search did not run.")
        return
    facts = [f"{plain(search.get('type', ''))} search", f"{search.get('vectorTopK', 0):d} candidates asked for"]
    facts.append(f"{search.get('finalTopK', 0):d} wanted")
    if reranking.get("enabled"):
        taken = f"{reranking.get('inputDocuments', 0):d} to {reranking.get('outputDocuments', 0):d}"
        facts.append(
            f"reranked by {plain(reranking.get('model', ''))} from {taken} in {duration(reranking.get('latencyMs'))}"
        )
    else:
        facts.append("not reranked")
    st.caption(" · ".join(facts))
    st.dataframe(
        pd.DataFrame(
            {
                "Before": [p.original_rank or p.position for p in entry.passages],
                "After": pd.array([p.new_rank for p in entry.passages], dtype="Int64"),
                "Document": [p.title or "Deleted document" for p in entry.passages],
                "Page": [pages(p.first_page or 0, p.last_page or 0) for p in entry.passages],
                "Section": [p.section for p in entry.passages],
                "Similarity": [p.similarity for p in entry.passages],
                "Rerank score": [p.rerank_score for p in entry.passages],
                "Passage": [" ".join(p.preview.split()) for p in entry.passages],
            }
        ),
        key=f"analytics_passages_{entry.question.id}",
        hide_index=True,
        column_order=None if reranking.get("enabled") else NOT_RERANKED,
        placeholder="–",
        column_config={
            "Before": st.column_config.NumberColumn(
                "Before" if reranking.get("enabled") else "Place",
                width=60,
                help="Place as found, before any reranking.",
            ),
            "After": st.column_config.NumberColumn(width=55, help="Place after reranking; – when it was left out."),
            "Document": st.column_config.TextColumn(width=170),
            "Page": st.column_config.TextColumn(width=75),
            "Section": st.column_config.TextColumn(width=130),
            "Similarity": st.column_config.ProgressColumn(min_value=0, max_value=1, format="%.3f", width=120),
            "Rerank score": st.column_config.NumberColumn(format="%.3f", width=100),
            "Passage": st.column_config.TextColumn(width="large"),
        },
        alt="Passages found, with their places before and after reranking",
    )


def _draw_charges(entry: ChatLogEntry) -> None:
    model = entry.rag_details.get("openai") or {}
    st.markdown("**Tokens and costs**")
    if model.get("model"):
        st.caption(
            f"{plain(model['model'])} at temperature {model.get('temperature', 0):g} · prompt of "
            f"{count(model.get('inputTokens', 0), 'token')}, {model.get('systemPromptTokens', 0):,} of them "
            f"instructions · answer of {count(model.get('outputTokens', 0), 'token')} · "
            f"streamed for {duration(model.get('streamingDurationMs'))}"
        )
    if not entry.charges:
        st.caption("No paid call was made.")
        return
    st.dataframe(
        pd.DataFrame(
            {
                "For": [OPERATION_NAMES.get(c.operation, c.operation) for c in entry.charges],
                "Model": [f"{c.provider}/{c.model}" for c in entry.charges],
                "Tokens in": [c.input_tokens for c in entry.charges],
                "of them cached": [c.cached_input_tokens for c in entry.charges],
                "Tokens out": [c.output_tokens for c in entry.charges],
                "Search units": [c.search_units for c in entry.charges],
                "Cost": [_exact_money(c.cost) + (" (estimated)" if c.is_estimated else "") for c in entry.charges],
            }
        ),
        key=f"analytics_charges_{entry.question.id}",
        hide_index=True,
        column_config={"Cost": st.column_config.TextColumn(alignment="right")},
        alt="Paid calls of this question",
    )


def _exact_money(cost: Any) -> str:
    """Write a cost with all digits the ledger has: single calls cost millionths of a dollar."""
    return money(None) if cost is None else f"${cost.normalize():f}"
