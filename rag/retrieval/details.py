"""What was done, as the log keeps it (source 004, "RAG Details Logging")."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from rag.profile import Profile
from rag.retrieval.evidence import Judged
from rag.retrieval.search import Found
from rag.types import (
    Charge,
    CostDetails,
    EvidenceDetails,
    Operation,
    RawResultDetails,
    RerankedResultDetails,
    SearchResult,
)

PREVIEW_CHARACTERS = 200


def raw_results_from(results: Sequence[SearchResult]) -> list[RawResultDetails]:
    """Each passage found with its cosine similarity, 0 where it has none, and the beginning of its text."""
    return [
        RawResultDetails(
            chunk_id=str(r.chunk_id),
            document_id=str(r.document_id),
            similarity=round(r.similarity or 0.0, 6),
            preview=" ".join(r.content.split())[:PREVIEW_CHARACTERS],
        )
        for r in results
    ]


def reranked_from(results: Sequence[SearchResult]) -> list[RerankedResultDetails]:
    """The passages in the reranker's order with their rank before; ranks count from 1."""
    return [
        RerankedResultDetails(
            chunk_id=str(r.chunk_id), original_rank=r.original_rank, new_rank=rank, score=r.rerank_score or 0.0
        )
        for rank, r in enumerate(results, 1)
    ]


def costs_from(charges: Sequence[Charge]) -> CostDetails:
    """US dollars by operation; a call without a known price adds nothing."""

    def total(*operations: Operation) -> float:
        return float(sum((c.cost for c in charges if c.operation in operations and c.cost is not None), Decimal(0)))

    return CostDetails(
        embedding=total("embedding"),
        reranking=total("reranking"),
        translation=total("translation"),
        rewriting=total("chat") if any(c.operation == "chat" for c in charges) else None,
        total=total("embedding", "reranking", "translation", "chat"),
    )


def search_said(profile: Profile, found: Found, *, asked: str, limits: str, has_vectors: bool) -> str:
    """How it was searched, within which limits, and what came of it."""
    if not has_vectors:
        how = "keywords"
    elif profile.search.search_type == "vector":
        how = "meaning"
    else:
        how = f"meaning and keywords, {'ranks' if profile.search.fusion == 'rrf' else 'weighted scores'} added"
        how += ", then refined" if profile.search.refine_order else ""
    said = [f"{len(found.results)} passages by {how}"]
    if limits:
        said.append(f"within {limits}")
    if found.text != asked:
        said.append(f"spelling put right: {' '.join(found.text.split())}")
    if found.repeats:
        said.append(f"{found.repeats} repeats left out")
    return "; ".join(said)


def left_out_said(*, near_repeats: int, others: int, most: int) -> str:
    """What was left out of the results before they were judged; empty for nothing."""
    said = []
    if near_repeats:
        said.append(f"{near_repeats} near repeats left out")
    if others:
        said.append(f"{others} left out, at most {most} of a document")
    return "; ".join(said)


def evidence_said(
    judged: Sequence[Judged], speaking: Sequence[Judged], evidence: EvidenceDetails, *, is_asked_for: bool
) -> str:
    """How many passages may be cited, and why no others."""
    if not judged:
        return ""
    if not is_asked_for:
        return f"not asked for: all {len(judged)} passages may be cited"
    said = f"{len(speaking)} of {len(judged)} passages speak to the question"
    return f"{said}; {evidence.outcome}, {evidence.probability:.2f} that the best answers it"
