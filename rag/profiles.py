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

    # Tags of every chunk, besides summary and keywords; without fields, only the document is tagged.
    chunk_tags: tuple[str, ...] = ()

    # Search.
    search_type: Literal["vector", "hybrid"] = "hybrid"
    #: Passages in the context.
    top_k: int = 5
    #: Candidates fetched from each search per passage wanted.
    candidate_factor: int = 4
    #: Least cosine similarity; None leaves it to the embedder's own calibrated default.
    similarity_threshold: float | None = None
    #: "absolute" takes the value above; "calibrated" what was measured on the collection's own text, and until then,
    #: as "embedder" does, the embedder's own.
    threshold_mode: Literal["absolute", "calibrated", "embedder"] = "calibrated"
    fusion: Literal["weighted", "rrf"] = "weighted"
    vector_weight: float = 0.6
    keyword_weight: float = 0.4
    vector_rank_weight: float = 0.3
    keyword_rank_weight: float = 0.2
    one_result_per_document: bool = False
    maximum_per_document: int = 0  # 0: no limit

    # Understanding the question, beside its language. What needs a model is off: it costs a call and can add noise.
    correct_spelling: bool = True
    #: Regular expressions, tried on the question in small letters, with the categories they stand for.
    query_patterns: tuple[tuple[str, tuple[str, ...]], ...] = ()
    #: Years named in the question limit the search to documents of those years.
    filter_by_year: bool = False
    #: "Since last March" limits the search to documents from then on.
    filter_by_date: bool = False
    #: Two questions in one sentence are searched for one by one as well; by their words, without a model.
    split_questions: bool = True
    #: A model adds words that documents would use.
    expand_question: bool = False
    #: A model puts the question in so many other ways.
    alternative_questions: int = 0
    #: A model takes the question apart.
    decompose_question: bool = False

    # Order.
    reranking: bool = True
    rerank_model: str = "rerank-multilingual-v3.0"
    #: Best passages kept after reranking; 0: all that are wanted.
    rerank_top_n: int = 0
    #: What the reranker reads of a passage; empty: what is indexed of it, title and section in front.
    rerank_format: str = ""
    recency_boost: bool = False
    #: Days and factor, the youngest first; older ones take `recency_older`.
    recency_steps: tuple[tuple[int, float], ...] = ()
    recency_older: float = 1.0
    pinned_first: bool = False
    multi_signal: bool = False
    category_boosts: tuple[tuple[str, float], ...] = ()
    #: Factors for this year, last year, and so on; older ones take 1.
    year_boosts: tuple[float, ...] = ()
    quality_boost: float = 1.0
    quality_minimum_words: int = 0
    quality_maximum_words: int = 0
    collapse_near_repeats: bool = True
    #: The passages before and after a hit go to the model with it, where they fit the budget.
    stitch_neighbours: bool = True

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

    def passages(self, top_k: int | None = None) -> int:
        """Passages in the context when `top_k` are wanted: after reranking the best `rerank_top_n` of them."""
        wanted = top_k or self.top_k
        return min(wanted, self.rerank_top_n) if self.reranking and self.rerank_top_n else wanted

    def threshold(self, embedder_default: float, calibrated: float | None = None) -> float:
        """The least cosine similarity that counts, by the embedder's default and what was measured, if it was."""
        if self.threshold_mode == "absolute" and self.similarity_threshold is not None:
            return self.similarity_threshold
        if self.threshold_mode == "calibrated" and calibrated is not None:
            return calibrated
        return embedder_default


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
    top_k=10,
    candidate_factor=3,
    one_result_per_document=True,
    rerank_model="rerank-v3.5",
    rerank_top_n=5,
    rerank_format="{title}\n\n{content}",
    filter_by_date=True,
    recency_boost=True,
    recency_steps=((7, 1.5), (30, 1.3), (90, 1.1), (365, 1.0)),
    recency_older=0.9,
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
    chunking_method="auto",  # professional, narrative, markdown or generic, by the kind of document
    chunk_overlap=0,
    embedding_batch_size=50,
    search_type="vector",
    candidate_factor=4,
    reranking=False,
    multi_signal=True,
    category_boosts=(("resume", 1.3), ("linkedin", 1.25), ("journey", 1.2), ("github", 1.15)),
    year_boosts=(1.3, 1.2, 1.1),
    quality_boost=1.1,
    quality_minimum_words=100,
    quality_maximum_words=300,
    query_patterns=(
        ("work|job|experience|role|position|company", ("resume", "linkedin")),
        ("decision|learn|journey|why|story|approach", ("journey",)),
        ("skill|technology|tool|tech stack", ("resume", "linkedin")),
        ("project|build|built|created|developed|code|github", ("github", "resume", "linkedin")),
        ("education|school|university|degree", ("resume", "linkedin")),
    ),
    filter_by_year=True,
    split_questions=False,  # "Query Transformation: None"
    stitch_neighbours=False,  # its passages are whole positions, projects and chapters
    translate_queries=False,
    prompt="portfolio",
    context_tokens=2000,
    chat_model="meta-llama/llama-3.1-8b-instruct:free",
)

LEGAL = Profile(
    name="legal",
    description="Sentencing guidelines and case digests, tagged by topic and offence, for drafting opinions.",
    chunking_method="paged",
    chunk_tags=("topic", "crime_type"),
    embedding_model="gemini/gemini-embedding-001@768",
    search_type="vector",
    reranking=False,
    stitch_neighbours=False,  # a reference block quotes passages as they were tagged
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
    threshold_mode="absolute",
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
    # JSON knows no tuples.
    overrides = {name: tuple(value) if isinstance(value, list) else value for name, value in overrides.items()}
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
