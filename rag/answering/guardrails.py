"""Watch a model's answer for repetition, unsupported claims, uncited sentences, and replies like "not mentioned".

Weak models copy a passage up to their length limit, or cite a passage for an invented sentence. Each piece of text is
checked only once, in microseconds per token.

Uncited sentences are compared with all passages. A paragraph or list without citations gets citations of the passages
which support the sentences. If passage and sentence are in different languages, only numbers can be compared. A
sentence with all numbers in the passages counts as sourced if the paragraph has citations; otherwise as unsourced.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import accumulate
from pathlib import Path
from typing import Literal

from rag.answering.citations import LIST_NUMBER, SENTENCE_END, SHOWN_GROUP, SHOWN_MARKER, claims, source_of
from rag.answering.groundedness import LANGUAGE_CHARACTERS, CitedSource, Fault, QuestionContext, faults, supported_share
from rag.retrieval.bm25.index import tokenize
from rag.text.analysers import is_unspaced
from rag.text.figures import figures
from rag.types import Citation

Trouble = Literal["repeats", "unsupported", "says nothing"]

#: Length of a repeated run: in words, or in characters for scripts without spaces.
RUN_WORDS, RUN_CHARACTERS = 8, 14
#: A text is a loop if a run occurs this many times and repeated runs are at least this share.
TIMES, REPEATED = 3, 0.5
#: Checked sentences needed before the rules may stop an answer, and before they may replace a finished answer.
LEAST_TO_STOP, LEAST_AT_END = 3, 2
_TOKEN = re.compile(r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff]|[^\W_]+")
_GROUP_END = re.compile(r"(?:\[\d+\]\s?)+(?=[^\s\[])")
#: A table row counts as a whole, because cells repeat and rows do not.
_ROW = re.compile(r"^\s*\|.*\|\s*$")
_LONGEST_LINE = 400


@dataclass(frozen=True)
class CheckedClaim:
    """A cited sentence, the cited numbers, and the unsupported types of facts."""

    claim: str
    numbers: tuple[int, ...]
    faults: frozenset[Fault]


class Repetition:
    """Detects repetition in a streamed text."""

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
        """Check the received lines. The last word is kept for the next call, because more letters may follow."""
        *lines, open_line = self._pending.split("\n")
        for line in lines:
            self._line(line)
        self._pending = open_line
        if open_line.lstrip().startswith("|") and len(open_line) < _LONGEST_LINE:
            return
        # A marker or list number may still be incomplete.
        cut = open_line.rfind(" ")
        if cut < 0 and open_line and is_unspaced(open_line):
            cut = open_line.rfind("[") - 1 if "[" in open_line[-6:] else len(open_line) - 1
        if cut >= 0:
            self._line(open_line[: cut + 1])
            self._pending = open_line[cut + 1 :]

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
    """Checks an answer for repetition and unsupported claims during writing.

    `text_numbers` maps passage numbers to the citation numbers in the text, and grows with the text. `language_of`
    detects the language from the answer's start.
    """

    def __init__(
        self,
        sources: Mapping[int, CitedSource],
        text_numbers: Mapping[int, int],
        question: str,
        language_of: Callable[[str], str],
    ) -> None:
        self._sources = sources
        self._text_numbers = text_numbers
        self._question = question
        self._language_of = language_of
        self._question_context: QuestionContext | None = None
        self._beginning = ""
        #: Length of the text, in characters, from which the language was last detected.
        self._looked_at = 0
        self._pending = ""
        self._repetition = Repetition()
        self.checked: list[CheckedClaim] = []

    def feed(self, delta: str) -> Trouble | None:
        """Add a piece of text. Returns a problem serious enough to stop the answer, or `None`."""
        if not delta:
            return None
        self._repetition.feed(delta)
        self._pending += delta
        if len(self._beginning) < LANGUAGE_CHARACTERS:
            self._beginning += delta
        # A cited sentence is complete when text follows its citations.
        if "]" in self._pending:
            *_, end = (0, *(match.end() for match in _GROUP_END.finditer(self._pending)))
            if end:
                self._check(self._pending[:end])
                self._pending = self._pending[end:]
        return self._trouble(LEAST_TO_STOP)

    def finish(self, *, supported: Sequence[str] = (), unsupported: Sequence[str] = ()) -> Trouble | None:
        """Check the remaining text. Returns the problem with the complete answer, or `None`.

        `supported` and `unsupported` are the uncited sentences with and without a source. They count like cited
        sentences.
        """
        self._repetition.finish()
        self._check(self._pending)
        self._pending = ""
        self.checked += [CheckedClaim(sentence, (), frozenset()) for sentence in supported]
        self.checked += [CheckedClaim(sentence, (), frozenset({"words"})) for sentence in unsupported]
        return self._trouble(LEAST_AT_END)

    def _check(self, text: str) -> None:
        # Detect the language again after the text has doubled: each detection takes as long as checking a sentence.
        if self._question_context is None or len(self._beginning) >= 2 * self._looked_at < 2 * LANGUAGE_CHARACTERS:
            self._question_context = QuestionContext(self._question, self._language_of(self._beginning))
            self._looked_at = len(self._beginning)
        by_text_number = {text_number: number for number, text_number in self._text_numbers.items()}
        for claim, numbers in claims(text):
            sources = [self._sources[by_text_number[n]] for n in numbers if by_text_number.get(n) in self._sources]
            if claim and sources:
                self.checked.append(CheckedClaim(claim, numbers, faults(claim, sources, self._question_context)))

    def _trouble(self, least: int) -> Trouble | None:
        if self._repetition.is_found:
            return "repeats"
        wrong = [claim for claim in self.checked if claim.faults]
        if 2 * len(wrong) <= len(self.checked) or not wrong:
            return None
        if len(self.checked) >= least:
            return "unsupported"
        # A single unsupported sentence is enough for missing words or a wrong negation, but not for a figure, which may
        # be calculated.
        is_plain = least == LEAST_AT_END and any({"words", "negation"} & claim.faults for claim in wrong)
        return "unsupported" if is_plain else None


def sources_of(citations: Sequence[Citation], context_text: str, likely: tuple[str, ...]) -> dict[int, CitedSource]:
    """Return each citation's passage, with the surrounding text given to the model, by passage number."""
    places: list[int] = []
    at = 0
    for citation in citations:
        position = context_text.find(citation.passage, at)
        place = context_text.rfind(f"[{citation.number}] ", at, position) if position >= 0 else -1
        if place < 0:
            return {c.number: source_of(c, likely) for c in citations}
        places.append(place)
        at = position + len(citation.passage)
    ends = [*places[1:], len(context_text)]
    return {
        citation.number: source_of(citation, likely, read=context_text[place:end])
        for citation, place, end in zip(citations, places, ends, strict=True)
    }


