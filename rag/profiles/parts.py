"""The parts of a profile. Each setting is declared once, with default, title, bounds, unit and source."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, cast

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, Strict, model_validator

from rag.language import N_
from rag.settings.providers import CHAT_PROVIDERS
from rag.types import ChunkingMethod

ThresholdMode = Literal["absolute", "calibrated", "embedder"]
if TYPE_CHECKING:
    ProviderName = str
else:
    ProviderName = Literal[CHAT_PROVIDERS]
LONGEST_LIST = 100
EMBEDDER_LOCKED = N_(
    "the documents were prepared for the search with this model. To use another model, move the collection to it"
)


# Types of values. Lists in JSON become tuples; every other value is used unchanged or refused.


def _without_nul(value: str) -> str:
    if "\0" in value:
        raise ValueError("NUL characters are not possible")
    return value


def _not_blank(value: str) -> str:
    if not value.strip():
        raise ValueError("a text is needed")
    return value


def _regular_expression(value: str) -> str:
    try:
        re.compile(value)
    except (re.error, OverflowError, RecursionError) as exc:
        raise ValueError(str(exc)) from exc
    return value


def _increasing(steps: tuple[tuple[int, float], ...]) -> tuple[tuple[int, float], ...]:
    days = [0, *(day for day, _ in steps)]
    if any(later <= earlier for earlier, later in pairwise(days)):
        raise ValueError("the days have to increase")
    return steps


_PAIR = Strict(False)
_LIST = (Strict(False), Field(max_length=LONGEST_LIST))
Text = Annotated[str, AfterValidator(_without_nul)]
FilledText = Annotated[Text, AfterValidator(_not_blank)]
Item = Annotated[Text, Field(max_length=1000)]
Name = Annotated[Item, AfterValidator(_not_blank)]
Factor = Annotated[float, Field(gt=0, le=100)]
Names = Annotated[tuple[Name, ...], *_LIST]
RegularExpression = Annotated[Name, AfterValidator(_regular_expression)]
# The last word in each is the setting's kind.
Words = Annotated[tuple[Item, ...], *_LIST, "words"]
Pairs = Annotated[tuple[Annotated[tuple[Name, Item], _PAIR], ...], *_LIST, "pairs"]
Patterns = Annotated[tuple[Annotated[tuple[RegularExpression, Names], _PAIR], ...], *_LIST, "patterns"]
Steps = Annotated[tuple[Annotated[tuple[int, Factor], _PAIR], ...], *_LIST, AfterValidator(_increasing), "steps"]
Boosts = Annotated[tuple[Annotated[tuple[Name, Factor], _PAIR], ...], *_LIST, "boosts"]
Factors = Annotated[tuple[Factor, ...], *_LIST, "factors"]


Applies = Literal["at once", "per call", "to new documents"]


def setting(
    default: Any,
    title: str,
    help: str = "",
    *,
    source: str,
    unit: str = "",
    bounds: tuple[float, float] | None = None,
    locked: str = "",
    applies: Applies = "at once",
    only_with: tuple[str, tuple[Any, ...]] | None = None,
) -> Any:
    """Declare a setting for profiles.

    Args:
        source: The default's origin: a source document's number with its heading, else "measured" or "chosen".
        bounds: The smallest and largest number; for a text, 0 and the largest number of characters.
        locked: Why collections cannot override it; "" if they can.
        applies: When a change takes effect: immediately, also for single calls, or for documents added later.
        only_with: Another setting, and its values for which this setting has an effect.
    """
    facts = {
        "unit": unit, "source": source, "locked": locked, "new_documents_only": applies == "to new documents",
        "per_call": applies == "per call", "only_with": only_with,
    }  # fmt: skip
    least, most = bounds or (None, None)
    limits: dict[str, Any] = {"max_length": most} if isinstance(default, str) else {"ge": least, "le": most}
    return Field(default, title=title, description=help, json_schema_extra=cast(dict[str, Any], facts), **limits)


class Part(BaseModel):
    """A group of settings. Frozen; unknown names and wrong types are rejected."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    #: The group on the settings page.
    group: ClassVar[str]
    #: A changed value only affects documents added afterwards.
    new_documents_only: ClassVar[bool] = False


# fmt: off

