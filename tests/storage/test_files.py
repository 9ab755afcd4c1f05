from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from rag.errors import InvalidInput, NotFound
from rag.storage.files import FileStore

PROJECT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("key", ["../x", "", "ab/../../x", "/etc/passwd", "ab/" + "g" * 64, "AB/" + "a" * 64])
def test_a_key_that_is_not_ours_reaches_no_file(tmp_path: Path, key: str) -> None:
    with pytest.raises(InvalidInput):
        FileStore(tmp_path).get("demo", key)


@pytest.mark.parametrize("tenant", ["..", "", "a/b", "A", "/", "x" * 64])
def test_a_tenant_cannot_leave_the_folder(tmp_path: Path, tenant: str) -> None:
    with pytest.raises(InvalidInput):
        FileStore(tmp_path).put(tenant, b"content")


def test_the_same_content_is_stored_once_and_deleting_twice_is_fine(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    key = store.put("demo", b"content")
    assert store.put("demo", b"content") == key
    assert store.get("demo", key) == b"content"
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [store.path("demo", key)]
    store.delete("demo", key)
    store.delete("demo", key)
    with pytest.raises(NotFound):
        store.get("demo", key)


@pytest.mark.parametrize(
    "act",
    [
        "os.fsync = lambda _: os.kill(os.getpid(), 9); FileStore(folder).put('demo', b'content')",
        "with _as_file(io.BytesIO(b'content')): os.kill(os.getpid(), 9)",
    ],
    ids=["an_original", "an_archive_for_the_process_that_reads_it"],
)
def test_a_process_that_is_killed_leaves_no_copy_that_nobody_deletes(tmp_path: Path, act: str) -> None:
    code = (
        "import io, os, pathlib\nfrom rag.storage.files import FileStore\n"
        f"from rag.ingestion.loaders.sandbox import _as_file\nfolder = pathlib.Path({str(tmp_path)!r})\n{act}"
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    ended = subprocess.run([sys.executable, "-c", code], env=environment, check=False, cwd=PROJECT)
    assert ended.returncode == -signal.SIGKILL
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_nobody_but_its_owner_lists_the_folder_however_it_was_made(tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    folder.chmod(0o755)
    FileStore(folder).put("demo", b"content")
    assert folder.stat().st_mode & 0o777 == 0o700


def test_another_tenant_does_not_have_the_file(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    key = store.put("demo", b"content")
    with pytest.raises(NotFound):
        store.get("other", key)
