"""Draw a document page by page, each page's text beside its picture; and draw the list of chunks.

Boxes on a page's picture mark tables, headings, notes, and omitted text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import pairwise

import streamlit as st

from rag import language
from rag.ingestion.loaders.page_text import PICTURED_PAGE
from rag.language import N_, _
from rag.library.documents import DocumentLibrary
from rag.types import Document, DocumentChunk, DocumentPage, MarkKind, PageMark
from rag.ui import lists
from rag.ui.formats import count, language_name, pages, thousands
from rag.ui.page_corrections import (
    Correcting,
    corrected_words,
    draw_corrector,
    draw_history,
    draw_waiting,
)
from rag.ui.page_view import has_pictures, page_image_url, picture_html
from rag.ui.text import plain

READ_BY = {"text": N_("Text"), "ocr": N_("Recognised text"), "none": N_("Nothing")}
#: The separator between cells in a table row.
CELL_EDGE = " | "
CELL = "border:1px solid rgba(128,138,165,.4);padding:.15rem .5rem;vertical-align:top;white-space:normal"
#: The beginning of the warning for pages with pictures read besides the text.
TEXT_AND_PICTURES = N_("Text + recognised")
#: Two alternating tints for chunks, and a tint for overlaps; visible in the light and the dark theme.
TINTS = ("rgba(64,132,255,.20)", "rgba(255,170,40,.22)")
OVERLAP_TINT = "rgba(190,80,220,.38)"
SCROLLED = "white-space:pre-wrap;overflow-wrap:anywhere;font-size:.86rem;line-height:1.6;max-height:640px;overflow:auto"


def read_by(page: DocumentPage) -> str:
    """Describe how a page's text was obtained, for example by text recognition."""
    if any(warning.startswith(TEXT_AND_PICTURES) for warning in page.warnings):
        return _(TEXT_AND_PICTURES)
    return _(READ_BY.get(page.method, page.method))


def draw_pages(document: Document, documents: DocumentLibrary, correcting: Correcting) -> None:
    """Draw each page as it was read: the picture beside the text, and tables as tables. The text can be corrected."""
    read = documents.pages(document.tenant_id, document.id)
    if not read:
        st.caption(_("No page has been read yet."))
        return
    history = correcting.corrections.of(correcting.identity, document)
    draw_waiting(document, read, history, correcting)
    _draw_report(document, read)
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        number = st.pagination(len(read), key=f"documents_page_{document.id}")
        with st.container(horizontal=True, width="content"):
            shows_marks = has_pictures(document) and st.toggle(
                _("Show marks"),
                True,
                key="documents_shows_marks",
                help=_(
                    "Shows on the picture of the page what was read as a table, a heading or a note, and what was "
                    "left out."
                ),
            )
            shows_chunks = st.toggle(
                _("Show passages"),
                key="documents_shows_chunks",
                help=_("Shows where passages begin and end, and which text they share."),
            )
    page = read[min(number, len(read)) - 1]
    facts = [
        _("Page {number}", number=page.number)
        + (_(" (printed {label})", label=plain(page.label)) if page.label else "")
    ]
    facts.append(count(page.characters, "character"))
    facts += [plain(language_name(page.language))] if page.language else []
    facts.append(_("read as {what}", what=plain(read_by(page).lower())))
    facts += [_("text recognition follows in the next step")] if page.number in document.ocr_pages else []
    st.caption(" · ".join(facts))
    for warning in page.warnings:
        st.caption(f":orange[:material/warning: {plain(language.translated(warning))}]")
    if correction := corrected_words(page, read, history):
        st.caption(f":material/edit_note: {plain(correction)}")
    image, text = st.columns(2) if has_pictures(document) else (None, st.container())
    with text:
        if draw_corrector(document, page, correcting):
            pass
        elif not page.text.strip():
            st.info(_("There is no text on this page."), icon=":material/image:")
        elif shows_chunks:
            start = sum(len(before.text) + 1 for before in read if before.number < page.number)
            chunks = documents.chunks(document.tenant_id, document.id)
            st.html(marked_page(page.text, start, chunks))
        else:
            st.html(page_html(page.text))
        draw_history(document, page, read, history)
    if image is not None:
        with image:
            _draw_picture(document, page, shows_marks=shows_marks)


