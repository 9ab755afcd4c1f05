"""A backup is taken and brought back: the copy answers the same."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from rag.errors import SettingsError
from rag.settings import Settings
from rag.storage.backup import back_up, restore
from rag.storage.data_folder import move_restored, starting
from rag.storage.embedded_postgres import DATABASE, remove_left, start_server
from tests.forked import forked_python
from tests.patience import patient

PROJECT = Path(__file__).resolve().parents[2]
QUESTION = "How many days of annual leave do full-time employees have?"


def run(data_dir: Path, *arguments: str, **environment: str) -> str:
    done = subprocess.run(
        [*forked_python(), "-m", "rag", *arguments],
        cwd=PROJECT,
        env={**os.environ, "RAG_DATA_DIR": str(data_dir), "RAG_SAMPLES": "false", **environment},
        capture_output=True,
        text=True,
        timeout=patient(180),
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_restored_copy_answers_the_same(tmp_path: Path) -> None:
    first, second, file = tmp_path / "first", tmp_path / "second", tmp_path / "backup.tar"
    text = tmp_path / "leave.txt"
    text.write_text(
        "Every employee gets 27 vacation days a year. Unused days lapse at the end of March.\n" * 3, "utf-8"
    )
    run(first, "tenant", "create", "acme")
    prepared = [*forked_python(), "-c", PREPARE]
    environment = {**os.environ, "RAG_DATA_DIR": str(first), "RAG_SAMPLES": "false", "RAG_TENANT": "acme"}
    subprocess.run(prepared, cwd=PROJECT, env=environment, check=True, timeout=patient(180))
    answer = run(first, "ask", QUESTION, "--tenant", "acme")
    assert "[1]" in answer
    assert "1 document, 1 original, " in run(first, "backup", str(file))
    assert "1 original" in run(second, "restore", str(file))
    assert run(second, "ask", QUESTION, "--tenant", "acme") == answer
    originals = [path for path in (second / "files").rglob("*") if path.is_file()]
    assert [path.read_bytes() for path in originals] == [
        path.read_bytes() for path in (first / "files").rglob("*") if path.is_file()
    ]


PREPARE = """
from rag.profiles import HR
from rag.samples import SAMPLES
from rag.services import connect_services
from rag.settings import load_settings
from rag.types import UploadOptions

parts = connect_services(load_settings())
embedder = parts.providers.default_embedder_id(HR)
collection = parts.documents.ensure_collection("acme", "HR documents", "hr", embedder, "en")
sample = SAMPLES[0]
parts.pipeline.process_document(
    file=sample.read(), file_name=sample.file_name, tenant_id="acme", collection=collection,
    options=UploadOptions(generate_metadata=False),
)
parts.close()
"""


def test_corrections_of_pages_are_restored_and_hold_for_the_next_reading(tmp_path: Path) -> None:
    first, second, file, text = (tmp_path / name for name in ("first", "second", "backup.tar", "page.txt"))
    run(first, "tenant", "create", "acme")
    prepared = [*forked_python(), "-c", PREPARE]
    environment = {**os.environ, "RAG_DATA_DIR": str(first), "RAG_SAMPLES": "false", "RAG_TENANT": "acme"}
    subprocess.run(prepared, cwd=PROJECT, env=environment, check=True, timeout=patient(180))
    of_acme = ("--tenant", "acme")

    def document_in(data: Path) -> str:
        listed = [json.loads(line) for line in run(data, "documents", "list", "--json", *of_acme).splitlines()]
        return str(next(row["id"] for row in listed if row["status"] == "completed"))

    as_read = run(first, "documents", "correct", document_in(first), "2", *of_acme)
    text.write_text(f"Badgers dig for 33 days.\n{as_read}", "utf-8")
    run(first, "documents", "correct", document_in(first), "2", "--text", str(text), *of_acme)
    run(first, "backup", str(file))
    run(second, "restore", str(file))
    shown = run(second, "documents", "correct", document_in(second), "2", *of_acme)
    assert shown == text.read_text("utf-8")
    assert "33 days" in run(second, "ask", "How long do badgers dig?", *of_acme)
    # A page that was not corrected makes a new version of the whole document; the correction holds there too.
    text.write_text("A page of its own.", "utf-8")
    run(second, "documents", "correct", document_in(second), "3", "--text", str(text), *of_acme)
    assert run(second, "documents", "correct", document_in(second), "2", *of_acme) == shown
    run(second, "documents", "correct", document_in(second), "2", "--as-read", *of_acme)
    assert run(second, "documents", "correct", document_in(second), "2", *of_acme) == as_read


def test_a_backup_never_writes_over_a_file_and_leaves_no_half(tmp_path: Path) -> None:
    there = tmp_path / "there.tar"
    there.write_text("mine")
    with pytest.raises(SettingsError, match="there already"):
        back_up(Settings(data_dir=tmp_path / "data"), there)
    assert there.read_text() == "mine"
    with pytest.raises(SettingsError, match="cannot be written"):
        back_up(Settings(data_dir=tmp_path / "data"), tmp_path / "no" / "folder.tar")
    with pytest.raises(SettingsError, match="nothing to back up"):
        back_up(Settings(data_dir=tmp_path / "data"), tmp_path / "new.tar")
    assert [path.name for path in tmp_path.iterdir()] == ["there.tar"]


def test_a_folder_with_a_database_is_not_restored_over(tmp_path: Path) -> None:
    (tmp_path / "data" / "postgres").mkdir(parents=True)
    (tmp_path / "data" / "postgres" / "PG_VERSION").write_text("18")
    with pytest.raises(SettingsError, match="holds a database already"):
        restore(Settings(data_dir=tmp_path / "data"), tmp_path / "any.tar")


def test_what_is_no_backup_is_said_to_be_none(tmp_path: Path) -> None:
    junk = tmp_path / "junk.tar"
    junk.write_bytes(b"not a tar file")
    empty = tmp_path / "empty.tar"
    with tarfile.open(empty, "w"):
        pass
    for path in (junk, empty, tmp_path / "missing.tar"):
        with pytest.raises(SettingsError, match="not a backup"):
            restore(Settings(data_dir=tmp_path / "data"), path)
    assert not (tmp_path / "data").exists()


def test_another_database_is_backed_up_by_its_own_means(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, database_url="postgresql://elsewhere/db")
    for act in (back_up, restore):
        with pytest.raises(SettingsError, match="own means"):
            act(settings, tmp_path / "x.tar")


@pytest.fixture(scope="module")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the data folder `first` of a tenant with one document, and its backup."""
    made = tmp_path_factory.mktemp("made")
    folder = made / "first"
    run(folder, "tenant", "create", "acme")
    environment = {**os.environ, "RAG_DATA_DIR": str(folder), "RAG_SAMPLES": "false", "RAG_TENANT": "acme"}
    subprocess.run([*forked_python(), "-c", PREPARE], cwd=PROJECT, env=environment, check=True, timeout=patient(180))
    run(folder, "backup", str(made / "backup.tar"))
    return made


