"""Difficult PDFs of our own making, one function for each kind."""

from __future__ import annotations

import io
import zlib
from collections.abc import Sequence
from random import Random

from PIL import Image
from pypdf import PdfReader, PdfWriter
from pypdf.generic import ArrayObject, DictionaryObject, NameObject, NumberObject
from reportlab.lib.pagesizes import A4
from reportlab.lib.utils import ImageReader
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.cidfonts import UnicodeCIDFont
from reportlab.pdfgen.canvas import Canvas

LEAVE = ["Leave policy", "Everyone has 25 days of paid leave a year.", "Up to five days may be carried over."]


def pdf_of(
    pages: Sequence[Sequence[str]],
    *,
    title: str = "",
    headings: bool = True,
    outline: bool = False,
    font: str = "Helvetica",
) -> bytes:
    """A plain PDF: each page its lines, the first of them as a heading."""
    if font != "Helvetica":
        pdfmetrics.registerFont(UnicodeCIDFont(font))
    buffer = io.BytesIO()
    canvas = Canvas(buffer, pagesize=A4, invariant=1)
    canvas.setTitle(title)
    for number, lines in enumerate(pages):
        y = 780.0
        for index, line in enumerate(lines):
            is_heading = headings and index == 0
            canvas.setFont("Helvetica-Bold" if is_heading and font == "Helvetica" else font, 16 if is_heading else 10)
            canvas.drawString(60, y, line)
            y -= 26 if is_heading else 14
        if outline and lines:
            canvas.bookmarkPage(f"p{number}")
            canvas.addOutlineEntry(lines[0], f"p{number}", 0)
        canvas.showPage()
    canvas.save()
    return buffer.getvalue()


def leave_policy(extra: str = "") -> bytes:
    """One readable page."""
    return pdf_of([[*LEAVE, extra]])


def long_document(pages: int = 6) -> bytes:
    """Several pages of different sentences, enough for some chunks."""
    return pdf_of(
        [
            [
                f"Chapter {page}",
                *(f"Rule {page}.{n} says that office {page * n} closes at {n} o'clock." for n in range(1, 40)),
            ]
            for page in range(1, pages + 1)
        ]
    )


def encrypted(password: str = "geheim", content: bytes | None = None) -> bytes:
    """Readable with its password only."""
    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(content or leave_policy())))
    writer.encrypt(password, owner_password="owner", algorithm="AES-256")
    return _written(writer)


def protected_against_changes() -> bytes:
    """Encrypted, but opens without a password."""
    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(leave_policy())))
    writer.encrypt("", owner_password="owner", algorithm="AES-128")
    return _written(writer)


def html_named_pdf() -> bytes:
    return b"<html><body><h1>Leave policy</h1><script>alert(1)</script></body></html>"


def truncated() -> bytes:
    """Cut in the middle of its first objects."""
    return leave_policy()[:180]


def without_end_mark() -> bytes:
    return leave_policy().replace(b"%%EOF", b"")


def without_pages() -> bytes:
    return raw_pdf({1: b"<< /Type /Catalog /Pages 2 0 R >>", 2: b"<< /Type /Pages /Kids [] /Count 0 >>"})


def cyclic_page_tree() -> bytes:
    """The page tree holds itself."""
    return raw_pdf(
        {
            1: b"<< /Type /Catalog /Pages 2 0 R >>",
            2: b"<< /Type /Pages /Kids [3 0 R 2 0 R] /Count 2 >>",
            3: b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 300 300] /Contents 4 0 R "
            b"/Resources << /Font << /F1 5 0 R >> >> >>",
            4: stream(b"BT /F1 24 Tf 20 100 Td (Potato salad) Tj ET"),
            5: b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        }
    )


def flate_bomb(megabytes: int = 600) -> bytes:
    """A page whose content is very much larger than the file."""
    packer = zlib.compressobj(9)
    block = b" " * 2**20
    packed = b"".join([*(packer.compress(block) for _ in range(megabytes)), packer.flush()])
    return raw_pdf(
        {
            1: b"<< /Type /Catalog /Pages 2 0 R >>",
            2: b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
            3: b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 300 300] /Contents 4 0 R >>",
            4: stream(packed, b"/Filter /FlateDecode "),
        }
    )


def image_only() -> bytes:
    """A page that is a picture, as scanners make them."""
    buffer = io.BytesIO()
    canvas = Canvas(buffer, pagesize=A4, invariant=1)
    canvas.rect(100, 100, 300, 500, fill=1)
    canvas.showPage()
    canvas.save()
    return buffer.getvalue()


