"""What a route hands back to be shown, and the sentences that routes say themselves."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

from rag.answering.routes.choosing import MOST_CHOICES, labels_of
from rag.answering.routes.documents import Passages, WholeDocument
from rag.answering.sentences import FOOTNOTE
from rag.types import Citation, Outcome


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
    """A sentence of `phrases.toml` in a language (ISO 639-1), in English where there is none."""
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
    """A text as it fits into a cell of a Markdown table or a line of a list, without what looks like a citation."""
    return " ".join(FOOTNOTE.sub("", text).replace("|", "/").split())


def day_of(document: WholeDocument) -> str:
    """The day a version began to answer."""
    return f"{document.published_at or document.created_at:%Y-%m-%d}"


@cache
def _table() -> dict[str, dict[str, str]]:
    return tomllib.loads(Path(__file__).with_name("phrases.toml").read_text("utf-8"))
