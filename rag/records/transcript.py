"""Write a conversation to a Markdown, Word or PDF file, with links to the cited pages."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from docx import Document as new_document
from docx.opc.constants import RELATIONSHIP_TYPE
from docx.oxml import OxmlElement
from docx.oxml.ns import qn
from docx.shared import RGBColor
from docx.text.paragraph import Paragraph
from fpdf.enums import Align
from fpdf.fonts import FontFace
from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode

from rag.language import translated
from rag.records.report_pdf import ACCENT, IN_ARABIC, INK, PAPER, QUIET, ReportPdf, is_right_to_left
from rag.types import Conversation, Message, page_path, title_with_pages

PARSER = MarkdownIt("commonmark", {"html": False}).enable("table").disable(["link", "image", "autolink", "html_inline"])
LINK_COLOR = RGBColor(0x1F, 0x4F, 0xA8)
#: The beginning of HTML, a link or an image in Markdown. Answers contain none.
ACTING = re.compile(r"<|(?<=\])[(:\[]")
#: Characters XML cannot hold, and lone surrogates.
UNSTORABLE = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
#: Marks setting the direction of the following text.
TURNING = re.compile("[\u202a-\u202e\u2066-\u2069]")
#: Nested lists are indented by at most this much. A table in the PDF has at most so many columns.
DEEPEST_MM, MOST_COLUMNS = 40, 10
#: Length of a title at the foot of a page.
FOOT_CHARACTERS = 90
#: Paragraph properties after the direction.
AFTER_BIDI = ("w:adjustRightInd", "w:snapToGrid", "w:spacing", "w:ind", "w:contextualSpacing", "w:jc", "w:outlineLvl")


def to_markdown(conversation: Conversation, messages: Sequence[Message], *, address: str) -> str:
    """Write questions, answers and sources as Markdown.

    `address` is the product's address, without a trailing slash.
    """
    lines = [f"# {_escape(conversation.title)}", ""]
    for message in messages:
        if message.role == "user":
            lines += [*(f"> {_escape(line)}" for line in message.content.splitlines()), ""]
            continue
        lines += [_escape_markup(message.content) or f"_{_escape(translated(message.notice))}_", ""]
        for source in message.citations:
            lines.append(f"- [{source['number']}] [{_escape(_title(source))}]({_link(source, address)})")
        if message.citations:
            lines.append("")
        if message.help_status == "answered":
            lines += [f"**{_escape(message.help_by)}:** {_escape(message.help_answer)}", ""]
    return "\n".join(lines).rstrip() + "\n"


def to_docx(conversation: Conversation, messages: Sequence[Message], *, address: str) -> bytes:
    """Write the conversation to a Word document; see `to_markdown`."""
    document = new_document()
    document.core_properties.title = _storable(conversation.title)[:255]
    document.add_heading(_storable(conversation.title), 1)
    for message in messages:
        if message.role == "user":
            document.add_heading(_storable(" ".join(message.content.split())), 2)
            continue
        if message.content:
            _add_blocks(document, SyntaxTreeNode(PARSER.parse(message.content)))
        else:
            document.add_paragraph().add_run(_storable(translated(message.notice))).italic = True
        for source in message.citations:
            line = document.add_paragraph(f"[{source['number']}] ", style="List Bullet")
            _add_link(line, _title(source), _link(source, address))
        if message.help_status == "answered":
            document.add_paragraph().add_run(_storable(message.help_by)).bold = True
            document.add_paragraph(_storable(message.help_answer))
    cells = [cell for table in document.tables for row in table.rows for cell in row.cells]
    for paragraph in [*document.paragraphs, *(each for cell in cells for each in cell.paragraphs)]:
        if is_right_to_left(paragraph.text):
            _turn_right_to_left(paragraph)
    buffer = io.BytesIO()
    document.save(buffer)
    return buffer.getvalue()


def to_pdf(conversation: Conversation, messages: Sequence[Message], *, address: str) -> bytes:
    """Write the conversation to a PDF; see `to_markdown`."""
    content = "".join(f"{m.content}{translated(m.notice)}{m.help_by}{m.help_answer}{m.citations}" for m in messages)
    page = ReportPdf(_printable(conversation.title)[:FOOT_CHARACTERS], conversation.title + content)
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
            link = _Run(_title(source), link=_link(source, address))
            _write(page, [_Run(f"[{source['number']}] "), link], size=9, indent=4)
        if message.help_status == "answered":
            _write(page, [_Run(f"{message.help_by}: ", is_bold=True), _Run(message.help_answer)])
    return page.finish()


def _add_blocks(document: Any, node: SyntaxTreeNode, style: str | None = None) -> None:
    for child in node.children:
        match child.type:
            case "paragraph" | "heading":
                _add_runs(document.add_paragraph(style=style), child.children[0])
            case "bullet_list" | "ordered_list":
                listed = "List Bullet" if child.type == "bullet_list" else "List Number"
                for item in child.children:
                    _add_blocks(document, item, listed)
            case "table":
                rows = [row.children for part in child.children for row in part.children]
                table = document.add_table(len(rows), len(rows[0]), style="Table Grid")
                for at, row in enumerate(rows):
                    for column, cell in enumerate(row):
                        _add_runs(table.cell(at, column).paragraphs[0], cell.children[0], is_bold=at == 0)
            case "fence" | "code_block":
                document.add_paragraph(_storable(child.content), style=style)
            case _:
                _add_blocks(document, child, style)


def _add_runs(paragraph: Paragraph, node: SyntaxTreeNode, *, is_bold: bool = False, is_italic: bool = False) -> None:
    for child in node.children:
        match child.type:
            case "strong":
                _add_runs(paragraph, child, is_bold=True, is_italic=is_italic)
            case "em":
                _add_runs(paragraph, child, is_bold=is_bold, is_italic=True)
            case "softbreak":
                paragraph.add_run(" ")
            case "hardbreak":
                paragraph.add_run().add_break()
            case _:
                run = paragraph.add_run(_storable(child.content))
                run.bold, run.italic = is_bold or None, is_italic or None


def _add_link(paragraph: Paragraph, text: str, address: str) -> None:
    # python-docx can read links but not write them.
    link = OxmlElement("w:hyperlink")
    link.set(qn("r:id"), paragraph.part.relate_to(address, RELATIONSHIP_TYPE.HYPERLINK, is_external=True))
    run = paragraph.add_run(_storable(text))
    run.font.color.rgb, run.font.underline = LINK_COLOR, True
    link.append(run._r)  # noqa: SLF001 - where a run keeps its element
    paragraph._p.append(link)  # noqa: SLF001


@dataclass(frozen=True)
class _Run:
    """A part of a line in the PDF, in a single style: bold or not, with or without a link."""

    text: str
    is_bold: bool = False
    link: str = ""


def _write_blocks(page: ReportPdf, node: SyntaxTreeNode, *, bullet: str = "", indent: float = 0) -> None:
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


def _write_table(page: ReportPdf, rows: Sequence[Sequence[SyntaxTreeNode]]) -> None:
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
    page: ReportPdf, runs: Sequence[_Run], *, size: float = 10.5, color: tuple[int, int, int] = INK, indent: float = 0
) -> None:
    """Write a paragraph to the PDF. Text containing Arabic goes to `_write_arabic`."""
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
    page: ReportPdf, runs: Sequence[_Run], text: str, *, size: float, color: tuple[int, int, int]
) -> None:
    """Write a paragraph containing Arabic, in a single style, because shaping and ordering letters needs the whole
    text.
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


