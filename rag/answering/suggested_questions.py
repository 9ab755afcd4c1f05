"""Suggest three next questions by a small call to the chat model after an answer."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Event, Timer
from uuid import UUID

from rag.answering.prompts import follow_up_messages
from rag.answering.state import AnswerState
from rag.errors import ProviderError
from rag.ingestion.question_templates import nobody_asks
from rag.providers import ChatModel, Discarded, Lost, TextDelta
from rag.providers.retry import estimated_chat
from rag.types import Outcome, SuggestedQuestions, Usage

MAXIMUM_OUTPUT_TOKENS = 120
MAXIMUM_CHARACTERS = 120
#: The reader waits for the suggestions; after this time the answer is better without them.
TIMEOUT_SECONDS = 5.0
#: The suggestions are shown only when complete, so their stream is read seldom.
READ_EVERY_SECONDS = 0.25
#: More text is not needed for next questions, and every character is paid for.
CONTEXT_CHARACTERS = 6000


@dataclass(frozen=True)
class FollowUps:
    """Next questions, with the usage of the call which wrote them, and of `lost` attempts before.

    `usage` is an estimate if the provider gave no figures, and `None` after a refusal.
    """

    questions: tuple[str, ...] = ()
    usage: Usage | None = None
    lost: tuple[Usage, ...] = ()


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
    on_send: Callable[[Usage], object] = lambda expected: None,
) -> FollowUps:
    """Ask the model for up to `count` questions; return no questions if it fails, is cancelled or takes too long.

    Sets `cancel` itself at the time limit; nothing else uses it by then. `on_send` gets the expected cost before the
    call is made.
    """
    messages = follow_up_messages(
        question=asked.question,
        answer=asked.answer,
        context_text=asked.context_text[:CONTEXT_CHARACTERS],
        language=asked.language,
        count=count,
    )
    on_send(estimated_chat(model.provider, model.model, messages))
    timer = Timer(TIMEOUT_SECONDS, cancel.set)
    timer.daemon = True
    timer.start()
    text, usage, lost = "", None, list[Usage]()
    is_free = False
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
            elif isinstance(event, Lost):
                lost.append(event.usage)
            else:
                usage = event.usage
                if event.finish_reason == "length":
                    text = text.rpartition("\n")[0]  # the last question was cut
    except ProviderError as exc:
        usage = exc.details.get("usage")
        is_free = not text and not exc.details.get("is_perhaps_billed")
        text = ""
    finally:
        timer.cancel()
    if usage is None and not is_free:
        usage = estimated_chat(model.provider, model.model, messages, text)
    if cancel.is_set():
        text = ""
    return FollowUps(questions_from(text, asked=asked.question, count=count), usage, tuple(lost))


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
    model = _next_question_model(state)
    is_reply = state.outcome in (Outcome.ANSWERED, Outcome.PERHAPS)
    if not is_reply or state.cancel.is_set() or not state.profile.answer.follow_ups:
        return
    if model is None or state.context is None or not state.model or state.is_withdrawn:
        return
    begun: list[UUID | None] = []
    found = suggest_follow_ups(
        AnsweredTurn(
            question=state.question.text,
            answer=state.text,
            context_text=state.context.context_text,
            language=state.answer_language,
        ),
        model=model,
        count=state.profile.answer.follow_ups,
        cancel=state.cancel,
        on_send=lambda expected: begun.append(state.calls.begin("chat", "follow-ups", expected)),
    )
    state.follow_ups = found.questions
    if len(found.questions) < state.profile.answer.follow_ups:
        state.follow_ups = filled_up(
            found.questions,
            _questions_of_documents(state),
            asked=state.question.text,
            count=state.profile.answer.follow_ups,
        )
    for usage in found.lost:
        state.calls.charge("chat", usage, line="follow_ups")
    state.calls.finish(begun[0] if begun else None, "chat", found.usage, line="follow_ups")


def _next_question_model(state: AnswerState) -> ChatModel | None:
    """Return the small model, or the profile's model if it uses a different provider."""
    providers = state.parts.providers
    answering = providers.chat_choice(state.profile)
    is_own = answering.provider != providers.translation_choice(state.profile).provider and not answering.is_elsewhere
    return providers.chat_model_for(state.profile) if is_own else state.small_model


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