PROFESSIONAL = ("chunking_method", ("professional", "auto"))
NARRATIVE = ("chunking_method", ("narrative", "auto"))
MARKDOWN = ("chunking_method", ("markdown", "auto"))
#: Settings whose override is the default if it is 0 or empty. Earlier versions stored such overrides.
ZERO_IS_DEFAULT = ("professional_", "narrative_", "markdown_", "separators", "chunking_by_type")
#: A limit, and the larger limit above.
CHUNK_LIMITS = (
    ("narrative_soft_tokens", "narrative_hard_tokens"),
    ("narrative_target_tokens", "narrative_soft_tokens"),
    ("professional_minimum_tokens", "professional_maximum_tokens"),
    ("markdown_target_words", "markdown_maximum_words"),
)


class Chunking(Part):
    """Settings for splitting documents into chunks."""

    group = "Documents"
    new_documents_only = True

    chunking_method: ChunkingMethod = setting(
        "smart", "Splitting method", "How documents are split into passages.",
        source="004 DEFAULT_CHUNKING_OPTIONS")
    chunk_size: int = setting(
        1000, "Passage size",
        "The maximum length of a passage. Long passages keep more of the text around a fact; short passages are "
        "found more exactly.", unit="characters", bounds=(100, 8000), source="004 DEFAULT_CHUNKING_OPTIONS")
    chunk_overlap: int = setting(
        200, "Text repeated between passages",
        "Each passage begins with this much text from the end of the previous passage. With 0, nothing is repeated.",
        unit="characters", bounds=(0, 4000), source="004 DEFAULT_CHUNKING_OPTIONS")
    minimum_chunk_size: int = setting(
        100, "Smallest passage", "A shorter passage is joined to a neighbouring one.", unit="characters",
        bounds=(0, 4000), source="004 DEFAULT_CHUNKING_OPTIONS")
    separators: Words = setting(
        ("\n\n", "\n", ".", "!", "?", "。", "！", "？", " ", ""), "Separators",
        "The method “Separators” splits a text at the first separator in this list that the text contains.",
        source="003 1.2",
        only_with=("chunking_method", ("recursive",)))
    chunking_by_type: Pairs = setting(
        (("resume", "professional"), ("linkedin", "professional"), ("journey", "narrative"), ("github", "markdown"),
         ("generic", "generic")),
        "Splitting method for each kind of document", "How each kind of document is split.",
        source="001 Chunking Strategies", only_with=("chunking_method", ("auto",)))
    professional_minimum_tokens: int = setting(
        400, "Résumés: smallest passage", "Shorter passages are joined. A token is about four letters.", unit="tokens",
        bounds=(1, 8000), source="001 2.1", only_with=PROFESSIONAL)
    professional_maximum_tokens: int = setting(
        800, "Résumés: largest passage",
        "Longer passages are split. A token is about four letters.", unit="tokens", bounds=(1, 8000), source="001 2.1",
        only_with=PROFESSIONAL)
    narrative_target_tokens: int = setting(
        450, "Stories: target size of passages",
        "Passages are made about this long. A token is about four letters.", unit="tokens", bounds=(1, 8000),
        source="001 2.2", only_with=NARRATIVE)
    narrative_soft_tokens: int = setting(
        500, "Stories: preferred maximum size of passages",
        "A passage ends before this limit if a sentence ends nearby. A token is about four letters.",
        unit="tokens", bounds=(1, 8000), source="001 2.2", only_with=NARRATIVE)
    narrative_hard_tokens: int = setting(
        600, "Stories: largest passage", "Longer passages are split. A token is about four letters.",
        unit="tokens", bounds=(1, 8000), source="001 2.2", only_with=NARRATIVE)
    narrative_overlap_words: int = setting(
        30, "Stories: repeated text between passages, in words",
        "Each passage begins with this many words from the end of the previous passage. If the limit in tokens is "
        "smaller, that limit applies.",
        unit="words", bounds=(1, 500), source="001 2.2",
        only_with=NARRATIVE)
    narrative_overlap_tokens: int = setting(
        50, "Stories: repeated text between passages, in tokens",
        "Each passage begins with this much text from the end of the previous passage. A token is about four letters.",
        unit="tokens",
        bounds=(1, 500), source="001 2.2", only_with=NARRATIVE)
    markdown_target_words: int = setting(
        600, "Markdown: target size of passages",
        "Passages are made about this long.", unit="words", bounds=(1, 5000), source="001 2.4", only_with=MARKDOWN)
    markdown_maximum_words: int = setting(
        800, "Markdown: maximum size of passages",
        "Longer passages are split.", unit="words", bounds=(1, 5000), source="001 2.4", only_with=MARKDOWN)
    markdown_overlap_words: int = setting(
        25, "Markdown: repeated text between passages",
        "Each passage begins with this many words from the end of the previous passage.",
        unit="words", bounds=(1, 500), source="001 2.4",
        only_with=MARKDOWN)
    generic_chunk_size: int = setting(
        0, "Passage size for other kinds of document",
        "The maximum length of a passage. With 0, the passage size above is used.", unit="characters", bounds=(0, 8000),
        source="001 2.5", only_with=("chunking_method", ("generic", "auto")))

    @model_validator(mode="before")
    @classmethod
    def _complete(cls, value: Any) -> Any:
        """Replace 0 and empty lists by defaults.

        If only the larger of two limits is set, the default of the smaller limit is reduced to the larger limit if
        necessary.
        """
        if not isinstance(value, dict):
            return value
        values = {
            name: value for name, value in value.items()
            if not (name.startswith(ZERO_IS_DEFAULT) and value in (0, (), []) and value is not False)
        }
        for smaller, larger in CHUNK_LIMITS:
            limit = values.get(larger)
            if smaller not in values and isinstance(limit, int):
                values[smaller] = min(cls.model_fields[smaller].default, limit)
        return values


