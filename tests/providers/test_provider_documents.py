"""The settings and commands that the documents on Supabase and single sign-on name are there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from rag.settings import environment_names, load_settings

DOCS = Path(__file__).resolve().parents[2] / "docs"
NAMES = environment_names()


@pytest.mark.parametrize("document", ["supabase.md", "oidc.md"])
def test_every_setting_of_the_document_exists_and_is_accepted(document: str) -> None:
    text = (DOCS / document).read_text("utf-8")
    named = set(re.findall(r"\b((?:OIDC|SUPABASE|RAG)_[A-Z_]+|[A-Z_]*DATABASE_URL)\b", text))
    assert named
    assert named <= NAMES
    exported = dict(re.findall(r'export ([A-Z_]+)="([^"]*)"', text))
    assert exported
    assert load_settings(exported, None) is not None


def test_every_command_of_the_document_exists() -> None:
    text = (DOCS / "supabase.md").read_text("utf-8")
    commands = set(re.findall(r"python -m rag (\w+)", text))
    assert commands
    told = subprocess.run([sys.executable, "-m", "rag", "--help"], capture_output=True, text=True, check=True).stdout
    assert all(re.search(rf"^\s+{command}\b", told, re.MULTILINE) for command in commands)