def _title(source: dict[str, Any]) -> str:
    """Return a source's link text: `Handbook (handbook.pdf), p. 3–4, HR documents`."""
    first_page, last_page = int(source.get("first_page") or 1), int(source.get("last_page") or 1)
    title, file_name = (str(source.get(name) or "") for name in ("title", "file_name"))
    label = f"{title} ({file_name})" if title and file_name and title != file_name else title or file_name
    return ", ".join(
        filter(None, [title_with_pages(label, first_page, last_page), str(source.get("collection") or "")])
    )


def _link(source: dict[str, Any], address: str) -> str:
    return address + page_path(source["document_id"], int(source.get("first_page") or 1))


def _escape(text: str) -> str:
    return "".join(f"\\{c}" if c in r"\`*_{}[]()<>#!|~" else c for c in text)


def _escape_markup(answer: str) -> str:
    """Escape the parts in an answer's Markdown which other programs would render as links, images or HTML."""
    # As entities: a backslash would undo a backslash in the text.
    return ACTING.sub(lambda match: f"&#{ord(match[0])};", answer)


def _storable(text: str) -> str:
    """Remove characters that XML cannot hold."""
    return UNSTORABLE.sub("", text)


def _turn_right_to_left(paragraph: Paragraph) -> None:
    # python-docx sets a run's direction but not a paragraph's.
    properties = paragraph._p.get_or_add_pPr()  # noqa: SLF001
    properties.insert_element_before(OxmlElement("w:bidi"), *AFTER_BIDI)
    for run in paragraph.runs:
        run.font.rtl = True