class Reading(Part):
    """Settings for reading documents."""

    group = "Documents"
    new_documents_only = True

    pdf_type: Literal["auto", "scanned", "digital"] = setting(
        "auto", "Kind of PDFs",
        "Which pages of a PDF go through text recognition.", source="002 4")
    pdf_paragraphs: bool = setting(
        False, "Paragraphs of PDFs",
        "If the gap between two lines is wider than usual, a new paragraph begins, as after an empty line.",
        source="001 2.2 and 2.3 split at paragraphs")
    excerpt_characters: int = setting(
        0, "Length of excerpts",
        "How much of a post's beginning is kept as its excerpt. With 0, no excerpt is kept.",
        unit="characters", bounds=(0, 2000),
        source="000 Vector Record Structure")
    attachment_model: Text = setting(
        "", "Model for attachments", "Describes pictures and summarises files.", bounds=(0, 120),
        source="000 Attachment Processing")
    image_description_characters: int = setting(
        0, "Length of picture descriptions", "The maximum length of the text that the model writes.", unit="characters",
        bounds=(0, 5000), source="000 Attachment Processing")
    document_summary_characters: int = setting(
        0, "Length of attachment summaries", "The maximum length of the text that the model writes.",
        unit="characters", bounds=(0, 5000), source="000 Attachment Processing")
    maximum_attachment_bytes: int = setting(
        0, "Largest attachment",
        "If an attachment is larger, only its name is kept. 1,000,000 bytes are 1 MB.",
        unit="bytes", bounds=(0, 100 * 1024 * 1024),
        source="000 Attachment Processing")
    chunk_tags: Words = setting(
        (), "Tags of passages", "Tags that a model writes for each passage.", source="002 4")
    tag_values: Pairs = setting(
        (), "Words allowed for each tag",
        "The words allowed for each tag, separated by commas. A model chooses a fitting word.",
        source="002 4")


class Embedding(Part):
    """Settings for embedding chunks."""

    group = "Documents"
    new_documents_only = True

    embedding_model: Text = setting(
        "openai/text-embedding-3-small@1536", "Search model", "Compares questions with the passages of the documents.",
        locked=EMBEDDER_LOCKED, source="004 DEFAULT_EMBEDDING_MODEL")
    index_titles: bool = setting(
        True, "Search titles and sections too",
        "Searches also find a passage by the title of its document, by its section and by the words of its folder.",
        source="measured: near-twin documents differ in little else; 003 1.3 embeds the passage alone")
    embedding_batch_size: int = setting(
        100, "Passages per request",
        "How many passages are sent to the search model in one request. With a higher number, documents are ready "
        "sooner.", unit="passages", bounds=(1, 2048), source="000 OpenAI Embedding")
    share_requests: bool = setting(
        False, "One request for several documents",
        "New documents from a source wait until there are enough passages to fill one request to a paid search "
        "model. The cost of these requests is counted for the collection, not for each document.",
        source="000 Batch Size")
    embedding_delay_ms: int = setting(
        0, "Pause between requests",
        "A pause keeps the number of requests within the provider's limit. 1,000 ms are one second. 0: no pause.",
        unit="ms", bounds=(0, 60_000), source="001 Embedding Generation")


