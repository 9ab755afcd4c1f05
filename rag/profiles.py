"""The five profiles: each a frozen value, with the source document of its figures.

A collection has one profile, and an administrator may override single settings of it (`profile_of`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rag.errors import InvalidInput
from rag.profile import (
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
from rag.types import Collection

# Source 004, "RAG System Documentation": the defaults above are its figures.
HR = Profile(
    name="hr",
    title="HR documents",
    description="Company policies and handbooks as PDFs, asked in any of twelve languages.",
)

# Source 000, "RAG System Architecture Documentation".
NOTICES = Profile(
    name="notices",
    title="Notice board",
    description="A notice board: recent, pinned and important posts come first; answers in Korean.",
    content="posts",
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

# Source 001, "RAG System Architecture & Implementation Guide".
PORTFOLIO = Profile(
    name="portfolio",
    title="Portfolio",
    description="One person's résumé, profile, journey and repositories; answers in the first person.",
    is_personal=True,
    api_extras=("follow_ups", "source_names"),
    chunking=Chunking(
        # "Chunking Strategies"; 1000 characters without overlap for documents of no known kind.
        chunking_method="auto",  # professional, narrative, markdown or generic, by the kind of document
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
        stitch_neighbours=False,  # its passages are whole positions, projects and chapters
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
        # "Query Processing Flow", 7 to 9; it gives no length of the answer. 8000 characters are at most as many tokens.
        prompt="portfolio",
        context_tokens=8000,
        context_characters=8000,
        context_joiner="\n\n---\n\n",
        chat_provider="openrouter",
        chat_model="meta-llama/llama-3.1-8b-instruct:free",
        follow_ups=3,
    ),
)

# Source 002, "참고자료 RAG 설계".
LEGAL = Profile(
    name="legal",
    title="Legal references",
    description="Sentencing guidelines and case digests, tagged by topic and offence, for drafting opinions.",
    holds_references=True,
    chunking=Chunking(
        # 4 and 7.1: by pages where they are known; sizes are not given. pdfType is `scanned` unless said otherwise.
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
        stitch_neighbours=False,  # a reference block quotes passages as they were tagged
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

# Source 003, "RAG 시스템 전체 프로세스".
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
        # 2.2 C, "> 0.2", found with this very model; 2.3 and 2.4 as the defaults above
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
        refine_order=False,  # its own four terms are the order
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

PROFILES: Mapping[str, Profile] = {profile.name: profile for profile in (HR, NOTICES, PORTFOLIO, LEGAL, CIVIL)}
#: The profile of a first collection, and of questions for which nobody chose a collection.
DEFAULT = HR
#: The constants of source 004 by its names. The chunking constants are arguments of `chunk_text`.
DEFAULT_TOP_K = HR.search.top_k
SIMILARITY_THRESHOLD = 0.7
DEFAULT_CHUNK_SIZE = HR.chunking.chunk_size
DEFAULT_OVERLAP = HR.chunking.chunk_overlap
DEFAULT_CHUNKING_OPTIONS: Mapping[str, Any] = {
    "method": HR.chunking.chunking_method,
    "chunk_size": DEFAULT_CHUNK_SIZE,
    "overlap": DEFAULT_OVERLAP,
    "minimum_chunk_size": HR.chunking.minimum_chunk_size,
}
DEFAULT_EMBEDDING_MODEL = DEFAULT_MODEL = HR.embedding.embedding_model.partition("/")[2].partition("@")[0]
#: Steps that no document describes.
OUR_OWN_STEPS: Mapping[str, Any] = {
    "index_titles": False,
    "correct_spelling": False,
    "split_questions": False,
    "refine_order": False,
    "collapse_near_repeats": False,
    "only_evidence": False,
    "stitch_neighbours": False,
    "own_replies": False,
    "rewrite_follow_ups": False,
    "withdraw_unsupported": False,
}
#: What a collection sets to do exactly as its profile's document says, where the profile does otherwise. Each of these
#: was measured to find less, or to answer where nothing is known.
AS_THE_SOURCE: Mapping[str, Mapping[str, Any]] = {
    "hr": {
        **OUR_OWN_STEPS,
        "search_type": "vector",
        "threshold_mode": "absolute",
        "similarity_threshold": SIMILARITY_THRESHOLD,
        "strict_threshold": True,
        "rerank_each_wording": False,
    },
    "notices": {
        **OUR_OWN_STEPS,
        "filter_by_category": False,
        "filter_by_date": False,
        "share_requests": True,
        "pinned_floor": 0.0,
        "source_prompt": True,
        "numbered_passages": False,
    },
    "portfolio": {
        **OUR_OWN_STEPS,
        "pdf_paragraphs": True,
        "source_prompt": True,
        "numbered_passages": False,
        "context_format": "{content}",
    },
    "legal": OUR_OWN_STEPS,
    "civil": {
        **OUR_OWN_STEPS,
        "fusion": "raw",
        "every_result": True,
        "tokenizer": "plain",
    },
}
#: Names of the profiles whose collections hold posts, and reference documents. The first is that of a new one.
BOARD_PROFILES = tuple(name for name, profile in PROFILES.items() if profile.content == "posts")
REFERENCE_PROFILES = tuple(name for name, profile in PROFILES.items() if profile.holds_references)


def profile_by_name(name: str) -> Profile:
    """Return the profile with this name.

    Raises:
        InvalidInput: there is none; the sentence names the others.
    """
    try:
        return PROFILES[name]
    except KeyError:
        raise InvalidInput(f"There is no profile {name!r}; choose one of {', '.join(PROFILES)}.") from None


def profile_of(collection: Collection) -> Profile:
    """Return a collection's profile with the values its administrators chose.

    Raises:
        InvalidInput: an earlier version stored a value that no setting takes.
    """
    return profile_by_name(collection.profile).with_overrides(collection.overrides)


def holds_posts(collection: Collection) -> bool:
    """Return whether a collection is a board: it holds posts instead of documents."""
    return collection.profile in BOARD_PROFILES
