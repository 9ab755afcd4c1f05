"""Load presentations (.pptx): a page for each slide, with the visible text, and the notes marked as such.

The text is read twice: shape by shape, and in full, to count text which is missing on the page.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from rag.errors import FileDamaged, TooManyPages
from rag.ingestion.loaders.characters import normalise_characters
from rag.ingestion.loaders.drawing import DIAGRAM, is_hidden, is_large, local_name
from rag.ingestion.loaders.office_package import SCHEMAS, A, OfficePackage, R, guarded, require_package
from rag.ingestion.loaders.page_text import BLANK_PAGE, STRUCK_TEXT, UNREAD_TEXT, letters_in, shortened
from rag.ingestion.loaders.raised import placed_in_cell
from rag.ingestion.loaders.values import DEFAULT_OPTIONS, CheckedFile, ExtractedDocument, LoadOptions
from rag.text.tables import guessed_head_rows, lines_of
from rag.types import Page, Section

P = "{" + SCHEMAS + "presentationml/2006/main}"
M = "{" + SCHEMAS + "officeDocument/2006/math}"
DGM = "{" + SCHEMAS + "drawingml/2006/diagram}"
HIDDEN_SLIDE = "This slide is hidden and was not read."
#: Content the walk counts without reading: singular and plural.
UNREAD = {
    "hidden shapes": ("1 hidden shape was not read.", "{count} hidden shapes were not read."),
    "comments": ("1 comment was not read.", "{count} comments were not read."),
    "charts": ("1 chart was not read.", "{count} charts were not read."),
    "diagrams": ("1 diagram (SmartArt) was not read.", "{count} diagrams (SmartArt) were not read."),
    "embedded": ("1 embedded file was not read.", "{count} embedded files were not read."),
    "videos": ("1 video or sound was not read.", "{count} videos or sounds were not read."),
    "pictures": ("1 picture may contain text that was not read.",
                 "{count} pictures may contain text that was not read."),
    "text": UNREAD_TEXT,
}  # fmt: skip
TITLES = ("title", "ctrTitle")
#: Placeholders whose paragraphs are a list.
LISTS = ("body", "obj", "")
LONGEST_TITLE = 200
#: Precedes a slide's speaker notes.
NOTES = "Notes: "


class Presentation(OfficePackage):
    """A presentation's slides in order."""

    MAIN = "ppt/presentation.xml"

    def slides(self) -> list[str]:
        """Return the slides' names in the package, in order."""
        main = self.main()
        root = self.root(main)
        links = (entry.get(R + "id") or "" for entry in root.iter(P + "sldId"))
        relations = self.relations(main)
        return [relations[link].target for link in links if link in relations]


def load_pptx(content: bytes, options: LoadOptions = DEFAULT_OPTIONS) -> ExtractedDocument:
    """Load a presentation with the file's properties.

    Raises `FileProtected` for a protected file, `FileTooLarge` for a file too large when unpacked, else `FileDamaged`.
    """
    require_package(content, options.limits, Presentation)
    return guarded(lambda: _load_slides(Presentation(content), options))


def check_pptx(content: bytes, options: LoadOptions = DEFAULT_OPTIONS) -> CheckedFile:
    """Check that the file is a valid package, and count the slides. Raises the errors from `load_pptx`."""
    require_package(content, options.limits, Presentation)
    return guarded(lambda: CheckedFile(page_count=max(len(Presentation(content).slides()), 1)))


def _load_slides(package: Presentation, options: LoadOptions) -> ExtractedDocument:
    slides = package.slides()
    if len(slides) > options.limits.maximum_pages:
        raise TooManyPages
    pages: list[Page] = []
    sections: list[Section] = []
    position = 0
    shown_lines: set[str] = set()
    for number, part in enumerate(slides, 1):
        root = package.root(part)
        if root is None:
            raise FileDamaged
        if (root.get("show") or "1") in ("0", "false"):
            page = Page(number=number, text="", method="none", warnings=(HIDDEN_SLIDE,))
        else:
            slide = _Slide(package, part, shown_lines)
            page = slide.page(root, number)
            if title := (slide.title or page.text.partition("\n")[0])[:LONGEST_TITLE]:
                sections.append(Section(title=title, level=1, page=number, start=position))
        pages.append(page)
        position += len(page.text) + 1
        if options.on_page is not None:
            options.on_page(number, len(slides))
    properties = package.properties()
    return ExtractedDocument(
        pages=tuple(pages) or (Page(number=1, text="", method="none", warnings=(BLANK_PAGE,)),),
        sections=tuple(sections),
        title=properties["title"],
        author=properties["creator"],
        language=properties["language"][:2].lower(),
    )


