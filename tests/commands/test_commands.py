"""`search` and `calibrate` as whoever sits at a terminal runs them: processes of their own on the test's database."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import zipfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest

from rag.answering.writing import TOO_LONG
from rag.errors import ProviderStreamCut
from rag.ingestion.pipeline import IngestionPipeline
from rag.money.ledger import Ledger
from rag.providers.registry import Providers
from rag.retrieval.multi_query import NO_EMBEDDING
from rag.settings import Settings
from rag.storage.collections import find_collections
from rag.storage.database import Database
from rag.storage.files import FileStore
from rag.types import Collection, UploadOptions
from tests import hostile
from tests.forked import forked_python
from tests.integration_rows import needs
from tests.patience import patient
from tests.standins.providers import ProviderStandin

PROJECT = Path(__file__).resolve().parents[2]
Command = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def command(database: Database, owner_conninfo: str, tmp_path: Path, provider_standin: ProviderStandin) -> Command:
    """Runs `python -m rag …` with an embedding model's key; no other setting of this machine reaches it."""
    environment = {
        **{name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ},
        "DATABASE_URL": database.conninfo,
        "MIGRATION_DATABASE_URL": owner_conninfo,
        "RAG_DATA_DIR": str(tmp_path / "data"),
        "RAG_WORKER": "false",
        "OPENAI_API_KEY": "key",
        "OPENAI_BASE_URL": provider_standin.openai_url,
    }

    def run(*arguments: str, stdout: int = subprocess.PIPE) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*forked_python(), "-m", "rag", *arguments], cwd=PROJECT, env=environment, stdout=stdout,
            stderr=subprocess.PIPE, text=True, timeout=patient(120), check=False,
        )  # fmt: skip

    return run


def new_collection(
    database: Database, provider_standin: ProviderStandin, tmp_path: Path, name: str, file: bytes, file_name: str
) -> Collection:
    """Make a collection with one document, embedded by the stand-in."""
    settings = Settings(data_dir=tmp_path / "data", openai_api_key="key", openai_base_url=provider_standin.openai_url)
    providers = Providers(settings)
    with database.transaction("demo") as connection:
        connection.execute(
            "INSERT INTO collections (tenant_id, name, embedding_model) "
            "VALUES ('demo', %s, 'openai/text-embedding-3-small@1536')",
            [name],
        )
    (collection,) = find_collections(database, "demo", name=name)
    pipeline = IngestionPipeline(
        database, FileStore(settings.data_dir / "files"), providers, Ledger(database), settings
    )
    pipeline.process_document(
        file=file,
        file_name=file_name,
        tenant_id="demo",
        collection=collection,
        options=UploadOptions(generate_metadata=False),
    )
    pipeline.close()
    providers.close()
    return collection


@pytest.fixture
def rules(database: Database, provider_standin: ProviderStandin, tmp_path: Path) -> Collection:
    return new_collection(database, provider_standin, tmp_path, "Rules", hostile.long_document(12), "rules.pdf")


def test_an_unknown_collection_or_profile_is_one_sentence(command: Command, collection: Collection) -> None:
    unknown = command("search", "vacation", "--collection", "Nothing")
    assert (unknown.returncode, unknown.stdout) == (1, "")
    assert unknown.stderr.strip().endswith("has no collection 'Nothing'; it has: HR documents.")
    profile = command("search", "vacation", "--profile", "hrr")
    assert profile.returncode == 1
    assert "choose one of hr, notices, portfolio, legal, civil" in profile.stderr


def test_what_cannot_be_calibrated_says_why(command: Command, collection: Collection) -> None:
    refused = command("calibrate", "--collection", collection.name)
    assert refused.returncode == 1
    assert "compares words" in refused.stderr


