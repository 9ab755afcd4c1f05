"""What is installed: complete, of exact versions, each file by its hash, and as the short lists say."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from itertools import combinations
from pathlib import Path

import pytest

from rag import launch

LISTS = launch.AUDITED
PINNED = re.compile(r"([A-Za-z0-9._-]+)(\[[^\]]*\])?==([^\s;\\]+)")
PROJECT = launch.PROJECT


def locked(path: Path) -> dict[str, list[tuple[str, int]]]:
    """The packages of a lock: their versions, one for each kind of machine, and how many hashes each has."""
    found: dict[str, list[tuple[str, int]]] = {}
    text = re.sub(r"\\\n\s*", " ", path.read_text("utf-8"))
    for line in text.splitlines():
        if line.strip() and not line.lstrip().startswith("#"):
            name = PINNED.match(line)
            assert name, f"{path.name}: {line[:80]}"
            found.setdefault(normal(name[1]), []).append((name[3], line.count("--hash=sha256:")))
    return found


def listed(path: Path) -> dict[str, list[str]]:
    """The packages of a list: their versions, one for each kind of machine."""
    found: dict[str, list[str]] = {}
    for line in path.read_text("utf-8").splitlines():
        if match := PINNED.match(line):
            found.setdefault(normal(match[1]), []).append(match[3])
    return found


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@pytest.mark.parametrize("source", LISTS)
def test_every_package_is_locked_with_hashes_at_the_version_its_list_names(source: str) -> None:
    target = locked((PROJECT / source).with_suffix(".txt"))
    assert all(hashes for versions in target.values() for _, hashes in versions)
    for name, versions in listed(PROJECT / source).items():
        assert [found for found, _ in target[name]] == versions, f"run make lock: {name}"


def test_every_lock_is_audited() -> None:
    """Also those of integrations: a new lock fails here until `make audit` looks at it."""
    texts = [
        path for folder in (".", "benchmarks", "deploy", "docs", "tests") for path in (PROJECT / folder).glob("*.txt")
    ]
    locks = {path.resolve() for path in texts if "--hash=sha256:" in path.read_text("utf-8")}
    assert locks == {(PROJECT / source).with_suffix(".txt").resolve() for source in launch.AUDITED}


def test_the_locks_agree_with_each_other() -> None:
    """One environment holds the product, the tests and the benchmarks."""
    locks = [locked((PROJECT / source).with_suffix(".txt")) for source in launch.LISTS]
    for before, after in combinations(locks, 2):
        for name in before.keys() & after.keys():
            assert {version for version, _ in after[name]} <= {version for version, _ in before[name]}, name


def test_what_the_product_consists_of_names_each_package_once(tmp_path: Path) -> None:
    locks = [PROJECT / name for name in launch.PRODUCT]
    whole = tmp_path / "whole.txt"
    whole.write_text(launch.merged(*(path.read_text("utf-8") for path in locks)))
    assert locked(whole) == locked(locks[1]) | locked(locks[0])


def test_a_python_newer_than_the_lock_is_named_when_packages_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert launch.newer_python() == ""
    monkeypatch.setattr(launch, "PYTHONS", ("3.9", "3.10"))
    assert f"Python 3.{sys.version_info.minor} yet: `make run PYTHON=python3.10`" in launch.newer_python()


@pytest.mark.parametrize("source", LISTS)
def test_no_list_names_where_packages_come_from(source: str) -> None:
    for path in (PROJECT / source, (PROJECT / source).with_suffix(".txt")):
        text = path.read_text("utf-8")
        assert "://" not in text
        assert not re.search(r"^\s*(--index-url|--extra-index-url|--find-links|-i |-f )", text, re.MULTILINE)


def test_the_lock_keeps_the_extras_that_its_list_names() -> None:
    """`requirements.txt` names the packages as they were chosen, such as `psycopg[binary,pool]`."""
    extras = re.compile(r"^([\w.-]+)\[([^\]]+)\]==", re.MULTILINE)
    chosen, kept = (
        dict(extras.findall((PROJECT / name).read_text("utf-8"))) for name in ("requirements.in", "requirements.txt")
    )
    assert chosen
    for name, asked in chosen.items():
        assert set(asked.split(",")) <= set(kept[name].replace(" ", "").split(",")), name


def test_what_is_locked_is_all_that_the_packages_need() -> None:
    # The set-up installs the list alone: what a package needs and the list leaves out would be missing.
    checked = subprocess.run([sys.executable, "-m", "pip", "check"], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout


def test_nothing_of_the_product_imports_pytest() -> None:
    for path in [*(PROJECT / "rag").rglob("*.py"), *(PROJECT / "pages").rglob("*.py"), PROJECT / "app.py"]:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = [item.name for item in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not any(name.split(".")[0] in ("pytest", "_pytest") for name in names), path


def test_known_findings_of_the_scan_for_secrets_are_few_and_in_files_that_are_there() -> None:

    known = json.loads((PROJECT / launch.SECRETS_KNOWN).read_text("utf-8"))["results"]
    assert all((PROJECT / path).is_file() for path in known)
    assert sum(map(len, known.values())) < 40


def test_every_test_that_the_table_of_claims_names_exists() -> None:
    text = (PROJECT / "docs" / "security.md").read_text("utf-8")
    table = text[text.index("## Claims and their tests") :]
    path = ""
    for folder, name in re.findall(r"`(tests/[\w/]+\.py)?(?:::(\w+))?`", table):
        path = folder or path
        if not path or not (folder or name):
            continue
        source = (PROJECT / path).read_text("utf-8")
        assert not name or f"def {name}(" in source, f"{path}::{name}"
    rows = [line for line in table.splitlines() if line.startswith("| ") and line != "| Claim | Test |"]
    assert all("`tests/" in row for row in rows), "a claim without a test"
