"""Find the passages to answer from, for a follow-up with the conversation and, if in doubt, also without it."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

from rag.answering.carried_over import NOTHING, own_terms
from rag.answering.follow_ups import Standalone, shares_words
from rag.answering.prompts import recent_turns, rules_of
from rag.answering.quotations import Quotes
from rag.answering.quoting import quotes_of, signals_of
from rag.answering.reply_odds import probability
from rag.answering.state import AnswerState
from rag.profiles.profile import Profile
from rag.text.tokens import estimate_tokens
from rag.types import ContextResponse, TokenUsage

#: Share of a model's context window which a prompt may fill, because tokens are only estimated.
SAFE_SHARE = 0.8
#: The token budget for passages in the smallest window.
LEAST_CONTEXT_TOKENS = 200


def retrieve(state: AnswerState, asked: Standalone) -> ContextResponse:
    """Find the passages to answer from.

    A short question may be a follow-up or start a new subject. Then the search runs with and without the conversation,
    and the passages with the better quotations are returned.
    """
    together = _retrieve(state, asked)
    carried, details = state.carried, state.details
    if not carried.is_unsure or state.cancel.is_set():
        return together
    _, quotes = quotes_of(state, together)
    alone = _retrieve(state, Standalone(state.question.text, carried=replace(NOTHING, names=carried.names)))
    _, quotes_alone = quotes_of(state, alone)
    state.asides = list(dict.fromkeys(state.asides))
    own = own_terms(state.question.text, carried.topic, state.language)
    if not _follows(own, (quotes, together), (quotes_alone, alone)):
        return alone
    state.context, state.details, state.carried = together, details, carried
    return together


def _retrieve(state: AnswerState, asked: Standalone) -> ContextResponse:
    """Find the passages for a standalone question and record the search's details in the state."""
    text, state.carried = asked.text, asked.carried
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
    if asked.is_joined:
        # Passages found only through the previous question are not close to this question.
        own = (c for c in context.nearest if shares_words(state.question.text, c.matched_terms, state.language))
        context = replace(context, nearest=tuple(own))
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
    """Return the profile, with fewer tokens for passages if they would not fit the model's context window."""
    model = state.answer_model
    window = model.context_window() if model is not None else None
    if window is None:
        return state.profile
    answer = state.profile.answer
    turns = (turn.content for turn in recent_turns(state.question.history))
    around = [rules_of(state.profile.answer, state.answer_language), *turns, state.question.text]
    spoken = sum(map(estimate_tokens, around)) + min(answer.maximum_output_tokens, window // 4)
    room = max(LEAST_CONTEXT_TOKENS, int(window * SAFE_SHARE) - spoken)
    return state.profile.changed(context_tokens=room) if room < answer.context_tokens else state.profile


def _follows(
    own: frozenset[str],
    together: tuple[Quotes | None, ContextResponse],
    alone: tuple[Quotes | None, ContextResponse],
) -> bool:
    """Whether a short question is a follow-up: the quotations found with the conversation are at least as good.

    `own` are the question's terms which the conversation lacks; without any of these terms in a quotation found with
    the conversation, the question stands alone.
    """
    said = [own & quotes.said if quotes else frozenset[str]() for quotes, _ in (together, alone)]
    if own and not said[0]:
        return False
    return len(said[0]) >= len(said[1]) and _likely(*together) >= _likely(*alone)


def _likely(quotes: Quotes | None, context: ContextResponse) -> float:
    signals = signals_of(quotes, context) if quotes else None
    likely = probability(signals) if signals else None
    return likely if likely is not None else context.probability or 0.0
