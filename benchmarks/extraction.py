"""Pages per second from PDF to chunks: our pipeline, pypdf alone (the limit of reading), and LangChain's loader.

    python -m benchmarks.extraction [--documents FOLDER] [--rounds 5]

All methods take turns in one run, so that what else the machine does falls on each alike; the ratios are of medians.
`ours, sandboxed` is what the product does: the same work in a process that cannot harm the application.
"""

from __future__ import annotations

import argparse
import io
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import pypdf

from rag.ingestion.chunking import chunk_document
from rag.ingestion.extracted import ExtractionLimits
from rag.ingestion.loaders.pdf import extract_pages
from rag.ingestion.sandbox import Sandbox

PROJECT = Path(__file__).resolve().parent.parent

LIMITS = ExtractionLimits(memory_mb=2048)
Method = Callable[[Path], int]
"""Reads one file; the number of chunks, or of pages where it makes none."""


def read_with_pypdf(path: Path) -> int:
    reader = pypdf.PdfReader(io.BytesIO(path.read_bytes()))
    return len([page.extract_text() for page in reader.pages])


def ours(path: Path) -> int:
    extracted = extract_pages(path.read_bytes(), password=None, limits=LIMITS)
    return len(chunk_document(extracted.pages, extracted.sections))


def ours_sandboxed(sandbox: Sandbox) -> Method:
    def run(path: Path) -> int:
        extracted = sandbox.extract_pages(path.read_bytes())
        return len(chunk_document(extracted.pages, extracted.sections))

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

    sandbox = Sandbox(LIMITS, processes=1)
    methods: dict[str, Method] = {
        "pypdf alone, no chunks": read_with_pypdf,
        "ours": ours,
        "ours, sandboxed": ours_sandboxed(sandbox),
    }
    if (peer := langchain()) is not None:
        methods["PyPDFLoader + RecursiveCharacterTextSplitter"] = peer
    seconds: dict[str, list[float]] = {name: [] for name in methods}
    made: dict[str, int] = {}
    try:
        for round_number in range(arguments.rounds + 1):
            for name, method in methods.items():
                started = time.perf_counter()
                made[name] = sum(method(path) for path in paths)
                if round_number:  # the first round warms up
                    seconds[name].append(time.perf_counter() - started)
    finally:
        sandbox.close()

    print(f"{len(paths)} documents, {pages} pages, {arguments.rounds} rounds; pypdf {pypdf.__version__}\n")
    print(f"{'':46}{'pages/s':>9}{'spread':>16}{'made':>7}{'vs pypdf':>10}")
    limit = statistics.median(seconds["pypdf alone, no chunks"])
    for name, times in seconds.items():
        median = statistics.median(times)
        spread = f"{pages / max(times):.0f} … {pages / min(times):.0f}"
        print(f"{name:46}{pages / median:>9.0f}{spread:>16}{made[name]:>7}{limit / median:>10.2f}")


if __name__ == "__main__":
    main()
