"""Originals in Supabase Storage, by the real client against a stand-in."""

from __future__ import annotations

import hashlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from rag.errors import (
    FileTooLarge,
    InvalidInput,
    NotFound,
    ProviderAnswerInvalid,
    ProviderError,
    ProviderKeyRejected,
    ProviderUnavailable,
    RagError,
    SettingsError,
)
from rag.providers.supabase import SupabaseFiles, SupabaseProject
from rag.settings import Settings
from tests.patience import patient
from tests.standins.supabase import SupabaseStandin

KEY = f"00/{'0' * 64}"
OBJECT = "/storage/v1/object"


@pytest.fixture
def stored(supabase_project: SupabaseProject) -> SupabaseFiles:
    return SupabaseFiles(supabase_project, "documents")


def trouble(status: str, error: str) -> dict[str, str]:
    return {"statusCode": status, "error": error, "message": "it says why"}


@pytest.mark.parametrize("tenant", ["", "..", "a/b", "Ünï", "A", "x" * 64])
def test_no_name_leaves_the_tenants_own_part(stored: SupabaseFiles, tenant: str) -> None:
    with pytest.raises(InvalidInput):
        stored.get(tenant, KEY)
    with pytest.raises(InvalidInput):
        stored.put(tenant, b"content")
    with pytest.raises(InvalidInput):
        stored.delete(tenant, KEY)


def test_a_public_bucket_is_refused(stored: SupabaseFiles, supabase_project: SupabaseProject) -> None:
    supabase_project.server.storage.create_bucket("documents", options={"public": True})
    with pytest.raises(SettingsError, match="is public"):
        stored.put("demo", b"content")


def test_uploads_do_not_wait_for_each_others_look_at_the_bucket(
    at_supabase: Settings, standin: SupabaseStandin
) -> None:
    project = SupabaseProject(replace(at_supabase, supabase_timeout_seconds=patient(30.0)))
    project.server.storage.create_bucket("documents", options={"public": False})
    stored = SupabaseFiles(project, "documents")
    barrier = standin.meet("/storage/v1/bucket/documents", 4)
    with ThreadPoolExecutor(4) as pool:
        keys = list(pool.map(lambda number: stored.put("demo", f"content {number}".encode()), range(4)))
    project.close()
    assert not barrier.broken
    assert len(set(keys)) == 4


def test_a_missing_original_is_explained(stored: SupabaseFiles) -> None:
    stored.put("demo", b"content")
    with pytest.raises(NotFound, match=r"bucket documents.*upload the file again"):
        stored.get("demo", KEY)


def test_the_key_is_ascii_and_stored_once(stored: SupabaseFiles, standin: SupabaseStandin) -> None:
    content = "휴가 규정".encode()
    assert stored.put("demo", content) == stored.put("demo", content)
    digest = hashlib.sha256(content).hexdigest()
    assert standin.objects == {f"documents/demo/{digest[:2]}/{digest}": content}
    assert standin.buckets["documents"]["public"] is False


def test_what_was_put_is_got_by_its_tenant_only(stored: SupabaseFiles) -> None:
    key = stored.put("demo", b"content")
    assert stored.get("demo", key) == b"content"
    with pytest.raises(NotFound):
        stored.get("other", key)


def test_no_link_is_ever_signed_and_no_user_asked(stored: SupabaseFiles, standin: SupabaseStandin) -> None:
    stored.get("demo", stored.put("demo", b"content"))
    assert not [path for path in standin.calls if "sign" in path]


def test_a_removed_file_is_gone_and_removing_it_again_is_no_error(
    stored: SupabaseFiles, standin: SupabaseStandin
) -> None:
    key = stored.put("demo", b"content")
    stored.delete("demo", key)
    stored.delete("demo", key)
    assert standin.objects == {}
    standin.buckets.clear()
    stored.delete("demo", key)


def test_a_removal_that_removed_nothing_is_noticed(stored: SupabaseFiles, standin: SupabaseStandin) -> None:
    key = stored.put("demo", b"content")
    standin.fail(f"{OBJECT}/documents", 200, [])  # type: ignore[arg-type]
    with pytest.raises(ProviderError, match="tried again"):
        stored.delete("demo", key)


FAULTS = [
    pytest.param("timeout", {}, ProviderUnavailable, id="timeout"),
    pytest.param("reset", {}, ProviderUnavailable, id="reset"),
    pytest.param(502, {}, ProviderUnavailable, id="bad_gateway"),
    pytest.param(400, trouble("500", "internal"), ProviderUnavailable, id="server_error"),
    pytest.param(400, trouble("403", "Unauthorized"), ProviderKeyRejected, id="not_allowed"),
    pytest.param(400, trouble("429", "TooMany"), ProviderError, id="too_many"),
]


@pytest.mark.parametrize(("kind", "body", "error"), FAULTS)
@pytest.mark.parametrize(
    ("path", "action"),
    [
        pytest.param("/storage/v1/bucket", "put", id="bucket"),
        pytest.param(OBJECT, "put", id="upload"),
        pytest.param(OBJECT, "get", id="download"),
        pytest.param(OBJECT, "delete", id="remove"),
    ],
)
def test_every_fault_of_every_call_is_an_error_of_ours(
    supabase_project: SupabaseProject,
    standin: SupabaseStandin,
    path: str,
    action: str,
    kind: int | str,
    body: dict[str, str],
    error: type[RagError],
) -> None:
    key = SupabaseFiles(supabase_project, "documents").put("demo", b"content")
    fresh = SupabaseFiles(supabase_project, "documents")
    standin.fail(path, kind, body)
    with pytest.raises(error) as caught:
        fresh.put("demo", b"more") if action == "put" else getattr(fresh, action)("demo", key)
    assert "service-key" not in str(caught.value)
    # And the next try works.
    fresh.put("demo", b"more") if action == "put" else getattr(fresh, action)("demo", key)


@pytest.mark.parametrize(
    ("body", "error"),
    [
        pytest.param(trouble("413", "Payload too large"), FileTooLarge, id="too_large"),
        pytest.param(trouble("415", "invalid_mime_type"), ProviderError, id="kind_not_allowed"),
        pytest.param(trouble("400", "InvalidKey"), ProviderError, id="invalid_key"),
    ],
)
def test_what_storage_refuses_of_an_upload_is_said(
    stored: SupabaseFiles, standin: SupabaseStandin, body: dict[str, str], error: type[RagError]
) -> None:
    standin.fail(OBJECT, 400, body)
    with pytest.raises(error):
        stored.put("demo", b"content")


def test_an_answer_that_makes_no_sense_is_an_error_of_ours(stored: SupabaseFiles, standin: SupabaseStandin) -> None:
    standin.fail("/storage/v1/bucket", "garbage")
    with pytest.raises(ProviderAnswerInvalid):
        stored.put("demo", b"content")


def test_a_tenants_files_can_be_listed_and_another_tenants_are_not_among_them(stored: SupabaseFiles) -> None:
    assert stored.keys("demo") == []
    keys = sorted(stored.put("demo", str(number).encode()) for number in range(5))
    stored.put("other", b"theirs")
    assert stored.keys("demo") == keys
    assert stored.keys("../other") == []
