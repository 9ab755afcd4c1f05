"""Recognise replies such as "The documents do not mention this", written by a model."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from itertools import accumulate
from pathlib import Path

from rag.answering.citations import SHOWN_GROUP

#: Room for words before the "not found" sentence: a greeting, "Unfortunately,", "I'm sorry, but".
OPENING_CHARACTERS = 40
_SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|\n+")
_DIGIT = re.compile(r"\d")


@cache
def _any() -> re.Pattern[str]:
    patterns = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))["patterns"]
    return re.compile("|".join(f"(?:{pattern})" for own in patterns.values() for pattern in own), re.IGNORECASE)


def says_not_found(text: str) -> bool:
    """Whether the whole reply only says that the documents do not answer the question.

    A reply with a cited continuation, "I could not find X, but Y [1]", is an answer.
    """
    sentences = [part.strip() for part in _SENTENCE.split(_joined(text)) if part and part.strip()]
    before = accumulate(map(len, sentences), initial=0)
    opening = [sentence for sentence, length in zip(sentences, before, strict=False) if length <= OPENING_CHARACTERS]
    # Most replies do not start with a "not found" sentence and need no further check.
    if not any(map(_any().search, opening)):
        return False
    said = [_any().search(sentence) for sentence in sentences]
    # A citation or a figure in the rest answers a part of the question.
    for sentence, found in zip(sentences, said, strict=True):
        rest = sentence if found is None else sentence[found.end() :]
        if SHOWN_GROUP.search(rest) and (found is None or _goes_on(rest)):
            return False
        if found is not None and _goes_on(rest) and _DIGIT.search(rest):
            return False
    return True


def _joined(text: str) -> str:
    """Move citations after a full stop into the sentence before."""
    return re.sub(r"([.!?。！？])\s*((?:\[\d+\]\s?)+)", r" \2\1", text)


_CONTRAST = re.compile(
    r"\b(?:but|however|although|though|only|yet|maar|echter|wel|aber|jedoch|allerdings|sondern|mais|cependant|toutefois|"
    r"pero|sino|aunque|ma|però|tuttavia|mas|porém|contudo|ale|jednak|lecz|ama|ancak|fakat|yalnız)\b|지만|으나|는데|다만|が、|けれど|ただし|但|不过|然而"
    r"|(?:^|\s)(?:لكن|ولكن|إلا|غير\s+أن)",
    re.IGNORECASE,
)


def _goes_on(rest: str) -> bool:
    """Whether a sentence continues with something else after "not found"."""
    return _CONTRAST.search(rest) is not None
