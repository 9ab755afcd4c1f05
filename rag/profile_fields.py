"""What each field of a profile means in plain words, and which values it takes.

Validation and the settings page read the same table, so that what is refused is what the page says.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rag.profile_checks import Kind, ProfileField

GROUPS = ("Documents", "Search", "Order", "Language and answers")
METHODS = (
    "fixed", "smart", "semantic", "sentences", "recursive", "paged", "professional", "narrative", "markdown", "generic",
    "auto",
)  # fmt: skip
PROVIDER_NAMES = ("openai", "gemini", "openrouter", "ollama")
EMBEDDER_FIXED = "the vectors of all its documents were made with it. Create another collection"
INDEX_FIXED = "the keyword index is written with it"


def _documents(name: str, label: str, kind: Kind, **rest: Any) -> ProfileField:
    rest.setdefault("only_new_documents", True)
    return ProfileField(name=name, label=label, group="Documents", kind=kind, **rest)


def _search(name: str, label: str, kind: Kind, **rest: Any) -> ProfileField:
    return ProfileField(name=name, label=label, group="Search", kind=kind, **rest)


def _order(name: str, label: str, kind: Kind, **rest: Any) -> ProfileField:
    return ProfileField(name=name, label=label, group="Order", kind=kind, **rest)


def _answer(name: str, label: str, kind: Kind, **rest: Any) -> ProfileField:
    return ProfileField(name=name, label=label, group="Language and answers", kind=kind, **rest)


# fmt: off
_ALL = (
    _documents("chunking_method", "Chunking", "choice", choices=METHODS, help="How documents are cut into passages."),
    _documents("chunk_size", "Chunk size", "whole", minimum=100, maximum=8000, help="Characters, at most."),
    _documents("chunk_overlap", "Overlap", "whole", maximum=4000, help="Characters that neighbouring passages share."),
    _documents("minimum_chunk_size", "Smallest chunk", "whole", maximum=4000, help="Shorter ones join a neighbour."),
    _documents("separators", "Separators", "words", help="Where recursive chunking cuts; the first that fits."),
    _documents("chunking_by_type", "Chunking by kind", "pairs", help="A method for each kind of document."),
    _documents("professional_minimum_tokens", "Professional, smallest", "whole", maximum=8000, help="Tokens."),
    _documents("professional_maximum_tokens", "Professional, largest", "whole", maximum=8000, help="Tokens."),
    _documents("narrative_target_tokens", "Narrative, wanted", "whole", maximum=8000, help="Tokens."),
    _documents("narrative_soft_tokens", "Narrative, soft limit", "whole", maximum=8000, help="Tokens."),
    _documents("narrative_hard_tokens", "Narrative, hard limit", "whole", maximum=8000, help="Tokens."),
    _documents("narrative_overlap_words", "Narrative, overlap in words", "whole", maximum=500, help="At most."),
    _documents("narrative_overlap_tokens", "Narrative, overlap in tokens", "whole", maximum=500, help="At most."),
    _documents("markdown_target_words", "Markdown, wanted", "whole", maximum=5000, help="Words."),
    _documents("markdown_maximum_words", "Markdown, largest", "whole", maximum=5000, help="Words."),
    _documents("markdown_overlap_words", "Markdown, overlap", "whole", maximum=500, help="Words, at most."),
    _documents("generic_chunk_size", "Other kinds, chunk size", "whole", maximum=8000, help="Characters."),
    _documents("pdf_type", "Kind of PDFs", "choice", choices=("auto", "scanned", "digital"),
               help="Scanned: text is recognised on every page. Digital: on none. Auto: on pages without text."),
    _documents("excerpt_characters", "Excerpt", "whole", maximum=2000, help="Characters kept from the beginning."),
    _documents("attachment_model", "Model for attachments", "text", maximum=120, help="Describes and sums up."),
    _documents("image_description_characters", "Image description", "whole", maximum=5000, help="Characters, at most."),
    _documents("document_summary_characters", "Attachment summary", "whole", maximum=5000, help="Characters."),
    _documents("maximum_attachment_bytes", "Largest attachment read", "whole", maximum=100 * 1024 * 1024,
               help="Bytes. Of larger ones only the name is kept."),
    _documents("chunk_tags", "Tags of passages", "words", help="What a model notes about each passage."),
    _documents("embedding_model", "Embedder", "text", why_fixed=EMBEDDER_FIXED, help="Turns passages into vectors."),
    _documents("embedding_batch_size", "Passages per request", "whole", minimum=1, maximum=2048,
               help="Sent to the embedder at once."),
    _documents("embedding_delay_ms", "Pause between requests", "whole", maximum=60_000, help="Milliseconds."),

    _search("search_type", "Search", "choice", choices=("vector", "hybrid"),
            help="By meaning alone (vector), or by meaning and keywords (hybrid)."),
    _search("top_k", "Passages wanted", "whole", minimum=1, maximum=50, help="For one question."),
    _search("candidate_factor", "Candidates per passage", "whole", minimum=1, maximum=50,
            help="So many times the passages wanted are found and put in order."),
    _search("neighbour_factor", "Neighbours per passage", "whole", minimum=1, maximum=200,
            help="Looked at in a large collection, where the nearest vectors are found by an index."),
    _search("threshold_mode", "Threshold", "choice", choices=("absolute", "calibrated", "embedder"),
            help="Absolute takes the least similarity below, calibrated what was measured on this collection's text, "
                 "embedder the embedder's own."),
    _search("similarity_threshold", "Least similarity", "number", minimum=-1, maximum=1, may_be_none=True,
            help="Cosine, of use only with the embedder it was found with. Counts while the threshold is absolute."),
    _search("bm25_k1", "BM25 k1", "number", maximum=10, why_fixed=INDEX_FIXED, help="How much repetition counts."),
    _search("bm25_b", "BM25 b", "number", maximum=1, why_fixed=INDEX_FIXED, help="How much length counts against."),
    _search("korean_analyser", "Korean words", "choice", choices=("bigrams", "kiwi"), only_new_documents=True,
            help="Taken apart by their endings and pairs of syllables, or by the package kiwipiepy, where installed."),
    _search("fusion", "Joining both searches", "choice", choices=("weighted", "rrf"),
            help="By the weights below, or by ranks alone (rrf)."),
    _search("vector_weight", "Weight of meaning", "number", maximum=10),
    _search("keyword_weight", "Weight of keywords", "number", maximum=10),
    _search("vector_rank_weight", "Weight of the rank by meaning", "number", maximum=10),
    _search("keyword_rank_weight", "Weight of the rank by keywords", "number", maximum=10),
    _search("rank_constant", "Rank constant", "whole", minimum=1, maximum=1000, help="Larger: ranks differ less."),
    _search("deduplication_characters", "Same beginning", "whole", maximum=2000,
            help="Characters by which passages of a document count as the same; 0: by the whole text."),
    _search("refine_order", "Refine the order", "switch",
            help="Words of the question that stand together, and documents it names, raise a passage."),
    _search("one_result_per_document", "One passage per document", "switch"),
    _search("maximum_per_document", "Passages per document", "whole", maximum=50, help="At most; 0 is no limit."),
    _search("categories", "Categories", "words", help="Of documents; the last one is for all others."),
    _search("query_patterns", "Question patterns", "patterns",
            help="Regular expressions without look-around and back-references, and the categories they mean."),
    _search("filters_after_search", "Filter afterwards", "switch",
            help="Look for categories and years among the results instead of in the search."),
    _search("opinion_queries", "Searches by kind of opinion", "pairs", help="What is searched for each kind."),
    _search("metadata_filters", "Filters", "words", help="Metadata by which a search may be narrowed."),
    _search("correct_spelling", "Correct spelling", "switch", help="Words found nowhere are read as near ones."),
    _search("filter_by_category", "Categories in questions", "switch",
            help="Words of the question that mean a category limit the search to it."),
    _search("filter_by_year", "Years in questions", "switch", help="A year in the question limits the search to it."),
    _search("filter_by_date", "Dates in questions", "switch", help="“Since last March” limits the search."),
    _search("split_questions", "Two questions in one", "switch", help="Are searched for one by one as well."),
    _search("expand_question", "Expand questions", "switch", help="A model adds words that documents would use."),
    _search("alternative_questions", "Other wordings", "whole", maximum=5, help="So many, written by a model."),
    _search("decompose_question", "Take questions apart", "switch", help="By a model."),

    _order("reranking", "Rerank", "switch", help="A second model reads the candidates and puts the best first."),
    _order("rerank_model", "Reranking model", "text", minimum=1, maximum=120),
    _order("rerank_top_n", "Passages kept", "whole", maximum=50, help="The best after reranking; 0 keeps all wanted."),
    _order("rerank_format", "What the reranker reads", "text", maximum=500, help="Empty: title, section, text."),
    _order("recency_boost", "Recent documents first", "switch"),
    _order("recency_steps", "Boost by age", "steps", help="Days and the factor up to that age."),
    _order("recency_older", "Factor for older ones", "number", minimum=0.01, maximum=100),
    _order("pinned_first", "Pinned and important first", "switch"),
    _order("important_only", "Important ones only", "switch"),
    _order("multi_signal", "Order by several signals", "switch", help="Similarity times category, year and length."),
    _order("category_boosts", "Factors by category", "boosts"),
    _order("year_boosts", "Factors by year", "factors", help="This year, last year, and so on."),
    _order("quality_boost", "Factor for the best length", "number", minimum=0.01, maximum=100),
    _order("quality_minimum_words", "Best length from", "whole", maximum=5000, help="Words."),
    _order("quality_maximum_words", "Best length to", "whole", maximum=5000, help="Words."),

    _order("collapse_near_repeats", "Collapse near repeats", "switch", help="Passages that say the same count once."),
    _order("only_evidence", "Answer from evidence only", "switch",
           help="Passages that do not speak to the question are not used; where none does, it is said that the "
                "documents have nothing on it."),
    _order("stitch_neighbours", "Read around passages", "switch",
           help="The text before and after a passage goes to the model with it, where there is room."),

    _answer("translate_queries", "Translate questions", "switch",
            help="Into the collection's language before searching, when they are in another."),
    _answer("translation_provider", "Provider of translations", "choice", choices=PROVIDER_NAMES),
    _answer("translation_model", "Model for translations and tags", "text", minimum=1, maximum=120),
    _answer("answer_language", "Language of answers", "text", maximum=10, help="Empty: the question's own."),
    _answer("prompt", "Rules of answers", "text", why_fixed="they belong to the profile", help="The profile's prompt."),
    _answer("persona_name", "Who answers", "text", maximum=120, help="A person's name; empty: the assistant."),
    _answer("persona_facts", "Facts about them", "text", maximum=4000),
    _answer("context_tokens", "Context in tokens", "whole", minimum=200, maximum=200_000,
            help="How much of the passages the model reads, at most."),
    _answer("context_characters", "Context in characters", "whole", maximum=1_000_000, help="0: no such limit."),
    _answer("context_joiner", "Between passages", "text", maximum=50),
    _answer("context_format", "Form of a passage", "text", maximum=1000, help="Empty: title, date, page, text."),
    _answer("attachment_format", "Form of attachments", "text", maximum=1000),
    _answer("chat_provider", "Provider of answers", "choice", choices=PROVIDER_NAMES),
    _answer("chat_model", "Model that answers", "text", minimum=1, maximum=120),
    _answer("temperature", "Temperature", "number", maximum=2, help="0 keeps to the text; higher varies more."),
    _answer("maximum_output_tokens", "Longest answer", "whole", minimum=16, maximum=100_000, help="Tokens."),
    _answer("follow_ups", "Next questions", "whole", maximum=5, help="Suggested below an answer."),
)
# fmt: on
FIELDS: Mapping[str, ProfileField] = {field.name: field for field in _ALL}
