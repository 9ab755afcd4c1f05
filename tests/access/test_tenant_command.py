"""`python -m rag tenant` as whoever runs the product types it, on the built-in server."""

from __future__ import annotations

import argparse
import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from rag.commands.tenants import tenant
from rag.errors import InvalidInput
from rag.settings import Settings
from tests.forked import forked_python
from tests.patience import patient

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


def test_at_supabase_a_tenant_is_made_with_the_domains_of_its_addresses(settings: Settings) -> None:
    arguments = argparse.Namespace(act="create", tenant="second", name="", domains=[])
    with pytest.raises(InvalidInput, match=r"--domain example\.com"):
        tenant(arguments, replace(settings, sign_in="supabase"))