RECENCY = ("recency_boost", (True,))
SIGNALS = ("multi_signal", (True,))
WEIGHTED = ("fusion", ("weighted", "raw"))


class Search(Part):
    """Settings for search: query variants, methods, and thresholds."""

    group = "Search"

    search_type: Literal["vector", "hybrid"] = setting(
        "hybrid", "Search", "How the search looks for passages.", applies="per call",
        source="measured: 004 searches by vector alone; keywords beside it find more on every set")
    top_k: int = setting(
        5, "Passages wanted",
        "How many passages an answer is written from. More passages make answers more complete, but cost more.",
        unit="passages", bounds=(1, 50), applies="per call", source="004 DEFAULT_TOP_K")
    every_result: bool = setting(
        False, "Searches without a number of passages return everything found",
        "If a search does not say how many passages it wants, it returns every passage that is similar enough or "
        "contains a word of the question, up to 1,000. Answers still use only the number set as “Passages wanted”.",
        source="003 2.2 C and 2.4")
    candidate_factor: int = setting(
        4, "Candidates per wanted passage",
        "The search first finds this many candidates for each wanted passage, then chooses the best. A higher number "
        "finds more, but takes longer.",
        bounds=(1, 50), applies="per call", source="001 Search Implementation")
    neighbour_factor: int = setting(
        20, "Passages compared per wanted passage",
        "In a large collection, the search by meaning compares this many passages for each wanted passage. A higher "
        "number finds more, but takes longer.", bounds=(1, 200),
        source="001 Search Implementation")
    threshold_mode: ThresholdMode = setting(
        "calibrated", "How similar a passage has to be",
        "A passage counts as an answer only if it is at least this similar to the question.",
        source="measured: OpenAI's present models seldom reach the 0.7 of 004")
    similarity_threshold: float | None = setting(
        0.7, "Required similarity",
        "0 means that two texts have nothing in common, and 1 means that they are the same. With a higher value, "
        "fewer passages count as an answer. Each search model needs its own value.",
        unit="similarity", bounds=(-1, 1), applies="per call", source="004 SIMILARITY_THRESHOLD",
        only_with=("threshold_mode", ("absolute",)))
    strict_threshold: bool = setting(
        False, "Leave out passages that are not similar enough",
        "Only passages above the required similarity are used, even if other passages contain words of the question.",
        applies="per call", source="004 match_document_chunks")
    bm25_k1: float = setting(
        1.5, "Weight of repeated words",
        "How strongly repeated words count in the keyword search (k1 of BM25). With 0, repetition does not count; "
        "with higher values, passages that repeat a word move up.", bounds=(0, 10), source="003 2.2")
    bm25_b: float = setting(
        0.75, "Lower rank for long passages",
        "How strongly long passages are moved down in the keyword search (b of BM25). With 0, the length does not "
        "matter; with 1, long passages move down most.",
        bounds=(0, 1), source="003 2.2")
    tokenizer: Literal["languages", "plain"] = setting(
        "languages", "Splitting into words for the keyword search",
        "How the keyword search divides a text into words.",
        applies="to new documents", source="003 2.3 B: plain; measured: by language finds more on every set")
    korean_analyser: Literal["bigrams", "kiwi"] = setting(
        "bigrams", "Splitting of Korean words",
        "How Korean words are split for the keyword search.",
        applies="to new documents", source="measured")
    fusion: Literal["weighted", "raw", "rrf"] = setting(
        "weighted", "How both searches are combined",
        "How the results by meaning and the results by keywords are combined into one list.", applies="per call",
        source="003 2.3")
    vector_weight: float = setting(
        0.6, "Weight of meaning",
        "How much the meaning of a passage decides its place, compared with the other weights. With 0, meaning does "
        "not count.", bounds=(0, 10), source="003 2.3", only_with=WEIGHTED)
    keyword_weight: float = setting(
        0.4, "Weight of keywords",
        "How much the words of a passage decide its place, compared with the other weights. With 0, words do not "
        "count.", bounds=(0, 10), source="003 2.3", only_with=WEIGHTED)
    vector_rank_weight: float = setting(
        0.3, "Weight of the place in the search by meaning",
        "How much a good place in the search by meaning counts, compared with the other weights. With 0, the place "
        "does not count.", bounds=(0, 10), source="003 2.3", only_with=WEIGHTED)
    keyword_rank_weight: float = setting(
        0.2, "Weight of the place in the search by keywords",
        "How much a good place in the search by keywords counts, compared with the other weights. With 0, the place "
        "does not count.", bounds=(0, 10), source="003 2.3", only_with=WEIGHTED)
    rank_constant: int = setting(
        60, "Effect of places in the result lists",
        "With a higher number, it matters less whether a passage is in the first or a later place of a result "
        "list.", bounds=(1, 1000), source="003 2.3")
    deduplication_characters: int = setting(
        0, "Characters compared to find duplicates",
        "Two passages of a document count as duplicates if their first characters are the same. This is the number of "
        "characters compared; 0 compares the whole text.",
        unit="characters", bounds=(0, 2000), applies="per call", source="003 2.4")
    refine_order: bool = setting(
        True, "Refine the order of passages",
        "Moves up documents that the question names, and passages in which words of the question are next to each "
        "other.",
        applies="per call", source="measured: no source does this, every set gains")
    one_result_per_document: bool = setting(
        False, "One passage per document", applies="per call", source="000 Search Configuration Options")
    maximum_per_document: int = setting(
        0, "Passages per document", "The maximum number of passages that are used from one document. 0 means no limit.",
        unit="passages", bounds=(0, 50), applies="per call", source="chosen")
    categories: Words = setting(
        (), "Categories",
        "The categories of documents. The last category is for everything else.", source="000 Categories")
    filters_after_search: bool = setting(
        False, "Filter after the search",
        "Narrows the results by category and year after the search, not during the search.",
        applies="per call", source="001 Search Implementation")
    opinion_queries: Pairs = setting(
        (), "Searches by kind of opinion", "The searches for each kind of opinion.", source="002 6")
    metadata_filters: Words = setting((), "Filters", "Metadata that can be used to narrow a search.", source="003 4.2")


