"""Explain a retrieval in text: the question, each step's result, and every candidate's scores."""

from __future__ import annotations

from collections.abc import Iterator

from rag.language import counted
from rag.profiles.profile import Profile
from rag.retrieval.context_builder import place
from rag.retrieval.evidence import RULE, ScoredHit, outcome_of
from rag.retrieval.known_by import with_folder
from rag.retrieval.retriever import RetrievalResult
from rag.types import Citation, Collection, SearchResult

PREVIEW_CHARACTERS = 60


def explained(retrieval: RetrievalResult, *, profile: Profile, collection: Collection) -> Iterator[str]:
    """Yield a retrieval's explanation, line by line."""
    details = retrieval.response.rag_details
    yield f"collection    {collection.name}, embedded by {collection.embedding_model}"
    yield f"profile       {profile.name}: {_describe_settings(retrieval, profile)}"
    yield f"question      {details.query.original}"
    if details.query.translated_query:
        yield f"translated    {details.query.translated_query} (from {details.query.translated_from})"
    for text in details.query.expanded:
        yield f"searched as   {' '.join(text.split())}"
    for text in details.query.alternative_queries:
        yield f"and as        {text}"
    for notice in retrieval.response.notices:
        yield f"note          {notice}"
    yield ""
    yield "step             ms  what it did"
    for step in details.steps or []:
        yield f"{step.name:13}{step.ms:6.1f}  {step.detail}"
    cited = f"{len(retrieval.cited)} of {counted(len(retrieval.hits), 'passage')} cited"
    yield f"{'all':13}{details.timing.total_ms:6.1f}  {cited}"
    for paid in retrieval.response.charges:
        cost = "unpriced" if paid.cost is None else f"${paid.cost:.8f}"
        yield f"{paid.operation:21}{paid.usage.model} {cost} ({paid.unit_prices.get('source', 'no price')})"
    yield ""
    yield from _table(retrieval)
    yield from _words(retrieval)


def _describe_settings(retrieval: RetrievalResult, profile: Profile) -> str:
    search = retrieval.response.rag_details.search
    done = {step.name for step in retrieval.response.rag_details.steps or []}
    candidates = counted(profile.search.top_k * profile.search.candidate_factor, "candidate")
    parts = [f"{counted(search.final_top_k, 'passage')} of {candidates}"]
    if profile.ranking.reranking and "rerank" not in done and retrieval.scored:
        parts.append("not reranked, no reranker is configured")
    return "; ".join(parts)


def _words(retrieval: RetrievalResult) -> Iterator[str]:
    if not retrieval.scored:
        return
    best = max(retrieval.scored, key=lambda item: item.probability)
    missing = [word.text for word in best.words if word.text not in best.coverage.matched]
    yield ""
    yield f"words found   {', '.join(best.coverage.matched) or 'none'}"
    yield f"words missing {', '.join(missing) or 'none'}"
    yield (
        f"evidence      {best.probability:.2f} that {place(best.result)} answers: {outcome_of(best.probability)} "
        f"(answered from {RULE.answered:g}, perhaps from {RULE.perhaps:g})"
    )


def shortened(citation: Citation, score: float) -> Iterator[str]:
    """Yield a citation in two lines: the title and page with the score, and the beginning."""
    place = f", {citation.collection}" if citation.collection else ""
    title = with_folder(citation.title, citation.folder)
    yield f"[{citation.number}] {title}, page {citation.first_page}{place}  ({score:.3f})"
    yield f"    {' '.join(citation.passage.split())[: 2 * PREVIEW_CHARACTERS]}"


def _table(retrieval: RetrievalResult) -> Iterator[str]:
    yield (
        "found  cosine  rank    bm25  rank  meaning  rank   fused  covered  margin  evidence  rerank   final  cited"
        "  passage"
    )
    numbers = {item.result.chunk_id: number for number, item in enumerate(retrieval.cited, 1)}
    finals = {item.result.chunk_id: item.result.score for item in retrieval.cited}
    scored = {item.result.chunk_id: item for item in retrieval.scored}
    for rank, result in enumerate(retrieval.hits, 1):
        item = scored.get(result.chunk_id)
        number = numbers.get(result.chunk_id)
        yield (
            f"{rank:5}  {_number(result.similarity, 6, 3)}  {_rank(result.vector_rank)}"
            f"  {_number(result.keyword_score, 6, 2)}  {_rank(result.keyword_rank)}"
            f"  {_number(result.meaning, 7, 3)}  {_rank(result.meaning_rank)}  {result.score:6.3f}"
            f"  {_judgement(item)}  {_number(item.result.rerank_score if item else None, 6, 3)}"
            f"  {_number(finals.get(result.chunk_id), 6, 3)}  {f'[{number}]' if number else '':>5}  {_preview(result)}"
        )


def _judgement(item: ScoredHit | None) -> str:
    # Repeats, and passages beyond the limit per document, have no score.
    return (
        f"{'-':>7}  {'-':>6}  {'-':>8}"
        if item is None
        else f"{item.coverage.share:7.2f}  {item.margin:6.3f}  {item.probability:8.3f}"
    )


def _preview(result: SearchResult) -> str:
    return f"{place(result)}: {' '.join(result.content.split())[:PREVIEW_CHARACTERS]}"


def _number(value: float | None, width: int, places: int) -> str:
    return f"{'-':>{width}}" if value is None else f"{value:{width}.{places}f}"


def _rank(value: int | None) -> str:
    return f"{value or '-':>4}"