def _draw_picture(document: Document, page: DocumentPage, *, shows_marks: bool) -> None:
    marks = marks_of(page) if shows_marks else []
    if marks is None:
        st.caption(
            _("There are no marks, because the text of this page comes from text recognition.")
            if page.method == "ocr"
            else _(
                "There are no marks for tables, headings or notes on this page. If the file was read by an older "
                "version of HR Assistant, read the file again."
            )
        )
    elif shows_marks:
        st.html(legend_html(marks))
    described = _("Page {number} as it is printed", number=page.number)
    st.html(picture_html(page_image_url(document.id, page.number), described, over=marks_html(marks or ())))


def page_html(text: str) -> str:
    """Convert a page's text to HTML, with table rows as a table."""
    pieces, rows = [], list[list[str]]()

    def end_table() -> None:
        if len(rows) > 1:
            cells = "".join(
                "<tr>" + "".join(f'<td style="{CELL}">{escape(cell)}</td>' for cell in row) + "</tr>" for row in rows
            )
            pieces.append(f'<table style="border-collapse:collapse;margin:.4rem 0">{cells}</table>')
        elif rows:
            pieces.append(escape(CELL_EDGE.join(rows[0])) + "\n")
        rows.clear()

    for line in text.split("\n"):
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")] if CELL_EDGE in line else []
        if rows and len(cells) != len(rows[0]):
            end_table()
        if cells:
            if not all(set(cell) <= set("-: ") for cell in cells):
                rows.append(cells)
        else:
            pieces.append(escape(line) + "\n")
    end_table()
    return _scroll_frame(_("Text of the page"), pieces)


def draw_comparison(documents: DocumentLibrary, old: Document, new: Document, differing: Sequence[int]) -> None:
    """Draw the pages which differ between two versions, side by side. Files without pages are compared as text."""
    place = 1
    if len(differing) > 1:
        place = st.pagination(len(differing), key=f"documents_differing_{new.id}")
    number = differing[min(place, len(differing)) - 1]
    for column, document, words in zip(
        st.columns(2),
        (old, new),
        (_("Version {version} (current)", version=old.version), _("The new file")),
        strict=True,
    ):
        with column:
            st.caption(_("{words} · page {number}", words=plain(words), number=number))
            if number > document.page_count:
                st.info(_("This version does not have this page."), icon=":material/remove:")
            elif has_pictures(document):
                described = _("Page {number} of {title}", number=number, title=document.title)
                st.html(picture_html(page_image_url(document.id, number), described))
            else:
                texts = {page.number: page.text for page in documents.pages(document.tenant_id, document.id)}
                st.html(page_html(texts.get(number, "")))


def marked_page(text: str, start: int, chunks: Sequence[DocumentChunk]) -> str:
    """Convert a page's text to HTML: chunks in alternating tints, numbered at their start, overlaps in a third tint.

    `start` is the page's offset in the document's joined text. The chunks' spans are offsets in the same text.
    """
    here = [c for c in chunks if c.start_character < start + len(text) and c.end_character > start]
    edges = {0, len(text)}
    for chunk in here:
        edges |= {min(max(edge - start, 0), len(text)) for edge in (chunk.start_character, chunk.end_character)}
    cuts = sorted(edges)
    pieces = []
    for first, last in pairwise(cuts):
        covering = [c for c in here if c.start_character <= start + first and c.end_character >= start + last]
        begins = [c.chunk_index + 1 for c in covering if c.start_character == start + first]
        badges = "".join(
            f'<b title="{escape(_("Passage {number} begins", number=n))}" style="font-size:.72em;opacity:.75">[{n}]</b>'
            for n in begins
        )
        words = escape(text[first:last])
        if not covering:
            pieces.append(words)
            continue
        tint = OVERLAP_TINT if len(covering) > 1 else TINTS[covering[0].chunk_index % 2]
        numbers = ", ".join(str(c.chunk_index + 1) for c in covering)
        title = escape(_("passage {numbers}", numbers=numbers), quote=True)
        pieces.append(f'<span title="{title}" style="background:{tint}">{badges}{words}</span>')
    return _scroll_frame(_("Text of the page"), pieces)


