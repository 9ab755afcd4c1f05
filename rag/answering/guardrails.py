"""Watch an answer while a model writes it, for repetition and for claims without support in their sources.

Weak models copy a passage up to their length limit, or cite a passage for an invented sentence. Each piece of text is
checked only once, at a cost of microseconds per token.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from rag.answering.citations import LIST_NUMBER, SHOWN_MARKER, claims, source_of
from rag.answering.groundedness import LANGUAGE_CHARACTERS, CitedSource, Fault, QuestionContext, faults
from rag.text.analysers import is_unspaced
from rag.types import Citation

Trouble = Literal["repeats", "unsupported", "says nothing"]

#: Length of a repeated run: in words, or in characters for scripts without spaces.
RUN_WORDS, RUN_CHARACTERS = 8, 14
#: A loop is a run seen this many times, in a text repeated to at least this share.
TIMES, REPEATED = 3, 0.5
#: Checked sentences required to stop an answer, and to replace a finished answer.
LEAST_TO_STOP, LEAST_AT_END = 3, 2
_TOKEN = re.compile(r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff]|[^\W_]+")
_GROUP_END = re.compile(r"(?:\[\d+\]\s?)+(?=[^\s\[])")
#: A table row counts as a whole, because cells repeat and rows do not.
_ROW = re.compile(r"^\s*\|.*\|\s*$")
_LONGEST_LINE = 400


@dataclass(frozen=True)
class CheckedClaim:
    """A sentence with citations, and the parts without support in the passages."""

    claim: str
    numbers: tuple[int, ...]
    faults: frozenset[Fault]


class Repetition:
    """Detects a text which repeats itself."""

    def __init__(self) -> None:
        self._pending = ""
        self._run: list[str] = []
        self._seen: Counter[tuple[str, ...]] = Counter()
        self._runs = self._repeated = 0
        self.is_found = False

    def feed(self, delta: str) -> None:
        self._pending += delta
        # An unfinished word cannot be judged yet.
        if len(self._pending) >= _LONGEST_LINE or " " in delta or "\n" in delta or is_unspaced(delta):
            self._take()

    def finish(self) -> None:
        self._pending += "\n"
        self._take()

    def _take(self) -> None:
        """Count the words in complete lines, and in the last line without its last word."""
        *lines, last = self._pending.split("\n")
        for line in lines:
            self._line(line)
        self._pending = last
        if last.lstrip().startswith("|") and len(last) < _LONGEST_LINE:
            return
        # A marker or list number may still be incomplete.
        cut = last.rfind(" ")
        if cut < 0 and last and is_unspaced(last):
            cut = last.rfind("[") - 1 if "[" in last[-6:] else len(last) - 1
        if cut >= 0:
            self._line(last[: cut + 1])
            self._pending = last[cut + 1 :]

    def _line(self, line: str) -> None:
        if _ROW.match(line):
            self._count(("|", " ".join(line.split()).lower()))
            return
        for token in _TOKEN.findall(SHOWN_MARKER.sub(" ", LIST_NUMBER.sub("", line)).lower()):
            self._token(token)

    def _token(self, token: str) -> None:
        self._run.append(token)
        size = RUN_CHARACTERS if len(token) == 1 and is_unspaced(token) else RUN_WORDS
        del self._run[: -max(RUN_CHARACTERS, size)]
        if len(self._run) < size:
            return
        self._count(tuple(self._run[-size:]))

    def _count(self, run: tuple[str, ...]) -> None:
        self._seen[run] += 1
        self._runs += 1
        self._repeated += self._seen[run] > 1
        if self._seen[run] >= TIMES and self._repeated >= REPEATED * self._runs:
            self.is_found = True


class AnswerWatch:
    """Watches an answer for trouble while it is written.

    `shown` maps context numbers to text numbers and grows while the answer is written. `language_of` detects the
    language from the start of the answer.
    """

    def __init__(
        self,
        sources: Mapping[int, CitedSource],
        shown: Mapping[int, int],
        question: str,
        language_of: Callable[[str], str],
    ) -> None:
        self._sources = sources
        self._shown = shown
        self._question = question
        self._language_of = language_of
        self._asked: QuestionContext | None = None
        self._beginning = ""
        #: Characters of the start already used to detect the language.
        self._looked_at = 0
        self._pending = ""
        self._repetition = Repetition()
        self.checked: list[CheckedClaim] = []

    def feed(self, delta: str) -> Trouble | None:
        """Add a piece of text and return trouble serious enough to stop, or `None`."""
        if not delta:
            return None
        self._repetition.feed(delta)
        self._pending += delta
        if len(self._beginning) < LANGUAGE_CHARACTERS:
            self._beginning += delta
        # A sentence has ended when text follows its citations.
        if "]" in self._pending:
            *_, end = (0, *(match.end() for match in _GROUP_END.finditer(self._pending)))
            if end:
                self._check(self._pending[:end])
                self._pending = self._pending[end:]
        return self._trouble(LEAST_TO_STOP)

    def finish(self, *, supported: Sequence[str] = (), unsupported: Sequence[str] = ()) -> Trouble | None:
        """Return the trouble with the complete answer; uncited sentences count like cited sentences."""
        self._repetition.finish()
        self._check(self._pending)
        self._pending = ""
        self.checked += [CheckedClaim(sentence, (), frozenset()) for sentence in supported]
        self.checked += [CheckedClaim(sentence, (), frozenset({"words"})) for sentence in unsupported]
        return self._trouble(LEAST_AT_END)

    def _check(self, text: str) -> None:
        # Detect the language again after the text has doubled: each detection takes as long as checking a sentence.
        if self._asked is None or len(self._beginning) >= 2 * self._looked_at < 2 * LANGUAGE_CHARACTERS:
            self._asked = QuestionContext(self._question, self._language_of(self._beginning))
            self._looked_at = len(self._beginning)
        by_shown = {shown: number for number, shown in self._shown.items()}
        for claim, numbers in claims(text):
            sources = [self._sources[by_shown[n]] for n in numbers if by_shown.get(n) in self._sources]
            if claim and sources:
                self.checked.append(CheckedClaim(claim, numbers, faults(claim, sources, self._asked)))

    def _trouble(self, least: int) -> Trouble | None:
        if self._repetition.is_found:
            return "repeats"
        wrong = [claim for claim in self.checked if claim.faults]
        if 2 * len(wrong) <= len(self.checked) or not wrong:
            return None
        if len(self.checked) >= least:
            return "unsupported"
        # A single sentence is replaced for a different or contrary statement, but not for a calculated figure.
        is_plain = least == LEAST_AT_END and any({"words", "negation"} & claim.faults for claim in wrong)
        return "unsupported" if is_plain else None


def sources_of(citations: Sequence[Citation], context_text: str, likely: tuple[str, ...]) -> dict[int, CitedSource]:
    """Return what the model read for each passage, with surrounding text, by context number."""
    places: list[int] = []
    at = 0
    for citation in citations:
        found = context_text.find(citation.passage, at)
        place = context_text.rfind(f"[{citation.number}] ", at, found) if found >= 0 else -1
        if place < 0:
            return {c.number: source_of(c, likely) for c in citations}
        places.append(place)
        at = found + len(citation.passage)
    ends = [*places[1:], len(context_text)]
    return {
        citation.number: source_of(citation, likely, read=context_text[place:end])
        for citation, place, end in zip(citations, places, ends, strict=True)
    }
