"""The retrieval tasks of MTRAG, a public benchmark, through the product's search, beside the figures published for it.

    python -m benchmarks.mtrag --folder FOLDER [--domain cloud] [--setup rewrite] [--runs FOLDER] [--meaning]

FOLDER is a copy of the repository IBM/mt-rag-benchmark with its large files: its passages, questions and truth are read
where they lie. Without the passages, `--runs` names a folder with result files of others (JSON lines with `contexts`):
the passages they found are searched instead. Those are fewer, so the task is easier; the right ones are counted.

Prints recall and nDCG at 1, 3, 5 and 10 as BEIR counts them: of the hybrid search alone, and of the passages that the
product hands to an answer. Nothing is paid: the built-in search compares words, with `--meaning` meaning as well, which
takes a quarter of a second and more a passage. With `--data` the passages are stored once and kept there.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import statistics
import sys
import time
import zipfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from itertools import islice
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

from pgvector import HalfVector

from benchmarks.natural import data_folder
from rag.ingestion.document_jobs import JobControl
from rag.ingestion.meaning import MeaningJob
from rag.library.collections import CollectionLibrary
from rag.profiles import HR
from rag.providers.builtin_embedders import LexicalEmbedder, MeaningEmbedder
from rag.providers.registry import Providers
from rag.retrieval.bm25.index import contextual_text, index_document
from rag.retrieval.hybrid_search import SearchQuery, hybrid_search
from rag.retrieval.retriever import Retriever
from rag.settings import Settings
from rag.storage.database import Database, sealing_key
from rag.storage.embedded_postgres import start_server
from rag.storage.migrations import migrate
from rag.types import Collection, Identity, Question, Role, Scope

TENANT = "mtrag"
DOMAINS: Mapping[str, int] = {"clapnq": 183_408, "cloud": 61_022, "fiqa": 49_607, "govt": 72_422}
SETUPS = ("rewrite", "lastturn")
PLACES = (1, 3, 5, 10)
#: Over all four domains and all their passages: mtrag-human/retrieval_tasks/README.md of the benchmark.
PUBLISHED: Mapping[str, Mapping[str, tuple[float, ...]]] = {
    "rewrite": {
        "BM25": (0.09, 0.18, 0.25, 0.33, 0.20, 0.19, 0.22, 0.25),
        "BGE-base 1.5": (0.17, 0.30, 0.37, 0.47, 0.34, 0.31, 0.34, 0.38),
        "Elser": (0.20, 0.43, 0.52, 0.64, 0.46, 0.45, 0.48, 0.54),
    },
    "lastturn": {
        "BM25": (0.08, 0.15, 0.20, 0.27, 0.17, 0.16, 0.18, 0.21),
        "BGE-base 1.5": (0.13, 0.24, 0.30, 0.38, 0.26, 0.25, 0.27, 0.30),
        "Elser": (0.18, 0.39, 0.49, 0.58, 0.42, 0.41, 0.45, 0.49),
    },
}
DOCUMENTS_AT_ONCE = 200

Passages = dict[str, tuple[str, str]]
Truth = dict[str, set[str]]


def read_passages(folder: Path, domain: str) -> Passages:
    """Title and text of each passage by its id."""
    plain = folder / "corpora" / "passage_level" / f"{domain}.jsonl"
    packed = plain.with_suffix(".jsonl.zip")
    if plain.is_file():
        return passages_of(plain.read_text("utf-8").splitlines())
    if not packed.is_file() or not zipfile.is_zipfile(packed):
        raise SystemExit(f"{packed} is not there as a ZIP: fetch the repository with its large files, or give --runs.")
    with zipfile.ZipFile(packed) as archive:
        return passages_of(archive.read(archive.namelist()[0]).decode("utf-8").splitlines())


def passages_of(lines: Sequence[str]) -> Passages:
    rows = (json.loads(line) for line in lines if line.strip())
    return {str(row.get("_id") or row["id"]): (str(row.get("title") or ""), str(row["text"])) for row in rows}


def found_by_others(folder: Path, domain: str, right: Set[str]) -> Passages:
    """Collect the passages that result files of one domain name, and the right ones wherever they are named."""
    found: Passages = {}
    for path in sorted((*folder.rglob("*.jsonl"), *folder.rglob("*.json"))):
        text = path.read_text("utf-8")
        try:
            rows = (
                [json.loads(line) for line in text.splitlines() if line.strip()]
                if path.suffix == ".jsonl"
                else [json.loads(text)]
            )
        except ValueError:
            continue
        for context in contexts_in(rows):
            name = context["document_id"]
            if domain in path.name or name in right:
                found.setdefault(name, (context.get("title") or "", context["text"]))
    return found


def contexts_in(value: Any) -> Iterator[dict[str, Any]]:
    """Every object below that has the id and the text of a passage."""
    if isinstance(value, dict):
        if isinstance(value.get("document_id"), str) and isinstance(value.get("text"), str) and value["text"]:
            yield value
        value = list(value.values())
    if isinstance(value, list):
        for member in value:
            yield from contexts_in(member)


def read_task(folder: Path, domain: str, setup: str) -> tuple[dict[str, str], Truth]:
    """The questions with an answer in the passages, and the passages that answer each."""
    tasks = next((p for name in ("mtrag-human", "human") if (p := folder / name / "retrieval_tasks").is_dir()), None)
    if tasks is None:
        raise SystemExit(f"{folder} has no folder mtrag-human/retrieval_tasks.")
    truth: Truth = defaultdict(set)
    for line in (tasks / domain / "qrels" / "dev.tsv").read_text("utf-8").splitlines()[1:]:
        question, passage, relevance = line.split("\t")
        if int(relevance) > 0:
            truth[question].add(passage)
    lines = (tasks / domain / f"{domain}_{setup}.jsonl").read_text("utf-8").splitlines()
    rows = [json.loads(line) for line in lines if line.strip()]
    return {row["_id"]: row["text"].removeprefix("|user|:").strip() for row in rows if row["_id"] in truth}, truth


def figures(ranked: Mapping[str, Sequence[str]], truth: Truth) -> list[float]:
    """Mean recall, then nDCG, at each of `PLACES`, as trec_eval counts them for right and wrong passages."""
    recall: list[list[float]] = [[] for _ in PLACES]
    gain: list[list[float]] = [[] for _ in PLACES]
    for question, passages in ranked.items():
        right = truth[question]
        for place, limit in enumerate(PLACES):
            hits = [passage in right for passage in passages[:limit]]
            best = sum(1 / math.log2(rank + 1) for rank in range(1, min(len(right), limit) + 1))
            recall[place].append(sum(hits) / len(right))
            gain[place].append(sum(1 / math.log2(rank + 1) for rank, hit in enumerate(hits, 1) if hit) / best)
    return [statistics.fmean(values) for values in (*recall, *gain)]


def documents_of(passages: Passages) -> Iterator[tuple[str, list[str]]]:
    """Passages by document: their ids end with two offsets."""
    grouped: dict[str, list[str]] = defaultdict(list)
    for passage in sorted(passages):
        grouped[passage.rsplit("-", 2)[0]].append(passage)
    yield from grouped.items()


def store(database: Database, collection: Collection, passages: Passages) -> dict[UUID, str]:
    """Store the passages as chunks and return their ids by chunk."""
    embedder = LexicalEmbedder()
    ids: dict[UUID, str] = {}
    documents = documents_of(passages)
    while batch := list(islice(documents, DOCUMENTS_AT_ONCE)):
        with database.transaction(TENANT) as connection, connection.cursor() as cursor:
            for name, members in batch:
                title = passages[members[0]][0] or name
                row = connection.execute(
                    "INSERT INTO documents (tenant_id, collection_id, title, file_name, sha256, status, language) "
                    "VALUES (%s, %s, %s, %s, %s, 'completed', 'en') RETURNING id",
                    (TENANT, collection.id, title, name, hashlib.sha256(name.encode()).hexdigest()),
                ).fetchone()
                assert row is not None
                texts = [passages[passage][1].strip().replace("\0", "") for passage in members]
                vectors = embedder.embed([contextual_text(title, "", t) for t in texts], purpose="document").vectors
                rows = []
                for place, (passage, text, vector) in enumerate(zip(members, texts, vectors, strict=True)):
                    chunk = uuid4()
                    ids[chunk] = passage
                    rows.append(
                        (chunk, TENANT, collection.id, row[0], text, HalfVector(vector), embedder.id, place,
                         place + 1, place + 1, "")
                    )  # fmt: skip
                cursor.executemany(
                    "INSERT INTO document_chunks (id, tenant_id, collection_id, document_id, content, embedding, "
                    "embedding_model, chunk_index, first_page, last_page, section) "
                    "VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)",
                    rows,
                )
                index_document(connection, tenant_id=TENANT, collection_id=collection.id, document_id=row[0])
        print(f"{len(ids):,} passages stored", file=sys.stderr)
    return ids


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--domain", choices=list(DOMAINS), default="cloud")
    parser.add_argument("--setup", choices=SETUPS, default="rewrite")
    parser.add_argument("--runs", type=Path)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--meaning", action="store_true", help="compare meaning as well")
    arguments = parser.parse_args()
    questions, truth = read_task(arguments.folder, arguments.domain, arguments.setup)
    wanted = set().union(*(truth[question] for question in questions))
    passages = (
        found_by_others(arguments.runs, arguments.domain, wanted)
        if arguments.runs
        else read_passages(arguments.folder, arguments.domain)
    )
    print(
        f"{arguments.domain}, {arguments.setup}: {len(questions)} questions, {len(passages):,} passages of "
        f"{DOMAINS[arguments.domain]:,}, among them {len(wanted & set(passages))} of {len(wanted)} right ones"
    )
    with data_folder(arguments.data) as data:
        server = start_server(data)
        try:
            migrate(server.owner)
            database = Database(server.application, sealing_key(server.owner))
            database.open()
            try:
                measure(database, data, arguments, passages, questions, truth)
            finally:
                database.close()
        finally:
            server.stop()


def measure(
    database: Database,
    data: Path,
    arguments: argparse.Namespace,
    passages: Passages,
    questions: Mapping[str, str],
    truth: Truth,
) -> None:
    meaning = MeaningEmbedder(gives_way=False) if arguments.meaning else None
    providers = Providers(
        Settings(data_dir=data, builtin_embedder="meaning" if meaning else "lexical"), meaning=meaning
    )
    with database.transaction(TENANT) as connection:
        connection.execute("INSERT INTO tenants (id, name) VALUES (%s, %s) ON CONFLICT DO NOTHING", (TENANT, TENANT))
    collection = CollectionLibrary(database, providers).ensure_collection(
        TENANT, arguments.domain, HR.name, LexicalEmbedder.id, language="en"
    )
    ids_path = data / f"{arguments.domain}.json"
    if ids_path.is_file():
        ids = {UUID(chunk): passage for chunk, passage in json.loads(ids_path.read_text("utf-8")).items()}
    else:
        started = time.monotonic()
        ids = store(database, collection, passages)
        ids_path.write_text(json.dumps({str(chunk): passage for chunk, passage in ids.items()}), "utf-8")
        print(f"{len(ids):,} passages stored in {time.monotonic() - started:.0f} s")
    if meaning is not None:
        work, started = MeaningJob(JobControl(database), meaning, data), time.monotonic()
        while not work.run(TENANT, collection.id):
            print(f"meaning: {time.monotonic() - started:.0f} s", file=sys.stderr)
    retriever, embedder = Retriever(database, providers), LexicalEmbedder()
    asker = Identity(account_id=UUID(int=0), tenant_id=TENANT, email="", name="benchmark", role=Role.ADMIN)
    scope = Scope(tenant_id=TENANT, collection_ids=(collection.id,))
    searched: dict[str, list[str]] = {}
    handed: dict[str, list[str]] = {}
    refused, times = 0, []
    for key, text in questions.items():
        query = SearchQuery(
            text=text,
            language="en",
            vector=embedder.embed([text], purpose="query").vectors[0],
            embedding_model=embedder.id,
            threshold=embedder.default_threshold,
        )
        searched[key] = [ids[hit.chunk_id] for hit in hybrid_search(database, query, scope=scope, limit=10)]
        asked = Question(text=text, identity=asker, collection=collection, language="en")
        started = time.perf_counter()
        found = retriever.retrieve_context(asked, profile=HR, top_k=10)
        times.append(1000 * (time.perf_counter() - started))
        refused += not found.citations
        handed[key] = [ids[citation.chunk_id] for citation in (found.citations or found.nearest)]
    heads = [f"{name}@{place}" for name in ("R", "nDCG") for place in PLACES]
    print(f"\n{'':34}" + "".join(f"{head:>9}" for head in heads))
    ours = "words and meaning" if arguments.meaning else "words"
    for name, ranked in (("hybrid search, no order after it", searched), (f"product, {ours}", handed)):
        print(f"{name:34}" + "".join(f"{value:9.3f}" for value in figures(ranked, truth)))
    for name, values in PUBLISHED[arguments.setup].items():
        print(f"{name + ', published, all domains':34}" + "".join(f"{value:9.2f}" for value in values))
    print(f"\n{refused} of {len(questions)} questions refused; median {statistics.median(times):.0f} ms a question")
    if len(passages) < DOMAINS[arguments.domain]:
        print("Not all passages were searched: these figures are an upper bound, not to be ranked with the published.")
    providers.close()


if __name__ == "__main__":
    main()
