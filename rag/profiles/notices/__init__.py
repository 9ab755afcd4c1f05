"""Profile for notice boards: posts in a table, with attachments, newest first. Source 000 in docs/sources.md.

`table.py` and `rest.py` fetch rows, `posts.py` parses them, and `reading.py` converts a post to pages. `table.py` also
processes change events. `sources.py` offers the table and the sample board.
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
    Understanding,
)

NOTICES = Profile(
    name="notices",
    title="Notice board",
    description="A notice board: recent, pinned and important posts come first; answers in Korean.",
    content="posts",
    readers={"application/vnd.hr-assistant.post+json": "rag.profiles.notices.reading:PostReader"},
    chunking=Chunking(
        # "Chunking Configuration"; cut at . ? ! and line breaks.
        chunking_method="sentences",
        chunk_size=1500,
        chunk_overlap=200,
        minimum_chunk_size=100,
    ),
    reading=Reading(
        # "Vector Record Structure" and "Attachment Processing"
        excerpt_characters=200,
        attachment_model="gemini-flash-latest",
        image_description_characters=500,
        document_summary_characters=800,
        maximum_attachment_bytes=2 * 1024 * 1024,
    ),
    embedding=Embedding(
        # "OpenAI Embedding"
        embedding_model="openai/text-embedding-3-large@3072",
        embedding_batch_size=100,
    ),
    search=Search(
        # "Search Configuration Options": topK 10, three times as many fetched, one per post, the best five kept
        search_type="vector",
        top_k=10,
        candidate_factor=3,
        similarity_threshold=None,
        threshold_mode="embedder",
        one_result_per_document=True,
        categories=("notice-md", "notice-bmmd", "hr-exam", "sales-db-notice", "general"),
    ),
    understanding=Understanding(
        filter_by_date=True,
    ),
    ranking=Ranking(
        # "Search Configuration Options" and "Recency Boost"
        rerank_model="rerank-v3.5",
        rerank_top_n=5,
        rerank_format="{title}\n\n{content}",
        recency_boost=True,
        recency_steps=((7, 1.5), (30, 1.3), (90, 1.1), (365, 1.0)),
        recency_older=0.9,
        pinned_first=True,
        # A pinned post about something else would lead every answer; below this a post is no evidence at all.
        pinned_floor=0.26,
        searches_only_evidence=False,
    ),
    language=Language(
        translate_queries=False,
        translation_provider="gemini",
        translation_model="gemini-flash-latest",
        answer_language="ko",
    ),
    answer=Answer(
        # "Context Building" and "Gemini Inference"
        prompt="notices",
        context_tokens=4000,
        context_joiner="\n",
        context_format="---\n제목: {title}\n카테고리: {category}\n날짜: {date}\n{marks}\n\n내용:\n{content}\n---",
        attachment_format="--- 첨부파일 정보 ---\n[{title}]\n- {kind}: {name}\n  설명: {description}",
        chat_provider="gemini",
        chat_model="gemini-flash-latest",
        temperature=0.3,
        maximum_output_tokens=2048,
        follow_ups=0,
    ),
)

#: Settings to follow the source to the letter.
AS_THE_SOURCE: Mapping[str, Any] = {
    **WITHOUT_OUR_STEPS,
    "filter_by_category": False,
    "filter_by_date": False,
    "share_requests": True,
    "pinned_floor": 0.0,
    "source_prompt": True,
    "numbered_passages": False,
}
