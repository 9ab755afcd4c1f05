"""Which values a field of a profile takes, and which cannot stand together; each refusal is a sentence."""

from __future__ import annotations

import importlib.util
import logging
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

import re2

from rag.errors import InvalidInput

if TYPE_CHECKING:
    from rag.profile import Profile

Kind = Literal[
    "whole", "number", "switch", "choice", "text", "words", "pairs", "patterns", "steps", "boosts", "factors"
]

log = logging.getLogger(__name__)

NO_OVERRIDE = "The {label} cannot be changed for a collection: {why}."


@dataclass(frozen=True, kw_only=True)
class ProfileField:
    """A field in plain words, with the values it takes."""

    name: str
    label: str
    group: str
    kind: Kind
    help: str = ""
    minimum: float = 0
    maximum: float = math.inf
    choices: tuple[str, ...] = ()
    #: None is a value, too.
    may_be_none: bool = False
    #: Why it cannot be overridden; empty where it can.
    why_fixed: str = ""
    #: Another value than the profile's concerns only what is added from then on.
    only_new_documents: bool = False

    def checked(self, value: Any) -> Any:
        """The value as the profile keeps it. Raises `InvalidInput` saying what the field takes."""
        if self.why_fixed:
            raise InvalidInput(NO_OVERRIDE.format(label=self.label.lower(), why=self.why_fixed))
        if value is None and self.may_be_none:
            return None
        try:
            return _CHECKS[self.kind](self, value)
        except (TypeError, ValueError) as exc:
            raise InvalidInput(f"{self.label} cannot be {_shown(value)}: it has to be {self.wanted}.") from exc

    @property
    def wanted(self) -> str:
        """What the field takes, to end the sentence "it has to be …"."""
        if self.kind in ("whole", "number"):
            noun = "a whole number" if self.kind == "whole" else "a number"
            if math.isinf(self.maximum):
                return f"{noun} of at least {self.minimum:,g}"
            return f"{noun} from {self.minimum:,g} to {self.maximum:,g}"
        if self.kind == "choice":
            return "one of " + ", ".join(self.choices)
        return {
            "switch": "on or off",
            "text": f"a text of at most {self.maximum:,g} characters",
            "words": "a list of texts",
            "pairs": "a list of names, each with a text",
            "patterns": "a list of regular expressions, each with its categories",
            "steps": "a list of days, each more than the one before, with factors above 0",
            "boosts": "a list of names, each with a factor above 0",
            "factors": "a list of factors above 0",
        }[self.kind]


def contradiction_in(profile: Profile) -> str:
    """Why the values of a profile cannot stand together, as a sentence; empty when they can."""
    p = profile
    rules = (
        (p.chunk_overlap >= p.chunk_size, "The overlap of chunks has to be smaller than their size."),
        (p.minimum_chunk_size > p.chunk_size, "The smallest chunk cannot be larger than the chunk size."),
        (
            not p.narrative_target_tokens <= p.narrative_soft_tokens <= p.narrative_hard_tokens,
            "Of narrative chunks, the wanted size cannot be above the soft limit, nor that above the hard one.",
        ),
        (
            p.professional_minimum_tokens > p.professional_maximum_tokens,
            "The smallest professional chunk cannot be larger than the largest.",
        ),
        (
            p.markdown_target_words > p.markdown_maximum_words,
            "The wanted size of Markdown chunks cannot be above their limit.",
        ),
        (
            p.threshold_mode == "absolute" and p.similarity_threshold is None,
            "An absolute threshold needs a value: set the least similarity first.",
        ),
        (
            p.reranking and p.rerank_top_n > p.top_k,
            "Reranking cannot keep more passages than are wanted: raise the passages wanted, or keep fewer.",
        ),
        (
            p.korean_analyser == "kiwi" and importlib.util.find_spec("kiwipiepy") is None,
            "The package kiwipiepy is not installed. Install it, then choose it: "
            ".venv/bin/pip install kiwipiepy==0.24.1",
        ),
        (
            p.search_type == "hybrid" and p.fusion == "weighted" and p.vector_weight + p.keyword_weight == 0,
            "The weights of meaning and of keywords cannot both be 0.",
        ),
        (
            p.recency_boost and not p.recency_steps,
            "The boost of recent documents needs its steps: set days and factors first.",
        ),
        (
            p.multi_signal and not (p.category_boosts or p.year_boosts or p.quality_maximum_words),
            "Ordering by several signals needs factors for categories, years or lengths: set one of them first.",
        ),
        (
            p.quality_minimum_words > p.quality_maximum_words,
            "The shortest passage of the best length cannot be longer than the longest.",
        ),
        (
            p.top_k * p.candidate_factor > MAXIMUM_CANDIDATES,
            f"These are {p.top_k * p.candidate_factor:,} candidates for one question; "
            f"at most {MAXIMUM_CANDIDATES:,} are compared.",
        ),
    )
    return next((sentence for is_so, sentence in rules if is_so), "")


