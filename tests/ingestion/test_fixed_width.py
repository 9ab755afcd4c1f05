"""Lists whose columns are made by blanks: values stay under their heads, in text files and in PDFs."""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import partial

import pytest
from fpdf import FPDF
from reportlab.lib.pagesizes import A4
from reportlab.pdfgen.canvas import Canvas

from rag.ingestion.loaders import load

PAY = """\
PAY LIST MARCH 2026                       Page 1

No    Name              Grade    Base pay    Bonus     Net
----- ----------------- ------ ---------- -------- ----------
1001  Ada Holm          G4       3,120.00    150.00   2,204.10
1002  Bo Lind           G2       2,540.00             1,842.77
1003  Chris van Dam     G5       3,870.50    310.00   2,690.00
1004  Dora Quist        G1       2,110.00     90.00   1,590.25

Total                           11,640.50    550.00   8,327.12

Payment is made on the 27th of each month by bank transfer."""
AS_ROWS = [
    "No | Name | Grade | Base pay | Bonus | Net",
    "1001 | Ada Holm | G4 | 3,120.00 | 150.00 | 2,204.10",
    "1002 | Bo Lind | G2 | 2,540.00 | | 1,842.77",
    "1003 | Chris van Dam | G5 | 3,870.50 | 310.00 | 2,690.00",
    "1004 | Dora Quist | G1 | 2,110.00 | 90.00 | 1,590.25",
    "Total | | | 11,640.50 | 550.00 | 8,327.12",
]


def rows_of(content: bytes, name: str) -> list[str]:
    return [line for line in load(content, name).pages[0].text.split("\n") if " | " in line]


def by_fpdf(text: str) -> bytes:
    pdf = FPDF()
    pdf.add_page()
    pdf.set_font("Courier", size=9)
    for line in text.split("\n"):
        pdf.cell(0, 4, line, new_x="LMARGIN", new_y="NEXT")
    return bytes(pdf.output())


def by_reportlab(text: str, *, by_word: bool = False, prose: int = 0) -> bytes:
    """Draw the lines in Courier, below lines of prose in Helvetica."""
    buffer = io.BytesIO()
    canvas = Canvas(buffer, pagesize=A4, invariant=1)
    canvas.setFont("Helvetica", 11)
    for place in range(prose):
        canvas.drawString(
            50, 800 - 14 * place, f"Clause {place}: the list below is kept for ten years and handed out to staff."
        )
    canvas.setFont("Courier", 9)
    for place, line in enumerate(text.split("\n")):
        y = 780 - 14 * prose - 11 * place
        if not by_word:
            canvas.drawString(50, y, line)
            continue
        at = 0
        for word in line.split():
            at = line.index(word, at)
            canvas.drawString(50 + 5.4 * at, y, word)
            at += len(word)
    canvas.save()
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("written", "name"),
    [
        (str.encode, "pay.txt"),
        (lambda text: text.replace("\n", "\r\n").encode(), "pay.txt"),
        (by_fpdf, "pay.pdf"),
        (by_reportlab, "pay.pdf"),
        (partial(by_reportlab, by_word=True), "pay.pdf"),
        (partial(by_reportlab, prose=12), "pay.pdf"),
    ],
    ids=["text", "text of Windows", "fpdf", "reportlab", "word by word", "below prose"],
)
def test_a_pay_list_in_a_fixed_width_font_has_each_value_under_its_head(
    written: Callable[[str], bytes], name: str
) -> None:
    content = written(PAY)
    assert rows_of(content, name) == AS_ROWS
    text = load(content, name).pages[0].text
    assert text.rstrip().endswith("Payment is made on the 27th of each month by bank transfer.")


def test_heads_with_one_blank_between_them_and_wide_letters_have_columns() -> None:
    german = (
        "Lohnliste 03/2026\nPers.Nr. Name            Std.   Brutto     Netto\n"
        "    1001 Holm, Ada        160  3.120,00  2.204,10\n    1002 Lind, Bo         152  2.540,00  1.842,77\n"
        "    1003 Dam, Chris       160  3.870,50  2.690,00\n"
    )
    assert rows_of(german.encode("cp1252"), "a.txt")[:2] == [
        "Pers.Nr. | Name | Std. | Brutto | Netto",
        "1001 | Holm, Ada | 160 | 3.120,00 | 2.204,10",
    ]
    korean = (
        "성명      직급    기본급    수당\n김하나    과장    3,100     230\n"
        "남궁민수  대리    2,600\n이둘      사원    2,100      90\n"
    )
    assert rows_of(korean.encode("cp949"), "a.txt") == [
        "성명 | 직급 | 기본급 | 수당",
        "김하나 | 과장 | 3,100 | 230",
        "남궁민수 | 대리 | 2,600 |",
        "이둘 | 사원 | 2,100 | 90",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "Employee:   Robin Sample\nHours:      32\nStart:      2026\nOffice:     14",
        "1. Leave ............. 3\n2. Pay ............... 7\n3. Travel ............ 12\n4. Notice ............ 15",
        "def days(grade):\n    if grade  > 4:\n        return  30\n    return  25",
        "-  pay by the 27th\n-  leave of 30 days\n-  notice of 4 weeks",
        "27  30  12\n28  31  14\n29  32  15",
        "Probation lasts for six months from     Travel costs are refunded when they\n"
        "the first working day. During this     are handed in within thirty days and\n"
        "time either side may end the job of     First class rail is allowed on trips",
    ],
    ids=["form", "contents", "code", "list", "no heads", "columns of text"],
)
def test_other_text_with_blanks_stays_as_it_is(text: str) -> None:
    for content, name in [(text.encode(), "a.txt"), (by_fpdf(text), "a.pdf")]:
        assert " | " not in load(content, name).pages[0].text
