"""Fixtures for pages on real services: a fresh database, no keys, and signed-in people."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from psycopg.rows import class_row
from streamlit.components.v2 import manifest_scanner
from streamlit.testing.v1 import AppTest

import rag.services
from rag.services import Services, assemble
from rag.settings import Settings
from rag.storage.database import Database
from rag.types import Account, Collection, Identity, Role, UploadOptions
from tests.pages.small_pdf import pdf
from tests.patience import patient

# Cached, because each run of a page would read the metadata of every installed package, which takes longer than the
# page.
manifest_scanner.scan_component_manifests = functools.cache(manifest_scanner.scan_component_manifests)

MAIN = Path(__file__).resolve().parents[2] / "pages" / "main.py"
HANDBOOK = (
    (
        "Employee handbook",
        "1 Annual leave",
        "Every employee has 25 days of annual leave in a calendar year. Annual leave is booked in the staff portal.",
        "Employees with five or more years of service have 28 days of annual leave.",
    ),
    (
        "2 Travel expenses",
        "Meals on business trips are reimbursed up to $1,500 a month and hotels up to $2,000 a month.",
        "Receipts are handed in within 30 days after the trip.",
    ),
)


@pytest.fixture
def running(database: Database, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[Services]:
    """The services used by this test's pages."""
    parts = assemble(settings, database)
    monkeypatch.setattr(rag.services, "connect_services", lambda _settings: parts)
    rag.services.services.clear()
    yield parts
    parts.answers.stop_all()
    parts.pipeline.close()
    parts.providers.close()
    rag.services.services.clear()


@pytest.fixture
def new_tab() -> Callable[[str], AppTest]:
    """A function which opens a tab for a session id, as if the guard had checked its requests."""

    def open_tab(session_id: str) -> AppTest:
        tab = AppTest.from_file(str(MAIN), default_timeout=patient(30))
        tab.user = {"sid": session_id}
        return tab

    return open_tab


@pytest.fixture
def signed_in(running: Services, new_tab: Callable[[str], AppTest]) -> Callable[[Role], tuple[AppTest, Identity]]:
    """A function which signs in a new person of tenant `demo` and returns a tab, not yet run, and the person's
    identity.
    """

    def sign_in(role: Role) -> tuple[AppTest, Identity]:
        with (
            running.database.transaction("demo") as connection,
            connection.cursor(row_factory=class_row(Account)) as cursor,
        ):
            account = cursor.execute(
                "INSERT INTO accounts (tenant_id, email, name, role, password_hash) "
                "VALUES ('demo', %(email)s, %(shown)s, %(role)s, '') "
                "RETURNING id, tenant_id, email, name, role, user_group, is_active, created_at, last_signed_in_at",
                {"email": f"{uuid4().hex}@example.com", "shown": f"Robin {role.value}", "role": role.value},
            ).fetchone()
        assert account is not None
        token = running.sessions.start(account)
        identity = running.sessions.find(token)
        assert identity is not None
        return new_tab(identity.session_id), identity

    return sign_in


@pytest.fixture
def handbook(running: Services, collection: Collection) -> Collection:
    """The collection with one processed document of two pages."""
    running.pipeline.process_document(
        file=pdf(HANDBOOK),
        file_name="handbook.pdf",
        tenant_id="demo",
        collection=collection,
        options=UploadOptions(generate_metadata=False),
    )
    return collection
