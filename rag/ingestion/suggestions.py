"""Suggest questions which a document answers, built from headings or written by a model.

A question is kept only if a free keyword search finds an answer in this document in first place. Therefore every
suggestion has an answer.
"""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar
from uuid import UUID

from psycopg.types.json import Jsonb

from rag.errors import RagError
from rag.ingestion.document_jobs import TEMPORARY, DocumentJob, JobControl
from rag.ingestion.document_rows import find_text
from rag.ingestion.question_templates import (
    AROUND_TITLE,
    DEFINITIONS,
    EMPTY,
    GERUNDS,
    LABELLED,
    NEEDS,
    NEEDS_PARENT,
    NO_QUESTION,
    QUESTIONS,
    TEMPLATES,
    WITH_ARTICLE,
    Need,
    nobody_asks,
)
from rag.profiles import DEFAULT
from rag.providers.registry import Providers
from rag.retrieval.bm25.synonyms import translate_expression
from rag.retrieval.retriever import Retriever
from rag.settings import Settings
from rag.storage.database import Database
from rag.text.spans import join_pages
from rag.types import Identity, Page, Question, Role, Section

log = logging.getLogger(__name__)
#: Questions kept per document, and candidates checked; each check is a search of about ten milliseconds.
MOST_QUESTIONS, MOST_CHECKED = 6, 12
#: The same in a reader's language other than the document's: the first reader waits for these searches.
MOST_ELSEWHERE, CHECKED_ELSEWHERE = 2, 3
#: Questions kept with the same form: four times "What are the rules" is dull.
MOST_OF_FORM = 2
#: By rank of general questions: how many factual questions are enough to leave them out.
ENOUGH = {2: 4, 3: 2}
LONGEST_HEADING, MOST_WORDS = 60, 8
Item = TypeVar("Item")
#: Languages without spaces, where a short heading has as much content as a long heading elsewhere.
DENSE = ("ko", "ja", "zh")
LETTER_RUN = r"[^\W\d_]+"
#: Question marks other than "?".
MARKS = {"ja": "？", "zh": "？", "ar": "؟"}
#: Words between a heading and the heading above.
JOINTS = {"ja": "の", "zh": ""}
#: French words before which "de" loses its vowel, including words with a silent h, but not "harcèlement".
ELIDED = re.compile(r"[aeiouyéèêàâîôû]|h(?:eure|oraire|ô|ospit|onor|ygi|abi|umain)", re.IGNORECASE)
#: An article's head, used for questions about a text without sections: "제3조(육아휴직)", "§ 3 Dauer des Urlaubs".
ARTICLE = re.compile(
    r"^[ \t]*(?:제\d+조(?:의\d+)?[ \t]?\([^()\n]{2,60}\)|第[\d一二三四五六七八九十百]+条[ \t　（(][^\n。]{2,40}"
    r"|(?:§[ \t]?|Art(?:icle|ikel|ículo|icolo|igo|\.)?[ \t])\d+[a-z]?\.?[ \t]+[^\n.;]{3,60}$)",
    re.MULTILINE,
)
NUMBERING = re.compile(
    r"^(\d+([.)]\d*)*\.?(?!\d*[^\W\d])|[IVXivx]+\.|[A-Za-z]\)|제\s?\d+\s?[조장절관편](?:의\s?\d+)?|第[\d一二三四五六七八九十百]+[条章节節]|§\s?\d+[a-z]?"
    r"|(?:[Mm]adde|MADDE|[Bb]ölüm|BÖLÜM)\s?\d+\b[.:)]?)\s*"
)


@dataclass(frozen=True)
class CandidateQuestion:
    """A candidate question about a section, and what an answering chunk must contain."""

    text: str
    heading: str = ""
    need: Need = ""
    #: The template; questions from a template differ only in the subject.
    form: str = ""
    #: Lower ranks are better: whether the question asks for a fact, and whether its subject has several words.
    rank: tuple[int, int] = (0, 0)


