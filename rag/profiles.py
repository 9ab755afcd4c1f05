"""The five profiles: each a frozen value, every figure from its source document.

A collection has one profile; an admin may override single fields per collection (`with_overrides`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

from rag.errors import InvalidInput


@dataclass(frozen=True, kw_only=True)
class Profile:
    """How a collection chunks, searches, orders and answers."""

    name: str
    #: One sentence for the admin who chooses it.
    description: str

    # Chunking; sizes in characters.
    chunking_method: str = "smart"
    chunk_size: int = 1000
    chunk_overlap: int = 200
    minimum_chunk_size: int = 100

    # Embedding: `provider/model@dimensions` wanted when its key is there.
    embedding_model: str = "openai/text-embedding-3-small@1536"
    embedding_batch_size: int = 100

    # Search.
    search_type: Literal["vector", "hybrid"] = "hybrid"
    #: Passages in the context.
    top_k: int = 5
    #: Candidates fetched from each search per passage wanted.
    candidate_factor: int = 4
    #: Least cosine similarity; None leaves it to the embedder's own calibrated default.
    similarity_threshold: float | None = None
    fusion: Literal["weighted", "rrf"] = "weighted"
    vector_weight: float = 0.6
    keyword_weight: float = 0.4
    vector_rank_weight: float = 0.3
    keyword_rank_weight: float = 0.2
    one_result_per_document: bool = False
    maximum_per_document: int = 0  # 0: no limit

    # Order.
    reranking: bool = True
    rerank_model: str = "rerank-multilingual-v3.0"
    recency_boost: bool = False
    pinned_first: bool = False
    multi_signal: bool = False

    # Language.
    translate_queries: bool = True
    translation_model: str = "gpt-4o-mini"

    # Answer.
    prompt: str = "hr"
    context_tokens: int = 4000
    chat_model: str = "gpt-4o"
    temperature: float = 0.2
    maximum_output_tokens: int = 1024
    follow_ups: int = 3


HR = Profile(
    name="hr",
    description="Company policies and handbooks as PDFs, asked in any of twelve languages.",
)

NOTICES = Profile(
    name="notices",
    description="A notice board: recent, pinned and important posts come first; answers in Korean.",
    chunking_method="sentences",
    chunk_size=1500,
    embedding_model="openai/text-embedding-3-large@3072",
    search_type="vector",
    candidate_factor=3,
    one_result_per_document=True,
    rerank_model="rerank-v3.5",
    recency_boost=True,
    pinned_first=True,
    translate_queries=False,
    prompt="notices",
    chat_model="gemini-flash-latest",
    temperature=0.3,
    maximum_output_tokens=2048,
)

PORTFOLIO = Profile(
    name="portfolio",
    description="One person's résumé, profile, journey and repositories; answers in the first person.",
    chunking_method="professional",
    chunk_overlap=0,
    embedding_batch_size=50,
    search_type="vector",
    candidate_factor=4,
    reranking=False,
    multi_signal=True,
    translate_queries=False,
    prompt="portfolio",
    context_tokens=2000,
    chat_model="meta-llama/llama-3.1-8b-instruct:free",
)

LEGAL = Profile(
    name="legal",
    description="Sentencing guidelines and case digests, tagged by topic and offence, for drafting opinions.",
    chunking_method="paged",
    embedding_model="gemini/gemini-embedding-001@768",
    search_type="vector",
    reranking=False,
    translate_queries=False,
    prompt="legal",
    chat_model="gemini-flash-latest",
)

CIVIL = Profile(
    name="civil",
    description="Civil-service documents searched by meaning and by keyword with a local model.",
    chunking_method="recursive",
    chunk_size=1200,
    embedding_model="ollama/bge-m3@1024",
    similarity_threshold=0.2,
    reranking=False,
    translate_queries=False,
    prompt="civil",
)

PROFILES: Mapping[str, Profile] = {p.name: p for p in (HR, NOTICES, PORTFOLIO, LEGAL, CIVIL)}


def profile_by_name(name: str) -> Profile:
    """The profile of that name. Raises `InvalidInput` naming those there are."""
    try:
        return PROFILES[name]
    except KeyError:
        raise InvalidInput(f"There is no profile {name!r}; choose one of {', '.join(PROFILES)}.") from None


def with_overrides(profile: Profile, overrides: Mapping[str, Any]) -> Profile:
    """The profile with single fields replaced. Raises `InvalidInput` for what does not fit."""
    known = {f.name: f for f in fields(Profile)}
    for name, value in overrides.items():
        if name not in known or name in ("name", "description"):
            raise InvalidInput(f"A profile has no setting {name!r}.")
        present = getattr(profile, name)
        kinds: tuple[type, ...] = (int, float) if isinstance(present, float) or present is None else (type(present),)
        fits = isinstance(value, kinds) and (isinstance(present, bool) or not isinstance(value, bool))
        if not fits and not (name == "similarity_threshold" and value is None):
            raise InvalidInput(f"{name} cannot be {value!r}: it has to be like {present!r}.")
    changed = replace(profile, **overrides)
    if changed.chunk_overlap >= changed.chunk_size:
        raise InvalidInput("The overlap of chunks has to be smaller than their size.")
    if changed.top_k < 1 or changed.candidate_factor < 1:
        raise InvalidInput("At least one passage has to be searched for.")
    return changed
