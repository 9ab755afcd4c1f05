"""Whose rules a question asks for: names are context, and the search goes without them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rag.profiles import HR
from rag.providers.registry import Providers
from rag.retrieval.names import names_in, without
from rag.retrieval.retriever import RetrievalResult, Retriever
from rag.settings import Settings
from rag.storage.database import Database
from rag.types import Identity, Question
from tests.retrieval.shelf import Shelf


@pytest.mark.parametrize(
    ("language", "question", "names", "rest"),
    [
        ("en", "How many vacation days do I get at Ottermere?", ["Ottermere"], "How many vacation days do I get?"),
        ("en", "What is Ottermere's vacation policy?", ["Ottermere"], "What is vacation policy?"),
        ("en", "Does Ottermere pay for yoga classes?", ["Ottermere"], "Does pay for yoga classes?"),
        ("en", "Which class may staff of the Foundation for Public Code book?", ["Foundation for Public Code"],
         "Which class may staff book?"),
        ("de", "Wie viele Urlaubstage gibt es bei Ottermere?", ["Ottermere"], "Wie viele Urlaubstage gibt es?"),
        ("fr", "Combien de jours de congé chez Ottermere ?", ["Ottermere"], "Combien de jours de congé?"),
        ("nl", "Hoe lang is de sabbatical bij Ottermere?", ["Ottermere"], "Hoe lang is de sabbatical?"),
        ("ko", "Ottermere에서 연차는 며칠인가요?", ["Ottermere"], "연차는 며칠인가요?"),
        ("ja", "Ottermereでは有給休暇は何日ですか?", ["Ottermere"], "有給休暇は何日ですか?"),
        ("en", "How many vacation days do I get?", [], "How many vacation days do I get?"),
        ("en", "What is the dress code on Fridays?", [], "What is the dress code on Fridays?"),
        ("en", "Do I get paid by Friday?", [], "Do I get paid by Friday?"),
        ("en", "How many days does German law guarantee?", [], "How many days does German law guarantee?"),
        ("en", "Whom do I ask at HR?", [], "Whom do I ask at HR?"),
        ("de", "Bekomme ich bei Krankheit weiter Gehalt?", ["Krankheit"], "Bekomme ich weiter Gehalt?"),
        ("en", "At Ottermere?", [], "At Ottermere?"),
    ],
)  # fmt: skip
def test_names_that_say_whose_rules_are_meant(language: str, question: str, names: list[str], rest: str) -> None:
    assert names_in(question, language) == names
    assert without(question, names, language) == rest


# With documents of two companies


@pytest.fixture
def two_companies(shelf: Shelf) -> Shelf:
    for name, days in (("Ottermere", 27), ("Halvemaan", 31)):
        shelf.add(f"{name} welcome", [f"Welcome to {name}. {name} makes paper and {name} is proud of it."])
        shelf.add(
            f"{name} leave", [f"Everybody has {days} days of annual leave a year.", f"{name} closes at Christmas."]
        )
        shelf.add(f"{name} pay", [f"{name} pays on the 25th of each month.", "Overtime is paid in the next month."])
    return shelf


def found_by(question: str, database: Database, shelf: Shelf, asker: Identity) -> RetrievalResult:
    retriever = Retriever(database, Providers(Settings(builtin_embedder="lexical")))
    return retriever.retrieve(Question(text=question, identity=asker, collection=shelf.collection), profile=HR)


@pytest.mark.parametrize("name", ["Ottermere", "Halvemaan"])
def test_whose_rules_are_meant_is_said_by_the_document(
    database: Database, two_companies: Shelf, asker: Identity, name: str
) -> None:
    found = found_by(f"How many days of annual leave do I get at {name}?", database, two_companies, asker)
    assert found.response.evidence == "answered"
    first = found.response.citations[0]
    assert (first.title, "days of annual leave" in first.passage) == (f"{name} leave", True)
    steps = {step.name: step.detail for step in found.response.rag_details.steps or []}
    assert steps["whose rules"].startswith(f"{name}: 3 of ")


def test_a_company_that_no_document_names_has_no_rules_here(
    database: Database, two_companies: Shelf, asker: Identity
) -> None:
    with_name = found_by("How many days of annual leave do I get at Grauwerk?", database, two_companies, asker)
    assert with_name.response.evidence in ("perhaps", "none")
    assert with_name.response.unnamed == {citation.chunk_id for citation in with_name.response.citations}
    assert with_name.response.names == ("Grauwerk",)
    without_name = found_by("How many days of annual leave do I get?", database, two_companies, asker)
    assert without_name.response.evidence == "answered"


def test_a_collections_own_name_holds_for_all_of_its_documents(
    database: Database, two_companies: Shelf, asker: Identity
) -> None:
    two_companies.collection = replace(two_companies.collection, name="Grauwerk HR")
    found = found_by("How many days of annual leave do I get at Grauwerk?", database, two_companies, asker)
    assert found.response.evidence == "answered"


def test_a_companys_own_rule_is_found_among_many_like_it_of_others(
    database: Database, two_companies: Shelf, asker: Identity
) -> None:
    two_companies.add("Ottermere sabbatical", ["After five years people may be away for a sabbatical of 12 weeks."])
    for number in range(80):
        two_companies.add(
            f"Rules {number}", [f"A sabbatical is {number} weeks. How many weeks a sabbatical is varies."]
        )
    found = found_by("How many weeks is the sabbatical at Ottermere?", database, two_companies, asker)
    assert found.response.citations[0].title == "Ottermere sabbatical"
    assert found.response.citations[0].chunk_id not in found.response.unnamed


def test_a_name_in_many_passages_of_one_document_is_an_owner_too(
    database: Database, shelf: Shelf, asker: Identity
) -> None:
    shelf.add("Handbook", [f"Rule {number} of Ottermere is about topic {number}." for number in range(20)])
    shelf.add("Other", ["Ottermere pays for yoga classes, says a newspaper."])
    found = found_by("Does Ottermere pay for yoga classes?", database, shelf, asker)
    steps = {step.name: step.detail for step in found.response.rag_details.steps or []}
    assert steps["whose rules"] == "Ottermere: 2 of 2 documents"


@pytest.mark.parametrize(
    "row", ["Berg, Jan | 2.011,40", "Berg Jan: 2.011,40", "| Berg | Jan | 2.011,40 |", "Jan Berg: 2.011,40"]
)
def test_a_person_is_named_with_the_family_name_first_too(
    database: Database, shelf: Shelf, asker: Identity, row: str
) -> None:
    shelf.add("Payroll", [f"Net pay in May. {row}"])
    found = found_by("What is the net pay of Jan Berg?", database, shelf, asker)
    assert found.response.evidence == "answered"
    assert not found.response.unnamed
