"""The cards under an answer: where a claim comes from, in the document's own words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date
from typing import Literal

import streamlit as st

from rag import language
from rag.ingestion.chunking.spans import PATH_SEPARATOR
from rag.language import N_, _
from rag.types import Citation
from rag.ui.board import marks_line
from rag.ui.formats import has_pages, pages
from rag.ui.text import excerpt, marked, plain

#: Below this width in pixels the cards take fewer columns, down to one on a phone.
MINIMUM_CARD_PIXELS = 205
#: What the percentage is (`rag.retrieval.context_builder.shown_score`).
SCORE_HELP = N_(
    "How much of the question is in this passage: the reranker's relevance where there is one, else the better of "
    "the share of the question's words, rare ones counting more, and the similarity. 100% means that all its words "
    "are here, not that the answer is right."
)
#: Length of a passage on a card that has the whole width to itself.
WIDE_EXCERPT_CHARACTERS = 420
#: How much of a sentence that a passage does not bear out is repeated on its card.
UNSUPPORTED_CHARACTERS = 120


def draw_source_cards(
    citations: Sequence[Citation],
    *,
    anchor: str,
    on_open: Callable[[Citation], None],
    with_match: bool = True,
) -> None:
    """Draw a card per citation; the `[n]` of an answer links to the anchor `{anchor}-n`.

    `on_open` is called as a callback with the citation whose page is asked for. `with_match` says how much of the
    question is in each: of passages that do not answer it, "100% match" would be read as that they do.
    """
    columns = min(len(citations), 3)
    with st.grid(columns, min_column_width=MINIMUM_CARD_PIXELS, gap="small"):
        for citation in citations:
            with st.container(border=True, height="stretch", gap="xsmall", key=f"{anchor}_card_{citation.number}"):
                _draw_card(citation, anchor, on_open, is_wide=columns == 1, with_match=with_match)


def _draw_card(
    citation: Citation, anchor: str, on_open: Callable[[Citation], None], *, is_wide: bool, with_match: bool
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
    place = " · ".join(p for p in (numbers, plain(section)) if p)
    if place:
        st.markdown(f":small[{place}]")
    characters = WIDE_EXCERPT_CHARACTERS if is_wide else None
    shown = excerpt(citation.passage, citation.matched_terms, *([characters] if characters else []))
    st.caption(f"“{marked(shown, citation.matched_terms)}”")
    if not citation.is_supported:
        st.markdown(f":small[:orange[:material/rule: {_unsupported_words(citation)}]]")
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
        # What a whole document was read for has no score.
        if with_match and citation.score:
            st.badge(
                _("{score} match", score=language.percentage(citation.score, 0)),
                color=_score_color(citation.score),
                help=_(SCORE_HELP),
            )


def _unsupported_words(citation: Citation) -> str:
    """Return which sentence of the answer the passage does not bear out."""
    if not citation.unsupported:
        return _("Check the figures: not all of them are on this page.")
    first = citation.unsupported[0]
    if len(first) > UNSUPPORTED_CHARACTERS:
        first = first[:UNSUPPORTED_CHARACTERS].rsplit(" ", 1)[0] + " …"
    return _("Check this, it is not on this page as the answer says it: “{first}”", first=plain(first))


def written_day(day: str) -> str:
    """`2026-11-18` as `18 Nov 2026`, kept on one line; what is no date stays as it is."""
    try:
        return language.day(date.fromisoformat(day)).replace(" ", "\N{NO-BREAK SPACE}")
    except ValueError:
        return day


def _score_color(score: float) -> Literal["green", "blue", "gray"]:
    return "green" if score >= 0.7 else "blue" if score >= 0.4 else "gray"
