"""A conversation as a file: what is said, where it comes from by links that open, and nothing that acts."""

from __future__ import annotations

import io
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import docx
from docx.opc.constants import RELATIONSHIP_TYPE
from markdown_it import MarkdownIt

from rag.records.transcript import to_docx, to_markdown
from rag.types import Conversation, Message, MessageState, Outcome, page_path

ADDRESS = "https://hr.example.com"
DOCUMENT = UUID(int=7)
NOW = datetime(2026, 3, 1, tzinfo=UTC)
HOSTILE = (
    "</script><img src=x onerror=alert(1)> [here](javascript:alert(1)) \\<b>\n[a]: javascript:alert(2)\n[a][a] \x00\x0b"
)
ARABIC = "كم يوم إجازة سنوية لدي؟"


def conversation(title: str = "Annual leave") -> Conversation:
    return Conversation(id=uuid4(), title=title, collection_id=uuid4(), created_at=NOW, updated_at=NOW)


def message(role: Any, content: str, **more: Any) -> Message:
    values: dict[str, Any] = {"notice": "", "citations": [], "outcome": None} | more
    return Message(
        id=uuid4(),
        conversation_id=uuid4(),
        role=role,
        content=content,
        state=MessageState.COMPLETE,
        chat_log_id=None,
        cost=None,
        total_ms=None,
        rating=None,
        created_at=NOW,
        **values,
    )


def source(number: int, title: str) -> dict[str, Any]:
    named = {"title": title, "file_name": "handbook.pdf", "collection": "HR documents"}
    return {"number": number, **named, "document_id": str(DOCUMENT), "first_page": 3, "last_page": 4}


TALK = [
    message("user", "How many days?\nAnd for part-time?"),
    message(
        "assistant",
        "You have **25 days** [1].\n\n| Years | Days |\n|---|---|\n| 5 | *28* |\n\n- booked early\n- in the portal",
        citations=[source(1, "Handbook [2026]")],
        outcome=Outcome.ANSWERED,
        help_status="answered",
        help_by="Kim",
        help_answer="Part-time is pro rata.",
    ),
    message("user", ARABIC),
    message("assistant", "", notice="Nothing in the documents answers this."),
]


def linked(written: bytes) -> tuple[Any, list[str]]:
    """The document of Word, and where its links lead."""
    document = docx.Document(io.BytesIO(written))
    relations = document.part.rels.values()
    return document, [r.target_ref for r in relations if r.reltype == RELATIONSHIP_TYPE.HYPERLINK]


def test_both_files_hold_questions_answers_a_persons_answer_and_links_to_the_pages() -> None:
    link = ADDRESS + page_path(DOCUMENT, 3)
    document, links = linked(to_docx(conversation(), TALK, address=ADDRESS))
    assert links == [link]
    paragraphs = [p.text for p in document.paragraphs]
    assert paragraphs[0] == "Annual leave"
    assert "How many days? And for part-time?" in paragraphs
    assert "[1] Handbook [2026] (handbook.pdf), pp. 3–4, HR documents" in paragraphs
    assert {"booked early", "Kim", "Part-time is pro rata.", ARABIC} <= set(paragraphs)
    assert [[cell.text for cell in row.cells] for row in document.tables[0].rows] == [["Years", "Days"], ["5", "28"]]
    answer = next(p for p in document.paragraphs if "25 days" in p.text)
    assert [run.text for run in answer.runs if run.bold] == ["25 days"]
    notice = next(p for p in document.paragraphs if p.text.startswith("Nothing in"))
    assert notice.runs[0].italic

    html = MarkdownIt("commonmark").enable("table").render(to_markdown(conversation(), TALK, address=ADDRESS))
    assert f'<a href="{link}">Handbook [2026] (handbook.pdf), pp. 3–4, HR documents</a>' in html
    assert "<strong>25 days</strong>" in html
    assert "<strong>Kim:</strong> Part-time is pro rata." in html
    assert ARABIC in html
    assert "<em>Nothing in the documents answers this.</em>" in html


def test_hostile_text_neither_breaks_a_file_nor_becomes_a_link_or_markup() -> None:
    by_hand = {"help_status": "answered", "help_by": HOSTILE, "help_answer": HOSTILE}
    talk = [message("user", HOSTILE), message("assistant", HOSTILE, citations=[source(1, HOSTILE)], **by_hand)]
    document, links = linked(to_docx(conversation(HOSTILE), talk, address=ADDRESS))
    assert links == [ADDRESS + page_path(DOCUMENT, 3)]
    assert all("\x00" not in p.text for p in document.paragraphs)
    assert sum("onerror=alert(1)" in p.text for p in document.paragraphs) == 6, "kept as text, each time it was said"

    html = MarkdownIt("commonmark").render(to_markdown(conversation(HOSTILE), talk, address=ADDRESS))
    assert "<img" not in html
    assert "</script" not in html
    assert "<b>" not in html
    assert 'href="javascript' not in html


def test_right_to_left_text_is_marked_so_for_word() -> None:
    document, _links = linked(to_docx(conversation(ARABIC), TALK[2:], address=ADDRESS))
    marked = [p for p in document.paragraphs if p._p.pPr is not None and p._p.pPr.xpath("w:bidi")]
    assert [p.text for p in marked] == [ARABIC, ARABIC]
    assert all(run._r.xpath("w:rPr/w:rtl") for p in marked for run in p.runs)
