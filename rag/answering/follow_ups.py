"""Rewrite a follow-up into a standalone question for the search, and suggest the next three questions.

A search cannot understand "And for part-timers?". The model rewrites the question, given the conversation; without a
model, the rules in `carried_over.py` complete the question. After an answer, a small model call suggests questions.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Event, Timer

from rag.answering.carried_over import NOTHING, Carried, carry_over, leans_on_history
from rag.answering.prompts import follow_up_messages, recent_messages, rewrite_messages
from rag.answering.routes.documents import ReadableDocuments
from rag.answering.state import AnswerState
from rag.errors import ProviderError
from rag.ingestion.question_templates import nobody_asks
from rag.language import N_
from rag.monitoring.tracing import ms_since
from rag.providers import ChatModel, Completed, Discarded, TextDelta
from rag.retrieval.bm25.index import tokenize
from rag.types import ChatMessage, Outcome, SuggestedQuestions

NOT_REWRITTEN = N_("The follow-up question could not be rewritten, so it was searched for as it is.")
NOT_REWRITTEN_JOINED = N_(
    "The follow-up question could not be rewritten, so it was searched for together with the previous question."
)
HISTORY_TOKENS = 600
REWRITE_OUTPUT_TOKENS = 200
#: Questions and replies read to complete a follow-up.
LATEST_MESSAGES = 12


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
    """Rewrite a question to stand alone, without the conversation. Without a conversation, the question stays
    unchanged.

    If the model fails or the result is too long, rules complete the question and `notice` tells the reader. `language`
    is the question's ISO 639-1 code. `titles` returns the documents' titles and is called only if no model rewrites.
    """
    messages = recent_messages(history, maximum_tokens=HISTORY_TOKENS)
    if not messages:
        return Standalone(question)
    if model is not None:
        try:
            reply = model.complete(
                rewrite_messages(messages, question), temperature=0.0, maximum_output_tokens=REWRITE_OUTPUT_TOKENS
            )
        except ProviderError:
            pass
        else:
            rewritten = " ".join(reply.text.split()).strip("\"'“” ")
            if rewritten and len(rewritten) <= maximum_characters:
                return Standalone(rewritten)
    notice = NOT_REWRITTEN if model else ""
    document_titles = titles() if leans_on_history(question, language) else ()
    completed = carry_over(question, _earlier_exchanges(history), language=language, titles=document_titles)
    if completed.text == question or (model is not None and completed.is_unsure):
        carried = completed if completed.text == question else NOTHING
        return Standalone(question, carried=carried, notice=notice)
    notice = NOT_REWRITTEN_JOINED if model else ""
    return Standalone(completed.text, is_joined=True, carried=completed, notice=notice)


def _earlier_exchanges(history: Sequence[ChatMessage]) -> list[tuple[str, str]]:
    exchanges: list[tuple[str, str]] = []
    for message in history[-LATEST_MESSAGES:]:
        if message.role == "user":
            exchanges.append((message.content, ""))
        elif exchanges:
            exchanges[-1] = (exchanges[-1][0], message.content)
    return exchanges


def shares_words(question: str, passage_words: Sequence[str], language: str) -> bool:
    """Whether the question has a term in common with `passage_words`."""
    return not set(tokenize(question, language)).isdisjoint(tokenize(" ".join(passage_words), language))


def rewrite(state: AnswerState) -> Standalone:
    """Rewrite a follow-up into a question which needs no conversation."""
    is_enabled = state.profile.answer.rewrite_follow_ups
    if not state.question.history or not is_enabled or state.cancel.is_set():
        return Standalone(state.question.text)
    model = state.rewriting_model
    if model is not None:
        state.step("rewriting")
    started = time.perf_counter()
    standalone = stand_alone(
        state.question.text,
        state.question.history,
        language=state.language,
        model=model,
        maximum_characters=state.parts.settings.maximum_question_characters,
        titles=lambda: _titles(state),
    )
    if standalone.notice:
        state.asides.append(standalone.notice)
    if model is not None:
        state.details.timing.openai_ms += ms_since(started)
    return standalone


def _titles(state: AnswerState) -> list[str]:
    library = ReadableDocuments(state.parts.chat_logs.database, state.question)
    return [document.title for document in library.documents()]


SUGGESTION_OUTPUT_TOKENS = 120
SUGGESTION_CHARACTERS = 120
#: The reader waits for the suggestions, and beyond this time they are not worth the wait.
SUGGESTION_SECONDS = 5.0
#: The suggestions are shown only when complete, so reading the stream this seldom is enough.
READ_EVERY_SECONDS = 0.25
#: Enough context for suggestions; more would only cost more.
CONTEXT_CHARACTERS = 6000


@dataclass(frozen=True, kw_only=True)
class Exchange:
    """A question with the answer, the passages' text, and the answer's language."""

    question: str
    answer: str
    context_text: str
    language: str


def suggest_follow_ups(
    exchange: Exchange,
    *,
    model: ChatModel,
    count: int,
    cancel: Event,
) -> tuple[str, ...]:
    """Ask the model for up to `count` questions.

    Returns () if the model fails, is cancelled or takes too long. When the time limit is reached, sets `cancel`.
    """
    messages = follow_up_messages(
        question=exchange.question,
        answer=exchange.answer,
        context_text=exchange.context_text[:CONTEXT_CHARACTERS],
        language=exchange.language,
        count=count,
    )
    timer = Timer(SUGGESTION_SECONDS, cancel.set)
    timer.daemon = True
    timer.start()
    text = ""
    try:
        stream = model.stream(
            messages,
            temperature=0.5,
            maximum_output_tokens=SUGGESTION_OUTPUT_TOKENS,
            cancel=cancel,
            every_seconds=lambda: READ_EVERY_SECONDS,
        )
        for event in stream:
            if isinstance(event, TextDelta):
                text += event.text
            elif isinstance(event, Discarded):
                text = ""
            elif isinstance(event, Completed) and event.finish_reason == "length":
                text = text.rpartition("\n")[0]  # the last question was cut
    except ProviderError:
        text = ""
    finally:
        timer.cancel()
    if cancel.is_set():
        text = ""
    return questions_from(text, original=exchange.question, count=count)


def questions_from(text: str, *, original: str, count: int) -> tuple[str, ...]:
    """Parse the model's suggestions, one per line, without bullets and numbers. Leaves out `original`, the user's
    question.
    """
    lines = (re.sub(r"^\s*(?:[-*•]|\d{1,2}[.)])\s*", "", line).strip(" \"'“”*") for line in text.splitlines())
    suggestions = dict.fromkeys(
        line
        for line in lines
        if 5 < len(line) <= SUGGESTION_CHARACTERS and line.lower() != original.strip().lower() and is_question(line)
    )
    return tuple(suggestions)[:count]


def is_question(line: str) -> bool:
    """Whether a line has a question mark or, in a language without question marks, a question's ending."""
    return line.rstrip().endswith(("?", "？", "؟")) or line.rstrip(". ").endswith(
        ("까", "나요", "가요", "ですか", "ますか", "吗")
    )


