"""Write a conversation as a file that is kept or sent on: Markdown, or a document of Word, with links to the pages."""

from __future__ import annotations

import io
import re
import unicodedata
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

from rag.types import Conversation, Message, page_path, title_with_pages

PARSER = MarkdownIt("commonmark", {"html": False}).enable("table").disable(["link", "image", "autolink", "html_inline"])
LINK_COLOR = RGBColor(0x1F, 0x4F, 0xA8)
#: What begins HTML, a link, an image or an address for one in Markdown: an answer has none of its own.
ACTING = re.compile(r"<|(?<=\])[(:\[]")
#: What XML cannot hold, and halves of characters.
UNSTORABLE = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
#: What comes after the direction of a paragraph among its properties.
AFTER_BIDI = ("w:adjustRightInd", "w:snapToGrid", "w:spacing", "w:ind", "w:contextualSpacing", "w:jc", "w:outlineLvl")


def to_markdown(conversation: Conversation, messages: Sequence[Message], *, address: str) -> str:
    """Return questions, answers and sources; `address` is where the product is reached, without a slash at its end."""
    lines = [f"# {_escaped(conversation.title)}", ""]
    for message in messages:
        if message.role == "user":
            lines += [*(f"> {_escaped(line)}" for line in message.content.splitlines()), ""]
            continue
        lines += [_inert(message.content) or f"_{_escaped(message.notice)}_", ""]
        for source in message.citations:
            lines.append(f"- [{source['number']}] [{_escaped(_title(source))}]({_link(source, address)})")
        if message.citations:
            lines.append("")
        if message.help_status == "answered":
            lines += [f"**{_escaped(message.help_by)}:** {_escaped(message.help_answer)}", ""]
    return "\n".join(lines).rstrip() + "\n"


def to_docx(conversation: Conversation, messages: Sequence[Message], *, address: str) -> bytes:
    """Return the same as a document of Word."""
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
            document.add_paragraph().add_run(_storable(message.notice)).italic = True
        for source in message.citations:
            line = document.add_paragraph(f"[{source['number']}] ", style="List Bullet")
            _add_link(line, _title(source), _link(source, address))
        if message.help_status == "answered":
            document.add_paragraph().add_run(_storable(message.help_by)).bold = True
            document.add_paragraph(_storable(message.help_answer))
    cells = [cell for table in document.tables for row in table.rows for cell in row.cells]
    for paragraph in [*document.paragraphs, *(each for cell in cells for each in cell.paragraphs)]:
        if _is_right_to_left(paragraph.text):
            _turn_right_to_left(paragraph)
    written = io.BytesIO()
    document.save(written)
    return written.getvalue()


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
    # python-docx reads links and writes none.
    link = OxmlElement("w:hyperlink")
    link.set(qn("r:id"), paragraph.part.relate_to(address, RELATIONSHIP_TYPE.HYPERLINK, is_external=True))
    run = paragraph.add_run(_storable(text))
    run.font.color.rgb, run.font.underline = LINK_COLOR, True
    link.append(run._r)  # noqa: SLF001 - where a run keeps its element
    paragraph._p.append(link)  # noqa: SLF001


def _title(source: dict[str, Any]) -> str:
    first, last = int(source.get("first_page") or 1), int(source.get("last_page") or 1)
    return title_with_pages(str(source.get("title") or source.get("file_name")), first, last)


def _link(source: dict[str, Any], address: str) -> str:
    return address + page_path(source["document_id"], int(source.get("first_page") or 1))


def _escaped(text: str) -> str:
    return "".join(f"\\{c}" if c in r"\`*_{}[]()<>#!|~" else c for c in text)


def _inert(answer: str) -> str:
    """Return an answer's Markdown without what other programs would make a link, an image or HTML of."""
    # As entities: a backslash would undo one that is there already.
    return ACTING.sub(lambda found: f"&#{ord(found[0])};", answer)


def _storable(text: str) -> str:
    """Leave out what XML cannot hold."""
    return UNSTORABLE.sub("", text)


def _is_right_to_left(text: str) -> bool:
    """Return whether the first letter of a text is of a script that is written from right to left."""
    first = next((kind for c in text if (kind := unicodedata.bidirectional(c)) in ("L", "R", "AL")), "L")
    return first != "L"


def _turn_right_to_left(paragraph: Paragraph) -> None:
    # python-docx sets the direction of a run, and none of a paragraph.
    properties = paragraph._p.get_or_add_pPr()  # noqa: SLF001
    properties.insert_element_before(OxmlElement("w:bidi"), *AFTER_BIDI)
    for run in paragraph.runs:
        run.font.rtl = True