def test_search_explains_the_whole_path_with_scores(command: Command, rules: Collection) -> None:
    plain = command("search", "What does page seven say?", "--collection", "Rules")
    assert plain.returncode == 0, plain.stderr
    assert "step" not in plain.stdout
    shown = command("search", "What does page seven say?", "--collection", "Rules", "--profile", "civil", "--explain")
    assert shown.returncode == 0, shown.stderr
    lines = shown.stdout.splitlines()
    assert lines[0] == "collection    Rules, embedded by openai/text-embedding-3-small@1536"
    assert lines[1] == "profile       civil: 5 passages of 20 candidates"
    assert lines[2] == "question      What does page seven say?"
    assert "step             ms  what it did" in lines
    for step in ("embed", "search", "all"):
        assert [line for line in lines if line.startswith(step)], step
    assert [line for line in lines if line.startswith("embedding") and "text-embedding-3-small $0.0000" in line]
    (header,) = [line for line in lines if line.startswith("found  cosine")]
    for column in ("rank", "bm25", "fused", "covered", "margin", "evidence", "rerank", "final", "cited", "passage"):
        assert column in header
    first = lines[lines.index(header) + 1].split()
    assert first[0] == "1"
    assert -1 <= float(first[1]) <= 1
    for conclusion in ("words found   ", "words missing ", "evidence      "):
        assert [line for line in lines if line.startswith(conclusion)], conclusion


def test_the_score_beside_a_passage_is_the_one_that_orders_it(command: Command, rules: Collection) -> None:
    """It stands in the column "final" of the table, too."""
    asked = ("search", "What does page seven say?", "--collection", "Rules", "--no-only-evidence", "--explain")
    shown = command(*asked)
    assert shown.returncode == 0, shown.stderr
    rows = shown.stdout.splitlines()
    finals = {found[2]: found[1] for row in rows if (found := re.search(r"([\d.]+)  +(\[\d+\])  ", row))}
    beside = {found[1]: found[2] for row in rows if (found := re.match(r"(\[\d+\]) .*\(([\d.]+)\)$", row))}
    assert len(set(beside.values())) > 1
    assert beside == finals
    assert sorted(beside.values(), reverse=True) == list(beside.values())


def test_calibrate_shows_what_it_would_set_and_sets_it(command: Command, rules: Collection, database: Database) -> None:
    tried = command("calibrate", "--collection", "Rules", "--dry-run")
    assert tried.returncode == 0, tried.stderr
    assert "The threshold would be 0." in tried.stdout
    assert find_collections(database, "demo", name="Rules")[0].calibrated_threshold is None
    done = command("calibrate", "--collection", "Rules")
    assert "the rest of its own passage" in done.stdout
    (kept,) = find_collections(database, "demo", name="Rules")
    assert kept.calibrated_threshold is not None
    assert "95 of 100 passages that belong to a sentence reach it" in done.stdout
    assert f"The threshold is now {kept.calibrated_threshold:.3f}; the embedder's own is" in done.stdout
    assert kept.calibrated_model == "openai/text-embedding-3-small@1536"
    with database.transaction("demo") as connection:
        spent = connection.execute("SELECT count(*) FROM cost_ledger WHERE operation = 'embedding'").fetchone()
    assert spent is not None
    assert spent[0] >= 4  # questions and passages, twice


def test_what_comes_of_a_question_is_told_by_the_status_and_standard_error(
    command: Command, rules: Collection, provider_standin: ProviderStandin
) -> None:
    ask = ("ask", "By rule 7.7, at what time closes office 49?", "--collection", "Rules")
    whole = command(*ask)
    assert (whole.returncode, whole.stderr) == (0, "")
    assert whole.stdout.startswith("The documents say: ")
    provider_standin.reply("The documents say: By rule 7.7, office 49 closes at 18:49 [1]. It has 812 lifts [1].")
    doubted = command(*ask)
    assert doubted.stderr == "Check this sentence, because its source does not support it: “It has 812 lifts”\n"
    provider_standin.reply("Page seven says [1] and", finish_reason="length")
    cut = command(*ask)
    assert (cut.returncode, cut.stderr.splitlines()[-1]) == (3, TOO_LONG)
    assert cut.stdout.startswith("Page seven says [1] and")
    provider_standin.reply("Page seven says [1] and so on and so forth.")
    provider_standin.cut_stream_after(4)
    failed = command(*ask)
    assert (failed.returncode, failed.stderr.splitlines()[-1]) == (1, str(ProviderStreamCut()))
    provider_standin.fail_next(400, endpoint="embeddings")
    by_words = command(*ask)
    assert by_words.returncode == 0
    assert NO_EMBEDDING in by_words.stderr.splitlines()
    provider_standin.fail_next(400, endpoint="embeddings")
    found = command("search", *ask[1:])
    assert found.returncode == 0
    assert NO_EMBEDDING in found.stderr.splitlines()
    assert "Exit status: 0 for a whole answer" in " ".join(command("ask", "--help").stdout.split())


