"""Every act of an administrator is on record, written by the database or noted by who does it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rag.ingestion.corrections import fingerprint
from rag.profiles.legal.references import DescribedReference
from rag.records.audit import AuditLog
from rag.services import Services
from rag.types import Collection, Identity, Role, Step
from tests import hostile

PASSWORD = "a long enough password 7"


@pytest.fixture
def admin(app_services: Services) -> Identity:
    token = app_services.accounts.first_admin_link("demo")
    assert token is not None
    account = app_services.accounts.create_first_admin(token, "admin@demo.example", "Admin", PASSWORD)
    found = app_services.sessions.find(app_services.sessions.start(account))
    assert found is not None
    return found


def test_every_act_is_on_record_with_who_did_it(
    app_services: Services, admin: Identity, collection: Collection
) -> None:
    parts, log = app_services, AuditLog(app_services.database)
    library = parts.documents
    missing: list[str] = []
    added, _ = parts.accounts.invite(admin, "one@demo.example", "One")
    parts.sessions.start(added)
    key, _ = parts.api_keys.create(admin, "Intranet", ["search"])
    document = library.upload(admin, collection, "a.pdf", hostile.leave_policy())
    parts.pipeline.run("demo", document.id)
    waiting = library.upload(admin, collection, "b.txt", b"Another text that waits for a decision of somebody.\n" * 9)
    parts.pipeline.run("demo", waiting.id)
    legal = library.create_collection(admin, "Legal", "legal", language="en")

    def acted(name: str, act: Callable[[], object]) -> None:
        before = {entry.id for entry in log.entries(admin)}
        act()
        new = [entry for entry in log.entries(admin) if entry.id not in before]
        if not new or any(entry.actor != admin.email for entry in new):
            missing.append(name)

    def completed() -> None:
        library.confirm(admin, document.id)

    acted("account added", lambda: parts.accounts.invite(admin, "two@demo.example", "Two"))
    acted("password link", lambda: parts.accounts.password_link(admin, added.id))
    acted("role", lambda: parts.accounts.change(admin, added.id, role=Role.MANAGER))
    acted("group", lambda: parts.accounts.change(admin, added.id, user_group="Sales"))
    acted("disabled", lambda: parts.accounts.change(admin, added.id, is_active=False))
    acted("key made", lambda: parts.api_keys.create(admin, "Another", ["search"]))
    acted("key revoked", lambda: parts.api_keys.revoke(admin, key.id))
    acted("collection made", lambda: library.create_collection(admin, "New", "hr"))
    acted("collection renamed", lambda: library.change_collection(admin, collection.id, name="Renamed"))
    acted("collection for a group", lambda: library.change_collection(admin, collection.id, groups=["Council"]))
    acted("collection settings", lambda: library.override_collection(admin, collection.id, {"top_k": 7}))
    acted("document added", lambda: library.upload(admin, collection, "c.txt", b"A third text.\n" * 9))
    acted("confirmed", completed)
    parts.pipeline.run("demo", document.id)
    acted("discarded", lambda: library.discard(admin, waiting.id))
    seen = fingerprint(library.pages(admin, document.id)[0].text)
    acted("page corrected", lambda: library.corrections.save(admin, document.id, 1, "Other words.", seen=seen))
    corrected = library.versions.of(admin, document)[0]
    parts.pipeline.run("demo", corrected.id)
    acted("cut again", lambda: library.versions.run_again(admin, corrected.id, Step.CHUNK, chunking_method="sentences"))
    acted("source", lambda: parts.syncs.set_source(admin, collection, "posts", {"table": "notices"}))
    acted("sync", lambda: parts.syncs.request(admin, library.collection(admin, collection.id)))
    acted("reference", lambda: parts.references.register(admin, legal, DescribedReference(title="A law")))
    reference = parts.references.list(admin)[0][0]
    acted("text", lambda: parts.references.chunk(admin, reference.id, page_texts={1: "A law about leave. " * 20}))
    acted("document deleted", lambda: library.delete(admin, corrected.id))
    acted("collection deleted", lambda: library.delete_collection(admin, legal.id, confirmed_name="Legal"))
    acted("export", lambda: parts.audit.note(admin, "export made", "questions"))
    assert missing == []
