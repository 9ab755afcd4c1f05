"""Draw a document's page beside the answer, with the cited passage marked. Files without pages are shown as text.

Image and file come from our routes, which check the reader's session each time. Streamlit's media files are not used,
because their addresses are not tied to a person.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from html import escape
from uuid import UUID

import streamlit as st

from rag import language
from rag.answering.citations import count_terms, telling_span
from rag.errors import NotFound
from rag.ingestion.loaders.format_table import file_formats
from rag.language import _
from rag.library.documents import DocumentLibrary
from rag.text.spans import join_pages, page_starts
from rag.types import Citation, Document, DocumentChunk, DocumentPage, Who, page_path
from rag.ui.board import draw_post, is_post
from rag.ui.text import marked, plain

#: Page sizes, in percent of the view's width.
ZOOMS = (100, 150, 200)
#: Originals shown in the browser; others are saved.
PICTURED = frozenset(loader.media_type for loader in file_formats().loaders if loader.may_be_pictures)
VIEWED_TYPES = tuple(loader.media_type for loader in file_formats().loaders if loader.served != "saved")


def page_image_url(
    document_id: UUID, page: int, chunk_id: UUID | None = None, sentence: tuple[int, int] | None = None
) -> str:
    highlight = f"?highlight={chunk_id}" if chunk_id else ""
    if chunk_id and sentence:
        # Position instead of text: addresses are logged.
        highlight += f"&sentence_start={sentence[0]}&sentence_end={sentence[1]}"
    return f"/api/documents/{document_id}/pages/{page}.png{highlight}"


def open_page_view(
    documents: DocumentLibrary,
    who: Who,
    document_id: UUID,
    *,
    page: int = 1,
    cited: Citation | None = None,
    on_close: Callable[[], None] | None = None,
) -> None:
    """Draw the page view with the passage of `cited` highlighted.

    It is next to the answer or, on a narrow screen, above the answer. Call this in each run while the page view is
    open. `on_close` runs when a person closes it. `st.session_state.page_view_page` holds the number of the page shown.
    """
    chunk_id = cited.chunk_id if cited else None
    section, passage, terms = (cited.section, cited.passage, cited.matched_terms) if cited else ("", "", ())
    with st.container(key="page_view", gap="small"):
        with st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center", wrap=False):
            heading = st.container(gap=None)
            st.button(
                _("Close"),
                key="page_view_close",
                icon=":material/close:",
                type="tertiary",
                help=_("Close (Esc)"),
                shortcut="Esc",
                on_click=on_close,
            )
        try:
            document = documents.get(who, document_id)
        except NotFound:
            st.info(_("This document has been deleted."), icon=":material/info:")
            return
        heading.markdown(f"**{plain(document.title)}**")
        if is_post(document):
            text = "\n".join(page.text for page in documents.pages(who, document_id))
            draw_post(document, text, passage=passage, terms=terms)
            return
        # Equal titles are distinguished by their files.
        place = " · ".join(plain(part) for part in (document.file_name, section) if part)
        heading.markdown(f":small[:gray[{place}]]")
        if has_pictures(document):
            sentence = telling_span(passage, terms)
            _draw_picture(document, documents, page, chunk_id, sentence, has_passage=bool(passage))
        else:
            _draw_text(document, documents, chunk_id, telling_span(passage, terms))
        if passage:
            with st.expander(_("Cited passage as text")):
                st.markdown(marked(passage, terms))


def picture_html(address: str, alt: str, *, zoom_percent: int = 100, over: str = "") -> str:
    """Return the HTML for a PDF page's image from our route, which checks the reader's rights.

    Until the image loads, an uncoloured box with a page's height reserves the space: nothing jumps or flashes. `over`
    is HTML to overlay.
    """
    return (
        '<div tabindex="0" style="overflow:auto;border:1px solid rgba(128,138,165,.35);border-radius:8px">'
        f'<div style="position:relative;overflow:hidden;width:{zoom_percent}%">'
        f'<img src="{escape(address, quote=True)}" alt="{escape(alt, quote=True)}" '
        'style="display:block;width:100%;max-width:none;aspect-ratio:auto 210/297;min-height:320px">'
        f"{over}</div></div>"
    )


def has_pictures(document: Document) -> bool:
    """Whether a document has page images; other files have only text."""
    return document.mime_type in PICTURED


def is_pdf(document: Document) -> bool:
    return document.mime_type == "application/pdf"


def draw_original_link(document: Document, *, key: str, page: int = 1) -> None:
    """Draw a link to the original file. Safe types open in a new tab; other types are saved."""
    is_shown = document.mime_type in VIEWED_TYPES
    st.link_button(
        _("Open PDF") if is_pdf(document) else _("Open original") if is_shown else _("Save original"),
        page_path(document.id, page) if is_pdf(document) else f"/api/documents/{document.id}/file",
        key=key,
        icon=":material/open_in_new:" if is_shown else ":material/download:",
        help=_("Opens the original in a new tab.") if is_shown else _("Saves the original on this computer."),
    )


def _draw_picture(
    document: Document,
    documents: DocumentLibrary,
    page: int,
    chunk_id: UUID | None,
    sentence: tuple[int, int] | None,
    *,
    has_passage: bool,
) -> None:
    last_page = max(document.page_count, 1)
    current = min(max(int(st.session_state.get("page_view_page") or page), 1), last_page)

    def draw_tools() -> None:
        _draw_zoom()
        draw_original_link(document, key="page_view_open", page=current)

    _draw_navigation(current, last_page, _("Page"), turn_to, draw_tools)
    if any(row.is_corrected for row in documents.pages(document.tenant_id, document.id, limit=1, offset=current - 1)):
        st.caption(f":material/edit_note: {_('A person corrected the text of this page.')}")
    st.html(
        picture_html(
            page_image_url(document.id, current, chunk_id, sentence),
            _("Page {shown} of {title}", shown=current, title=document.title),
            zoom_percent=st.session_state.page_view_zoom,
        )
    )
    if has_passage and current != page:
        _draw_way_back(_("Back to page {page}", page=page), turn_to, page)


def _draw_zoom() -> None:
    state = st.session_state
    state.setdefault("page_view_zoom", ZOOMS[0])

    def choose() -> None:
        state.page_view_zoom = ZOOMS[(ZOOMS.index(state.page_view_zoom) + 1) % len(ZOOMS)]

    st.button(
        language.percentage(state.page_view_zoom / 100, 0),
        key="page_view_zoom_button",
        icon=":material/zoom_in:",
        type="tertiary",
        help=_("Enlarges the pages. A second click fits them to the width of the view again."),
        on_click=choose,
    )


def _draw_text(
    document: Document, documents: DocumentLibrary, chunk_id: UUID | None, sentence: tuple[int, int] | None
) -> None:
    pages = documents.pages(document.tenant_id, document.id)
    text = join_pages(pages)
    chunks = documents.chunks(document.tenant_id, document.id, chunk_id=chunk_id) if chunk_id else []
    span = (chunks[0].start_character, chunks[0].end_character) if chunks else None
    parts = parts_of(text, span[0] if span else 0)
    first = part_with(parts, span[0]) + 1 if span else 1
    opened = f"{document.id} {chunk_id}"
    # Another passage opens at the right part, whatever page was open before.
    stored = st.session_state.get("page_view_part")
    current = min(stored[1], len(parts)) if stored and stored[0] == opened else first

    def open_part(part: int) -> None:
        st.session_state.page_view_part = (opened, part)

    _draw_navigation(
        current, len(parts), _("Part"), open_part, lambda: draw_original_link(document, key="page_view_open")
    )
    if any(page.is_corrected for page in pages):
        st.caption(f":material/edit_note: {_('A person corrected the text of this document.')}")
    start, end = parts[current - 1]
    mark = (max(span[0] - start, 0), min(span[1], end) - start) if span else None
    strong = None
    if span and sentence:
        # Search the text itself: the chunker may have added a table header before a passage.
        words = chunks[0].content[slice(*sentence)].split()
        match = re.compile(r"\s+".join(map(re.escape, words))).search(text, *span) if words else None
        strong = (match.start() - start, match.end() - start) if match else None
    st.html(
        text_html(
            text[start:end],
            mark=mark,
            strong=strong,
            label=_("Part {shown} of {title}", shown=current, title=document.title),
        )
    )
    if span and current != first:
        _draw_way_back(_("Back to the passage"), open_part, first)


def _draw_navigation(
    current: int, total: int, unit: str, on_turn: Callable[[int], None], draw_link: Callable[[], None]
) -> None:
    # An Arabic page begins on the right, and the next page is on the left.
    back, on = ("Right", "Left") if language.direction() == "rtl" else ("Left", "Right")
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        # Never disabled: a button disabled while focused loses the focus.
        st.button(
            _("Previous"),
            key="page_view_previous",
            shortcut=back,
            icon=f":material/chevron_{back.lower()}:",
            on_click=on_turn,
            args=(max(current - 1, 1),),
        )
        st.button(
            _("Next"),
            key="page_view_next",
            shortcut=on,
            icon=f":material/chevron_{on.lower()}:",
            icon_position="right",
            on_click=on_turn,
            args=(min(current + 1, total),),
        )
        st.markdown(_(":gray[{unit} {shown} of {last}]", unit=unit, shown=current, last=total), width="content")
        st.space("stretch")
        draw_link()


def _draw_way_back(words: str, on_turn: Callable[[int], None], place: int) -> None:
    st.button(words, key="page_view_back", icon=":material/undo:", type="tertiary", on_click=on_turn, args=(place,))


def page_of(documents: DocumentLibrary, who: Who, citation: Citation) -> int:
    """Return the number of the page to open for a citation.

    If the passage spans several pages, this is the page with the most marked words.
    """
    if citation.first_page == citation.last_page:
        return citation.first_page
    chunks = documents.chunks(who, citation.document_id, chunk_id=citation.chunk_id)
    if not chunks:  # was chunked again since, or deleted
        return citation.first_page
    return page_with_most(citation.matched_terms, documents.pages(who, citation.document_id), chunks[0])


def turn_to(page: int) -> None:
    """Set the page number for the page view. Call this in the callback which opens the page view."""
    st.session_state.page_view_page = page


#: Part size in characters: short enough to read without much scrolling; a part ends at a nearby line end.
PART_CHARACTERS = 3000


#: Characters to show before the passage, few enough for the passage to be in view.
LEAD_CHARACTERS = 300


LINE_END = re.compile(r"\n+")


#: Colours for a passage and for its cited sentence, over light and dark.
MARK = "background:rgba(255,208,0,.18);color:inherit;border-radius:3px"
STRONG_MARK = "background:rgba(255,208,0,.55);color:inherit;border-radius:3px"


def page_with_most(terms: Sequence[str], pages: Sequence[DocumentPage], passage: DocumentChunk) -> int:
    """Return the number of the passage's page with the most of these words; on a tie, the earliest page."""
    best, most = passage.first_page, 0
    for page, start in zip(pages, page_starts(pages), strict=False):
        if passage.first_page <= page.number <= passage.last_page:
            span = slice(max(passage.start_character - start, 0), max(passage.end_character - start, 0))
            matches = count_terms(terms, page.text[span])
            if matches > most:
                best, most = page.number, matches
    return best