class SuggestStep:
    """The ingestion step which chooses suggested questions for published documents."""

    def __init__(self, database: Database, settings: Settings) -> None:
        # Without keys: the check must be free and must not depend on today's configuration.
        by_words = Providers(Settings(data_dir=settings.data_dir, builtin_embedder="lexical"), with_meaning=False)
        self._database = database
        self._retriever = Retriever(database, by_words)

    def run(self, job: DocumentJob, pages: Sequence[Page], sections: Sequence[Section]) -> None:
        """Choose suggested questions for a document, and store them. After an error, the document has no suggestions.

        Raises the errors in `TEMPORARY`, after which the job can be run again.
        """
        try:
            questions = self._questions(job, sections, join_pages(pages))
        except TEMPORARY:
            raise
        except Exception:  # a document is fine without suggestions
            log.exception("No questions could be suggested about document %s", job.document.id)
            questions = []
        # Questions in other languages are made on a reader's first visit.
        metadata = Jsonb({"suggested_questions": questions, "suggested_elsewhere": {}})
        self._database.execute(job.document.tenant_id, "note_metadata", **job.key, metadata=metadata, message=None)

    def _questions(self, job: DocumentJob, sections: Sequence[Section], text: str) -> list[str]:
        """Return questions which the document answers: first a model's, then questions built from headings."""
        document = job.document
        language = document.language or job.collection.language
        suggested = [q for q in document.metadata.get("questions") or () if isinstance(q, str) and not nobody_asks(q)]
        candidates = [CandidateQuestion(question) for question in dict.fromkeys(suggested)]
        candidates += candidates_from(document.title, sections, text, language, limit=MOST_CHECKED)
        questions: list[str] = []
        forms: Counter[str] = Counter()
        for candidate in candidates[:MOST_CHECKED]:
            if len(questions) >= ENOUGH.get(candidate.rank[0], MOST_QUESTIONS):
                break
            if candidate.text in questions or (candidate.form and forms[candidate.form] == MOST_OF_FORM):
                continue
            if self._is_answered(job, candidate, language):
                questions.append(candidate.text)
                forms[candidate.form] += 1
        return questions

    def elsewhere(self, tenant_id: str, document_id: UUID, language: str) -> list[str]:
        """Choose questions in a language other than the document's, and store them for later readers.

        Only headings with a known subject, like "Annual leave", are used, because each subject is known in every
        language. Questions are made when a language is first needed. Making them in advance would mean a dozen
        languages for each document.
        """
        job = JobControl(self._database).job(tenant_id, document_id)
        pages, sections = find_text(self._database, tenant_id, document_id)
        document_language = (job.document.language or job.collection.language).split("-")[0]
        questions: list[str] = []
        for candidate in candidates_elsewhere(sections, join_pages(pages), document_language, language)[
            :CHECKED_ELSEWHERE
        ]:
            if len(questions) < MOST_ELSEWHERE and self._is_answered(job, candidate, language):
                questions.append(candidate.text)
        stored = job.document.metadata.get("suggested_elsewhere") or {}
        metadata = Jsonb({"suggested_elsewhere": {**stored, language: questions}})
        self._database.execute(tenant_id, "note_metadata", **job.key, metadata=metadata, message=None)
        return questions

    def _is_answered(self, job: DocumentJob, candidate: CandidateQuestion, language: str) -> bool:
        """Whether a keyword search finds an answer in this document in first place."""
        tenant_id = job.document.tenant_id
        asker = Identity(account_id=UUID(int=0), tenant_id=tenant_id, email="", name="program", role=Role.ADMIN)
        question = Question(text=candidate.text, identity=asker, collection=job.collection, language=language)
        try:
            result = self._retriever.retrieve(question, profile=DEFAULT)
        except RagError:
            return False
        if result.response.evidence != "answered" or not result.cited:
            return False
        best = result.cited[0].result
        if best.document_id != job.document.id or candidate.heading.casefold() not in _fold_passage(
            best.section, best.content
        ):
            return False
        return candidate.need == "" or bool(NEEDS[candidate.need].search(best.content))


def candidates_from(
    title: str, sections: Sequence[Section], text: str, language: str, *, limit: int = MOST_CHECKED
) -> list[CandidateQuestion]:
    """Build questions from a document's headings in the document's language, best first.

    Questions of equal rank are chosen evenly from the whole document. Without sections, the title is used.
    """
    if language not in TEMPLATES:
        return []
    names = _names_in(text)
    by_question: dict[str, CandidateQuestion] = {}
    above: list[tuple[int, str]] = []
    ordered = _in_order(sections, text)
    for place, section in enumerate(ordered):
        end = ordered[place + 1].start if place + 1 < len(ordered) else len(text)
        body = text[section.start : end].replace(section.title, "", 1)
        above = [item for item in above if item[0] < section.level]
        parent = above[-1][1] if above else ""
        above.append((section.level, bare(section.title)))
        candidate = _candidate(section.title, parent, body, title, language, names)
        if candidate is not None:
            earlier = by_question.get(candidate.text.casefold())
            if earlier is None or candidate.rank < earlier.rank:
                by_question[candidate.text.casefold()] = candidate
    if not by_question:
        subject = AROUND_TITLE.sub("", AROUND_TITLE.sub("", AROUND_TITLE.sub("", title.strip()))).strip()
        candidate = _candidate(subject, "", text, "", language, names)
        if candidate is not None and (" " in subject or language in ("ja", "zh") or _is_name(subject, names)):
            by_question[candidate.text] = candidate
    chosen = _choose_evenly([*by_question.values()], limit)
    # Questions about a subject in general come after all others.
    return sorted(varied(chosen, lambda candidate: candidate.form, limit), key=lambda candidate: candidate.rank[0] > 1)


