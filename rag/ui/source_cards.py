"""The cards under an answer: where a claim comes from, in the document's own words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date
from urllib.parse import urlsplit

import streamlit as st

from rag import language
from rag.ingestion.chunking.spans import PATH_SEPARATOR
from rag.language import _
from rag.retrieval.ranking import web_address, without_attachments
from rag.types import Citation
from rag.ui.board import marks_line
from rag.ui.formats import has_pages, pages
from rag.ui.source_chips import told_apart
from rag.ui.text import excerpt, marked, plain

#: Below this width in pixels the cards take fewer columns, down to one on a phone.
MINIMUM_CARD_PIXELS = 205
#: Length of a passage on a card that has the whole width to itself.
WIDE_EXCERPT_CHARACTERS = 420
#: How much of a sentence that a passage does not bear out is repeated on its card.
UNSUPPORTED_CHARACTERS = 120
#: Files of a post named on its card; the post has all of them.
SHOWN_FILES = 3


def draw_source_cards(
    citations: Sequence[Citation],
    *,
    anchor: str,
    on_open: Callable[[Citation], None],
) -> None:
    """Draw a card per citation; the `[n]` of an answer links to the anchor `{anchor}-n`.

    `on_open` is called as a callback with the citation whose page is asked for. Scores are not shown: they say how much
    of the question's words a passage holds, and "100%" would be read as that it answers.
    """
    columns, apart = min(len(citations), 3), told_apart(citations)
    with st.grid(columns, min_column_width=MINIMUM_CARD_PIXELS, gap="small"):
        for citation in citations:
            with st.container(border=True, height="stretch", gap="xsmall", key=f"{anchor}_card_{citation.number}"):
                file_name = apart.get(citation.document_id, "")
                _draw_card(citation, anchor, on_open, file_name=file_name, is_wide=columns == 1)


def _draw_card(
    citation: Citation, anchor: str, on_open: Callable[[Citation], None], *, file_name: str, is_wide: bool
) -> None:
    title = citation.title or citation.file_name
    # Where `[n]` leads; a heading with an anchor would leave room for a link icon in every card.
    st.html(f'<span id="{anchor}-{citation.number}" tabindex="-1"></span>')
    st.markdown(f":blue-badge[{citation.number}] **{plain(title)}**")
    is_paged = has_pages(citation.file_name)
    if citation.category:
        line = marks_line(
            category=citation.category,
            day=written_day(citation.written_on),
            is_pinned=citation.is_pinned,
            is_important=citation.is_important,
        )
        st.markdown(f":small[{line}]")
    numbers = pages(citation.first_page, citation.last_page) if is_paged and not citation.category else ""
    # The nearest heading says most; the page view has the whole path.
    headings = citation.section.split(PATH_SEPARATOR)
    section = PATH_SEPARATOR.join(headings if is_wide else headings[-1:])
    place = " · ".join(p for p in (plain(file_name), plain(citation.collection), numbers, plain(section)) if p)
    if place:
        st.markdown(f":small[{place}]")
    characters = WIDE_EXCERPT_CHARACTERS if is_wide else None
    # Files are links below.
    passage = without_attachments(citation.passage, {}) if citation.attachments else citation.passage
    shown = excerpt(passage, citation.matched_terms, *([characters] if characters else []))
    st.caption(f"“{marked(shown, citation.matched_terms)}”")
    if not citation.is_supported:
        st.markdown(f":small[:orange[:material/rule: {_unsupported_words(citation)}]]")
    _draw_links(citation, anchor)
    st.space("stretch")
    with st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center"):
        st.button(
            _("Open post") if citation.category else _("Open page") if is_paged else _("Open passage"),
            key=f"{anchor}_open_{citation.number}",
            icon=":material/find_in_page:",
            type="tertiary",
            help=_("Shows the page with this passage highlighted.")
            if is_paged
            else _("Shows the text around it with this passage marked."),
            on_click=on_open,
            args=(citation,),
        )


def _draw_links(citation: Citation, anchor: str) -> None:
    """Draw a post's files and its original as links, where they lead to a web page; files without one by name."""
    # Checked again: what is stored with an answer is as old as the answer.
    files = [(name, web_address(address)) for name, address in citation.attachments if name][:SHOWN_FILES]
    left = len(citation.attachments) - len(files)
    original = web_address(citation.url)
    if not files and not original:
        return
    with st.container(horizontal=True, gap="small", key=f"{anchor}_links_{citation.number}"):
        for name, address in files:
            if address:
                _draw_link(plain(name), address, ":material/attach_file:")
            else:
                st.markdown(f":small[:gray[:material/attach_file: {plain(name)}]]", width="content")
        if left > 0:
            more = _("{files} more in the post", files=left)
            st.markdown(f":small[:gray[{more}]]", width="content")
        if original:
            is_post = citation.category or citation.written_on
            label = _("Original post") if is_post else _("Open at its source")
            _draw_link(label, original, ":material/open_in_new:")


def _draw_link(label: str, address: str, icon: str) -> None:
    st.link_button(label, address, icon=icon, type="tertiary", help=plain(str(urlsplit(address).hostname)))


def _unsupported_words(citation: Citation) -> str:
    """Return which sentence of the answer the passage does not bear out."""
    if not citation.unsupported:
        return _("Check the figures: not all of them are on this page.")
    first = citation.unsupported[0]
    if len(first) > UNSUPPORTED_CHARACTERS:
        first = first[:UNSUPPORTED_CHARACTERS].rsplit(" ", 1)[0] + " …"
    return _("Check this, it is not on this page as the answer says it: “{first}”", first=plain(first))


def written_day(day: str) -> str:
    """`2026-11-18` as `18 Nov 2026`, kept on one line; other text is returned unchanged."""
    try:
        return language.day(date.fromisoformat(day)).replace(" ", "\N{NO-BREAK SPACE}")
    except ValueError:
        return day
