"""Backups are made by themselves, encrypted, kept for their time, and tried by restoring them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tarfile
import threading
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from psycopg.conninfo import make_conninfo

from rag.api.health import check_rag_health
from rag.errors import SettingsError
from rag.integrations.operations.backups.checks import backup_checks
from rag.integrations.operations.backups.scheduled import (
    LEFT_SECONDS,
    NAME,
    REPORT,
    FolderPlace,
    ScheduledBackups,
)
from rag.integrations.registry import backup_decryption, backup_encryption
from rag.services import assemble, connect_services
from rag.settings import Settings, load_settings
from rag.storage.backup import back_up, restore
from rag.storage.data_folder import BACKUP, RESTORE
from rag.storage.database import Database
from rag.storage.embedded_postgres import DATABASE, start_server
from rag.storage.erasures import read_register
from tests.api.callers import Api
from tests.forked import forked_python
from tests.integrations.operations.backups.s3_standin import ACCESS, SECRET, S3Standin
from tests.patience import patient
from tests.records.test_privacy import tables_with
from tests.storage.test_backup import PREPARE, PROJECT, QUESTION, run


class Clock:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.now = datetime(2026, 11, 2, 3, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


def set_up(folder: Path, **variables: str) -> Settings:
    """Settings for a data folder with variables of backups."""
    return Settings(data_dir=folder, tenant="demo", integration_variables=variables)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a data folder with one document."""
    folder = tmp_path_factory.mktemp("installed") / "data"
    run(folder, "tenant", "create", "demo")
    prepared = PREPARE.replace('"acme"', '"demo"')
    environment = {"RAG_DATA_DIR": str(folder), "RAG_SAMPLES": "false", "PATH": "/usr/bin:/bin"}
    subprocess.run([*forked_python(), "-c", prepared], cwd=PROJECT, env=environment, check=True, timeout=patient(180))
    return folder


@pytest.fixture
def data(installed: Path) -> Path:
    """Return it without a record of backups."""
    (installed / REPORT).unlink(missing_ok=True)
    return installed


def key(folder: Path) -> tuple[Path, str]:
    path = folder / "key.txt"
    return path, run(folder / "none", "backups", "new-key", str(path)).strip()


def test_a_backup_is_due_by_its_interval_old_ones_go_and_one_is_tried_each_month(data: Path, tmp_path: Path) -> None:
    place, clock = tmp_path / "elsewhere", Clock()
    identity, recipient = key(tmp_path)
    assert identity.stat().st_mode & 0o777 == 0o600
    settings = set_up(
        data,
        RAG_BACKUP_TO=str(place),
        RAG_BACKUP_KEEP_DAYS="3",
        RAG_BACKUP_RECIPIENTS=recipient,
        RAG_BACKUP_IDENTITY=str(identity),
    )
    backups = ScheduledBackups(settings, clock=clock)
    assert set(backups.ages().values()) == {float("inf")}
    backups.run_due()
    assert "cannot be stored" in backups.trouble()  # the folder is not there, and nobody made one by mistake
    assert not place.exists()
    place.mkdir()
    (place / "mine.txt").write_text("not ours")
    backups.run_due()
    assert backups.list() == []  # it failed a moment ago
    clock.now += timedelta(hours=1)
    backups.run_due()
    first = backups.list()[0]
    assert NAME.fullmatch(first.name)
    assert (place / first.name).stat().st_mode & 0o777 == 0o600
    assert (place / first.name).read_bytes().startswith(b"age-encryption.org/v1")
    made, tried = backups.last()
    assert made is not None
    assert tried is not None
    assert (made.documents, made.files, made.error) == (tried.documents, tried.files, tried.error) == (1, 1, "")
    assert backups.trouble() == ""
    backups.run_due()
    clock.now += timedelta(hours=23)
    backups.run_due()
    assert backups.list() == [first]
    for name in ("hr-assistant-20261101T030000Z.tar.age", "hr-assistant-20261031T030000Z.tar"):
        shutil.copyfile(place / first.name, place / name)
    shutil.copyfile(place / first.name, place / "hr-assistant-20261030T030000Z.tar")
    clock.now += timedelta(hours=1)
    backups.run_due()
    # Three are kept however old they are, and what is not ours is left alone.
    names = sorted(path.name for path in place.iterdir())
    assert names == [
        "hr-assistant-20261101T030000Z.tar.age", first.name, "hr-assistant-20261103T040000Z.tar.age", "mine.txt",
    ]  # fmt: skip
    assert backups.last()[1] == tried
    # A trial finds what a list of files does not show.
    newest = place / backups.list()[0].name
    newest.write_bytes(newest.read_bytes()[:-1000])
    clock.now += timedelta(days=31)
    assert "made while the application runs" in backups.trouble()
    newest = newest.rename(place / f"hr-assistant-{clock.now:%Y%m%dT%H%M%S}Z.tar.age")
    backups.run_due()
    assert "as a trial failed" in backups.trouble()
    assert "not a backup that can be read" in backups.trouble()
    assert backups.ages()["trial"] == pytest.approx(timedelta(days=32).total_seconds())
    assert not [*data.glob(f"{BACKUP}*"), *data.glob(f"{RESTORE}*")]
    # It is tried again after a day, not every minute.
    failed = backups.last()[1]
    clock.now += timedelta(hours=23)
    backups.run_due()
    assert backups.last()[1] == failed
    clock.now += timedelta(hours=1)
    newest.rename(place / f"hr-assistant-{clock.now:%Y%m%dT%H%M%S}Z.tar.age")
    backups.run_due()
    again = backups.last()[1]
    assert again is not None
    assert again.at == clock.now
    assert "not a backup that can be read" in again.error


