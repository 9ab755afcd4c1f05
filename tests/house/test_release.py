"""What is published of a version: the same files for everybody who makes them, with sums to check a download by."""

from __future__ import annotations

import json
import subprocess
import tarfile
from pathlib import Path

import pytest

from rag.release import SUMS, NoReleaseError, sha256, write_release


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository with a lock and a file, committed."""
    folder = tmp_path / "Ein Projekt ü"
    folder.mkdir()
    (folder / "requirements.txt").write_text("a==1 --hash=sha256:00\n")
    (folder / "app.py").write_text("print('hello')\n")
    (folder / ".gitignore").write_text("dist/\n")
    git(folder, "init", "--quiet")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", "First")
    return folder


def git(folder: Path, *arguments: str) -> str:
    name = ["-c", "user.name=Test", "-c", "user.email=test@example.org", "-c", "commit.gpgsign=false"]
    return subprocess.run(["git", *name, *arguments], cwd=folder, capture_output=True, text=True, check=True).stdout


def test_a_release_is_the_same_when_it_is_made_again(project: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    git(project, "clone", "--quiet", ".", str(copy))
    once, again = (write_release(folder, "1.2.0", folder / "dist") for folder in (project, copy))
    assert [path.name for path in once] == ["hr-assistant-1.2.0.tar.gz", "hr-assistant-1.2.0.provenance.json", SUMS]
    assert [path.read_bytes() for path in once] == [path.read_bytes() for path in again]


def test_it_holds_what_is_committed_and_says_from_where(project: Path) -> None:
    dist = project / "dist"
    dist.mkdir()
    (dist / "hr-assistant-1.2.0.cdx.json").write_text("{}")
    (dist / "hr-assistant-1.1.0.cdx.json").write_text("{}")
    (project / "dist" / "secret.txt").write_text("not published")
    archive, bill, provenance, _ = write_release(project, "1.2.0", dist)
    with tarfile.open(archive) as packed:
        names = {member.name for member in packed.getmembers() if member.isfile()}
    assert names == {f"hr-assistant-1.2.0/{name}" for name in (".gitignore", "app.py", "requirements.txt")}
    said = json.loads(provenance.read_text())
    assert said["predicateType"] == "https://slsa.dev/provenance/v1"
    assert {subject["name"]: subject["digest"]["sha256"] for subject in said["subject"]} == {
        path.name: sha256(path) for path in (archive, bill)
    }
    needed = said["predicate"]["buildDefinition"]["resolvedDependencies"]
    assert needed[0]["digest"]["gitCommit"] == git(project, "rev-parse", "HEAD").strip()
    assert needed[1] == {"name": "requirements.txt", "digest": {"sha256": sha256(project / "requirements.txt")}}


def test_a_changed_download_does_not_fit_its_sum(project: Path) -> None:
    archive, *_ = write_release(project, "1.2.0", project / "dist")
    check = ["sha256sum", "--check", "--quiet", SUMS]
    assert subprocess.run(check, cwd=project / "dist", check=False).returncode == 0
    archive.write_bytes(archive.read_bytes() + b"0")
    assert subprocess.run(check, cwd=project / "dist", capture_output=True, check=False).returncode == 1


def test_what_is_not_committed_is_not_released(project: Path) -> None:
    (project / "app.py").write_text("print('changed')\n")
    with pytest.raises(NoReleaseError, match=r"Commit these changes first.*\n.*app\.py"):
        write_release(project, "1.2.0", project / "dist")
    assert not (project / "dist").exists()


def test_a_folder_without_history_is_no_release(tmp_path: Path) -> None:
    with pytest.raises(NoReleaseError, match="made of a git repository"):
        write_release(tmp_path, "1.2.0", tmp_path / "dist")
