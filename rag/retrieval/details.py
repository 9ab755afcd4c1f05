"""What was done, as the log keeps it (source 004, "RAG Details Logging")."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from rag.types import Charge, CostDetails, Operation, RawResultDetails, RerankedResultDetails, SearchResult

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
        total=total("embedding", "reranking", "translation"),
    )
