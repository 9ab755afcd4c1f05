"""The regular expressions by which a profile finds categories in a question, read in linear time by RE2."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import re2

from rag.errors import InvalidInput

log = logging.getLogger(__name__)

#: How much the patterns of a collection may ask of each question, in instructions of RE2: a hundred words of Korean,
#: more of English. Whatever they are, 4,000 characters are read by so many in less than 50 ms.
MAXIMUM_PATTERN_SIZE = 1000
NOT_LINEAR = (
    "The question pattern {pattern} cannot be used: {why}. Patterns are read by RE2, so that no question takes long: "
    "look-around such as (?=…) and back-references such as \\1 are not possible. Write the words with | between them."
)
TOO_MUCH = (
    "These question patterns are too large together: they come to {size:,} steps a character, and at most {most:,} are "
    "possible. Write shorter ones, and repetitions such as {{0,30}} with smaller numbers."
)


def require_linear_patterns(patterns: Iterable[tuple[str, Any]]) -> None:
    """Raise `InvalidInput` unless all these regular expressions are read in time linear to the question's length."""
    size = 0
    for pattern, _ in patterns:
        try:
            size += _linear(pattern).programsize
        except re2.error as exc:
            raise InvalidInput(NOT_LINEAR.format(pattern=_shown(pattern), why=_reason(exc))) from exc
    if size > MAXIMUM_PATTERN_SIZE:
        raise InvalidInput(TOO_MUCH.format(size=size, most=MAXIMUM_PATTERN_SIZE))


def is_found(pattern: str, text: str) -> bool:
    """Whether a pattern of a profile is found anywhere in a text.

    One that an earlier version saved and that cannot be read in linear time finds nothing: the question is searched
    for without its categories.
    """
    try:
        return _linear(pattern).search(text) is not None
    except re2.error as exc:
        log.warning("the question pattern %s is left out: %s", _shown(pattern), _reason(exc))
        return False


@lru_cache(maxsize=1_000)
def _linear(pattern: str) -> Any:
    options = re2.Options()
    options.log_errors = False
    return re2.compile(pattern, options)


def _reason(exc: Exception) -> str:
    found = exc.args[0] if exc.args else ""
    return found.decode("utf-8", "replace") if isinstance(found, bytes) else str(found)


def _shown(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 60 else f"{shown[:57]}…"
