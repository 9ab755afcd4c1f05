"""Read a PDF page's annotations: form values, typed notes, stamps, comments. Runs in the sandbox.

pypdf reads the values, because a field may inherit a value from parent fields. Values, typed notes and stamps are
visible on the page. They are inserted next to their label, or after the nearest line above. Comments are
only visible after a click, and are only counted.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pypdf
from pypdf.generic import ArrayObject, DictionaryObject, StreamObject

from rag.ingestion.loaders.characters import normalise_characters
from rag.ingestion.loaders.page_tables import Word
from rag.ingestion.loaders.pdf_objects import Box
from rag.ingestion.loaders.pdf_words import PlacedWord

#: Flags of invisible annotations: hidden, not on a screen. PDF 32000-1 table 165.
NOT_SHOWN = 1 << 1 | 1 << 5
#: Field flags: a password field, a button which only starts an action, a drop-down list.
PASSWORD, PUSH_BUTTON, COMBO = 1 << 13, 1 << 16, 1 << 17
#: The deepest nesting of fields, and the most annotations read on a page.
DEEPEST, MOST_ANNOTATIONS = 32, 5000
#: The most lines to read in a list of choices.
MOST_OPTIONS = 2000
#: Longer values are cut, in characters.
LONGEST_VALUE = 20_000
#: Annotation kinds whose contents are comments.
COMMENTS = frozenset({
    "/Text", "/Highlight", "/Underline", "/Squiggly", "/StrikeOut", "/Caret",
    "/Square", "/Circle", "/Line", "/Polygon", "/PolyLine", "/Ink",
})  # fmt: skip
TICKED, EMPTY = "☒", "☐"
#: The usual letter height in a field, in points; a field may be higher.
TEXT_HEIGHT = 12.0
#: Smaller letters are unreadable, in points; 0 means automatic size.
SMALLEST = 1.5
#: The largest distance from a label down to its field, and from words to a typed note on the same line, in points.
LABEL_ABOVE, NOTE_BEHIND = 26.0, 15.0
FONT_SIZE = re.compile(r"/\S+ ([\d.]+) Tf")
WHITE = re.compile(r"(?:^|\s)(?:1(?:\.0*)? g|1(?:\.0*)? 1(?:\.0*)? 1(?:\.0*)? rg)(?:\s|$)")
TAGS = re.compile(r"<[^>]*>")
PARAGRAPHS = re.compile(r"</p>|<br\s*/?>", re.IGNORECASE)
LINE_END = re.compile(r"[\r\n]")
NAME_PARTS = re.compile(r"(?<=[a-z])(?=[A-Z])")
#: Warnings for a page with comments: singular and plural.
UNREAD_COMMENTS = ("1 comment was not read.", "{count} comments were not read.")


@dataclass(frozen=True)
class Addition:
    """An annotation's text, for example a form field's value or a typed note, to insert into a page's text.

    The box is in points.
    """

    text: str
    box: Box
    #: Whether the text is a tick box, which may come before its label.
    is_box: bool = False
    #: Whether the text is a typed note or a stamp, which gets a separate line.
    is_separate: bool = False

    @property
    def lettered(self) -> Box:
        """The box around the annotation's first text line, in points, estimated from the annotation's box."""
        left, bottom, right, top = self.box
        if top - bottom > 3 * TEXT_HEIGHT:
            return left, top - TEXT_HEIGHT - 2, right, top - 2
        middle = (bottom + top) / 2
        high = min(top - bottom, TEXT_HEIGHT) / 2
        return left, middle - high, right, middle + high


@dataclass
class Annotations:
    """The annotations on a page."""

    additions: list[Addition] = field(default_factory=list)
    comments: int = 0
    #: Boxes of comments.
    commented: list[Box] = field(default_factory=list)
    #: Boxes around struck text.
    struck: list[Box] = field(default_factory=list)
    #: Names of files attached to a place on the page.
    attached: list[str] = field(default_factory=list)

    def warnings(self) -> Iterator[str]:
        """Yield a warning if comments were left out."""
        if self.comments:
            yield UNREAD_COMMENTS[self.comments > 1].format(count=f"{self.comments:,}")


def annotations_of(page: pypdf.PageObject) -> Annotations:
    """Read a page's annotations. Unreadable annotations are skipped."""
    page_annotations = Annotations()
    try:
        entries = page.get("/Annots")
        annotations = list(entries.get_object() or ())[:MOST_ANNOTATIONS] if entries is not None else []
    except (Exception, RecursionError):
        return page_annotations
    for entry in annotations:
        try:
            annotation = entry.get_object()
            if isinstance(annotation, DictionaryObject):
                _add(page_annotations, page, annotation)
        except (Exception, RecursionError):  # noqa: S112 - a damaged annotation says nothing of the others
            continue
    return page_annotations


