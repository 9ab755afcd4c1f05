"""Replace the characters in Word's symbol fonts, which draw a sign in place of each letter."""

from __future__ import annotations

import re

_GREEK = "ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖ"
_SMALL_GREEK = "αβχδεφγηιϕκλμνοπθρστυϖωξψζ"
SYMBOL = {
    **{0x41 + place: letter for place, letter in enumerate(_GREEK)},
    **{0x61 + place: letter for place, letter in enumerate(_SMALL_GREEK)},
    **{code: chr(code) for code in range(0x20, 0x40)},
    0x22: "∀", 0x24: "∃", 0x2D: "−", 0x5B: "[", 0x5D: "]", 0x5E: "⊥", 0x5F: "_", 0x7B: "{", 0x7C: "|", 0x7D: "}",
    0x7E: "∼", 0xA0: "€", 0xA2: "′", 0xA3: "≤", 0xA4: "⁄", 0xA5: "∞", 0xA8: "♦", 0xAB: "↔", 0xAC: "←", 0xAD: "↑",
    0xAE: "→", 0xAF: "↓", 0xB0: "°", 0xB1: "±", 0xB2: "″", 0xB3: "≥", 0xB4: "×", 0xB5: "∝", 0xB6: "∂", 0xB7: "•",
    0xB8: "÷", 0xB9: "≠", 0xBA: "≡", 0xBB: "≈", 0xBC: "…", 0xC4: "⊗", 0xC5: "⊕", 0xC6: "∅", 0xC7: "∩", 0xC8: "∪",
    0xCC: "⊂", 0xCD: "⊆", 0xCE: "∈", 0xCF: "∉", 0xD0: "∠", 0xD1: "∇", 0xD2: "®", 0xD3: "©", 0xD4: "™", 0xD5: "∏",
    0xD6: "√", 0xD7: "⋅", 0xD8: "¬", 0xD9: "∧", 0xDA: "∨", 0xDB: "⇔", 0xDC: "⇐", 0xDE: "⇒", 0xE2: "®", 0xE3: "©",
    0xE4: "™", 0xE5: "∑", 0xF2: "∫",
}  # fmt: skip
WINGDINGS = {
    0x20: " ", 0x22: "✂", 0x28: "☎", 0x2A: "✉", 0x3F: "✍", 0x46: "☞", 0x4A: "☺", 0x4C: "☹", 0x6C: "●", 0x6D: "○",
    0x6E: "■", 0x6F: "☐", 0x70: "☐", 0x71: "❑", 0x72: "❒", 0x73: "⬧", 0x74: "⧫", 0x75: "◆", 0x76: "❖", 0x77: "⬥",
    0x78: "☒", 0x9E: "·", 0x9F: "•", 0xA1: "○", 0xA4: "◉", 0xA7: "▪", 0xA8: "☐", 0xAB: "★", 0xD8: "➢", 0xDF: "←",
    0xE0: "→", 0xE1: "↑", 0xE2: "↓", 0xE8: "➔", 0xEF: "⇦", 0xF0: "⇨", 0xF1: "⇧", 0xF2: "⇩", 0xF3: "⬄", 0xFB: "✗",
    0xFC: "✓", 0xFD: "☒", 0xFE: "☑",
    **{0x80 + place: sign for place, sign in enumerate("⓪①②③④⑤⑥⑦⑧⑨⑩⓿❶❷❸❹❺❻❼❽❾❿")},
}  # fmt: skip
WINGDINGS_2 = {
    0x20: " ", 0x4F: "✗", 0x50: "✓", 0x51: "☒", 0x52: "☑", 0x53: "☒", 0x54: "☒", 0x96: "•", 0x97: "●", 0xA3: "☐",
}  # fmt: skip
FONTS = {"symbol": SYMBOL, "wingdings": WINGDINGS, "wingdings 2": WINGDINGS_2}
#: The Unicode range in which Word stores letters from symbol fonts.
PRIVATE = re.compile("[\uf000-\uf0ff]")


def symbol(code: int, font: str) -> str:
    """Return the sign for a character code in a symbol font; "" if unknown."""
    own = code & 0xFF if 0xF000 <= code <= 0xF0FF else code
    signs = FONTS.get(font.lower())
    if signs is not None:
        return signs.get(own, "")
    if 0xF000 <= code <= 0xF0FF:
        return SYMBOL.get(own, "") if own == 0xB7 else WINGDINGS.get(own, "")
    return chr(code) if 0x20 <= code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF else ""


def shown(text: str, font: str) -> str:
    """Return a text with the signs which a font draws."""
    if font in FONTS:
        return "".join(symbol(ord(letter), font) for letter in text)
    return PRIVATE.sub(lambda found: symbol(ord(found[0]), font) or found[0], text)
