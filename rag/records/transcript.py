"""Write a conversation to a Markdown or Word file, with links to the cited pages."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from typing import Any

from docx import Document as new_document
from docx.opc.constants import RELATIONSHIP_TYPE
from docx.oxml import OxmlElement
from docx.oxml.ns import qn
from docx.shared import RGBColor
from docx.text.paragraph import Paragraph
from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode

from rag.language import is_right_to_left, translated
from rag.types import Conversation, Message, page_path, title_with_pages

PARSER = MarkdownIt("commonmark", {"html": False}).enable("table").disable(["link", "image", "autolink", "html_inline"])
LINK_COLOR = RGBColor(0x1F, 0x4F, 0xA8)
#: The beginning of HTML, a link or an image in Markdown. Answers contain none.
ACTING = re.compile(r"<|(?<=\])[(:\[]")
#: Characters XML cannot hold, and lone surrogates.
UNSTORABLE = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
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
            lines.append(f"- [{source['number']}] [{_escape(source_title(source))}]({source_link(source, address)})")
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
            _add_link(line, source_title(source), source_link(source, address))
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


def source_title(source: dict[str, Any]) -> str:
    """Return a source's link text: `Handbook (handbook.pdf), pp. 3–4, HR documents`."""
    first_page, last_page = int(source.get("first_page") or 1), int(source.get("last_page") or 1)
    title, file_name = (str(source.get(name) or "") for name in ("title", "file_name"))
    label = f"{title} ({file_name})" if title and file_name and title != file_name else title or file_name
    return ", ".join(
        filter(None, [title_with_pages(label, first_page, last_page), str(source.get("collection") or "")])
    )


def source_link(source: dict[str, Any], address: str) -> str:
    return address + page_path(source["document_id"], int(source.get("first_page") or 1))


def _escape(text: str) -> str:
    return "".join(f"\\{c}" if c in r"\`*_{}[]()<>#!|~" else c for c in text)


def _escape_markup(answer: str) -> str:
    # As entities: a backslash would undo a backslash in the text.
    return ACTING.sub(lambda match: f"&#{ord(match[0])};", answer)


def _storable(text: str) -> str:
    return UNSTORABLE.sub("", text)


def _turn_right_to_left(paragraph: Paragraph) -> None:
    # python-docx sets a run's direction but not a paragraph's.
    properties = paragraph._p.get_or_add_pPr()  # noqa: SLF001
    properties.insert_element_before(OxmlElement("w:bidi"), *AFTER_BIDI)
    for run in paragraph.runs:
        run.font.rtl = True