def _draw_report(document: Document, read: Sequence[DocumentPage]) -> None:
    troubled = [page for page in read if page.warnings or not page.text.strip()]
    number = count(len(read), "page")
    if troubled:
        remarks = thousands(len(troubled))
        words = _("How the pages were read: {pages}, {remarks} with remarks", pages=number, remarks=remarks)
    else:
        words = _("How the pages were read: {pages}, no remarks", pages=number)
    with st.expander(words, key=f"documents_report_{document.id}", on_change="rerun", type="compact") as report:
        if not report.open:
            return
        key = f"documents_report_table_{document.id}"

        def turn_to_selected() -> None:
            rows = st.session_state[key].selection.rows
            if rows:
                st.session_state[f"documents_page_{document.id}"] = rows[0] + 1

        st.caption(_("Select a row (Shift + Space on the keyboard) to open its page."))
        lists.draw(
            {
                _("Page"): [page.number for page in read],
                _("Printed page number"): [page.label for page in read],
                _("How it was read"): [read_by(page) for page in read],
                _("Characters"): [page.characters for page in read],
                _("Language"): [page.language for page in read],
                _("Remarks"): [
                    " ".join(map(language.translated, page.warnings))
                    or ("" if page.text.strip() else _("No text on this page"))
                    for page in read
                ],
            },
            key=key,
            on_select=turn_to_selected,
            selection_mode="single-row",
            alt=_("How each page of {title} was read", title=document.title),
        )


def draw_chunks(document: Document, documents: DocumentLibrary) -> None:
    """Draw the chunks as a table.

    Below it, draw the selected chunk in full and mark the text that it shares with its neighbours.
    """
    chunks = documents.chunks(document.tenant_id, document.id)
    if not chunks:
        st.caption(_("There are no passages until the document is processed."))
        return
    shared = [max(0, before.end_character - chunk.start_character) for before, chunk in pairwise(chunks)]
    chosen = lists.choose_row(
        chunks,
        {
            "#": lists.numbers((c.chunk_index + 1 for c in chunks), 50),
            _("Section"): lists.texts((c.section for c in chunks), 180),
            _("Pages"): lists.texts((pages(c.first_page, c.last_page) for c in chunks), 90),
            _("Tokens"): lists.numbers((c.tokens for c in chunks), 70),
            _("Repeated characters"): lists.numbers(
                [0, *shared], 75, help_text=_("Characters repeated from the end of the previous passage")
            ),
            _("Content"): lists.texts((" ".join(c.content.split()) for c in chunks), "large"),
        },
        key=f"documents_chunks_{document.id}",
        alt=_("Passages of {title}", title=document.title),
    )
    if chosen is None:
        st.caption(
            _(
                "Select a row (Shift + Space on the keyboard) to read the whole passage. On the Pages tab, Show "
                "passages marks them in the text."
            )
        )
        return
    _draw_chunk(document, chunks, chunks.index(chosen))


