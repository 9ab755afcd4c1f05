"""`python -m rag tenant` as whoever runs the product types it, on the built-in server."""

from __future__ import annotations

import argparse
import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from rag.commands.tenants import tenant
from rag.errors import InvalidInput, LinkExpired, NotAllowed, WrongPassword
from rag.services import connect_services
from rag.settings import Settings
from rag.types import Identity
from tests.forked import forked_python
from tests.patience import patient

PASSWORD, NEW_PASSWORD = "a-long-enough phrase 41", "another long phrase 42"
PROJECT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tenants") / "data"


def run(data_dir: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*forked_python(), "-m", "rag", "tenant", *arguments],
        cwd=PROJECT,
        env={**os.environ, "RAG_DATA_DIR": str(data_dir)},
        capture_output=True,
        text=True,
        timeout=patient(120),
        check=False,
    )


def test_a_tenant_is_made_listed_suspended_exported_and_deleted_with_a_proof(data_dir: Path, tmp_path: Path) -> None:
    made = run(data_dir, "create", "acme", "--name", "Acme")
    assert made.returncode == 0, made.stderr
    assert "/welcome?token=" in made.stdout
    assert "active" in run(data_dir, "list").stdout
    refused = run(data_dir, "delete", "acme", "--confirm", "acme")
    assert (refused.returncode, "Suspend the tenant first" in refused.stderr) == (1, True)
    assert run(data_dir, "suspend", "acme").returncode == 0
    assert "suspended since" in run(data_dir, "list").stdout
    assert "invites people at acme.example" in run(data_dir, "domains", "acme", "@Acme.example").stdout
    assert run(data_dir, "export", "acme", str(tmp_path / "acme.zip")).returncode == 0
    careless = run(data_dir, "delete", "acme")
    assert (careless.returncode, "--confirm acme" in careless.stderr) == (1, True)
    deleted = run(data_dir, "delete", "acme", "--confirm", "acme")
    assert (deleted.returncode, "Nothing is left" in deleted.stdout) == (0, True)
    assert "acme" not in run(data_dir, "list").stdout


def test_the_only_administrator_gets_a_new_password_without_the_old_one(data_dir: Path) -> None:
    assert run(data_dir, "create", "lost").returncode == 0
    settings = replace(Settings(), data_dir=data_dir, tenant="lost", sign_in="builtin")
    parts = connect_services(settings)
    try:
        ada = parts.accounts.create_first_admin(
            parts.accounts.first_admin_link("lost") or "", "ada@lost.example", "Ada", PASSWORD
        )
        # As a dump that is brought back without its key has it.
        parts.database.execute("lost", "set_password", account_id=ada.id, password_hash="gAAAA.cannot.be.opened")
    finally:
        parts.close()
    made = run(data_dir, "password-link", "lost", "Ada@lost.example")
    assert made.returncode == 0, made.stderr
    token = made.stdout.partition("/set-password?token=")[2].split()[0]
    unknown = run(data_dir, "password-link", "lost", "bob@lost.example")
    assert (unknown.returncode, "No account of lost has the address bob@lost.example." in unknown.stderr) == (1, True)
    nowhere = run(data_dir, "password-link", "nowhere", "ada@lost.example")
    assert (nowhere.returncode, "There is no tenant nowhere." in nowhere.stderr) == (1, True)
    parts = connect_services(settings)
    try:
        with pytest.raises(WrongPassword):
            parts.accounts.sign_in("ada@lost.example", PASSWORD)
        parts.accounts.set_password_by_link(token, NEW_PASSWORD)
        assert parts.accounts.sign_in("ada@lost.example", NEW_PASSWORD).id == ada.id
        with pytest.raises(LinkExpired):
            parts.accounts.set_password_by_link(token, PASSWORD)
        with parts.database.transaction("lost") as connection:
            noted = connection.execute(
                "SELECT target FROM audit_log WHERE action = 'password link added' AND changes::text LIKE %s",
                ("%set_password%",),
            ).fetchall()
        assert noted == [("ada@lost.example",)]
        person = Identity(account_id=ada.id, tenant_id="lost", email=ada.email, name=ada.name, role=ada.role)
        with pytest.raises(NotAllowed):
            parts.accounts.operators_password_link(person, ada.email)
    finally:
        parts.close()


def test_at_supabase_a_tenant_is_made_with_the_domains_of_its_addresses(settings: Settings) -> None:
    arguments = argparse.Namespace(act="create", tenant="second", name="", domains=[])
    with pytest.raises(InvalidInput, match=r"--domain example\.com"):
        tenant(arguments, replace(settings, sign_in="supabase"))
