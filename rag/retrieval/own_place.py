"""Find the documents for the user's city or country: people in the group "Utrecht" get the leave policy for Utrecht.

A group's name contains a place if documents mention the name in title, file name, folder, tags, collection or opening
lines. Words for offices, departments and roles are ignored: "Büro Berlin" gives Berlin, "HR" gives no place. Countries
are recognised in all product languages.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Collection, Iterable, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from uuid import UUID

from rag.language import LANGUAGES
from rag.retrieval.countries import (
    AMBIGUOUS,
    CODE,
    OTHER_NAMES,
    UNSPACED,
    countries,
    countries_in,
    country_codes,
    is_name_in,
    plain,
    territories,
)
from rag.retrieval.evidence import ScoredHit, best_of, outcome_of
from rag.retrieval.hybrid_search import SearchHits
from rag.retrieval.known_by import country_names, of_countries
from rag.retrieval.meaning import named_languages
from rag.retrieval.names import NO_NAMES
from rag.retrieval.query_understanding import ParsedQuestion
from rag.retrieval.searching import search_too
from rag.retrieval.trace import RetrievalTrace
from rag.storage.database import queries
from rag.storage.pipeline import Pipeline

#: A passage for the asker's place comes first if its probability is at least this share of the best.
LEAST_OF_BEST = 0.5
#: Fewest letters in a place's name, and fewest characters in a script without spaces.
LEAST_LETTERS, LEAST_UNSPACED = 3, 2
#: Separators in a group's name: "Sales – Germany", "Leeds (Night shift)".
_PARTS = re.compile(r"[,;:/|()\[\]–—·]|\s-\s|_")
_WORDS = {
    kind: frozenset(" ".join(by_language.values()).split())
    for kind, by_language in tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8")).items()
}
#: Words for sites and organisations; and for departments and roles.
_SITES, _FUNCTIONS = _WORDS["sites"], _WORDS["functions"]
#: Endings for sites and departments in scripts without spaces.
_UNSPACED_ENDS = re.compile(
    r"(?:사무소|사업장|사무실|스튜디오|오피스|지사|지점|본사|공장|센터|부서|그룹|팀"
    r"|事務所|営業所|事業所|オフィス|スタジオ|支社|支店|本社|工場|グループ|チーム|部門"
    r"|办事处|办公室|分公司|总部|总公司|工厂|团队|部门|小组)$"
)
#: The last character in a department's name in Chinese, Japanese or Korean.
_DEPARTMENTS = ("부", "과", "部", "課", "组")
#: Candidates for names in a question: a capitalised word within a sentence; in German only after "in" or "bei"; the
#: word before a Korean or Japanese ending for places.
_PLACED = re.compile(r"\b(?:in|en|em|à|au|w|we)\s(?:the\s|la\s|el\s|o\s|a\s)?([A-ZÀ-Þ][\w-]+)")
_NAMED = re.compile(r"(?<=[\w,;] )[A-ZÀ-Þ][\w-]+")
_NAMED_IN_GERMAN = re.compile(r"\b(?:in|bei|für|aus|nach|Standort|Büro|Werk)\s([A-ZÀ-Þ][\w-]+)")
_NAMED_UNSPACED = re.compile(
    r"(\w{2,12}?)(?: ?(?:지사|지점|공장|사무소))?(?:에서는|에서|에는)|(\w{2,12}?)(?:では|での|で)"
)


@dataclass(frozen=True)
class PlaceFacts:
    """A document's parts which may name a place: title, file name, folders, tags, collection, groups, opening lines."""

    document_id: UUID
    title: str
    file_name: str
    folder: str
    upload_folder: str
    tags: list[str]
    collection: str
    groups: list[str]
    #: The start of the document's first chunk.
    opening: str

    @property
    def label(self) -> str:
        """The title, file name, folders, tags, collection and groups as text."""
        return "\n".join((self.title, self.file_name, self.filed))

    @property
    def filed(self) -> str:
        """The label without title and file name."""
        return "\n".join((self.folder, self.upload_folder, *self.tags, self.collection, *self.groups))


@lru_cache(maxsize=1_000)
def places_of(group: str) -> tuple[str, ...]:
    """Return the cities or countries in a group's name, in all spellings; empty for "HR"."""
    spellings: list[str] = []
    for part in _PARTS.split(unicodedata.normalize("NFKC", group)):
        runs: list[list[str]] = [[]]
        for word in re.split(r"[\s-]+", part):
            bare = _bare(word)
            code = word if word.isupper() and word.casefold() not in _FUNCTIONS else ""
            if code in countries() and code not in AMBIGUOUS:
                spellings += countries()[code]
                runs.append([])
            elif bare:
                runs[-1].append(bare)
            else:
                runs.append([])
        spellings += [" ".join(words) for words in runs if words]
    names = [name for name in map(plain, spellings) if _is_long_enough(name) or name in country_codes()]
    codes = dict.fromkeys(code for name in names for part in _runs(name.split()) if (code := country_codes().get(part)))
    return tuple(dict.fromkeys([*names, *(plain(name) for code in codes for name in countries()[code] if name)]))


