"""Draw a question in full: its answer, timing, found passages and their order, tokens and costs.

The question can be asked again with a different profile or settings; both answers are drawn side by side.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import tzinfo
from typing import Any
from uuid import UUID

import pandas as pd
import streamlit as st

from rag.errors import RagError
from rag.language import N_, _, translated
from rag.profiles import PROFILES, profile_by_name, profile_of
from rag.profiles.profile import SETTINGS
from rag.records.chat_logs import ChatLogEntry
from rag.services import services
from rag.types import Identity
from rag.ui import actions, lists
from rag.ui.charts import OPERATION_NAMES, STAGE_NAMES, draw_chart, outcome_names, stage_parts, waterfall_figure
from rag.ui.formats import count, date_time, duration, language_name, money, pages, thousands
from rag.ui.forms import draw_field
from rag.ui.text import answer_markdown, plain
from rag.ui.widgets import name_labels

#: Outcome: words and badge colour.
OUTCOMES: Mapping[str, tuple[str, str]] = {
    "answered": (N_("Answered"), "green"),
    "perhaps": (N_("Partly"), "blue"),
    "no_context": (N_("Not in the documents"), "orange"),
    "small_talk": (N_("Small talk"), "gray"),
    "asked_back": (N_("Asked the person for clarification"), "blue"),
    "refused": (N_("Refused"), "violet"),
    "stopped": (N_("Stopped"), "gray"),
    "failed": (N_("Failed"), "red"),
}
OUTCOME_WORDS: Mapping[str, str] = {outcome: words for outcome, (words, _) in OUTCOMES.items()}
IN_PROGRESS = (N_("In progress"), "blue")
SOURCE_STATES: Mapping[str, tuple[str, str]] = {
    "held": (N_("Cited, supports the answer"), "green"),
    "not held": (N_("Cited, does not support the answer"), "orange"),
    "not named": (N_("Not cited"), "gray"),
}
ROLE_NAMES = {"system": N_("Instructions"), "user": N_("Sent"), "assistant": N_("Earlier answer")}


def cost_words(cost: Any, is_priced: bool) -> str:
    """Format a question's cost.

    If a call had no known price, the text adds "calls without a price"; such calls are never counted as zero.
    """
    if is_priced:
        return money(cost)
    return _("{cost} + calls without a price", cost=money(cost)) if cost else _("price not known")


def known_cost_words(cost: Any, is_priced: bool) -> str:
    """Format a question's cost briefly: `≥ $0.0012` if some calls have no known price."""
    return cost_words(cost, is_priced) if is_priced or not cost else f"≥ {money(cost)}"


def draw_question(entry: ChatLogEntry, zone: tzinfo) -> None:
    """Draw all logged data about a question."""
    question, details = entry.question, entry.rag_details
    words, color = OUTCOMES.get(question.outcome or "", IN_PROGRESS)
    words = _(words)
    st.header(f"{plain(question.question)} :{color}-badge[{words}]", anchor=False)
    facts = [date_time(question.created_at, zone), plain(question.user_group) or _("no group")]
    facts += [plain(question.asker)] if question.asker else []
    facts += [plain(language_name(question.language))] if question.language else []
    facts.append(duration(question.total_ms))
    facts += (
        [_("first words after {first_token_ms}", first_token_ms=duration(question.first_token_ms))]
        if question.first_token_ms
        else []
    )
    facts.append(plain(cost_words(question.cost, question.is_priced)))
    st.caption(" · ".join(facts))
    if question.error:
        st.error(plain(translated(question.error)), icon=":material/error:")
    _draw_answer(entry)
    if details.get("timing"):
        st.markdown(_("**Where the time went**"))
        parts = stage_parts(details["timing"])
        draw_chart(
            waterfall_figure(details["timing"]),
            pd.DataFrame(
                {
                    _("Stage"): [_(STAGE_NAMES[stage]) for stage, _begins, _ms in parts],
                    _("Starts after (ms)"): [round(begins, 1) for _stage, begins, _ms in parts],
                    _("Time (ms)"): [round(ms, 1) for _stage, _begins, ms in parts],
                }
            ),
            key=f"analytics_waterfall_{question.id}",
            alt=_("Stages of this question, {total_ms} in total", total_ms=duration(question.total_ms)),
        )
    _draw_passages(entry)
    _draw_prompt(entry)
    _draw_charges(entry)
    with st.expander(_("All recorded data, as JSON"), icon=":material/data_object:"):
        st.json(details, expanded=1)


