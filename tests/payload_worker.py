"""The process that reads files, with a hole: what it is given as a file, it runs. All the rest is the real one."""

from __future__ import annotations

import json
import os
import sys
import zipfile
from typing import Any

from rag.ingestion.loaders import archive, sandbox_worker
from rag.ingestion.loaders.values import ExtractionLimits
from rag.sandbox.child_process import Reply
from tests import payload

#: Starts it from the project's folder.
COMMAND = ("-c", "import sys; from tests import payload_worker; payload_worker.main()")
CRASHING = ("-c", "import sys; from tests import payload_worker; payload_worker.crash()")
ARCHIVE_COMMAND = ("-c", "from tests import payload_worker; payload_worker.unpack()")


def main() -> None:
    sandbox_worker.perform = run
    sandbox_worker.main(int(sys.argv[1]), sys.argv[2])


def crash() -> None:
    """Crash on files to load, and raise what no loader raises on all others."""
    sandbox_worker.perform = lambda task, limits, answers: os.abort() if task.kind == "extract" else 1 / 0  # type: ignore[assignment,return-value]
    sandbox_worker.main(int(sys.argv[1]), sys.argv[2])


def run(task: Reply, limits: ExtractionLimits, answers: Any) -> tuple[dict[str, Any], bytes]:
    """Try everything, or answer with the very bytes that were given."""
    if task.kind == "payload":
        return {}, json.dumps(payload.try_all(json.loads(task.blob))).encode()
    answers.write(task.blob)
    answers.flush()
    return {}, b""


def unpack() -> None:
    """The process of an archive: `payload.txt` tries everything, `deadly.txt` ends it, all others are unpacked."""
    real = archive.Archive.unpack

    def unpack_or_run(opened: archive.Archive, entry: zipfile.ZipInfo) -> tuple[bytes, str]:
        content, refusal = real(opened, entry)
        if entry.filename == "deadly.txt":
            os.abort()
        return (
            json.dumps(payload.try_all(json.loads(content))).encode() if entry.filename == "payload.txt" else content
        ), refusal

    archive.Archive.unpack = unpack_or_run  # type: ignore[assignment,method-assign]
    archive.main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
