"""Write a release's files: the source, its provenance, and checksums.

The provenance is an in-toto statement with a SLSA 1.0 predicate (https://slsa.dev/spec/v1.0/provenance). Only the
standard library is imported, because `rag.launch` runs before any package is installed.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

#: Files which decide the installed packages.
LOCKS = ("requirements.txt", "requirements-integrations.txt", "deploy/installer.txt", "Dockerfile")
BUILD = "urn:hr-assistant:make-release:1"
SUMS = "SHA256SUMS"


class NoReleaseError(Exception):
    """No release is possible from this folder; the message says why and what to do."""


def write_release(project: Path, version: str, into: Path) -> list[Path]:
    """Write archive, provenance and checksums for the present commit, next to this version's SBOM in `into`.

    The same commit gives the same bytes. Raises `NoReleaseError` outside a git repository and with uncommitted changes.
    """
    if changed := _git(project, "status", "--porcelain"):
        raise NoReleaseError(f"Commit these changes first, or take them back:\n{changed}")
    commit = _git(project, "rev-parse", "HEAD")
    into.mkdir(exist_ok=True)
    name = f"hr-assistant-{version}"
    archive = into / f"{name}.tar.gz"
    packed = _run(project, "archive", "--format=tar", f"--prefix={name}/", commit)
    archive.write_bytes(gzip.compress(packed, mtime=0))
    files = [archive, *sorted(into.glob(f"{name}.cdx.json"))]
    provenance = into / f"{name}.provenance.json"
    provenance.write_text(json.dumps(_provenance(project, commit, files), indent=2) + "\n", "utf-8")
    files.append(provenance)
    sums = into / SUMS
    sums.write_text("".join(f"{sha256(path)}  {path.name}\n" for path in files), "utf-8")
    return [*files, sums]


def sha256(path: Path) -> str:
    """Return a file's SHA-256 in hexadecimal."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _provenance(project: Path, commit: str, files: Iterable[Path]) -> Mapping[str, Any]:
    locks = [path for name in LOCKS if (path := project / name).is_file()]
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": path.name, "digest": {"sha256": sha256(path)}} for path in files],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": BUILD,
                "externalParameters": {"commit": commit},
                "resolvedDependencies": [
                    {"name": "source", "digest": {"gitCommit": commit}},
                    *({"name": str(path.relative_to(project)), "digest": {"sha256": sha256(path)}} for path in locks),
                ],
            },
            "runDetails": {"builder": {"id": BUILD}},
        },
    }


def _git(project: Path, *arguments: str) -> str:
    return _run(project, *arguments).decode().strip()


def _run(project: Path, *arguments: str) -> bytes:
    try:
        return subprocess.run(["git", *arguments], cwd=project, capture_output=True, check=True).stdout  # noqa: S603, S607
    except (OSError, subprocess.CalledProcessError) as error:
        output = (
            error.stderr.decode(errors="replace").strip() if isinstance(error, subprocess.CalledProcessError) else error
        )
        raise NoReleaseError(f"A release is made of a git repository: {output}") from error
