"""Make 60 tables of many kinds by many programs, and the truth of each.

    python -m benchmarks.tables_made FOLDER [--seed 1000]

Needs reportlab, fpdf2, weasyprint, typst, python-docx, openpyxl and pypdfium2 (`pip install` them in an environment of
their own), LibreOffice's `soffice`, and a Chromium that `CHROMIUM` names. Each table becomes `NN-kind-program.ending`;
`truth.json` has its cells: the names of the row, the heads above the column from the top down, and the text.
"""

from __future__ import annotations

import argparse
import html
import io
import json
import os
import random
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Cell:
    text: str
    across: int = 1
    down: int = 1
    #: The rows of a table within the cell.
    inner: tuple[tuple[str, ...], ...] = ()


Rows = list[list[Cell]]


@dataclass(frozen=True)
class Made:
    """A table: its head rows and rows, each with the cells that begin in it; and how many columns name a row."""

    heads: Rows
    body: Rows
    names: int = 1

    @property
    def rows(self) -> Rows:
        return [*self.heads, *self.body]

    @property
    def width(self) -> int:
        return sum(cell.across for cell in self.heads[0])

    def grid(self) -> list[list[Cell]]:
        """Return the cell at each place; one that spans is at several."""
        places: dict[tuple[int, int], Cell] = {}
        for y, row in enumerate(self.rows):
            x = 0
            for cell in row:
                while (y, x) in places:
                    x += 1
                for down in range(cell.down):
                    for across in range(cell.across):
                        places[y + down, x + across] = cell
                x += cell.across
        return [[places[y, x] for x in range(self.width)] for y in range(len(self.rows))]

    def truth(self) -> list[dict[str, Any]]:
        grid = self.grid()
        heads = [
            list(dict.fromkeys(row[x].text for row in grid[: len(self.heads)] if row[x].text))
            for x in range(self.width)
        ]
        return [
            {
                "names": [cell.text for cell in row[: self.names]],
                "heads": heads[x],
                "text": " ".join([row[x].text, *(part for line in row[x].inner for part in line)]).strip(),
            }
            for row in grid[len(self.heads) :]
            for x in range(self.names, self.width)
        ]


def cells(*texts: str) -> list[Cell]:
    return [Cell(text) for text in texts]


# What the tables say

SITES = [
    "Graz", "Linz", "Wels", "Steyr", "Krems", "Lienz", "Bregenz", "Villach", "Salzburg", "Innsbruck", "Dornbirn",
    "Feldkirch", "Bludenz", "Leoben", "Kapfenberg", "Amstetten", "Baden", "Traun", "Schwechat", "Ternitz",
    "Hallein", "Kufstein", "Spittal", "Stockerau", "Tulln", "Telfs", "Hohenems", "Braunau", "Ried", "Gmunden",
    "Horn", "Zwettl", "Melk", "Retz", "Laa", "Enns", "Perg", "Rohrbach", "Eferding", "Landeck", "Imst", "Reutte",
    "Lustenau", "Rankweil", "Wolfsberg", "Murau", "Judenburg", "Mureck", "Feldbach", "Hartberg",
]  # fmt: skip


def leave(chance: random.Random) -> Made:
    heads = [cells("Grade", "Years", "Leave days", "Carried over", "Notice")]
    body = [
        cells(
            f"Grade {grade}", f"{low} to {low + 4}", str(chance.randint(20, 38)),
            chance.choice(["5 days", "none", "not allowed", "10 days"]), f"{chance.randint(1, 6)} months",
        )
        for low, grade in enumerate("ABCDEFG"[: chance.randint(5, 7)])
    ]  # fmt: skip
    return Made(heads, body)


def _amount(chance: random.Random) -> str:
    return f"{chance.randint(1, 7)},{chance.randint(0, 999):03}.{chance.randint(0, 99):02}"


def pay(chance: random.Random) -> Made:
    heads = [cells("Band", *(f"Step {step}" for step in range(1, 7)))]
    body = [
        cells(f"E {band}", *(_amount(chance) for _ in range(6)))
        for band in range(1, chance.randint(7, 10))
    ]  # fmt: skip
    return Made(heads, body)