def test_a_backup_is_private_while_it_is_copied_and_what_a_kill_left_goes(tmp_path: Path) -> None:
    source, place = tmp_path / "made", tmp_path / "elsewhere"
    place.mkdir()
    left, under_way = place / ".hr-assistant-1.tar.part", place / ".hr-assistant-2.tar.part"
    for path in (left, under_way):
        path.write_bytes(b"half")
    long_ago = time.time() - LEFT_SECONDS - 60
    os.utime(left, (long_ago, long_ago))
    os.mkfifo(source)
    copying = threading.Thread(target=FolderPlace(place).store, args=(source, "hr-assistant-3.tar"))
    copying.start()
    with source.open("wb") as file:
        file.write(b"password hashes")
        file.flush()
        (partial,) = place.glob(".hr-assistant-3*")
        assert partial.stat().st_mode & 0o777 == 0o600
    copying.join()
    assert {path.name for path in place.iterdir()} == {under_way.name, "hr-assistant-3.tar"}
    assert (place / "hr-assistant-3.tar").stat().st_mode & 0o777 == 0o600


def test_only_the_private_key_opens_an_encrypted_backup(data: Path, tmp_path: Path) -> None:
    settings, file = Settings(data_dir=data), tmp_path / "backup.tar.age"
    identity, recipient = key(tmp_path)
    with pytest.raises(SettingsError, match="looks like age1"):
        back_up(settings, file, encrypt=backup_encryption("age1nonsense"))
    answer = run(data, "ask", QUESTION)
    assert "1 document, " in run(data, "backup", str(file), "--recipient", recipient)
    fresh = Settings(data_dir=tmp_path / "fresh")
    (tmp_path / "other").mkdir()
    other, _ = key(tmp_path / "other")
    for given, said in ((None, "is encrypted"), (other, "does not open"), (file, "no private key")):
        with pytest.raises(SettingsError, match=said):
            restore(fresh, file, decrypt=backup_decryption(given))
        assert not fresh.data_dir.exists()
    run(fresh.data_dir, "restore", str(file), "--identity", str(identity))
    assert run(fresh.data_dir, "ask", QUESTION) == answer


def test_it_is_made_beside_the_application_and_doctor_says_how_it_went(data: Path, tmp_path: Path) -> None:
    place = tmp_path / "elsewhere"
    place.mkdir()
    environment = {"RAG_DATA_DIR": str(data), "RAG_BACKUP_TO": str(place), "RAG_SAMPLES": "false"}
    services = connect_services(load_settings(environment, None))
    try:
        assert services.queue.on_backups is not None

        def said() -> tuple[str, str]:
            check = next(check for check in check_rag_health(services).checks if check.name == "Backups")
            return check.state, check.sentence

        assert said() == ("warning", "None was made yet. The first is made a minute after the application starts.")
        services.queue.on_backups()
        state, sentence = said()
        assert state == "ok"
        assert "was restored completely as a test" in sentence
    finally:
        services.close()
    listed = subprocess.run(
        [*forked_python(), "-m", "rag", "backups", "list"], cwd=PROJECT, env={**environment, "PATH": "/usr/bin:/bin"},
        capture_output=True, text=True, check=False, timeout=patient(60),
    )  # fmt: skip
    assert listed.returncode == 0, listed.stderr
    assert "was restored completely" in listed.stdout


