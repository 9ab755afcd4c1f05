"""Find the elements which an HTML page's styles hide, strike through, raise or lower."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

#: Runs of spaces are matched without backtracking: two adjacent runs would try every split.
HIDDEN = re.compile(
    r"display\s*+:\s*+none|visibility\s*+:\s*+(?:hidden|collapse)|mso-hide\s*+:\s*+all|opacity\s*+:\s*+0(?:\.0+)?\s*+(?:;|!|$)"
    r"|font-size\s*+:\s*+(?:0(?:\.\d+)?|1(?:\.0)?)\s*+(?:px|pt|em|%)?\s*+(?:;|!|$)"
    r"|(?:left|top|text-indent|margin-left)\s*+:\s*+-\d{4,}(?:\.\d+)?\s*+(?:px|pt|em)"
    r"|clip\s*+:\s*+rect\(\s*+0(?:px)?[\s,]+0(?:px)?[\s,]+0(?:px)?[\s,]+0(?:px)?\s*+\)|clip-path\s*+:\s*+inset\(\s*+(?:50|100)%",
    re.IGNORECASE,
)
NO_SIZE = re.compile(r"(?<![-\w])(?:max-)?(?:height|width)\s*+:\s*+0(?:px|pt|em|%)?\s*+(?:;|!|$)", re.IGNORECASE)
STRUCK = re.compile(r"text-decoration(?:-line)?\s*+:[^;]{0,60}line-through", re.IGNORECASE)
#: Raised or lowered by name, or by a length in a style with a font size.
SHIFT_NAMED = re.compile(r"vertical-align\s*+:\s*+(super|sub)\b", re.IGNORECASE)
SHIFTED = re.compile(
    r"(?:(?P<aligned>vertical-align)|(?<![-\w])top)\s*+:\s*+(?P<sign>[-+]?)(?=[\d.]{0,9}[1-9])[\d.]{1,9}(?:em|ex|pt|px|%)",
    re.IGNORECASE,
)
RELATIVE = re.compile(r"position\s*+:\s*+relative", re.IGNORECASE)
SIZED = re.compile(r"font-size\s*+:", re.IGNORECASE)
CLIPPED = re.compile(r"overflow\s*+:\s*+hidden", re.IGNORECASE)
COLOUR = re.compile(r"(?<![-\w])color\s*+:\s*+(?P<colour>#[0-9a-f]{3,6}\b|rgba?\([^)]{0,80}\)|[a-z]+)", re.IGNORECASE)
BACKGROUND = re.compile(r"background(?:-color)?\s*+:", re.IGNORECASE)
#: Matches only from the end of the previous rule, so text without braces is scanned only once.
RULE = re.compile(r"(?:\A|(?<=[{}]))(?P<selectors>[^{}]++)\{(?P<style>[^{}]*+)\}")
COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)|<!--|-->", re.DOTALL)
SIMPLE = re.compile(r"(?P<tag>[a-z][a-z0-9]*)?(?P<mark>[.#])(?P<name>[\w-]+)", re.IGNORECASE)
#: Characters read from a style sheet.
STYLES_LOOKED_AT = 200_000
#: Characters read from an element's classes.
LONGEST_CLASSES = 4_000
#: The position of an element's style attribute, after every rule in a style sheet.
OWN_STYLE = 1_000_000_000
#: Colours count as white from this value on, of 255.
WHITE_PART = 245
#: Elements where HWP's board editor stores its internal form of the document.
MACHINE_IDS = frozenset({"hwpeditorboardcontent"})


@dataclass(frozen=True)
class Look:
    """The CSS properties which matter for reading an element: hidden, struck through, superscript or subscript,
    colours.
    """

    is_hidden: bool = False
    has_no_size: bool = False
    is_cut_off: bool = False
    has_background: bool = False
    is_struck: bool = False
    #: "sup" or "sub" if the style raises or lowers the letters.
    shift: str = ""
    #: The last colour set, and its position in the document.
    colour: tuple[int, str] = (-1, "")

    def __or__(self, other: Look) -> Look:
        return Look(
            self.is_hidden or other.is_hidden,
            self.has_no_size or other.has_no_size,
            self.is_cut_off or other.is_cut_off,
            self.has_background or other.has_background,
            self.is_struck or other.is_struck,
            self.shift or other.shift,
            max(self.colour, other.colour),
        )


PLAIN = Look()


def look_of(style: str, place: int = 0) -> Look:
    """Parse the properties which matter for reading from a CSS style.

    `place` is the rule's index in the document. If several rules set a colour, the last wins.
    """
    if not style:
        return PLAIN
    colours = COLOUR.findall(style)
    return Look(
        bool(HIDDEN.search(style)),
        bool(NO_SIZE.search(style)),
        bool(CLIPPED.search(style)),
        bool(BACKGROUND.search(style)),
        bool(STRUCK.search(style)),
        _shift_of(style),
        (place, colours[-1]) if colours else PLAIN.colour,
    )


def _shift_of(style: str) -> str:
    if named := SHIFT_NAMED.search(style):
        return "sup" if named[1].lower() == "super" else "sub"
    match = SHIFTED.search(style) if SIZED.search(style) else None
    if match is None or not (match["aligned"] or RELATIVE.search(style)):
        return ""
    is_up = (match["sign"] == "-") != bool(match["aligned"])
    return "sup" if is_up else "sub"


@dataclass(frozen=True)
class StyleRules:
    """The rules in a document's style sheets.

    A key in `by_mark` has three parts: an element's name ("" for any element), "." or "#", and a class name or an id.
    Rules with the same key are merged in advance, because looking up each element must be fast.
    """

    by_mark: Mapping[tuple[str, str, str], Look] = field(default_factory=dict)
    #: Whether an element has a background, for the elements checked so far.
    backgrounds: dict[Any, bool] = field(default_factory=dict)

    def look_of(self, element: Any) -> Look:
        """Return an element's properties from the rules and from the style attribute."""
        look = look_of(element.get("style") or "", OWN_STYLE)
        if not self.by_mark:
            return look
        classes = (element.get("class") or "")[:LONGEST_CLASSES].lower().split()
        marks = [(".", name) for name in classes] + [("#", (element.get("id") or "").lower())]
        for mark, name in marks:
            for tag in ("", element.tag):
                look |= self.by_mark.get((tag, mark, name), PLAIN)
        return look