def fill_up(questions: Sequence[str], candidates: Sequence[str], *, original: str, count: int) -> tuple[str, ...]:
    """Append `candidates` to the model's questions, up to `count`. Leaves out repeats and `original`, the user's
    question.
    """
    excluded = {original.strip().casefold(), *(question.casefold() for question in questions)}
    rest = [other for other in dict.fromkeys(candidates) if other.strip().casefold() not in excluded]
    return (*questions, *rest)[:count]


def suggest_next_questions(state: AnswerState) -> None:
    """Add suggested questions to the state if there is a model and the answer is complete."""
    state.text_ms = state.elapsed_ms
    model = state.next_question_model
    is_reply = state.outcome in (Outcome.ANSWERED, Outcome.PERHAPS)
    if not is_reply or state.cancel.is_set() or not state.profile.answer.follow_ups:
        return
    if model is None or state.context is None or not state.model or state.is_withdrawn:
        return
    state.follow_ups = suggest_follow_ups(
        Exchange(
            question=state.question.text,
            answer=state.text,
            context_text=state.context.context_text,
            language=state.answer_language,
        ),
        model=model,
        count=state.profile.answer.follow_ups,
        cancel=state.cancel,
    )
    if len(state.follow_ups) < state.profile.answer.follow_ups:
        state.follow_ups = fill_up(
            state.follow_ups,
            _questions_of_documents(state),
            original=state.question.text,
            count=state.profile.answer.follow_ups,
        )


def _questions_of_documents(state: AnswerState) -> list[str]:
    """Return sample questions stored with the searched documents, in the answer's language."""
    question = state.question
    if not question.filters.is_empty:
        return []  # the filters leave an unknown selection
    documents = state.parts.chat_logs.database.fetch_all(
        question.identity,
        "suggestions",
        SuggestedQuestions,
        collection_ids=[collection.id for collection in (question.collection, *question.others)],
        document_ids=list(question.document_ids) or None,
    )
    suggestions = [q for document in documents for q in document.in_language(state.answer_language)]
    return [question for question in suggestions if is_question(question) and not nobody_asks(question)]
