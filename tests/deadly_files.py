"""The process of an isolated run in which one file is its end: reading that one kills whoever reads it."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from rag.ingestion.isolated_process import serve
from rag.storage.files import FileStore

MARK = b"ends its process"


class DeadlyFiles(FileStore):
    """Files that do no harm, but for the one with the mark."""

    def get(self, tenant_id: str, key: str) -> bytes:
        content = super().get(tenant_id, key)
        if MARK in content:
            os.kill(os.getpid(), signal.SIGKILL)
        return content


if __name__ == "__main__":
    serve(DeadlyFiles(Path(sys.argv[1])))
