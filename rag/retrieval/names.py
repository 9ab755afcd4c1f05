"""Find company names in a question. Usually the document, not the chunk, says to which company a rule applies.

"How many vacation days do I get at Ottermere?" asks for vacation days. A search with the name would find the chunks
which mention "Ottermere" most often. Therefore the search leaves the name out, and documents without it come last.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from rag.retrieval.bm25.index import tokenize
from rag.retrieval.hybrid_search import SearchHits
from rag.retrieval.meaning import named_languages
from rag.retrieval.query_understanding import ParsedQuestion
from rag.retrieval.searching import search, search_too
from rag.retrieval.trace import RetrievalTrace
from rag.storage.database import queries
from rag.storage.pipeline import Pipeline

_CAPITAL = r"[A-ZÀ-ÖØ-Þ][\w&’'-]*[\wÀ-ÿ]"
_JOINS = r"(?:for|of|and|&|the|de|der|des|van|von|la|di|do|da)"
#: Capitalised words in a row, "Foundation for Public Code".
_RUN = rf"{_CAPITAL}(?:\s+(?:{_JOINS}\s+){{0,2}}{_CAPITAL}){{0,5}}"
#: The company after or before words which mark it: "at Ottermere", "Ottermere's", "does Ottermere pay", "bei
#: Ottermere", "Ottermere에서".
_PLACED = re.compile(
    r"(?P<before>\b(?:at|bei(?:m)?|chez|bij|presso|u|en|na|w|em|von|of|from|by|à|aus)\s+(?:the\s+|der\s+|die\s+|de\s+"
    rf"|la\s+|het\s+)?)(?P<placed>{_RUN})"
    rf"|(?P<owner>{_RUN})(?=['’]s\b)(?P<possessive>['’]s)"
    rf"|(?P<verb>\b[Dd](?:oes|id|o)\s+(?:the\s+)?)(?P<subject>{_RUN})(?=\s+[a-z])"
    r"|(?P<attached>[A-Z][A-Za-z]{2,}(?:\s[A-Z][A-Za-z]+){0,3})(?P<particle>에서는|에서|의|에는|에|은|는|では|での|の|的)"
)
#: In German, where every noun is capitalised, only these prepositions mark a name.
_GERMAN = re.compile(rf"(?P<before>\b(?:bei|von)\s+)(?P<placed>{_CAPITAL}(?:\s+{_CAPITAL}){{0,3}})")
#: Capitalised words which are not names: months, weekdays and "I".
NO_NAMES = re.compile(
    r"(?:I|Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday|January|February|March|April|May|June|July|August"
    r"|September|October|November|December|Christmas|Easter|New Year)s?",
)
#: A name in fewer documents and chunks is a topic in the question; in more, it is the rules' owner.
LEAST_DOCUMENTS, LEAST_CHUNKS = 3, 15


@dataclass(frozen=True)
class Names:
    """The company names in a question, and the documents which contain them."""

    #: The question without the names which documents contain.
    text: str
    names: tuple[str, ...] = ()
    #: Documents with all the names.
    document_ids: frozenset[UUID] = field(default_factory=frozenset)
    #: Names which no found document contains.
    missing: tuple[str, ...] = ()


def names_in(question: str, language: str) -> list[str]:
    """Return the names in a question which may be companies, in order."""
    names = []
    for match in (_GERMAN if language == "de" else _PLACED).finditer(question):
        groups = match.groupdict()
        name = next(groups[key] for key in ("placed", "owner", "subject", "attached") if groups.get(key))
        is_plain = NO_NAMES.fullmatch(name) is not None or bool(named_languages(name))
        if not is_plain and not (name.isupper() and len(name) <= 4):
            names.append(name)
    return list(dict.fromkeys(names))


def forms_of(name: str) -> list[str]:
    """Return a name's possible forms in documents: unchanged, with the family name first, or split over two table
    columns.
    """
    first, _, last = name.rpartition(" ")
    return [name, f"{last}, {first}", f"{last} {first}", f"{last} | {first}", f"{first} | {last}"] if first else [name]


def without(question: str, names: Iterable[str], language: str) -> str:
    """Return a question without these names; unchanged if no words would remain."""
    text = question
    for name in names:
        pattern = re.escape(name)
        text = re.sub(
            r"(?:\b(?:at|bei|chez|bij|presso|of|from|by|à)\s+(?:the\s+|der\s+|de\s+|la\s+|het\s+)?)?(?:\bthe\s+)?"
            rf"{pattern}(?:['’]s\b|에서는|에서|의|에는|에|은|는|では|での|の|的)?",
            " ",
            text,
        )
    text = re.sub(r"\s+([?.!,])", r"\1", " ".join(text.split()))
    return text if tokenize(text, language) else question


def of_owners(
    trace: RetrievalTrace, parsed: ParsedQuestion, hits: SearchHits
) -> tuple[ParsedQuestion, SearchHits, Names]:
    """Search again without the company's name if the question asks for a company's rules.

    The company's documents are searched too. Returns the question, the hits and the names.
    """
    names = _find_names(trace, hits)
    if names.text == trace.text or parsed.translation.translated_from:
        return parsed, hits, names
    parsed = parsed.reword(trace.text, names.text)
    hits = search(trace, parsed)
    owner_names = _find_names(trace, hits, owners=names.names)
    if owner_documents := names.document_ids | owner_names.document_ids:
        hits = search_too(trace, parsed, hits, owner_documents)
    return parsed, hits, _find_names(trace, hits, owners=names.names)


def _find_names(trace: RetrievalTrace, hits: SearchHits, *, owners: Sequence[str] = ()) -> Names:
    candidates = names_in(trace.text, trace.language) if trace.profile.search.refine_order else []
    # If the question names one of two health plans, the name tells passages apart.
    if not candidates or hits.twins or not hits.results:
        return Names(trace.text)
    documents = list(dict.fromkeys(result.document_id for result in hits.results))
    collection_names = f"{trace.question.collection.name}\n{trace.profile.answer.own_name}".casefold()

    forms = [(form, name) for name in candidates for form in forms_of(name)]

    def read(pipeline: Pipeline) -> list[tuple[UUID, int, int]]:
        names = [form for form, _ in forms]
        pending = pipeline.execute(queries["documents_saying"], {"names": names, "document_ids": documents})
        pipeline.finish()
        return pending.fetchall()

    with trace.step("whose rules") as step:
        # A name in the collection's title holds for all documents.
        saying = {name: set(documents) if name.casefold() in collection_names else set[UUID]() for name in candidates}
        chunks = Counter[str]()
        for document_id, place, count in trace.database.read(trace.question.identity, read):
            name = forms[place - 1][1]
            saying[name].add(document_id)
            chunks[name] += count
        if trace.language == "de":
            # German capitalises every noun ("Bei Krankheit"), so a word found in German documents is no name.
            german = {document for document in documents if hits.languages[document].startswith("de")}
            saying = {name: ids for name, ids in saying.items() if not ids & german}
        missing = tuple(name for name, ids in saying.items() if not ids)
        least = min(LEAST_DOCUMENTS, len(documents))
        confirmed = [
            name
            for name, ids in saying.items()
            if ids and (name in owners or len(ids) >= least or chunks[name] >= LEAST_CHUNKS)
        ]
        shared_ids = (
            frozenset.intersection(*(frozenset(saying[name]) for name in confirmed)) if confirmed else frozenset()
        )
        step.detail = "; ".join(f"{name}: {len(ids)} of {len(documents)} documents" for name, ids in saying.items())
    return Names(without(trace.text, confirmed, trace.language), (*confirmed, *missing), shared_ids, missing)
