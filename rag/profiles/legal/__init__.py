"""Profile for legal references: guidelines and case digests for drafting opinions. Source 002 in docs/sources.md.

`references.py` ingests and tags the documents. `opinions.py` finds chunks for an opinion and drafts the text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rag.profiles.profile import (
    WITHOUT_OUR_STEPS,
    Answer,
    Chunking,
    Embedding,
    Language,
    Profile,
    Ranking,
    Reading,
    Search,
)

LEGAL = Profile(
    name="legal",
    title="Legal references",
    description="Sentencing guidelines and case digests, tagged by topic and offence, for drafting opinions.",
    holds_references=True,
    chunking=Chunking(
        # 4 and 7.1: by pages if they are known; sizes are not given. pdfType is `scanned` by default.
        chunking_method="paged",
    ),
    reading=Reading(
        pdf_type="scanned",
        chunk_tags=("topic", "crime_type", "summary", "keywords"),
        tag_values=(("topic", "양형기준, 판례, 증거법"), ("crime_type", "절도, 사기")),
    ),
    embedding=Embedding(
        # 5: vector(768), the model already paid for
        embedding_model="gemini/gemini-embedding-001@768",
    ),
    search=Search(
        # 6 and 10: "상위 5개"; no threshold, no second look
        search_type="vector",
        top_k=5,
        similarity_threshold=None,
        threshold_mode="embedder",
        opinion_queries=(
            ("양형의견서", "양형기준 양형 참작 사유 선고유예 집행유예"),
            ("무죄주장", "무죄 판례 증명력 합리적 의심"),
        ),
        metadata_filters=("topic", "crime_type"),
    ),
    ranking=Ranking(
        reranking=False,
        stitch_neighbours=False,  # a reference block quotes whole tagged passages
    ),
    language=Language(
        translate_queries=False,
        translation_provider="gemini",
        translation_model="gemini-flash-latest",
        answer_language="ko",
    ),
    answer=Answer(
        prompt="legal",
        context_joiner="",
        context_format="【{topic} - {crime_type}】\n{content}\n\n",
        chat_provider="gemini",
        chat_model="gemini-flash-latest",
        follow_ups=0,
    ),
)

#: Settings to follow the source to the letter.
AS_THE_SOURCE: Mapping[str, Any] = WITHOUT_OUR_STEPS
