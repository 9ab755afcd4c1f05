"""Rewrite a follow-up into a standalone question for the search.

A search cannot understand "And for part-timers?". A model rewrites the question with the conversation at hand. Without
a model, rules complete the question (`carried_over.py`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rag.answering.carried_over import NOTHING, Carried, carry_over, leans_on_history
from rag.answering.prompts import recent_turns, rewrite_messages
from rag.answering.routes.documents import ReadableDocuments
from rag.answering.state import AnswerState
from rag.errors import ProviderError
from rag.language import N_
from rag.monitoring.tracing import ms_since
from rag.providers import ChatModel
from rag.retrieval.bm25.index import tokenize
from rag.types import ChatMessage

NOT_REWRITTEN = N_("The follow-up question could not be rewritten, so it was searched for as it is.")
NOT_REWRITTEN_JOINED = N_(
    "The follow-up question could not be rewritten, so it was searched for together with the one before it."
)
HISTORY_TOKENS = 600
REWRITE_OUTPUT_TOKENS = 200
#: Questions and replies read to complete a follow-up.
LATEST_TURNS = 12


@dataclass(frozen=True)
class Standalone:
    """The question to search for, with details about the rewriting."""

    text: str
    #: Whether the search also uses the previous question.
    is_joined: bool = False
    #: The question as completed by rules, if no model rewrote it.
    carried: Carried = NOTHING
    #: A sentence for the reader if the model failed to rewrite the question.
    notice: str = ""


def stand_alone(
    question: str,
    history: Sequence[ChatMessage],
    *,
    language: str,
    model: ChatModel | None,
    maximum_characters: int,
    titles: Callable[[], Sequence[str]] = tuple,
) -> Standalone:
    """Rewrite a question so that it can be understood alone; unchanged without a conversation.

    If the model fails or reaches its length limit, the question stays unchanged and `notice` tells the reader.
    `language` is the question's ISO 639-1 code. `titles` returns the documents' titles and is called only if no model
    rewrites.
    """
    turns = recent_turns(history, maximum_tokens=HISTORY_TOKENS)
    if not turns:
        return Standalone(question)
    if model is not None:
        try:
            reply = model.complete(
                rewrite_messages(turns, question), temperature=0.0, maximum_output_tokens=REWRITE_OUTPUT_TOKENS
            )
        except ProviderError:
            pass
        else:
            rewritten = " ".join(reply.text.split()).strip("\"'“” ")
            if rewritten and len(rewritten) <= maximum_characters:
                return Standalone(rewritten)
    notice = NOT_REWRITTEN if model else ""
    known = titles() if leans_on_history(question, language) else ()
    found = carry_over(question, _asked(history), language=language, titles=known)
    if found.text == question or (model is not None and found.is_unsure):
        carried = found if found.text == question else NOTHING
        return Standalone(question, carried=carried, notice=notice)
    notice = NOT_REWRITTEN_JOINED if model else ""
    return Standalone(found.text, is_joined=True, carried=found, notice=notice)


def _asked(history: Sequence[ChatMessage]) -> list[tuple[str, str]]:
    """Return a conversation's latest questions with their replies, oldest first."""
    asked: list[tuple[str, str]] = []
    for turn in history[-LATEST_TURNS:]:
        if turn.role == "user":
            asked.append((turn.content, ""))
        elif asked:
            asked[-1] = (asked[-1][0], turn.content)
    return asked


def shares_words(question: str, passage_words: Sequence[str], language: str) -> bool:
    """Whether the question contains any of these words from a passage."""
    return not set(tokenize(question, language)).isdisjoint(tokenize(" ".join(passage_words), language))


def rewrite(state: AnswerState) -> Standalone:
    """Rewrite a follow-up into a question that needs no conversation."""
    is_wanted = state.profile.answer.rewrite_follow_ups
    if not state.question.history or not is_wanted or state.cancel.is_set():
        return Standalone(state.question.text)
    model = state.rewriting_model
    if model is not None:
        state.step("rewriting")
    started = time.perf_counter()
    found = stand_alone(
        state.question.text,
        state.question.history,
        language=state.language,
        model=model,
        maximum_characters=state.parts.settings.maximum_question_characters,
        titles=lambda: _titles(state),
    )
    if found.notice:
        state.asides.append(found.notice)
    if model is not None:
        state.details.timing.openai_ms += ms_since(started)
    return found


def _titles(state: AnswerState) -> list[str]:
    found = ReadableDocuments(state.parts.chat_logs.database, state.question)
    return [document.title for document in found.documents()]
