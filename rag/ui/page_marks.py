"""Draw marks on a page's picture: tables, headings, notes, and omitted text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape

from rag.ingestion.loaders.page_text import PICTURED_PAGE
from rag.language import N_, _
from rag.types import DocumentPage, MarkKind, PageMark
from rag.ui.formats import thousands


@dataclass(frozen=True)
class MarkLook:
    """Names, sign, line and colour for a kind of mark. A page is white in the dark theme too."""

    one: str
    all: str
    sign: str
    line: str
    colour: str


LOOKS: dict[MarkKind, MarkLook] = {
    "table": MarkLook(N_("Table"), N_("Tables"), "▦", "2px solid", "#1d4ed8"),
    "heading": MarkLook(N_("Heading"), N_("Headings"), "#", "2px dashed", "#7e22ce"),
    "note": MarkLook(N_("Note or form value"), N_("Notes and form values"), "*", "2px dotted", "#15803d"),
    "left out": MarkLook(N_("Left out"), N_("Left out"), "×", "4px double", "#b91c1c"),
    "line": MarkLook(N_("Recognised line"), N_("Recognised lines"), "≡", "1px solid", "#0f766e"),
    "unsure": MarkLook(N_("Not certain"), N_("Not certain"), "?", "2px dashed", "#b45309"),
}
#: Only pages with recognised text have these.
OF_RECOGNITION = frozenset({"line", "unsure"})
SIGN = "background:#fff;border-radius:3px;padding:0 .25em;font:700 .75rem/1.15 sans-serif"


def marks_of(page: DocumentPage) -> list[PageMark] | None:
    """Return a page's marks; `None` if they are unknown.

    A picture counts as omitted until text recognition has read it.
    """
    if page.marks is None:
        return None
    marks = [PageMark(**mark) for mark in page.marks]
    if page.method == "ocr" and any(mark.kind == "picture" for mark in marks):
        return None  # from before recognition, which told no places
    is_read = page.method == "text" and PICTURED_PAGE not in page.warnings
    return [
        replace(mark, kind="left out") if mark.kind == "picture" else mark
        for mark in marks
        if mark.kind != "picture" or not is_read
    ]


def marks_html(marks: Sequence[PageMark]) -> str:
    """Build frames with signs, to overlay on the page's picture at any size."""
    frames = "".join(_frame(mark, LOOKS[mark.kind]) for mark in marks)
    return f'<div aria-hidden="true">{frames}</div>' if frames else ""


def legend_html(marks: Sequence[PageMark]) -> str:
    """Build the legend: each kind with its sign and count."""
    entries = []
    found = Counter(mark.kind for mark in marks)
    is_recognised = found["line"] + found["unsure"] > 0
    for kind, look in LOOKS.items():
        if kind in OF_RECOGNITION and not is_recognised:
            continue
        number = thousands(found[kind])
        sign = f'<span aria-hidden="true" style="{SIGN};color:{look.colour};border:{look.line}">{look.sign}</span>'
        words = escape(_("{kind}: {number}", kind=_(look.all), number=number))
        entries.append(f'<li style="display:flex;align-items:center;gap:.4rem;margin:0">{sign}{words}</li>')
    return (
        f'<ul aria-label="{escape(_("Marks on this page"), quote=True)}" style="display:flex;flex-wrap:wrap;'
        f'gap:.3rem 1rem;list-style:none;margin:0;padding:0;font-size:.86rem">{"".join(entries)}</ul>'
    )


def _frame(mark: PageMark, look: MarkLook) -> str:
    width, height = mark.right - mark.left, mark.bottom - mark.top
    # At the page's edge there is no room outside the frame.
    offset, sign = ("-5px", "right:5px;top:5px") if mark.right > 0.95 else ("1px", "left:100%;top:-.75rem")
    # A page has many lines.
    shown = f'<span style="position:absolute;{sign};{SIGN};color:{look.colour}">{look.sign}</span>'
    shown = "" if mark.kind == "line" else shown
    return (
        f'<div title="{escape(_(look.one), quote=True)}" style="position:absolute;left:{mark.left:.2%};'
        f"top:{mark.top:.2%};width:{width:.2%};height:{height:.2%};outline:{look.line} {look.colour};"
        f'outline-offset:{offset};border-radius:2px">{shown}</div>'
    )