def pinned_files(page: pypdf.PageObject) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of each file attached to a page. Damaged files are skipped."""
    entries = page.get("/Annots")
    for entry in list(entries.get_object() or ())[:MOST_ANNOTATIONS] if entries is not None else []:
        with suppress(Exception, RecursionError):
            annotation = entry.get_object()
            if annotation.get("/Subtype") == "/FileAttachment":
                yield _file_name(annotation["/FS"]), annotation["/FS"]["/EF"]["/F"].get_data()


def _add(page_annotations: Annotations, page: pypdf.PageObject, annotation: DictionaryObject) -> None:
    kind = annotation.get("/Subtype")
    if int(annotation.get("/F", 0)) & NOT_SHOWN:
        return
    if kind == "/FileAttachment":
        page_annotations.attached.append(_file_name(annotation.get("/FS")))
        return
    if kind in COMMENTS:
        if kind == "/StrikeOut":
            page_annotations.struck += _quads(annotation)
        # A state, for example "accepted", is stored as a reply.
        if _text(annotation.get("/Contents")) and "/StateModel" not in annotation:
            page_annotations.comments += 1
            page_annotations.commented += [box] if (box := _box(annotation)) is not None else []
        return
    box = _box(annotation)
    if box is None:
        return
    if kind == "/Widget":
        text, is_box = _value(page, annotation)
        page_annotations.additions += [Addition(text, box, is_box=is_box)] if text else []
    elif kind == "/FreeText":
        text = (
            _text(annotation.get("/Contents")) or _plain(_text(annotation.get("/RC"))) or _drawn_text(page, annotation)
        )
        page_annotations.additions += [Addition(text, box, is_separate=True)] if text else []
    elif kind == "/Stamp":
        text = _drawn_text(page, annotation) if "/AP" in annotation else _words_of_name(annotation.get("/Name", ""))
        page_annotations.additions += [Addition(text, box, is_separate=True)] if text else []


def _box(annotation: DictionaryObject) -> Box | None:
    edges: Any = annotation["/Rect"]
    x1, y1, x2, y2 = (float(edge) for edge in edges)
    box = min(x1, x2), min(y1, y2), max(x1, x2), max(y1, y2)
    return box if box[2] - box[0] > SMALLEST and box[3] - box[1] > SMALLEST else None


def _quads(annotation: DictionaryObject) -> Iterator[Box]:
    places = annotation.get("/QuadPoints")
    points = [float(point) for point in places] if isinstance(places, ArrayObject) else []
    for start in range(0, len(points) - 7, 8):
        xs, ys = points[start : start + 8 : 2], points[start + 1 : start + 8 : 2]
        yield min(xs), min(ys), max(xs), max(ys)


def _inherited_value(annotation: DictionaryObject, key: str) -> Any:
    holder: Any = annotation
    for _ in range(DEEPEST):
        if not isinstance(holder, DictionaryObject):
            return None
        if key in holder:
            return holder[key].get_object()
        parent = holder.get("/Parent")
        holder = parent.get_object() if parent is not None else None
    return None


def _value(page: pypdf.PageObject, annotation: DictionaryObject) -> tuple[str, bool]:
    kind, flags = _inherited_value(annotation, "/FT"), int(_inherited_value(annotation, "/Ff") or 0)
    if kind == "/Btn":
        if flags & PUSH_BUTTON:
            return "", False
        return TICKED if _is_ticked(annotation) else EMPTY, True
    if kind == "/Sig":
        return _drawn_text(page, annotation), False
    if _is_unseen(page, annotation) or (kind == "/Tx" and flags & PASSWORD):
        return "", False
    value = _inherited_value(annotation, "/V")
    if kind == "/Ch":
        return _choice(annotation, value, is_open=not flags & COMBO), False
    return _text(value), False


def _choice(annotation: DictionaryObject, value: Any, *, is_open: bool) -> str:
    """Return the chosen options. An open list box gives all visible and all chosen options, each with a tick box."""
    options = _options(annotation)
    chosen = [text for text in map(_text, value if isinstance(value, ArrayObject) else [value]) if text]
    places = [place for place, option in enumerate(options) if option[0] in chosen or option[1] in chosen]
    if not chosen:
        named = [int(place) for place in _inherited_value(annotation, "/I") or ()]
        places = [place for place in named if 0 <= place < len(options)]
    if not is_open or not options:
        shown_texts = dict(options)
        return ", ".join([shown_texts.get(text, text) for text in chosen] or [options[place][1] for place in places])
    first = max(int(_inherited_value(annotation, "/TI") or 0), 0)
    visible = range(first, first + _lines_in(annotation))
    return " ".join(
        f"{TICKED if place in places else EMPTY} {option[1]}"
        for place, option in enumerate(options)
        if option[1] and (place in visible or place in places)
    )


def _lines_in(annotation: DictionaryObject) -> int:
    size = FONT_SIZE.search(_text(_inherited_value(annotation, "/DA")))
    box = _box(annotation)
    high = (float(size[1]) if size else 0.0) or TEXT_HEIGHT
    return max(round((box[3] - box[1]) / high), 1) if box is not None and high > SMALLEST else 1


def _is_ticked(annotation: DictionaryObject) -> bool:
    state = annotation.get("/AS")
    if state is not None:
        return bool(state != "/Off")
    value = _inherited_value(annotation, "/V")
    looks = annotation.get("/AP", {}).get("/N")
    states = set(looks) - {"/Off"} if isinstance(looks, DictionaryObject) else set()
    return value is not None and value != "/Off" and (not states or value in states)


def _options(annotation: DictionaryObject) -> list[tuple[str, str]]:
    options = []
    for entry in list(_inherited_value(annotation, "/Opt") or ())[:MOST_OPTIONS]:
        option = entry.get_object()
        is_pair = isinstance(option, ArrayObject) and len(option) == 2
        options.append((_text(option[0]), _text(option[1])) if is_pair else (_text(option), _text(option)))
    return options


def _is_unseen(page: pypdf.PageObject, annotation: DictionaryObject) -> bool:
    appearance = _text(_inherited_value(annotation, "/DA"))
    size = FONT_SIZE.search(appearance)
    if size and 0 < float(size[1]) < SMALLEST:
        return True
    ground = (_inherited_value(annotation, "/MK") or {}).get("/BG") or ()
    return WHITE.search(appearance) is not None and all(float(part) >= 0.97 for part in ground)


def _text(value: Any) -> str:
    value = value.get_object() if value is not None else None
    if isinstance(value, StreamObject):
        value = value.get_data().decode("utf-8", "replace")
    if isinstance(value, bytes):
        value = value.decode("latin-1")
    return normalise_characters(value[:LONGEST_VALUE]).strip() if isinstance(value, str) else ""


def _plain(rich: str) -> str:
    return html.unescape(TAGS.sub("", PARAGRAPHS.sub("\n", rich))).strip()


def _drawn_text(page: pypdf.PageObject, annotation: DictionaryObject) -> str:
    looks = annotation.get("/AP", {}).get("/N")
    looks = looks.get_object() if looks is not None else None
    if isinstance(looks, DictionaryObject) and not isinstance(looks, StreamObject):
        looks = looks.get(annotation.get("/AS", "/Off"))
        looks = looks.get_object() if looks is not None else None
    if not isinstance(looks, StreamObject):
        return ""
    return normalise_characters(page.extract_xform_text(looks)[:LONGEST_VALUE]).strip()  # type: ignore[arg-type]


def _words_of_name(name: str) -> str:
    """Split the name of a stamp without text into words: "NotApproved" becomes "Not Approved"."""
    return NAME_PARTS.sub(" ", str(name).removeprefix("/").removeprefix("SB").partition("#")[0]).strip()


def _file_name(specification: Any) -> str:
    described = specification.get_object() if specification is not None else None
    if not isinstance(described, DictionaryObject):
        return _text(described)
    return _text(described.get("/UF")) or _text(described.get("/F"))


@dataclass(frozen=True)
class PlacedAddition:
    """An annotation's text, and where to insert it.

    This is before or after the character with the index `index` in the page's text or, if `index` is -1, below the
    text.
    """

    addition: Addition
    index: int
    is_before: bool = False
    is_line: bool = False

    def word(self) -> PlacedWord:
        """Convert the annotation's text to a word for a table cell. The word has no characters in the page's text."""
        left, bottom, right, top = self.addition.lettered
        words = " ".join(self.addition.text.split())
        return PlacedWord(Word(words, (left, bottom, min(right, left + 6.0 * len(words)), top)), self.index, self.index)


def place_additions(
    additions: Sequence[Addition], words: Sequence[PlacedWord], page_box: Box, *, is_turned: bool
) -> list[PlacedAddition]:
    """Choose where to insert annotations' texts among a page's words.

    Annotations outside the page are dropped. On a rotated page, or on a page without words, the texts become lines
    below the page's text.
    """
    left, bottom, right, top = page_box
    on_page = [
        addition
        for addition in additions
        if addition.box[0] < right and addition.box[2] > left and addition.box[1] < top and addition.box[3] > bottom
    ]
    on_page.sort(key=lambda addition: (-round(addition.lettered[3] / 4), addition.box[0]))
    if is_turned or not words:
        return [PlacedAddition(addition, -1, is_line=True) for addition in on_page]
    return [_place(addition, words) for addition in on_page]


def _place(addition: Addition, words: Sequence[PlacedWord]) -> PlacedAddition:
    left, bottom, right, top = addition.lettered
    middle, high = (bottom + top) / 2, top - bottom
    on_line = [
        placed for placed in words if abs(placed.word.middle - middle) < max(0.5 * placed.word.height, 0.5 * high)
    ]
    before = [placed for placed in on_line if placed.word.box[2] <= left + 3 or placed.word.box[0] < left - 3]
    behind = [placed for placed in on_line if placed.word.box[0] >= right - 3]
    nearest = max(before, key=lambda placed: placed.word.box[2], default=None)
    gap = left - nearest.word.box[2] if nearest is not None else float("inf")
    if addition.is_separate:
        if nearest is not None and gap < NOTE_BEHIND:
            return PlacedAddition(addition, nearest.end - 1)
        return _place_below(addition, words)
    label = min(behind, key=lambda placed: placed.word.box[0], default=None)
    if addition.is_box and label is not None and label.word.box[0] - right < min(gap, 3 * TEXT_HEIGHT):
        return PlacedAddition(addition, label.start, is_before=True)
    if nearest is not None:
        return PlacedAddition(addition, nearest.end - 1)
    above = [
        placed
        for placed in words
        if 0 <= placed.word.box[1] - top + high / 2 < LABEL_ABOVE
        and placed.word.box[0] < right
        and placed.word.box[2] > left - 3
    ]
    if above:
        lowest = min(placed.word.middle for placed in above)
        row = [placed for placed in above if placed.word.middle < lowest + 0.5 * placed.word.height]
        return PlacedAddition(addition, max(row, key=lambda placed: placed.word.box[2]).end - 1)
    if label is not None:
        return PlacedAddition(addition, label.start, is_before=True)
    return _place_below(addition, words)


def _place_below(addition: Addition, words: Sequence[PlacedWord]) -> PlacedAddition:
    left, _, right, _ = addition.box
    middle = (addition.lettered[1] + addition.lettered[3]) / 2
    above = [placed for placed in words if placed.word.middle >= middle]
    within = [placed for placed in above if placed.word.box[0] < right and placed.word.box[2] > left]
    if not above:
        first = max(words, key=lambda placed: (placed.word.middle, -placed.start))
        return PlacedAddition(addition, first.start, is_before=True, is_line=True)
    chosen = within or above
    lowest = min(placed.word.middle for placed in chosen)
    row = [placed for placed in chosen if placed.word.middle < lowest + 0.5 * placed.word.height]
    return PlacedAddition(addition, max(placed.end for placed in row) - 1, is_line=True)


def put_additions(characters: list[str], text: str, placed: Sequence[PlacedAddition]) -> list[str]:
    """Insert annotations' texts into a page's characters. Returns the texts without a position, to append below."""
    below: list[str] = []
    for item in placed:
        added, index = item.addition.text, item.index
        if index < 0:
            below.append(added)
        elif item.is_line and item.is_before:
            characters[index] = f"{added}\n{characters[index]}"
        elif item.is_line:
            end = LINE_END.search(text, index)
            index = end.start() - 1 if end else len(characters) - 1
            characters[index] = f"{characters[index].rstrip()}\n{added}"
        elif item.is_before:
            characters[index] = f"{added} {characters[index]}"
        else:
            characters[index] = f"{characters[index]} {added}"
    return below