class Understanding(Part):
    """Settings for understanding a question before the search.

    Settings which need a model are off by default, because each costs a call.
    """

    group = "Search"

    query_patterns: Patterns = setting(
        (), "Question patterns",
        "Patterns of words (regular expressions) and the categories that they stand for. Look-around and "
        "back-references are not allowed.",
        source="001 Query Analysis")
    correct_spelling: bool = setting(
        True, "Correct spelling",
        "If a word in the question is in no document, the most similar word from the documents is searched for "
        "instead.",
        applies="per call", source="measured")
    filter_by_category: bool = setting(
        True, "Recognise categories in questions",
        "If a word in the question stands for a category, only this category is searched.",
        applies="per call", source="001 Query Analysis")
    filter_by_year: bool = setting(
        False, "Recognise years in questions",
        "If the question names a year, only documents of this year are searched.",
        applies="per call", source="001 Query Analysis")
    filter_by_date: bool = setting(
        False, "Recognise dates in questions",
        "A time in the question, such as “since last March”, limits the search to that time.", applies="per call",
        source="000 Search Configuration Options")
    split_questions: bool = setting(
        True, "Several questions in one message",
        "If a message contains several questions, each is also searched for separately. Without a language model, "
        "each question gets a separate answer.", applies="per call", source="measured")
    expand_question: bool = setting(
        False, "Expand questions", "A language model extends the question with words that the documents are likely "
                                   "to use.",
        applies="per call", source="chosen")
    alternative_questions: int = setting(
        0, "Other wordings",
        "How many other wordings of the question a model writes. The search uses each of them too. More wordings "
        "find more, but cost more.", bounds=(0, 5), applies="per call",
        source="chosen")
    decompose_question: bool = setting(
        False, "Split questions with a model", "A model splits the question into parts.", applies="per call",
        source="chosen")


