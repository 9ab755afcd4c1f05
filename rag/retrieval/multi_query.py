"""Search for each wording of a question, embedded in a single call, and merge the results.

A translated, rephrased or split question has several wordings. If the embedding model fails, only keywords are
searched.
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
from rag.retrieval.bm25.synonyms import in_words_of, reworded
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

NO_EMBEDDING = N_("The embedding model did not answer, so only keywords were searched for.")


@dataclass(frozen=True, kw_only=True)
class EmbeddedWordings:
    """The vectors for a question's wordings, a row each; `None` if no model made any."""

    vectors: FloatMatrix | None
    meanings: FloatMatrix | None


def embed_wordings(trace: RetrievalTrace, asked: ParsedQuestion) -> EmbeddedWordings:
    """Embed the wordings with the collection's model and, if the collection has meaning vectors, with the model of
    meaning.
    """
    spoken = _language(trace, asked)
    wordings = [(text, spoken) for text in (asked.translation.query, *asked.others)]
    if asked.original:
        wordings.append((asked.original, trace.language))
    vectors = _embed(trace, [text for text, _ in wordings])
    return EmbeddedWordings(vectors=vectors, meanings=_embed_meaning(trace, wordings))


def search_wordings(
    trace: RetrievalTrace,
    asked: ParsedQuestion,
    embedded: EmbeddedWordings,
    filters: SearchFilters,
    database: Database,
    *,
    candidates: int,
) -> SearchHits:
    """Search for each wording within the filters; return at most `candidates` results, best first."""
    profile, found_by_wording = trace.profile, []
    # A repeated search replaces the question's earlier search and adds to its time.
    searched_before, trace.details.search.queries = trace.details.search.queries, []
    spent_before = sum(query.search_ms for query in searched_before)
    wordings = [asked.text, *asked.others, *filter(None, [asked.original])]
    for number, text in enumerate(wordings):
        is_asked = number == 0 or text is asked.original
        started = time.perf_counter()
        found = search(
            database,
            SearchQuery(
                text=text,
                language=trace.language if is_asked else _language(trace, asked),
                vector=None if embedded.vectors is None else embedded.vectors[number],
                embedding_model=trace.question.collection.embedding_model,
                meaning=None if embedded.meanings is None else embedded.meanings[number],
                meaning_in_words_of=partial(meaning_in_words_of, trace, asked) if number == 0 else None,
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
        found_by_wording.append(found)
        first = _apart(found.text, asked)[0] if number == 0 else found.text
        trace.details.search.queries.append(
            SearchQueryDetails(
                query=first,
                embedding_ms=trace.details.timing.embedding_ms if number == 0 else 0.0,
                search_ms=ms_since(started) + (spent_before if number == 0 else 0.0),
                result_count=len(found.results),
            )
        )
    return merged(found_by_wording, candidates)


def wordings_of(trace: RetrievalTrace, asked: ParsedQuestion, found: SearchHits) -> list[tuple[str, str]]:
    """Return the question's wordings with their languages; each passage is scored by the best wording."""
    translated_from = asked.translation.translated_from
    searched_in = trace.question.collection.language if translated_from else trace.language
    others = [(text, searched_in) for text in asked.others]
    if not translated_from:
        return [(found.text, trace.language), *others]
    translated, original = _apart(found.text, asked)
    return [(translated, searched_in), (original or trace.text, trace.language), *others]


def merged(lists: Sequence[SearchHits], limit: int) -> SearchHits:
    """Merge several result lists: each passage keeps its best score, best first.

    Fused scores are comparable between questions: both parts are shares of the best.
    """
    first = lists[0]
    if len(lists) == 1:
        return first
    best: dict[object, SearchResult] = {}
    for result in (result for found in lists for result in found.results):
        known = best.get(result.chunk_id)
        if known is None or result.score > known.score:
            best[result.chunk_id] = result
    return SearchHits(
        results=tuple(sorted(best.values(), key=lambda r: (-r.score, str(r.chunk_id))))[:limit],
        statistics=TermStatistics(
            chunks_by_term={t: n for found in lists for t, n in found.statistics.chunks_by_term.items()},
            chunks=max(found.statistics.chunks for found in lists),
        ),
        languages={document: language for found in lists for document, language in found.languages.items()},
        text=first.text,
        repeats=sum(found.repeats for found in lists),
        meant=first.meant,
        from_others=first.from_others,
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
            made = generate_embeddings_batch(texts, embedder=embedder, purpose="query")
            step.detail = f"{len(texts)} by {embedder.model}"
        return made.vectors
    except (ProviderError, SettingsError) as error:
        trace.skip(NO_EMBEDDING, error)
        return None
    finally:
        trace.details.timing.embedding_ms = ms_since(started)


def _embed_meaning(trace: RetrievalTrace, wordings: Sequence[tuple[str, str]]) -> FloatMatrix | None:
    """Return the question's meaning vectors; `None` if no model is available or it fails, because words are enough."""
    embedder = trace.models.meaning_for(trace.question.collection.embedding_model)
    if embedder is None or not any(is_worded(text) for text, _ in wordings):
        return None
    # Average the question's wording and the documents' wording, because the intended meaning is between them.
    asked = [without_place(text) for text, _ in wordings]
    others = [without_place(reworded(text, language) or text) for text, language in wordings]
    both = list(dict.fromkeys([*asked, *others]))
    made = _meaning_of(both, trace, embedder)
    if made is None:
        return None
    row = {text: number for number, text in enumerate(both)}
    pairs = zip(asked, others, strict=True)
    return np.array([(made[row[text]] + made[row[other]]) / 2 for text, other in pairs])


def meaning_in_words_of(
    trace: RetrievalTrace, asked: ParsedQuestion, languages: Collection[str]
) -> dict[str, NDArray[np.float32]]:
    """Embed the question with its subjects in the words of other languages; return a vector per language.

    The model favours passages in the question's language. With translated subjects it can tell other passages apart.
    """
    embedder = trace.models.meaning_for(trace.question.collection.embedding_model)
    text, spoken = without_place(asked.translation.query), _language(trace, asked)
    switched = {other: in_words_of(text, spoken, other.partition("+")[0]) for other in languages}
    texts = list(dict.fromkeys(filter(None, switched.values())))
    if embedder is None or not texts:
        return {}
    made = _meaning_of(texts, trace, embedder, " in other languages' words")
    if made is None:
        return {}
    return {other: made[texts.index(text)] for other, text in switched.items() if text}


def _meaning_of(texts: list[str], trace: RetrievalTrace, embedder: Embedder, words: str = "") -> FloatMatrix | None:
    """Embed texts with the meaning model, once per question; `None` if the model fails.

    `words` is added to the step's description.
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


def _apart(text: str, asked: ParsedQuestion) -> tuple[str, str]:
    """Split a wording into its translation and the original, which is "" for an untranslated question."""
    if not asked.translation.translated_from:
        return text, ""
    translated, _, original = text.partition("\n")
    return translated, original


def _least_similarity(trace: RetrievalTrace) -> float:
    """Return the least similarity for neighbours: the profile's absolute threshold if applicable here, else -1."""
    profile = trace.profile
    if profile.search.threshold_mode != "absolute" or profile.search.similarity_threshold is None:
        return -1.0
    if profile.search.strict_threshold:
        return -1.0  # cut later, when the number is known
    if trace.thresholds and trace.thresholds[0] < profile.search.similarity_threshold:
        return -1.0
    is_word_count = trace.question.collection.embedding_model.startswith("builtin/")
    return -1.0 if is_word_count else math.nextafter(profile.search.similarity_threshold, math.inf)


def _language(trace: RetrievalTrace, asked: ParsedQuestion) -> str:
    return trace.question.collection.language if asked.translation.translated_from else trace.language