def _draw_answer(entry: ChatLogEntry) -> None:
    question = entry.question
    query = entry.rag_details.get("query") or {}
    if query.get("translatedQuery"):
        st.markdown(f":material/translate: {_('Searched as “{query}”', query=plain(query['translatedQuery']))}")
    if question.answer:
        with st.container(border=True):
            st.markdown(answer_markdown(question.answer))
    if question.documents:
        st.markdown(" ".join(f":blue-badge[:material/description: {plain(title)}]" for title in question.documents))
    if question.rating is not None:
        thumb = (
            _(":green[:material/thumb_up:] Helpful")
            if question.rating
            else _(":red[:material/thumb_down:] Not helpful")
        )
        st.markdown(thumb + (f": “{plain(question.comment)}”" if question.comment else ""))


def _draw_passages(entry: ChatLogEntry) -> None:
    search, reranking = (entry.rag_details.get(part) or {} for part in ("search", "reranking"))
    st.markdown(_("**What was found**"))
    if not entry.passages:
        st.caption(_("No passage was found, or the search did not run."))
        return
    facts = [
        _("{get} search", get=plain(search.get("type", ""))),
        _("{get} candidates", get=f"{search.get('vectorTopK', 0):d}"),
    ]
    facts.append(_("{get} passages wanted", get=f"{search.get('finalTopK', 0):d}"))
    if reranking.get("enabled"):
        counts = _(
            "{get} to {get_2}",
            get=f"{reranking.get('inputDocuments', 0):d}",
            get_2=f"{reranking.get('outputDocuments', 0):d}",
        )
        facts.append(
            _(
                "sorted a second time with {get}: {taken} passages, in {get_2}",
                get=plain(reranking.get("model", "")),
                taken=counts,
                get_2=duration(reranking.get("latencyMs")),
            )
        )
    else:
        facts.append(_("not sorted a second time"))
    st.caption(" · ".join(facts))
    passages = entry.passages
    place = _("Before") if reranking.get("enabled") else _("Place")
    before = lists.numbers(
        (p.original_rank or p.position for p in passages),
        60,
        help_text=_("Place in the search results, before any second sorting."),
    )
    after = lists.numbers(
        (p.new_rank for p in passages),
        55,
        help_text=_("Place after the second sorting. “–” means that the passage was left out."),
    )
    scores = lists.numbers((p.rerank_score for p in passages), 100, style="localized")
    similarity = st.column_config.ProgressColumn(min_value=0, max_value=1, format="localized", width=120)
    lists.draw(
        {
            place: before,
            **({_("After"): after} if reranking.get("enabled") else {}),
            _("Document"): lists.texts((p.title or _("Deleted document") for p in passages), 170),
            _("Page"): lists.texts((pages(p.first_page or 0, p.last_page or 0) for p in passages), 75),
            _("Section"): lists.texts((p.section for p in passages), 130),
            _("Similarity"): lists.Column([p.similarity for p in passages], similarity),
            **({_("Score of the second sorting"): scores} if reranking.get("enabled") else {}),
            _("Passage"): lists.texts((" ".join(p.preview.split()) for p in passages), "large"),
        },
        key=f"analytics_passages_{entry.question.id}",
        alt=_("Passages found, with their places before and after the second sorting"),
    )


def _draw_prompt(entry: ChatLogEntry) -> None:
    prompt = entry.prompt
    if prompt is None:
        return
    st.markdown(_("**Passages available for the answer**"))
    for passage in prompt.passages:
        words, color = SOURCE_STATES[passage.state]
        title = f"[{passage.number}] {plain(passage.title)} · {pages(passage.first_page, passage.last_page)}"
        with st.expander(f"{title} :{color}-badge[{_(words)}]", key=f"analytics_source_{entry.question.id}_"
                         f"{passage.number}"):  # fmt: skip
            if passage.is_deleted:
                st.caption(_("The document was deleted: its text is no longer shown."))
                continue
            if passage.section:
                st.caption(plain(passage.section))
            for sentence in passage.unsupported:
                st.warning(
                    _("This passage does not say: “{sentence}”", sentence=plain(sentence)), icon=":material/rule:"
                )
            st.text(passage.text)
    if not prompt.messages:
        st.caption(_("No model was asked: the answer quotes these passages."))
        return
    with st.expander(_("The text that was sent to the model (prompt)"), icon=":material/prompt_suggestion:"):
        for role, content in prompt.messages:
            st.caption(_(ROLE_NAMES.get(role, ROLE_NAMES["user"])))
            st.code(content, language=None, wrap_lines=True)


