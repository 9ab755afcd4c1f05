"""Answer questions about the rules on a certain day from the document version valid on this day.

"What was the hotel limit in June 2025?" is answered from the version valid then. "What is the hotel limit from January
on?" is answered from a version which starts before the end of January. The search covers only published versions.
Afterwards each hit is replaced by the matching chunk in the version valid on the day. Chunks in this version which
match no hit are added if they share more words with the question.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from functools import cache
from uuid import UUID

from babel import Locale
from rapidfuzz.fuzz import token_set_ratio

from rag.retrieval.bm25.index import tokenize
from rag.retrieval.hybrid_search import SearchHits
from rag.retrieval.query_understanding import ParsedQuestion
from rag.retrieval.search_query import cached_question_words
from rag.retrieval.searching import search
from rag.retrieval.trace import RetrievalTrace
from rag.storage.database import Database, queries
from rag.storage.pipeline import Pipeline
from rag.text.analysers import words_with_terms
from rag.text.dates import dates_in, years_in
from rag.text.relative_days import write_out_dates
from rag.types import SearchResult, VersionOnDay, Who

#: A question must have at least this many terms, besides the month or year, to be searched.
LEAST_WORDS = 2
#: Lowest similarity in words and headings, 0 … 100, for two passages to be counterparts.
LEAST_ALIKE = 55.0
#: The most passages without a counterpart to add.
MOST_ADDED = 3

#: Wording for the past, by language: a verb in a past tense, or "as of".
_PAST = {
    "en": r"\b(?:was|were|did|had|used to|as of|as at|back (?:in|then)|at (?:that|the) time|previously|formerly)\b",
    "de": r"\b(?:war|waren|wurden?|galt(?:en)?|hatten?|gab|durften?|konnten?|musste[nt]?|bekam(?:en)?|betrug(?:en)?"
    r"|stand(?= \w+ \d{4})|damals|früher)\b",
    "nl": r"\b(?:was|waren|gold(?:en)?|had(?:den)?|kon(?:den)?|mocht(?:en)?|moest(?:en)?|kreeg|kregen|bedroeg|per"
    r"|destijds)\b",
    "fr": r"\b(?:étai(?:t|ent)|avai(?:t|ent)|fallait|pouvai(?:t|ent)|devai(?:t|ent)|valai(?:t|ent)|fut|à l'époque)\b",
    "es": r"\b(?:era|eran|fue|fueron|había|tenían?|podían?|debían?|estaban?|regían?|entonces)\b",
    "it": r"\b(?:era|erano|fu|aveva(?:no)?|poteva(?:no)?|doveva(?:no)?|valeva(?:no)?|spettava(?:no)?|allora)\b",
    "pt": r"\b(?:era|eram|foi|foram|havia|tinham?|podiam?|deviam?|estavam?|vigoravam?|na época)\b",
    "pl": r"\b(?:był[aoy]?|byli|miał[aoy]?|mieli|można było|obowiązywał[aoy]?|wynosił[aoy]?"
    r"|przysługiwał[aoy]?|wtedy)\b",
    "tr": r"\b(?:neydi|kaçtı|vardı|yoktu|idi|miydi|mıydı|\w+(?:iyordu|ıyordu|uyordu|üyordu|[aeiıuü]rdı|[aeiıuü]rdi)|"
    r"\w+(?:dı|di|du|dü|tı|ti|tu|tü))\b",
    "ko": r"[였었았했됐]|당시",
    "ja": r"でした|ました|だった|[っい]た[かの。？?]|当時|時点",
    "zh": r"当时|當時|那时|是多少|是什么|有多少|多少|几天|怎么",
    "ar": r"(?<!\w)(?:كان|كانت|كانوا|كنا|آنذاك)(?!\w)",
}  # fmt: skip
_NUMERIC = re.compile(
    r"\b(?P<y>(?:19|20)\d\d)-(?P<m>\d\d)(?:-(?P<d>\d\d))?\b|\b(?P<d2>\d\d?)[./](?P<m2>\d\d?)[./](?P<y2>(?:19|20)\d\d)\b"
)
_EASTERN = re.compile(
    r"(?P<y>(?:19|20)\d\d)\s*[年년](?:\s*(?P<m>1[0-2]|0?[1-9])\s*[月월](?:\s*(?P<d>3[01]|[12]\d|0?[1-9])\s*[日일])?)?"
)
#: Polish months after "in" ("W czerwcu"): the locative, missing from the locale catalogues.
_IN_POLISH = {
    "styczniu": 1, "lutym": 2, "marcu": 3, "kwietniu": 4, "maju": 5, "czerwcu": 6, "lipcu": 7, "sierpniu": 8,
    "wrześniu": 9, "październiku": 10, "listopadzie": 11, "grudniu": 12,
}  # fmt: skip
#: Regions with different names for months: "Jänner", "setiembre", "حزيران".
_REGIONS = {"en": ("en_GB",), "de": ("de_AT",), "es": ("es_PE",), "fr": ("fr_CA",), "ar": ("ar_SY", "ar_DZ", "ar_MA")}
#: Words joining a day to its sentence, left over after the day is removed.
_JOINT = (
    r"(?:(?<!\w)(?:(?:as|starting) (?:of|from)|as at|back in|before|until|during|since|in|on|of|from|starting|at|vor"
    r"|bis|am|im|ab|zum|vom|im jahr|ab dem|stand|per|vóór|tot|op|vanaf|in het jaar|avant|en|au|le|du|de"
    r"|à partir (?:de|du|d')|dès|antes de|el|del|a partir (?:de|del|da|dal)|desde|prima di|nel|nell'|dal?|a|ai|em|no|do"
    r"|przed|w|na|od|dnia"
    r"|(?:ابتداء[ً]? )?من|في|عام|سنة)\s*)?"
)
_TAIL = (
    r"(?:\s*(?:roku|r\.|年度|[년年]도?))?"
    r"(?:\s*이후에?|부터는?|에는|에서|에|의|[은는]|以降|から[はの]?|には|では|に|の|は|起|以后|的|时"
    r"|(?: ay[ıi])?n?['’]?[dt][ae](?:n itibaren)?\b|\s+onwards?\b)?"
)


@dataclass(frozen=True)
class NamedDay:
    """The day about which a question asks, and the question's text without this day."""

    day: date
    text: str
    #: The day, month or year written in the question.
    named: str = field(default="", compare=False)


