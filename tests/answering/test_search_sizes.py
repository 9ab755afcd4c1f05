"""A search returns as many passages as were asked for; only what a model reads has a budget."""

from __future__ import annotations

import pytest

from rag.profiles import profile_of
from rag.profiles.profile import Options
from rag.services import Services, program_of
from rag.types import Collection, Question, UploadOptions

WANTED = 30


@pytest.fixture
def long_rules(app_services: Services, collection: Collection) -> Collection:
    """Forty sections on travel, each far longer than the share of a context that would fit them all."""
    sections = (
        f"Section {number}\n\n" + " ".join(f"Travel rule {number}.{line} holds for trips abroad." for line in range(30))
        for number in range(40)
    )
    app_services.pipeline.process_document(
        file="\n\n".join(sections).encode(),
        file_name="travel.txt",
        tenant_id="demo",
        collection=collection,
        options=UploadOptions(generate_metadata=False),
    )
    return collection


def test_a_search_for_readers_is_not_cut_by_the_budget_of_a_model(
    app_services: Services, long_rules: Collection
) -> None:
    question = Question(text="travel rule for trips abroad", identity=program_of("demo"), collection=long_rules)
    options = Options(top_k=WANTED, only_evidence=False)
    for_readers, for_a_model = (
        app_services.searches.search(
            question, profile=profile_of(long_rules), options=options, for_model=for_model
        ).response
        for for_model in (False, True)
    )
    assert len(for_readers.results) == len(for_readers.citations) == WANTED
    assert 0 < len(for_a_model.results) < WANTED
    assert for_a_model.results == for_readers.results[: len(for_a_model.results)]
    assert [citation.number for citation in for_readers.citations] == list(range(1, WANTED + 1))
