"""What to ask next: three questions by the chat model, in one small call once an answer is there."""

from __future__ import annotations

import re
from dataclasses import dataclass
from threading import Event, Timer

from rag.answering.prompts import follow_up_messages
from rag.errors import ProviderError
from rag.providers import ChatModel, Completed, TextDelta
from rag.types import Usage

MAXIMUM_OUTPUT_TOKENS = 120
MAXIMUM_CHARACTERS = 120
#: The reader waits for these; past it the answer is better without them.
TIMEOUT_SECONDS = 5.0
#: More is not needed to find a next question, and every character is paid for.
CONTEXT_CHARACTERS = 6000


@dataclass(frozen=True)
class FollowUps:
    """The questions, and what they took; `usage` is None when the provider did not say or nothing was asked."""

    questions: tuple[str, ...] = ()
    usage: Usage | None = None


def suggest_follow_ups(
    *, question: str, answer: str, context_text: str, language: str, model: ChatModel, count: int, cancel: Event
) -> FollowUps:
    """Ask for up to `count` questions; none where the model fails, is cancelled or takes too long.

    Sets `cancel` itself when the time is up: by then it serves nothing else.
    """
    messages = follow_up_messages(
        question=question,
        answer=answer,
        context_text=context_text[:CONTEXT_CHARACTERS],
        language=language,
        count=count,
    )
    timer = Timer(TIMEOUT_SECONDS, cancel.set)
    timer.daemon = True
    timer.start()
    text, usage = "", None
    try:
        stream = model.stream(messages, temperature=0.5, maximum_output_tokens=MAXIMUM_OUTPUT_TOKENS, cancel=cancel)
        for event in stream:
            if isinstance(event, TextDelta):
                text += event.text
            elif isinstance(event, Completed):
                usage = event.usage
                if event.finish_reason == "length":
                    text = text.rpartition("\n")[0]  # the last question was cut
    except ProviderError as exc:
        return FollowUps(usage=exc.details.get("usage"))
    finally:
        timer.cancel()
    if cancel.is_set():
        return FollowUps(usage=usage)
    return FollowUps(questions_from(text, asked=question, count=count), usage)


def questions_from(text: str, *, asked: str, count: int) -> tuple[str, ...]:
    """The questions in a reply: one per line, bullets and numbers taken off, the one asked left out."""
    lines = (re.sub(r"^\s*(?:[-*•]|\d{1,2}[.)])\s*", "", line).strip(" \"'“”*") for line in text.splitlines())
    wanted = dict.fromkeys(
        line for line in lines if 5 < len(line) <= MAXIMUM_CHARACTERS and line.lower() != asked.strip().lower()
    )
    return tuple(wanted)[:count]
