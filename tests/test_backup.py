"""A backup is taken and brought back: the copy answers the same."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from rag.backup import back_up, restore
from rag.errors import SettingsError
from rag.settings import Settings

PROJECT = Path(__file__).resolve().parent.parent
QUESTION = "How many days of annual leave do full-time employees have?"


def run(data_dir: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "rag", *arguments],
        cwd=PROJECT,
        env={**os.environ, "RAG_DATA_DIR": str(data_dir), "RAG_SAMPLES": "false"},
        capture_output=True,
        text=True,
        timeout=180,
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
    prepared = [sys.executable, "-c", PREPARE]
    environment = {**os.environ, "RAG_DATA_DIR": str(first), "RAG_SAMPLES": "false", "RAG_TENANT": "acme"}
    subprocess.run(prepared, cwd=PROJECT, env=environment, check=True, timeout=180)
    answer = run(first, "ask", QUESTION, "--tenant", "acme")
    assert "[1]" in answer
    assert "documents" in run(first, "backup", str(file))
    assert "originals" in run(second, "restore", str(file))
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

parts = connect_services(load_settings())
embedder = parts.providers.default_embedder_id(HR)
collection = parts.documents.ensure_collection("acme", "HR documents", "hr", embedder, "en")
sample = SAMPLES[0]
parts.processor.process_document(
    file=sample.read(), file_name=sample.file_name, tenant_id="acme", collection=collection, generate_metadata=False
)
parts.close()
"""


def test_a_backup_never_writes_over_a_file_and_leaves_no_half(tmp_path: Path) -> None:
    there = tmp_path / "there.tar"
    there.write_text("mine")
    with pytest.raises(SettingsError, match="there already"):
        back_up(Settings(data_dir=tmp_path / "data"), there)
    assert there.read_text() == "mine"
    with pytest.raises(SettingsError, match="cannot be written"):
        back_up(Settings(data_dir=tmp_path / "data"), tmp_path / "no" / "folder.tar")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "there.tar"]


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
