"""Cells of tables that are read right: ours beside pdfplumber, camelot and docling.

    python -m benchmarks.tables_made FOLDER
    python -m benchmarks.tables FOLDER --reader ours [--wrong]
    PEERS/bin/python -m benchmarks.tables FOLDER --reader pdfplumber

The peers run in an environment of their own. A cell is right if its text is in the row of its names and under all of
its heads, in one table. `--wrong` prints the others.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

Grid = list[list[str]]


def read_by_ours() -> Callable[[Path], list[Grid]]:
    """Read a file as the product does, scans with RapidOCR; tables are those that chunks and answers see."""
    from benchmarks.extraction import LIMITS
    from rag.ingestion.loaders import load
    from rag.ingestion.loaders.values import LoadOptions
    from rag.text.tables import tables_in

    recognise: list[Any] = []

    def text_of_scan(content: bytes, number: int) -> str:
        import io

        from PIL import Image

        from rag.ingestion.loaders.ocr import RAPIDOCR_SCALE
        from rag.ingestion.loaders.pictures import draw_page
        from rag.integrations.engines.recognition.worker import Reader, summary_of

        if not recognise:
            recognise.append(Reader())
        drawn = draw_page(content, number, highlight="", scale=RAPIDOCR_SCALE)
        return str(summary_of(recognise[0].read(Image.open(io.BytesIO(drawn))))["text"])

    def read(path: Path) -> list[Grid]:
        content = path.read_bytes()
        grids: list[Grid] = []
        for page in load(content, path.name, options=LoadOptions(limits=LIMITS)).pages:
            text = page.text if page.text.strip() else text_of_scan(content, page.number)
            for table in tables_in(text):
                rows = [*([table.heads] if table.heads else []), *table.rows]
                grids.append([list(row.cells) for row in rows])
        return grids

    return read


def read_by_pdfplumber() -> Callable[[Path], list[Grid]]:
    """With lines, else by the alignment of words, as its documentation advises; merged cells are filled."""
    import pdfplumber

    def filled(table: Sequence[Sequence[str | None]]) -> Grid:
        rows: Grid = []
        for row in table:
            said: list[str] = []
            for x, cell in enumerate(row):
                said.append(cell if cell is not None else said[-1] if said else rows[-1][x] if rows else "")
            rows.append(said)
        return rows

    def read(path: Path) -> list[Grid]:
        if path.suffix != ".pdf":
            return []
        grids: list[Grid] = []
        with pdfplumber.open(path) as pdf:
            for page in pdf.pages:
                tables = page.extract_tables()
                if not any(len(table) > 1 for table in tables):
                    tables = page.extract_tables({"vertical_strategy": "text", "horizontal_strategy": "text"})
                grids += [filled(table) for table in tables]
        return grids

    return read


def read_by_camelot() -> Callable[[Path], list[Grid]]:
    """With lines and merged cells filled (`lattice`), else by alignment (`stream`)."""
    import camelot

    def read(path: Path) -> list[Grid]:
        if path.suffix != ".pdf":
            return []
        tables: Any = camelot.read_pdf(str(path), pages="all", flavor="lattice", copy_text=["h", "v"])
        if not len(tables):
            tables = camelot.read_pdf(str(path), pages="all", flavor="stream")
        return [table.df.values.tolist() for table in tables]

    return read


def read_by_docling() -> Callable[[Path], list[Grid]]:
    """Word, HTML and Excel only: for PDFs it loads models from a hub."""
    from docling.document_converter import DocumentConverter

    def read(path: Path) -> list[Grid]:
        if path.suffix == ".pdf":
            return []
        document = DocumentConverter().convert(path).document
        return [[[cell.text for cell in row] for row in table.data.grid] for table in document.tables]

    return read


READERS = {
    "ours": read_by_ours, "pdfplumber": read_by_pdfplumber, "camelot": read_by_camelot, "docling": read_by_docling,
}  # fmt: skip


def plain(text: str) -> str:
    """Return a cell's text without blanks, and without the marks between the cells of a table within it."""
    return "".join(re.sub(r"[:;,](?=\s|$)", "", str(text)).split())


def is_right(cell: dict[str, Any], grids: Sequence[Grid]) -> bool:
    names, heads, text = (
        [plain(name) for name in cell["names"]],
        [plain(head) for head in cell["heads"]],
        plain(cell["text"]),
    )
    for grid in grids:
        for y, row in enumerate(grid):
            if row[: len(names)] != names:
                continue
            for x in range(len(names), len(row)):
                above = "".join(grid[up][x] for up in range(y) if x < len(grid[up]))
                if row[x] == text and all(head in above for head in heads):
                    return True
    return False


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--reader", choices=READERS, default="ours")
    parser.add_argument("--wrong", action="store_true")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    truth = json.loads(Path(options.folder, "truth.json").read_text(encoding="utf-8"))
    read = READERS[options.reader]()
    right: Counter[str] = Counter()
    whole: Counter[str] = Counter()
    perfect = 0
    for name, table in truth.items():
        if options.only not in name:
            continue
        try:
            grids = [[[plain(text) for text in row] for row in grid] for grid in read(Path(options.folder, name))]
        except Exception as exc:
            print(f"{name}: {type(exc).__name__}: {exc}")
            grids = []
        wrong = [cell for cell in table["cells"] if not is_right(cell, grids)]
        right[table["kind"]] += len(table["cells"]) - len(wrong)
        whole[table["kind"]] += len(table["cells"])
        perfect += not wrong
        if options.wrong and wrong:
            print(f"{name}: {len(wrong)} of {len(table['cells'])} wrong, such as {wrong[0]}")
    for kind, count in whole.items():
        print(f"{kind:24} {right[kind]:5,} of {count:5,}  {right[kind] / count:.0%}")
    share = right.total() / whole.total()
    print(f"{options.reader}: {right.total():,} of {whole.total():,} cells ({share:.1%}), {perfect} tables whole")


if __name__ == "__main__":
    main()