def scanned_page() -> bytes:
    """A page of print as a picture, which text recognition can read."""
    import pypdfium2

    printed = pypdfium2.PdfDocument(pdf_of([[*LEAVE, "Call your manager before nine."]]))
    picture = printed[0].render(scale=3).to_pil().convert("L")
    buffer = io.BytesIO()
    canvas = Canvas(buffer, pagesize=A4, invariant=1)
    canvas.drawImage(ImageReader(picture), 0, 0, *A4)
    canvas.showPage()
    canvas.save()
    return buffer.getvalue()


def pictured_table() -> bytes:
    """Text above a table of costs that is a picture, its first column on a dark ground."""
    import pypdfium2

    table = io.BytesIO()
    canvas = Canvas(table, pagesize=(440, 160), invariant=1)
    rows = [("", "Standard", "Plus"), ("Single", "$45.00", "$55.00"), ("Family", "$78.00", "$89.00")]
    for number, row in enumerate(rows):
        for place, cell in enumerate(row):
            canvas.setFillColorRGB(*((0.93, 0.49, 0.19) if place == 0 or number == 0 else (0.98, 0.89, 0.84)))
            canvas.rect(10 + 140 * place, 110 - 48 * number, 138, 46, fill=1, stroke=0)
            canvas.setFillColorRGB(0, 0, 0)
            canvas.setFont("Helvetica", 15)
            canvas.drawString(40 + 140 * place, 127 - 48 * number, cell)
    canvas.showPage()
    canvas.save()
    picture = pypdfium2.PdfDocument(table.getvalue())[0].render(scale=2).to_pil()
    return _with_picture(ImageReader(picture), (70, 500, 440, 160))


def pictured(kind: str) -> bytes:
    """Text beside a picture without any: a `logo`, a `photograph` or a `background`."""
    noise = Random(3).randbytes(60 * 40 * 3)
    photograph = Image.frombytes("RGB", (60, 40), noise).resize((900, 600), Image.Resampling.BICUBIC)
    places = {"logo": (70, 700, 90, 60), "photograph": (70, 400, 440, 290), "background": (0, 0, *A4)}
    return _with_picture(ImageReader(photograph), places[kind])


def _with_picture(picture: ImageReader, place: tuple[float, float, float, float]) -> bytes:
    buffer = io.BytesIO()
    canvas = Canvas(buffer, pagesize=A4, invariant=1)
    canvas.drawImage(picture, *place)
    for number, line in enumerate(("Costs", "The table shows what the plans cost a month.", "Ask the People Team.")):
        canvas.drawString(70, 780 - 24 * number, line)
    canvas.showPage()
    canvas.save()
    return buffer.getvalue()


def partly_scanned() -> bytes:
    """Text on the first and last page, a picture between them."""
    writer = PdfWriter()
    for part in (leave_policy(), image_only(), pdf_of([["Sick leave", "Call your manager before nine."]])):
        writer.append(io.BytesIO(part))
    return _written(writer)


def blank_pages(count: int) -> bytes:
    """Blank pages without end, in a small file."""
    writer = PdfWriter()
    for _ in range(count):
        writer.add_blank_page(200, 200)
    return _written(writer)


def labelled_pages() -> bytes:
    """Pages that print i, ii, 1, 2 as their numbers."""
    writer = PdfWriter(
        clone_from=PdfReader(io.BytesIO(pdf_of([[f"Part {n}", f"Text of part {n}."] for n in range(4)])))
    )
    writer.root_object[NameObject("/PageLabels")] = DictionaryObject(
        {
            NameObject("/Nums"): ArrayObject(
                [
                    NumberObject(0),
                    DictionaryObject({NameObject("/S"): NameObject("/r")}),
                    NumberObject(2),
                    DictionaryObject({NameObject("/S"): NameObject("/D")}),
                ]
            )
        }
    )
    return _written(writer)


def running_heads(pages: int = 8) -> bytes:
    """The same head and foot on each page, and one fact."""
    return pdf_of(
        [
            ["Staff manual - confidential", f"Office {n}: the allowance is {100 + n} EUR.", f"Page {n} of {pages}"]
            for n in range(1, pages + 1)
        ],
        headings=False,
    )


def mojibake() -> bytes:
    """Text in an encoding that the font does not name: Chinese in GB 2312, shown as Latin letters."""
    text = "关于红军作战的原则和对国防问题的意见".encode("gb2312")
    return raw_pdf(
        {
            1: b"<< /Type /Catalog /Pages 2 0 R >>",
            2: b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
            3: b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 300 300] /Contents 4 0 R "
            b"/Resources << /Font << /F1 5 0 R >> >> >>",
            4: stream(b"BT /F1 12 Tf 20 100 Td <" + text.hex().encode() + b"> Tj ET"),
            5: b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
        }
    )


