"""Detect a text's East Asian encoding by its letters.

Most bytes are readable in several encodings. Only the right encoding gives common letters of one language: kana, common
Han characters, common syllables. Windows' larger sets are tried after the standards they extend.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from dataclasses import dataclass


@dataclass(frozen=True)
class Family:
    """A language's encodings, standards first, and the range for the first byte in common letters."""

    standard: str
    common: tuple[int, int]
    encodings: tuple[str, ...]


FAMILIES = {
    "ja": Family("euc_jp", (0xB0, 0xCF), ("shift_jis", "cp932", "euc_jp", "euc_jis_2004")),
    "ko": Family("euc_kr", (0xB0, 0xC8), ("cp949",)),
    "zh": Family("gb2312", (0xB0, 0xD7), ("gb18030",)),
    "zh-Hant": Family("big5", (0xA4, 0xC6), ("big5", "big5hkscs", "cp950")),
}
#: Points for letters: common, in the language's script, punctuation, rare or impossible.
COMMON, OWN_SCRIPT, PUNCTUATION, HALF_WIDTH, RARE, IMPOSSIBLE = 1.0, 1.2, 0.5, 0.4, -0.5, -3.0
#: Japanese text with more letters than this contains kana.
FEW_LETTERS = 8
KANA = ("\u3041", "\u30ff")
HIGH = re.compile(rb"[\x80-\xff]")
BESIDE = re.compile(rb"(?<=[\x80-\xff])[\x80-\xff]|[\x80-\xff](?=[\x80-\xff])")
#: European letters beyond ASCII stand alone; at least this share of East Asian bytes has a neighbour.
BESIDE_EACH_OTHER = 0.5
#: Lowest average value per letter for accepting an encoding.
BELIEVED = 0.55
PUNCTUATION_MARKS = frozenset("。、・「」『』（）：；！？，．〜～…“”‘’《》【】ー　①②③④⑤⑥⑦⑧⑨⑩㈱€")


def east_asian_encoding(content: bytes) -> str | None:
    """Return the encoding, or `None` if the bytes look like other languages."""
    high = len(HIGH.findall(content))
    if not high or len(BESIDE.findall(content)) < BESIDE_EACH_OTHER * high:
        return None
    best: tuple[float, str] | None = None
    for language, family in FAMILIES.items():
        for encoding in family.encodings:
            try:
                text = content.decode(encoding)
            except UnicodeDecodeError:
                continue
            score = _score(text, language, family)
            if score >= BELIEVED and (best is None or score > best[0] + 1e-9):
                best = score, encoding
    return best[1] if best else None


def _score(text: str, language: str, family: Family) -> float:
    """Return how common the letters beyond ASCII are in the language, on average."""
    letters = Counter(letter for letter in text if letter > "\x7f")
    total = sum(letters.values())
    if language == "ja" and total > FEW_LETTERS and not any(KANA[0] <= letter <= KANA[1] for letter in letters):
        return IMPOSSIBLE
    return sum(_worth(letter, language, family) * count for letter, count in letters.items()) / max(total, 1)


def _worth(letter: str, language: str, family: Family) -> float:
    if letter in PUNCTUATION_MARKS:
        return PUNCTUATION
    if KANA[0] <= letter <= KANA[1]:
        return OWN_SCRIPT if language == "ja" else RARE
    if "\uff61" <= letter <= "\uff9f":
        return HALF_WIDTH
    if unicodedata.category(letter) in ("Co", "Cn", "Cc"):
        return IMPOSSIBLE
    if "\uac00" <= letter <= "\ud7a3" or "\u4e00" <= letter <= "\u9fff":
        try:
            lead = letter.encode(family.standard)[0]
        except UnicodeEncodeError:
            return RARE
        is_common = family.common[0] <= lead <= family.common[1]
        if language == "ko":
            return OWN_SCRIPT if is_common and letter >= "\uac00" else RARE
        return COMMON if is_common else RARE
    return 0.0 if unicodedata.east_asian_width(letter) in "FWA" else RARE