def is_of_place(names: Iterable[str], text: str) -> bool:
    """Whether a text contains any of these city or country names, or the country's code ("NL")."""
    padded = f" {plain(text)} "
    if any(is_name_in(name, padded) for name in names):
        return True
    codes = {code for name in names if (code := country_codes().get(name))} - AMBIGUOUS
    # Skip lines in capitals, where every two-letter word looks like a code.
    lines = (line for line in text.splitlines() if not line.isupper() or len(line) == len("NL"))
    return any(code in codes for line in lines for code in CODE.findall(line.replace("_", " ")))


def documents_of(names: Sequence[str], facts: Iterable[PlaceFacts], answering: Collection[UUID]) -> frozenset[UUID]:
    """Return the ids of the documents which name a city or country. Empty if all documents do.

    `names` has the place's spellings. Opening lines count only if no document in `answering` has the name in the label,
    because a handbook often begins by listing all offices.
    """
    candidates = list(facts)
    labelled = {item.document_id for item in candidates if is_of_place(names, item.label)}
    opened = {item.document_id for item in candidates if is_of_place(names, item.opening)}
    selected = labelled if labelled.intersection(answering) else labelled | opened
    return frozenset(selected) if len(selected) < len(candidates) else frozenset()


@dataclass(frozen=True, kw_only=True)
class PlaceDocuments:
    """The user's place: names, documents found, passages found in these documents, and all other documents."""

    names: Sequence[str]
    documents: Sequence[PlaceFacts]
    passages: Sequence[str]
    other_documents: Sequence[PlaceFacts]


def names_a_place(question: str, language: str, place: PlaceDocuments, *, groups: Sequence[str]) -> bool:
    """Whether a question names the user's city or country, or a place which the user's documents do not mention.

    `groups` are all group names in the tenant.
    """
    documents, other_documents = place.documents, place.other_documents
    placed = _PLACED.findall(question) if language != "de" else []
    if any(not NO_NAMES.fullmatch(name) for name in placed):
        return True
    if is_of_place(place.names, question) or named_languages(question) or _names_a_country(question, language):
        return True
    place_text = f" {plain(' '.join([*place.passages, *(f'{item.label} {item.opening}' for item in documents)]))} "
    capitals = (_NAMED_IN_GERMAN if language == "de" else _NAMED).findall(question)
    if any(_is_foreign(name, place_text) for name in capitals if not (name.isupper() and len(name) <= 4)):
        return True
    padded_question = f" {plain(question)} "
    of_groups = {name for group in groups for name in places_of(group)}
    if any(
        is_name_in(name, padded_question)
        for name in (of_groups | _distinguishing_words(documents, other_documents))
        if _is_foreign(name, place_text)
    ):
        return True
    attached = [first or second for first, second in _NAMED_UNSPACED.findall(question)]
    about = plain(" ".join(f"{item.label} {item.opening}" for item in other_documents))
    return any(name in about and name not in place_text for name in attached)


