"""What a reader of an HTML post does not see, by its own style and by the rules of the post's style sheets.

Only rules for a class or an id are read; a style sheet that hides by longer paths hides nothing here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

HIDDEN = re.compile(
    r"display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse)|mso-hide\s*:\s*all|opacity\s*:\s*0(?:\.0+)?\s*(?:;|!|$)"
    r"|font-size\s*:\s*(?:0(?:\.\d+)?|1(?:\.0)?)\s*(?:px|pt|em|%)?\s*(?:;|!|$)"
    r"|(?:left|top|text-indent|margin-left)\s*:\s*-\d{4,}(?:\.\d+)?\s*(?:px|pt|em)"
    r"|clip\s*:\s*rect\(\s*0(?:px)?[\s,]+0(?:px)?[\s,]+0(?:px)?[\s,]+0(?:px)?\s*\)|clip-path\s*:\s*inset\(\s*(?:50|100)%",
    re.IGNORECASE,
)
NO_SIZE = re.compile(r"(?<![-\w])(?:max-)?(?:height|width)\s*:\s*0(?:px|pt|em|%)?\s*(?:;|!|$)", re.IGNORECASE)
CUT_OFF = re.compile(r"overflow\s*:\s*hidden", re.IGNORECASE)
COLOUR = re.compile(r"(?<![-\w])color\s*:\s*(?P<colour>#[0-9a-f]{3,6}\b|rgba?\([^)]{0,80}\)|[a-z]+)", re.IGNORECASE)
BACKGROUND = re.compile(r"background(?:-color)?\s*:", re.IGNORECASE)
#: From the end of the rule before, so that text without braces is looked through once.
RULE = re.compile(r"(?:\A|(?<=[{}]))(?P<selectors>[^{}]++)\{(?P<style>[^{}]*+)\}")
COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)|<!--|-->", re.DOTALL)
SIMPLE = re.compile(r"(?P<tag>[a-z][a-z0-9]*)?(?P<mark>[.#])(?P<name>[\w-]+)", re.IGNORECASE)
#: A style sheet is read so far, in characters.
LOOKED_AT = 200_000
#: From here on every part of a colour is as good as white, of 255.
WHITE_PART = 245
#: Where HWP's editor for boards keeps its own form of the document, which is no text.
MACHINE_IDS = frozenset({"hwpeditorboardcontent"})


@dataclass(frozen=True)
class StyleRules:
    """Styles of the post's own style sheets: (kind of element or "", "." or "#", class or id, style)."""

    by_mark: tuple[tuple[str, str, str, str], ...] = ()

    def style_of(self, element: Any) -> str:
        """What the rules say of an element, its own style after them."""
        own = element.get("style") or ""
        if not self.by_mark:
            return own
        classes, name = (element.get("class") or "").lower().split(), (element.get("id") or "").lower()
        said = [
            style
            for tag, mark, wanted, style in self.by_mark
            if (not tag or tag == element.tag) and (wanted in classes if mark == "." else wanted == name)
        ]
        return ";".join([*said, own]) if said else own


def style_rules(tree: Any) -> StyleRules:
    """The rules of a document that could hide something."""
    sheets = COMMENT.sub("", "\n".join(sheet.text or "" for sheet in tree.iter("style")))[:LOOKED_AT]
    found = []
    for rule in RULE.finditer(sheets):
        style = rule["style"].strip()
        if not (HIDDEN.search(style) or COLOUR.search(style) or BACKGROUND.search(style) or NO_SIZE.search(style)):
            continue
        for selector in rule["selectors"].split(","):
            simple = SIMPLE.fullmatch(selector.strip())
            if simple is not None:
                found.append(((simple["tag"] or "").lower(), simple["mark"], simple["name"].lower(), style))
    return StyleRules(tuple(found))


def is_machine_data(element: Any) -> bool:
    """Whether an editor keeps something for itself here, which is neither shown nor meant to be read."""
    return (element.get("id") or "").lower() in MACHINE_IDS and element.text_content().lstrip().startswith("{")


def is_hidden(element: Any, rules: StyleRules) -> bool:
    """Whether a reader does not see an element."""
    if element.get("hidden") is not None or (element.get("aria-hidden") == "true" and element.tag != "svg"):
        return True
    style = rules.style_of(element)
    if style and (HIDDEN.search(style) or (NO_SIZE.search(style) and CUT_OFF.search(style))):
        return True
    colours = COLOUR.findall(style)
    named = colours[-1] if colours else (element.get("color") or "")
    return bool(named) and is_white(named) and not _has_background(element, rules)


def is_white(colour: str) -> bool:
    """Whether letters of this colour cannot be told from white paper."""
    colour = colour.strip().lower()
    if colour in ("white", "transparent", "snow", "ghostwhite"):
        return True
    if colour.startswith("rgb"):
        parts = [part for part in re.split(r"[\s,/()]+", colour.partition("(")[2]) if part]
        try:
            values = [float(part.rstrip("%")) * (2.55 if part.endswith("%") else 1) for part in parts[:3]]
            alpha = float(parts[3].rstrip("%")) if len(parts) > 3 else 1.0
        except ValueError:
            return False
        return alpha == 0 or (len(values) == 3 and min(values) >= WHITE_PART)
    digits = colour.removeprefix("#")
    if not re.fullmatch(r"[0-9a-f]{3}|[0-9a-f]{6}", digits):
        return False
    whole = digits if len(digits) == 6 else "".join(digit * 2 for digit in digits)
    return min(int(whole[place : place + 2], 16) for place in (0, 2, 4)) >= WHITE_PART


def _has_background(element: Any, rules: StyleRules) -> bool:
    """White letters can be read where something dark is behind them: a header row of a table mostly."""
    while element is not None:
        if element.get("bgcolor") or element.get("background") or BACKGROUND.search(rules.style_of(element)):
            return True
        element = element.getparent()
    return False
