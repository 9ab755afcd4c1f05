"""Pages on which two readings of the same PDFs differ: ours, and PyMuPDF's.

    python -m benchmarks.two_readings FOLDER... --into FILE [--pages 40]
    PEERS/bin/python -m benchmarks.two_readings --of FILE [--each]

The first reads up to 40 pages of each PDF, spread over it. The second runs in an environment with PyMuPDF and compares
letters and numbers page by page. A cell over several rows or columns counts once. A difference is explained where our
reading says on the page that something was left out or not read; `--each` prints the others.
"""

from __future__ import annotations

import argparse
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

DIGITS = re.compile(r"\d+")


def read_by_ours(folders: Sequence[Path], most: int) -> Iterator[dict[str, Any]]:
    """Read pages of every PDF, running heads included."""
    from benchmarks.extraction import LIMITS
    from rag.errors import DocumentError
    from rag.ingestion.loaders.pdf import OpenPdf

    for path in sorted(path for folder in folders for path in folder.rglob("*.pdf") if path.is_file()):
        try:
            with OpenPdf(path.read_bytes(), password=None, limits=LIMITS) as opened:
                step = max(1, -(-opened.page_count // most))
                for number in range(1, opened.page_count + 1, step):
                    page = opened.read_page(number)
                    yield {"path": str(path.resolve()), "page": number, "text": page.text, "said": page.warnings}
        except DocumentError as error:
            print(f"{path.name}: {error}")


def with_cells_once(text: str) -> str:
    """Return a text with each cell of a table that is repeated to the right or below said once."""
    lines: list[str] = []
    above: list[str] = []
    for line in text.split("\n"):
        cells = line.split(" | ")
        known = above if len(above) == len(cells) > 1 else [""] * len(cells)
        kept = [
            cell
            for place, cell in enumerate(cells)
            if cell != known[place] and not (place and cell == cells[place - 1])
        ]
        lines.append(" ".join(kept))
        above = cells
    return "\n".join(lines)


def letters_of(text: str) -> Counter[str]:
    return Counter(filter(str.isalnum, unicodedata.normalize("NFKC", text)))


def numbers_of(text: str) -> Counter[str]:
    return Counter(DIGITS.findall(unicodedata.normalize("NFKC", text.replace("-\n", ""))))


def compare(lines: Sequence[str], *, each: bool) -> None:
    import pymupdf  # type: ignore[import-not-found]

    pymupdf.TOOLS.mupdf_display_errors(False)
    flags = pymupdf.TEXT_PRESERVE_WHITESPACE | pymupdf.TEXT_MEDIABOX_CLIP
    found: Counter[str] = Counter()
    for path, pages in groupby(map(json.loads, lines), key=lambda page: page["path"]):
        document = pymupdf.open(path)
        for page in pages:
            found["pages"] += 1
            if document.needs_pass:
                found["not opened by PyMuPDF"] += 1
                continue
            other = document[page["page"] - 1].get_text("text", flags=flags)
            ours = with_cells_once(page["text"])
            lost = letters_of(other) - letters_of(page["text"])
            more = letters_of(ours) - letters_of(other)
            numbers = (numbers_of(other) - numbers_of(page["text"])) + (numbers_of(ours) - numbers_of(other))
            is_explained = any("left out" in said or "not read" in said for said in page["said"])
            for kind, differs in (("letters that we lack", lost), ("letters that we add", more), ("numbers", numbers)):
                found[f"{kind}, explained" if differs and is_explained else kind] += bool(differs)
            found["equal"] += not (lost or more)
            if each and (lost or more or numbers) and not is_explained:
                said = "".join(lost.elements())[:30], "".join(more.elements())[:30], " ".join(numbers)[:40]
                print(f"{Path(path).name} {page['page']}: lacks {said[0]!r}, adds {said[1]!r}, numbers {said[2]!r}")
    for kind, count in found.items():
        print(f"{kind:36}{count:>7,}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="*", metavar="FOLDER")
    parser.add_argument("--into", type=Path, metavar="FILE")
    parser.add_argument("--pages", type=int, default=40)
    parser.add_argument("--of", type=Path, metavar="FILE")
    parser.add_argument("--each", action="store_true")
    arguments = parser.parse_args()
    if arguments.of is not None:
        compare(arguments.of.read_text("utf-8").splitlines(), each=arguments.each)
        return
    if arguments.into is None or not arguments.folders:
        parser.error("Name folders of PDFs, and with --into a file for what is read from them.")
    with arguments.into.open("w", encoding="utf-8") as file:
        for page in read_by_ours(arguments.folders, arguments.pages):
            file.write(json.dumps(page) + "\n")


if __name__ == "__main__":
    main()