def past_day_in(text: str, language: str, today: date) -> NamedDay | None:
    """Return the past day about which a question asks, or `None` if the question is about today's rules.

    A past month or year stands for the last day; the present month or year stands for today. A past tense or "as of" is
    needed: "Carry over days from 2025" names a year, but asks for today's rule.
    """
    language = _supported_language(language)
    text = write_out_dates(text, language, today)
    if not any(re.search(_PAST[code], text, re.IGNORECASE) for code in {language, "en"} & _PAST.keys()):
        return None
    named = dates_in(text, today)
    day, without = named.last if named is not None else None, text
    for pattern in (_NUMERIC, _EASTERN, _months(language), _months("en")):
        if match := pattern.search(text):
            if (last_day := _last_day(match.groupdict(), language)) is None:
                return None
            is_until = named is not None and named.first is None and named.last is not None
            day, without = day if is_until else last_day, _remove_phrase(text, match.group())
            break
    else:
        years = years_in(text, today)
        if len(years) == 1:
            day, without = day or date(years[0], 12, 31), _remove_phrase(text, str(years[0]))
    return NamedDay(day, without) if day is not None and day < today else None


def future_day_in(text: str, language: str, today: date) -> NamedDay | None:
    """Return the future day about which a question asks, or `None` without a future day.

    A month or year stands for the last day. A month without a year is the next month with this name. The caller must
    check whether a version starts by this day, because "days carried over to 2027" names a year too.
    """
    language = _supported_language(language)
    text = write_out_dates(text, language, today)
    for pattern in (_NUMERIC, _EASTERN, _months(language), _months("en")):
        if match := pattern.search(text):
            day = _last_day(match.groupdict(), language)
            if day is None or not _begins_after(day, match, today):
                return None
            return NamedDay(day, _remove_phrase(text, match.group()), match.group())
    if match := _bare_month(language).search(text) or _bare_month("en").search(text):
        day = _next_of_its_name(match.groupdict(), language, today)
        return NamedDay(day, _remove_phrase(text, match["all"]), match["all"]) if day else None
    years = [year for year in years_in(text, today) if year > today.year]
    if len(years) == 1:
        return NamedDay(date(years[0], 12, 31), _remove_phrase(text, str(years[0])), str(years[0]))
    return None