def test_next_questions_are_written_where_the_profile_has_them_and_paid_for_nowhere_else(
    command: Command, rules: Collection, provider_standin: ProviderStandin, database: Database
) -> None:
    ask = ("ask", "By rule 7.7, at what time closes office 49?", "--collection", "Rules")
    suggested = "When does office 48 close?\nWho opens office 49?\nWhat does rule 7.8 say?"
    provider_standin.reply(
        lambda messages: suggested if "Suggest 3" in str(messages[0]["content"]) else "Office 49 closes at 18:49 [1]."
    )
    calls = provider_standin.calls["chat"]
    assert "Suggested questions" not in command(*ask).stdout
    assert provider_standin.calls["chat"] == calls + 1
    with database.transaction("demo") as connection:
        connection.execute("UPDATE collections SET profile = 'portfolio' WHERE id = %s", (rules.id,))
    assert command(*ask).stdout.endswith(f"\n\nSuggested questions:\n{suggested}\n")


def test_all_collections_are_searched_and_asked_and_each_source_names_its_own(
    command: Command, rules: Collection, database: Database, provider_standin: ProviderStandin, tmp_path: Path
) -> None:
    text = b"Bays 40 to 62 behind Gate 2 are parking spaces for the staff."
    new_collection(database, provider_standin, tmp_path, "Gates", text, "bays.txt")
    question = ("Which bays behind Gate 2 are parking spaces?", "--collection", rules.name, "--all-collections")
    found = command("search", *question)
    assert found.stdout.startswith("[1] Bays, page 1, Gates "), found.stderr
    asked = command("ask", *question)
    assert (asked.returncode, asked.stderr) == (0, "")
    said, *sources = asked.stdout.splitlines()
    assert said == f"The documents say: {text.decode()} [1]"
    assert sources == ["[1] Bays, page 1, Gates"]


def test_no_passage_is_said_to_be_above_where_none_is(command: Command, collection: Collection) -> None:
    found = command("search", "vacation", "--collection", collection.name)
    assert (found.returncode, found.stdout) == (1, "")
    assert "HR documents has no documents that can be searched yet" in found.stderr


def test_help_loads_nothing_that_takes_long_and_commands_nothing_that_only_pages_need() -> None:
    loaded = (
        "import sys, rag.__main__ as m; m.command_line(); print(*sorted(sys.modules))\n"
        "import rag.services; print(*sorted(sys.modules))"
    )
    found = subprocess.run(
        [sys.executable, "-c", loaded], cwd=PROJECT, capture_output=True, text=True, timeout=patient(120), check=True
    )
    for_help, for_commands = (set(line.split()) for line in found.stdout.splitlines())
    slow = {"openai", "cohere", "psycopg", "streamlit", "fastapi", "pandas", "lxml", "genai_prices"}
    assert slow & for_help == set()
    assert {"streamlit", "plotly", "pandas", "docx", "supabase", "storage3"} & for_commands == set()


