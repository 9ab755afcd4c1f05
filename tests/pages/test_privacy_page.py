from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from rag.access.sessions import token_hash
from rag.errors import InvalidInput
from rag.services import Services, program_of
from rag.storage.database import Database
from rag.types import Account, Role
from tests.patience import patient

PAGE = str(Path(__file__).resolve().parents[2] / "pages" / "privacy.py")


def opened(parts: Services, database: Database, role: Role) -> AppTest:
    with database.transaction("demo") as connection:
        row = connection.execute(
            "INSERT INTO accounts (tenant_id, email, name, role, password_hash) VALUES ('demo', %s, 'Ada', %s, '') "
            "ON CONFLICT (tenant_id, email) DO UPDATE SET role = excluded.role RETURNING id, created_at",
            (f"{role}@demo.example", role),
        ).fetchone()
    assert row is not None
    account = Account(
        id=row[0], tenant_id="demo", email=f"{role}@demo.example", name="Ada", role=role, user_group="",
        is_active=True, created_at=row[1], last_signed_in_at=None,
    )  # fmt: skip
    page = AppTest.from_file(PAGE, default_timeout=patient(30))
    page.user = {"sid": token_hash(parts.sessions.start(account))}
    return page.run()


def test_an_administrator_sets_what_is_kept_and_erases_a_person_with_a_receipt(
    app_services: Services, database: Database
) -> None:
    manager = opened(app_services, database, Role.MANAGER)
    assert manager.exception
    assert not manager.selectbox

    page = opened(app_services, database, Role.ADMIN)
    assert not page.exception
    page.selectbox("privacy_retention").set_value(90).run()
    assert app_services.privacy.retention_days("demo") == 90
    page.segmented_control("privacy_names").set_value("nobody").run()
    assert app_services.analytics.names_for("demo") is None
    page.selectbox("privacy_person").set_value("manager@demo.example").run()
    page.button("privacy_erase").click().run()
    assert page.button("privacy_erase_confirmed").disabled
    app_services.privacy.erase_for(program_of("demo"), "manager@demo.example")
    page.run()
    assert not page.exception
    (receipt,) = app_services.privacy.receipts("demo")
    assert receipt.counts["account"] == 1
    assert str(receipt.id) in list(page.dataframe[0].value["Receipt"])
    assert b"admin@demo.example" in app_services.privacy.export_for(program_of("demo"), "admin@demo.example")


def test_nobody_erases_themselves(app_services: Services, database: Database) -> None:
    opened(app_services, database, Role.ADMIN)
    with database.transaction("demo") as connection:
        row = connection.execute("SELECT id FROM accounts WHERE role = 'admin'").fetchone()
    assert row is not None
    admin = program_of("demo")
    mine = type(admin)(**{**vars(admin), "account_id": row[0]})
    with pytest.raises(InvalidInput, match="Another administrator"):
        app_services.privacy.erase_for(mine, "admin@demo.example")
