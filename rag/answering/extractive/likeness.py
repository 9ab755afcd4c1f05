"""Compare sentences with questions by meaning."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from rag.errors import RagError
from rag.ingestion.meaning import parts_of
from rag.providers import Embedder
from rag.providers.processor import waiting
from rag.retrieval import meaning
from rag.types import ContextResponse

#: Compares each question with each sentence by meaning, by the cosine or any measure growing with similarity.
#: Returns a list per question with a value per sentence.
Similarities = Callable[[Sequence[str], Sequence[str]], Sequence[Sequence[float]]]


class ComparedPart(NamedTuple):
    """A passage's part, with the cosine similarity to the question."""

    text: str
    cosine: float


def compared_parts(context: ContextResponse) -> dict[int, list[ComparedPart]]:
    """Return each passage's parts with their cosine similarities to the question, by passage number.

    The search has already compared the parts; no model is called. The result is empty if any passage has no vectors
    yet, because the passages with vectors would otherwise be preferred without reason.
    """
    meanings = {result.chunk_id: result.part_meanings for result in context.results}
    if not all(meanings.get(citation.chunk_id) for citation in context.citations):
        return {}
    parts_by_number = {}
    for citation in context.citations:
        cosines, parts = meanings.get(citation.chunk_id, ()), parts_of(citation.passage)
        # Leave out a passage with a part unreadable for the model: the other parts cannot be ranked without this part.
        if cosines and len(cosines) == len(parts):
            parts_by_number[citation.number] = list(map(ComparedPart, parts, cosines))
    return parts_by_number


def likeness_by(embedder: Embedder) -> Similarities:
    """Return a function which scores sentences by similar meaning to a question.

    If the embedding model fails, all scores are 0.
    """

    def likeness(questions: Sequence[str], sentences: Sequence[str]) -> Sequence[Sequence[float]]:
        try:
            # Both sides are embedded as questions: the model's authors advise this for texts of the same kind.
            with waiting():
                vectors = embedder.embed([*questions, *sentences], purpose="query").vectors
        except RagError:
            return [[0.0] * len(sentences) for _ in questions]
        question_vectors, sentence_vectors = vectors[: len(questions)], vectors[len(questions) :]
        return [[float(value) for value in sentence_vectors @ vector] for vector in question_vectors]

    return likeness


def with_cache(compare: Similarities) -> Similarities:
    """Return `compare` with a cache by question and sentence."""
    cache: dict[tuple[str, str], float] = {}

    def likeness(questions: Sequence[str], sentences: Sequence[str]) -> Sequence[Sequence[float]]:
        new = [s for s in dict.fromkeys(sentences) if any((q, s) not in cache for q in questions)]
        for question, values in zip(questions, compare(questions, new) if new else [], strict=False):
            cache.update(zip(((question, s) for s in new), values, strict=True))
        return [[cache[question, sentence] for sentence in sentences] for question in questions]

    return likeness


def without_place(compare: Similarities) -> Similarities:
    """Return `compare` with country names removed from the questions, because sentences seldom name the country."""
    return lambda questions, sentences: compare([meaning.without_place(question) for question in questions], sentences)