def candidates_elsewhere(
    sections: Sequence[Section], text: str, document_language: str, language: str
) -> list[CandidateQuestion]:
    """Build questions in a different language. Only headings with a subject known in both languages are used."""
    by_question: dict[str, CandidateQuestion] = {}
    ordered = _in_order(sections, text)
    for place, section in enumerate(ordered):
        heading = bare(section.title)
        subject = translate_expression(heading, document_language, language)
        # A German adjective would need its ending: "für unbezahlten Urlaub".
        if not subject or (language == "de" and subject[0].islower()):
            continue
        end = ordered[place + 1].start if place + 1 < len(ordered) else len(text)
        body = text[section.start : end].replace(section.title, "", 1)
        candidate = _candidate(subject, "", body, "", language, frozenset())
        if candidate is not None:
            by_question.setdefault(candidate.text, replace(candidate, heading=heading))
    return varied(sorted(by_question.values(), key=lambda candidate: candidate.rank), lambda c: c.form, MOST_CHECKED)


def _in_order(sections: Sequence[Section], text: str) -> list[Section]:
    if sections:
        return sorted(sections, key=lambda section: section.start)
    return [
        Section(title=" ".join(match[0].split()), level=1, page=1, start=match.start())
        for match in ARTICLE.finditer(text)
    ]


def _candidate(
    heading: str, parent: str, body: str, title: str, language: str, names: frozenset[str]
) -> CandidateQuestion | None:
    heading = bare(heading)
    is_dense = language in DENSE
    subject = heading
    folded_title, folded = title.casefold(), heading.casefold()
    if NO_QUESTION.fullmatch(heading) or nobody_asks(heading):
        return None
    is_question = heading.endswith(("?", "？", "؟"))
    pattern = QUESTIONS.get(language)
    if is_question or (pattern is not None and pattern.fullmatch(heading)):
        words = len(heading.split())
        # Turkish needs a single word for three words elsewhere.
        if not (2 if language == "tr" else 3) <= words <= 14 and not (is_dense and len(heading) <= LONGEST_HEADING):
            return None
        return CandidateQuestion(heading if is_question else f"{heading}{MARKS.get(language, '?')}", heading)
    if language in NEEDS_PARENT and NEEDS_PARENT[language].fullmatch(heading):
        if not parent or EMPTY.fullmatch(parent):
            return None
        subject = f"{parent}{JOINTS.get(language, ' ')}{heading}"
    if not _is_subject(subject, is_dense=is_dense) or (
        folded_title and (folded in folded_title or folded_title in folded)
    ):
        return None
    if _is_name(subject, names):
        return CandidateQuestion(DEFINITIONS[language].format(subject), heading, "", "name", (1, 0))
    if language == "en":
        subject = re.sub(r"\s*\([^)]*\)$", "", subject)
    if language not in ("de", *DENSE, "ar"):
        subject = _lower_heading(subject, names, language)
    for rule in TEMPLATES[language]:
        match = rule.heading.fullmatch(subject)
        if match is None or (rule.need and not NEEDS[rule.need].search(body)):
            continue
        is_role = rule.question.endswith(" do?") and language == "en"
        text = _fill_question(rule.question, heading if is_role else subject, match, language)
        if text is None:
            return None
        is_general = rule.heading.pattern == ".*"
        is_vague = not is_dense and " " not in subject
        has_figures = bool(NEEDS["days"].search(body) or NEEDS["money"].search(body))
        # People ask for amounts and limits first, then for procedures.
        rank = 2 + (not has_figures) if is_general else 0 if rule.need else 1
        return CandidateQuestion(text, heading, rule.need, rule.question, (rank, int(is_vague)))
    return None


def _is_subject(heading: str, *, is_dense: bool) -> bool:
    if not (2 if is_dense else 3) <= len(heading) <= LONGEST_HEADING or EMPTY.fullmatch(heading):
        return False
    if len(heading.split()) > MOST_WORDS or heading.endswith((".", "!", "。")):
        return False
    # Nobody asks about a line cut by an extractor, or about a list.
    if re.search(r"[|/;:<>{}\[\]…�]|\d{3,}(?![\d년])", heading) or heading.count("(") != heading.count(")"):
        return False
    return len(re.findall(r"[^\W\d_]", heading)) >= len(heading.replace(" ", "")) * 0.7