def test_a_collection_is_made_configured_listed_and_deleted(command: Command) -> None:
    made = command(
        "collection", "create", "Bindery", "--profile", "civil", "--language", "nl", "--as-source", "--tenant", "demo"
    )
    assert (made.returncode, made.stderr) == (0, "")
    assert made.stdout.startswith("Bindery: civil, nl, ")
    assert ' fusion="raw"' in made.stdout
    wrong = command("collection", "set", "Bindery", "top_q=1", "--tenant", "demo")
    assert (wrong.returncode, "top_q" in wrong.stderr, "Traceback" in wrong.stderr) == (1, True, False)
    assert command("collection", "set", "Bindery", "top_k=20", "--name", "Rules", "--tenant", "demo").returncode == 0
    assert "Rules: civil, nl, " in (listed := command("collection", "list", "--tenant", "demo").stdout)
    assert " top_k=20" in listed
    binned = command("collection", "delete", "Rules", "--tenant", "demo")
    assert binned.stdout.startswith("Rules is in the bin, for 30 days. `collection restore "), binned.stderr
    assert "Rules" not in command("collection", "list", "--tenant", "demo").stdout
    assert command("collection", "list", "--bin", "--tenant", "demo").stdout.endswith("  Rules\n")
    assert command("collection", "restore", "Rules", "--tenant", "demo").stdout == "Rules is back.\n"
    refused = command("collection", "delete", "Rules", "--for-good", "--tenant", "demo")
    assert (refused.returncode, refused.stderr) == (1, "To delete the collection, type its name, Rules.\n")
    for_good = ("collection", "delete", "Rules", "--for-good", "--confirm", "Rules", "--tenant", "demo")
    assert command(*for_good).stdout == "Rules is deleted for good.\n"
    for place in ((), ("--bin",)):
        assert "Rules" not in command("collection", "list", *place, "--tenant", "demo").stdout
    assert "in the bin" in command("collection", "restore", "Rules", "--tenant", "demo").stderr


def test_an_index_is_made_measured_and_dropped(command: Command, rules: Collection, database: Database) -> None:
    with database.transaction("demo") as connection:
        connection.execute(
            "INSERT INTO chat_logs (tenant_id, collection_id, question, outcome) "
            "VALUES ('demo', %s, 'What does page seven say?', 'answered')",
            (rules.id,),
        )
    nothing = command("collection", "index", "Rules", "--status")
    assert nothing.stdout == "Rules has no index; its vectors are scanned.\n", nothing.stderr
    made = command("collection", "index", "Rules")
    assert made.returncode == 0, made.stderr
    lines = made.stdout.splitlines()
    assert lines[1].startswith("Rules: hnsw on ")
    assert "of 1,536 dimensions, made in" in lines[1]
    assert lines[2].startswith("Measured by 1 question that was asked and ")
    assert lines[3].split() == ["recall@10", "recall@50", "p50", "ms", "p95", "ms"]
    assert [line.rsplit(maxsplit=4)[0] for line in lines[6:-1]] == [
        f"index, ef_search {breadth}" for breadth in (40, 100, 200, 400, 800)
    ]
    assert lines[-1].startswith("The search ")
    with database.transaction("demo") as connection:
        paid = connection.execute(
            "SELECT count(*) FROM cost_ledger WHERE collection_id = %s AND operation = 'embedding'", (rules.id,)
        ).fetchone()
    assert paid == (1,), "the question's vector; those of passages are there"
    again = command("collection", "index", "Rules", "--status")
    assert again.returncode == 0, again.stderr
    assert again.stdout.splitlines()[0] == lines[1]
    assert command("collection", "index", "Rules", "--drop").stdout == "The index of Rules is dropped.\n"
    assert command("collection", "index", "Rules", "--drop").stdout == "Rules has no index.\n"


def test_options_of_a_search_take_the_place_of_the_collections(command: Command, rules: Collection) -> None:
    options = ["--top-k", "1", "--search-type", "vector", "--threshold", "0", "--no-rerank", "--language", "en"]
    shown = command("search", "What does page seven say?", "--collection", "Rules", *options, "--explain")
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.splitlines()[1].startswith("profile       hr: 1 passage of ")
    wrong = command("search", "What does page seven say?", "--collection", "Rules", "--threshold", "2")
    assert (wrong.returncode, wrong.stdout, "Traceback" in wrong.stderr) == (1, "", False)
    assert wrong.stderr.strip().endswith(".")


