"""PDFs which embed no font for Korean, Chinese or Japanese, on a machine that has none either."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import pytest
from reportlab.pdfbase.cidfonts import UnicodeCIDFont
from reportlab.pdfbase.pdfmetrics import registerFont
from reportlab.pdfgen.canvas import Canvas

from rag.ingestion.loaders.pdf_fonts import BOX_FONT
from tests.standins.box_font import made

#: Reads the PDF on stdin, with no font on the machine.
READ = """
import sys
import pypdfium2
from rag.ingestion.loaders import load
from rag.ingestion.loaders.pdf_fonts import FontsWithBoxes

class Machine(pypdfium2.PdfSysfontBase):
    def EnumFonts(self, *_):
        return None

    def MapFont(self, *_):
        return None

(FontsWithBoxes(Machine()) if sys.argv[1] == "with" else Machine()).setup()
content = sys.stdin.buffer.read()
picture = pypdfium2.PdfDocument(content)[0].render().to_numpy()
print((picture < 250).any(axis=(0, 2)).sum())
print(load(content, "a.pdf").pages[0].text)
"""
WORDS = {
    "HYSMyeongJo-Medium": "제 3 조 A 및 일 년이 수 있다 ① 가",
    "HeiseiMin-W3": "日 本 語 の 3 文 書 です A",
    "STSong-Light": "中 文 的 3 员工 手册 A",
    "MSung-Light": "員 工 手 冊 3 的 A",
}


def pdf_of(font: str) -> bytes:
    """Return a page which draws each word on its own."""
    registerFont(UnicodeCIDFont(font))
    buffer = io.BytesIO()
    canvas = Canvas(buffer, invariant=1)
    canvas.setFont(font, 10)
    for place, word in enumerate(WORDS[font].split()):
        canvas.drawString(60 + 40 * place, 700, word)
    canvas.save()
    return buffer.getvalue()


def text_read(font: str, boxes: str) -> tuple[int, str]:
    """Return how many columns of pixels are dark, and the text."""
    order = [sys.executable, "-c", READ, boxes]
    output = subprocess.run(order, input=pdf_of(font), capture_output=True, check=True, cwd=Path.cwd()).stdout.decode()
    dark, _, text = output.partition("\n")
    return int(dark), text.strip()


@pytest.mark.parametrize("font", WORDS)
def test_words_of_one_letter_are_read_and_drawn_without_a_font(font: str) -> None:
    dark, text = text_read(font, "with")
    assert text.split() == WORDS[font].split()
    assert dark > 5 * len(text.split())


def test_without_the_boxes_such_words_are_lost() -> None:
    assert "제" not in text_read("HYSMyeongJo-Medium", "without")[1]


def test_the_font_in_the_repository_is_the_one_that_its_recipe_makes() -> None:
    assert made() == BOX_FONT
