"""Export files of other vector stores: what cannot be used is said by its line, what can is imported once."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from rag.errors import InvalidInput
from rag.ingestion.passages import chunks_from_bytes, pages_and_chunks
from rag.ingestion.pipeline import IngestionPipeline
from rag.integrations.sources.vectors.export import documents_from, read_export
from rag.integrations.sources.vectors.imports import VectorImport
from rag.library.documents import DocumentLibrary
from rag.providers.registry import Providers
from rag.retrieval.hybrid_search import SearchQuery, keyword_search
from rag.settings import Settings
from rag.storage.database import Database
from rag.storage.files import FileStore
from rag.types import ChunkingMethod, Collection, DocumentStatus, Identity, Scope, SearchFilters, Step
from tests.forked import forked_python, kill
from tests.kill_storm import PROJECT
from tests.patience import patient
from tests.standins.providers import ProviderStandin

MODEL = "openai/text-embedding-3-small@256"
Write = Callable[..., Path]


def record(number: int, source: str = "handbook.pdf", **fields: Any) -> dict[str, Any]:
    text = f"Rule {number} of {source}: everybody gets {number} days of zebra leave."
    return {
        "id": f"{source}#{number}",
        "values": [0.1] * 8,
        "metadata": {"text": text, "source": source, "chunk_index": float(number), **fields},
    }


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(records: Iterable[Any], name: str = "export.jsonl") -> Path:
        path = tmp_path / name
        lines = [line if isinstance(line, str) else json.dumps(line) for line in records]
        path.write_text("\n".join(lines) + "\n", "utf-8")
        return path

    return write


@pytest.fixture
def importing(database: Database, files: FileStore, settings: Settings, collection: Collection) -> VectorImport:
    return VectorImport(database, files, Providers(settings), collection)


@pytest.fixture
def take(importing: VectorImport, pipeline: IngestionPipeline) -> Callable[..., int]:
    """Import files to the end; how many documents were stored."""

    def take(*paths: Path) -> int:
        plan = importing.plan(paths)
        for passages in plan.documents:
            for document_id in importing.store(passages).documents:
                pipeline.run("demo", document_id)
        return len(plan.documents)

    return take


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ('{"id": "a", "metadata": {"text": "cut o', "is not JSON"),
        ('{"id": "a", "metadata": {"text": "x", "score": NaN}}', "NaN is no JSON number"),
        ("[" * 100_000, "is not JSON"),
        ("42", "is not an object"),
        ({"metadata": {"text": "x"}}, "has no id"),
        ({"id": True, "metadata": {"text": "x"}}, "has no id"),
        ({"id": "x" * 600, "metadata": {"text": "x"}}, "an id of more than"),
        ({"id": "a", "metadata": "text"}, "metadata that are not an object"),
        ({"id": "a", "values": [1.0], "metadata": {}}, "has no text"),
        ({"id": "a", "metadata": {"text": "  ", "content": 5}}, "has no text"),
        ({"id": "a", "metadata": {"text": "word " * 20_000}}, "more text than a passage may have"),
        ({"id": "handbook.pdf#1", "metadata": {"text": "Other words."}}, "has the id handbook.pdf#1 of line 1"),
    ],
)  # fmt: skip
def test_a_bad_line_is_named_with_its_reason_and_the_others_are_taken(line: Any, sentence: str, write: Write) -> None:
    export = read_export(write([record(1), "", line, record(2)]))
    assert [r.id for r in export.records] == ["handbook.pdf#1", "handbook.pdf#2"]
    (problem,) = export.problems
    assert problem.line == 3
    assert sentence in problem.sentence


def test_bytes_that_are_no_text_are_a_bad_line(tmp_path: Path) -> None:
    path = tmp_path / "export.jsonl"
    path.write_bytes(json.dumps(record(1)).encode() + b'\r\n{"id": "\xff\xfe"}\r\n')
    export = read_export(path)
    assert len(export.records) == 1
    assert export.problems[0].sentence == "is not UTF-8."


def test_a_file_that_is_none_or_not_there_is_one_sentence(write: Write, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="cannot be read"):
        read_export(tmp_path / "missing.jsonl")
    with pytest.raises(InvalidInput, match="holds no records"):
        read_export(write([]))
    with pytest.raises(InvalidInput, match=r"not JSON: .* at line 2, column"):
        read_export(write(["[", '{"id": "a" "b"}', "]"]))


@pytest.mark.parametrize(
    "whole",
    [
        [record(1), record(2), 7],
        {"vectors": {item["id"]: item for item in (record(1), record(2))} | {"c": 7}, "namespace": ""},
        {"matches": [record(1), record(2), 7]},
    ],
    ids=["array", "fetch", "query"],
)
@pytest.mark.parametrize("indent", [None, 2])
def test_an_array_and_pinecones_answers_are_read_like_lines(whole: Any, indent: int | None, write: Write) -> None:
    export = read_export(write([json.dumps(whole, indent=indent)]))
    assert [r.id for r in export.records] == ["handbook.pdf#1", "handbook.pdf#2"]
    assert [(p.line, p.unit) for p in export.problems] == [(3, "record")]


@pytest.mark.parametrize("key", ["text", "content", "pageContent", "chunk"])
def test_the_text_is_found_under_the_usual_keys_and_is_no_field(key: str, write: Write) -> None:
    (found,) = read_export(write([{"id": 7, "metadata": {key: "Words.", "team": "HR"}}])).records
    assert (found.id, found.text, found.fields) == ("7", "Words.", {"team": "HR"})


def test_passages_stand_in_the_order_of_pages_and_indexes_whatever_the_files_order(write: Write) -> None:
    records = [record(3, page=2), record(1, page=0), record(4), record(2, page=0), record(9, source="other.pdf")]
    export = read_export(write(records))
    handbook, other = documents_from(export.records, name="export")
    assert [r.id.partition("#")[2] for r in handbook.records] == ["1", "2", "3", "4"]
    assert (handbook.title, other.title) == ("Handbook", "Other")
    pages, chunks = pages_and_chunks(handbook.records)
    assert [(page.number, page.text.count("Rule")) for page in pages] == [(1, 2), (3, 2)]  # they counted from 0
    text = "\n".join(page.text for page in pages)
    assert [text[chunk.start : chunk.end] for chunk in chunks] == [chunk.content for chunk in chunks]
    assert [chunk.first_page for chunk in chunks] == [1, 1, 3, 3]


def test_namespaces_and_sources_of_one_name_are_documents_of_their_own(
    write: Write, take: Callable[..., int], library: DocumentLibrary
) -> None:
    records = [{**record(1, source="a/rules.pdf"), "namespace": n} for n in ("north", "south")]
    assert (
        take(write([*records, record(1, source="b/rules.pdf"), {"id": "x", "metadata": {"text": "No source."}}])) == 4
    )
    titles = sorted(document.title for document in library.list("demo"))
    assert titles == ["Export", "Rules", "Rules", "Rules"]


def test_ids_and_metadata_are_kept_and_searches_are_narrowed_by_them(
    write: Write, take: Callable[..., int], library: DocumentLibrary, database: Database, collection: Collection
) -> None:
    first = [record(n, team="HR", page=n, section="Leave", tags=["a", "b"]) for n in (1, 2)]
    second = [record(n, source="pay.pdf", team="Finance", questions="odd", sections=3) for n in (1, 2)]
    assert take(write([*first, *second])) == 2
    by_title = {document.title: document for document in library.list("demo")}
    handbook = by_title["Handbook"]
    assert handbook.status is DocumentStatus.COMPLETED
    assert handbook.metadata["team"] == "HR"
    assert by_title["Pay"].metadata.get("sections") != 3
    chunks = library.chunks("demo", handbook.id)
    assert [chunk.metadata["sourceId"] for chunk in chunks] == ["handbook.pdf#1", "handbook.pdf#2"]
    assert chunks[0].metadata["tags"] == ["a", "b"]
    assert (chunks[0].first_page, chunks[0].section, chunks[0].has_embedding) == (1, "Leave", True)
    query = SearchQuery(text="zebra leave", language="en", vector=None, embedding_model=collection.embedding_model)
    scope = Scope(tenant_id="demo", collection_ids=(collection.id,))
    for wanted in ({"team": "HR"}, {"sourceId": "handbook.pdf#2"}):
        found = keyword_search(database, query, scope=scope, limit=9, filters=SearchFilters(metadata=wanted))
        assert {result.document_id for result in found} == {handbook.id}


def test_the_same_export_again_does_nothing_and_a_part_adds_to_what_is_there(
    write: Write,
    take: Callable[..., int],
    importing: VectorImport,
    library: DocumentLibrary,
    admin: Identity,
) -> None:
    one = write([record(2), record(1)], "one.jsonl")
    two = write([record(3), {**record(1), "metadata": {**record(1)["metadata"], "text": "Corrected."}}], "two.jsonl")
    assert take(one) == 1
    assert take(one) == 0
    plan = importing.plan([one])
    assert (plan.unchanged, plan.tokens, plan.cost) == (1, 0, Decimal(0))
    assert take(two) == 1
    assert take(two) == 0
    (document,) = library.list("demo")
    contents = [chunk.content for chunk in library.chunks("demo", document.id)]
    assert contents[0] == "Corrected."
    assert [content[:6] for content in contents[1:]] == ["Rule 2", "Rule 3"]
    library.delete(admin, document.id)
    assert take(one) == 1


def test_imported_passages_are_not_cut_again(
    write: Write, take: Callable[..., int], library: DocumentLibrary, admin: Identity
) -> None:
    take(write([record(1)]))
    (document,) = library.list("demo")
    other: ChunkingMethod = "fixed"
    with pytest.raises(InvalidInput, match="cannot be split again"):
        library.versions.run_again(admin, document.id, Step.CHUNK, only_missing=False, chunking_method=other)


# The command


@pytest.fixture
def command(
    database: Database, owner_conninfo: str, settings: Settings, provider_standin: ProviderStandin
) -> Callable[..., subprocess.Popen[str]]:
    """`python -m rag import-vectors` on the test's database with a paid model in batches of two."""
    with database.transaction("demo") as connection:
        connection.execute(
            "INSERT INTO collections (tenant_id, name, profile, embedding_model, language, overrides) "
            "VALUES ('demo', 'Shelf', 'hr', %s, 'en', '{\"embedding_batch_size\": 2}')",
            (MODEL,),
        )
    environment = {
        **os.environ,
        "DATABASE_URL": database.conninfo,
        "MIGRATION_DATABASE_URL": owner_conninfo,
        "RAG_DATA_DIR": str(settings.data_dir),
        "OPENAI_API_KEY": "sk-test",
        "OPENAI_BASE_URL": provider_standin.openai_url,
    }

    def start(*arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*forked_python(), "-m", "rag", "import-vectors", "--collection", "Shelf", *arguments],
            env=environment, cwd=PROJECT, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    return start


