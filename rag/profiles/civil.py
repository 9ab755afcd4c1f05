"""Profile for civil documents: keyword and vector search with a local model. Source 003 in docs/sources.md."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rag.profiles.profile import WITHOUT_OUR_STEPS, Answer, Chunking, Embedding, Language, Profile, Ranking, Search

CIVIL = Profile(
    name="civil",
    title="Civil documents",
    description="Civil-service documents searched by meaning and by keyword with a local model.",
    chunking=Chunking(
        # 1.2: RecursiveCharacterTextSplitter, which knows no least size
        chunking_method="recursive",
        chunk_size=1200,
        chunk_overlap=200,
        minimum_chunk_size=0,
        separators=("\n\n", "\n", ".", "!", "?", "。", "！", "？", " ", ""),
    ),
    embedding=Embedding(
        # 1.3
        embedding_model="ollama/bge-m3@1024",
        embedding_batch_size=32,
    ),
    search=Search(
        # 2.2 C, "> 0.2", found with this model; 2.3 and 2.4 are the defaults
        similarity_threshold=0.2,
        threshold_mode="absolute",
        bm25_k1=1.5,
        bm25_b=0.75,
        vector_weight=0.6,
        keyword_weight=0.4,
        vector_rank_weight=0.3,
        keyword_rank_weight=0.2,
        rank_constant=60,
        deduplication_characters=100,
        refine_order=False,  # its four terms decide the order
        # 4.2: "부서별 필터링"
        metadata_filters=("department",),
    ),
    ranking=Ranking(
        # 5: a reranker is only planned
        reranking=False,
    ),
    language=Language(
        translate_queries=False,
    ),
    answer=Answer(
        prompt="civil",
    ),
)

#: Settings to follow the source to the letter.
AS_THE_SOURCE: Mapping[str, Any] = {
    **WITHOUT_OUR_STEPS,
    "fusion": "raw",
    "every_result": True,
    "tokenizer": "plain",
}