def _draw_chunk(document: Document, chunks: Sequence[DocumentChunk], index: int) -> None:
    chunk = chunks[index]
    vector = (
        _("prepared with {embedding_model}", embedding_model=chunk.embedding_model)
        if chunk.has_embedding
        else _("not prepared for the search by meaning yet")
    )
    st.caption(
        _(
            "Passage {value} · {first_page} · characters {start_character}–{end_character} · {vector}",
            value=chunk.chunk_index + 1,
            first_page=plain(pages(chunk.first_page, chunk.last_page)),
            start_character=thousands(chunk.start_character),
            end_character=thousands(chunk.end_character),
            vector=plain(vector),
        )
    )
    has_picture = has_pictures(document)
    text, image = st.columns(2) if has_picture else (st.container(), None)
    before = chunks[index - 1].end_character if index else 0
    after = chunks[index + 1].start_character if index + 1 < len(chunks) else chunk.end_character
    text.html(chunk_html(chunk, before, after))
    if image is not None:
        address = page_image_url(document.id, chunk.first_page, chunk.id)
        image.html(picture_html(address, _("Page {number} with this passage marked", number=chunk.first_page)))
    if chunk.metadata:
        with st.expander(_("Tags and metadata of this passage")):
            st.json(chunk.metadata)


def chunk_html(chunk: DocumentChunk, before: int, after: int) -> str:
    """Convert a chunk to HTML, tinted where it overlaps the previous and the next chunk.

    `before` is the offset where the previous chunk ends, `after` the offset where the next chunk starts, in characters
    of the document. Repository details at the start of a chunk are never tinted.
    """
    content = chunk.content
    front = len(content) - (chunk.end_character - chunk.start_character)
    head = min(max(before - chunk.start_character, 0) + front, len(content))
    tail = max(min(after - chunk.start_character + front, len(content)), head)
    pieces = [
        escape(content[:front]),
        _tinted(content[front:head], _("shared with the previous passage")),
        escape(content[head:tail]),
        _tinted(content[tail:], _("shared with the next passage")),
    ]
    return _scroll_frame(_("Text of the passage"), pieces)


def _scroll_frame(label: str, pieces: Sequence[str]) -> str:
    named = escape(label, quote=True)
    return f'<div dir="auto" style="{SCROLLED}" tabindex="0" role="region" aria-label="{named}">{"".join(pieces)}</div>'


def _tinted(text: str, title: str) -> str:
    return (
        f'<span title="{escape(title, quote=True)}" style="background:{OVERLAP_TINT}">{escape(text)}</span>'
        if text
        else ""
    )


@dataclass(frozen=True)
class MarkLook:
    """How a page mark (a box around a table or image) is drawn: names, sign, line and colour.

    The colours suit a white page, because page pictures are white in the dark theme too.
    """

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
    """Return a page's marks (boxes around tables, images and other parts); `None` if the marks are unknown.

    Images are marked only on pages with unread text in images, and are marked as left out.
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
    """Return the HTML for a page's marks (boxes around parts), laid over the page's picture at any size."""
    frames = "".join(_frame(mark, LOOKS[mark.kind]) for mark in marks)
    return f'<div aria-hidden="true">{frames}</div>' if frames else ""


def legend_html(marks: Sequence[PageMark]) -> str:
    """Return the HTML for the legend to a page's marks: each type of box with sign and number."""
    entries = []
    counts = Counter(mark.kind for mark in marks)
    is_recognised = counts["line"] + counts["unsure"] > 0
    for kind, look in LOOKS.items():
        if kind in OF_RECOGNITION and not is_recognised:
            continue
        number = thousands(counts[kind])
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
    # A page has many lines, too many for signs.
    sign_html = f'<span style="position:absolute;{sign};{SIGN};color:{look.colour}">{look.sign}</span>'
    sign_html = "" if mark.kind == "line" else sign_html
    return (
        f'<div title="{escape(_(look.one), quote=True)}" style="position:absolute;left:{mark.left:.2%};'
        f"top:{mark.top:.2%};width:{width:.2%};height:{height:.2%};outline:{look.line} {look.colour};"
        f'outline-offset:{offset};border-radius:2px">{sign_html}</div>'
    )
