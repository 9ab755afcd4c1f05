"""Put letters and words in right-to-left lines into reading order. Runs in the sandbox.

pdfium only orders words which are drawn in a single piece. Chromium draws each letter separately, and WeasyPrint draws
lam and alef together.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterable, Sequence
from typing import Any
from unicodedata import bidirectional

import pypdfium2.raw as pdfium

#: Hebrew and Arabic letters with their marks, without figures.
FROM_RIGHT = "\u0590-\u05ff\u0610-\u065f\u066e-\u06d5\u06e5-\u06ef\u06fa-\u06ff\u0750-\u077f\u08a0-\u08ff"
WORD = re.compile(f"[{FROM_RIGHT}]{{2,}}")
#: A Latin word, several Latin words with their surroundings in a right-to-left line, and a number after a hyphen.
LATIN = re.compile(r"[A-Za-z\u00c0-\u024f][\w&'’.@-]*")
PHRASE = re.compile(
    r"(?P<before>[()\[\]]? ?)(?P<core>[A-Za-z\u00c0-\u024f][\w&'’.@-]*(?: {1,3}[A-Za-z\u00c0-\u024f][\w&'’.@-]*){0,20})"
    r"(?P<after> ?[()\[\]]?)"
)
HYPHENED = re.compile("(?<=[\u0590-\u05ff]) ?(?P<number>\\d[\\d.,]{0,20})(?P<hyphen>[-–־])(?=\\s|$)")
#: Brackets turned away from their content, and a number at a line's end after the stop which belongs behind it.
TURNED_BRACKETS = re.compile(r"(?P<before> ?)\)(?P<inner>[^()A-Za-z]{1,80})\((?P<after> ?)")
STOPPED = re.compile(r"(?<=\s)(?P<stop>[.,:;])(?P<number>\d[\d.,/]{0,20})(?=\s*\Z)")
LATIN_LETTER, CLOSERS = re.compile(r"[A-Za-z\u00c0-\u024f]"), ")]"
OPENING, CLOSING = {")": "(", "]": "["}, {"(": ")", "[": "]"}
#: A right-to-left word, or everything between two such words.
PIECE = re.compile(f"[{FROM_RIGHT}]+|[^{FROM_RIGHT}]+")
RUN_WITH_LINE = " \u00a0.,:;!?،؛؟-–"
LAM, ALEFS = "\u0644", frozenset("\u0622\u0623\u0625\u0627\u0671")
#: Places closer than this are equal, in points.
SAME_PLACE = 0.05


def is_from_the_right(letter: str) -> bool:
    """Whether a letter's script runs from right to left. Digits belong to no script."""
    return letter != "" and bidirectional(letter) in ("R", "AL")


def has_words_from_the_right(text: str) -> bool:
    """Whether a text has words written from right to left."""
    return WORD.search(text) is not None


def ordered_words(text_page: Any, text: str) -> str:
    """Put the letters in right-to-left words into reading order. The word order does not change."""
    pieces: list[str] = []
    end = 0
    for word in WORD.finditer(text):
        places = [_place(text_page, index) for index in range(*word.span())]
        characters = list(word[0])
        if places[0] + SAME_PLACE < places[-1]:
            characters.reverse()
            places.reverse()
        for left in range(len(characters) - 1):
            is_one = abs(places[left] - places[left + 1]) < SAME_PLACE
            if is_one and characters[left] in ALEFS and characters[left + 1] == LAM:
                characters[left : left + 2] = characters[left + 1], characters[left]
        pieces += [text[end : word.start()], "".join(characters)]
        end = word.end()
    return "".join([*pieces, text[end:]])


def is_page_from_the_right(lines: Iterable[str]) -> bool:
    """Whether most lines on a page start on the right, even if most of their letters are Latin."""
    count = 0
    for line in lines:
        strong = [letter for letter in line if letter.isalpha()]
        if strong:
            count += 1 if is_from_the_right(strong[0]) or is_from_the_right(strong[-1]) else -1
    return count > 0


