"""Integrations are found by their folders, and the rest does not need them."""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from rag.integrations.integration import Integration
from rag.integrations.registry import FOLDER, integrations, named
from rag.settings import INTEGRATION_VARIABLES, PROJECT, Settings
from tests.patience import patient

FOLDERS = sorted(path.parent for path in FOLDER.glob("*/*/__init__.py"))
#: Names of functions that the core asks for.
HOOKS = (
    "single_sign_on", "backups", "standbys", "checks", "measure", "tracing", "report_pdf", "conversation_pdf",
    "encryption", "decryption", "cross_encoder",
)  # fmt: skip
#: Starts what the server is made of, and prints where integrations are served, with their commands, jobs, formats and
#: sources.
PROBE = """
import sys
from rag.__main__ import command_line
from rag.ingestion.loaders.format_table import file_formats
from rag.integrations import registry
from rag.providers.local_engines import worker_for
from rag.server import API_ROUTES, ROUTES
from rag.settings import load_settings
from rag.storage.sql import queries
settings = load_settings({}, None)
assert len(queries) > 300
served = {getattr(route, "path", "") for route in ROUTES}
print(*(route.path for route in registry.routes() if route.path in served), *(route.path for route in API_ROUTES))
print(*(f"command:{name}" for name in command_line()._subparsers._group_actions[0].choices))
print(*(f"job:{name}" for name in registry.jobs()))
print(*(f"worker:{worker_for(name)}" for name in ("meaning", "recognition")))
print(*(f"{hook}:{one.name}" for one in registry.integrations() for hook in sys.argv[1:] if getattr(one, hook)))
assert registry.standbys(settings, None).next() is None
print(*(f"format:{loader.kind}" for loader in file_formats().loaders))
print(*(f"source:{kind}" for kind in registry.source_makers(settings)), *map("form:{}".format, registry.source_forms()))
"""


def printed(folder: Path) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-B", "-c", PROBE, *HOOKS],
        cwd=folder, capture_output=True, text=True, check=False, timeout=patient(120),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def test_each_folder_is_an_integration_of_its_name() -> None:
    assert [integration.name for integration in integrations()] == [folder.name for folder in FOLDERS]
    assert all(integration.title for integration in integrations())


def commands_of(integration: Integration) -> list[str]:
    commands = argparse.ArgumentParser().add_subparsers()
    if integration.add_commands:
        named(integration.add_commands)(commands)
    return list(commands.choices)


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("copy")
    shutil.copytree(PROJECT / "rag", folder / "rag", ignore=shutil.ignore_patterns("__pycache__"))
    return folder


@pytest.fixture(scope="module")
def everything(copy: Path) -> set[str]:
    return printed(copy)


@pytest.mark.parametrize("deleted", FOLDERS, ids=lambda folder: folder.name)
def test_without_its_folder_everything_else_is_there(copy: Path, everything: set[str], deleted: Path) -> None:
    place = copy / deleted.relative_to(PROJECT)
    kept = place.rename(copy / deleted.name)
    try:
        left = printed(copy)
    finally:
        kept.rename(place)
    (gone,) = (one for one in integrations() if one.name == deleted.name)
    described = gone.router().routes if gone.router is not None else []
    own = {str(getattr(route, "path", "")) for route in (*gone.all_routes, *described)}
    own |= {f"job:{name}" for name in gone.jobs}
    own |= {f"{hook}:{gone.name}" for hook in HOOKS if getattr(gone, hook)}
    own |= {f"{word}:{source.kind}" for source in gone.sources for word in ("source", "form")}
    own |= {f"format:{loader.kind}" for loader in (named(gone.formats) if gone.formats else ())}
    own |= {f"worker:{module}" for module in gone.workers.values()}
    own |= {f"command:{name}" for name in commands_of(gone)}
    assert own
    assert everything - left == own


def test_no_two_integrations_share_a_setting_or_take_one_of_the_core() -> None:
    declared = [name for path in FOLDER.glob("*/*/settings.toml") for name in tomllib.loads(path.read_text("utf-8"))]
    fields = {name.upper() for name in Settings.__dataclass_fields__}
    assert sorted(declared) == sorted(INTEGRATION_VARIABLES)
    assert fields & set(declared) == set()