@pytest.fixture
def small_backup(made_once: Path, tmp_path: Path) -> Path:
    """A backup of a tenant with one document, beside a copy of the data folder `first` that it was made of."""
    # With its owners: the server refuses a folder that is not its own.
    subprocess.run(["cp", "-a", f"{made_once}/.", str(tmp_path)], check=True)
    return tmp_path / "backup.tar"


def rewritten(path: Path, change: Callable[[str, bytes], bytes | None]) -> Path:
    """The backup with its parts changed, or left out."""
    damaged = path.with_name("damaged.tar")
    with tarfile.open(path) as archive, tarfile.open(damaged, "w") as other:
        for member in archive:
            file = archive.extractfile(member)
            content = change(member.name, file.read() if file else b"")
            if content is not None:
                member.size = len(content)
                other.addfile(member, io.BytesIO(content))
    return damaged


def test_a_backup_that_breaks_off_or_is_damaged_leaves_nothing_behind(small_backup: Path, tmp_path: Path) -> None:
    whole = small_backup.read_bytes()
    cut = tmp_path / "cut.tar"
    data = tmp_path / "new"
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "notes.txt").write_text("mine")
    for length in (len(whole) // 3, len(whole) - 12_000):
        cut.write_bytes(whole[:length])
        with pytest.raises(SettingsError):
            restore(Settings(data_dir=data), cut)
        assert not data.exists()
    changes: list[Callable[[str, bytes], bytes | None]] = [
        lambda name, content: content[: len(content) // 2] if name == "database.dump" else content,
        lambda name, content: content[::-1] if name.startswith("files/") else content,
        lambda name, content: b"[]" if name == "manifest.json" else content,
    ]
    for change, folder in zip(changes, (data, tmp_path / "kept", data), strict=True):
        was_there = folder.exists()
        with pytest.raises(SettingsError):
            restore(Settings(data_dir=folder), rewritten(small_backup, change))
        assert folder.exists() == was_there
        assert not was_there or [path.name for path in folder.iterdir()] == ["notes.txt"]
    assert restore(Settings(data_dir=tmp_path / "kept"), small_backup).documents == 1


def test_a_backup_from_before_the_baseline_is_restored_and_one_of_a_newer_version_is_not(
    small_backup: Path, tmp_path: Path
) -> None:
    def known_to_it(*more: str) -> Path:
        def change(name: str, content: bytes) -> bytes:
            if name != "manifest.json":
                return content
            manifest = json.loads(content)
            return json.dumps({**manifest, "migrations": [*manifest["migrations"], *more]}).encode()

        return rewritten(small_backup, change)

    with pytest.raises(SettingsError, match="newer version"):
        restore(Settings(data_dir=tmp_path / "newer"), known_to_it("29991231000000_later"))
    earlier = known_to_it("20261122119000_roles", "20261129020000_things_of_people")
    assert restore(Settings(data_dir=tmp_path / "earlier"), earlier).documents == 1


def test_a_document_whose_original_is_gone_ends_the_backup_with_a_sentence(small_backup: Path, tmp_path: Path) -> None:
    for path in (tmp_path / "first" / "files").rglob("*"):
        if path.is_file():
            path.unlink()
    with pytest.raises(SettingsError, match="1 original is not in"):
        back_up(Settings(data_dir=tmp_path / "first"), tmp_path / "second.tar")
    assert not list(tmp_path.glob("second*"))


def test_a_backup_made_while_people_work_is_one_moment_of_all_tenants(tmp_path: Path) -> None:
    data = tmp_path / "first"
    environment = {**os.environ, "RAG_DATA_DIR": str(data), "RAG_SAMPLES": "false", "RAG_EXTRACTION_MEMORY_MB": "512"}
    with subprocess.Popen(
        [*forked_python(), "-c", BUSY], cwd=PROJECT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        text=True,
    ) as busy:  # fmt: skip
        try:
            assert busy.stdin is not None
            assert busy.stdout is not None
            assert busy.stdout.readline() == "ready\n"
            for number in range(2):
                back_up(Settings(data_dir=data), tmp_path / f"{number}.tar")
            busy.stdin.write("stop\n")
            busy.stdin.flush()
            rounds = int(busy.stdout.readline())
            assert busy.wait(patient(60)) == 0
        finally:
            busy.kill()
    assert rounds >= 1
    for number in range(2):
        copy = tmp_path / f"copy{number}"
        made = restore(Settings(data_dir=copy), tmp_path / f"{number}.tar")
        assert made.documents >= 2
        done = subprocess.run(
            [*forked_python(), "-c", CHECK], cwd=PROJECT, env={**environment, "RAG_DATA_DIR": str(copy)},
            capture_output=True, text=True, timeout=patient(120), check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        for tenant in ("acme", "zeta"):
            found = json.loads(done.stdout)[tenant]
            assert found["answer"] == f"{tenant} gives 31 days of zebra leave."
            assert found["messages"] == 2
            assert found["costs"] == ["0.125"]
            assert found["originals"] is True


#: Two tenants, each with a document, a conversation and a bill; uploads and deletes until told to stop.
BUSY = """
import sys, threading
from decimal import Decimal
from rag.services import program_of
from rag.services import connect_services
from rag.settings import load_settings
from rag.types import Charge, UploadOptions, Usage

parts = connect_services(load_settings())
collections = {}
for tenant in ("acme", "zeta"):
    parts.tenants.create(tenant, tenant)
    made = parts.documents.ensure_collection(tenant, "HR documents", "hr", "builtin/lexical@1536", "en")
    collections[tenant] = made
    parts.pipeline.process_document(
        file=f"{tenant} gives 31 days of zebra leave.".encode() * 3, file_name="zebra.txt", tenant_id=tenant,
        collection=made, options=UploadOptions(generate_metadata=False),
    )
    with parts.database.transaction(tenant) as connection:
        connection.execute(
            "WITH a AS (INSERT INTO accounts (tenant_id, email, role, password_hash)"
            " VALUES (%(t)s, %(t)s || '@x', 'admin', '') RETURNING id),"
            " c AS (INSERT INTO conversations (tenant_id, account_id, collection_id, title)"
            " SELECT %(t)s, a.id, %(c)s, 'Leave' FROM a RETURNING id)"
            " INSERT INTO messages (tenant_id, conversation_id, role, content)"
            " SELECT %(t)s, c.id, r, 'text' FROM c, unnest(ARRAY['user', 'assistant']) r", {"t": tenant, "c": made.id}
        )
    usage = Usage(provider="openai", model="text-embedding-3-small", input_tokens=9)
    parts.ledger.record(tenant, Charge(operation="embedding", usage=usage, cost=Decimal("0.125")))
stopped, rounds = threading.Event(), 0

def work():
    global rounds
    while not stopped.is_set():
        for tenant, collection in collections.items():
            result = parts.pipeline.process_document(
                file=f"Round {rounds} of {tenant}.".encode(), file_name=f"{rounds}.txt", tenant_id=tenant,
                collection=collection, options=UploadOptions(generate_metadata=False),
            )
            parts.documents.delete(program_of(tenant), result.document_id)
        rounds += 1

working = threading.Thread(target=work)
working.start()
print("ready", flush=True)
sys.stdin.readline()
stopped.set()
working.join()
print(rounds, flush=True)
parts.close()
"""

CHECK = """
import json
from rag.services import connect_services
from rag.settings import load_settings

parts = connect_services(load_settings())
told = {}
for tenant in ("acme", "zeta"):
    documents = parts.documents.list(tenant)
    zebra = next(d for d in documents if d.file_name == "zebra.txt")
    with parts.database.transaction(tenant) as connection:
        costs = connection.execute("SELECT cost::text FROM cost_ledger ORDER BY created_at").fetchall()
        messages = connection.execute("SELECT count(*) FROM messages").fetchone()[0]
    told[tenant] = {
        "answer": parts.documents.chunks(tenant, zebra.id)[0].content.split(".")[0] + ".",
        "costs": [str(float(cost)) for (cost,) in costs], "messages": messages,
        "originals": all(parts.documents.original(tenant, d.id) for d in documents),
    }
print(json.dumps(told))
parts.close()
"""


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_what_holds_hashes_of_passwords_is_its_owners_alone(small_backup: Path, tmp_path: Path) -> None:
    run(tmp_path / "first", "tenant", "export", "acme", str(tmp_path / "acme.zip"))
    assert mode(small_backup) == mode(tmp_path / "acme.zip") == 0o600
    assert sorted(path.name for path in tmp_path.iterdir()) == ["acme.zip", "backup.tar", "first"]


def left_in(folder: Path) -> list[str]:
    """What a backup or a restore left, dumps and hidden files."""
    kinds = ("*.dump", ".backup-*", ".restore*", ".*.part")
    return [str(path) for kind in kinds for path in folder.rglob(kind)]


def killed_when(there: Callable[[], bool], data: Path, *arguments: str) -> bool:
    """Start a command and kill it at the moment something is there; False when it had ended before."""
    with subprocess.Popen(
        [sys.executable, "-m", "rag", *arguments], cwd=PROJECT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        env={**os.environ, "RAG_DATA_DIR": str(data), "RAG_SAMPLES": "false"},
    ) as process:  # fmt: skip
        while process.poll() is None:
            if there():
                process.kill()
                return True
            time.sleep(0.001)
        return there()


def test_a_killed_backup_never_looks_whole_and_its_dump_is_removed(small_backup: Path, tmp_path: Path) -> None:
    first, path = tmp_path / "first", tmp_path / "second.tar"
    killed = 0
    for there in (
        lambda: bool(list(first.glob(".backup-*"))),
        lambda: any(dump.stat().st_size for dump in first.glob(".backup-*/*.dump")),
    ):
        killed += killed_when(there, first, "backup", str(path))
        if path.exists():
            with tarfile.open(path) as archive:
                assert "manifest.json" in archive.getnames()
            path.unlink()
    assert killed
    assert left_in(tmp_path)
    assert back_up(Settings(data_dir=first), path).documents == 1
    assert left_in(tmp_path) == []


#: What is there when a restore is killed, in the order in which it is made.
STEPS = (".restore-*/database.dump", ".restore-*/postgres.new", ".restore-*/postgres/base/16*", ".restore-*/files")


def test_a_restore_killed_at_any_moment_leaves_the_old_state_or_the_new_one(small_backup: Path, tmp_path: Path) -> None:
    states = []
    for number, step in enumerate((*STEPS, ".restored", "files", "postgres")):
        data = tmp_path / f"copy{number}"
        killed_when(lambda data=data, step=step: any(data.glob(step)), data, "restore", str(small_backup))  # type: ignore[misc]
        with starting(data):  # what each start does first
            move_restored(data)
            remove_left(data)
        assert left_in(data) == []
        states.append(documents_of(data))
    assert states[:3] == [None] * 3
    assert states[3] in (None, (1, 1))  # a moment later it is renamed
    assert states[4:] == [(1, 1)] * 3


def documents_of(data: Path) -> tuple[int, int] | None:
    """How many documents and originals there are; None for a folder without a database and files."""
    if not (data / "postgres").exists():
        assert not (data / "files").exists()
        return None
    originals = [path for path in (data / "files").rglob("*") if path.is_file()]
    server = start_server(data)
    try:
        with psycopg.connect(make_conninfo(server.superuser, dbname=DATABASE)) as connection:
            found = connection.execute("SELECT count(*) FROM documents").fetchone()
    finally:
        server.stop()
    assert found is not None
    return found[0], len(originals)


def test_nothing_is_restored_into_a_folder_that_is_in_use(small_backup: Path, tmp_path: Path) -> None:
    server = start_server(tmp_path / "used")
    try:
        with pytest.raises(SettingsError, match="is in use"):
            restore(Settings(data_dir=tmp_path / "used"), small_backup)
    finally:
        server.stop()
