"""What a collection's profile holds: every figure by which it reads, cuts, searches, orders and answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

ThresholdMode = Literal["absolute", "calibrated", "embedder"]
Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True, kw_only=True)
class Profile:
    """How a collection reads, cuts, searches, orders and answers.

    The defaults are the figures of the HR document (004); where it is silent, what is said at the field.
    """

    name: str
    #: One sentence for the admin who chooses it.
    description: str

    # Cutting; sizes in characters unless the name says otherwise. 004: DEFAULT_CHUNKING_OPTIONS.
    chunking_method: str = "smart"
    chunk_size: int = 1000
    chunk_overlap: int = 200
    minimum_chunk_size: int = 100
    #: Where the recursive chunker cuts, the first that fits.
    separators: tuple[str, ...] = ()
    #: Chunking method by the kind of document, where a collection holds several kinds.
    chunking_by_type: Pairs = ()
    professional_minimum_tokens: int = 0
    professional_maximum_tokens: int = 0
    narrative_target_tokens: int = 0
    narrative_soft_tokens: int = 0
    narrative_hard_tokens: int = 0
    narrative_overlap_words: int = 0
    narrative_overlap_tokens: int = 0
    markdown_target_words: int = 0
    markdown_maximum_words: int = 0
    markdown_overlap_words: int = 0
    generic_chunk_size: int = 0

    # What is read besides a document's text.
    #: "scanned" recognises text on every page of a PDF, "digital" takes the text that is in it, "auto" recognises it on
    #: the pages that show something and have none.
    pdf_type: Literal["auto", "scanned", "digital"] = "auto"
    excerpt_characters: int = 0
    attachment_model: str = ""
    image_description_characters: int = 0
    document_summary_characters: int = 0
    maximum_attachment_bytes: int = 0
    #: What a model notes about every chunk, a summary and keywords always with it; empty: nothing.
    chunk_tags: tuple[str, ...] = ()

    # Embedding: `provider/model@dimensions`, wanted when its provider is configured. 004: DEFAULT_EMBEDDING_MODEL. It
    # names no batch; 100 is that of 000.
    embedding_model: str = "openai/text-embedding-3-small@1536"
    embedding_batch_size: int = 100
    embedding_delay_ms: int = 0

    # Search. 004: DEFAULT_TOP_K. It searches by vector alone; keywords beside it find more on every set measured.
    search_type: Literal["vector", "hybrid"] = "hybrid"
    #: Passages wanted, before `rerank_top_n` takes the best of them.
    top_k: int = 5
    #: Candidates ordered per passage wanted.
    candidate_factor: int = 4
    #: Neighbours looked at per passage wanted, where an approximate index is used.
    neighbour_factor: int = 20
    #: The document's own least cosine similarity: of any use only with the embedder it was found with. 004:
    #: SIMILARITY_THRESHOLD = 0.7.
    similarity_threshold: float | None = 0.7
    #: "absolute" takes the value above; "calibrated" what was measured on the collection's own text, and until then,
    #: as "embedder" does, the embedder's own. Not absolute for 004: OpenAI's present models seldom reach 0.7.
    threshold_mode: ThresholdMode = "calibrated"
    # BM25 and fusion by the formula of 003, for the others too.
    bm25_k1: float = 1.5
    bm25_b: float = 0.75
    #: How Korean words are taken apart: by their endings and pairs of syllables, or by kiwipiepy, to be installed.
    korean_analyser: Literal["bigrams", "kiwi"] = "bigrams"
    fusion: Literal["weighted", "rrf"] = "weighted"
    vector_weight: float = 0.6
    keyword_weight: float = 0.4
    vector_rank_weight: float = 0.3
    keyword_rank_weight: float = 0.2
    rank_constant: int = 60
    #: Passages of one document with the same beginning are one; so many characters of it, 0: only with the same text.
    deduplication_characters: int = 0
    #: Words that stand together and named documents raise a passage; no source does this, every set measured gains.
    refine_order: bool = True
    one_result_per_document: bool = False
    maximum_per_document: int = 0  # 0: no limit
    #: Categories of documents; the last is the one of what belongs to no other.
    categories: tuple[str, ...] = ()
    #: Regular expressions, tried on the question in small letters, with the categories they stand for.
    query_patterns: tuple[tuple[str, tuple[str, ...]], ...] = ()
    #: True: categories and years are looked for among the results, not in the search.
    filters_after_search: bool = False
    #: What is searched for a kind of opinion.
    opinion_queries: Pairs = ()
    #: Metadata that a search may be narrowed by.
    metadata_filters: tuple[str, ...] = ()

    # Understanding the question, beside its language. What needs a model is off: it costs a call and can add noise.
    correct_spelling: bool = True
    #: Categories that the question's words stand for (`query_patterns`) limit the search to them.
    filter_by_category: bool = True
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

    # Order. 004: rerank-multilingual-v3.0.
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
    important_only: bool = False
    multi_signal: bool = False
    category_boosts: tuple[tuple[str, float], ...] = ()
    #: Factors for this year, last year, and so on; older ones take 1.
    year_boosts: tuple[float, ...] = ()
    quality_boost: float = 1.0
    quality_minimum_words: int = 0
    quality_maximum_words: int = 0
    collapse_near_repeats: bool = True
    #: Only passages that speak to the question are cited, and where none does, the documents have nothing on it.
    only_evidence: bool = True
    #: The passages before and after a hit go to the model with it, where they fit the budget.
    stitch_neighbours: bool = True

    # Language. 004: gpt-4o-mini translates.
    translate_queries: bool = True
    translation_provider: str = "openai"
    translation_model: str = "gpt-4o-mini"
    #: Language of every answer; empty: the question's.
    answer_language: str = ""

    # Answer. 004: gpt-4o. It gives neither temperature nor lengths: 0.2 keeps to the text, 1024 tokens are a page.
    prompt: str = "hr"
    #: Whose voice answers, and what may be said of them; empty: the assistant's.
    persona_name: str = ""
    persona_facts: str = ""
    context_tokens: int = 4000
    context_characters: int = 0  # 0: only tokens count
    context_joiner: str = "\n\n"
    context_format: str = ""
    attachment_format: str = ""
    chat_provider: str = "openai"
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