def parts_of(text: str, passage: int = 0) -> list[tuple[int, int]]:
    """Split a text into parts to show separately, and return their spans (start, end), at least one.

    A part starts shortly before the character offset `passage`.
    """
    place = text.rfind("\n", 0, max(passage - LEAD_CHARACTERS, 0)) + 1
    before = list(_parts_between(text, 0, place)) if place else []
    return [*before, *_parts_between(text, place, len(text))]


def _parts_between(text: str, start: int, stop: int) -> Iterator[tuple[int, int]]:
    while stop - start > PART_CHARACTERS * 4 // 3:
        ends = [m.end() for m in LINE_END.finditer(text, start + PART_CHARACTERS // 2, start + PART_CHARACTERS)]
        end = ends[-1] if ends else start + PART_CHARACTERS
        yield start, end
        start = end
    yield start, stop


def part_with(parts: Sequence[tuple[int, int]], position: int) -> int:
    """Return the index of the part which contains the position."""
    return next((index for index, (_, end) in enumerate(parts) if position < end), len(parts) - 1)


def text_html(
    text: str,
    *,
    mark: tuple[int, int] | None = None,
    strong: tuple[int, int] | None = None,
    label: str = "",
) -> str:
    """Build HTML for a text which can be scrolled by keyboard.

    `mark` is the span (start, end) to highlight. `strong` is a span within `mark` to highlight more.
    """
    if mark is not None and mark[0] < mark[1]:
        start, end = max(mark[0], 0), min(mark[1], len(text))
        first, last = (min(max(at, start), end) for at in strong or (start, start))
        inner = escape(text[start:end])
        if first < last:
            marked_text = f'<mark style="{STRONG_MARK}">{escape(text[first:last])}</mark>'
            inner = f"{escape(text[start:first])}{marked_text}{escape(text[last:end])}"
        body = f'{escape(text[:start])}<mark style="{MARK}">{inner}</mark>{escape(text[end:])}'
    else:
        body = escape(text)
    return (
        f'<div dir="auto" role="region" aria-label="{escape(label, quote=True)}" tabindex="0" style="'
        "white-space:pre-wrap;"
        f"overflow-wrap:anywhere;font-size:.9rem;line-height:1.6;max-height:560px;overflow:auto;padding:12px;"
        f'border:1px solid rgba(128,138,165,.35);border-radius:8px">{body}</div>'
    )