def style_rules(tree: Any, styles: str = "") -> StyleRules:
    """Return the rules in a document's embedded style sheets and in `styles`, the text of separate style sheets."""
    embedded = (sheet.text or "" for sheet in tree.iter("style"))
    sheets = COMMENT.sub("", "\n".join((styles, *embedded))[:STYLES_LOOKED_AT])
    looks: dict[tuple[str, str, str], Look] = {}
    for place, rule in enumerate(RULE.finditer(sheets)):
        look = look_of(rule["style"].strip(), place)
        if look == PLAIN:
            continue
        for selector in rule["selectors"].split(","):
            simple = SIMPLE.fullmatch(selector.strip())
            if simple is not None:
                key = ((simple["tag"] or "").lower(), simple["mark"], simple["name"].lower())
                looks[key] = looks.get(key, PLAIN) | look
    return StyleRules(looks)


def is_machine_data(element: Any) -> bool:
    """Whether an element holds an editor's internal data, which is not shown."""
    return (element.get("id") or "").lower() in MACHINE_IDS and element.text_content().lstrip().startswith("{")


def is_hidden(element: Any, rules: StyleRules) -> bool:
    if element.get("hidden") is not None or (element.get("aria-hidden") == "true" and element.tag != "svg"):
        return True
    look = rules.look_of(element)
    if look.is_hidden or (look.has_no_size and look.is_cut_off):
        return True
    named = look.colour[1] or (element.get("color") or "")
    return bool(named) and is_white(named) and not _has_background(element, rules)


def is_struck(element: Any, rules: StyleRules) -> bool:
    """Whether an element is struck through."""
    return element.tag in ("del", "s", "strike") or rules.look_of(element).is_struck


def shift_of(element: Any, rules: StyleRules) -> str:
    """Return "sup" if CSS styles raise the element, "sub" if they lower it, else ""."""
    return rules.look_of(element).shift


def is_white(colour: str) -> bool:
    """Whether text in this CSS colour is invisible on white paper."""
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
    hex_digits = digits if len(digits) == 6 else "".join(digit * 2 for digit in digits)
    return min(int(hex_digits[place : place + 2], 16) for place in (0, 2, 4)) >= WHITE_PART


def _has_background(element: Any, rules: StyleRules) -> bool:
    elements = []
    has_background = False
    while element is not None and not has_background:
        if element in rules.backgrounds:
            has_background = rules.backgrounds[element]
            break
        elements.append(element)
        has_background = bool(
            element.get("bgcolor") or element.get("background") or rules.look_of(element).has_background
        )
        element = element.getparent()
    # All ancestors have the same answer.
    rules.backgrounds.update(dict.fromkeys(elements, has_background))
    return has_background
