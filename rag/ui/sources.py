"""Draw an answer's sources: numbered chips which open a card, and the cards below the answer.

An answer's numbers are links to `#{anchor}-{number}` (`answer_markdown`). HTML attributes beside the answer hold each
card's text, and a script shows the text without interpreting HTML in it. To open a page, the script presses the hidden
button on the source's card.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from html import escape
from urllib.parse import urlsplit
from uuid import UUID

import streamlit as st

from rag import language
from rag.answering.citations import telling_sentence
from rag.ingestion.loaders.format_table import has_rows
from rag.language import _
from rag.retrieval.known_by import folder_shown
from rag.retrieval.ranking import web_address, without_attachments
from rag.text.spans import PATH_SEPARATOR
from rag.types import Citation
from rag.ui.board import marks_line
from rag.ui.formats import has_pages, pages
from rag.ui.text import EXCERPT_CHARACTERS, excerpt, marked, place_of_number, plain

#: The longest sentence on a card; a sentence shorter than the second number is shown with surrounding text.
SENTENCE_CHARACTERS, SHORT_SENTENCE_CHARACTERS = 260, 60
#: Citations by number, for each occurrence in the answer (`rag.answering.citations.quoted`).
Places = Mapping[int, Sequence[Citation]]


def sentence_of(citation: Citation) -> str:
    """Return the passage's sentence with the most highlighted words; on a tie, the first."""
    best = telling_sentence(citation.passage, citation.matched_terms)
    return excerpt(best, citation.matched_terms, SENTENCE_CHARACTERS)


def place_of_source(citation: Citation) -> str:
    """Return a passage's place: the page or, for files without pages, the heading.

    If several collections were asked, the collection's name is added.
    """
    is_paged = has_pages(citation.file_name) and not citation.category
    place = pages(citation.first_page, citation.last_page) if is_paged else citation.section
    return " · ".join(part for part in (citation.collection, place) if part)


def shown_path(citation: Citation, *, is_wide: bool) -> str:
    """Return the headings above a passage.

    A wide card has all headings. Other cards have the nearest heading and, for spreadsheets, the sheet's name.
    """
    headings = citation.section.split(PATH_SEPARATOR)
    if is_wide:
        return citation.section
    # The nearest heading says most; the page view has the whole path.
    is_of_sheet = has_rows(citation.file_name) and len(headings) > 1
    return PATH_SEPARATOR.join([headings[0], headings[-1]] if is_of_sheet else headings[-1:])


def distinguishing_labels(citations: Sequence[Citation]) -> dict[UUID, str]:
    """Return labels which distinguish documents with equal titles, by document id.

    The label is the folder. Documents with the same title and folder get the file name too, and equal file names get a
    number.
    """
    documents = {citation.document_id: citation for citation in citations}
    folders = {key: folder_shown(c.title or c.file_name, c.folder) for key, c in documents.items()}
    titles = Counter(((c.title or c.file_name).casefold(), folders[key]) for key, c in documents.items())
    files = Counter((c.file_name, folders[key]) for key, c in documents.items())
    counts: Counter[tuple[str, str]] = Counter()
    words: dict[UUID, str] = {}
    for document_id, citation in documents.items():
        folder = folders[document_id]
        file = (citation.file_name, folder)
        counts[file] += 1
        file_name = ""
        if titles[(citation.title or citation.file_name).casefold(), folder] > 1:
            file_name = citation.file_name + (f" ({counts[file]})" if files[file] > 1 else "")
        if folder or file_name:
            words[document_id] = " · ".join(filter(None, (folder, file_name)))
    return words


