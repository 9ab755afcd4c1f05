"""An application with secrets, a database and originals, which has a payload run where it reads files.

Prints as JSON what the payload got there, and what it gets in a process that nothing confines.
"""

from __future__ import annotations

import ctypes
import io
import json
import os
import socket
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

from rag.ingestion.loaders import sandbox
from rag.ingestion.loaders.ocr import confined_output
from rag.ingestion.loaders.sandbox import Sandbox
from rag.ingestion.loaders.values import ExtractionLimits
from rag.sandbox.child_process import ENVIRONMENT
from rag.sandbox.confinement import READING, close_own_memory
from rag.storage.embedded_postgres import start_server
from rag.storage.files import FileStore
from tests import payload_worker

PAYLOAD = Path(__file__).with_name("payload.py")


def main(folder: Path, variants: list[str]) -> None:
    server = start_server(folder / "data")
    try:
        sys.stdout.write(json.dumps(results(folder, variants)))
    finally:
        server.stop()


def unconfined(target: dict[str, object]) -> dict[str, str]:
    """What the payload gets in a process of the same account that nothing confines."""
    done = subprocess.run(
        [sys.executable, str(PAYLOAD)], input=json.dumps({**target, "is_plain": True}),
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return dict(json.loads(done.stdout))


def in_an_archive(target: dict[str, object]) -> dict[str, str]:
    """What the payload gets in the process that unpacks the archive it came in."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("payload.txt", json.dumps({**target, "descriptors": 2}))
    packed.seek(0)
    sandbox.ARCHIVE_WORKER = payload_worker.ARCHIVE_COMMAND
    running = Sandbox(ExtractionLimits())
    try:
        with running.archive(packed) as opened:
            content, refusal = opened.unpack(opened.names().index("payload.txt"))
    finally:
        running.close()
    return dict(json.loads(content)) if not refusal else {"the process": refusal}


def results(folder: Path, variants: list[str]) -> dict[str, dict[str, dict[str, str]]]:
    data = folder / "data"
    files = FileStore(data / "files")
    key = files.put("other", b"of another tenant")
    public = folder / "public"
    public.mkdir()
    public.chmod(0o777)
    open_file = public / "open"
    open_file.write_text("open")
    open_file.chmod(0o666)
    secret = ctypes.create_string_buffer(b"key-in-memory-0123456789")
    with socket.create_server(("127.0.0.1", 0)) as port, socket.socket(socket.AF_UNIX) as abstract:
        abstract.bind(f"\0payload-{os.getpid()}")
        abstract.listen(16)
        target = {
            "application": os.getpid(), "address": ctypes.addressof(secret), "folder": str(data),
            "original": str(files.path("other", key)), "port": port.getsockname()[1],
            "abstract": f"\0payload-{os.getpid()}", "open_file": str(open_file), "secrets": str(data / "secrets.toml"),
            "environment": list(ENVIRONMENT), "descriptors": 1, "is_plain": False,
        }  # fmt: skip
        Path(target["secrets"]).write_text("OPENAI_API_KEY = 'sk-canary'")
        found = {"plain": {"means": {}, "got": unconfined(target)}}
        close_own_memory()
        found["plain, of a closed application"] = {"means": {}, "got": unconfined(target)}
        # The interpreter itself: what an environment has in its place may be a copy that looks for it elsewhere.
        program = confined_output(
            str(Path(sys._base_executable).resolve()),  # type: ignore[attr-defined]
            ["-I", "-c", PAYLOAD.read_text()],
            json.dumps(target).encode(),
            60,
        )
        found["program"] = {"means": {}, "got": json.loads(program or "{}")}
        found["archive"] = {"means": {}, "got": in_an_archive(target)}
        for variant in variants:
            without = frozenset(filter(None, variant.split("+")))
            open_file.write_text("open") if not open_file.exists() else None
            for left in public.glob("payload-*"):
                left.rmdir() if left.is_dir() and not left.is_symlink() else left.unlink()
            running = Sandbox(
                ExtractionLimits(), processes=1, rules=replace(READING, without=without),
                worker=payload_worker.COMMAND,
            )  # fmt: skip
            try:
                got = json.loads(running._run("payload", {}, json.dumps(target).encode()).blob)
                found[variant] = {"means": dict(running.known_means or {}), "got": got}
            finally:
                running.close()
    return found


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
