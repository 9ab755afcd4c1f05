"""Write Word's equations on a line, as people type them: (a+b)/c, x^2, √(x), ∑_(k=0)^n."""

from __future__ import annotations

import re
import unicodedata
from typing import Any

from rag.ingestion.loaders.word.package import M, child, name_of

#: Mathematical letters, which Word draws for ordinary letters.
MATHEMATICAL = re.compile("[\U0001d400-\U0001d7ff]")
#: Text which needs no brackets beside an operator.
SIMPLE = re.compile(r"[\w.,%°′″]*|[([{][^()\[\]{}]*[)\]}]")
NOT_SHOWN = frozenset({"w:del", "w:moveFrom"})


def linear(equation: Any) -> str:
    """Return an equation on a line. For unknown elements, the parts are written one after the other."""
    written = "".join(_part(element) for element in equation)
    return MATHEMATICAL.sub(lambda found: unicodedata.normalize("NFKC", found[0]), written)


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
            return f"{_of(element, 'm:e')}^{_bracketed(element, 'm:sup')}"
        case "m:sSub":
            return f"{_of(element, 'm:e')}_{_bracketed(element, 'm:sub')}"
        case "m:sSubSup":
            return f"{_of(element, 'm:e')}_{_bracketed(element, 'm:sub')}^{_bracketed(element, 'm:sup')}"
        case "m:sPre":
            return f"_{_bracketed(element, 'm:sub')}^{_bracketed(element, 'm:sup')} {_of(element, 'm:e')}"
        case "m:rad":
            degree = _of(element, "m:deg")
            sign = {"": "√", "3": "∛", "4": "∜"}.get(degree, f"{_closed(degree)}√")
            return f"{sign}({_of(element, 'm:e')})"
        case "m:d":
            return _delimited(element)
        case "m:nary":
            return _operator(element)
        case "m:func":
            argument = _of(element, "m:e")
            return f"{_of(element, 'm:fName')}{argument if argument.startswith(('(', '[')) else f' {argument}'}"
        case "m:limLow":
            return f"{_of(element, 'm:e')}_{_bracketed(element, 'm:lim')}"
        case "m:limUpp":
            return f"{_of(element, 'm:e')}^{_bracketed(element, 'm:lim')}"
        case "m:m":
            rows = (", ".join(map(linear, row)) for row in element if name_of(row.tag) == "m:mr")
            return f"[{'; '.join(rows)}]"
        case "m:eqArr":
            return "; ".join(linear(row) for row in element if name_of(row.tag) == "m:e")
        case "m:acc":
            return f"{_of(element, 'm:e')}{_sign(element, 'm:accPr', 'm:chr', chr(0x302))}"
        case "m:bar":
            return f"{_of(element, 'm:e')}\u0305"
    return linear(element)


def _of(element: Any, name: str) -> str:
    found = child(element, name)
    return "" if found is None else linear(found)


def _bracketed(element: Any, name: str) -> str:
    return _closed(_of(element, name))


def _closed(text: str) -> str:
    """Put a text in brackets, if its parts would otherwise be read separately."""
    return text if SIMPLE.fullmatch(text) else f"({text})"


def _sign(element: Any, properties: str, name: str, usual: str) -> str:
    found = child(child(element, properties), name)
    return usual if found is None else found.get(M + "val", "")


def _fraction(element: Any) -> str:
    above, below = _of(element, "m:num"), _of(element, "m:den")
    if _sign(element, "m:fPr", "m:type", "bar") == "noBar":
        return f"({above}; {below})"
    return f"{_closed(above)}/{_closed(below)}"


def _delimited(element: Any) -> str:
    begin = _sign(element, "m:dPr", "m:begChr", "(")
    end = _sign(element, "m:dPr", "m:endChr", ")")
    between = _sign(element, "m:dPr", "m:sepChr", "|")
    parts = [linear(part) for part in element if name_of(part.tag) == "m:e"]
    return f"{begin}{between.join(parts)}{end}"


def _operator(element: Any) -> str:
    sign = _sign(element, "m:naryPr", "m:chr", "∫")
    below, above = _bracketed(element, "m:sub"), _bracketed(element, "m:sup")
    limits = (f"_{below}" if below else "") + (f"^{above}" if above else "")
    return f"{sign}{limits} {_of(element, 'm:e')}"