def sources_html(citations: Sequence[Citation], anchor: str, message_id: UUID, places: Places | None = None) -> str:
    """Return hidden HTML for the cards which open over an answer's citation numbers. The script builds the cards.

    `places` maps each number to a list with a citation for each occurrence in the answer.
    """
    labels, items = distinguishing_labels(citations), []
    links = [
        (place_of_number(anchor, number, place), opener, citation)
        for number, cited in (places or _once_each(citations)).items()
        for place, (opener, citation) in enumerate(zip(_openers(anchor, cited), cited, strict=True), start=1)
    ]
    for place, opener, citation in links:
        title, file_name = citation.title or citation.file_name, labels.get(citation.document_id, "")
        values = {
            "source": place,
            "opener": opener,
            "message": str(message_id),
            "title": title,
            "place": " · ".join(part for part in (file_name, place_of_source(citation)) if part),
            "sentence": sentence_of(citation),
            "label": _("Source {number}: {title}", number=citation.number, title=title),
        }
        attributes = " ".join(f'data-{name}="{escape(value, quote=True)}"' for name, value in values.items())
        items.append(f"<span {attributes}></span>")
    return f"<div hidden>{''.join(items)}</div>"


def _once_each(citations: Sequence[Citation]) -> Places:
    return {citation.number: (citation,) for citation in citations}


def _openers(anchor: str, places: Sequence[Citation]) -> list[str]:
    """Return the keys for the buttons which open a source, in citation order.

    Citations with the same highlighted words share a button.
    """
    marks = [citation.matched_terms for citation in places]
    firsts = [marks.index(mark) + 1 for mark in marks]
    number = places[0].number
    return [f"{anchor}_open_{number}" if first == 1 else f"{anchor}_open_{number}_{first}" for first in firsts]


def source_lines(citations: Sequence[Citation]) -> list[str]:
    """List the sources for an answer's numbers, one per line: `[1] Handbook (handbook.pdf), p. 3`."""
    labels = distinguishing_labels(citations)
    lines = []
    for citation in citations:
        title = citation.title or citation.file_name
        file_name = labels.get(citation.document_id, citation.file_name)
        name = f"{title} ({file_name})" if file_name and file_name != title else title
        lines.append(f"[{citation.number}] " + ", ".join(filter(None, [name, place_of_source(citation)])))
    return lines


def copy_html(text: str, key: str) -> str:
    """Build the HTML for a button which copies a text to the clipboard."""
    label, done = escape(_("Copy"), quote=True), escape(_("Copied"), quote=True)
    return (
        f'<button type="button" class="hr-copy" id="copy-{escape(key, quote=True)}" data-done="{done}" '
        f'data-copy="{escape(text, quote=True)}" title="{escape(_("Copies the answer with its sources"), quote=True)}">'
        f'<span class="hr-icon" aria-hidden="true">content_copy</span><span>{label}</span></button>'
    )


#: Below this width in pixels the cards use fewer columns, down to one on a phone.
MINIMUM_CARD_PIXELS = 205
#: Passage length on a card spanning the full width.
WIDE_EXCERPT_CHARACTERS = 420
#: How much of an unsupported sentence is repeated on the passage's card.
UNSUPPORTED_CHARACTERS = 120
#: The most files named on a post's card; the post lists all.
SHOWN_FILES = 3


def draw_source_cards(
    citations: Sequence[Citation],
    *,
    anchor: str,
    on_open: Callable[[Citation], None],
    places: Places | None = None,
) -> None:
    """Draw a card for each citation; `[n]` in the answer links to the anchor `{anchor}-n`.

    `places` maps each number to a list with a citation for each occurrence in the answer. The card shows the sentence
    from the first occurrence. Hidden buttons, pressed only by the script, open the pages for the later occurrences.
    `on_open` is called with the citation whose page to open. Scores are not shown, because a score is the fraction of
    the question's words in a passage, and people would read "100%" as a correct answer.
    """
    columns, labels = min(len(citations), 3), distinguishing_labels(citations)
    places = places or _once_each(citations)
    with st.grid(columns, min_column_width=MINIMUM_CARD_PIXELS, gap="small"):
        for citation in citations:
            with st.container(border=True, height="stretch", gap="xsmall", key=f"{anchor}_card_{citation.number}"):
                file_name = labels.get(citation.document_id, "")
                cited = places[citation.number]
                _draw_card(cited[0], anchor, on_open, file_name=file_name, is_wide=columns == 1)
                _draw_openers(cited, anchor, on_open)