def names_a_day(text: str, language: str) -> bool:
    """Whether a text names a day, or a month with a year."""
    language = _supported_language(language)
    return any(pattern.search(text) for pattern in (_NUMERIC, _EASTERN, _months(language), _months("en")))


def _begins_after(last_day: date, match: re.Match[str], today: date) -> bool:
    parts = match.groupdict()
    if parts.get("d") or parts.get("d2"):
        return last_day > today
    is_month = parts.get("name") or parts.get("m")
    return (last_day.year, last_day.month if is_month else 0) > (today.year, today.month if is_month else 0)


def _next_of_its_name(parts: Mapping[str, str | None], language: str, today: date) -> date | None:
    for year in (today.year, today.year + 1):
        day = _last_day({**parts, "y": str(year)}, language)
        if day is not None and day >= today:
            is_coming = day > today if parts.get("d") else day.replace(day=1) > today
            return day if is_coming else None
    return None


def _supported_language(language: str) -> str:
    code = language.split("-")[0]
    return code if code in _PAST else "en"


@cache
def _bare_month(language: str) -> re.Pattern[str]:
    names = "|".join(sorted((re.escape(n) for n in _month_numbers(language) if len(n) > 2), key=len, reverse=True))
    day = r"(?:(?P<d>3[01]|[12]\d|0?[1-9])(?:st|nd|rd|th|\.|er|º)?\s+(?:of\s+|de\s+)?)?"
    before = (
        r"(?<!\w)(?:in|on|from|as of|starting|ab|im|zum|am|vanaf|op|en|au|à partir de|dès|desde|a partir de|el|nel|da|a"
        r"|em|de|w|od|من|في)\s+(?:(?:dem|le|o|dia|the)\s+)?"
    )
    if language in ("ko", "ja", "zh"):
        month = r"(?<![\d年년])(?P<m>1[0-2]|[1-9])\s*[月월](?:份|\s*(?P<d>3[01]|[12]\d|[1-9])\s*[日일])?"
        return re.compile(rf"(?P<all>{month})(?=\s*(?:부터|에|의|から|に|の|起|的|会|有))")
    if language == "tr":
        return re.compile(rf"(?P<all>{day}(?P<name>{names})(?: ayı)?)(?=n?['’]?[dt][ae])", re.IGNORECASE)
    return re.compile(rf"{before}(?P<all>{day}(?P<name>{names}))(?!\w)(?! (?:19|20)\d\d)", re.IGNORECASE)


@cache
def _months(language: str) -> re.Pattern[str]:
    names = "|".join(sorted(map(re.escape, _month_numbers(language)), key=len, reverse=True))
    return re.compile(
        rf"(?:(?P<d>3[01]|[12]\d|0?[1-9])(?:st|nd|rd|th|\.|er|º)?\s+(?:of\s+|de\s+)?)?(?<!\w)(?P<name>{names})\.?(?!\w)"
        r"(?:\s+(?P<d2>3[01]|[12]\d|0?[1-9])(?:st|nd|rd|th)?,)?\s+(?:de\s+|del\s+)?(?P<y>(?:19|20)\d\d)",
        re.IGNORECASE,
    )


