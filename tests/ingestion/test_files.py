from __future__ import annotations

from pathlib import Path

import pytest

from rag.errors import InvalidInput, NotFound
from rag.storage.files import FileStore


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


def test_another_tenant_does_not_have_the_file(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    key = store.put("demo", b"content")
    with pytest.raises(NotFound):
        store.get("other", key)