def allowances(chance: random.Random) -> Made:
    """Many cells are empty, and values are of different lengths."""
    heads = [cells("Country", "Breakfast", "Lunch", "Dinner", "Night", "Taxi")]
    body = []
    for country in chance.sample(["Austria", "Italy", "Malta", "Norway", "Japan", "Chile", "Ghana", "India"], 7):
        row = [f"€ {chance.randint(3, 240)}" if chance.random() < 0.6 else "" for _ in range(5)]
        if not any(row):
            row[chance.randrange(5)] = "€ 7"
        body.append(cells(country, *row))
    return Made(heads, body)


def notice(chance: random.Random) -> Made:
    """Heads over several columns, and cells over several rows."""
    heads = [
        [Cell("Staff", down=2), Cell("Service", down=2), Cell("Notice of", across=2), Cell("Pay in lieu", across=2)],
        cells("employee", "employer", "first year", "later"),
    ]
    body = []
    for staff in ("Office", "Works", "Drivers"):
        for place, service in enumerate(("under 2 years", "2 to 5 years", "over 5 years")):
            row = cells(
                service,
                *(f"{chance.randint(1, 26)} weeks" for _ in range(2)),
                *(f"{chance.randint(5, 95)} %" for _ in range(2)),
            )
            body.append([Cell(staff, down=3), *row] if place == 0 else row)  # fmt: skip
    return Made(heads, body, names=2)


def benefits(chance: random.Random) -> Made:
    """Cells of several lines."""
    who = [
        "Everyone after the trial period, apprentices included", "Staff who work at least 20 hours a week",
        "Nobody who is paid by the hour", "Managers, but not their deputies, from the second year on",
        "Anyone with a child under 12",
    ]  # fmt: skip
    how = [
        "Ask your manager by 30 June", "No request is needed; it is paid with the wage of May",
        "Form 12, with two signatures", "Not before the talk with the works council",
        "Write to the office; answers take 10 days",
    ]  # fmt: skip
    names = ["Job bike", "Meal card", "Season ticket", "Home office", "Sabbatical"]
    chance.shuffle(who)
    chance.shuffle(how)
    body = [
        cells(name, first, f"{chance.randint(2, 90)} %", second)
        for name, first, second in zip(names, who, how, strict=True)
    ]
    return Made([cells("Benefit", "Who may have it", "Share", "How to ask")], body)


def closures(chance: random.Random) -> Made:
    """Long enough for two pages."""
    body = [
        cells(
            site, str(chance.randint(1, 9)), f"{chance.randint(10, 28)} Dec", chance.choice(["yes", "no", "not yet"]),
            f"{chance.randint(2, 90)},{chance.randint(100, 999)}",
        )
        for site in SITES
    ]  # fmt: skip
    return Made([cells("Site", "Free days", "Closed from", "Canteen", "Budget")], body)


def bonus(chance: random.Random) -> Made:
    """Tables in the cells of a table."""

    def inner(names: Sequence[str]) -> tuple[tuple[str, ...], ...]:
        return tuple((name, f"{chance.randint(2, 60)} %") for name in names)

    body = [
        [Cell("Junior"), Cell("", inner=inner(["Sales", "Service"])), Cell("March")],
        [Cell("Senior"), Cell("", inner=inner(["Sales", "Service", "Works"])), Cell("April")],
        [Cell("Lead"), Cell("not paid"), Cell("never")],
    ]
    return Made([cells("Level", "Bonus", "Paid in")], body)


# Programs

BEFORE = "The table below holds for everyone who is employed by the company, whatever was agreed before this year."
AFTER = "Ask the office where something is not clear. Nothing in this table changes what the law gives to you."
LINED, PLAIN, HEAD_LINE = "lined", "plain", "head line"