#: Candidates of one question; Cohere takes 1000 documents in one call.
MAXIMUM_CANDIDATES = 1000


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


def _whole(field: ProfileField, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not field.minimum <= value <= field.maximum:
        raise ValueError
    return value


def _number(field: ProfileField, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError
    if not field.minimum <= value <= field.maximum:  # also false for NaN
        raise ValueError
    return float(value)


def _switch(_: ProfileField, value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError
    return value


def _choice(field: ProfileField, value: Any) -> str:
    if value not in field.choices:
        raise ValueError
    return str(value)


def _text(field: ProfileField, value: Any) -> str:
    if not isinstance(value, str) or len(value) > field.maximum or "\0" in value:
        raise ValueError
    if field.minimum and not value.strip():
        raise ValueError
    return value


def _words(_: ProfileField, value: Any) -> tuple[str, ...]:
    return tuple(_plain_text(item) for item in _listed(value))


def _pairs(_: ProfileField, value: Any) -> tuple[tuple[str, str], ...]:
    return tuple((_name(name), _plain_text(text)) for name, text in _listed(value))


def _patterns(_: ProfileField, value: Any) -> tuple[tuple[str, tuple[str, ...]], ...]:
    made = []
    for pattern, categories in _listed(value):
        try:
            re.compile(_name(pattern))
        except re.error as exc:
            raise ValueError from exc
        made.append((pattern, tuple(_name(category) for category in _listed(categories))))
    return tuple(made)


def _steps(_: ProfileField, value: Any) -> tuple[tuple[int, float], ...]:
    steps = tuple((int(days), _factor(factor)) for days, factor in _listed(value))
    if any(later[0] <= earlier[0] for earlier, later in zip(((0, 0.0), *steps), steps, strict=False)):
        raise ValueError
    return steps


def _boosts(_: ProfileField, value: Any) -> tuple[tuple[str, float], ...]:
    return tuple((_name(name), _factor(factor)) for name, factor in _listed(value))


def _factors(_: ProfileField, value: Any) -> tuple[float, ...]:
    return tuple(_factor(item) for item in _listed(value))


def _listed(value: Any) -> Iterable[Any]:
    if not isinstance(value, list | tuple) or len(value) > 100:
        raise TypeError
    return value


def _plain_text(value: Any) -> str:
    if not isinstance(value, str) or len(value) > 1000 or "\0" in value:
        raise TypeError
    return value


def _name(value: Any) -> str:
    if not _plain_text(value).strip():
        raise ValueError
    return str(value)


def _factor(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 100:
        raise ValueError
    return float(value)


def _shown(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 60 else f"{shown[:57]}…"


_CHECKS: Mapping[Kind, Any] = {
    "whole": _whole, "number": _number, "switch": _switch, "choice": _choice, "text": _text, "words": _words,
    "pairs": _pairs, "patterns": _patterns, "steps": _steps, "boosts": _boosts, "factors": _factors,
}  # fmt: skip