@cache
def _month_numbers(language: str) -> dict[str, int]:
    all_months = [Locale.parse(code).months for code in (*_REGIONS.get(language, ()), language)]
    widths = [(use, width) for use in ("format", "stand-alone") for width in ("wide", "abbreviated")]
    forms = [months[use][width] for months in all_months for use, width in widths]
    names = {name.lower().rstrip("."): number for form in forms for number, name in form.items() if not name.isdigit()}
    return names | (_IN_POLISH if language == "pl" else {})


def _last_day(parts: Mapping[str, str | None], language: str) -> date | None:
    year = int(parts.get("y") or parts.get("y2") or 0)
    month = int(parts.get("m") or parts.get("m2") or 0)
    if name := parts.get("name"):
        numbers = _month_numbers("en") | _month_numbers(language)
        month = numbers[name.lower().rstrip(".")]
    day = int(parts.get("d") or parts.get("d2") or 0)
    try:
        if day:
            return date(year, month, day)
        after = date(year + (month in (0, 12)), month % 12 + 1 if month else 1, 1)
    except ValueError:
        return None
    return date.fromordinal(after.toordinal() - 1)


def _remove_phrase(text: str, phrase: str) -> str:
    remaining = re.sub(_JOINT + re.escape(phrase) + _TAIL, " ", text, count=1, flags=re.IGNORECASE)
    return re.sub(r"\s+(?=[?？؟.,!:]|$)", "", " ".join(remaining.split())).lstrip(",，、: ")


@dataclass(frozen=True)
class VersionPassage:
    """A chunk from a document version which is not published."""

    chunk_id: UUID
    document_id: UUID
    content: str
    section: str
    first_page: int
    last_page: int
    chunk_index: int

    @property
    def words(self) -> str:
        return f"{self.section}\n{self.content}"


def versions_on(database: Database, who: Who, hits: SearchHits, day: date) -> list[VersionOnDay]:
    """Return the version valid on `day` for each found document: the published version or an earlier version."""
    ids = list({result.document_id for result in hits.results})
    if not ids:
        return []

    def read(pipeline: Pipeline) -> list[VersionOnDay]:
        pending = pipeline.execute(queries["versions_on_day"], {"document_ids": ids, "day": day})
        pipeline.finish()
        return pending.read(VersionOnDay)

    return database.read(who, read)


def in_their_versions(
    database: Database, who: Who, hits: SearchHits, versions: Sequence[VersionOnDay], text: str, language: str
) -> SearchHits:
    """Replace each hit by the matching chunk in the document's version valid on the day.

    A hit without a matching chunk was not valid on the day, and is dropped.
    """
    earlier = {version.published_id: version for version in versions if version.document_id != version.published_id}

    def read(pipeline: Pipeline) -> list[VersionPassage]:
        ids = [version.document_id for version in earlier.values()]
        pending = pipeline.execute(queries["passages_of_documents"], {"document_ids": ids})
        pipeline.finish()
        return pending.read(VersionPassage)

    passages: dict[UUID, list[VersionPassage]] = {}
    for passage in database.read(who, read):
        passages.setdefault(passage.document_id, []).append(passage)
    valid_results, used_ids = list[SearchResult](), set[UUID]()
    for result in hits.results:
        version = earlier.get(result.document_id)
        if version is None:
            valid_results.append(result)
            continue
        candidates = [passage for passage in passages.get(version.document_id, []) if passage.chunk_id not in used_ids]
        words = f"{result.section}\n{result.content}"
        alike = [(token_set_ratio(passage.words, words), passage) for passage in candidates]
        likeness, counterpart = max(alike, key=lambda item: item[0], default=(0.0, None))
        if counterpart is not None and likeness >= LEAST_ALIKE:
            used_ids.add(counterpart.chunk_id)
            valid_results.append(_in_place(result, counterpart, version))
    question_terms = {word.terms for word in cached_question_words(text, language, language or "en")}
    shared = max((_count_shared(question_terms, result.content, language) for result in valid_results), default=0)
    added = list[tuple[int, SearchResult]]()
    for version in earlier.values():
        place = next(result for result in hits.results if result.document_id == version.published_id)
        for passage in passages.get(version.document_id, []):
            if (
                passage.chunk_id not in used_ids
                and (count := _count_shared(question_terms, passage.words, language)) > shared
            ):
                added.append((count, _in_place(place, passage, version)))
    added.sort(key=lambda item: -item[0])
    results = [*(result for _, result in added[:MOST_ADDED]), *valid_results]
    languages = dict(hits.languages) | {version.document_id: version.language for version in earlier.values()}
    return replace(hits, results=tuple(results), languages=languages)


