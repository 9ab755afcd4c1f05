"""Suggest three next questions by a small call to the chat model after an answer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Event, Timer

from rag.answering.prompts import follow_up_messages
from rag.answering.state import AnswerState
from rag.errors import ProviderError
from rag.ingestion.question_templates import nobody_asks
from rag.providers import ChatModel, Completed, Discarded, TextDelta
from rag.types import Outcome, SuggestedQuestions

MAXIMUM_OUTPUT_TOKENS = 120
MAXIMUM_CHARACTERS = 120
#: The reader waits for the suggestions; after this time the answer is better without them.
TIMEOUT_SECONDS = 5.0
#: The suggestions are shown only when complete, so their stream is read seldom.
READ_EVERY_SECONDS = 0.25
#: More text is not needed for next questions, and every character is paid for.
CONTEXT_CHARACTERS = 6000


@dataclass(frozen=True, kw_only=True)
class AnsweredTurn:
    """A question with its answer, the passages in the context, and the answer's language."""

    question: str
    answer: str
    context_text: str
    language: str


def suggest_follow_ups(
    asked: AnsweredTurn,
    *,
    model: ChatModel,
    count: int,
    cancel: Event,
) -> tuple[str, ...]:
    """Ask the model for up to `count` questions; return no questions if it fails, is cancelled or takes too long.

    Sets `cancel` itself at the time limit; nothing else uses it by then.
    """
    messages = follow_up_messages(
        question=asked.question,
        answer=asked.answer,
        context_text=asked.context_text[:CONTEXT_CHARACTERS],
        language=asked.language,
        count=count,
    )
    timer = Timer(TIMEOUT_SECONDS, cancel.set)
    timer.daemon = True
    timer.start()
    text = ""
    try:
        stream = model.stream(
            messages,
            temperature=0.5,
            maximum_output_tokens=MAXIMUM_OUTPUT_TOKENS,
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
    return questions_from(text, asked=asked.question, count=count)


def questions_from(text: str, *, asked: str, count: int) -> tuple[str, ...]:
    """Return the questions in a reply, one per line, without bullets and numbers and without the question `asked`."""
    lines = (re.sub(r"^\s*(?:[-*•]|\d{1,2}[.)])\s*", "", line).strip(" \"'“”*") for line in text.splitlines())
    wanted = dict.fromkeys(
        line
        for line in lines
        if 5 < len(line) <= MAXIMUM_CHARACTERS and line.lower() != asked.strip().lower() and is_question(line)
    )
    return tuple(wanted)[:count]


def is_question(line: str) -> bool:
    """Whether a line is a question, by its mark or, in languages without the mark, by its ending."""
    return line.rstrip().endswith(("?", "？", "؟")) or line.rstrip(". ").endswith(
        ("까", "나요", "가요", "ですか", "ますか", "吗")
    )


def filled_up(questions: Sequence[str], others: Sequence[str], *, asked: str, count: int) -> tuple[str, ...]:
    """Return up to `count` questions: the model's first, then others with answers in the documents."""
    known = {asked.strip().casefold(), *(question.casefold() for question in questions)}
    rest = [other for other in dict.fromkeys(others) if other.strip().casefold() not in known]
    return (*questions, *rest)[:count]


def suggest_next_questions(state: AnswerState) -> None:
    """Add follow-up questions if there is a model and the answer is complete."""
    state.text_ms = state.elapsed_ms
    model = state.next_question_model
    is_reply = state.outcome in (Outcome.ANSWERED, Outcome.PERHAPS)
    if not is_reply or state.cancel.is_set() or not state.profile.answer.follow_ups:
        return
    if model is None or state.context is None or not state.model or state.is_withdrawn:
        return
    state.follow_ups = suggest_follow_ups(
        AnsweredTurn(
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
        state.follow_ups = filled_up(
            state.follow_ups,
            _questions_of_documents(state),
            asked=state.question.text,
            count=state.profile.answer.follow_ups,
        )


def _questions_of_documents(state: AnswerState) -> list[str]:
    """Return questions in the answer's language which the searched documents answer, as found when they were read."""
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
    found = [q for document in documents for q in document.in_language(state.answer_language)]
    return [question for question in found if is_question(question) and not nobody_asks(question)]