def _draw_openers(places: Sequence[Citation], anchor: str, on_open: Callable[[Citation], None]) -> None:
    further = dict(zip(_openers(anchor, places), places, strict=True))
    del further[f"{anchor}_open_{places[0].number}"]
    if further:
        with st.container(key=f"{anchor}_openers_{places[0].number}"):
            for key, citation in further.items():
                st.button(_("Open page"), key=key, on_click=on_open, args=(citation,))


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
    section = shown_path(citation, is_wide=is_wide)
    places = [p for p in (plain(file_name), plain(citation.collection), numbers, plain(section)) if p]
    if language.direction() == "rtl":
        # Isolate each direction: an English heading would be turned around the Arabic page before it.
        places = [f"\N{FIRST STRONG ISOLATE}{p}\N{POP DIRECTIONAL ISOLATE}" for p in places]
    if places:
        st.markdown(f":small[{' · '.join(places)}]")
    # Files are links below.
    passage = without_attachments(citation.passage, {}) if citation.attachments else citation.passage
    # The same sentence as under the number; a short sentence needs its surroundings.
    quote = sentence_of(replace(citation, passage=passage))
    if is_wide or len(quote) < SHORT_SENTENCE_CHARACTERS:
        quote = excerpt(passage, citation.matched_terms, WIDE_EXCERPT_CHARACTERS if is_wide else EXCERPT_CHARACTERS)
    st.caption(f"“{marked(quote, citation.matched_terms)}”")
    if citation.is_corrected:
        st.markdown(f":small[:gray[:material/edit_note: {_('A person corrected the text of this page.')}]]")
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
            else _("Shows this passage marked in the text around it."),
            on_click=on_open,
            args=(citation,),
        )


def _draw_links(citation: Citation, anchor: str) -> None:
    # Check again: the values stored with an answer are as old as the answer.
    files = [(name, web_address(address)) for name, address in citation.attachments if name][:SHOWN_FILES]
    remaining = len(citation.attachments) - len(files)
    original = web_address(citation.url)
    if not files and not original:
        return
    with st.container(horizontal=True, gap="small", key=f"{anchor}_links_{citation.number}"):
        for name, address in files:
            if address:
                _draw_link(plain(name), address, ":material/attach_file:")
            else:
                st.markdown(f":small[:gray[:material/attach_file: {plain(name)}]]", width="content")
        if remaining > 0:
            more = _("More files in the post: {files}", files=remaining)
            st.markdown(f":small[:gray[{more}]]", width="content")
        if original:
            is_post = citation.category or citation.written_on
            label = _("Original post") if is_post else _("Open at the source")
            _draw_link(label, original, ":material/open_in_new:")


def _draw_link(label: str, address: str, icon: str) -> None:
    st.link_button(label, address, icon=icon, type="tertiary", help=plain(str(urlsplit(address).hostname)))


def _unsupported_words(citation: Citation) -> str:
    if not citation.unsupported:
        return _("Check the figures: not all of them are on this page.")
    first = citation.unsupported[0]
    if len(first) > UNSUPPORTED_CHARACTERS:
        first = first[:UNSUPPORTED_CHARACTERS].rsplit(" ", 1)[0] + " …"
    return _(
        "Check this part of the answer, because this page does not say it in the same way: “{first}”",
        first=plain(first),
    )


def written_day(day: str) -> str:
    """Format `2026-11-18` as `18 Nov 2026` without line breaks; other text is returned unchanged."""
    try:
        return language.day(date.fromisoformat(day)).replace(" ", "\N{NO-BREAK SPACE}")
    except ValueError:
        return day
