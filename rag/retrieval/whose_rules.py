"""Search again without the names in a question, if they name whose rules are meant."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from uuid import UUID

from rag.retrieval.hybrid_search import SearchHits
from rag.retrieval.names import LEAST_CHUNKS, LEAST_DOCUMENTS, Names, forms_of, names_in, without
from rag.retrieval.query_understanding import ParsedQuestion
from rag.retrieval.searching import search, search_too
from rag.retrieval.trace import RetrievalTrace
from rag.storage.database import queries
from rag.storage.pipeline import Pipeline


def of_owners(
    trace: RetrievalTrace, asked: ParsedQuestion, hits: SearchHits
) -> tuple[ParsedQuestion, SearchHits, Names]:
    """Search without names which the documents show to be the rules' owners, and also in the owners' documents."""
    names = _names_meant(trace, hits)
    if names.text == trace.text or asked.translation.translated_from:
        return asked, hits, names
    asked = asked.said_as(trace.text, names.text)
    hits = search(trace, asked)
    others = _names_meant(trace, hits, owners=names.names)
    if of_owner := names.said_by | others.said_by:
        hits = search_too(trace, asked, hits, of_owner)
    return asked, hits, _names_meant(trace, hits, owners=names.names)


def _names_meant(trace: RetrievalTrace, hits: SearchHits, *, owners: Sequence[str] = ()) -> Names:
    """Find whose rules the question asks for, if the profile refines the order.

    `owners` are names found in enough documents by a search including them.
    """
    asked = names_in(trace.text, trace.language) if trace.profile.search.refine_order else []
    # If the question names one of two health plans, the name tells passages apart.
    if not asked or hits.twins or not hits.results:
        return Names(trace.text)
    documents = list(dict.fromkeys(result.document_id for result in hits.results))
    own = f"{trace.question.collection.name}\n{trace.profile.answer.own_name}".casefold()

    forms = [(form, name) for name in asked for form in forms_of(name)]

    def read(pipeline: Pipeline) -> list[tuple[UUID, int, int]]:
        names = [form for form, _ in forms]
        found = pipeline.execute(queries["documents_saying"], {"names": names, "document_ids": documents})
        pipeline.finish()
        return found.fetchall()

    with trace.step("whose rules") as step:
        # A name in the collection's title holds for all documents.
        saying = {name: set(documents) if name.casefold() in own else set[UUID]() for name in asked}
        chunks = Counter[str]()
        for document_id, place, count in trace.database.read(trace.question.identity, read):
            name = forms[place - 1][1]
            saying[name].add(document_id)
            chunks[name] += count
        if trace.language == "de":
            # "Bei Krankheit": German capitalises every noun, so words found in German documents are not names.
            german = {document for document in documents if hits.languages[document].startswith("de")}
            saying = {name: found for name, found in saying.items() if not found & german}
        missing = tuple(name for name, found in saying.items() if not found)
        least = min(LEAST_DOCUMENTS, len(documents))
        meant = [
            name
            for name, found in saying.items()
            if found and (name in owners or len(found) >= least or chunks[name] >= LEAST_CHUNKS)
        ]
        said_by = frozenset.intersection(*(frozenset(saying[name]) for name in meant)) if meant else frozenset()
        step.detail = "; ".join(f"{name}: {len(found)} of {len(documents)} documents" for name, found in saying.items())
    return Names(without(trace.text, meant, trace.language), (*meant, *missing), said_by, missing)
