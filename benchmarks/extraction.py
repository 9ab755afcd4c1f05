"""Pages per second from PDF to chunks: our pipeline, pypdf alone (the limit of reading), and LangChain's loader.

    python -m benchmarks.extraction [--documents FOLDER] [--rounds 5]

All methods take turns in one run, so that what else the machine does falls on each alike; the ratios are of medians.
`ours, sandboxed` is one document after the other in a process that cannot harm the application; `ours, as the product
reads a folder` is the same with as many documents at once as the queue works on. LangChain's loader is used as its
documentation does: one file after the other in one process. Memory is the largest process's peak, measured last.
"""

from __future__ import annotations

import argparse
import io
import resource
import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pypdf

from rag.ingestion.chunking import chunk_document
from rag.ingestion.loaders.pdf import load_pdf
from rag.ingestion.loaders.sandbox import Sandbox
from rag.ingestion.loaders.values import ExtractionLimits, LoadOptions
from rag.ingestion.queue import DOCUMENTS_AT_ONCE

PROJECT = Path(__file__).resolve().parent.parent

LIMITS = ExtractionLimits(memory_mb=2048)
Method = Callable[[Path], int]
"""Reads one file; the number of chunks, or of pages where it makes none."""
Folder = Callable[[Sequence[Path]], int]
PEER = "PyPDFLoader + RecursiveCharacterTextSplitter"


def read_with_pypdf(path: Path) -> int:
    reader = pypdf.PdfReader(io.BytesIO(path.read_bytes()))
    return len([page.extract_text() for page in reader.pages])


def ours(path: Path) -> int:
    extracted = load_pdf(path.read_bytes(), LoadOptions(limits=LIMITS))
    return len(chunk_document(extracted.pages, extracted.sections))


def ours_sandboxed(sandbox: Sandbox) -> Method:
    def run(path: Path) -> int:
        extracted = sandbox.extract_pages(path.read_bytes())
        return len(chunk_document(extracted.pages, extracted.sections))

    return run


def in_turn(method: Method) -> Folder:
    return lambda paths: sum(method(path) for path in paths)


def at_once(method: Method) -> Folder:
    def run(paths: Sequence[Path]) -> int:
        with ThreadPoolExecutor(DOCUMENTS_AT_ONCE) as pool:
            return sum(pool.map(method, paths))

    return run


def langchain() -> Method | None:
    try:
        from langchain_community.document_loaders import PyPDFLoader
        from langchain_text_splitters import RecursiveCharacterTextSplitter
    except ImportError:
        print("LangChain is not installed: pip install -r benchmarks/requirements.txt adds its row.\n")
        return None
    splitter = RecursiveCharacterTextSplitter(chunk_size=1000, chunk_overlap=200)
    return lambda path: len(splitter.split_documents(PyPDFLoader(str(path)).load()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=Path, default=PROJECT / "rag" / "samples", metavar="FOLDER")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    paths = sorted(arguments.documents.rglob("*.pdf"))
    if not paths:
        raise SystemExit(f"There is no PDF in {arguments.documents}.")
    pages = sum(len(pypdf.PdfReader(path).pages) for path in paths)

    sandbox = Sandbox(LIMITS, processes=DOCUMENTS_AT_ONCE)
    methods: dict[str, Folder] = {
        "pypdf alone, no chunks": in_turn(read_with_pypdf),
        "ours": in_turn(ours),
        "ours, sandboxed": in_turn(ours_sandboxed(sandbox)),
        "ours, as the product reads a folder": at_once(ours_sandboxed(sandbox)),
    }
    if (peer := langchain()) is not None:
        methods[PEER] = in_turn(peer)
    seconds: dict[str, list[float]] = {name: [] for name in methods}
    made: dict[str, int] = {}
    try:
        for round_number in range(arguments.rounds + 1):
            for name, method in methods.items():
                started = time.perf_counter()
                made[name] = method(paths)
                if round_number:  # the first round warms up
                    seconds[name].append(time.perf_counter() - started)
    finally:
        sandbox.close()

    print(f"{len(paths)} documents, {pages} pages, {arguments.rounds} rounds; pypdf {pypdf.__version__}\n")
    print(f"{'':46}{'pages/s':>9}{'spread':>16}{'made':>7}{'vs pypdf':>10}{'vs peer':>9}")
    limit = statistics.median(seconds["pypdf alone, no chunks"])
    other = statistics.median(seconds[PEER]) if PEER in seconds else None
    for name, times in seconds.items():
        median = statistics.median(times)
        spread = f"{pages / max(times):.0f} … {pages / min(times):.0f}"
        ratio = f"{other / median:.2f}" if other else ""
        print(f"{name:46}{pages / median:>9.0f}{spread:>16}{made[name]:>7}{limit / median:>10.2f}{ratio:>9}")
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"\nlargest sandbox process at its peak: {peak:.0f} MB")


if __name__ == "__main__":
    main()
