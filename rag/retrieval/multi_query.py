"""The search of one question: its wordings embedded in one call, each searched, the results made one list."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from rag.errors import InvalidInput, ProviderError, SettingsError
from rag.providers.embeddings import generate_embeddings_batch
from rag.retrieval.bm25.index import contextual_text
from rag.retrieval.bm25.synonyms import reworded
from rag.retrieval.evidence import passage_terms
from rag.retrieval.hybrid_search import SearchHits, SearchQuery, search
from rag.retrieval.query_understanding import ParsedQuestion, describe
from rag.retrieval.ranking import meets, of_passage, read_facts
from rag.retrieval.search_query import TermStatistics, asked_words
from rag.retrieval.trace import RetrievalTrace, ms_since, raw_results_from, search_said
from rag.storage.database import Database
from rag.types import FloatMatrix, Scope, SearchDetails, SearchFilters, SearchQueryDetails, SearchResult

if TYPE_CHECKING:
    from rag.providers.registry import Providers

logger = logging.getLogger(__name__)

NO_EMBEDDING = "The embedding model did not answer, so only keywords were searched for."


def find(
    run: RetrievalTrace, asked: ParsedQuestion, database: Database, providers: Providers, *, candidates: int
) -> SearchHits:
    """Search for the question and its other wordings; at most `candidates` results, best first.

    Where the limits that the question itself sets leave nothing, everything is searched: they were guessed.
    """
    run.on_step("searching", "")
    wordings = [asked.translation.query, *asked.others]
    vectors = _embed(run, wordings, providers)
    spoken = _language(run, asked)
    meanings = _embed_meaning(run, [(text, spoken) for text in wordings], providers)
    run.details.search = SearchDetails(
        type=run.profile.search.search_type, vector_top_k=candidates if vectors is not None else 0
    )
    started = time.perf_counter()
    afterwards = run.profile.search.filters_after_search
    within = replace(asked.filters, categories=(), years=()) if afterwards else asked.filters
    with run.step("search") as step:
        found = _search(run, asked, vectors, meanings, combined(run, within), database, candidates)
        step.detail = search_said(
            run.profile,
            found,
            asked=asked.text,
            limits=describe(combined(run, within)),
            has_vectors=vectors is not None,
        )
    if _gives_way(run, found, vectors):
        with run.step("search farther") as step:
            wanted, run.thresholds = run.thresholds[0], run.thresholds[1:]
            found = _search(run, asked, vectors, meanings, combined(run, within), database, candidates)
            step.detail = f"{len(found.results)} passages; none has a similarity of {wanted:g}"
    if afterwards and asked.filters != within:
        found = _filtered(run, found, asked.filters, database)
    if not found.results and within != SearchFilters():
        with run.step("search everywhere") as step:
            found = _search(run, asked, vectors, meanings, combined(run, SearchFilters()), database, candidates)
            step.detail = f"{len(found.results)} passages; none with {describe(asked.filters)}"
    run.details.timing.search_ms = ms_since(started)
    if found.text != asked.text:
        run.details.query.expanded = [*run.details.query.expanded, found.text]
    run.details.search.raw_results = raw_results_from(found.results)
    run.on_step("found", str(len(found.results)))
    return found


def _filtered(run: RetrievalTrace, found: SearchHits, filters: SearchFilters, database: Database) -> SearchHits:
    """Return what is left by the question's categories and years (source 001, step 4).

    A condition that would leave nothing is dropped, and the other one stays.
    """
    # The caller's own conditions were part of the search and come before what the question was taken to mean.
    filters = replace(
        filters,
        categories=() if run.filters.categories else filters.categories,
        years=() if run.filters.years else filters.years,
    )
    with run.step("filter") as step:
        facts = read_facts(database, run.question.identity, found.results)
        kept, said = found.results, list[str]()
        for condition in (replace(filters, years=()), replace(filters, categories=())):
            if not (condition.categories or condition.years):
                continue
            left = tuple(r for r in kept if meets(of_passage(r, facts[r.document_id].signals), condition))
            said.append(
                f"{len(left)} of {len(kept)} passages with {describe(condition)}" + ("" if left else ", dropped")
            )
            kept = left or kept
        step.detail = "; ".join(said)
    return replace(found, results=kept)


def wordings_of(run: RetrievalTrace, asked: ParsedQuestion, found: SearchHits) -> list[tuple[str, str]]:
    """Return the question's wordings with their languages; each may speak for a passage."""
    translated_from = asked.translation.translated_from
    searched_in = run.question.collection.language if translated_from else run.language
    others = [(text, searched_in) for text in asked.others]
    if not translated_from:
        return [(found.text, run.language), *others]
    translated, original = _apart(found.text, asked)
    return [(translated, searched_in), (original or run.text, run.language), *others]


