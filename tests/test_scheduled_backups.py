"""Backups are made by themselves, encrypted, kept for their time, and tried by restoring them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from rag.api.health import check_rag_health
from rag.errors import SettingsError
from rag.services import connect_services
from rag.settings import Settings, load_settings
from rag.storage.backup import back_up, restore
from rag.storage.data_folder import BACKUP, RESTORE
from rag.storage.scheduled_backups import NAME, REPORT, ScheduledBackups
from tests.s3_standin import ACCESS, SECRET, S3Standin
from tests.test_backup import PREPARE, PROJECT, QUESTION, run


class Clock:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.now = datetime(2026, 11, 2, 3, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a data folder with one document."""
    folder = tmp_path_factory.mktemp("installed") / "data"
    run(folder, "tenant", "create", "demo")
    prepared = PREPARE.replace('"acme"', '"demo"')
    environment = {"RAG_DATA_DIR": str(folder), "RAG_SAMPLES": "false", "PATH": "/usr/bin:/bin"}
    subprocess.run([sys.executable, "-c", prepared], cwd=PROJECT, env=environment, check=True, timeout=180)
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
    settings = Settings(
        data_dir=data,
        backup_to=str(place),
        backup_keep_days=3,
        backup_recipients=recipient,
        backup_identity=str(identity),
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
    newest.rename(place / f"hr-assistant-{clock.now:%Y%m%dT%H%M%S}Z.tar.age")
    backups.run_due()
    assert "as a trial failed" in backups.trouble()
    assert "not a backup that can be read" in backups.trouble()
    assert backups.ages()["trial"] == pytest.approx(timedelta(days=32).total_seconds())
    assert not [*data.glob(f"{BACKUP}*"), *data.glob(f"{RESTORE}*")]


def test_only_the_private_key_opens_an_encrypted_backup(data: Path, tmp_path: Path) -> None:
    settings, file = Settings(data_dir=data), tmp_path / "backup.tar.age"
    identity, recipient = key(tmp_path)
    with pytest.raises(SettingsError, match="looks like age1"):
        back_up(settings, file, recipients="age1nonsense")
    answer = run(data, "ask", QUESTION)
    assert "1 documents" in run(data, "backup", str(file), "--recipient", recipient)
    fresh = Settings(data_dir=tmp_path / "fresh")
    (tmp_path / "other").mkdir()
    other, _ = key(tmp_path / "other")
    for given, said in ((None, "is encrypted"), (other, "does not open"), (file, "no private key")):
        with pytest.raises(SettingsError, match=said):
            restore(fresh, file, identity=given)
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
        assert "restored whole as a trial" in sentence
    finally:
        services.close()
    listed = subprocess.run(
        [sys.executable, "-m", "rag", "backups", "list"], cwd=PROJECT, env={**environment, "PATH": "/usr/bin:/bin"},
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert listed.returncode == 0, listed.stderr
    assert "was restored completely" in listed.stdout


def test_backups_are_stored_in_a_bucket_listed_tried_and_deleted_there(data: Path) -> None:
    with S3Standin("hr-backups") as storage:
        settings = Settings(
            data_dir=data, backup_to="s3://hr-backups/nightly/", backup_keep_days=1,
            aws_access_key_id=ACCESS, aws_secret_access_key=SECRET, aws_endpoint_url=storage.url,
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
        mistakes: list[tuple[dict[str, Any], str]] = [
            ({"aws_secret_access_key": "another"}, "signature does not match"),
            ({"backup_to": "s3://nobodys/x"}, "bucket does not exist"),
            ({"backup_to": "s3:///x"}, "look like s3://bucket"),
        ]
        for wrong, said in mistakes:
            with pytest.raises(SettingsError, match=said):
                ScheduledBackups(replace(settings, **wrong)).list()
    assert SECRET not in repr(settings)


def test_what_is_not_set_is_said(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="RAG_BACKUP_TO is not set"):
        ScheduledBackups(Settings(data_dir=tmp_path)).make()
    with pytest.raises(SettingsError, match="DATABASE_URL is set"):
        ScheduledBackups(Settings(data_dir=tmp_path, backup_to="x", database_url="postgresql://x")).make()
    with pytest.raises(SettingsError, match="above 0"):
        load_settings({"RAG_BACKUP_HOURS": "0"}, None)