def as_html(made: Made, lines: str, *, turn: str = "", repeats: bool = True, plain: bool = False) -> str:
    def cell_of(cell: Cell, tag: str) -> str:
        spans = (f' colspan="{cell.across}"' if cell.across > 1 else "") + (
            f' rowspan="{cell.down}"' if cell.down > 1 else ""
        )
        inner = "".join(
            "<tr>" + "".join(f"<td>{html.escape(part)}</td>" for part in line) + "</tr>" for line in cell.inner
        )
        text = html.escape(cell.text)
        if turn == "heads" and tag == "th":
            text = f'<div style="writing-mode: sideways-lr">{text}</div>'
        return f"<{tag}{spans}>{text}{f'<table>{inner}</table>' if inner else ''}</{tag}>"

    heads = "".join("<tr>" + "".join(cell_of(cell, "th") for cell in row) + "</tr>" for row in made.heads)
    body = "".join("<tr>" + "".join(cell_of(cell, "td") for cell in row) + "</tr>" for row in made.body)
    border = {
        LINED: "th, td {border: 1px solid black}",
        PLAIN: "",
        HEAD_LINE: "thead th {border-bottom: 2px solid black} tbody tr:last-child > td {border-bottom: 1px solid}",
    }[lines]
    turned = {
        "left": "transform: rotate(-90deg); top: 620px; left: 30px",
        "right": "transform: rotate(90deg); top: 120px; left: 420px",
    }.get(turn, "")
    turned = f"table {{{turned}; transform-origin: top left; position: absolute}}" if turned else ""
    repeated = "table-header-group" if repeats else "table-row-group"
    style = (
        "body {font: 11pt 'DejaVu Sans'} table {border-collapse: collapse} th {font-weight: bold} "
        "th, td {padding: 3px 9px; text-align: left; vertical-align: top} "
        f"thead {{display: {repeated}}}"
        f"{border}{turned}"
    )
    head = "" if plain else f"<style>{style}</style>"
    return (
        f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>Table</title>{head}</head><body>'
        f"<p>{BEFORE}</p><table><thead>{heads}</thead><tbody>{body}</tbody></table><p>{AFTER}</p></body></html>"
    )


def by_weasyprint(made: Made, lines: str, **options: Any) -> bytes:
    import weasyprint

    written: bytes = weasyprint.HTML(string=as_html(made, lines, **options)).write_pdf()
    return written


def by_chromium(made: Made, lines: str, **options: Any) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        page, pdf = Path(folder, "page.html"), Path(folder, "page.pdf")
        page.write_text(as_html(made, lines, **options), encoding="utf-8")
        command = [os.environ.get("CHROMIUM", "chromium"), "--headless", "--no-sandbox", "--disable-gpu"]
        command += [f"--user-data-dir={folder}/profile", "--no-pdf-header-footer", f"--print-to-pdf={pdf}", str(page)]
        subprocess.run(command, check=True, capture_output=True, timeout=120)
        return pdf.read_bytes()


def by_libreoffice(made: Made, lines: str, *, kind: str = "pdf", **options: Any) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder, "page.docx")
        page.write_bytes(as_docx(made, lines, **options))
        command = ["soffice", f"-env:UserInstallation=file://{folder}/profile", "--headless", "--convert-to", kind]
        subprocess.run([*command, "--outdir", folder, str(page)], check=True, capture_output=True, timeout=180)
        return Path(folder, f"page.{kind}").read_bytes()