def test_backups_are_stored_in_a_bucket_listed_tried_and_deleted_there(data: Path) -> None:
    with S3Standin("hr-backups") as storage:
        settings = set_up(
            data, RAG_BACKUP_TO="s3://hr-backups/nightly/", RAG_BACKUP_KEEP_DAYS="1",
            AWS_ACCESS_KEY_ID=ACCESS, AWS_SECRET_ACCESS_KEY=SECRET, AWS_ENDPOINT_URL=storage.url,
        )  # fmt: skip
        clock = Clock()
        backups = ScheduledBackups(settings, clock=clock)
        storage.objects["nightly/notes.txt"] = storage.objects["hr-assistant-20200101T000000Z.tar"] = b"mine"
        made = [backups.make().name]
        assert backups.try_newest().files == 1
        for days in range(1, 5):
            clock.now = datetime(2026, 11, 2 + days, 3, tzinfo=UTC)
            name = f"hr-assistant-{clock.now:%Y%m%dT%H%M%S}Z.tar"
            storage.objects[f"nightly/{name}"] = storage.objects[f"nightly/{made[0]}"]
            made.append(name)
        clock.now += timedelta(days=1)
        made.append(backups.make().name)
        assert sorted(storage.objects) == sorted(
            ["hr-assistant-20200101T000000Z.tar", "nightly/notes.txt", *(f"nightly/{name}" for name in made[-3:])]
        )
        mistakes = [
            ({"AWS_SECRET_ACCESS_KEY": "another"}, "signature does not match"),
            ({"RAG_BACKUP_TO": "s3://nobodys/x"}, "bucket does not exist"),
            ({"RAG_BACKUP_TO": "s3:///x"}, "look like s3://bucket"),
        ]
        for wrong, said in mistakes:
            with pytest.raises(SettingsError, match=said):
                ScheduledBackups(set_up(data, **{**settings.integration_variables, **wrong})).list()
    assert SECRET not in repr(settings)


def test_what_is_not_set_is_said(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="RAG_BACKUP_TO is not set"):
        ScheduledBackups(Settings(data_dir=tmp_path)).make()
    with pytest.raises(SettingsError, match="DATABASE_URL is set"):
        ScheduledBackups(replace(set_up(tmp_path, RAG_BACKUP_TO="x"), database_url="postgresql://x")).make()
    for name in ("RAG_BACKUP_HOURS", "RAG_BACKUP_KEEP_DAYS"):
        for wrong in ("0", "-1", "nan", "inf", "a day"):
            with pytest.raises(SettingsError, match=f"{name} is '{wrong}', but .* above 0"):
                connect_services(load_settings({name: wrong, "RAG_DATA_DIR": str(tmp_path / "data")}, None))
    assert not (tmp_path / "data").exists()


def test_metrics_have_the_age_of_the_last_backup(api: Api, tmp_path: Path) -> None:
    assert 'hr_backup_age_seconds{kind="backup"}' not in api.client().get("/metrics").text
    settings = replace(api.parts.settings, database_url="", integration_variables={"RAG_BACKUP_TO": str(tmp_path)})
    object.__setattr__(api.parts, "settings", settings)  # the parts are frozen
    shown = api.client().get("/metrics").text
    assert 'hr_backup_age_seconds{kind="backup"} +Inf' in shown
    assert 'hr_backup_age_seconds{kind="trial"} +Inf' in shown


def test_doctor_says_that_no_backup_is_made(tmp_path: Path, database: Database) -> None:
    parts = assemble(Settings(data_dir=tmp_path, tesseract="none", builtin_embedder="lexical"), database)
    (check,) = backup_checks(parts)
    assert (check.name, check.state) == ("Backups", "missing")
    assert "RAG_BACKUP_TO" in check.detail
    assert "RAG" not in check.sentence
    parts.pipeline.close()


