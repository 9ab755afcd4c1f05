"""Rewrite a follow-up question into a standalone one, so that a search finds what it means.

"And for part-timers?" says nothing to a search. A model rewrites it with the conversation at hand. Without a model, a
question that looks like a follow-up is searched together with the one before it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rag.answering.prompts import recent_turns, rewrite_messages
from rag.errors import ProviderError
from rag.language import N_
from rag.providers import ChatModel
from rag.retrieval.bm25.index import tokenize
from rag.retrieval.proximity import own_terms_of_others
from rag.types import ChatMessage, Usage

NOT_REWRITTEN = N_("The follow-up question could not be rewritten, so it was searched for as it is.")
NOT_REWRITTEN_JOINED = N_(
    "The follow-up question could not be rewritten, so it was searched for together with the one before it."
)
HISTORY_TOKENS = 600
REWRITE_OUTPUT_TOKENS = 200
#: A question with so few terms, or with a continuing beginning, counts as a follow-up.
FOLLOW_UP_TERMS = 2
#: Only this many characters of a question are checked for them.
SHORT_CHARACTERS = 400
FOLLOW_UP_OPENING = re.compile(
    r"^\s*(?:(?:and|or|but|also|what about|how about|what if|en|of|maar|ook|wat als|hoe zit het|und|oder|aber|auch"
    r"|was ist mit|et|ou|mais|y|pero|ma|ale)\b|그럼|그러면|그리고|그건|그것|では|それ|那)"
    r"|\b(?:it|they|them|those|daarvoor|daarvan|daarmee|dafür|davon|damit)\b[^?]{0,12}\?",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Standalone:
    """The question to search for, and how it was rewritten."""

    text: str
    usage: Usage | None = None
    #: Searched together with the question before it.
    is_joined: bool = False
    #: A sentence for the reader where the model did not rewrite it.
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
    """Return the question so that it can be understood without the conversation; unchanged if there is none.

    If the model fails or reaches its length limit, the question stays as it is and `notice` says so. `language` is the
    question's ISO 639-1 code. `titles` are those of the documents; they are asked for where no model rewrites.
    """
    turns = recent_turns(history, maximum_tokens=HISTORY_TOKENS)
    if not turns:
        return Standalone(question)
    usage: Usage | None = None
    if model is not None:
        try:
            reply = model.complete(
                rewrite_messages(turns, question), temperature=0.0, maximum_output_tokens=REWRITE_OUTPUT_TOKENS
            )
        except ProviderError:
            pass  # the failed call has already recorded its cost
        else:
            usage = reply.usage
            rewritten = " ".join(reply.text.split()).strip("\"'“” ")
            if rewritten and len(rewritten) <= maximum_characters:
                return Standalone(rewritten, usage)
    if not leans_on_history(question, language):
        return Standalone(question, usage, notice=NOT_REWRITTEN if model else "")
    before = next(turn.content for turn in reversed(turns) if turn.role == "user")
    before = without_others(before, question, titles(), language)
    return Standalone(f"{before}\n{question}", usage, is_joined=True, notice=NOT_REWRITTEN_JOINED if model else "")


def without_others(before: str, question: str, titles: Sequence[str], language: str) -> str:
    """Return the question before without the name of a document whose near twin the follow-up asks about.

    After "the deductible of Health Plus", "and on the standard plan?" asks for the deductible of one plan, not of two.
    """
    names = {frozenset(tokenize(title, language)) for title in titles}
    left_out = own_terms_of_others(names, frozenset(tokenize(question, language)))
    if not left_out:
        return before
    words = before.split()
    terms = [frozenset(tokenize(word, language)) for word in words]
    kept, place = list[str](), 0
    while place < len(words):
        # Only the whole name is left out: "mental health" keeps its "health".
        ends = range(place + 1, len(words) + 1 if terms[place] else 0)
        end = next((end for end in ends if frozenset().union(*terms[place:end]) in left_out), None)
        if end is None:
            kept.append(words[place])
        place = end or place + 1
    return " ".join(kept)


def leans_on_history(question: str, language: str) -> bool:
    """Tell whether a question looks like one that cannot be understood alone."""
    # The beginning of a long question is enough to count its terms.
    terms = tokenize(question[:SHORT_CHARACTERS], language)
    return len(terms) <= FOLLOW_UP_TERMS or bool(FOLLOW_UP_OPENING.search(question))


def shares_words(question: str, passage_words: Sequence[str], language: str) -> bool:
    """Tell whether some of these words of a passage are words of the question."""
    return not set(tokenize(question, language)).isdisjoint(tokenize(" ".join(passage_words), language))
