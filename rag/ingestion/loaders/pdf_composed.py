"""Compose characters which TeX draws in parts, for example an accent over a letter or a stroke through a sign.

pdfium returns each part separately, and an accent sometimes far from the letter. Characters keep their index. After
composition, a placeholder which is not written replaces the second part.
"""

from __future__ import annotations

import ctypes
import re
import unicodedata
from collections.abc import Iterator
from typing import Any

import pypdfium2.raw as pdfium

from rag.ingestion.loaders.pdf_objects import Box

#: Accents as characters, and as combining marks.
ACCENTS = {
    "´": "\u0301", "`": "\u0300", "¨": "\u0308", "ˆ": "\u0302", "˜": "\u0303", "˚": "\u030a", "¯": "\u0304",
    "˘": "\u0306", "ˇ": "\u030c", "˝": "\u030b", "˙": "\u0307", "¸": "\u0327", "˛": "\u0328",
}  # fmt: skip
BELOW = frozenset("¸˛")
STROKE = "\u0338"
DOTLESS = {"ı": "i", "ȷ": "j"}
#: Signs negated by a stroke.
DENIED = "=∈∋<>≤≥⊂⊃⊆⊇≡∼≈≃∃|∥"
ACCENT = re.compile(f"[{''.join(ACCENTS)}]")
DENIED_SIGN, STROKES = re.compile(f"[{DENIED}]"), re.compile(f"[/6{STROKE}]")
#: TeX's fonts for symbols and large signs, and their characters by number, whose names are known only to TeX.
SYMBOL_FONT = re.compile(r"(?:^|\+)(?:CMB?SY\d|LMMathSymbols\d|(?P<is_large>CMEX\d|LMMathExtension\d))")
SYMBOLS = dict(zip(
    map(chr, range(0x21, 0x7f)),
    "→↑↓↔↗↘≃⇐⇒⇑⇓⇔↖↙∝′∞∈∋△▽\u0338↦∀∃¬∅ℜℑ⊤⊥ℵABCDEFGHIJKLMNOPQRSTUVWXYZ∪∩⊎∧∨⊢⊣⌊⌋⌈⌉{}⟨⟩|∥↕⇕\\≀√⨿∇∫⊔⊓⊑⊒§†‡¶♣♢♡",
    strict=True,
))  # fmt: skip
LARGE = {"P": "∑", "X": "∑", "Q": "∏", "Y": "∏", "R": "∫", "Z": "∫", "p": "√", "q": "√", "r": "√", "s": "√"}
#: Replaces a used part; `normalise_characters` drops it.
REMOVED = "\ufeff"
#: The most characters between an accent and its letter, and the most parts on a page.
AROUND, MOST_PARTS = 300, 500
#: After this many accents without a letter, only the characters beside an accent are tried.
MOST_ALONE = 20
#: The largest gap between letters in a word, in heights.
TOUCHING = 0.2


def composed_text(text_page: Any, text: str, *, has_symbols: bool) -> str:
    """Combine accents with their letters ("e" + "´" → "é"), and strokes with their signs ("=" + "/" → "≠").

    The length of the text does not change. `has_symbols` tells whether the page uses TeX's symbol fonts.
    """
    characters = list(text)
    if has_symbols:
        _replace_symbols(text_page, characters)
        text = "".join(characters)
    alone = 0
    for index in _find_starts(ACCENT, text):
        alone += not _combine_accent(text_page, characters, index, AROUND if alone < MOST_ALONE else 2)
    if signs := {sign: _ink(text_page, sign) for sign in _find_starts(DENIED_SIGN, text)}:
        for stroke in _find_starts(STROKES, text):
            _combine_stroke(text_page, characters, stroke, signs)
    return "".join(characters)


def _find_starts(pattern: re.Pattern[str], text: str) -> Iterator[int]:
    for count, match in enumerate(pattern.finditer(text)):
        if count == MOST_PARTS:
            return
        yield match.start()