def combined(run: RetrievalTrace, of_question: SearchFilters) -> SearchFilters:
    """Return the caller's conditions, and those of the question where the caller has none of the kind."""
    given = run.filters
    return replace(
        given,
        document_ids=given.document_ids or run.question.document_ids,
        categories=given.categories or of_question.categories,
        years=given.years or of_question.years,
        date_from=given.date_from or of_question.date_from,
        date_to=given.date_to or of_question.date_to,
        important_only=given.important_only or run.profile.ranking.important_only,
    )


def merged(founds: Sequence[SearchHits], limit: int) -> SearchHits:
    """One list of several: each passage with its best score, best first.

    Fused scores are comparable between questions: both of their parts are shares of the best.
    """
    first = founds[0]
    if len(founds) == 1:
        return first
    best: dict[object, SearchResult] = {}
    for result in (result for found in founds for result in found.results):
        known = best.get(result.chunk_id)
        if known is None or result.score > known.score:
            best[result.chunk_id] = result
    return SearchHits(
        results=tuple(sorted(best.values(), key=lambda r: (-r.score, str(r.chunk_id))))[:limit],
        statistics=TermStatistics(
            chunks_by_term={t: n for found in founds for t, n in found.statistics.chunks_by_term.items()},
            chunks=max(found.statistics.chunks for found in founds),
        ),
        languages={document: language for found in founds for document, language in found.languages.items()},
        text=first.text,
        repeats=sum(found.repeats for found in founds),
        meant=first.meant,
        from_others=first.from_others,
    )


def _embed(run: RetrievalTrace, texts: Sequence[str], providers: Providers) -> FloatMatrix | None:
    started = time.perf_counter()
    try:
        embedder = providers.embedder_for(run.question.collection.embedding_model)
        with run.step("embed") as step, run.paying("embedding"):
            made = generate_embeddings_batch(texts, embedder=embedder, purpose="query")
            step.detail = f"{len(texts)} by {embedder.model}"
    except (ProviderError, SettingsError) as error:
        run.skip(NO_EMBEDDING, error)
        return None
    finally:
        run.details.timing.embedding_ms = ms_since(started)
    if embedder.is_paid:
        for usage in made.usages:
            run.pay("embedding", usage)
    return made.vectors


def _embed_meaning(
    run: RetrievalTrace, wordings: Sequence[tuple[str, str]], providers: Providers
) -> FloatMatrix | None:
    """Return the question's vectors of meaning; None where there is no such model, or it does not answer: words are
    enough.
    """
    embedder = providers.meaning_for(run.question.collection.embedding_model)
    if embedder is None:
        return None
    try:
        with run.step("embed meaning") as step:
            # What the question means is between how it is asked and how documents would say it.
            others = [reworded(text, language) or text for text, language in wordings]
            both = [*(text for text, _ in wordings), *others]
            made = generate_embeddings_batch(list(dict.fromkeys(both)), embedder=embedder, purpose="query").vectors
            row = {text: number for number, text in enumerate(dict.fromkeys(both))}
            vectors: FloatMatrix = np.array(
                [(made[row[text]] + made[row[other]]) / 2 for (text, _), other in zip(wordings, others, strict=True)]
            )
            step.detail = f"{len(row)} by {embedder.model}"
    except (InvalidInput, ProviderError) as error:
        logger.warning("A question is searched for by its words only (%s)", error)
        return None
    return vectors


