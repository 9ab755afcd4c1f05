"""Search for each wording of a question, and merge the results.

A translated, rephrased or split question has several wordings. All are embedded in a single call. If the embedding
model fails, only keywords are searched.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rag.errors import InvalidInput, ProviderError, SettingsError
from rag.language import N_
from rag.monitoring.tracing import ms_since
from rag.providers.embeddings import generate_embeddings_batch
from rag.providers.processor import waiting
from rag.retrieval.bm25.synonyms import in_words_of, reword
from rag.retrieval.fusion import FusionWeights
from rag.retrieval.hybrid_search import SearchHits, SearchQuery, search
from rag.retrieval.meaning import is_worded, without_place
from rag.retrieval.query_understanding import ParsedQuestion
from rag.retrieval.search_query import TermStatistics
from rag.retrieval.trace import RetrievalTrace
from rag.storage.database import Database
from rag.types import FloatMatrix, Scope, SearchFilters, SearchQueryDetails, SearchResult

if TYPE_CHECKING:
    from rag.providers import Embedder

logger = logging.getLogger(__name__)

NO_EMBEDDING = N_("The search model did not answer, so only keywords were searched for.")


@dataclass(frozen=True, kw_only=True)
class EmbeddedWordings:
    """The vectors for a question's wordings, a row each, or `None` without a working model."""

    vectors: FloatMatrix | None
    meanings: FloatMatrix | None


def embed_wordings(trace: RetrievalTrace, parsed: ParsedQuestion) -> EmbeddedWordings:
    """Embed the question's wordings with the collection's model.

    If the collection also has vectors from the built-in model, the wordings are embedded with this model too.
    """
    language = _language(trace, parsed)
    wordings = [(text, language) for text in (parsed.translation.query, *parsed.other_wordings)]
    if parsed.original:
        wordings.append((parsed.original, trace.language))
    vectors = _embed(trace, [text for text, _ in wordings])
    return EmbeddedWordings(vectors=vectors, meanings=_embed_meaning(trace, wordings))


def search_wordings(
    trace: RetrievalTrace,
    parsed: ParsedQuestion,
    embedded: EmbeddedWordings,
    filters: SearchFilters,
    database: Database,
    *,
    candidates: int,
) -> SearchHits:
    """Search for each wording within the filters. Returns at most `candidates` results, best first."""
    profile, hits_by_wording = trace.profile, []
    # A repeated search replaces the question's earlier search and adds to its time.
    searched_before, trace.details.search.queries = trace.details.search.queries, []
    spent_before = sum(query.search_ms for query in searched_before)
    wordings = [parsed.text, *parsed.other_wordings, *filter(None, [parsed.original])]
    for number, text in enumerate(wordings):
        is_original = number == 0 or text is parsed.original
        started = time.perf_counter()
        hits = search(
            database,
            SearchQuery(
                text=text,
                language=trace.language if is_original else _language(trace, parsed),
                vector=None if embedded.vectors is None else embedded.vectors[number],
                embedding_model=trace.question.collection.embedding_model,
                meaning=None if embedded.meanings is None else embedded.meanings[number],
                meaning_in_words_of=partial(meaning_in_words_of, trace, parsed) if number == 0 else None,
                fusion=profile.search.fusion,
                k1=profile.search.bm25_k1,
                b=profile.search.bm25_b,
                weights=FusionWeights(
                    vector=profile.search.vector_weight,
                    keyword=profile.search.keyword_weight,
                    vector_rank=profile.search.vector_rank_weight,
                    keyword_rank=profile.search.keyword_rank_weight,
                    rank_constant=profile.search.rank_constant,
                ),
                threshold=_least_similarity(trace),
                neighbours=candidates * profile.search.neighbour_factor // profile.search.candidate_factor,
                same_beginning=profile.search.deduplication_characters,
                refine=profile.search.refine_order,
                with_folders=profile.embedding.index_titles,
                correct_spelling=profile.understanding.correct_spelling,
            ),
            scope=Scope(
                tenant_id=trace.tenant_id,
                collection_ids=trace.collection_ids or (trace.question.collection.id,),
                reader=trace.question.identity,
            ),
            filters=filters,
            limit=candidates,
            by_keyword=profile.search.search_type == "hybrid" or embedded.vectors is None,
        )
        hits_by_wording.append(hits)
        first = _split_translation(hits.text, parsed)[0] if number == 0 else hits.text
        trace.details.search.queries.append(
            SearchQueryDetails(
                query=first,
                embedding_ms=trace.details.timing.embedding_ms if number == 0 else 0.0,
                search_ms=ms_since(started) + (spent_before if number == 0 else 0.0),
                result_count=len(hits.results),
            )
        )
    return merge_hits(hits_by_wording, candidates)


def wordings_of(trace: RetrievalTrace, parsed: ParsedQuestion, hits: SearchHits) -> list[tuple[str, str]]:
    """Return the question's wordings, each (text, language). A hit gets the best wording's score."""
    translated_from = parsed.translation.translated_from
    searched_in = trace.question.collection.language if translated_from else trace.language
    other_wordings = [(text, searched_in) for text in parsed.other_wordings]
    if not translated_from:
        return [(hits.text, trace.language), *other_wordings]
    translated, original = _split_translation(hits.text, parsed)
    return [(translated, searched_in), (original or trace.text, trace.language), *other_wordings]


