"""Find the passages to answer from, also for follow-ups and for several questions in a message.

A follow-up is searched with the conversation and, in doubt, also alone. Without a model, each question in a message is
searched separately.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

from rag.answering.carried_over import NOTHING, own_terms
from rag.answering.follow_ups import Standalone, shares_words, stand_alone
from rag.answering.prompts import recent_messages, rules_of
from rag.answering.quotations import Quotes
from rag.answering.quoting import quotes_of, signals_of
from rag.answering.reply_odds import probability
from rag.answering.routes.small_talk import about_product, small_talk
from rag.answering.state import AnswerState
from rag.profiles.profile import Profile
from rag.providers.processor import working
from rag.retrieval.query_understanding import questions_in
from rag.retrieval.since import without_since
from rag.text.tokens import estimate_tokens
from rag.types import ContextResponse, TokenUsage

#: Share of a model's context window which a prompt may fill, because tokens are only estimated.
SAFE_SHARE = 0.8
#: The token budget for passages in the smallest window.
LEAST_CONTEXT_TOKENS = 200


def retrieve(state: AnswerState, standalone: Standalone) -> ContextResponse:
    """Find the passages to answer from.

    A short question may be a follow-up or start a new subject. The search runs with and without the conversation, and
    the passages with the better quotations are returned. Without a model, each question in the message is also searched
    separately.
    """
    context = _retrieve_message(state, standalone)
    if context.citations and state.answer_model is None:
        state.single_questions = retrieve_each(state)
    return context


@working()
def retrieve_each(state: AnswerState) -> list[AnswerState]:
    """Search separately for each question in the message.

    Returns a state for each question, with passages. The list is empty if the message has a single question.
    """
    questions = _questions_in(state)
    if len(questions) < 2 or any(without_since(text, state.language) for text in questions):
        return []
    parts = []
    for place, text in enumerate(questions):
        if state.cancel.is_set():
            return []
        part = state.for_question(text, questions[:place])
        history = part.question.history
        standalone = stand_alone(text, history, language=state.language, model=None, maximum_characters=len(text))
        _retrieve_message(part, standalone)
        state.add_times(part)
        parts.append(part)
    return parts


def _questions_in(state: AnswerState) -> Sequence[str]:
    # "How are you?" next to a question needs no search.
    if not state.profile.understanding.split_questions:
        return []
    return [text for text in questions_in(state.question.text) if not _is_chat(text, state.language)]


def _is_chat(text: str, language: str) -> bool:
    return small_talk(text, language=language) is not None or about_product(text, language=language) is not None


def _retrieve_message(state: AnswerState, standalone: Standalone) -> ContextResponse:
    together = _retrieve(state, standalone)
    carried, details = state.carried, state.details
    if not carried.is_unsure or state.cancel.is_set():
        return together
    _, quotes = quotes_of(state, together)
    alone = _retrieve(state, Standalone(state.question.text, carried=replace(NOTHING, names=carried.names)))
    _, quotes_alone = quotes_of(state, alone)
    state.asides = list(dict.fromkeys(state.asides))
    new_terms = own_terms(state.question.text, carried.topic, state.language)
    if not _follows(new_terms, (quotes, together), (quotes_alone, alone)):
        return alone
    state.context, state.details, state.carried = together, details, carried
    return together


def _retrieve(state: AnswerState, standalone: Standalone) -> ContextResponse:
    text, state.carried = standalone.text, standalone.carried
    if state.cancel.is_set():
        return ContextResponse(
            context_text="", citations=(), token_usage=TokenUsage(), cost=Decimal(0), rag_details=state.details
        )
    with state.bill.open():
        context = state.parts.retriever.retrieve_context(
            replace(state.question, text=text, language=state.language),
            profile=_profile_that_fits(state),
            on_step=state.step,
        )
    if standalone.is_joined:
        # Passages found only through the previous question are not close to this question.
        close = (c for c in context.nearest if shares_words(state.question.text, c.matched_terms, state.language))
        context = replace(context, nearest=tuple(close))
    rewriting_ms = state.details.timing.openai_ms
    state.context = context
    state.details = context.rag_details
    state.details.query.original = state.question.text
    state.details.timing.openai_ms += rewriting_ms
    if text != state.question.text:
        state.details.query.expanded = [text, *(q for q in state.details.query.expanded if q != text)]
    state.asides += context.notices
    return context


def _profile_that_fits(state: AnswerState) -> Profile:
    model = state.answer_model
    window = model.context_window() if model is not None else None
    if window is None:
        return state.profile
    answer = state.profile.answer
    messages = (message.content for message in recent_messages(state.question.history))
    around = [rules_of(state.profile.answer, state.answer_language), *messages, state.question.text]
    used_tokens = sum(map(estimate_tokens, around)) + min(answer.maximum_output_tokens, window // 4)
    available = max(LEAST_CONTEXT_TOKENS, int(window * SAFE_SHARE) - used_tokens)
    return state.profile.changed(context_tokens=available) if available < answer.context_tokens else state.profile


def _follows(
    new_terms: frozenset[str],
    together: tuple[Quotes | None, ContextResponse],
    alone: tuple[Quotes | None, ContextResponse],
) -> bool:
    """Whether a question is a follow-up: with the conversation, the search finds equal or better quotations.

    `together` and `alone` are the results with and without the conversation. `new_terms` are the question's terms which
    the conversation does not have.
    """
    matched_terms = [new_terms & quotes.terms if quotes else frozenset[str]() for quotes, _ in (together, alone)]
    if new_terms and not matched_terms[0]:
        return False
    return len(matched_terms[0]) >= len(matched_terms[1]) and _likely(*together) >= _likely(*alone)


def _likely(quotes: Quotes | None, context: ContextResponse) -> float:
    signals = signals_of(quotes, context) if quotes else None
    likely = probability(signals) if signals else None
    return likely if likely is not None else context.probability or 0.0