def by_reportlab(made: Made, lines: str, *, turn: str = "", repeats: bool = True, plain: bool = False) -> bytes:
    from reportlab.lib import colors
    from reportlab.lib.pagesizes import A4, landscape
    from reportlab.lib.styles import getSampleStyleSheet
    from reportlab.pdfgen import canvas
    from reportlab.platypus import Paragraph, SimpleDocTemplate, Table, TableStyle

    normal = getSampleStyleSheet()["Normal"]
    styles: list[tuple[Any, ...]] = [("VALIGN", (0, 0), (-1, -1), "TOP")]
    if lines == LINED:
        styles.append(("GRID", (0, 0), (-1, -1), 0.5, colors.black))
    if lines == HEAD_LINE:
        styles.append(("LINEBELOW", (0, len(made.heads) - 1), (-1, len(made.heads) - 1), 1, colors.black))
    shown: list[list[Any]] = []
    seen: set[int] = set()
    for y, row in enumerate(made.grid()):
        shown.append([])
        for x, cell in enumerate(row):
            is_new = id(cell) not in seen
            seen.add(id(cell))
            wraps = len(cell.text) > 18
            shown[-1].append((Paragraph(cell.text, normal) if wraps else cell.text) if is_new else "")
            if is_new and (cell.across > 1 or cell.down > 1):
                styles.append(("SPAN", (x, y), (x + cell.across - 1, y + cell.down - 1)))
            if cell.text[-1:].isdigit() and y >= len(made.heads):
                styles.append(("ALIGN", (x, y), (x, y), "RIGHT"))
    wraps = any(len(cell.text) > 18 for row in made.body for cell in row)
    widths = [80, 140, 50, 150][: made.width] if wraps else None
    table = Table(shown, colWidths=widths, repeatRows=len(made.heads) if repeats else 0, style=TableStyle(styles))
    written = io.BytesIO()
    if not turn:
        SimpleDocTemplate(written, pagesize=A4, invariant=1).build(
            [Paragraph(BEFORE, normal), table, Paragraph(AFTER, normal)]
        )
        return written.getvalue()
    width, height = landscape(A4)
    page = canvas.Canvas(written, pagesize=A4, invariant=1)
    if turn in ("page", "left"):
        page.translate(A4[0], 0)
        page.rotate(90)
    else:
        page.translate(0, A4[1])
        page.rotate(-90)
    if turn == "page":
        page.setPageRotation(90)
    for text, y in ((BEFORE, height - 60), (AFTER, 60)):
        page.drawString(50, y, text)
    _, high = table.wrapOn(page, width - 100, height - 140)
    table.drawOn(page, 50, height - 90 - high)
    page.showPage()
    page.save()
    return written.getvalue()


def by_fpdf2(made: Made, lines: str, *, turn: str = "", repeats: bool = True, plain: bool = False) -> bytes:
    from fpdf import FPDF
    from fpdf.enums import TableBordersLayout

    pdf = FPDF(format="A4")
    pdf.add_font("Sans", "", "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf")
    pdf.add_font("Sans", "B", "/usr/share/fonts/truetype/dejavu/DejaVuSans-Bold.ttf")
    pdf.set_font("Sans", size=9)
    pdf.add_page()
    pdf.multi_cell(0, 5, BEFORE, new_x="LMARGIN", new_y="NEXT")
    layouts = {
        LINED: TableBordersLayout.ALL,
        PLAIN: TableBordersLayout.NONE,
        HEAD_LINE: TableBordersLayout.SINGLE_TOP_LINE,
    }

    def draw() -> None:
        with pdf.table(
            borders_layout=layouts[lines],
            text_align="LEFT",
            num_heading_rows=len(made.heads),
            repeat_headings="ON_TOP_OF_EVERY_PAGE" if repeats else "NONE",
        ) as table:
            for row in made.rows:
                line = table.row()
                for cell in row:
                    line.cell(cell.text, colspan=cell.across, rowspan=cell.down)

    if turn:
        with pdf.rotation(90 if turn == "left" else -90, x=105, y=110):
            draw()
    else:
        draw()
        pdf.multi_cell(0, 5, AFTER, new_x="LMARGIN", new_y="NEXT")
    return bytes(pdf.output())


