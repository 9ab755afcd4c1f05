"""How many of the pages that answer a question are among the first five found: page recall@5, with no key.

    python -m benchmarks.retrieval_quality --documents FOLDER --questions FILE [--meaning]

FOLDER holds PDFs. FILE holds one JSON object per line with "question" and "gold_relaxed", a list of [file name, page],
or "truth", an answer that names its pages as `[handbook.pdf#page=7]`: the ground truth of azure-search-openai-demo
(`evals/ground_truth.jsonl`, with the PDFs of its `data`) is read as it was published.
The pages of the ranked passages count in their order, each once, until there are five. With `--meaning` the product is
asked twice: by words alone, and with vectors of meaning, which take a quarter of a second a passage.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from pgvector import HalfVector

from benchmarks.database import temporary_database
from rag.ingestion.chunking import chunk_document
from rag.ingestion.document_jobs import JobControl
from rag.ingestion.loaders.pdf import load_pdf
from rag.ingestion.loaders.titles import title_from_file_name, title_from_metadata
from rag.ingestion.loaders.values import ExtractedDocument
from rag.ingestion.meaning import MeaningJob
from rag.profiles import HR
from rag.providers.builtin_embedders import LexicalEmbedder, MeaningEmbedder
from rag.providers.registry import Providers
from rag.retrieval.bm25.index import contextual_text, index_document
from rag.retrieval.hybrid_search import SearchQuery, hybrid_search, keyword_search, vector_search
from rag.retrieval.retriever import Retriever
from rag.settings import Settings
from rag.storage.database import Database
from rag.text.language_detection import detect_language
from rag.types import Citation, Collection, Identity, Question, Role, Scope, SearchResult

TENANT = "quality"
#: A page as the answers of azure-search-openai-demo cite it.
NAMED_PAGE = re.compile(r"\[([^\[\]#]+)#page=(\d+)\]")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=Path, required=True)
    parser.add_argument("--questions", type=Path, required=True)
    parser.add_argument("--passages", type=int, default=20, help="passages fetched per question")
    parser.add_argument("--meaning", action="store_true", help="ask the product with vectors of meaning as well")
    parser.add_argument("--show", action="store_true", help="print what was found for each question")
    options = parser.parse_args()
    with temporary_database("retrieval-quality") as database:
        measure(database, options)


def measure(database: Database, options: argparse.Namespace) -> None:
    embedder = LexicalEmbedder()
    with database.transaction(TENANT) as connection:
        connection.execute("INSERT INTO tenants (id, name) VALUES (%s, %s)", (TENANT, "Quality"))
        row = connection.execute(
            "INSERT INTO collections (tenant_id, name, embedding_model) VALUES (%s, 'PDFs', %s) RETURNING id",
            (TENANT, embedder.id),
        ).fetchone()
        assert row is not None
    collection_id: UUID = row[0]
    chunks = sum(add(database, collection_id, path, embedder) for path in sorted(options.documents.glob("*.pdf")))
    questions = read_questions(options.questions)
    print(f"{chunks} passages, {len(questions)} questions")
    scope = Scope(tenant_id=TENANT, collection_ids=(collection_id,))
    for name, search in (("keyword", keyword_search), ("vector", vector_search), ("hybrid", hybrid_search)):
        recalls, times = [], []
        for question in questions:
            text = question["question"]
            started = time.perf_counter()
            query = SearchQuery(
                text=text,
                language=detect_language(text),
                vector=embedder.embed([text], purpose="query").vectors[0],
                embedding_model=embedder.id,
                threshold=embedder.default_threshold,
            )
            found = search(database, query, scope=scope, limit=options.passages)
            times.append(1000 * (time.perf_counter() - started))
            gold = {(file, page) for file, page in question["gold_relaxed"]}
            pages = first_pages(found, 5)
            recalls.append(len(gold & set(pages)) / len(gold))
            if options.show and name == "hybrid":
                print(f"{recalls[-1]:.2f} {text[:90]}\n     wanted {sorted(gold)}\n     found {pages}")
        print(
            f"{name:8} page recall@5 {statistics.mean(recalls):.3f}   "
            f"median {statistics.median(times):.1f} ms, slowest {max(times):.1f} ms a question"
        )

    measure_product(database, collection_id, questions, Providers(Settings(builtin_embedder="lexical")), options.show)
    if options.meaning:
        meaning = MeaningEmbedder(gives_way=False)
        providers = Providers(Settings(), meaning=meaning)
        with tempfile.TemporaryDirectory() as folder:
            work = MeaningJob(JobControl(database), meaning, Path(folder))
            while not work.run(TENANT, collection_id):
                pass
        measure_product(database, collection_id, questions, providers, options.show, name="meaning")
        providers.close()


def measure_product(
    database: Database,
    collection_id: UUID,
    questions: list[dict[str, Any]],
    providers: Providers,
    show: bool,
    *,
    name: str = "product",
) -> None:
    """The same by `retrieve_context`: the passages it would cite, in their order."""
    retriever = Retriever(database, providers)
    asker = Identity(account_id=UUID(int=0), tenant_id=TENANT, email="", name="benchmark", role=Role.ADMIN)
    collection = Collection(
        id=collection_id, tenant_id=TENANT, name="PDFs", profile="hr", embedding_model=LexicalEmbedder.id,
        language="en", overrides={}, created_at=datetime.now(UTC),
    )  # fmt: skip
    recalls, times = [], []
    for question in questions:
        started = time.perf_counter()
        found = retriever.retrieve_context(
            Question(text=question["question"], identity=asker, collection=collection), profile=HR, top_k=10
        )
        times.append(1000 * (time.perf_counter() - started))
        gold = {(file, page) for file, page in question["gold_relaxed"]}
        pages = first_pages(found.citations, 5)
        recalls.append(len(gold & set(pages)) / len(gold))
        if show:
            print(f"{recalls[-1]:.2f} {question['question'][:90]}\n     wanted {sorted(gold)}\n     cited {pages}")
    print(
        f"{name:8} page recall@5 {statistics.mean(recalls):.3f}   "
        f"median {statistics.median(times):.1f} ms, slowest {max(times):.1f} ms a question"
    )


def read_questions(path: Path) -> list[dict[str, Any]]:
    """Return the questions with the pages that answer them."""
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]
    for line in lines:
        named = NAMED_PAGE.findall(line.get("truth", ""))
        line.setdefault("gold_relaxed", [[file_name, int(page)] for file_name, page in named])
    return [line for line in lines if line["gold_relaxed"]]


def first_pages(found: Sequence[SearchResult | Citation], limit: int) -> list[tuple[str, int]]:
    """Distinct pages of the passages, in their order."""
    pages = [(r.file_name, page) for r in found for page in range(r.first_page, r.last_page + 1)]
    return list(dict.fromkeys(pages))[:limit]


def add(
    database: Database, collection_id: UUID, path: Path, embedder: LexicalEmbedder, *, tenant_id: str = TENANT
) -> int:
    """Store one PDF as the product does, and return the number of its passages."""
    extracted, title = extract(path)
    chunks = chunk_document(
        extracted.pages,
        extracted.sections,
        chunk_size=HR.chunking.chunk_size,
        overlap=HR.chunking.chunk_overlap,
        minimum_chunk_size=HR.chunking.minimum_chunk_size,
    )
    vectors = embedder.embed([contextual_text(title, c.section, c.content) for c in chunks], purpose="document").vectors
    with database.transaction(tenant_id) as connection:
        row = connection.execute(
            "INSERT INTO documents (tenant_id, collection_id, title, file_name, sha256, status, language) "
            "VALUES (%s, %s, %s, %s, %s, 'completed', %s) RETURNING id",
            (
                tenant_id,
                collection_id,
                title,
                path.name,
                path.name,
                extracted.language or detect_language(" ".join(c.content for c in chunks[:3])),
            ),
        ).fetchone()
        assert row is not None
        with connection.cursor() as cursor:
            cursor.executemany(
                "INSERT INTO document_chunks (tenant_id, collection_id, document_id, content, embedding, "
                "embedding_model, chunk_index, first_page, last_page, section) "
                "VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)",
                [
                    (tenant_id, collection_id, row[0], c.content, HalfVector(vector), embedder.id, c.index,
                     c.first_page, c.last_page, c.section)
                    for c, vector in zip(chunks, vectors, strict=True)
                ],
            )  # fmt: skip
        index_document(connection, tenant_id=tenant_id, collection_id=collection_id, document_id=row[0])
    return len(chunks)


def extract(path: Path) -> tuple[ExtractedDocument, str]:
    """The pages of a PDF, read here instead of in the sandbox, and its title as the library chooses it."""
    extracted = load_pdf(path.read_bytes())
    return extracted, title_from_metadata(extracted.title) or title_from_file_name(path.name)


if __name__ == "__main__":
    main()
