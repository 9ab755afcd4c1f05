"""What is done with the best candidates once their text is there: misspelt words put right, the order refined."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from uuid import UUID

from rag.retrieval import boosts, spelling
from rag.retrieval.analysers import analyse
from rag.retrieval.evidence import passage_terms, question_words
from rag.retrieval.keywords import contextual_text, term_id
from rag.retrieval.query import SearchQuery, TermStatistics, question_terms
from rag.types import SearchResult


def corrected(
    query: SearchQuery, statistics: TermStatistics, found: Sequence[SearchResult], languages: Mapping[UUID, str]
) -> SearchQuery:
    """The query with words that stand nowhere replaced by what the passages suggest was meant."""
    if not query.correct_spelling:
        return query
    analysers = set(languages.values())
    unknown = [
        word.text
        for word in question_words(query.text, query.language, query.language or "en")
        if len(word.text) >= spelling.SHORTEST
        and not any(
            term_id(term) in statistics.chunks_by_term
            for analyser in analysers
            for term in analyse(word.text, analyser)
        )
    ]
    meant = spelling.corrections(unknown, (r.content for r in found)) if unknown else {}
    if not meant:
        return query
    pattern = re.compile(rf"\b(?:{'|'.join(map(re.escape, meant))})\b", re.IGNORECASE)
    return replace(query, text=pattern.sub(lambda match: meant.get(match.group().lower(), match.group()), query.text))


def refined(
    query: SearchQuery, statistics: TermStatistics, found: Sequence[SearchResult], languages: Mapping[UUID, str]
) -> list[SearchResult]:
    """The results ordered anew by what scores cannot see: nearness of the words, names of documents and sections."""

    def terms(text: str, result: SearchResult) -> frozenset[str]:
        return frozenset(passage_terms(text, languages[result.document_id]))

    weights = {
        language: {term: statistics.idf(term_id(term)) for term in question_terms(query.text, query.language, language)}
        for language in set(languages.values())
    }
    said = frozenset(term for of_language in weights.values() for term in of_language)
    return boosts.boosted(
        found,
        closenesses=[
            boosts.closeness(
                passage_terms(contextual_text(r.title, r.section, r.content), languages[r.document_id]),
                weights[languages[r.document_id]],
            )
            for r in found
        ],
        title_shares=boosts.naming([terms(r.title, r) for r in found], said),
        section_shares=boosts.naming([terms(r.section.split(" › ")[-1], r) for r in found], said),
    )