def by_typst(made: Made, lines: str, *, turn: str = "", repeats: bool = True, plain: bool = False) -> bytes:
    import typst

    def shown(text: str) -> str:
        return "#" + json.dumps(text, ensure_ascii=False)

    def cell_of(cell: Cell, is_head: bool) -> str:
        text = shown(cell.text) if cell.text else ""
        if cell.inner:
            parts = ", ".join(f"[{shown(part)}]" for line in cell.inner for part in line)
            text = f"{text} #table(columns: {len(cell.inner[0])}, stroke: 0.5pt, {parts})"
        if is_head and turn == "heads":
            text = f"#rotate(-90deg, reflow: true)[{text}]"
        return f"table.cell(colspan: {cell.across}, rowspan: {cell.down})[{text}]"

    heads = ", ".join(cell_of(cell, True) for row in made.heads for cell in row)
    heads = f"table.header({heads})" if repeats else heads
    body = ", ".join(cell_of(cell, False) for row in made.body for cell in row)
    stroke = {
        LINED: "0.5pt",
        PLAIN: "none",
        HEAD_LINE: f"(x, y) => if y == {len(made.heads) - 1} {{ (bottom: 0.7pt) }}",
    }[lines]
    columns = f"({', '.join(['auto'] * made.width)})"
    table = f"table(columns: {columns}, stroke: {stroke}, align: left + top, {heads}, {body})"
    turned = {"left": f"rotate(-90deg, reflow: true, {table})", "right": f"rotate(90deg, reflow: true, {table})"}.get(
        turn, table
    )
    source = f'#set page("a4")\n#set text(size: 10pt)\n{BEFORE}\n\n#{turned}\n\n{AFTER}\n'
    written: bytes = typst.compile(source.encode())
    return written


def as_docx(made: Made, lines: str, *, repeats: bool = True, turn: str = "") -> bytes:
    import docx
    from docx.oxml import OxmlElement

    document = docx.Document()
    document.add_paragraph(BEFORE)
    grid = made.grid()
    table = document.add_table(len(grid), made.width)
    table.style = "Table Grid" if lines == LINED else "Normal Table"
    for y, row in enumerate(grid):
        for x, cell in enumerate(row):
            is_new = (x == 0 or row[x - 1] is not cell) and (y == 0 or grid[y - 1][x] is not cell)
            if not is_new:
                continue
            place = table.cell(y, x)
            if cell.across > 1 or cell.down > 1:
                place = place.merge(table.cell(y + cell.down - 1, x + cell.across - 1))
            place.text = cell.text
            if cell.inner:
                inside = place.add_table(len(cell.inner), len(cell.inner[0]))
                inside.style = "Table Grid"
                for line, texts in zip(inside.rows, cell.inner, strict=True):
                    for part, text in zip(line.cells, texts, strict=True):
                        part.text = text
    if repeats:
        for row in list(table.rows)[: len(made.heads)]:
            row._tr.get_or_add_trPr().append(OxmlElement("w:tblHeader"))
    document.add_paragraph(AFTER)
    written = io.BytesIO()
    document.save(written)
    return written.getvalue()


def as_xlsx(made: Made, lines: str) -> bytes:
    import openpyxl

    book = openpyxl.Workbook()
    sheet = book.active
    seen: set[int] = set()
    for y, row in enumerate(made.grid(), 1):
        for x, cell in enumerate(row, 1):
            if id(cell) in seen:
                continue
            seen.add(id(cell))
            sheet.cell(y, x, cell.text or None)
            if cell.across > 1 or cell.down > 1:
                sheet.merge_cells(
                    start_row=y, start_column=x, end_row=y + cell.down - 1, end_column=x + cell.across - 1
                )
    written = io.BytesIO()
    book.save(written)
    return written.getvalue()


def scanned(pdf: bytes, degrees: float = 0.0) -> bytes:
    """Return a PDF as a scanner at 200 dots per inch sees it: pictures alone."""
    import pypdfium2
    from PIL import Image, ImageFilter

    pages = []
    for page in pypdfium2.PdfDocument(pdf):
        picture = page.render(scale=200 / 72).to_pil().convert("L")
        picture = picture.rotate(degrees, fillcolor=255, resample=Image.Resampling.BICUBIC)
        pages.append(picture.filter(ImageFilter.GaussianBlur(0.6)))
    written = io.BytesIO()
    pages[0].save(written, "PDF", save_all=True, append_images=pages[1:], resolution=200)
    return written.getvalue()


# The sixty

Maker = Callable[[Made], bytes]
PRINTERS: dict[str, Callable[..., bytes]] = {
    "reportlab": by_reportlab, "fpdf2": by_fpdf2, "weasyprint": by_weasyprint, "chromium": by_chromium,
    "libreoffice": by_libreoffice, "typst": by_typst,
}  # fmt: skip
ALL = tuple(PRINTERS)