def _in_place(result: SearchResult, passage: VersionPassage, version: VersionOnDay) -> SearchResult:
    return replace(
        result,
        chunk_id=passage.chunk_id,
        document_id=passage.document_id,
        title=f"{version.title} (v{version.version})",
        file_name=version.file_name,
        content=passage.content,
        section=passage.section,
        first_page=passage.first_page,
        last_page=passage.last_page,
        chunk_index=passage.chunk_index,
        part_meanings=(),
    )


def _count_shared(question_terms: set[tuple[str, ...]], text: str, language: str) -> int:
    return len(question_terms & {terms for _, terms in words_with_terms(text, language or "en")})


def describe_versions(versions: Sequence[VersionOnDay], cited: Collection[UUID]) -> str:
    """Return a line for the model about each cited document with an earlier version, or "" if all cited versions are
    published.
    """
    return "".join(
        f"The passages of “{version.title} (v{version.version})” were valid on {version.day}, the day asked about.\n"
        for version in versions
        if version.document_id in cited
    )


def of_the_day(
    trace: RetrievalTrace, parsed: ParsedQuestion, hits: SearchHits
) -> tuple[ParsedQuestion, SearchHits, date]:
    """Search again without the day if the question asks about a certain day.

    Returns the question, the hits, and the day; without a day in the question, today.
    """
    named_day = _find_named_day(trace, hits)
    if named_day is None:
        return parsed, hits, trace.today
    parsed = parsed.reword(trace.text, named_day.text)
    trace.text = named_day.text
    trace.details.query.expanded = [*trace.details.query.expanded, named_day.text]
    return parsed, search(trace, parsed), named_day.day


def _find_named_day(trace: RetrievalTrace, hits: SearchHits) -> NamedDay | None:
    """Return the day about which a question asks, or `None`.

    A past or future day counts only if a found document has a version for this day.
    """
    understanding = trace.profile.understanding
    if understanding.filter_by_date or understanding.filter_by_year:
        return None

    def valid_on(day: date) -> set[UUID]:
        return {version.document_id for version in on(day)}

    def on(day: date) -> list[VersionOnDay]:
        return versions_on(trace.database, trace.question.identity, hits, day)

    if named_day := past_day_in(trace.text, trace.language, trace.today):
        return named_day if valid_on(named_day.day) else None
    coming = future_day_in(trace.text, trace.language, trace.today)
    if coming is None or valid_on(coming.day) - valid_on(trace.today):
        return coming
    # A passage naming the month or year is about it. Versions seldom begin on a day within a month.
    is_mentioned = any(coming.named.casefold() in result.content.casefold() for result in hits.results)
    is_period = coming.day.day == 1 or (coming.day + timedelta(days=1)).day == 1
    if is_mentioned or not is_period or len(set(tokenize(coming.text, trace.language))) < LEAST_WORDS:
        return None
    valid = on(coming.day)
    trace.staying = tuple(version for version in valid if version.document_id == version.published_id)
    return replace(coming, day=trace.today) if valid else None


def in_valid_versions(trace: RetrievalTrace, hits: SearchHits, day: date) -> SearchHits:
    """Replace hits by chunks from the document versions valid on `day`, which may be today."""
    who = trace.question.identity
    versions = [
        version
        for version in versions_on(trace.database, who, hits, day)
        if version.document_id != version.published_id
    ]
    if not versions:
        return hits
    with trace.step("versions") as step:
        trace.versions = tuple(versions)
        step.detail = f"as of {day}: " + ", ".join(
            f"{version.title}, version {version.version}" for version in versions
        )
        return in_their_versions(trace.database, who, hits, versions, trace.text, trace.language)
