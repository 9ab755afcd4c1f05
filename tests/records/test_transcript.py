"""A conversation as a file: what is said, where it comes from by links that open, and nothing that acts."""

from __future__ import annotations

import io
import sys
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import docx
import pypdfium2
from docx.opc.constants import RELATIONSHIP_TYPE
from fontTools.ttLib import TTFont
from markdown_it import MarkdownIt
from pypdf import PdfReader

from rag.records.report_pdf import bold_font
from rag.records.transcript import to_docx, to_markdown, to_pdf
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
    assert "[1] Handbook [2026] (handbook.pdf), p. 3–4, HR documents" in paragraphs
    assert {"booked early", "Kim", "Part-time is pro rata.", ARABIC} <= set(paragraphs)
    assert [[cell.text for cell in row.cells] for row in document.tables[0].rows] == [["Years", "Days"], ["5", "28"]]
    answer = next(p for p in document.paragraphs if "25 days" in p.text)
    assert [run.text for run in answer.runs if run.bold] == ["25 days"]
    notice = next(p for p in document.paragraphs if p.text.startswith("Nothing in"))
    assert notice.runs[0].italic

    html = MarkdownIt("commonmark").enable("table").render(to_markdown(conversation(), TALK, address=ADDRESS))
    assert f'<a href="{link}">Handbook [2026] (handbook.pdf), p. 3–4, HR documents</a>' in html
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


def printed(written: bytes) -> tuple[str, list[str]]:
    """The text of a PDF, and where its links lead."""
    document = pypdfium2.PdfDocument(written)
    text = "\n".join(page.get_textpage().get_text_range() for page in document)
    document.close()
    pages = PdfReader(io.BytesIO(written)).pages
    notes = [note.get_object() for page in pages for note in page.get("/Annots", ())]
    return text, [note["/A"]["/URI"] for note in notes if "/A" in note]


def test_a_pdf_holds_the_same_and_nothing_hostile_acts_in_it() -> None:
    link = ADDRESS + page_path(DOCUMENT, 3)
    text, links = printed(to_pdf(conversation(), TALK, address=ADDRESS))
    assert set(links) == {link}
    said = " ".join(text.split())
    for wanted in ("Annual leave", "How many days? And for part-time?", "You have 25 days [1].", "Years Days 5 28"):
        assert wanted in said
    source_line = "[1] Handbook [2026] (handbook.pdf), p. 3–4, HR documents"
    assert f"• booked early • in the portal {source_line} Kim: Part-time is pro rata." in said
    assert "Nothing in the documents answers this." in said

    hostile = f"{HOSTILE}\u202e\ud83d **__--~~ \U0001f600"
    wide = "\n".join(["|" + "a|" * 12, "|" + "-|" * 12, "|" + "b|" * 12])
    deep = "".join(f"{'  ' * depth}- {depth}\n" for depth in range(40))
    empty = "||\n|---|\n||"
    talk = [message("user", hostile)]
    talk += [message("assistant", each, citations=[source(1, hostile)]) for each in (hostile, wide, deep, empty, "1")]
    talk.append(message("assistant", "word" * 2000, help_status="answered", help_by="", help_answer=hostile))
    text, links = printed(to_pdf(conversation(hostile), talk, address=ADDRESS))
    assert set(links) == {link}, "no address that somebody wrote"
    assert "onerror=alert(1)" in text
    assert "\u202e" not in text
    assert printed(to_pdf(conversation(""), [message("user", ""), message("assistant", "")], address=ADDRESS))[1] == []


def test_bold_letters_of_a_pdf_are_those_of_its_text_in_any_european_script(tmp_path: Path) -> None:
    title = "Grüße, Ďáblova Řeč, Отпуск, Άδεια"
    with TTFont(bold_font(title, tmp_path)) as font:
        assert font["OS/2"].usWeightClass == 650
        assert set(map(ord, title)) <= font.getBestCmap().keys()
    page = pypdfium2.PdfDocument(to_pdf(conversation(title), TALK, address=ADDRESS))[0].get_textpage()
    assert title in page.get_text_bounded()


def test_a_pdf_is_not_worth_waiting_for() -> None:
    """Of a font with all its letters, a bold one is twenty million calls: eight seconds of a machine at rest."""
    calls = 0

    def count(frame: object, event: str, found: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        to_pdf(conversation(), TALK[:1], address=ADDRESS)
    finally:
        sys.setprofile(None)
    assert calls < 3_000_000


def test_right_to_left_text_of_a_pdf_is_joined_and_runs_from_the_right() -> None:
    document = pypdfium2.PdfDocument(to_pdf(conversation("Leave"), TALK[2:3], address=ADDRESS))
    page = document[0].get_textpage()
    places = [
        (page.get_text_range(at, 1), page.get_charbox(at))
        for at in range(page.count_chars())
        if "\u0600" <= page.get_text_range(at, 1) <= "\u06ff"
    ]
    document.close()
    assert len(places) >= len(ARABIC.replace(" ", "")) - 3, "a font with its letters"
    assert max(box[2] for _, box in places) > 500, "from the right margin"
    # What is read first stands farthest to the right.
    lefts = [box[0] for _, box in places]
    assert sum(b <= a + 1 for a, b in pairwise(lefts)) > 0.8 * len(lefts) or lefts == sorted(lefts)
