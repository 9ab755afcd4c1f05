"""Korean words that a PDF breaks at the ends of its lines."""

from __future__ import annotations

import io

from reportlab.pdfbase.cidfonts import UnicodeCIDFont
from reportlab.pdfbase.pdfmetrics import registerFont, stringWidth
from reportlab.pdfgen.canvas import Canvas

from rag.ingestion.loaders import load

FONT, SIZE, WIDTH = "HYSMyeongJo-Medium", 10, 200.0
RULES = (
    "모든 직원은 입사일로부터 일 년이 지나면 연차휴가를 사용할 수 있으며, 신청은 최소한 삼일 전까지 부서장에게 "
    "서면으로 하여야 한다. 사용하지 않은 연차휴가는 다음 해로 이월되지 않으며 회사는 연차휴가수당을 지급한다. "
    "출산휴가는 구십일이며 배우자출산휴가는 이십일이다. 가족돌봄휴가는 연간 최장 열흘로 하며 무급을 원칙으로 한다."
)


def broken_anywhere(text: str) -> list[str]:
    lines = [""]
    for letter in text:
        if stringWidth(lines[-1] + letter, FONT, SIZE) > WIDTH and letter not in ".,":
            lines.append("")
        lines[-1] += letter if lines[-1] or letter != " " else ""
    return lines


def broken_between_words(text: str, width: float) -> list[str]:
    lines = [""]
    for word in text.split():
        if stringWidth(f"{lines[-1]} {word}", FONT, SIZE) > width:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return lines


def text_of(lines: list[str], *, stretched_to: float = 0.0) -> str:
    buffer = io.BytesIO()
    canvas = Canvas(buffer, invariant=1)
    canvas.setFont(FONT, SIZE)
    for place, line in enumerate(lines):
        words, x = line.split(), 60.0
        room = stretched_to - sum(stringWidth(word, FONT, SIZE) for word in words)
        is_wide = stretched_to > 0 and place < len(lines) - 1 and len(words) > 1
        space = room / (len(words) - 1) if is_wide else stringWidth(" ", FONT, SIZE)
        for word in words:
            canvas.drawString(x, 760 - 14 * place, word)
            x += stringWidth(word, FONT, SIZE) + space
    canvas.save()
    return load(buffer.getvalue(), "a.pdf").pages[0].text


def test_words_broken_at_the_ends_of_full_lines_are_whole() -> None:
    registerFont(UnicodeCIDFont(FONT))
    text = text_of(broken_anywhere(RULES))
    assert {"연차휴가를", "한다.", "지급한다."} <= set(text.split())
    assert "연\n" not in text
    # No particle and no other word tells that this one goes on.
    assert "이\n월되지" in text


def test_lines_that_end_with_whole_words_stay_as_they_are() -> None:
    registerFont(UnicodeCIDFont(FONT))
    lines = broken_between_words(RULES, 360)
    for width in (0, 360):
        assert text_of(lines, stretched_to=width).split("\n") == lines
