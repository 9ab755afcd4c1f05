"""Write quotations: sentences with their necessary context, document and section."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import combinations, pairwise, starmap
from uuid import UUID

from rag.answering.applicability import Naming
from rag.answering.groundedness import is_negated
from rag.answering.reply_odds import ReplySignals
from rag.answering.sentences import POINTS_BACK, Kind, ends
from rag.language import LANGUAGES
from rag.retrieval.deduplication import tokens
from rag.retrieval.known_by import folder_shown
from rag.text.spans import PATH_SEPARATOR
from rag.types import Citation

LONGEST_SENTENCE = 420
#: The most items quoted from a list.
LONGEST_LIST = 8
#: For a question how to do something: the most steps quoted from a list, and the most characters in these steps.
MOST_STEPS, LONGEST_STEPS = 10, 1200
#: Lowest share of common terms for two sentences with the same content.
SAME = 0.7
#: The most words in which two documents' copies of a sentence may differ, for example a name.
MOST_FILLED_IN = 6
#: Small words inside names: "head of sales", "board of directors".
WITHIN_NAMES = re.compile(
    r".|of|and|the|for|von|und|der|die|das|des|für|van|en|het|voor|de|du|la|le|les|et|pour|del|los|para|di|della|per|da|do"
    r"|dos|dla"
)
#: The most words in a negation: "may not", "ne … pas".
MOST_OF_DENIAL = 2
#: Words which limit the previous sentence, at the start of a sentence or anywhere inside.
EXCEPTION = re.compile(
    r"^(?:however|but|except|exceptions?|though|this does not|maar|behalve|dit geldt niet|uitzondering|jedoch"
    r"|allerdings|aber|ausgenommen|ausnahmen?|dies gilt nicht|das gilt nicht|sauf|toutefois|cependant|mais|excepto"
    r"|salvo|pero|ma|tranne|mas|porém|exceto|ale|jednak)\b"
    r"|\b(?:unless|except(?:ion)? (?:for|if|when|where|that|to)|does not apply|only if|tenzij|echter|uitgezonderd"
    r"|es sei denn|jedoch|mit ausnahme|außer wenn|à moins|sauf si|sin embargo|a menos que|salvo que|tuttavia"
    r"|a meno che|salvo che|no entanto|a não ser|chyba że|z wyjątkiem)\b"
    r"|^(?:다만|단,|단\s|그러나|하지만|ただし|但し|ただ、|但是?|除外|然而|إلا|باستثناء|غير أن|ومع ذلك|لكن)"
    r"|제외하고|除非|を除き|ما لم",
    re.IGNORECASE,
)


#: Words which open a list without a colon: "in one of the following cases."
OPENS_LIST = re.compile(
    r"\b(?:the following|volgende|folgende[nrs]?|suivante?s?|siguientes?|seguenti|seguintes|następując\w+|aşağıdaki)\b"
    r"|다음 각 ?[호목]|다음의|次の(?:各号|いずれか|とおり)|下列|以下|التالية",
    re.IGNORECASE,
)

STEP_NUMBER = re.compile(r"\(?\d{1,2}[.)]")
#: Markdown's line break, set before each step in a procedure.
LINE_BREAK = "  \n"
#: The end of an item or line after which the list's sentence goes on.
CONTINUES = re.compile(r"(?:[…;；,，、]|\b(?:and|or|en|of|und|oder|sowie|et|ou|y|o|e|oraz|lub|ve|veya))$")


@dataclass(frozen=True)
class Quotes:
    """An extractive answer: the text, with citations `[n]` for the passages in the context, and the cited numbers."""

    text: str
    numbers: tuple[int, ...]
    #: Whether the quotations contain the requested kind of fact, for example an amount or a time.
    is_of_type: bool = True
    #: Whether the first quotation's passage contains the question's subject: "parking".
    is_about: bool = True
    #: Set if the best sentence only refers to a section ("see section 5.2"): passage number and section number.
    points_to: tuple[int, str] | None = None
    #: Signals measured on the first quotation.
    signals: ReplySignals | None = None
    #: The passage number and the text of the best sentence.
    best: tuple[int, str] = (0, "")
    #: Terms in the best sentence and in the heading above.
    terms: frozenset[str] = frozenset()
    #: Whether the first quotation is from a document for the asker's place while other places have different rules.
    is_own_place: bool = False
    #: Numbers of unquoted passages in further documents which give different figures for the same question.
    also: tuple[int, ...] = ()

    #: Whether the question has several parts.
    has_parts: bool = False
    #: Whether sentences in two documents are alike except for a figure, a name or a negation.
    is_disagreed: bool = False

    @property
    def closest(self) -> Quotes:
        """Return only the quotations from the first passage, because further quotations are seldom right.

        All quotations are kept if the question has several parts, documents disagree, the user's country or site has a
        different rule, or passage and question have different languages.
        """
        keeps_all = self.has_parts or self.is_own_place or self.is_disagreed
        if keeps_all or self.signals is None or self.signals.is_across:
            return self
        first = self.numbers[0]
        lines = [line for line in self.text.split("\n\n") if line.endswith(f"[{first}]")]
        return replace(self, text="\n\n".join(lines), numbers=(first,))

    @property
    def answers(self) -> bool:
        """Whether the quotations answer the question, and are not merely the closest passages."""
        return self.is_of_type and self.is_about


@dataclass(frozen=True)
class CandidateSentence:
    text: str
    kind: Kind
    terms: frozenset[str]
    #: The passage's place in the list, and the sentence's place in the passage.
    passage: int
    position: int
    #: Terms in the document's title, the section and the heading above; and terms in the title alone.
    heading: frozenset[str]
    title: frozenset[str]
    #: The numbers in the sentence, without the question's numbers.
    figures: frozenset[str]
    #: Score factor; less than 1 for a fragment.
    value: float
    #: Whether the sentence contains the requested kind of fact; true if the question asks for no kind.
    is_of_type: bool = True
    #: Terms in the nearest heading above.
    under: frozenset[str] = frozenset()
    #: The paragraph's number in the passage.
    block: int = 0
    #: The heading to prepend when comparing by meaning; "" if the passage is in the question's language.
    headed: str = ""
    #: Folder terms, also contained in `title`.
    folder: frozenset[str] = frozenset()
    #: Whether the heading above contains the requested kind of fact: "Technical interview — 2 hours".
    is_headed: bool = False
    #: The number in a list of steps, or 0.
    step: int = 0
    #: Whether the sentence's limit, "from the fifth year", is reached by the question; `None` without a limit.
    is_reached: bool | None = None
    #: Whether the sentence names the question's letter or number, a different one, several, or no mark.
    mark: Naming = "none"

    @property
    def compared(self) -> str:
        return f"{self.headed}: {self.text}" if self.headed else self.text


@dataclass(frozen=True)
class Selected:
    """The sentences chosen for quotation, best first."""

    chosen: Sequence[CandidateSentence]
    #: The sentences around the first; with them, the first is set in bold.
    around: Collection[CandidateSentence] = ()
    #: Those around the first which are set in bold as well.
    complements: Collection[CandidateSentence] = ()
    #: Passages for the asker's place, quoted before others.
    place_passages: Collection[int] = ()
    #: Whether quoting a step also quotes the other steps in the list.
    with_steps: bool = False


def write_quotations(
    selected: Selected,
    scores: Mapping[CandidateSentence, float],
    everything: Sequence[CandidateSentence],
    citations: Sequence[Citation],
    question_terms: frozenset[str],
    days: Mapping[UUID, str],
) -> Quotes:
    """Write the quotations. Passages are sorted by their best sentence; in each passage, the best group comes first.

    `days` are the documents' dates (ISO 8601). If documents disagree, the newer comes first, and both dates are given.
    """
    chosen, around, place_passages = selected.chosen, selected.around, selected.place_passages
    by_place = {(c.passage, c.position): c for c in everything}
    passages = list(dict.fromkeys(candidate.passage for candidate in chosen))
    pairs = _of_other_documents(chosen, citations)
    is_disagreed = any(starmap(says_otherwise, pairs))
    is_dated = is_disagreed or any(starmap(_have_other_figures, pairs))
    if is_dated:
        passages.sort(key=lambda place: days.get(citations[place].document_id, ""), reverse=True)
    if place_passages:
        passages.sort(key=lambda place: place not in place_passages)
    is_named = (
        bool(place_passages)
        or len({citations[place].document_id for place in passages}) > 1
        or _has_sibling(chosen, everything, citations, question_terms)
        or any(c.folder & question_terms for c in chosen)
    )
    distinctions = _distinguish_documents([citations[place] for place in passages], days)
    lines: list[tuple[str, str]] = []
    for passage in passages:
        places = {c.position for c in (*chosen, *around) if c.passage == passage}
        surrounding = {c.position for c in around if c.passage == passage}
        for place in sorted(places) if selected.with_steps else ():
            places.update(_steps_around(by_place, passage, place))
        for place in sorted(places):
            # "… as follows:" is incomplete without the following lines.
            if by_place[passage, place].text.endswith(":"):
                places.update(_items_after(by_place, passage, place))
            # "… are not covered. These include:"
            following = by_place.get((passage, place + 1))
            if following is not None and following.text.endswith(":") and POINTS_BACK.match(following.text):
                places.update([following.position, *_items_after(by_place, passage, following.position)])
            places.update(_opening_of(by_place, passage, place))
            places.update(_exceptions_around(by_place, passage, place))
        runs: list[list[str]] = []
        best_of_runs: list[float] = []
        firsts: list[int] = []
        previous = -2
        for place in sorted(places):
            this = by_place[passage, place]
            # A later list item stays with the line opening the list.
            between = (by_place.get((passage, skipped)) for skipped in range(previous + 1, place))
            is_of_list = (
                this.kind == "item"
                and bool(runs)
                and any(text.endswith(":") or OPENS_LIST.search(text) for text in runs[-1])
                and all(skipped is not None and skipped.kind == "item" for skipped in between)
            )
            if is_of_list and place != previous + 1:
                runs[-1].append("…")
            # A row is a separate line.
            elif place != previous + 1 or this.kind == "row":
                runs.append([])
                best_of_runs.append(0.0)
                firsts.append(place)
            is_marked = (
                (this == chosen[0] or this in selected.complements) and bool(surrounding) and "*" not in this.text
            )
            runs[-1].append(f"**{this.text}**" if is_marked else this.text)
            best_of_runs[-1] = max(best_of_runs[-1], scores.get(this, 0.0) if this in chosen else 0.0)
            previous = place
        ordered = sorted(range(len(runs)), key=lambda number: -best_of_runs[number])
        number = citations[passage].number
        day = distinctions[citations[passage].document_id] if is_dated else ""
        has_rows = any(by_place[passage, place].kind in ("row", "column") for place in places)
        for run in ordered:
            # Often only the heading above a table names the subject of its rows.
            heading = _heading_above(by_place, passage, firsts[run]) or _last_heading(citations[passage])
            is_headed = has_rows or any(by_place[passage, place].is_headed for place in places)
            source = _source(citations[passage], heading, day) if is_named else heading if is_headed else ""
            lines.append((source, f"“{_join(runs[run])}” [{number}]"))
    # Consecutive quotations from the same source name the source only before the first.
    named = [
        f"{source}: {text}" if source and source != before else text
        for (before, _), (source, text) in pairwise([("", ""), *lines])
    ]
    numbers = tuple(citations[place].number for place in passages)
    return Quotes("\n\n".join(named), numbers, is_disagreed=is_disagreed)


def _of_other_documents(
    chosen: Sequence[CandidateSentence], citations: Sequence[Citation]
) -> list[tuple[CandidateSentence, CandidateSentence]]:
    documents = [citation.document_id for citation in citations]
    return [
        (first, other)
        for first, other in combinations(chosen, 2)
        if documents[first.passage] != documents[other.passage]
    ]


def _have_other_figures(sentence: CandidateSentence, other: CandidateSentence) -> bool:
    is_other = bool(sentence.figures) and bool(other.figures) and sentence.figures != other.figures
    return is_other and _share_words(sentence, other)


def say_the_same(sentence: CandidateSentence, other: CandidateSentence) -> bool:
    """Whether two sentences share most terms, and `sentence` adds no number, no different name and no negation."""
    if sentence == other:
        return True
    if sentence.figures - other.figures or says_otherwise(sentence, other):
        return False
    return len(sentence.terms & other.terms) > SAME * max(1, min(len(sentence.terms), len(other.terms)))


def says_otherwise(sentence: CandidateSentence, other: CandidateSentence) -> bool:
    """Whether two sentences contradict each other: they differ only in a name, number or few words, or in "not".

    "HR is Ann" and "HR is Bob" contradict each other. Sentences which differ in two places have different subjects:
    "Interns get 8 days" and "Managers get 18 days".
    """
    words, other_words = tokens(sentence.text), tokens(other.text)
    matched = SequenceMatcher(None, words, other_words, autojunk=False).get_matching_blocks()
    # Ignore single small words and characters shared by two names, for example "部" in "人事部" and "部门经理".
    same = [
        block for block in matched if block.size > 1 or (block.size and WITHIN_NAMES.fullmatch(words[block.a]) is None)
    ]
    both = sum(block.size for block in same)
    filled_in = len(words) - both, len(other_words) - both
    if not 0 < max(filled_in) <= min(MOST_FILLED_IN, both - 1):
        return False
    begins = bool(same) and same[0].a == same[0].b == 0
    closes = bool(same) and same[-1].a + same[-1].size == len(words) and same[-1].b + same[-1].size == len(other_words)
    if min(filled_in) and len(same) + 1 - begins - closes == 1:
        return True
    return max(filled_in) <= MOST_OF_DENIAL and any(
        is_negated(sentence.text, language) != is_negated(other.text, language) for language in LANGUAGES
    )


def _distinguish_documents(citations: Sequence[Citation], days: Mapping[UUID, str]) -> dict[UUID, str]:
    """Return a text for each document which distinguishes documents with the same title.

    The text is the document's date. If title, folder and date are all the same, the text is the file name.
    """
    descriptions = {(c.document_id, c.title, c.folder, days.get(c.document_id, "")) for c in citations}
    shared = Counter((title, folder, day) for _, title, folder, day in descriptions)
    return {
        c.document_id: day if shared[c.title, c.folder, day] < 2 else c.file_name
        for c in citations
        for day in [days.get(c.document_id, "")]
    }


def _share_words(sentence: CandidateSentence, other: CandidateSentence) -> bool:
    words = [frozenset(t for t in c.terms if not any(map(str.isdigit, t))) for c in (sentence, other)]
    return len(words[0] & words[1]) > SAME * max(1, min(map(len, words)))


def _has_sibling(
    chosen: Sequence[CandidateSentence],
    everything: Sequence[CandidateSentence],
    citations: Sequence[Citation],
    question_terms: frozenset[str],
) -> bool:
    """Whether to name the quoted documents, because a document with a similar title was found too.

    An example is "Leave in Leeds" next to "Leave in Utrecht". False if the question names the quoted document.
    """
    titles = {citations[c.passage].document_id: c.title for c in everything}
    quoted = {citations[c.passage].document_id for c in chosen}
    return any(
        bool(titles[quoted_id] & titles[other_id])
        and bool(titles[quoted_id] - titles[other_id])
        and not titles[quoted_id] - titles[other_id] <= question_terms
        for quoted_id in quoted
        for other_id in titles.keys() - quoted
    )


def _heading_above(by_place: Mapping[tuple[int, int], CandidateSentence], passage: int, place: int) -> str:
    above = (by_place[passage, before] for before in range(place - 1, -1, -1) if (passage, before) in by_place)
    return next((bare for c in above if c.kind == "heading" and (bare := bare_heading(c.text))), "")


def bare_heading(heading: str) -> str:
    """Return a heading without Markdown marks; "" for a line of page data, for example "Human resources | 1 May |
    News".
    """
    return "" if heading.count(" | ") > 1 else heading.lstrip("#").strip()


def _source(citation: Citation, heading: str, day: str) -> str:
    qualifier = ", ".join(filter(None, (folder_shown(citation.title, citation.folder), day)))
    title = f"{citation.title} ({qualifier})" if qualifier else citation.title
    # A page's heading is often contained in its title: "Leave : Notices".
    heading = "" if heading.casefold() in citation.title.casefold() else heading
    return PATH_SEPARATOR.join(dict.fromkeys(filter(None, (title, heading))))


def _last_heading(citation: Citation) -> str:
    return bare_heading(citation.section.rpartition(PATH_SEPARATOR)[2])


def _exceptions_around(by_place: dict[tuple[int, int], CandidateSentence], passage: int, place: int) -> list[int]:
    """Return the positions where exceptions directly follow a sentence.

    If the sentence is an exception, the preceding rule's position is included.
    """
    positions: list[int] = []
    following = by_place.get((passage, place + 1))
    while following is not None and following.kind in ("sentence", "item") and EXCEPTION.search(following.text):
        if len(positions) == 2 or len(following.text) > LONGEST_SENTENCE:
            break
        positions.append(following.position)
        following = by_place.get((passage, following.position + 1))
    before = by_place.get((passage, place - 1))
    this = by_place[passage, place]
    if before is not None and before.kind == "sentence" and this.kind == "sentence":
        opening = EXCEPTION.match(this.text)
        if opening is not None and len(before.text) <= LONGEST_SENTENCE:
            positions.append(before.position)
    return positions


def _opening_of(by_place: dict[tuple[int, int], CandidateSentence], passage: int, place: int) -> list[int]:
    """Return the positions of the lines which introduce the list to which an item belongs.

    Without the introduction "Not covered:", the item "travel expenses" would be misunderstood.
    """
    if by_place[passage, place].kind != "item":
        return []
    first = place - 1
    while (before := by_place.get((passage, first))) is not None and before.kind == "item" and before.text[-1:] != ":":
        first -= 1
    opening = by_place.get((passage, first))
    if opening is None or len(opening.text) > LONGEST_SENTENCE:
        return []
    if not opening.text.endswith(":") and not OPENS_LIST.search(opening.text):
        return []
    before = by_place.get((passage, first - 1))
    if before is None or before.kind != "sentence" or not POINTS_BACK.match(opening.text):
        return [first]
    return [first - 1, first]


def _items_after(by_place: dict[tuple[int, int], CandidateSentence], passage: int, place: int) -> list[int]:
    """Return the positions of the list items after an introducing line, up to a maximum total length."""
    items: list[int] = []
    remaining = LONGEST_SENTENCE
    following = by_place.get((passage, place + 1))
    while following is not None and len(items) < LONGEST_LIST and remaining > 0:
        if items and ends(following.text) != ends(last := by_place[passage, items[-1]].text):
            # "a permit, or" goes on to the item which ends the list's sentence.
            if following.kind == "item" and CONTINUES.search(last):
                items.append(following.position)
            break
        items.append(following.position)
        remaining -= len(following.text)
        following = by_place.get((passage, following.position + 1))
    return items


def _steps_around(by_place: dict[tuple[int, int], CandidateSentence], passage: int, place: int) -> list[int]:
    """Return the positions of all steps in the list around a step; [] if the steps are too many or too long."""
    steps = [place]
    if not by_place[passage, place].step:
        return []
    while (before := by_place.get((passage, steps[0] - 1))) is not None and before.step:
        steps.insert(0, before.position)
    while (following := by_place.get((passage, steps[-1] + 1))) is not None and following.step:
        steps.append(following.position)
    count = len({by_place[passage, step].step for step in steps})
    characters = sum(len(by_place[passage, step].text) for step in steps)
    return steps if count <= MOST_STEPS and characters <= LONGEST_STEPS else []


def _join(run: Sequence[str]) -> str:
    text = run[0]
    for part in run[1:]:
        if STEP_NUMBER.fullmatch(part):
            text += LINE_BREAK + part
        else:
            text += (" " if ends(text) or CONTINUES.search(text) or part == "…" else "; ") + part
    return text.replace(".** **", ". ")
