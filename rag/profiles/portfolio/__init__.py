"""Profile for a person's portfolio, answered in the first person. Source 001 in docs/sources.md.

`document_types.py` recognises résumés, LinkedIn profiles, journeys (which look back on a year) and repositories.
`chunkers.py` splits each by structure.
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
    Search,
    Understanding,
)

PORTFOLIO = Profile(
    name="portfolio",
    title="Portfolio",
    description="One person's résumé, profile, journey and repositories; answers in the first person.",
    is_personal=True,
    api_extras=("follow_ups", "source_names"),
    chunking=Chunking(
        # "Chunking Strategies"; 1000 characters without overlap for documents of unknown kind.
        chunking_method="auto",  # professional, narrative, markdown or generic, by kind of document
        chunk_size=1000,
        chunk_overlap=0,
        minimum_chunk_size=0,
        chunking_by_type=(
            ("resume", "professional"),
            ("linkedin", "professional"),
            ("journey", "narrative"),
            ("github", "markdown"),
            ("generic", "generic"),
        ),
        professional_minimum_tokens=400,
        professional_maximum_tokens=800,
        narrative_target_tokens=450,
        narrative_soft_tokens=500,
        narrative_hard_tokens=600,
        narrative_overlap_words=30,
        narrative_overlap_tokens=50,
        markdown_target_words=600,
        markdown_maximum_words=800,
        markdown_overlap_words=25,
        generic_chunk_size=1000,
    ),
    embedding=Embedding(
        # "Embedding Generation"
        embedding_model="openai/text-embedding-3-small@1536",
        embedding_batch_size=50,
        embedding_delay_ms=100,
    ),
    search=Search(
        # "Search Implementation": limit 5, limit × 4 results of limit × 20 candidates, no threshold; then the filters.
        search_type="vector",
        top_k=5,
        candidate_factor=4,
        neighbour_factor=20,
        similarity_threshold=None,
        threshold_mode="embedder",
        categories=("resume", "linkedin", "journey", "github", "generic"),
        filters_after_search=True,
        metadata_filters=("category", "year"),
    ),
    understanding=Understanding(
        # "Query Analysis"
        query_patterns=(
            (r"work|job|experience|role|position|company", ("resume", "linkedin")),
            (r"decision|learn|journey|why|story|approach", ("journey",)),
            (r"skill|technology|tool|tech stack", ("resume", "linkedin")),
            (r"project|build|built|created|developed|code|github", ("github", "resume", "linkedin")),
            (r"education|school|university|degree", ("resume", "linkedin")),
        ),
        filter_by_year=True,
        split_questions=False,  # "Query Transformation: None"
    ),
    ranking=Ranking(
        stitch_neighbours=False,  # passages are whole positions, projects and chapters
        # "Re-ranking Signals"
        reranking=False,
        multi_signal=True,
        category_boosts=(("resume", 1.3), ("linkedin", 1.25), ("journey", 1.2), ("github", 1.15)),
        year_boosts=(1.3, 1.2, 1.1),
        quality_boost=1.1,
        quality_minimum_words=100,
        quality_maximum_words=300,
        searches_only_evidence=False,
    ),
    language=Language(
        translate_queries=False,
    ),
    answer=Answer(
        # "Query Processing Flow", 7 to 9; the answer's length is not given. 8000 characters are at most 8000 tokens.
        prompt="portfolio",
        context_tokens=8000,
        context_characters=8000,
        context_joiner="\n\n---\n\n",
        chat_provider="openrouter",
        chat_model="meta-llama/llama-3.1-8b-instruct:free",
        follow_ups=3,
    ),
)

#: Settings to follow the source to the letter.
AS_THE_SOURCE: Mapping[str, Any] = {
    **WITHOUT_OUR_STEPS,
    "pdf_paragraphs": True,
    "source_prompt": True,
    "numbered_passages": False,
    "context_format": "{content}",
}