def _draw_charges(entry: ChatLogEntry) -> None:
    model = entry.rag_details.get("openai") or {}
    st.markdown(_("**Tokens and costs**"))
    if model.get("model"):
        st.caption(
            _(
                "{model} at temperature {get} · prompt: {get_2}, of which {get_3} are instructions · answer: {get_4} · "
                "written in {get_5}",
                model=plain(model["model"]),
                get=f"{model.get('temperature', 0):g}",
                get_2=count(model.get("inputTokens", 0), "token"),
                get_3=thousands(model.get("systemPromptTokens", 0)),
                get_4=count(model.get("outputTokens", 0), "token"),
                get_5=duration(model.get("streamingDurationMs")),
            )
        )
    if not entry.charges:
        st.caption(_("No paid call was made."))
        return
    lists.draw(
        {
            _("For"): [_(OPERATION_NAMES.get(c.operation, c.operation)) for c in entry.charges],
            _("Model"): [f"{c.provider}/{c.model}" for c in entry.charges],
            _("Input tokens"): [c.input_tokens for c in entry.charges],
            _("Cached input tokens"): [c.cached_input_tokens for c in entry.charges],
            _("Output tokens"): [c.output_tokens for c in entry.charges],
            _("Search units"): [c.search_units for c in entry.charges],
            _("Cost"): lists.amounts(
                _exact_money(c.cost) + (_(" (estimated)") if c.is_estimated else "") for c in entry.charges
            ),
        },
        key=f"analytics_charges_{entry.question.id}",
        alt=_("Paid calls of this question"),
    )


def _exact_money(cost: Any) -> str:
    """Format a cost with all the ledger's digits, because a single call may cost $0.000001."""
    return money(None) if cost is None else f"${cost.normalize():f}"


#: The choice for the collection's current settings.
COLLECTION_SETTINGS = "own"
PASSAGES = replace(SETTINGS["top_k"], title=N_("Passages"), help="")


def draw_run_again(identity: Identity, entry: ChatLogEntry) -> None:
    """Draw the choice of profile and settings, and the new answer next to the old answer."""
    question = entry.question
    collections = {collection.id: collection for collection in services().documents.collections(identity)}
    if question.collection_id not in collections or not question.question:
        return
    collection = collections[question.collection_id]
    key = f"analytics_again_{question.id}"
    with st.expander(_("Run again with other settings"), icon=":material/replay:"):
        labels = name_labels(
            {COLLECTION_SETTINGS: _("The collection's settings")} | {p.name: p.title for p in PROFILES.values()}
        )
        with st.form(key, border=False):
            with st.container(horizontal=True, vertical_alignment="bottom"):
                name = st.selectbox(_("Profile"), list(labels), format_func=labels.of, key=f"{key}_profile")
                top_k = draw_field(PASSAGES, key=f"{key}_top_k", placeholder=_("as in the settings"))
                reranks = st.toggle(_("Sort a second time"), value=True, key=f"{key}_rerank")
            sent = st.form_submit_button(_("Run again"), icon=":material/replay:")
        if sent:
            profile = profile_of(collection) if name in (COLLECTION_SETTINGS, None) else profile_by_name(name)
            try:
                changes = {} if top_k is None else {"top_k": int(top_k)}
                profile = profile.changed(reranking=profile.ranking.reranking and reranks, **changes)
                with st.spinner(_("Asking again")):
                    new_log_id = services().evaluations.ask_again(identity, collection, question.question, profile)
                    st.session_state[f"{key}_log"] = new_log_id
            except RagError as error:
                actions.draw_error(error)
        log_id: UUID | None = st.session_state.get(f"{key}_log")
        if log_id is not None:
            draw_comparison(entry, services().analytics.question(identity, log_id), (_("As it was"), _("Now")))


def draw_comparison(before: ChatLogEntry, after: ChatLogEntry, titles: tuple[str, str]) -> None:
    """Draw two answers to a question side by side, under `titles`.

    The second answer's passages are listed with their rank in both answers.
    """
    words = outcome_names()
    for column, title, entry in zip(st.columns(2), titles, (before, after), strict=True):
        with column:
            st.markdown(f"**{plain(title)}**")
            question = entry.question
            facts = [words.get(question.outcome or "", question.outcome or ""), duration(question.total_ms)]
            facts.append(money(question.cost if question.is_priced else None))
            st.caption(plain(" · ".join(facts)))
            with st.container(border=True):
                st.markdown(answer_markdown(question.answer) or "–")
    places = {p.chunk_id: p.new_rank or p.position for p in before.passages}
    passages = sorted(after.passages, key=lambda p: p.new_rank or p.position)
    lists.draw(
        {
            titles[1]: [p.new_rank or p.position for p in passages],
            titles[0]: lists.numbers(places.get(p.chunk_id) for p in passages),
            _("Document"): [p.title or "–" for p in passages],
            _("Page"): [p.first_page for p in passages],
            _("Similarity"): [p.similarity for p in passages],
            _("Passage"): [" ".join(p.preview.split()) for p in passages],
        },
        key=f"analytics_again_passages_{after.question.id}",
        alt=_("Current passages, with their previous places"),
    )