def _search(
    run: RetrievalTrace,
    asked: ParsedQuestion,
    vectors: FloatMatrix | None,
    meanings: FloatMatrix | None,
    filters: SearchFilters,
    database: Database,
    candidates: int,
) -> SearchHits:
    profile, founds = run.profile, []
    # Another search of the same question takes the place of the one before it, and adds its time.
    searched_before, run.details.search.queries = run.details.search.queries, []
    spent_before = sum(query.search_ms for query in searched_before)
    for number, text in enumerate([asked.text, *asked.others]):
        started = time.perf_counter()
        found = search(
            database,
            SearchQuery(
                text=text,
                language=run.language if number == 0 else _language(run, asked),
                vector=None if vectors is None else vectors[number],
                embedding_model=run.question.collection.embedding_model,
                meaning=None if meanings is None else meanings[number],
                fusion=profile.search.fusion,
                k1=profile.search.bm25_k1,
                b=profile.search.bm25_b,
                vector_weight=profile.search.vector_weight,
                keyword_weight=profile.search.keyword_weight,
                vector_rank_weight=profile.search.vector_rank_weight,
                keyword_rank_weight=profile.search.keyword_rank_weight,
                rank_constant=profile.search.rank_constant,
                threshold=_least_similarity(run),
                neighbours=candidates * profile.search.neighbour_factor // profile.search.candidate_factor,
                same_beginning=profile.search.deduplication_characters,
                refine=profile.search.refine_order,
                correct_spelling=profile.understanding.correct_spelling,
            ),
            scope=Scope(
                tenant_id=run.tenant_id,
                collection_ids=(run.question.collection.id,),
                reader=run.question.identity,
            ),
            filters=filters,
            limit=candidates,
            by_keyword=profile.search.search_type == "hybrid" or vectors is None,
        )
        founds.append(found)
        first, original = _apart(found.text, asked) if number == 0 else (found.text, "")
        run.details.search.queries.append(
            SearchQueryDetails(
                query=first,
                embedding_ms=run.details.timing.embedding_ms if number == 0 else 0.0,
                search_ms=ms_since(started) + (spent_before if number == 0 else 0.0),
                result_count=len(found.results),
            )
        )
        if original:
            run.details.search.queries.append(
                SearchQueryDetails(query=original, result_count=_holding(found, original, run.language))
            )
    return merged(founds, candidates)


def _apart(text: str, asked: ParsedQuestion) -> tuple[str, str]:
    """Return what was searched for in the documents' language, and the original beside it; "" where nothing was
    translated.
    """
    if not asked.translation.translated_from:
        return text, ""
    translated, _, original = text.partition("\n")
    return translated, original


def _holding(found: SearchHits, wording: str, language: str) -> int:
    """In how many of the results a word of this wording stands."""
    count = 0
    for result in found.results:
        analyser = found.languages[result.document_id]
        words = {term for word in asked_words(wording, language, analyser) for term in word.terms}
        text = contextual_text(result.title, result.section, result.content)
        count += not words.isdisjoint(passage_terms(text, analyser))
    return count


def _gives_way(run: RetrievalTrace, found: SearchHits, vectors: FloatMatrix | None) -> bool:
    """Whether a threshold set too high for the collection's model kept every neighbour out."""
    return len(run.thresholds) > 1 and vectors is not None and not any(r.vector_rank for r in found.results)


def _least_similarity(run: RetrievalTrace) -> float:
    """Return what a neighbour has to be above, where the profile's figure is set and has not given way."""
    profile = run.profile
    if profile.search.threshold_mode != "absolute" or profile.search.similarity_threshold is None:
        return -1.0
    if profile.search.strict_threshold:
        return -1.0  # cut later, so that it is known how many
    if run.thresholds and run.thresholds[0] < profile.search.similarity_threshold:
        return -1.0
    is_word_count = run.question.collection.embedding_model.startswith("builtin/")
    return -1.0 if is_word_count else math.nextafter(profile.search.similarity_threshold, math.inf)


def _language(run: RetrievalTrace, asked: ParsedQuestion) -> str:
    return run.question.collection.language if asked.translation.translated_from else run.language