class Ranking(Part):
    """Settings for ordering hits, and how many to keep."""

    group = "Order"

    reranking: bool = setting(
        True, "Second sorting", "A second model reads the passages found and puts the best first.", applies="per call",
        source="004 Reranking")
    rerank_model: FilledText = setting(
        "rerank-multilingual-v3.0", "Model for the second sorting", bounds=(0, 120), source="004 Reranking",
        only_with=("reranking", (True,)))
    rerank_top_n: int = setting(
        0, "Passages kept after the second sorting",
        "How many of the best passages are kept after the second sorting. 0 keeps all of "
        "them.", unit="passages", bounds=(0, 50),
        applies="per call", source="000 Search Configuration Options", only_with=("reranking", (True,)))
    rerank_each_wording: bool = setting(
        True, "Second sorting in both languages",
        "Passages in the language of the question are compared with the question, and other passages are compared "
        "with its translation. This can take two calls. If this is off, there is one call, with the translation only.",
        source="measured; 004 calls the reranker once", only_with=("reranking", (True,)))
    rerank_format: Text = setting(
        "", "What the model for the second sorting reads",
        "If this is empty, the model reads the title, section and text.", bounds=(0, 500), source="000 Reranking",
        only_with=("reranking", (True,)))
    recency_boost: bool = setting(False, "Recent documents first", applies="per call", source="000 Recency Boost")
    recency_steps: Steps = setting(
        (), "Weight of documents by age",
        "Numbers of days, each with the weight of documents that are at most this many days old. A weight of 1 "
        "changes nothing; with 2, these documents count twice as much.", unit="days",
        source="000 Recency Boost", only_with=RECENCY)
    recency_older: float = setting(
        1.0, "Weight of older documents",
        "The weight of documents that are older than every number of days above. A weight of 1 changes nothing; with "
        "0.5, these documents count half as much.", bounds=(0.01, 100), source="000 Recency Boost", only_with=RECENCY)
    pinned_first: bool = setting(
        False, "Pinned and important first", applies="per call", source="000 Search Configuration Options")
    pinned_floor: float = setting(
        0.0, "Likelihood required for a pinned post to come first",
        "A pinned or important post comes first only if it is at least this likely to answer the question. 0: these "
        "posts always come first.",
        bounds=(0, 1), source="chosen: 000 lets every pinned post lead", only_with=("pinned_first", (True,)))
    important_only: bool = setting(
        False, "Important posts only", applies="per call", source="000 Search Configuration Options")
    multi_signal: bool = setting(
        False, "Also order by category, year and length",
        "Passages move up or down by the weights for category, year and length.", applies="per call",
        source="001 Re-ranking Signals")
    category_boosts: Boosts = setting(
        (), "Weight by category",
        "Names of categories, each with the weight of its documents. A weight of 1 changes nothing; with 2, these "
        "documents count twice as much.", source="001 Re-ranking Signals", only_with=SIGNALS)
    year_boosts: Factors = setting(
        (), "Weight by year",
        "The first weight is for this year, the next for last year, and so on. A weight of 1 changes nothing; with "
        "2, documents count twice as much.", source="001 Re-ranking Signals", only_with=SIGNALS)
    quality_boost: float = setting(
        1.0, "Weight of passages with the best length",
        "The weight of passages whose length is within the limits below. A weight of 1 changes nothing; with 2, "
        "these passages count twice as much.", bounds=(0.01, 100), source="001 Re-ranking Signals",
        only_with=SIGNALS)
    quality_minimum_words: int = setting(
        0, "Best passage length: minimum", "Shorter passages do not get the weight for the best length.", unit="words",
        bounds=(0, 5000), source="001 Re-ranking Signals", only_with=SIGNALS)
    quality_maximum_words: int = setting(
        0, "Best passage length: maximum", "Longer passages do not get the weight for the best length.", unit="words",
        bounds=(0, 5000), source="001 Re-ranking Signals", only_with=SIGNALS)
    collapse_near_repeats: bool = setting(
        True, "Merge near duplicates",
        "Passages with nearly the same text count as one passage.", applies="per call", source="measured")
    only_evidence: bool = setting(
        True, "Answer only from relevant passages",
        "Uses only passages that may answer the question. If there are none, the answer says that the "
        "documents have nothing about it.",
        applies="per call", source="measured")
    searches_only_evidence: bool = setting(
        True, "Searches return only relevant passages",
        "In the API and on the command line, a search without an answer returns only passages that may answer the "
        "question. If this is off, the search always returns the best passages.",
        source="000 Search Configuration Options: its search always returns the best five")
    stitch_neighbours: bool = setting(
        True, "Include text around passages",
        "Gives the model the text before and after a passage, if there is room for it.", applies="per call",
        source="measured")


