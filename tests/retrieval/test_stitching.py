"""The text around a hit, near repeats, and what both leave of the budget."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from rag.profiles import HR
from rag.profiles.profile import Options
from rag.providers.registry import Providers
from rag.retrieval.context_builder import Neighbour, added_text
from rag.retrieval.deduplication import says_otherwise, without_near_repeats
from rag.retrieval.retriever import Retriever
from rag.settings import Settings
from rag.storage.database import Database
from rag.types import ContextResponse, Identity, Question
from tests.retrieval.shelf import Shelf
from tests.retrieval.test_fusion import result

RULES = [
    "Remote work begins after the first three months with us.",
    "Anyone may borrow a standing desk for use at home.",
    "The desk goes back within two weeks of the last working day.",
    "Lunch costs four euros in the canteen.",
]


def neighbour(step: int, content: str, start: int, hit: str, hit_start: int) -> Neighbour:
    return Neighbour(
        hit_id=UUID(int=1), hit_start=hit_start, hit_end=hit_start + len(hit), chunk_id=UUID(int=2), step=step,
        content=content, section="", first_page=1, last_page=1, start=start, end=start + len(content),
    )  # fmt: skip


@pytest.mark.parametrize("overlap", [0, 1, 3, 5])
def test_what_two_passages_share_is_said_once(overlap: int) -> None:
    text = "abcdefghijklmnopqrst"
    hit, after = text[:10], text[10 - overlap :]
    assert hit + added_text(hit, neighbour(1, after, 10 - overlap, hit, 0)) == text
    hit, before = text[10:], text[: 10 + overlap]
    assert added_text(hit, neighbour(-1, before, 0, hit, 10)) + hit == text


def test_without_spans_the_overlap_is_found_in_the_text() -> None:
    unknown = replace(neighbour(1, "the end.", 0, "", 0), start=0, end=0)
    assert added_text("This is the", unknown) == " end."


def ask(database: Database, shelf: Shelf, asker: Identity, text: str, **options: object) -> ContextResponse:
    return Retriever(database, Providers(Settings())).retrieve_context(
        Question(text=text, identity=asker, collection=shelf.collection),
        profile=HR,
        options=Options(**options),  # type: ignore[arg-type]
    )


def test_neighbours_go_to_the_model_and_the_citation_stays_what_was_found(
    database: Database, shelf: Shelf, asker: Identity
) -> None:
    shelf.add("Guide", RULES, section="Home")
    found = ask(database, shelf, asker, "Who may borrow a standing desk?", top_k=1)
    (citation,) = found.citations
    assert (citation.passage, citation.first_page, citation.last_page) == (RULES[1], 2, 2)
    assert (citation.first_read_page, citation.last_read_page) == (1, 3)
    assert found.context_text == "\n".join(["[1] Guide, p. 2, Home", *RULES[:3]])
    assert citation.passage in found.context_text


def test_neighbours_are_left_out_where_they_do_not_fit_or_are_not_wanted(
    database: Database, shelf: Shelf, asker: Identity
) -> None:
    rules = [" ".join([rule] * 8) for rule in RULES]
    shelf.add("Guide", rules, section="Home")
    question = "Who may borrow a standing desk?"
    alone = ask(database, shelf, asker, question, top_k=1, stitch_neighbours=False)
    assert (rules[0] in alone.context_text, alone.citations[0].first_read_page) == (False, 0)
    tight = ask(database, shelf, asker, question, top_k=1, context_tokens=200)
    assert rules[1] in tight.context_text
    assert not (rules[0] in tight.context_text and rules[2] in tight.context_text)


def test_a_passage_of_another_section_or_already_cited_is_not_stitched(
    database: Database, shelf: Shelf, asker: Identity
) -> None:
    shelf.add("Guide", RULES, section="Home")
    with database.transaction("demo") as connection:
        connection.execute("UPDATE document_chunks SET section = 'Start' WHERE chunk_index = 0")
    found = ask(database, shelf, asker, "borrow a standing desk; the desk goes back")
    assert {c.first_page for c in found.citations} >= {2, 3}
    for rule in RULES[1:3]:
        assert found.context_text.count(rule) == 1
    assert RULES[0] not in found.context_text


def test_an_older_version_of_a_passage_is_collapsed_but_other_figures_are_not() -> None:
    words = "Every employee may carry unused days into the next year until the end of March and no longer than that"
    results = [
        result(1, content=f"{words}, 5 days."),
        result(2, content=f"{words} , 5 days. See portal"),
        result(3, content=f"{words}, 6 days."),
        result(4, content=f"{words}, 5 days.", title="Twin"),
        result(5, content=""),
    ]
    assert [r.chunk_id.int for r in without_near_repeats(results)] == [1, 3, 4, 5]


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("Unused days may not be carried over.", False),
        ("Unused days must be carried over.", False),
        ("Un-used days may be carried over.", True),
    ],
)
def test_a_near_repeat_says_nothing_else(text: str, same: bool) -> None:
    """In a long passage one word more or less is next to nothing, and may be all that counts."""
    before = "Whoever works from Monday to Friday asks for leave two weeks ahead and hears within three days. " * 2
    after = "The form is on the intranet, signed by the manager and kept by the People Team for a year. " * 2
    results = [
        result(1, content=f"{before}Unused days may be carried over. {after}"),
        result(2, content=f"Page header {before}{text} {after}"),
    ]
    assert len(without_near_repeats(results)) == (1 if same else 2)


@pytest.mark.parametrize("other", ["休暇は課長が承認します。", "休暇は部長が承認します。"])
def test_characters_are_compared_where_words_have_no_spaces(other: str) -> None:
    assert says_otherwise("休暇は部長が承認します。", other) == ("課" in other)


def test_at_most_so_many_passages_of_a_document(database: Database, shelf: Shelf, asker: Identity) -> None:
    shelf.add("One", ["A desk for Ann.", "A desk for Ben.", "A desk for Cem."])
    shelf.add("Two", ["A desk for Dee."])
    found = ask(database, shelf, asker, "desk", maximum_per_document=1)
    assert sorted(c.title for c in found.citations) == ["One", "Two"]
