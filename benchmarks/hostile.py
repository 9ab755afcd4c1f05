"""Whether a folder of difficult PDFs ends as its manifest expects: `python -m benchmarks.hostile FOLDER`.

`manifest.jsonl` there has a line for each file: `file`, `expect` in words, and its `password` where it has one. Each
file goes through the sandbox as an upload does, under the limits given; the table says what came of it and how long
it took. The exit code is the number of files that ended in another way.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
import unicodedata
from pathlib import Path
from typing import Any

from rag.errors import PasswordNeeded, RagError
from rag.ingestion.loaders.sandbox import Sandbox
from rag.ingestion.loaders.values import ExtractionLimits

TEXT = re.compile(r"(?:text containing: |the text ')(?P<text>.*?)'?$")
#: So much of the expected text has to be there, in characters without blank space; manifests cut it off.
COMPARED = 60


def outcome_of(sandbox: Sandbox, content: bytes, name: str, password: str | None) -> tuple[str, str, str]:
    """(kind, text, what is said): kind is "text", "empty", "password" or "refused"."""
    try:
        checked = sandbox.check(content, file_name=name, password=password)
        extracted = sandbox.load(checked.decrypted or content, file_name=name)
    except PasswordNeeded as exc:
        return "password", "", exc.message
    except RagError as exc:
        return "refused", "", exc.message
    text = " ".join(" ".join(page.text for page in extracted.pages).split())
    said = "; ".join(dict.fromkeys(warning for page in extracted.pages for warning in page.warnings))
    return ("text" if text else "empty"), text, said


def is_as_expected(expect: str, kind: str, text: str, said: str) -> bool:
    """Whether an outcome is what the manifest's words ask for."""
    wanted = TEXT.search(expect)
    if wanted is not None:
        return kind == "text" and _bare(wanted["text"])[:COMPARED] in _bare(text)
    if "rejection" in expect or expect.startswith("refuse"):
        return kind == "refused"
    if "no text" in expect:
        return kind in ("empty", "refused")
    if "unreadable" in expect:
        # Readable by another engine is better still.
        return kind == "empty" or "second engine" in said
    return kind == "text"


def _bare(text: str) -> str:
    return "".join(c for c in unicodedata.normalize("NFKC", text) if not c.isspace())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--memory-mb", type=int, default=1024)
    arguments = parser.parse_args()
    sandbox = Sandbox(ExtractionLimits(timeout_seconds=arguments.seconds, memory_mb=arguments.memory_mb))
    others, slowest = 0, 0.0
    for line in (arguments.folder / "manifest.jsonl").read_text("utf-8").splitlines():
        entry: dict[str, Any] = json.loads(line)
        content = (arguments.folder / entry["file"]).read_bytes()
        started = time.perf_counter()
        kind, text, said = outcome_of(sandbox, content, entry["file"], None)
        is_right = True
        if kind == "password" and entry.get("password"):
            kind, text, said = outcome_of(sandbox, content, entry["file"], entry["password"])
        elif entry["expect"].startswith('a clear "password'):
            is_right = False  # it should have asked for the password
        seconds = time.perf_counter() - started
        is_right = is_right and is_as_expected(entry["expect"], kind, text, said) and seconds <= arguments.seconds
        others, slowest = others + (not is_right), max(slowest, seconds)
        print(f"{'ok ' if is_right else 'NOT'} {seconds:5.1f} s  {kind:8} {entry['file']:48} {(text or said)[:70]}")
    sandbox.close()
    print(f"{others} of the files ended in another way than expected; the slowest took {slowest:.1f} s")
    return others


if __name__ == "__main__":
    sys.exit(main())