def merge_hits(lists: Sequence[SearchHits], limit: int) -> SearchHits:
    """Merge several lists of hits, best first. A chunk in several lists gets the best score.

    Fused scores of different wordings are comparable, because both parts are relative to the best hit.
    """
    first = lists[0]
    if len(lists) == 1:
        return first
    best: dict[object, SearchResult] = {}
    for result in (result for hits in lists for result in hits.results):
        previous = best.get(result.chunk_id)
        if previous is None or result.score > previous.score:
            best[result.chunk_id] = result
    return SearchHits(
        results=tuple(sorted(best.values(), key=lambda r: (-r.score, str(r.chunk_id))))[:limit],
        statistics=TermStatistics(
            chunks_by_term={t: n for hits in lists for t, n in hits.statistics.chunks_by_term.items()},
            chunks=max(hits.statistics.chunks for hits in lists),
        ),
        languages={document: language for hits in lists for document, language in hits.languages.items()},
        text=first.text,
        repeats=sum(hits.repeats for hits in lists),
        meaning_hits=first.meaning_hits,
        foreign_ids=first.foreign_ids,
        twins=first.twins,
    )


def _embed(trace: RetrievalTrace, texts: Sequence[str]) -> FloatMatrix | None:
    key = (trace.question.collection.embedding_model, *texts)
    if key not in trace.vectors:
        trace.vectors[key] = _embed_once(trace, texts)
    return trace.vectors[key]


def _embed_once(trace: RetrievalTrace, texts: Sequence[str]) -> FloatMatrix | None:
    started = time.perf_counter()
    try:
        embedder = trace.models.embedder_for(trace.question.collection.embedding_model)
        with trace.step("embed") as step:
            embeddings = generate_embeddings_batch(texts, embedder=embedder, purpose="query")
            step.detail = f"{len(texts)} by {embedder.model}"
        return embeddings.vectors
    except (ProviderError, SettingsError) as error:
        trace.skip(NO_EMBEDDING, error)
        return None
    finally:
        trace.details.timing.embedding_ms = ms_since(started)


def _embed_meaning(trace: RetrievalTrace, wordings: Sequence[tuple[str, str]]) -> FloatMatrix | None:
    embedder = trace.models.meaning_for(trace.question.collection.embedding_model)
    if embedder is None or not any(is_worded(text) for text, _ in wordings):
        return None
    # Average the question's wording and the documents' wording, because the intended meaning is between them.
    originals = [without_place(text) for text, _ in wordings]
    rewordings = [without_place(reword(text, language) or text) for text, language in wordings]
    both = list(dict.fromkeys([*originals, *rewordings]))
    vectors = _meaning_of(both, trace, embedder)
    if vectors is None:
        return None
    row = {text: number for number, text in enumerate(both)}
    pairs = zip(originals, rewordings, strict=True)
    return np.array([(vectors[row[text]] + vectors[row[other]]) / 2 for text, other in pairs])


def meaning_in_words_of(
    trace: RetrievalTrace, parsed: ParsedQuestion, languages: Collection[str]
) -> dict[str, NDArray[np.float32]]:
    """Embed the question for each language, with the subjects translated into the language.

    The model favours chunks in the question's language. Translated subjects help to order the other chunks.
    """
    embedder = trace.models.meaning_for(trace.question.collection.embedding_model)
    text, language = without_place(parsed.translation.query), _language(trace, parsed)
    switched = {other: in_words_of(text, language, other.partition("+")[0]) for other in languages}
    texts = list(dict.fromkeys(filter(None, switched.values())))
    if embedder is None or not texts:
        return {}
    vectors = _meaning_of(texts, trace, embedder, " in other languages' words")
    if vectors is None:
        return {}
    return {other: vectors[texts.index(text)] for other, text in switched.items() if text}


def _meaning_of(texts: list[str], trace: RetrievalTrace, embedder: Embedder, words: str = "") -> FloatMatrix | None:
    """Embed texts with the built-in model, or return `None` if the model fails.

    The vectors are cached in `trace` until the question is answered.
    """
    key = (embedder.id, *texts)
    if key not in trace.vectors:
        try:
            with trace.step("embed meaning") as step, waiting():
                trace.vectors[key] = generate_embeddings_batch(texts, embedder=embedder, purpose="query").vectors
                step.detail = f"{len(texts)}{words} by {embedder.model}"
        except (InvalidInput, ProviderError) as error:
            logger.warning("%d texts%s are not compared by meaning (%s)", len(texts), words, error)
            trace.vectors[key] = None
    return trace.vectors[key]


def _split_translation(text: str, parsed: ParsedQuestion) -> tuple[str, str]:
    if not parsed.translation.translated_from:
        return text, ""
    translated, _, original = text.partition("\n")
    return translated, original


def _least_similarity(trace: RetrievalTrace) -> float:
    profile = trace.profile
    if profile.search.threshold_mode != "absolute" or profile.search.similarity_threshold is None:
        return -1.0
    if profile.search.strict_threshold:
        return -1.0  # cut later, when the number is known
    if trace.thresholds and trace.thresholds[0] < profile.search.similarity_threshold:
        return -1.0
    is_word_count = trace.question.collection.embedding_model.startswith("builtin/")
    return -1.0 if is_word_count else math.nextafter(profile.search.similarity_threshold, math.inf)


def _language(trace: RetrievalTrace, parsed: ParsedQuestion) -> str:
    return trace.question.collection.language if parsed.translation.translated_from else trace.language