def test_the_cost_is_shown_first_and_nothing_is_spent_without_a_yes(
    write: Write, command: Callable[..., subprocess.Popen[str]], provider_standin: ProviderStandin, database: Database
) -> None:
    path = str(write([record(1), record(2), "nonsense"]))
    for arguments, answer in (([], "n\n"), ([], ""), (["--dry-run"], "")):
        process = command(path, *arguments)
        out, err = process.communicate(answer, timeout=patient(60))
        assert process.returncode == 1
        assert "1 document with 2 passages to import" in out
        assert "about $0.0000" in out
        assert "export.jsonl, line 3 is not JSON" in err
    assert sum(provider_standin.calls.values()) == 0
    with database.transaction("demo") as connection:
        assert connection.execute("SELECT count(*) FROM documents").fetchone() == (0,)


def test_a_killed_import_goes_on_and_pays_once(
    write: Write,
    command: Callable[..., subprocess.Popen[str]],
    provider_standin: ProviderStandin,
    database: Database,
    settings: Settings,
    files: FileStore,
) -> None:
    path = write(record(n, source=f"{n % 3}.pdf") for n in range(18))
    provider_standin.delay_seconds = 0.1
    process = command(str(path), "--yes")
    deadline = time.monotonic() + patient(60)
    while sum(provider_standin.calls.values()) < 4 and time.monotonic() < deadline:
        time.sleep(0.02)
    kill(process)
    process.communicate()
    provider_standin.delay_seconds = 0
    process = command(str(path), "--yes")
    out, err = process.communicate(timeout=patient(60))
    assert process.returncode == 0, err
    with database.transaction("demo") as connection:
        documents = connection.execute("SELECT status, chunk_count FROM documents").fetchall()
        ids = connection.execute("SELECT metadata ->> 'sourceId' FROM document_chunks").fetchall()
        tokens = connection.execute("SELECT sum(input_tokens) FROM cost_ledger WHERE NOT is_estimated").fetchone()
    assert documents == [("completed", 6)] * 3
    assert sorted(ids) == sorted((f"{n % 3}.pdf#{n}",) for n in range(18))
    assert tokens == (sum(provider_standin.tokens.values()),)
    before = dict(provider_standin.calls)
    process = command(str(path), "--yes")
    out, _ = process.communicate(timeout=patient(60))
    assert (process.returncode, dict(provider_standin.calls)) == (0, before)
    assert "3 unchanged" in out


def test_a_passage_keeps_its_text_where_its_metadata_have_a_field_of_that_name(write: Write) -> None:
    path = write([{"id": "1", "metadata": {"content": "Zebra leave is paid.", "text": 7}}])
    (handbook,) = documents_from(read_export(path).records, name="export")
    assert [chunk.content for chunk in chunks_from_bytes(handbook.to_bytes())] == ["Zebra leave is paid."]


def test_a_file_that_is_missing_is_named_in_one_sentence(command: Callable[..., subprocess.Popen[str]]) -> None:
    process = command("missing.jsonl")
    said = [line for line in process.communicate(timeout=patient(60))[1].splitlines() if not line.startswith("• ")]
    assert process.returncode == 1
    assert said == ["missing.jsonl cannot be read: No such file or directory."]