def _fill_question(question: str, heading: str, match: re.Match[str], language: str) -> str | None:
    """Insert a heading into a question, with the right grammatical article or ending; `None` if unknown."""
    parts = match.groupdict(default="")
    rest = parts.get("rest", "").strip()
    if language == "en":
        heading = heading.replace(" & ", " and ")
        if WITH_ARTICLE.fullmatch(heading) and "the {0}" not in question:
            heading = f"the {heading}"
    text = question.format(
        heading,
        rest=rest,
        base=GERUNDS.get(parts.get("gerund", "").casefold(), ""),
        a="an" if heading[:1].casefold() in "aeiou" else "a",
        de="d’" if ELIDED.match(heading) else "de ",
        Cap=capitalised(heading, language),
        Rest=capitalised(rest, language),
    )
    if "은/는" in text:
        before = text[text.index("은/는") - 1]
        if not "가" <= before <= "힣":
            return None
        text = text.replace("은/는", "은" if (ord(before) - 0xAC00) % 28 else "는")
    return text


def _fold_passage(section: str, content: str) -> str:
    return f"{' '.join(section.split())} {' '.join(content.split())}".casefold()


def _choose_evenly(candidates: Sequence[CandidateQuestion], limit: int) -> list[CandidateQuestion]:
    """Choose up to `limit` candidates by rank. If a rank has too many, choose candidates evenly spread over the
    document.
    """
    chosen: list[CandidateQuestion] = []
    for rank in sorted({candidate.rank for candidate in candidates}):
        alike = [candidate for candidate in candidates if candidate.rank == rank]
        number = min(limit - len(chosen), len(alike))
        chosen += [alike[index * len(alike) // number] for index in range(number)]
    return chosen


def bare(heading: str) -> str:
    """Remove the number from a heading. For "제3조(육아휴직)", return the title in brackets."""
    bare_text = LABELLED.sub("", NUMBERING.sub("", " ".join(heading.split()))).strip(" .:–—-#*")
    match = re.fullmatch(r"[(（](.+)[)）]", bare_text)
    return match[1] if match else bare_text


def _names_in(text: str) -> frozenset[str]:
    sample = text[:200_000]
    capitals = Counter(re.findall(r"(?<=[a-zà-ÿ,] )[A-ZÀ-Þ][^\W\d_]+", sample))
    small = Counter(re.findall(r"\b[a-zà-ÿ][^\W\d_]+", sample))
    return frozenset(word.casefold() for word, count in capitals.items() if count > small[word.casefold()])


def _is_name(heading: str, names: frozenset[str]) -> bool:
    if re.fullmatch(r"[A-Z][a-z]+[A-Z]\w*", heading):
        return True
    words = heading.split()
    return 2 <= len(words) <= 3 and all(word.istitle() and word.casefold() in names for word in words)


def _lower_heading(heading: str, names: frozenset[str], language: str) -> str:
    """Convert a heading to lower case for use inside a sentence, except names and abbreviations."""
    words = [word for word in re.findall(LETTER_RUN, heading) if len(word) > 3]
    if heading.isupper() and len(words) > 1:
        return small(heading, language)
    is_titled = " " in heading and all(word[:1].isupper() for word in words)
    first = re.match(LETTER_RUN, heading)
    if first is None or first[0].casefold() in names or not (first[0].istitle() or first[0].islower()):
        return heading
    if is_titled:
        return re.sub(LETTER_RUN, lambda match: small(match[0], language) if match[0].istitle() else match[0], heading)
    return small(heading[:1], language) + heading[1:]


def small(text: str, language: str) -> str:
    """Convert to lower case. In Turkish, I becomes ı and İ becomes i."""
    return (text.replace("İ", "i").replace("I", "ı") if language == "tr" else text).lower()


def capitalised(text: str, language: str) -> str:
    """Convert the first letter to upper case."""
    first = "İ" if language == "tr" and text[:1] == "i" else text[:1].upper()
    return first + text[1:]


def varied(items: Iterable[Item], form: Callable[[Item], str], limit: int) -> list[Item]:
    """Choose up to `limit` items in order, preferring the question forms which were chosen least often before.

    `form` returns an item's question form, for example the first words.
    """
    rest = list(dict.fromkeys(items))
    chosen: list[Item] = []
    counts: Counter[str] = Counter()
    while rest and len(chosen) < limit:
        best = min(range(len(rest)), key=lambda place: (counts[form(rest[place])], place))
        counts[form(rest[best])] += 1
        chosen.append(rest.pop(best))
    return chosen


def form_of(question: str) -> str:
    """Return a question's form, without the subject: the first words or, in scripts without spaces, the end.

    If a colon separates the subject from the question, returns the text after the colon.
    """
    subject, colon, rest = question.partition(": ")
    if colon and subject.strip():
        return rest.casefold()
    words = question.split()
    return " ".join(words[:3]).casefold() if len(words) > 3 and question[:1].isascii() else question[-7:]
