"""The heading a citation stands under: the one below which it says what it is cited for."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from rag.answering.citations import with_section
from rag.records.chat_logs import PassagePlace
from rag.types import Citation, Section

BEFORE = "Company rules\n" + "x" * 86  # a hundred characters of the document
TEXT = "Leave\nAnnual leave\nYou have 25 days.\nSick leave\nReport it before 9:00. A certificate is due on day 3."
HEADINGS = ("Company rules", 1), ("Leave", 2), ("Annual leave", 3), ("Sick leave", 3), ("Pay", 2)
CITED = Citation(
    number=1, chunk_id=UUID(int=1), document_id=UUID(int=2), title="", file_name="rules.pdf", first_page=1, last_page=1,
    section="Company rules › Leave › Sick leave", passage=TEXT, score=1,
)  # fmt: skip


def place(text: str = TEXT, headings: tuple[tuple[str, int], ...] = HEADINGS) -> PassagePlace:
    joined = f"{BEFORE}{text}\nPay\n"
    sections = [Section(title=title, level=level, page=1, start=joined.index(title)) for title, level in headings]
    return PassagePlace(start=len(BEFORE), end=len(BEFORE) + len(text), sections=tuple(reversed(sections)))


@pytest.mark.parametrize(
    ("terms", "heading"),
    [
        pytest.param(("Annual", "25", "days"), "Company rules › Leave › Annual leave", id="before its own"),
        pytest.param(("certificate", "9:00", "25"), CITED.section, id="its own"),
        pytest.param(("leave",), CITED.section, id="equally in both"),
        pytest.param(("elsewhere",), CITED.section, id="in neither"),
        pytest.param((), CITED.section, id="nothing marked"),
    ],
)
def test_the_heading_is_the_one_with_most_of_what_is_marked(terms: tuple[str, ...], heading: str) -> None:
    assert with_section(replace(CITED, matched_terms=terms), place()).section == heading


ANNUAL, SICK = ("25", "days"), ("certificate", "9:00")


@pytest.mark.parametrize(
    ("places", "heading"),
    [
        pytest.param([ANNUAL], "Company rules › Leave › Annual leave", id="the sentence, not the question's words"),
        pytest.param([SICK], CITED.section, id="its own"),
        pytest.param([ANNUAL, SICK], "Company rules › Leave", id="two sections: their common heading"),
        pytest.param([("elsewhere",)], CITED.section, id="no sentence of the passage"),
    ],
)
def test_the_heading_is_above_the_cited_sentence(places: list[tuple[str, ...]], heading: str) -> None:
    cited = replace(CITED, matched_terms=("Sick", "Report", "before"))
    assert with_section(cited, place(), [replace(cited, matched_terms=terms) for terms in places]).section == heading


def test_what_a_chunker_put_before_the_text_moves_its_headings() -> None:
    cited = replace(CITED, passage=f"| Day | Right |\n\n{TEXT}", matched_terms=("Annual", "days", "Sick"))
    assert with_section(cited, place()).section.endswith("Annual leave")


def test_text_before_the_first_heading_is_of_the_section_before() -> None:
    cited = replace(CITED, passage="xxx every company\nSick leave\nReport.", matched_terms=("every", "company"))
    assert with_section(cited, place(cited.passage, (HEADINGS[0], HEADINGS[3]))).section == "Company rules"


def test_a_passage_cut_short_keeps_its_own_heading() -> None:
    cited = replace(CITED, passage=TEXT[:40], matched_terms=("Annual",))
    assert with_section(cited, place()) == cited