@dataclass
class _Slide:
    package: Presentation
    part: str
    shown_lines: set[str]
    title: str = ""
    lines: list[str] = field(default_factory=list)
    unread: Counter[str] = field(default_factory=Counter)
    struck: list[str] = field(default_factory=list)
    #: Text in the parts left out for a reason; and all text found in other parts.
    left_out: list[str] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)

    def page(self, root: Any, number: int) -> Page:
        """Return the slide's page: title, shapes in order, text from the layout, and notes."""
        for tree in root.iter(P + "spTree"):
            self._shapes(tree)
        self._layout(root)
        notes = self.package.related_name(self.part, "notesSlide")
        if notes is not None:
            self._notes(self.package.root(notes))
        for kind in ("comments", "comment"):
            for relation in self.package.relations(self.part).values():
                if relation.kind == kind and (comments := self.package.root(relation.target)) is not None:
                    self.unread["comments"] += sum(local_name(part) == "cm" for part in comments)
        text = "\n".join([*([self.title] if self.title else []), *self.lines])
        self._count_lost(root, text)
        return Page(
            number=number, text=text, method="text" if text.strip() else "none", warnings=tuple(self._warnings(text))
        )

    def _warnings(self, text: str) -> Iterator[str]:
        struck = " ".join(" ".join(self.struck).split())
        if struck:
            yield STRUCK_TEXT.format(text=shortened(struck))
        for kind, (singular, plural) in UNREAD.items():
            if (count := self.unread[kind]) > 0:
                yield singular if count == 1 else plural.format(count=f"{count:,}")
        if not text.strip() and not struck and not any(self.unread.values()):
            yield BLANK_PAGE

    def _count_lost(self, root: Any, text: str) -> None:
        there = Counter(letters_in("".join([*_texts(root), *self.elsewhere])))
        omitted = Counter(letters_in("".join([*self.left_out, *self.struck])))
        self.unread["text"] = sum((there - omitted - Counter(letters_in(text))).values())

    # Shapes

    def _shapes(self, container: Any) -> None:
        for shape in container:
            name = local_name(shape)
            if name == "AlternateContent":
                chosen = next((part for part in shape if local_name(part) == "Choice"), None)
                if chosen is not None:
                    self._shapes(chosen)
            elif name in ("sp", "pic", "grpSp", "graphicFrame", "cxnSp") and is_hidden(shape):
                self.unread["hidden shapes"] += 1
                self.left_out.extend(_texts(shape))
            elif name == "grpSp":
                self._shapes(shape)
            elif name in ("sp", "cxnSp"):
                self._text_shape(shape)
            elif name == "pic":
                has_sound = any(local_name(part) in ("videoFile", "audioFile") for part in shape.iter())
                self.unread["videos" if has_sound else "pictures"] += has_sound or is_large(shape)
            elif name == "graphicFrame":
                self._frame(shape)

    def _text_shape(self, shape: Any) -> None:
        body = shape.find(P + "txBody")
        if body is None:
            return
        kind = _placeholder(shape)
        lines = list(self._paragraphs(body, is_list=kind in LISTS))
        if kind == "sldNum":
            self.left_out.extend(_texts(body))
        elif kind in TITLES and not self.title:
            self.title = " ".join(lines)
        elif kind in ("ftr", "dt", "hdr"):
            self._once(lines)
        else:
            self.lines.extend(lines)

    def _once(self, lines: list[str]) -> None:
        for line in lines:
            if line in self.shown_lines:
                self.left_out.append(line)
            else:
                self.shown_lines.add(line)
                self.lines.append(line)

    def _frame(self, frame: Any) -> None:
        data = next(frame.iter(A + "graphicData"), None)
        table = None if data is None else data.find(A + "tbl")
        if data is None:
            return
        if table is not None:
            self.lines.extend(self._table(table))
        elif data.get("uri") == DIAGRAM:
            self._diagram(data)
        elif "chart" in (data.get("uri") or ""):
            self.unread["charts"] += 1
        else:
            self.unread["embedded"] += 1
            self.left_out.extend(_texts(data))

    def _diagram(self, data: Any) -> None:
        links = next(data.iter(DGM + "relIds"), None)
        root = None if links is None else self.package.by_link(self.part, links.get(R + "dm") or "")
        if root is None:
            self.unread["diagrams"] += 1
            return
        self.elsewhere.extend(_texts(root))
        for point in root.iter(DGM + "pt"):
            text = " ".join(line for body in point.iter(DGM + "t") for line in self._paragraphs(body))
            if text:
                self.lines.append(text)

    def _layout(self, root: Any) -> None:
        part, shows = self.part, root.get("showMasterSp") or "1"
        for kind in ("slideLayout", "slideMaster"):
            above = self.package.related_name(part, kind)
            layout = None if above is None else self.package.root(above)
            if above is None or layout is None or shows in ("0", "false"):
                return
            for shape in layout.iter(P + "sp"):
                body = shape.find(P + "txBody")
                if body is not None and _placeholder(shape) is None and not is_hidden(shape):
                    self._once(list(self._paragraphs(body)))
            part, shows = above, layout.get("showMasterSp") or "1"

    def _notes(self, root: Any) -> None:
        for shape in () if root is None else root.iter(P + "sp"):
            body = shape.find(P + "txBody")
            if body is not None and _placeholder(shape) == "body":
                self.elsewhere.extend(_texts(body))
                lines = list(self._paragraphs(body))
                self.lines.extend([f"{NOTES}{lines[0]}", *lines[1:]] if lines else [])

    # Text

    def _paragraphs(self, body: Any, *, is_list: bool = False) -> Iterator[str]:
        paragraphs = [(paragraph, self._line(paragraph)) for paragraph in body.iter(A + "p")]
        paragraphs = [(paragraph, text) for paragraph, text in paragraphs if text]
        numbers: Counter[int] = Counter()
        for paragraph, text in paragraphs:
            properties = paragraph.find(A + "pPr")
            marks = {local_name(part) for part in (() if properties is None else properties)}
            level = int((None if properties is None else properties.get("lvl")) or 0)
            if "buAutoNum" in marks:
                numbers[level] += 1
                yield f"{numbers[level]}. {text}"
            elif "buChar" in marks or (is_list and len(paragraphs) > 1 and "buNone" not in marks):
                yield f"- {text}"
            else:
                numbers.clear()
                yield text

    def _line(self, paragraph: Any) -> str:
        line_text = ""
        for run in paragraph:
            name = local_name(run)
            properties = run.find(A + "rPr")
            if name == "br":
                line_text += " "
            elif name in ("r", "fld"):
                text = run.findtext(A + "t") or ""
                if properties is not None and (properties.get("strike") or "noStrike") != "noStrike":
                    self.struck.append(text)
                else:
                    position = 0 if properties is None else _number(properties.get("baseline"))
                    place = "sub" if position < 0 else "super" if position else ""
                    line_text += placed_in_cell(line_text, text, place)
            elif name == "AlternateContent" or name == "m":
                line_text += "".join(_texts(run))
        return " ".join(normalise_characters(line_text).split())

    def _table(self, table: Any) -> list[str]:
        grid: list[list[str | None]] = []
        above: dict[int, str] = {}
        for row in table.iter(A + "tr"):
            cells: list[str | None] = []
            following: dict[int, str] = {}
            for place, cell in enumerate(row.findall(A + "tc")):
                body = cell.find(A + "txBody")
                text = "" if body is None else " ".join(self._paragraphs(body))
                if cell.get("hMerge") in ("1", "true"):
                    self.left_out.append(text)
                    cells.append(None)
                    continue
                if cell.get("vMerge") in ("1", "true") and place in above:
                    self.left_out.append(text)
                    text = above[place]
                following[place] = text
                cells.append(text)
            above = following
            grid.append(cells)
        properties = table.find(A + "tblPr")
        is_headed = properties is not None and properties.get("firstRow") in ("1", "true") and len(grid) > 1
        return lines_of(grid, max(guessed_head_rows(grid), int(is_headed)) if grid else 0)


def _placeholder(shape: Any) -> str | None:
    """Return the type of a placeholder shape, or "" if no type is stated. Returns `None` for ordinary shapes."""
    placeholder = next(shape.iter(P + "ph"), None)
    return None if placeholder is None else placeholder.get("type") or ""


def _texts(element: Any) -> list[str]:
    """Return an element's texts, without the fallback versions stored for older programs."""
    if local_name(element) == "Fallback":
        return []
    if element.tag in (A + "t", M + "t"):
        return [element.text or ""]
    return [text for part in element for text in _texts(part)]


def _number(text: str | None) -> int:
    try:
        return int((text or "0").rstrip("%"))
    except ValueError:
        return 0