def hidden_text() -> bytes:
    """Text that is seen, and text that is white, microscopic, off the page or drawn invisibly."""
    buffer = io.BytesIO()
    canvas = Canvas(buffer, pagesize=A4, invariant=1)
    canvas.drawString(60, 700, "Everyone has 25 days of paid leave a year.")
    canvas.setFillColorRGB(1, 1, 1)
    canvas.drawString(60, 680, "White secret.")
    canvas.setFillColorRGB(0, 0, 0.4)
    canvas.rect(50, 600, 300, 40, fill=1)
    canvas.setFillGray(1)
    canvas.drawString(60, 610, "White on dark.")
    canvas.setFillGray(0)
    canvas.setFont("Helvetica", 0.5)
    canvas.drawString(60, 560, "Tiny secret.")
    canvas.setFont("Helvetica", 12)
    canvas.drawString(900, 500, "Right secret.")
    canvas.drawString(60, -200, "Below secret.")
    drawn = canvas.beginText(60, 450)
    drawn.setTextRenderMode(3)
    drawn.textLine("Invisible secret.")
    drawn.setTextRenderMode(0)
    canvas.drawText(drawn)
    canvas.drawString(60, 400, "Up to five days may be carried over.")
    canvas.showPage()
    canvas.save()
    return buffer.getvalue()


def scanned_with_text_layer() -> bytes:
    """A picture of a page with the text that was recognised in it, drawn invisibly over it."""
    buffer = io.BytesIO()
    canvas = Canvas(buffer, pagesize=A4, invariant=1)
    canvas.drawInlineImage(Image.new("L", (20, 20), 240), 0, 0, 595, 842)
    canvas.drawImage(ImageReader(Image.new("L", (20, 20), 240)), 0, 0, 595, 842)
    drawn = canvas.beginText(60, 450)
    drawn.setTextRenderMode(3)
    drawn.textLine("Recognised text.")
    canvas.drawText(drawn)
    canvas.showPage()
    canvas.save()
    return buffer.getvalue()


def rotated(degrees: int) -> bytes:
    """A page that was turned, as scanners do; its text was turned the other way, so that it reads upright."""
    buffer = io.BytesIO()
    canvas = Canvas(buffer, pagesize=A4, invariant=1)
    canvas.translate(297, 421)
    canvas.rotate(degrees)
    for line, text in enumerate(LEAVE):
        canvas.drawString(-150, 100 - 20 * line, text)
    canvas.showPage()
    canvas.save()
    writer = PdfWriter(clone_from=PdfReader(buffer))
    writer.pages[0].rotate(degrees)
    return _written(writer)


def two_columns() -> bytes:
    """Two columns, each of which is read to its end, under a heading."""
    buffer = io.BytesIO()
    canvas = Canvas(buffer, pagesize=A4, invariant=1)
    canvas.drawString(60, 780, "Leave policy")
    for column in range(2):
        for line in range(4):
            canvas.drawString(60 + 260 * column, 740 - 20 * line, f"Column {column + 1} line {line + 1} ends.")
    canvas.showPage()
    canvas.save()
    return buffer.getvalue()


def table() -> bytes:
    """A table, drawn cell by cell."""
    buffer = io.BytesIO()
    canvas = Canvas(buffer, pagesize=A4, invariant=1)
    for row, cells in enumerate(
        [("Kind", "Days", "Who"), ("Paid leave", "25", "All"), ("Care leave", "10", "Parents")]
    ):
        for column, cell in enumerate(cells):
            canvas.drawString(60 + 150 * column, 700 - 20 * row, cell)
    canvas.showPage()
    canvas.save()
    return buffer.getvalue()


def stream(content: bytes, entries: bytes = b"") -> bytes:
    return b"<< %s/Length %d >>\nstream\n%s\nendstream" % (entries, len(content), content)


def raw_pdf(objects: dict[int, bytes]) -> bytes:
    """A PDF of objects written by hand, with a right cross-reference table."""
    out = io.BytesIO()
    out.write(b"%PDF-1.7\n")
    offsets = {}
    for number, body in objects.items():
        offsets[number] = out.tell()
        out.write(b"%d 0 obj\n%s\nendobj\n" % (number, body))
    start = out.tell()
    out.write(b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1))
    for number in sorted(objects):
        out.write(b"%010d 00000 n \n" % offsets[number])
    out.write(b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, start))
    return out.getvalue()


def _written(writer: PdfWriter) -> bytes:
    buffer = io.BytesIO()
    writer.write(buffer)
    return buffer.getvalue()