def _printed(program: str, lines: str, **options: Any) -> Maker:
    return lambda made: PRINTERS[program](made, lines, **options)


def _scanned(program: str, lines: str, degrees: float) -> Maker:
    return lambda made: scanned(PRINTERS[program](made, lines), degrees)


def the_sixty() -> list[tuple[str, str, Callable[[random.Random], Made], Maker]]:
    """Return kind, program, content and maker of each."""
    found: list[tuple[str, str, Callable[[random.Random], Made], Maker]] = []
    for place, name in enumerate(ALL):
        found.append(("lined", f"{name}.pdf", (leave, benefits)[place % 2], _printed(name, LINED)))
        found.append(("unlined", f"{name}.pdf", (pay, leave)[place % 2], _printed(name, PLAIN)))
        found.append(("merged", f"{name}.pdf", notice, _printed(name, LINED)))
    for name in ("reportlab", "weasyprint", "chromium", "typst"):
        found.append(("wrapped", f"{name}.pdf", benefits, _printed(name, HEAD_LINE)))
        found.append(("empty cells", f"{name}.pdf", allowances, _printed(name, PLAIN)))
        found.append(("over pages", f"{name}.pdf", closures, _printed(name, LINED)))
    found.extend(
        (
            "over pages, one head",
            f"{name}.pdf",
            closures,
            _printed(name, (LINED, PLAIN)[name == "weasyprint"], repeats=False),
        )
        for name in ("reportlab", "fpdf2", "weasyprint", "libreoffice")
    )
    found.extend(
        ("merged, unlined", f"{name}.pdf", notice, _printed(name, HEAD_LINE))
        for name in ("weasyprint", "chromium", "typst")
    )
    for name, content in (("weasyprint", bonus), ("chromium", bonus), ("libreoffice", bonus)):
        found.append(("nested", f"{name}.pdf", content, _printed(name, LINED)))
    for name, turn, lines in (
        ("reportlab", "page", LINED), ("reportlab", "page", PLAIN), ("reportlab", "left", LINED),
        ("fpdf2", "right", LINED), ("typst", "left", PLAIN), ("chromium", "right", LINED),
    ):  # fmt: skip
        found.append(("turned", f"{name}.pdf", (pay if lines == PLAIN else leave), _printed(name, lines, turn=turn)))
    found.extend(
        ("upward heads", f"{name}.pdf", allowances, _printed(name, LINED, turn="heads"))
        for name in ("chromium", "typst")
    )
    for name, content, lines, degrees in (
        ("reportlab", leave, LINED, 0.0), ("weasyprint", pay, PLAIN, 0.7), ("typst", benefits, LINED, -0.5),
        ("chromium", allowances, LINED, 0.0), ("libreoffice", notice, LINED, 0.4),
    ):  # fmt: skip
        found.append(("scan", f"{name}.pdf", content, _scanned(name, lines, degrees)))
    found.extend(("Word", "word.docx", content, lambda made: as_docx(made, LINED)) for content in (notice, bonus))
    found.extend(
        ("HTML", "page.html", content, lambda made: as_html(made, LINED).encode())
        for content in (allowances, notice, bonus)
    )
    found.extend(("Excel", "book.xlsx", content, lambda made: as_xlsx(made, LINED)) for content in (allowances, notice))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=0, help="other figures and names in the tables")
    options = parser.parse_args()
    folder: Path = options.folder
    folder.mkdir(parents=True, exist_ok=True)
    truth = {}
    for number, (kind, file, content, make) in enumerate(the_sixty(), 1):
        made = content(random.Random(options.seed + number))
        name = f"{number:02}-{kind.replace(', ', '-').replace(' ', '-')}-{file}"
        Path(folder, name).write_bytes(make(made))
        truth[name] = {"kind": kind, "cells": made.truth()}
    Path(folder, "truth.json").write_text(json.dumps(truth, ensure_ascii=False, indent=1), encoding="utf-8")
    print(f"{len(truth)} tables, {sum(len(one['cells']) for one in truth.values()):,} cells")


if __name__ == "__main__":
    main()