def put_place_first(
    cited: Sequence[ScoredHit], speaking: Sequence[ScoredHit], document_ids: Collection[UUID], places: int
) -> list[ScoredHit]:
    """Move hits for the user's city or country to the front if they may answer, and return all hits.

    `document_ids` are the place's documents. If their hits fill less than half the `places` ranks, further hits from
    `speaking` are added, and the last hits are dropped.
    """
    best = best_of(speaking)
    first = [item for item in cited if _may_come_first(item, document_ids, best)]
    cited_ids = {item.result.chunk_id for item in cited}
    further = [i for i in speaking if i.result.chunk_id not in cited_ids and _may_come_first(i, document_ids, best)]
    first += further[: max(0, max(1, places // 2) - len(first))]
    chosen = {item.result.chunk_id for item in first}
    return [*first, *(item for item in cited if item.result.chunk_id not in chosen)][: max(places, len(cited))]


def _may_come_first(item: ScoredHit, document_ids: Collection[UUID], best: float) -> bool:
    is_own = item.result.document_id in document_ids
    return is_own and item.probability >= LEAST_OF_BEST * best and outcome_of(item.probability) != "none"


def _distinguishing_words(documents: Sequence[PlaceFacts], other_documents: Sequence[PlaceFacts]) -> set[str]:
    """Return the words in which similar titles differ, like "leeds" in "Leave in Leeds" next to "Leave in York"."""
    titles = [set(plain(item.title).split()) for item in documents]
    words = set[str]()
    for other in (set(plain(item.title).split()) for item in other_documents):
        words |= {word for title in titles if title & other - _SITES for word in other - title - _SITES - _FUNCTIONS}
    return {word for word in words if _is_long_enough(word)}


def _runs(words: Sequence[str]) -> list[str]:
    return [" ".join(words[start:end]) for start in range(len(words)) for end in range(start + 1, len(words) + 1)]


def _bare(word: str) -> str:
    """Return a word from a group's name in plain form, or "" for an office, department or role."""
    bare = plain(word)
    if UNSPACED.search(bare):
        bare = _UNSPACED_ENDS.sub("", bare)
    is_department = bare[-1:] in _DEPARTMENTS and bare[:-1] in _FUNCTIONS
    return "" if is_department or bare in _SITES or bare in _FUNCTIONS else bare


def _is_long_enough(name: str) -> bool:
    least = LEAST_UNSPACED if UNSPACED.search(name) else LEAST_LETTERS
    return sum(map(str.isalpha, name)) >= least


def _is_foreign(name: str, text: str) -> bool:
    return not is_name_in(plain(name), text)


def _names_a_country(question: str, language: str) -> bool:
    text = f" {plain(question)} "
    return any(
        is_name_in(name, text)
        for code in {language.partition("-")[0], "en"} & LANGUAGES.keys()
        for name in map(plain, territories(code).values())
    ) or any(is_name_in(name, text) for names in OTHER_NAMES.values() for name in names)


def search_countries(
    trace: RetrievalTrace, parsed: ParsedQuestion, hits: SearchHits, countries: Set[str]
) -> SearchHits:
    """Search the countries' folders too if no hit is from these folders. Returns all hits."""
    is_within_documents = trace.filters.document_ids or trace.question.document_ids
    if not countries or is_within_documents or of_countries(countries, hits.results).matching:
        return hits
    candidates = _find_labelled(trace, country_names(countries))
    document_ids = {facts.document_id for facts in candidates if countries_in(facts.folder).keys() & countries}
    return search_too(trace, parsed, hits, document_ids, come_first=False) if document_ids else hits


def search_own_place(trace: RetrievalTrace, parsed: ParsedQuestion, hits: SearchHits) -> SearchHits | None:
    """Also search the documents which apply to the user's city or country, and return all hits.

    Returns `None` if some hits are already from these documents, or if there are no documents for the place.
    """
    names = _own_places(trace)
    if not names or not hits.results:
        return None
    facts, _ = _place_facts(trace, {result.document_id for result in hits.results})
    trace.of_place = documents_of(names, facts, ())
    if trace.of_place or trace.filters.document_ids or trace.question.document_ids:
        return None
    labelled = _find_labelled(trace, names)
    documents = trace.of_place = documents_of(names, (*facts, *labelled), ())
    return search_too(trace, parsed, hits, documents, come_first=False) if documents else None


def documents_of_own_place(trace: RetrievalTrace, scored: Sequence[ScoredHit]) -> frozenset[UUID]:
    """Return the found documents' ids for the user's city or country.

    Empty if no hit from these documents may answer, or if the question names a place.
    """
    names = _own_places(trace)
    documents = {item.result.document_id for item in scored}
    if not names or len(documents) < 2:
        return frozenset()
    with trace.step("own place") as step:
        facts, groups = _place_facts(trace, documents)
        answering = {item.result.document_id for item in scored if outcome_of(item.probability) != "none"}
        document_ids = documents_of(names, facts, answering)
        place = PlaceDocuments(
            names=names,
            documents=[item for item in facts if item.document_id in document_ids],
            passages=[item.result.content for item in scored if item.result.document_id in document_ids],
            other_documents=[item for item in facts if item.document_id not in document_ids],
        )
        if not document_ids & answering or names_a_place(trace.question.text, trace.language, place, groups=groups):
            return frozenset()
        trace.folders = {item.document_id: item.folder or item.upload_folder for item in facts}
        step.detail = f"{len(document_ids)} of {len(documents)} documents are for {trace.question.identity.user_group}"
    return document_ids


def _own_places(trace: RetrievalTrace) -> tuple[str, ...]:
    return places_of(trace.question.identity.user_group) if trace.profile.search.refine_order else ()


def _find_labelled(trace: RetrievalTrace, names: Sequence[str]) -> list[PlaceFacts]:
    ids = list(trace.collection_ids or (trace.question.collection.id,))

    def read(pipeline: Pipeline) -> list[tuple[UUID]]:
        pending = pipeline.execute(queries["documents_of_place"], {"names": list(names), "collection_ids": ids})
        pipeline.finish()
        return pending.fetchall()

    documents = {row[0] for row in trace.database.read(trace.question.identity, read)}
    return _place_facts(trace, documents)[0] if documents else []


def _place_facts(trace: RetrievalTrace, documents: Set[UUID]) -> tuple[list[PlaceFacts], list[str]]:
    def read(pipeline: Pipeline) -> tuple[list[PlaceFacts], list[str]]:
        pending = pipeline.execute(queries["place_facts"], {"document_ids": list(documents)})
        groups = pipeline.execute(queries["account_groups"])
        pipeline.finish()
        return pending.read(PlaceFacts), [row[0] for row in groups.fetchall()]

    return trace.database.read(trace.question.identity, read)