def _combine_accent(text_page: Any, characters: list[str], index: int, around: int) -> bool:
    """Combine a separately drawn accent with a letter nearby. Returns whether a letter was found."""
    accent = characters[index]
    ink = _ink(text_page, index)
    for at in _near(index, len(characters), around):
        base = DOTLESS.get(characters[at], characters[at])
        if not base.isalpha():
            continue
        combined = unicodedata.normalize("NFC", base + ACCENTS[accent])
        if len(combined) == 1 and _is_accent_of(ink, _ink(text_page, at), is_below=accent in BELOW):
            characters[at], characters[index] = combined, REMOVED
            _remove_blanks(text_page, characters, index)
            return True
    return False


def _combine_stroke(text_page: Any, characters: list[str], stroke: int, signs: dict[int, Box]) -> None:
    ink = _ink(text_page, stroke)
    for sign, box in signs.items():
        if characters[sign] in DENIED and _is_over(ink, box):
            denied = unicodedata.normalize("NFC", characters[sign] + STROKE)
            if len(denied) == 1:
                characters[stroke], characters[sign] = REMOVED, denied
                _remove_blanks(text_page, characters, stroke)
            return


def _remove_blanks(text_page: Any, characters: list[str], index: int) -> None:
    """Remove the blanks around a combined accent or stroke, if the letters on both sides touch."""
    first = last = index
    while first > 0 and characters[first - 1] in (" ", REMOVED):
        first -= 1
    while last < len(characters) - 1 and characters[last + 1] in (" ", REMOVED):
        last += 1
    if first == 0 or last == len(characters) - 1:
        return
    left, right = _ink(text_page, first - 1), _ink(text_page, last + 1)
    if -TOUCHING < (right[0] - left[2]) / max(right[3] - right[1], 1.0) < TOUCHING:
        characters[first : last + 1] = [REMOVED] * (last + 1 - first)


def _near(index: int, count: int, around: int) -> Iterator[int]:
    for distance in range(1, around):
        for at in (index + distance, index - distance):
            if 0 <= at < count:
                yield at


def _ink(text_page: Any, index: int) -> Box:
    left, right, bottom, top = (ctypes.c_double() for _ in range(4))
    pdfium.FPDFText_GetCharBox(text_page, index, left, right, bottom, top)
    return left.value, bottom.value, right.value, top.value


def _is_accent_of(accent: Box, letter: Box, *, is_below: bool) -> bool:
    middle, high = (accent[0] + accent[2]) / 2, letter[3] - letter[1]
    tolerance = 0.2 * (letter[2] - letter[0])
    if high <= 0 or not letter[0] - tolerance < middle < letter[2] + tolerance:
        return False
    gap = letter[1] - accent[3] if is_below else accent[1] - letter[3]
    return -0.5 * high < gap < 0.5 * high


def _is_over(part: Box, sign: Box) -> bool:
    return sign[0] < (part[0] + part[2]) / 2 < sign[2] and part[1] < sign[3] and sign[1] < part[3]


def _replace_symbols(text_page: Any, characters: list[str]) -> None:
    for index, character in enumerate(characters):
        if "!" <= character <= "~" and pdfium.FPDFText_HasUnicodeMapError(text_page, index) == 1:
            name, flags = ctypes.create_string_buffer(64), ctypes.c_int()
            pdfium.FPDFText_GetFontInfo(text_page, index, name, len(name), flags)
            if (font := SYMBOL_FONT.search(name.value.decode("utf-8", "replace"))) is None:
                continue
            characters[index] = LARGE.get(character, REMOVED) if font["is_large"] else SYMBOLS[character]
            following = index + 1 + (characters[index + 1 : index + 2] == [" "])
            if characters[index] == "↦" and characters[following : following + 1] == ["→"]:
                characters[index], characters[following] = REMOVED, "↦"