CANARY = "canary-51e8"
LEAVE_TRACES = """
WITH person AS (
    INSERT INTO accounts (tenant_id, email, name, role, password_hash)
    VALUES ('demo', 'canary-51e8@demo.example', 'Eve canary-51e8', 'employee', '') RETURNING id
), talk AS (
    INSERT INTO conversations (tenant_id, account_id, collection_id, title)
    SELECT 'demo', person.id, collections.id, 'canary-51e8 leave' FROM person, collections RETURNING id
)
INSERT INTO chat_logs (tenant_id, account_id, conversation_id, question, answer, outcome, total_ms)
SELECT 'demo', person.id, talk.id, 'Is there canary-51e8 leave?', 'canary-51e8', 'answered', 7 FROM person, talk
"""


def held(folder: Path) -> set[str]:
    """Return the tables of a data folder that hold the canary."""
    server = start_server(folder)
    try:
        return tables_with(make_conninfo(server.superuser, dbname=DATABASE), CANARY)
    finally:
        server.stop()


@pytest.mark.parametrize(
    "way", ["beside the backup", "where backups are stored", "of the folder in use", "another way"]
)
def test_restoring_an_older_backup_brings_nobody_back_who_was_erased(installed: Path, tmp_path: Path, way: str) -> None:
    first, second, place = tmp_path / "first", tmp_path / "second", tmp_path / "backups"
    subprocess.run(["cp", "-a", str(installed), str(first)], check=True)
    place.mkdir()
    clock = Clock()
    settings = set_up(first, RAG_BACKUP_TO=str(place))
    backups = ScheduledBackups(settings, clock=clock)
    parts = connect_services(settings)
    try:
        with parts.database.transaction("demo") as connection:
            connection.execute(LEAVE_TRACES)
        older = backups.make().name
        receipt = parts.privacy.erase("demo", f"{CANARY}@demo.example")
        clock.now += timedelta(days=1)
        newer = backups.make().name
    finally:
        parts.close()
    with tarfile.open(place / newer) as archive:
        member = archive.extractfile("manifest.json")
        assert member is not None
        manifest = member.read().decode()
    (noted,) = json.loads(manifest)["erasures"]
    assert (noted["id"], noted["erased_id"], noted["tenant_id"]) == (str(receipt.id), str(receipt.erased_id), "demo")
    registers = [first / "erasures.json", place / "hr-assistant-erasures.json"]
    assert all(json.loads(path.read_text("utf-8")) == [noted] for path in registers)
    assert not any(CANARY in text for text in (manifest, *(path.read_text("utf-8") for path in registers)))

    arguments = ["restore", str(place / older)]
    if way != "beside the backup":
        arguments[1] = str(shutil.copy(place / older, tmp_path / "older.tar"))
    if way == "of the folder in use":
        arguments += ["--erasures", str(first / "erasures.json")]
    if way == "another way":
        # As when a database was taken back to an earlier time by its own means: only the data folder knows.
        assert "erased since" not in run(second, *arguments)
        shutil.copy(first / "erasures.json", second)
    else:
        kept = {"RAG_BACKUP_TO": str(place)} if way == "where backups are stored" else {}
        assert "People erased since this backup was made: 1." in run(second, *arguments, **kept)
    assert {"accounts", "chat_logs", "conversations"} <= held(second)

    for _start in range(2):
        parts = connect_services(Settings(data_dir=second, tenant="demo"))
        try:
            assert parts.privacy.receipts("demo") == [receipt]
            with parts.database.transaction("demo") as connection:
                erased = connection.execute("SELECT question FROM chat_logs WHERE total_ms = 7").fetchall()
                assert erased == [("",)]
        finally:
            parts.close()
    assert held(second) == set()


def test_an_erasure_is_noted_although_the_place_of_backups_cannot_be_reached(data: Path, tmp_path: Path) -> None:
    folder, place = tmp_path / "data", tmp_path / "backups"
    subprocess.run(["cp", "-a", str(data), str(folder)], check=True)
    settings = set_up(folder, RAG_BACKUP_TO=str(place))
    parts = connect_services(settings)
    try:
        with parts.database.transaction("demo") as connection:
            connection.execute(LEAVE_TRACES)
        receipt = parts.privacy.erase("demo", f"{CANARY}@demo.example")
    finally:
        parts.close()
    assert [one.id for one in read_register(folder / "erasures.json")] == [receipt.id]
    place.mkdir()
    ScheduledBackups(settings).make()
    assert [one.id for one in read_register(place / "hr-assistant-erasures.json")] == [receipt.id]
    (place / "hr-assistant-erasures.json").write_text("{", "utf-8")
    with pytest.raises(SettingsError, match="not a register of erasures"):
        ScheduledBackups(settings).shared_erasures()
