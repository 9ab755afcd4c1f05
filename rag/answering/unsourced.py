"""Find sources for a model's uncited sentences, and list sentences without a source.

A paragraph or list without citations gets, at its end, the numbers of the passages holding its sentences. An uncited
sentence beside cited sentences is compared with their passages and with all others. If sentence and passage differ in
language, only figures are compared: the sentence then counts as sourced in a block with citations, and as unsourced in
a block without citations.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from rag.answering.citations import LIST_NUMBER, SENTENCE_END, SHOWN_GROUP, SHOWN_MARKER
from rag.answering.groundedness import CitedSource, QuestionContext, faults, share_held
from rag.retrieval.bm25.index import tokenize
from rag.text.figures import figures

BLOCK_END = re.compile(r"(\s*\n[ \t]*\n\s*)")
TRAILING_SPACE = re.compile(r"\s+$")
#: Lines without a statement: a heading, bold words, the rule below a table head.
NAMES_ONLY = re.compile(r"^\s*(?:#{1,6}\s.*|\*\*[^*]{1,120}\*\*:?|[|\s:-]+|```.*)\s*$")
BULLET = re.compile(r"^\s*(?:[-–—*•●▪|>]\s*)+")
MARKS = re.compile(r"[*_`|]+")
#: Shorter sentences without a figure have no comparable content: "Yes, you can."
LEAST_WORDS = 2
#: Lowest share of a sentence's words in its source; lower if sentence and source share a figure.
LEAST_HELD, LEAST_HELD_WITH_FIGURE = 0.5, 0.3
#: Unsourced sentences listed below an answer, at most.
MOST_NAMED = 3
#: A model's courtesies to the reader.
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
    """An uncited sentence, in a block with or without citations."""

    text: str
    is_beside_citation: bool


class SourceFinder:
    """Follows an answer while it is written, with numbers already in the order of the text.

    `shown` maps context numbers to text numbers, and grows by the numbers added here. `language_of` detects the
    language of a text.
    """

    def __init__(
        self,
        sources: Mapping[int, CitedSource],
        shown: dict[int, int],
        question: str,
        language_of: Callable[[str], str],
    ) -> None:
        self._sources = sources
        self._shown = shown
        self._question = question
        self._language_of = language_of
        self._block = self._held = self._beginning = ""
        #: Whether the answer has citations or statements so far.
        self.says_something = False
        #: Sentences without a source, and sentences in a language without comparable passages.
        self.unsupported: list[str] = []
        self.unknown: list[str] = []
        self.supported: list[str] = []

    def feed(self, text: str) -> str:
        """Take a piece of the answer and return the text to show, without trailing spaces."""
        if not text:
            return ""
        text = self._held + text
        tail = TRAILING_SPACE.search(text)
        text, self._held = (text[: tail.start()], tail[0]) if tail else (text, "")
        if "\n" not in text:
            self._block += text
            return text
        out = ""
        for number, piece in enumerate(BLOCK_END.split(text)):
            if number % 2:
                out += self._closed() + piece
            else:
                self._block += piece
                out += piece
        return out

    def finish(self) -> str:
        """Return the numbers for the last block."""
        self._held = ""
        return self._closed()

    def _closed(self) -> str:
        block, self._block = self._block, ""
        self._beginning = (self._beginning + block)[:400]
        if not block.strip():
            return ""
        is_cited = SHOWN_MARKER.search(block) is not None
        asked = QuestionContext(self._question, self._language_of(self._beginning))
        statements = uncited_statements(block, asked.language)
        self.says_something |= is_cited or bool(statements)
        numbers: list[int] = []
        for statement in statements:
            found = self._source_of(statement, asked)
            if found is None:
                continue
            self.supported.append(statement.text)
            if not is_cited and found not in numbers:
                numbers.append(found)
        if not numbers:
            return ""
        return " " + "".join(f"[{self._shown.setdefault(n, len(self._shown) + 1)}]" for n in numbers)

    def _source_of(self, statement: Statement, asked: QuestionContext) -> int | None:
        """Return the context number of a sentence's source, or record a sentence without a source."""
        comparable = {n: source for n, source in self._sources.items() if source.language == asked.language}
        held = {n: _held(statement.text, source, asked) for n, source in comparable.items()}
        best = max(held, key=lambda n: held[n], default=None)
        if best is not None and held[best] > 0:
            return best
        others = [source for n, source in self._sources.items() if n not in comparable]
        known = asked.figures.union(*(source.figures for source in others))
        is_possible = bool(others) and not _spoken_figures(statement.text, asked.language) - known
        if not is_possible:
            self.unsupported.append(statement.text)
        elif not statement.is_beside_citation:
            self.unknown.append(statement.text)
        return None


def uncited_statements(block: str, language: str) -> list[Statement]:
    """Return a block's uncited statements."""
    is_cited = SHOWN_MARKER.search(block) is not None
    found = []
    for line in block.split("\n"):
        if NAMES_ONLY.match(line):
            continue
        # "25 days. [1]": the number belongs to the previous sentence.
        line = re.sub(r"([.!?。！？])\s*((?:\[\d+\]\s?)+)", r" \2\1 ", line)
        for part in SENTENCE_END.split(line):
            sentence = MARKS.sub(" ", LIST_NUMBER.sub("", BULLET.sub("", part or ""))).strip()
            if sentence and not SHOWN_GROUP.search(sentence) and states(sentence, language):
                found.append(Statement(" ".join(sentence.split()), is_cited))
    return found


def states(sentence: str, language: str) -> bool:
    """Whether a sentence states a fact: no question, no announcement, no courtesy, not just "Yes, you can"."""
    if sentence.endswith(("?", "？", "؟", ":", "：")) or COURTESY.search(sentence):
        return False
    return bool(re.search(r"\d", sentence)) or len(_words(sentence, language)) >= LEAST_WORDS


@lru_cache(maxsize=512)
def _words(sentence: str, language: str) -> frozenset[str]:
    return frozenset(tokenize(sentence, language))


def _spoken_figures(text: str, language: str) -> frozenset[str]:
    """Return the figures except 1, which is rarely meant as a figure."""
    return figures(text, language) - {"1"}


def _held(sentence: str, source: CitedSource, asked: QuestionContext) -> float:
    """Return the share of a sentence's words in a passage; 0 if the passage is not its source."""
    stated = _spoken_figures(sentence, asked.language)
    if stated - source.figures - asked.figures:
        return 0.0
    share = share_held(sentence, source, asked.language)
    has_figure = bool(stated - asked.figures)
    if share <= (LEAST_HELD_WITH_FIGURE if has_figure else LEAST_HELD) and not (
        has_figure and not _words(sentence, asked.language)
    ):
        return 0.0
    return 0.0 if faults(sentence, [source], asked) else share


def first_of(sentences: list[str]) -> list[str]:
    """Return the sentences to list below an answer: the first few, without repeats, each cut to a line."""
    kept = dict.fromkeys(s if len(s) <= 160 else f"{s[:159]}…" for s in sentences)
    return list(kept)[:MOST_NAMED]
