"""Print the quotations for every second scripted conversation, by words alone, with all scores on the way.

Run in processes of its own by `test_same_everywhere.py`.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from uuid import UUID

from benchmarks.conversations import DOCUMENTS, conversations
from rag.answering import extractive
from rag.answering.carried_over import carry_over
from rag.retrieval.bm25.index import packed_terms, term_id, tokenize, unpacked_terms
from rag.retrieval.proximity import closenesses, naming
from rag.retrieval.search_query import question_terms
from rag.text.language_detection import detect_language
from rag.types import Citation


def passages() -> list[Citation]:
    files = sorted(DOCUMENTS.glob("*.md"))
    return [
        Citation(
            number=number,
            chunk_id=UUID(int=number),
            document_id=UUID(int=number),
            title=file.stem.replace("_", " "),
            file_name=file.name,
            first_page=1,
            last_page=1,
            section="",
            passage=file.read_text("utf-8").replace("|---|---|\n", ""),
            score=1.0,
        )
        for number, file in enumerate(files, 1)
    ]


def main() -> None:
    citations = passages()
    for conversation in conversations()[::2]:
        earlier: list[tuple[str, str]] = []
        for turn in conversation.turns:
            language = detect_language(turn.asked)
            carried = carry_over(turn.asked, earlier, language=language, titles=[c.title for c in citations])
            quotes = extractive.best_quotes(carried.text, citations, language=language, carried=carried)
            earlier.append((turn.asked, quotes.text if quotes else ""))
            said = quotes and (sorted(quotes.terms), replace(quotes, terms=frozenset()))
            terms = question_terms(carried.text, language, language)
            places = [unpacked_terms(packed_terms(tokenize(c.passage, language))) for c in citations]
            weights = {term_id(term): weight / 3 for term, weight in terms.items()}
            close = closenesses(places, weights)
            named = naming([tokenize(c.title, language) for c in citations], terms)
            sys.stdout.write(f"{turn.asked} {carried} {said} {close} {named}\n")


main()
