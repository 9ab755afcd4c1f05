"""Columns whose lines are drawn across the page, in many scripts, and what looks like them."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from itertools import zip_longest

import pytest
from fpdf import FPDF
from reportlab.lib.utils import simpleSplit
from reportlab.pdfbase.cidfonts import UnicodeCIDFont
from reportlab.pdfbase.pdfmetrics import registerFont, stringWidth
from reportlab.pdfgen.canvas import Canvas

from rag.ingestion.loaders.page_text import UNSURE_ORDER
from rag.ingestion.loaders.pdf import load_pdf
from rag.types import Page
from tests.ingestion.test_pdf_direction import pdf_of

PROBATION = (
    "Probation lasts for six months from the first working day. During this time either side may end the contract with "
    "two weeks of notice. The line manager gives written feedback after three months and again before the end of the "
    "fifth month, so that both sides know where they stand in time."
)
TRAVEL = (
    "Travel costs are refunded when they are handed in within thirty days. First class rail is allowed on journeys of "
    "more than four hours. Flights need the agreement of the director. Taxi receipts are only accepted at night or "
    "with heavy luggage, and always with the reason written on them."
)
CHILDREN = (
    "Parental leave can be taken until the child is eight years old. The request is made in writing seven weeks before "
    "it begins. During the leave nobody may be dismissed, and the place of work is kept for two years after the child "
    "was born."
)
FONT, SIZE = "Helvetica", 10


def wrapped(text: str, width: float) -> list[str]:
    lines: list[str] = simpleSplit(text, FONT, SIZE, width)
    return lines


def by_reportlab(
    columns: Sequence[Sequence[str]],
    lefts: Sequence[float],
    *,
    by_word: bool = False,
    distance: float = 12,
    font: str = FONT,
    last: Callable[[Canvas], None] | None = None,
) -> bytes:
    """A page whose lines are drawn across all columns, each piece or each word by itself; `last` draws the rest."""
    buffer = io.BytesIO()
    canvas = Canvas(buffer, invariant=1)
    canvas.setFont(font, SIZE)
    for row, pieces in enumerate(zip_longest(*columns, fillvalue="")):
        for left, piece in zip(lefts, pieces, strict=True):
            x = left
            for word in piece.split() if by_word else [piece]:
                canvas.drawString(x, 730 - distance * row, word)
                x += stringWidth(f"{word} ", font, SIZE)
    if last is not None:
        last(canvas)
    canvas.save()
    return buffer.getvalue()


def by_fpdf(texts: Sequence[str], width: float, gap: float) -> bytes:
    pdf = FPDF(unit="pt")
    pdf.add_page()
    pdf.set_font("Times", size=SIZE)
    pdf.c_margin = 0
    columns: list[list[str]] = [pdf.multi_cell(width, 12, text, dry_run=True, output="LINES") for text in texts]  # type: ignore[misc]
    for row, pieces in enumerate(zip_longest(*columns, fillvalue="")):
        for place, piece in enumerate(pieces):
            pdf.set_xy(50 + place * (width + gap), 60 + 12 * row)
            pdf.cell(width, 12, str(piece))
    return bytes(pdf.output())


def page_of(content: bytes) -> Page:
    return load_pdf(content).pages[0]


def said(content: bytes) -> str:
    return " ".join(page_of(content).text.split())


@pytest.mark.parametrize("by_word", [False, True])
@pytest.mark.parametrize("gap", [4, 14])
@pytest.mark.parametrize("texts", [(PROBATION, TRAVEL), (PROBATION, TRAVEL, CHILDREN)])
def test_columns_drawn_across_are_read_one_after_the_other(texts: Sequence[str], gap: int, *, by_word: bool) -> None:
    width = 460 / len(texts)
    lefts = [60 + place * (width + gap) for place in range(len(texts))]
    page = page_of(by_reportlab([wrapped(text, width) for text in texts], lefts, by_word=by_word))
    assert " ".join(page.text.split()) == " ".join(texts)
    assert page.warnings == ()


@pytest.mark.parametrize("texts", [(PROBATION, TRAVEL), (PROBATION, TRAVEL, CHILDREN)])
def test_columns_of_another_producer_are_read_one_after_the_other(texts: Sequence[str]) -> None:
    assert said(by_fpdf(texts, 460 / len(texts), 6)) == " ".join(texts)


@pytest.mark.parametrize("how", ["kerning", "spaces"])
def test_columns_whose_lines_are_drawn_at_once_over_both_are_read_one_after_the_other(how: str) -> None:
    buffer = io.BytesIO()
    canvas = Canvas(buffer, invariant=1)
    columns = [wrapped(PROBATION, 200), wrapped(TRAVEL, 200)]
    for row, (left, right) in enumerate(zip_longest(*columns, fillvalue="")):
        drawn = canvas.beginText(60, 730 - 12 * row)
        if how == "kerning":
            drawn.setFont(FONT, SIZE)
            gap = 220 - stringWidth(left, FONT, SIZE)
            drawn._code.append(f"[({left}) {-1000 * gap / SIZE:.0f} ({right})] TJ")
        else:
            drawn.setFont("Courier", SIZE - 2)
            drawn.textOut(left.ljust(max(map(len, columns[0])) + 3) + right)
        canvas.drawText(drawn)
    canvas.save()
    page = page_of(buffer.getvalue())
    assert " ".join(page.text.split()) == f"{PROBATION} {TRAVEL}"
    assert page.warnings == ()


@pytest.mark.parametrize("by_word", [False, True])
@pytest.mark.parametrize("left", [30, 570])
def test_columns_beside_a_line_that_is_turned_are_read_one_after_the_other(left: int, *, by_word: bool) -> None:
    texts = (PROBATION, TRAVEL, CHILDREN) if by_word else (PROBATION, TRAVEL)
    lefts = [60 + 160 * place if by_word else 60 + 240 * place for place in range(len(texts))]
    columns = [wrapped(text, 145 if by_word else 225) for text in texts]

    def note(canvas: Canvas) -> None:
        canvas.translate(left, 500)
        canvas.rotate(90)
        canvas.drawString(0, 0, "Guide of 2026")

    text = said(by_reportlab(columns, lefts, by_word=by_word, last=note))
    assert text == f"{' '.join(texts)} Guide of 2026"


JAPANESE = (
    "試用期間は最初の勤務日から六か月間とする。この期間中はいずれの当事者も二週間前の予告により契約を終了することができる。"
    "直属の上司は三か月後および五か月目の終わりまでに書面で評価を伝え、双方が現状を把握できるようにする。",
    "旅費は三十日以内に提出された場合に精算する。四時間を超える移動では一等車の利用を認める。航空機の利用には取締役の承認が"
    "必要である。領収書は夜間または荷物が重い場合に限り受け付け、必ず理由を記載するものとする。",
)
KOREAN = (
    "수습 기간은 첫 근무일로부터 여섯 달로 한다. 이 기간에는 어느 쪽이든 두 주 전에 알리고 계약을 끝낼 수 있다. 직속 "
    "관리자는 세 달 뒤와 다섯째 달이 끝나기 전에 서면으로 평가를 전하여 양쪽이 현재 상황을 알 수 있게 한다.",
    "출장비는 삼십 일 이내에 제출하면 정산한다. 네 시간이 넘는 여정에서는 일등석 열차를 이용할 수 있다. 항공편은 "
    "이사의 승인이 필요하다. 택시 영수증은 밤이거나 짐이 무거운 경우에만 받으며 반드시 사유를 적어야 한다.",
)
CHINESE = (
    "试用期自首个工作日起为六个月。在此期间任何一方均可提前两周通知解除合同。直属经理应在三个月后以及第五个月结束之前提供书面"
    "反馈，以便双方及时了解各自的情况。",
    "差旅费在三十天内提交的予以报销。超过四小时的行程可乘坐一等座。乘坐飞机须经总监同意。出租车收据仅在夜间或携带重物时受理，"
    "并且必须在收据上写明事由，否则不予报销。",
)


@pytest.mark.parametrize("lefts", [(60, 266), (60, 275)])
@pytest.mark.parametrize(
    ("texts", "font"),
    [(JAPANESE, "HeiseiMin-W3"), (CHINESE, "STSong-Light"), (KOREAN, "HYSMyeongJo-Medium")],
    ids=["Japanese", "Chinese", "Korean"],
)
def test_columns_of_east_asia_are_read_one_after_the_other(
    texts: Sequence[str], font: str, lefts: Sequence[float]
) -> None:
    registerFont(UnicodeCIDFont(font))
    is_spaced = " " in texts[0]
    columns = [
        simpleSplit(text, font, SIZE, 200) if is_spaced else [text[at : at + 20] for at in range(0, len(text), 20)]
        for text in texts
    ]
    page = page_of(by_reportlab(columns, lefts, font=font))
    assert (" " if is_spaced else "").join(page.text.split()) == (" " if is_spaced else "").join(texts)
    assert page.warnings == ()


HEBREW = (
    "תקופת הניסיון נמשכת שישה חודשים מיום העבודה הראשון. בתקופה זו כל צד רשאי לסיים את החוזה בהודעה של שבועיים מראש. "
    "המנהל הישיר נותן משוב בכתב אחרי שלושה חודשים ושוב לפני סוף החודש החמישי.",
    "הוצאות נסיעה מוחזרות כאשר הן מוגשות בתוך שלושים יום. מחלקה ראשונה ברכבת מותרת בנסיעות של יותר מארבע שעות. טיסות "
    "דורשות את הסכמת המנהל. קבלות על מוניות מתקבלות רק בלילה או עם מטען כבד.",
)


@pytest.mark.parametrize("is_right_first", [False, True])
@pytest.mark.parametrize("by_letter", [False, True])
def test_columns_from_right_to_left_are_read_one_after_the_other(*, by_letter: bool, is_right_first: bool) -> None:
    # The letters of a usual font mean others. They are drawn from the left, as they look.
    hebrew = sorted(set("".join(HEBREW)) - set(" ."))
    drawn_as = {letter: chr(ord("A") + place) for place, letter in enumerate(hebrew)}
    meanings = {own: letter for letter, own in drawn_as.items()} | {" ": " ", ".": "."}
    lines: list[bytes] = []
    columns = [wrapped("".join(drawn_as.get(letter, letter) for letter in text), 225) for text in HEBREW]
    for row, pieces in enumerate(zip_longest(*columns, fillvalue="")):
        for right, piece in list(zip((530, 290), pieces, strict=True))[:: 1 if is_right_first else -1]:
            x = right - stringWidth(piece, FONT, SIZE)
            for part in piece[::-1] if by_letter else [piece[::-1]]:
                shown = part.replace("\\", r"\\").encode("latin-1")
                lines.append(b"BT /F 10 Tf 1 0 0 1 %.2f %d Tm (%s) Tj ET" % (x, 730 - 13 * row, shown))
                x += stringWidth(part, FONT, SIZE)
    page = page_of(pdf_of(b"\n".join(lines), meanings))
    assert " ".join(page.text.split()) == " ".join(HEBREW)
    assert page.warnings == ()


def test_a_word_broken_at_the_end_of_a_column_is_whole() -> None:
    columns = [wrapped(PROBATION, 200), wrapped(TRAVEL, 200)]
    at, line = next((place, line) for place, line in enumerate(columns[1]) if "journeys" in line)
    columns[1][at : at + 1] = [line[: line.index("neys")] + "-", line[line.index("neys") :]]
    assert said(by_reportlab(columns, (60, 300))) == f"{PROBATION} {TRAVEL}"


def test_a_title_and_a_last_line_over_both_columns_stay_around_them() -> None:
    columns = [wrapped(PROBATION, 220), wrapped(TRAVEL, 220)]
    longest = max(map(len, columns))
    columns = [
        ["Rules for everybody who works here, wherever that is and whatever for", *column]
        if not place
        else ["", *column]
        for place, column in enumerate(columns)
    ]
    columns[0] += [""] * (longest + 1 - len(columns[0])) + [
        "These rules are in force from the first of January on, in all offices."
    ]
    text = said(by_reportlab(columns, (60, 290)))
    assert text.startswith("Rules for everybody who works here, wherever that is and whatever for Probation lasts")
    assert text.endswith(
        "reason written on them. These rules are in force from the first of January on, in all offices."
    )


def test_prose_drawn_word_by_word_is_no_columns() -> None:
    text = " ".join([PROBATION, TRAVEL, CHILDREN] * 4)
    assert said(by_reportlab([wrapped(text, 470)], (60,), by_word=True)) == text


def test_names_beside_their_explanations_stay_with_them() -> None:
    explained = {"Probation": PROBATION, "Travel": TRAVEL, "Children": CHILDREN}
    names: list[str] = []
    lines: list[str] = []
    for name, text in explained.items():
        lines += wrapped(text, 300)
        names += [name] + [""] * (len(lines) - len(names) - 1)
    page = page_of(by_reportlab([names, lines], (60, 160)))
    assert " ".join(page.text.split()) == " ".join(f"{name} {text}" for name, text in explained.items())
    assert page.warnings == ()


def test_a_form_in_two_columns_is_read_by_its_lines() -> None:
    left = ["Name:", "Personnel number:", "Date of entry:", "Days of leave taken:", "Signature of employee:"]
    right = ["Department:", "Line manager:", "Place of work:", "Days of leave left:", "Signature of manager:"]
    page = page_of(by_reportlab([left, right], (60, 300)))
    assert [line.replace(" | ", " ") for line in page.text.split("\n")] == [
        f"{one} {other}" for one, other in zip(left, right, strict=True)
    ]
    assert page.warnings == ()


def test_a_table_of_short_cells_is_a_table() -> None:
    columns = [
        ["Kind of leave", "annual leave", "care leave", "study leave", "sick leave", "special leave"],
        [
            "Who may take it",
            "all employees",
            "parents of children",
            "trainees after a year",
            "all employees",
            "managers",
        ],
        ["Who decides", "the line manager", "the personnel office", "the head of training", "nobody", "the director"],
    ]
    lines = page_of(by_reportlab(columns, (60, 200, 340))).text.split("\n")
    assert lines == [" | ".join(row) for row in zip(*columns, strict=True)]


def test_lines_side_by_side_that_may_be_columns_are_in_doubt() -> None:
    left = ["The office opens at eight.", "Guests sign in at the desk.", "Badges are worn by everyone.",
            "Doors are locked at night.", "Alarms are tested on Mondays."]  # fmt: skip
    right = ["Lunch is served from noon on.", "Coffee is free on all floors.", "Dishes go into the machine.",
             "Fridges are emptied on Fridays.", "Fruit is delivered on Tuesday."]  # fmt: skip
    page = page_of(by_reportlab([left, right], (60, 300)))
    assert UNSURE_ORDER in page.warnings


def test_stretched_columns_drawn_one_after_the_other_are_no_table() -> None:
    clause = (
        "Clause {}: an employee who is absent for more than {} days hands in a certificate at floor {} before noon."
    )
    texts = [[clause.format(n, n + 2, n) for n in numbers] for numbers in (range(1, 7), range(7, 11))]
    rows = [("Absence", "Paper", "Deadline"), ("Illness", "Note", "day 3"), ("Accident", "Report", "day 1")]
    width = 150.0
    buffer = io.BytesIO()
    canvas = Canvas(buffer, invariant=1)
    canvas.setFont(FONT, SIZE)
    for column, paragraphs in enumerate(texts):
        left, y = 60 + column * (width + 20), 730
        for paragraph in paragraphs:
            *full, last = wrapped(paragraph, width)
            for line in full:
                words = line.split()
                space = (width - sum(stringWidth(word, FONT, SIZE) for word in words)) / (len(words) - 1)
                x = left
                for word in words:
                    canvas.drawString(x, y, word)
                    x += stringWidth(word, FONT, SIZE) + space
                y -= 12
            canvas.drawString(left, y, last)
            y -= 12
    for row in rows:
        for place, cell in enumerate(row):
            canvas.drawString(left + 55 * place, y - 6, cell)
        y -= 16
    canvas.save()
    page = page_of(buffer.getvalue())
    assert " ".join(page.text.split("Absence")[0].split()) == " ".join(clause for column in texts for clause in column)
    assert page.text.split("\n")[-3:] == [" | ".join(row) for row in rows]


def test_columns_on_a_part_of_a_page_drawn_at_once_over_both_are_read_one_after_the_other() -> None:
    width = 216
    columns = [simpleSplit(text, FONT, SIZE, width)[:5] for text in (PROBATION, TRAVEL)]
    prose: list[str] = simpleSplit(CHILDREN * 4, FONT, SIZE, 480)
    buffer = io.BytesIO()
    canvas = Canvas(buffer, invariant=1)
    canvas.setFont(FONT, SIZE)
    across = [
        left + " " * round((240 - stringWidth(left, FONT, SIZE)) / stringWidth(" ", FONT, SIZE)) + right
        for left, right in zip(*columns, strict=True)
    ]
    for place, line in enumerate([*prose, *across, *prose]):
        gap = 8 * ((place >= len(prose)) + (place >= len(prose) + len(across)))
        canvas.drawString(50, 800 - 12 * place - gap, line)
    canvas.save()
    text = page_of(buffer.getvalue()).text
    assert " ".join([*columns[0], *columns[1]]) in " ".join(text.split())
