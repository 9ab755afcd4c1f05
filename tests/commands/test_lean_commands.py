"""A command imports what it uses and nothing else, and the Python of the system finds the packages in `.venv`."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path
from typing import get_args

import pytest

from rag.commands.documents import CHUNKING_METHODS, PDF_TYPES
from rag.storage.database import Database
from rag.types import ChunkingMethod, PdfType
from tests.patience import patient

PROJECT = Path(__file__).resolve().parents[2]
#: Prints the packages and our own modules that a command has imported, after what it says itself.
PROBE = """
import atexit, runpy, sys
before = set(sys.modules)
def tell():
    new = {name for name in set(sys.modules) - before if name.partition(".")[0] not in sys.stdlib_module_names}
    print("\\nIMPORTED", *sorted(new))
atexit.register(tell)
runpy.run_module("rag", run_name="__main__", alter_sys=True)
"""


#: Packages that a command does without that asks no provider.
SLOW = {
    "openai", "cohere", "supabase", "storage3", "httpx", "httpx2", "aiohttp", "authlib", "joserfc", "msal", "mcp",
    "google", "streamlit", "fastapi", "plotly", "pandas", "trafilatura", "lxml", "docx", "PIL", "pypdfium2", "rich",
    "starlette",
}  # fmt: skip


def imported(*arguments: str, **environment: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", PROBE, *arguments], cwd=PROJECT, capture_output=True, text=True, check=True,
        timeout=patient(120),
        env={**os.environ, **environment},
    )  # fmt: skip
    return set(done.stdout.rpartition("IMPORTED")[2].split())


@pytest.mark.parametrize("command", ["", "ask", "documents list", "ingest", "serve", "report", "prices set", "backup"])
def test_help_imports_no_package_and_little_of_ours(command: str) -> None:
    found = imported(*command.split(), "--help")
    assert {name for name in found if name.partition(".")[0] != "rag"} == {"__mp_main__"} & found
    assert found <= {"rag", "rag.errors", "rag.language", *settings_and_commands(found)}


def settings_and_commands(found: set[str]) -> set[str]:
    return {name for name in found if name.startswith(("rag.settings", "rag.command", "rag.integrations"))}


@pytest.mark.parametrize("command", ["documents list", "prices list", "collection list", "tenant list"])
def test_a_command_that_asks_no_provider_imports_no_sdk(
    command: str, database: Database, owner_conninfo: str, tmp_path: Path
) -> None:
    found = imported(
        *command.split(),
        DATABASE_URL=database.conninfo, MIGRATION_DATABASE_URL=owner_conninfo, RAG_DATA_DIR=str(tmp_path / "data"),
    )  # fmt: skip
    assert {"rag.services", "psycopg"} <= found
    assert found & SLOW == set()


def test_the_choices_of_help_are_those_there_are() -> None:
    assert get_args(ChunkingMethod) == CHUNKING_METHODS
    assert get_args(PdfType) == PDF_TYPES


# The Python of the system


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The product in another folder, where nothing is installed yet."""
    (tmp_path / "rag").symlink_to(PROJECT / "rag")
    return tmp_path


@pytest.fixture
def system_python() -> str:
    """The Python that the packages' environment was made with."""
    python: str = getattr(sys, "_base_executable", sys.executable)
    look = "import importlib.util as i, sys; sys.exit(i.find_spec('psycopg') is not None)"
    if subprocess.run([python, "-c", look], cwd="/", check=False).returncode:
        pytest.skip("the system's Python has the packages")
    return python


def run(python: str | Path, folder: Path) -> tuple[int, str, str]:
    done = subprocess.run(
        [str(python), "-B", "-m", "rag", "ask", "--help"], cwd=folder, capture_output=True, text=True,
        timeout=patient(60),
        check=False,
    )  # fmt: skip
    return done.returncode, done.stdout.partition(" [-h]")[0], done.stderr


NOT_INSTALLED = (1, "", "The packages are not installed yet: run `make run` first.\n")
HELP = (0, "usage: python -m rag ask", "")


def test_without_packages_one_line_says_how_to_install_them(copy: Path, system_python: str) -> None:
    assert run(system_python, copy) == NOT_INSTALLED


def test_a_python_without_packages_goes_on_in_the_environment(copy: Path, system_python: str) -> None:
    (copy / ".venv").symlink_to(sys.prefix)
    assert run(system_python, copy) == HELP


def test_an_environment_that_is_not_complete_is_tried_once(copy: Path, system_python: str) -> None:
    venv.create(copy / ".venv", symlinks=True)
    assert run(system_python, copy) == NOT_INSTALLED
    assert run(copy / ".venv" / "bin" / "python", copy) == NOT_INSTALLED


def test_a_python_with_the_packages_stays(copy: Path) -> None:
    venv.create(copy / ".venv", symlinks=True)
    assert run(sys.executable, copy) == HELP
