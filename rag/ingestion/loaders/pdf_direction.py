"""Put the letters of words that are written from right to left in their order. Runs in the sandbox.

pdfium orders them where a word is drawn at once. Chromium draws letter by letter, WeasyPrint draws lam and alef as one.
"""

from __future__ import annotations

import ctypes
import re
from typing import Any
from unicodedata import bidirectional

import pypdfium2.raw as pdfium

#: Hebrew and Arabic letters with their marks, without figures.
WORD = re.compile("[\u0590-\u05ff\u0610-\u065f\u066e-\u06d5\u06e5-\u06ef\u06fa-\u06ff\u0750-\u077f\u08a0-\u08ff]{2,}")
LAM, ALEFS = "\u0644", frozenset("\u0622\u0623\u0625\u0627\u0671")
#: Places nearer than this are one, in points.
SAME_PLACE = 0.05


def is_from_the_right(letter: str) -> bool:
    """Tell whether a letter is of a script that is written from right to left. Figures are of none."""
    return letter != "" and bidirectional(letter) in ("R", "AL")


def ordered_words(text_page: Any, text: str) -> str:
    """Return the text of a page with such words as they are read; each letter stays within the place of its word."""
    if (first := WORD.search(text)) is None:
        return text
    pieces = [text[: first.start()]]
    end = first.start()
    for word in WORD.finditer(text, first.start()):
        places = [_place(text_page, index) for index in range(*word.span())]
        letters = list(word[0])
        if places[0] + SAME_PLACE < places[-1]:
            letters.reverse()
            places.reverse()
        for left in range(len(letters) - 1):
            is_one = abs(places[left] - places[left + 1]) < SAME_PLACE
            if is_one and letters[left] in ALEFS and letters[left + 1] == LAM:
                letters[left : left + 2] = letters[left + 1], letters[left]
        pieces += [text[end : word.start()], "".join(letters)]
        end = word.end()
    return "".join([*pieces, text[end:]])


def _place(text_page: Any, index: int) -> float:
    x, y = ctypes.c_double(), ctypes.c_double()
    pdfium.FPDFText_GetCharOrigin(text_page, index, x, y)
    return x.value
