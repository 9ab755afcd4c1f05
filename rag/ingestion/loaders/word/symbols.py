"""Write Word's symbols and equations as text.

Symbol fonts draw letters as signs. Equations are written on one line, like people type them: (a+b)/c, x^2, √(x),
∑_(k=0)^n.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Any

from rag.ingestion.loaders.word.package import M, child, name_of

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
    """Return the sign which a symbol font draws for a character code; "" if unknown."""
    low_code = code & 0xFF if 0xF000 <= code <= 0xF0FF else code
    signs = FONTS.get(font.lower())
    if signs is not None:
        return signs.get(low_code, "")
    if 0xF000 <= code <= 0xF0FF:
        return SYMBOL.get(low_code, "") if low_code == 0xB7 else WINGDINGS.get(low_code, "")
    return chr(code) if 0x20 <= code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF else ""


def with_symbols(text: str, font: str) -> str:
    """Replace letters by the signs which a symbol font draws for them."""
    if font in FONTS:
        return "".join(symbol(ord(character), font) for character in text)
    return PRIVATE.sub(lambda match: symbol(ord(match[0]), font) or match[0], text)


#: Mathematical letters, which Word draws for ordinary letters.
MATHEMATICAL = re.compile("[\U0001d400-\U0001d7ff]")
#: Text which needs no brackets beside an operator.
SIMPLE = re.compile(r"[\w.,%°′″]*|[([{][^()\[\]{}]*[)\]}]")
NOT_SHOWN = frozenset({"w:del", "w:moveFrom"})


def linear(equation: Any) -> str:
    """Write an equation on a single line. An unknown element's parts are joined in order."""
    joined = "".join(_part(element) for element in equation)
    return MATHEMATICAL.sub(lambda match: unicodedata.normalize("NFKC", match[0]), joined)


def _part(element: Any) -> str:
    name = name_of(element.tag)
    if name in ("m:t", "w:t"):
        return element.text or ""
    if name in NOT_SHOWN or name[-2:] == "Pr" or name == "":
        return ""
    match name:
        case "m:f":
            return _fraction(element)
        case "m:sSup":
            return f"{_child_text(element, 'm:e')}^{_bracket_child(element, 'm:sup')}"
        case "m:sSub":
            return f"{_child_text(element, 'm:e')}_{_bracket_child(element, 'm:sub')}"
        case "m:sSubSup":
            return (
                f"{_child_text(element, 'm:e')}_{_bracket_child(element, 'm:sub')}^{_bracket_child(element, 'm:sup')}"
            )
        case "m:sPre":
            return (
                f"_{_bracket_child(element, 'm:sub')}^{_bracket_child(element, 'm:sup')} {_child_text(element, 'm:e')}"
            )
        case "m:rad":
            degree = _child_text(element, "m:deg")
            sign = {"": "√", "3": "∛", "4": "∜"}.get(degree, f"{_bracket(degree)}√")
            return f"{sign}({_child_text(element, 'm:e')})"
        case "m:d":
            return _delimiters(element)
        case "m:nary":
            return _operator(element)
        case "m:func":
            argument = _child_text(element, "m:e")
            return f"{_child_text(element, 'm:fName')}{argument if argument.startswith(('(', '[')) else f' {argument}'}"
        case "m:limLow":
            return f"{_child_text(element, 'm:e')}_{_bracket_child(element, 'm:lim')}"
        case "m:limUpp":
            return f"{_child_text(element, 'm:e')}^{_bracket_child(element, 'm:lim')}"
        case "m:m":
            rows = (", ".join(map(linear, row)) for row in element if name_of(row.tag) == "m:mr")
            return f"[{'; '.join(rows)}]"
        case "m:eqArr":
            return "; ".join(linear(row) for row in element if name_of(row.tag) == "m:e")
        case "m:acc":
            return f"{_child_text(element, 'm:e')}{_sign(element, 'm:accPr', 'm:chr', chr(0x302))}"
        case "m:bar":
            return f"{_child_text(element, 'm:e')}\u0305"
    return linear(element)


def _child_text(element: Any, name: str) -> str:
    element_child = child(element, name)
    return "" if element_child is None else linear(element_child)


def _bracket_child(element: Any, name: str) -> str:
    return _bracket(_child_text(element, name))


def _bracket(text: str) -> str:
    """Put a text in brackets, unless the text is a single word or number, or has brackets already."""
    return text if SIMPLE.fullmatch(text) else f"({text})"


def _sign(element: Any, properties: str, name: str, usual: str) -> str:
    property_element = child(child(element, properties), name)
    return usual if property_element is None else property_element.get(M + "val", "")


def _fraction(element: Any) -> str:
    above, below = _child_text(element, "m:num"), _child_text(element, "m:den")
    if _sign(element, "m:fPr", "m:type", "bar") == "noBar":
        return f"({above}; {below})"
    return f"{_bracket(above)}/{_bracket(below)}"


def _delimiters(element: Any) -> str:
    begin = _sign(element, "m:dPr", "m:begChr", "(")
    end = _sign(element, "m:dPr", "m:endChr", ")")
    between = _sign(element, "m:dPr", "m:sepChr", "|")
    parts = [linear(part) for part in element if name_of(part.tag) == "m:e"]
    return f"{begin}{between.join(parts)}{end}"


def _operator(element: Any) -> str:
    sign = _sign(element, "m:naryPr", "m:chr", "∫")
    below, above = _bracket_child(element, "m:sub"), _bracket_child(element, "m:sup")
    limits = (f"_{below}" if below else "") + (f"^{above}" if above else "")
    return f"{sign}{limits} {_child_text(element, 'm:e')}"
