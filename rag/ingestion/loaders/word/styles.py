"""Find how text looks and which paragraphs are headings, from properties, styles and base styles."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from rag.ingestion.loaders.word.package import child, is_on, name_of, number, value

#: Names of heading styles without an outline level. Word writes "heading 1" in every language, other programs do not.
HEADING = re.compile(
    r"(?:heading|제목|überschrift|kop|titre|título|titolo|nagłówek|başlık|見出し|标题|標題|заголовок) ?([1-9])$",
    re.IGNORECASE,
)
TITLES = frozenset({"title", "제목", "titel", "titre", "título", "titolo", "tytuł"})
#: Properties which cancel out if both the paragraph's and the run's style have them (ISO 29500-1, 17.7.3).
TOGGLES = ("vanish", "strike")
#: The longest chain of base styles.
DEEPEST = 30
#: In half-points: text moved by less stays in its line.
LEAST_MOVED = 4


@dataclass(frozen=True)
class Look:
    """How a run (text with the same format) looks."""

    is_hidden: bool = False
    is_struck: bool = False
    #: "superscript", "subscript" or "".
    position: str = ""
    font: str = ""


@dataclass
class Style:
    """A style's properties, including inherited properties."""

    name: str = ""
    run: dict[str, Any] = field(default_factory=dict)
    #: From 0 for the first level; 9 is text.
    outline: int | None = None
    number_id: str | None = None
    number_level: int | None = None
    #: The style and the styles below, the style first.
    chain: tuple[str, ...] = ()


NO_STYLE = Style()


class Styles:
    """A document's styles."""

    def __init__(self, root: Any) -> None:
        self._elements: dict[str, Any] = {}
        self._found: dict[str, Style] = {}
        self._looks: dict[tuple[Any, ...], Look] = {}
        self.default_paragraph = ""
        #: The text's language, in two letters; "" if no style sets it.
        self.language = ""
        self._defaults: dict[str, Any] = {}
        for element in () if root is None else root:
            if name_of(element.tag) == "w:style":
                style_id = value(element, "styleId") or ""
                self._elements[style_id] = element
                if value(element, "type") == "paragraph" and value(element, "default") in ("1", "true", "on"):
                    self.default_paragraph = style_id
            elif name_of(element.tag) == "w:docDefaults":
                defaults = child(child(element, "w:rPrDefault"), "w:rPr")
                self._defaults = run_properties(defaults)
                self.language = (value(child(defaults, "w:lang")) or "")[:2].lower()

    def style(self, style_id: str | None) -> Style:
        """Return a style with inherited properties. An unknown id gives an empty style."""
        if not style_id or style_id not in self._elements:
            return NO_STYLE
        if style_id not in self._found:
            chain: list[str] = []
            at: str | None = style_id
            while at in self._elements and at not in chain and len(chain) < DEEPEST:
                chain.append(at)
                at = value(child(self._elements[at], "w:basedOn"))
            self._found[style_id] = self._combine(chain)
        return self._found[style_id]

    def _combine(self, chain: list[str]) -> Style:
        style = Style(name=value(child(self._elements[chain[0]], "w:name")) or chain[0], chain=tuple(chain))
        for style_id in reversed(chain):
            element = self._elements[style_id]
            style.run |= run_properties(child(element, "w:rPr"))
            properties = child(element, "w:pPr")
            outline = number(child(properties, "w:outlineLvl"))
            style.outline = style.outline if outline is None else outline
            numbers = child(properties, "w:numPr")
            style.number_id = value(child(numbers, "w:numId")) or style.number_id
            level = number(child(numbers, "w:ilvl"))
            style.number_level = style.number_level if level is None else level
        return style

    def look(self, properties: Any, paragraph_style: str) -> Look:
        """Return how a run with these properties looks in a paragraph with this style."""
        run = run_properties(properties)
        character_style = value(child(properties, "w:rStyle")) or ""
        key = (paragraph_style, character_style, *sorted(run.items()))
        if key not in self._looks:
            self._looks[key] = self._look(run, self.style(character_style).run, self.style(paragraph_style).run)
        return self._looks[key]

    def _look(self, run: dict[str, Any], character: dict[str, Any], paragraph: dict[str, Any]) -> Look:
        def toggled(name: str) -> bool:
            if name in run:
                return bool(run[name])
            return bool(self._defaults.get(name)) or bool(paragraph.get(name)) != bool(character.get(name))

        def nearest(name: str) -> Any:
            return next((layer[name] for layer in (run, character, paragraph, self._defaults) if name in layer), "")

        return Look(
            is_hidden=toggled("vanish"),
            is_struck=toggled("strike") or bool(nearest("dstrike")),
            position=nearest("vertAlign") or _position(nearest("position") or 0),
            font=nearest("font"),
        )

    def heading_level(self, properties: Any, style: Style) -> int:
        """Return a heading's level from 1; 0 for other text. The document's title is a heading, too."""
        outline = number(child(properties, "w:outlineLvl"))
        if outline is None:
            outline = style.outline
        if outline is not None:
            return outline + 1 if 0 <= outline < 9 else 0
        for style_id in style.chain:
            for name in (self.style(style_id).name, style_id):
                if match := HEADING.match(name):
                    return int(match[1])
        return int(style.name.casefold() in TITLES)


def _position(half_points: int) -> str:
    """Return "superscript" or "subscript" for text moved up or down, "" for a small move. The distance is in half
    points.

    LibreOffice stores superscripts and subscripts this way.
    """
    if abs(half_points) < LEAST_MOVED:
        return ""
    return "superscript" if half_points > 0 else "subscript"


def run_properties(properties: Any) -> dict[str, Any]:
    """Return the run properties which matter for reading."""
    run: dict[str, Any] = {}
    for element in () if properties is None else properties:
        name = name_of(element.tag)
        if name in ("w:vanish", "w:strike", "w:dstrike"):
            run[name[2:]] = is_on(element)
        elif name == "w:vertAlign":
            position = value(element) or ""
            run["vertAlign"] = position if position in ("superscript", "subscript") else ""
        elif name == "w:position":
            run["position"] = number(element) or 0
        elif name == "w:rFonts":
            font = value(element, "ascii") or value(element, "hAnsi")
            if font:
                run["font"] = font.lower()
    return run