BLOCK_END = re.compile(r"(\s*\n[ \t]*\n\s*)")
TRAILING_SPACE = re.compile(r"\s+$")
#: Lines without a statement: a heading, bold words, the rule below a table head.
NAMES_ONLY = re.compile(r"^\s*(?:#{1,6}\s.*|\*\*[^*]{1,120}\*\*:?|[|\s:-]+|```.*)\s*$")
BULLET = re.compile(r"^\s*(?:[-–—*•●▪|>]\s*)+")
MARKS = re.compile(r"[*_`|]+")
#: A sentence with fewer content words and without a figure cannot be compared: "Yes, you can."
LEAST_WORDS = 2
#: Lowest share of a sentence's words found in its source; the second value if they share a figure.
LEAST_SUPPORT, LEAST_SUPPORT_WITH_FIGURE = 0.5, 0.3
#: Unsourced sentences listed below an answer, at most.
MOST_NAMED = 3
#: Polite phrases to the reader, which need no source.
COURTESY = re.compile(
    r"\b(?:let me know|feel free|hope (?:this|that|it)|happy to help|here (?:is|are)|based on the|according to the"
    r" (?:documents?|passages?|context)|for (?:more|further) (?:information|details)|please (?:contact|ask|check|note)"
    r"|(?:please|you (?:can|may|should)) (?:contact|ask|consult|reach out)|any (?:other|further|more) questions"
    r"|laat (?:het )?me (?:het )?weten|hopelijk|neem contact|op basis van|volgens de (?:documenten|passages)"
    r"|lassen sie (?:es )?mich wissen|hoffe|wenden sie sich|auf (?:der )?grundlage|laut den (?:dokumenten|passagen)"
    r"|weitere fragen|bei fragen|n'hésitez pas|j'espère|veuillez contacter|d'après les|selon les (?:documents|passages)"
    r"|no dud[ea]|espero que|póngase en contacto|según los (?:documentos|pasajes)|en base a"
    r"|non esit\w+|spero che|contatt[ai]|secondo i (?:documenti|passaggi)|in base a"
    r"|não hesite|espero que|entre em contato|contacte|de acordo com os (?:documentos|trechos)|com base"
    r"|daj(?:cie)? (?:mi )?znać|mam nadzieję|skontaktuj|na podstawie|zgodnie z (?:dokumentami|fragmentami)"
    r"|bana bildir\w*|umarım|iletişime geç\w*|belgelere göre|yardımcı ol\w*)"
    r"|문의(?:하|해)|도움이 되|알려 ?주세요|문서에 따르면|다음과 같습니다"
    r"|お問い合わせ|お知らせください|お役に立|資料によると|以下のとおり"
    r"|请(?:联系|咨询|告诉)|希望.*帮助|根据(?:文档|资料|以上)|如下|يرجى (?:التواصل|الاتصال)|آمل|وفقا? لل|بناء على",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Statement:
    """An uncited sentence, and whether the surrounding paragraph or list has citations."""

    text: str
    is_in_cited_block: bool


class SourceFinder:
    """Finds sources for uncited sentences while an answer is written.

    The citations in the text are already renumbered: `text_numbers` maps passage numbers to the numbers in the text,
    and gets an entry for each citation added here. `language_of` detects the language of a text.
    """

    def __init__(
        self,
        sources: Mapping[int, CitedSource],
        text_numbers: dict[int, int],
        question: str,
        language_of: Callable[[str], str],
    ) -> None:
        self._sources = sources
        self._text_numbers = text_numbers
        self._question = question
        self._language_of = language_of
        self._block = self._buffer = self._beginning = ""
        #: Whether the answer has a citation or a statement so far.
        self.says_something = False
        #: Sentences without a source; and sentences with possible sources only in a different language.
        self.unsupported: list[str] = []
        self.unknown: list[str] = []
        self.supported: list[str] = []

    def feed(self, text: str) -> str:
        """Add a piece of the answer. Returns the text to show; trailing spaces are kept for the next piece."""
        if not text:
            return ""
        text = self._buffer + text
        tail = TRAILING_SPACE.search(text)
        text, self._buffer = (text[: tail.start()], tail[0]) if tail else (text, "")
        if "\n" not in text:
            self._block += text
            return text
        out = ""
        for number, piece in enumerate(BLOCK_END.split(text)):
            if number % 2:
                out += self._close_block() + piece
            else:
                self._block += piece
                out += piece
        return out

    def finish(self) -> str:
        """Return the citations to append to the last paragraph or list."""
        self._buffer = ""
        return self._close_block()

    def _close_block(self) -> str:
        block, self._block = self._block, ""
        self._beginning = (self._beginning + block)[:400]
        if not block.strip():
            return ""
        is_cited = SHOWN_MARKER.search(block) is not None
        question_context = QuestionContext(self._question, self._language_of(self._beginning))
        statements = uncited_statements(block, question_context.language)
        self.says_something |= is_cited or bool(statements)
        numbers: list[int] = []
        for statement in statements:
            number = self._source_of(statement, question_context)
            if number is None:
                continue
            self.supported.append(statement.text)
            if not is_cited and number not in numbers:
                numbers.append(number)
        if not numbers:
            return ""
        return " " + "".join(f"[{self._text_numbers.setdefault(n, len(self._text_numbers) + 1)}]" for n in numbers)

    def _source_of(self, statement: Statement, question_context: QuestionContext) -> int | None:
        """Return the number of the passage which supports a sentence, or `None`.

        A sentence without support is added to `unsupported`. If only passages in other languages may support the
        sentence, the sentence is added to `unknown`.
        """
        comparable = {n: source for n, source in self._sources.items() if source.language == question_context.language}
        shares = {n: _support(statement.text, source, question_context) for n, source in comparable.items()}
        best = max(shares, key=lambda n: shares[n], default=None)
        if best is not None and shares[best] > 0:
            return best
        foreign_sources = [source for n, source in self._sources.items() if n not in comparable]
        source_figures = question_context.figures.union(*(source.figures for source in foreign_sources))
        is_possible = (
            bool(foreign_sources)
            and not _meaningful_figures(statement.text, question_context.language) - source_figures
        )
        if not is_possible:
            self.unsupported.append(statement.text)
        elif not statement.is_in_cited_block:
            self.unknown.append(statement.text)
        return None


def uncited_statements(block: str, language: str) -> list[Statement]:
    """Return the sentences in a paragraph or list which state a fact and have no citation."""
    is_cited = SHOWN_MARKER.search(block) is not None
    statements = []
    for line in block.split("\n"):
        if NAMES_ONLY.match(line):
            continue
        # "25 days. [1]": move the number into the previous sentence.
        line = re.sub(r"([.!?。！？])\s*((?:\[\d+\]\s?)+)", r" \2\1 ", line)
        for part in SENTENCE_END.split(line):
            sentence = MARKS.sub(" ", LIST_NUMBER.sub("", BULLET.sub("", part or ""))).strip()
            if sentence and not SHOWN_GROUP.search(sentence) and states(sentence, language):
                statements.append(Statement(" ".join(sentence.split()), is_cited))
    return statements


def states(sentence: str, language: str) -> bool:
    """Whether a sentence states a fact. Questions, announcements, courtesies and replies like "Yes, you can" do not."""
    if sentence.endswith(("?", "？", "؟", ":", "：")) or COURTESY.search(sentence):
        return False
    return bool(re.search(r"\d", sentence)) or len(_words(sentence, language)) >= LEAST_WORDS


@lru_cache(maxsize=512)
def _words(sentence: str, language: str) -> frozenset[str]:
    return frozenset(tokenize(sentence, language))


def _meaningful_figures(text: str, language: str) -> frozenset[str]:
    """Return the numbers in a text, except 1, which is rarely a quantity."""
    return figures(text, language) - {"1"}


def _support(sentence: str, source: CitedSource, question_context: QuestionContext) -> float:
    """Return the share (0 to 1) of a sentence's words found in a passage, or 0 if the passage does not support the
    sentence.
    """
    stated = _meaningful_figures(sentence, question_context.language)
    if stated - source.figures - question_context.figures:
        return 0.0
    share = supported_share(sentence, source, question_context.language)
    has_figure = bool(stated - question_context.figures)
    if share <= (LEAST_SUPPORT_WITH_FIGURE if has_figure else LEAST_SUPPORT) and not (
        has_figure and not _words(sentence, question_context.language)
    ):
        return 0.0
    return 0.0 if faults(sentence, [source], question_context) else share


def first_of(sentences: list[str]) -> list[str]:
    """Return the first few sentences to list below an answer, each cut to a line, without repeats."""
    shortened = dict.fromkeys(s if len(s) <= 160 else f"{s[:159]}…" for s in sentences)
    return list(shortened)[:MOST_NAMED]


#: Characters which may stand before the "not found" sentence: a greeting, "Unfortunately,", "I'm sorry, but".
OPENING_CHARACTERS = 40
_SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|\n+")
_DIGIT = re.compile(r"\d")


@cache
def _refusal_pattern() -> re.Pattern[str]:
    patterns = tomllib.loads(Path(__file__).with_name("refusals.toml").read_text("utf-8"))["patterns"]
    return re.compile(
        "|".join(f"(?:{pattern})" for language_patterns in patterns.values() for pattern in language_patterns),
        re.IGNORECASE,
    )


def says_not_found(text: str) -> bool:
    """Whether a reply only says that the documents do not answer the question.

    A reply which continues with a citation, "I could not find X, but Y [1]", is an answer.
    """
    sentences = [part.strip() for part in _SENTENCE.split(_join(text)) if part and part.strip()]
    before = accumulate(map(len, sentences), initial=0)
    opening = [sentence for sentence, length in zip(sentences, before, strict=False) if length <= OPENING_CHARACTERS]
    # Most replies do not start with a "not found" sentence and need no further check.
    if not any(map(_refusal_pattern().search, opening)):
        return False
    matches = [_refusal_pattern().search(sentence) for sentence in sentences]
    # A citation or a figure in the rest answers a part of the question.
    for sentence, match in zip(sentences, matches, strict=True):
        rest = sentence if match is None else sentence[match.end() :]
        if SHOWN_GROUP.search(rest) and (match is None or _goes_on(rest)):
            return False
        if match is not None and _goes_on(rest) and _DIGIT.search(rest):
            return False
    return True


def _join(text: str) -> str:
    """Move citations from after a full stop to before the full stop."""
    return re.sub(r"([.!?。！？])\s*((?:\[\d+\]\s?)+)", r" \2\1", text)


_CONTRAST = re.compile(
    r"\b(?:but|however|although|though|only|yet|maar|echter|wel|aber|jedoch|allerdings|sondern|mais|cependant|toutefois|"
    r"pero|sino|aunque|ma|però|tuttavia|mas|porém|contudo|ale|jednak|lecz|ama|ancak|fakat|yalnız)\b|지만|으나|는데|다만|が、|けれど|ただし|但|不过|然而"
    r"|(?:^|\s)(?:لكن|ولكن|إلا|غير\s+أن)",
    re.IGNORECASE,
)


def _goes_on(rest: str) -> bool:
    return _CONTRAST.search(rest) is not None
