"""The process that reads files, with a hole: what it is given as a file, it runs. All the rest is the real one."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parents[1]), str(Path(__file__).resolve().parent)]

import payload

from rag.child_process import Reply
from rag.ingestion import sandbox_worker
from rag.ingestion.extracted import ExtractionLimits


def run(task: Reply, limits: ExtractionLimits, answers: Any) -> tuple[dict[str, Any], bytes]:
    return {}, json.dumps(payload.try_all(json.loads(task.blob))).encode()


if __name__ == "__main__":
    sandbox_worker.perform = run
    sandbox_worker.main(int(sys.argv[1]), sys.argv[2])
