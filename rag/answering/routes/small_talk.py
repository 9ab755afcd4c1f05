"""Small talk: a greeting, thanks, "who are you", a small insult or "write me a poem", met in one friendly line.

Only a message that is small talk and nothing else counts: "Hi, how many days of leave do I have?" is a question.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

from rag.answering.routes.documents import MOST_CHOICES, Passages, WholeDocument, labels_of
from rag.answering.sentences import FOOTNOTE
from rag.types import Citation, Outcome

#: What stands around the words and changes nothing: punctuation, emoji and other symbols.
AROUND = re.compile(r"[^\w\s'’]+|_")
PARTS = re.compile(r"[,;.!?。！？、，؟]+|\s[-–—]\s")
#: What has more characters is not small talk alone.
LONGEST = 120
#: So few letters are a word of small talk in the asker's own language only: "PA" may be looked for in English.
SHORTEST = 2


class _Said(NamedTuple):
    messages: re.Pattern[str]
    reply: str


def small_talk(text: str, *, language: str, reply_language: str = "") -> str | None:
    """Return the friendly line that meets small talk; None for everything else.

    `language` is the one the asker probably writes: it counts for words that several languages say alike. The line is
    in `reply_language`, or where none is given in the language of the words.
    """
    if len(text) > LONGEST:
        return None
    line = _met(text, language, reply_language)
    if line is not None:
        return line
    # "Hi! Who are you?" is met by what answers its last part; one part that is no small talk makes it a question.
    lines = [_met(part, language, reply_language) for part in PARTS.split(text) if AROUND.sub("", part).strip()]
    return lines[-1] if len(lines) > 1 and all(lines) else None


def _met(text: str, language: str, reply_language: str) -> str | None:
    # A capital "I" with a dot, as Turkish writes it, becomes two characters.
    lowered = text.lower().replace("\u0307", "").replace("’", "'")
    said = " ".join(AROUND.sub(" ", lowered).split())
    if not said:
        return None
    likely = _code(language)
    known = _known()
    for code in [likely, *(code for code in known if code != likely)]:
        if len(said) <= SHORTEST and code != likely and said.isascii():
            continue
        for kind, (messages, reply) in known.get(code, {}).items():
            if messages.fullmatch(said):
                wanted = known.get(_code(reply_language), {}).get(kind)
                return wanted.reply if wanted else reply
    return None


def _code(language: str) -> str:
    return language.split("-")[0].lower()


@cache
def _known() -> dict[str, dict[str, _Said]]:
    """By language, then kind."""
    table = tomllib.loads(Path(__file__).with_name("small_talk.toml").read_text("utf-8"))
    return {
        language: {
            kind: _Said(re.compile(messages), parts["replies"][kind]) for kind, messages in parts["messages"].items()
        }
        for language, parts in table.items()
    }


@dataclass(frozen=True, kw_only=True)
class ModelPart:
    """A part of a document for the language model: its heading, and the passages it may cite by their numbers."""

    heading: str
    #: Its pages, where it has no heading.
    place: str
    context_text: str
    numbers: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What is shown: text that names its passages by number. With `parts`, the language model writes instead."""

    text: str
    citations: tuple[Citation, ...] = ()
    outcome: Outcome = Outcome.ANSWERED
    #: What the asker probably says next, to choose from.
    follow_ups: tuple[str, ...] = ()
    parts: tuple[ModelPart, ...] = ()
    #: What the model does with them: a comparison and a list are one call, a summary is one for each part.
    task: Literal["summary", "comparison", "listing"] = "summary"
    #: What it is written in, ISO 639-1.
    language: str = ""


class Found(NamedTuple):
    """What a comparison or a list comes to in the documents' own words, and the passages that it was made from."""

    reply: Reply
    passages: Passages


def say(name: str, language: str, **values: object) -> str:
    """Return a sentence of `phrases.toml` in a language (ISO 639-1), in English where there is none."""
    table = _table()
    texts = table.get(language.split("-")[0].lower(), table["en"])
    return texts[name].format(**values)


def ask_which(documents: Sequence[WholeDocument], language: str, question: str) -> Reply:
    """Ask which of several documents is meant; `question` is the phrase that asks for one of them."""
    labels = labels_of(documents)
    offered = [labels[document.id] for document in documents[:MOST_CHOICES]]
    lines = [say("which", language), "", *(f"- {label}" for label in offered)]
    if len(documents) > MOST_CHOICES:
        lines += ["", say("many", language, count=len(documents) - MOST_CHOICES)]
    asked = tuple(say(question, language, title=label) for label in offered)
    return Reply(text="\n".join(lines), outcome=Outcome.ASKED_BACK, follow_ups=asked)


def cell(text: str) -> str:
    """Return a text as it fits into a cell of a Markdown table or a line of a list, without what looks like a
    citation.
    """
    return " ".join(FOOTNOTE.sub("", text).replace("|", "/").split())


def day_of(document: WholeDocument) -> str:
    """Return the day from which a version answers."""
    return f"{document.published_at or document.created_at:%Y-%m-%d}"


@cache
def _table() -> dict[str, dict[str, str]]:
    return tomllib.loads(Path(__file__).with_name("phrases.toml").read_text("utf-8"))