def test_documents_are_listed_binned_taken_back_and_deleted(command: Command, rules: Collection) -> None:
    def listed(*options: str) -> list[dict[str, Any]]:
        shown = command("documents", "list", *options, "--json", "--tenant", "demo")
        return [json.loads(line) for line in shown.stdout.splitlines()]

    (document,) = listed("--collection", rules.name)
    chosen = document["id"]
    assert f"{document['title']} ({document['file_name']})" in command("documents", "list", "--tenant", "demo").stdout
    assert "1 of 1 moved to the bin, for 30 days" in command("documents", "delete", chosen, "--tenant", "demo").stdout
    assert [row["id"] for row in listed("--bin")] == [chosen]
    assert command("documents", "restore", chosen, "--tenant", "demo").returncode == 0
    assert command("documents", "delete", chosen, "--for-good", "--tenant", "demo").returncode == 0
    gone = command("documents", "restore", chosen, "--tenant", "demo")
    assert (gone.returncode, gone.stdout) == (1, "This document is no longer in the bin.\n")


def test_a_page_is_corrected_and_put_back(command: Command, rules: Collection, tmp_path: Path) -> None:
    def correct(*options: str) -> subprocess.CompletedProcess[str]:
        return command("documents", "correct", *options, "--tenant", "demo")

    def listed() -> str:
        return str(json.loads(command("documents", "list", "--json", "--tenant", "demo").stdout)["id"])

    first, file = listed(), tmp_path / "page.txt"
    as_read = correct(first, "1").stdout
    assert "office 3 closes" in as_read
    file.write_text(as_read.replace("office 3 closes", "office 33 closes"), "utf-8")
    planned = correct(first, "1", "--text", str(file), "--dry-run")
    assert re.fullmatch(r"\d+ passages? to embed again, for about \$0\.0000\d\d\.\n", planned.stdout)
    assert listed() == first
    made = correct(first, "1", "--text", str(file))
    assert (made.returncode, made.stdout) == (
        0,
        f"{planned.stdout}Rules: completed, {made.stdout.split()[-2]} passages\n",
    )
    assert "office 33 closes" in correct(listed(), "1").stdout
    assert correct(listed(), "1", "--as-read").returncode == 0
    assert correct(listed(), "1").stdout == as_read
    for wrong, sentence in (((first, "99"), "has no page 99"), ((first, "1", "--text", "none.txt"), "cannot be read")):
        refused = correct(*wrong)
        assert (refused.returncode, "Traceback" in refused.stderr) == (1, False)
        assert sentence in refused.stderr


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("documents list", "There is no document in demo yet. Add one: python -m rag ingest PATH {0}"),
        (
            "documents list --collection Rules",
            "in “Rules” yet. Add one: python -m rag ingest PATH --collection Rules {0}",
        ),
        ("documents list --bin", "There is no document of demo in the bin."),
        ("collection list --bin", "There is no collection of demo in the bin."),
    ],
)
def test_an_empty_list_says_so(
    command: Command, database: Database, provider_standin: ProviderStandin, line: str, sentence: str
) -> None:
    with database.transaction("demo") as connection:
        connection.execute(
            "INSERT INTO collections (tenant_id, name, profile, embedding_model) VALUES ('demo', 'Rules', 'hr', 'm')"
        )
    shown = command(*line.split(), "--tenant", "demo")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout.endswith(sentence.format("--tenant demo") + "\n")
    if line.startswith("documents"):
        assert command(*line.split(), "--json", "--tenant", "demo").stdout == ""


def test_a_tenant_without_a_collection_is_told_how_to_make_one(command: Command, tenant: str) -> None:
    shown = command("collection", "list", "--tenant", tenant)
    assert shown.stdout == f"{tenant} has no collection yet. Make one: python -m rag collection create NAME\n"