def put_line(text_page: Any, characters: list[str], start: int, end: int) -> None:
    """Reverse the words in a right-to-left line which pdfium returned from left to right.

    pdfium does this if most letters in the line are Latin.
    """
    line, indexes = _line_of(characters, start, end)
    strong = [letter for letter in line if letter.isalpha()]
    if "\n" in line or not strong or not is_from_the_right(strong[-1]):
        return
    pieces = list(PIECE.finditer(line))
    places = [
        min(_place(text_page, indexes[piece.start()]), _place(text_page, indexes[piece.end() - 1]))
        for piece in pieces
        if not piece[0].isspace()
    ]
    if len(places) < 2 or places != sorted(places):
        return
    reordered: list[str] = []
    for piece in reversed(pieces):
        if is_from_the_right(piece[0][0]):
            reordered.append(piece[0])
            continue
        # Signs at the ends of Latin words and figures run with the line.
        inner = piece[0].strip(RUN_WITH_LINE)
        before, _, after = piece[0].partition(inner) if inner else (piece[0], "", "")
        reordered += [after[::-1], inner, before[::-1]]
    for index in range(start, end):
        characters[index] = ""
    characters[indexes[0]] = "".join(reordered)


def put_phrases(text_page: Any, characters: list[str], start: int, end: int) -> None:
    """Correct Latin phrases inside a right-to-left line: the word order, and the brackets and hyphens around them.

    pdfium reverses the words, and puts brackets and hyphens on the wrong side.
    """
    line, indexes = _line_of(characters, start, end)
    if "\n" in line or 3 * sum(map(is_from_the_right, line)) <= len(LATIN_LETTER.findall(line)):
        return
    for match in PHRASE.finditer(line):
        before, after = match.group("before", "after")
        words = list(LATIN.finditer(line, *match.span("core")))
        places = [_place(text_page, indexes[word.start()]) for word in words]
        ordered = [word for _, word in sorted(zip(places, (word[0] for word in words), strict=True))]
        if places == sorted(places) and len(words) > 1:
            continue
        opening, closing = before.strip(), after.strip()
        if len(opening) == len(closing) == 1 and (opening in CLOSERS or closing not in CLOSERS):
            before = f"{' ' * line[match.start() - 1].isalnum()}{OPENING.get(opening, opening)}"
            after = f"{CLOSING.get(closing, closing)}{' ' * line[match.end() : match.end() + 1].isalnum()}"
        elif len(words) == 1 or opening or closing:
            continue
        _put(characters, indexes, match, f"{before}{' '.join(ordered)}{after}")
    line, indexes = _line_of(characters, start, end)
    for match in TURNED_BRACKETS.finditer(line):
        before, inner, after = match.group("before", "inner", "after")
        if line.count("(", 0, match.start()) == line.count(")", 0, match.start()):
            is_joined = [line[place : place + 1].isalnum() for place in (match.start() - 1, match.end())]
            opened, closed = f"{' ' * (is_joined[0] or bool(before))}(", f"){' ' * (is_joined[1] or bool(after))}"
            _put(characters, indexes, match, opened + inner.strip() + closed)
    for match in STOPPED.finditer(line):
        if _place(text_page, indexes[match.start("stop")]) < _place(text_page, indexes[match.start("number")]):
            _put(characters, indexes, match, match["number"] + match["stop"])
    for match in HYPHENED.finditer(line):
        hyphen = _place(text_page, indexes[match.start("hyphen")])
        if hyphen > _place(text_page, indexes[match.start("number")]):
            _put(characters, indexes, match, match["hyphen"] + match["number"])


def _line_of(characters: Sequence[str], start: int, end: int) -> tuple[str, list[int]]:
    return "".join(characters[start:end]), [index for index in range(start, end) for _ in characters[index]]


def _put(characters: list[str], indexes: list[int], match: re.Match[str], text: str) -> None:
    first, last = match.start(), match.end() - 1
    is_cut = (first > 0 and indexes[first - 1] == indexes[first]) or indexes[last + 1 : last + 2] == [indexes[last]]
    if is_cut:
        return
    for place in range(*match.span()):
        characters[indexes[place]] = ""
    characters[indexes[first]] = text


def _place(text_page: Any, index: int) -> float:
    x, y = ctypes.c_double(), ctypes.c_double()
    pdfium.FPDFText_GetCharOrigin(text_page, index, x, y)
    return x.value
