"""Write a conversation to a PDF file, with links to the cited pages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from fpdf.enums import Align
from fpdf.fonts import FontFace
from markdown_it.tree import SyntaxTreeNode

from rag.integrations.operations.pdf_exports.document import ACCENT, IN_ARABIC, INK, PAPER, QUIET, PdfDocument
from rag.language import is_right_to_left, translated
from rag.records.transcript import PARSER, UNSTORABLE, source_link, source_title
from rag.types import Conversation, Message

#: Marks setting the direction of the following text.
TURNING = re.compile("[\u202a-\u202e\u2066-\u2069]")
#: Nested lists are indented by at most this much. A table has at most so many columns.
DEEPEST_MM, MOST_COLUMNS = 40, 10
#: Length of a title at the foot of a page.
FOOT_CHARACTERS = 90


def to_pdf(conversation: Conversation, messages: Sequence[Message], *, address: str) -> bytes:
    """Write the conversation to a PDF; see `rag.records.transcript.to_markdown`."""
    content = "".join(f"{m.content}{translated(m.notice)}{m.help_by}{m.help_answer}{m.citations}" for m in messages)
    page = PdfDocument(_printable(conversation.title)[:FOOT_CHARACTERS], conversation.title + content)
    page.set_title(_printable(conversation.title))
    _write(page, [_Run(conversation.title, is_bold=True)], size=18)
    for message in messages:
        if message.role == "user":
            page.ln(4)
            _write(page, [_Run(" ".join(message.content.split()), is_bold=True)], size=12)
            continue
        if message.content:
            _write_blocks(page, SyntaxTreeNode(PARSER.parse(message.content)))
        else:
            _write(page, [_Run(translated(message.notice))], color=QUIET)
        for source in message.citations:
            link = _Run(source_title(source), link=source_link(source, address))
            _write(page, [_Run(f"[{source['number']}] "), link], size=9, indent=4)
        if message.help_status == "answered":
            _write(page, [_Run(f"{message.help_by}: ", is_bold=True), _Run(message.help_answer)])
    return page.finish()


@dataclass(frozen=True)
class _Run:
    text: str
    is_bold: bool = False
    link: str = ""


def _write_blocks(page: PdfDocument, node: SyntaxTreeNode, *, bullet: str = "", indent: float = 0) -> None:
    for child in node.children:
        match child.type:
            case "paragraph" | "heading":
                runs = _runs(child.children[0], is_bold=child.type == "heading")
                _write(page, [_Run(bullet), *runs] if bullet else runs, indent=indent)
                bullet = ""
            case "bullet_list" | "ordered_list":
                first = int(child.attrs.get("start", 1))
                for number, item in enumerate(child.children, first):
                    sign = "•  " if child.type == "bullet_list" else f"{number}.  "
                    _write_blocks(page, item, bullet=sign, indent=min(indent + 5, DEEPEST_MM))
            case "table":
                _write_table(page, [row.children for part in child.children for row in part.children])
            case "fence" | "code_block":
                for line in child.content.splitlines():
                    _write(page, [_Run(line)], indent=indent + 5)
            case _:
                _write_blocks(page, child, indent=indent)


def _write_table(page: PdfDocument, rows: Sequence[Sequence[SyntaxTreeNode]]) -> None:
    if len(rows[0]) > MOST_COLUMNS:  # narrower ones hold no word
        for row in rows:
            _write(page, [_Run(" | ".join(_text_of(cell) for cell in row))])
        return
    page.set_font("Sans", size=10)
    page.set_text_color(*INK)
    heading = FontFace(emphasis="BOLD", fill_color=PAPER)
    with page.table(line_height=6, padding=(0.6, 2), headings_style=heading) as table:
        for row in rows:
            line = table.row()
            for cell in row:
                text = _printable(_text_of(cell))
                line.cell(text, align="R" if is_right_to_left(text) else "L")
    page.ln(2)


def _runs(node: SyntaxTreeNode, *, is_bold: bool = False) -> list[_Run]:
    runs = []
    for child in node.children:
        if child.children:
            runs += _runs(child, is_bold=is_bold or child.type == "strong")
        else:
            runs.append(_Run({"softbreak": " ", "hardbreak": "\n"}.get(child.type, child.content), is_bold))
    return runs


def _text_of(cell: SyntaxTreeNode) -> str:
    return "".join(run.text for run in _runs(cell.children[0])) if cell.children else ""


def _write(
    page: PdfDocument, runs: Sequence[_Run], *, size: float = 10.5, color: tuple[int, int, int] = INK, indent: float = 0
) -> None:
    text = "".join(run.text for run in runs)
    if IN_ARABIC.search(text):
        _write_arabic(page, runs, text, size=size, color=color)
        return
    lines = page.text_columns(line_height=1.35)
    with lines.paragraph(text_align=Align.L, indent=indent) as paragraph:
        for run in runs:
            page.set_font("Sans", "B" if run.is_bold else "", size)
            page.set_text_color(*(ACCENT if run.link else color))
            paragraph.write(_printable(run.text), link=run.link or None)
    lines.render()
    page.ln(1.5)


def _write_arabic(
    page: PdfDocument, runs: Sequence[_Run], text: str, *, size: float, color: tuple[int, int, int]
) -> None:
    """Write a paragraph which contains Arabic.

    The paragraph has a single style, because the letters' shape and order depend on the whole text.
    """
    link = next((run.link for run in runs if run.link), "")
    page.set_font("Sans", "B" if runs[0].is_bold else "", size)
    page.set_text_color(*(ACCENT if link else color))
    page.set_text_shaping(True)
    align = "R" if is_right_to_left(text) else "L"
    page.multi_cell(0, size * 0.48, _printable(text), align=align, link=link, new_x="LMARGIN", new_y="NEXT")
    page.set_text_shaping(False)
    page.ln(1.5)


def _printable(text: str) -> str:
    return TURNING.sub("", UNSTORABLE.sub("", text)).replace("\t", " ")