@pytest.mark.parametrize(
    "line",
    ["documents list", "collection list", "search holiday", "ask holiday", "doctor", "prices list", "tenant list"],
)
def test_a_command_whose_reader_has_gone_ends_without_a_word(command: Command, rules: Collection, line: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = command(*line.split(), stdout=writer)
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (128 + signal.SIGPIPE, "")


@pytest.mark.parametrize(
    ("arguments", "place"),
    [
        (("report", "--html", "missing/report.html"), "missing/report.html"),
        pytest.param(("report", "--pdf", "missing/report.pdf"), "missing/report.pdf", marks=needs("pdf_exports")),
        (("eval", "missing.jsonl"), "missing.jsonl"),
        (("ingest", "missing"), "missing"),
        (("tenant", "export", "demo", "missing/demo.zip"), "missing/demo.zip"),
    ],
    ids=lambda value: " ".join(value[:2]) if isinstance(value, tuple) else None,
)
def test_a_file_or_folder_that_is_missing_is_named_in_one_sentence(
    command: Command, collection: Collection, arguments: tuple[str, ...], place: str
) -> None:
    done = command(*arguments)
    said = [line for line in done.stderr.splitlines() if not line.startswith("• ")]
    assert done.returncode == 1, done.stdout + done.stderr
    assert len(said) == 1, done.stderr
    assert place in said[0]
    assert said[0].endswith(".")


def test_the_version_is_that_of_the_newest_release(command: Command) -> None:
    changes = (PROJECT / "CHANGELOG.md").read_text("utf-8")
    newest = re.search(r"^## \[(\d[^\]]*)\]", changes, re.MULTILINE)
    assert command("--version").stdout == f"HR Assistant {newest[1] if newest else 'unreleased'}\n"


def test_a_tenant_without_documents_is_told_how_to_fill_that_one(command: Command, database: Database) -> None:
    with database.transaction("other") as connection:
        connection.execute(
            "INSERT INTO collections (tenant_id, name, embedding_model) "
            "VALUES ('other', 'Own rules', 'builtin/lexical@384')"
        )
    for words in (("search", "leave"), ("ask", "leave"), ("eval",)):
        done = command(*words, "--tenant", "other")
        assert done.returncode == 1
        assert "python -m rag ingest PATH --tenant other --collection 'Own rules'" in done.stderr


def test_commands_make_the_tenant_that_the_application_would_make(command: Command, superuser_conninfo: str) -> None:
    with psycopg.connect(superuser_conninfo) as connection:
        connection.execute("DELETE FROM tenants WHERE id = 'demo'")
    made = command("collection", "create", "Boards", "--profile", "notices")
    assert made.returncode == 0, made.stderr
    assert made.stdout.startswith("Boards: notices, ko, ")
    other = command("collection", "create", "Boards", "--profile", "notices", "--tenant", "nobody")
    assert (other.returncode, other.stderr.splitlines()[-1]) == (1, "There is no tenant nobody.")


def test_a_folder_is_ingested_with_a_password_and_names_what_it_leaves_out(
    command: Command, collection: Collection, tmp_path: Path
) -> None:
    folder = tmp_path / "papers"
    folder.mkdir()
    (folder / "locked.pdf").write_bytes(hostile.encrypted("secret"))
    (folder / "film.mp4").write_bytes(b"film")
    (folder / ".hidden.xyz").write_bytes(b"nothing")
    done = command("ingest", str(folder), "--no-metadata")
    assert done.returncode == 1
    assert "password" in done.stdout
    assert "1 left out, of kinds that cannot be read: film.mp4" in done.stderr
    (tmp_path / "password.txt").write_text("secret\n", "utf-8")
    done = command("ingest", str(folder), "--no-metadata", "--password-file", str(tmp_path / "password.txt"))
    assert done.returncode == 0, done.stdout + done.stderr
    shown = command("documents", "list").stdout
    assert f"{datetime.now(UTC):%Y-%m-%d}  completed" in shown
    assert f"  {collection.name}  " in shown


def test_several_files_folders_and_archives_are_ingested_at_once(
    command: Command, collection: Collection, tmp_path: Path
) -> None:
    folder, archive = tmp_path / "papers", tmp_path / "rules.zip"
    folder.mkdir()
    (folder / "parking.txt").write_text("A parking place costs 30 euros a month.", "utf-8")
    (folder / "film.mp4").write_bytes(b"film")
    texts = [tmp_path / f"{name}.txt" for name in ("leave", "travel", "empty")]
    for path, text in zip(texts, ("Leave is 27 days a year.", "Trains are booked in second class.", ""), strict=True):
        path.write_text(text, "utf-8")
    with zipfile.ZipFile(archive, "w") as packed:
        packed.writestr("lunch.txt", "Lunch is paid on Fridays.")
    first = command("ingest", *map(str, texts[:2]), "--no-metadata")
    assert first.returncode == 0, first.stdout + first.stderr
    assert first.stdout.splitlines()[-1] == "2 documents processed, 0 stored before, 0 failed."
    assert "version" not in first.stdout

    done = command("ingest", *map(str, [*texts, folder, archive, texts[0]]), "--no-metadata")
    lines = done.stdout.splitlines()
    assert [line.partition(": ")[0] for line in lines[:-1]] == [
        f"[{number}/5] {path}" for number, path in enumerate([*texts, folder / "parking.txt", archive / "lunch.txt"], 1)
    ]
    assert lines[-1] == "2 documents processed, 2 stored before, 1 failed."
    assert (done.returncode, f"1 left out, of kinds that cannot be read: {folder / 'film.mp4'}" in done.stderr) == (
        1,
        True,
    )


def test_a_file_that_replaces_another_says_so_an_older_one_too(
    command: Command, collection: Collection, tmp_path: Path
) -> None:
    path = tmp_path / "parking.txt"
    lines = []
    for price in (20, 30, 20):
        path.write_text(f"A parking place costs {price} euros a month.", "utf-8")
        lines.append(command("ingest", str(path), "--no-metadata").stdout)
    assert ["; version" in line for line in lines] == [False, True, True]
    assert "; version 3, the one before can be restored" in lines[2]


def test_of_several_paths_a_missing_one_and_a_damaged_archive_are_named_before_anything_is_read(
    command: Command, collection: Collection, tmp_path: Path
) -> None:
    text, damaged = tmp_path / "leave.txt", tmp_path / "damaged.zip"
    text.write_text("Leave is 27 days a year.", "utf-8")
    damaged.write_bytes(b"no archive")
    for wrong in (tmp_path / "missing.txt", damaged):
        done = command("ingest", str(text), str(wrong), "--no-metadata")
        assert (done.returncode, done.stdout) == (1, "")
        assert str(wrong) in done.stderr.splitlines()[-1]


def test_documents_are_listed_with_the_reason_of_a_failure(
    command: Command, rules: Collection, database: Database
) -> None:
    with database.transaction("demo") as connection:
        connection.execute("UPDATE documents SET status = 'failed', message = 'Its pages are damaged.'")
    assert "): Its pages are damaged.\n" in command("documents", "list").stdout


def test_a_price_of_a_model_that_no_list_has_is_set_with_a_warning(command: Command, collection: Collection) -> None:
    known = command("prices", "set", "gpt-4o", "input_mtok", "2")
    assert (known.returncode, "No price list" in known.stderr) == (0, False)
    unknown = command("prices", "set", "gtp-4o", "input_mtok", "2")
    assert unknown.returncode == 0
    assert "No price list has 'gtp-4o': check that its provider names it so." in unknown.stderr


def test_an_answer_is_asked_for_in_a_language(
    command: Command, rules: Collection, provider_standin: ProviderStandin
) -> None:
    provider_standin.reply("Volgens regel 7.7 sluit kantoor 49 om 18:49 [1].")
    question = "By rule 7.7, at what time closes office 49?"
    done = command("ask", question, "--collection", rules.name, "--language", "nl")
    assert done.returncode == 0, done.stderr
    systems = [body["messages"][0]["content"] for kind, body in provider_standin.requests if kind == "chat"]
    assert any("Answer in Dutch" in system for system in systems)