class Language(Part):
    """The languages to search and to answer in."""

    group = "Language and answers"

    translate_queries: bool = setting(
        True, "Translate questions", "Translates a question into the collection's language before the search.",
        applies="per call", source="004 Translation")
    translation_provider: ProviderName = setting("openai", "Provider of translations", source="004 Translation")
    translation_model: FilledText = setting(
        "gpt-4o-mini", "Model for translations and tags", bounds=(0, 120), source="004 Translation")
    answer_language: Text = setting(
        "", "Language of answers", "If this is empty, answers are in the language of the question.", bounds=(0, 10),
        source="000 Gemini Inference")


class Answer(Part):
    """Settings for the chat model's input and the form of the answer."""

    group = "Language and answers"

    prompt: Text = setting(
        "hr", "Rules of answers", "The instructions that the profile gives to the language model (prompt).",
        locked=N_("the rules belong to the profile"),
        source="chosen")
    own_name: Text = setting(
        "", "Name of this collection for the model",
        "The name that the model uses for this collection, such as the name of your notice board.",
        bounds=(0, 200), source="000 Gemini Inference: its prompt names the board")
    own_rules: Text = setting(
        "", "Your own rules", "These rules are added to the rules for writing answers.", bounds=(0, 4000),
        source="000 Gemini Inference: its prompt is the board's own")
    persona_name: Text = setting(
        "", "Who answers", "The name of the person who answers. If this is empty, the assistant answers.",
        bounds=(0, 120), source="001 Query Processing")
    persona_facts: Text = setting("", "Facts about this person", bounds=(0, 4000), source="001 Query Processing")
    context_tokens: int = setting(
        4000, "Text given to the model",
        "The maximum amount of text from passages that the model gets. More text makes answers more complete, but "
        "costs more. A token is about four letters.", unit="tokens",
        bounds=(200, 200_000), applies="per call", source="000 Context Building")
    context_characters: int = setting(
        0, "Text given to the model, in characters", "The maximum amount of text, in characters. With 0, there is no "
                                                     "such limit.",
        unit="characters", bounds=(0, 1_000_000), source="001 Query Processing")
    source_prompt: bool = setting(
        False, "Original instructions (prompt)",
        "If the profile has original instructions (a prompt), the model gets exactly these instructions.",
        source="000 Gemini Inference")
    numbered_passages: bool = setting(
        True, "Number the passages",
        "The model cites passages by these numbers. If this is off, the sources are found by comparing the answer's "
        "words with the passages.",
        source="chosen: 000 Context Building has none")
    context_joiner: Text = setting("\n\n", "Text between passages", bounds=(0, 50), source="chosen")
    context_format: Text = setting(
        "", "Format of a passage", "If this is empty, a passage shows its title, date, page and text.",
        bounds=(0, 1000), source="000 Context Building")
    attachment_format: Text = setting("", "Format of attachments", bounds=(0, 1000), source="000 Context Building")
    chat_provider: ProviderName = setting("openai", "Provider of answers", source="004 Answer generation")
    chat_model: FilledText = setting("gpt-4o", "Model that answers", bounds=(0, 120), source="004 Answer generation")
    temperature: float = setting(
        0.2, "Temperature",
        "At 0, answers to the same question vary least; with higher values, their wording varies more.", bounds=(0, 2),
        source="chosen: 004 gives none, and 0.2 keeps to the text")
    maximum_output_tokens: int = setting(
        1024, "Longest answer",
        "The model stops writing at this length. A token is about four letters, and 1,024 tokens are about a page.",
        unit="tokens", bounds=(16, 100_000), source="chosen: 004 gives none, and 1024 tokens are a page")
    own_replies: bool = setting(
        True, "Recognise greetings and special requests",
        "Greetings, questions about the assistant, and requests for a summary, a comparison or a list are answered "
        "in their own way. If this is off, the documents are searched, as for any other question.", source="chosen")
    rewrite_follow_ups: bool = setting(
        True, "Rewrite follow-up questions",
        "Before the search, a model completes a follow-up question with words from the conversation. If this is off, "
        "the question is searched for as it is.", source="chosen")
    withdraw_unsupported: bool = setting(
        True, "Withdraw unsupported answers",
        "If the passages do not support most of an answer, the documents are quoted instead. If this is off, the "
        "answer stays, and its sentences without a source are pointed out.", source="chosen")
    follow_ups: int = setting(
        3, "Suggested questions", "How many questions are suggested below an answer. 0: none.", bounds=(0, 5),
        applies="per call", source="001 Query Processing")


# fmt: on
