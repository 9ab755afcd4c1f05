"""The figures of the source documents, and overrides that do not fit."""

from __future__ import annotations

from typing import Any

import pytest

from rag.errors import InvalidInput
from rag.profiles import CIVIL, HR, NOTICES, PROFILES, profile_by_name, with_overrides


def test_the_hr_profile_has_its_document_figures() -> None:
    assert (HR.chunking_method, HR.chunk_size, HR.chunk_overlap, HR.minimum_chunk_size) == ("smart", 1000, 200, 100)
    assert (HR.top_k, HR.rerank_model) == (5, "rerank-multilingual-v3.0")
    assert HR.embedding_model == "openai/text-embedding-3-small@1536"


def test_the_other_profiles_have_theirs() -> None:
    assert set(PROFILES) == {"hr", "notices", "portfolio", "legal", "civil"}
    assert (NOTICES.chunk_size, NOTICES.temperature, NOTICES.maximum_output_tokens) == (1500, 0.3, 2048)
    assert (CIVIL.chunk_size, CIVIL.similarity_threshold, CIVIL.embedding_model) == (1200, 0.2, "ollama/bge-m3@1024")


def test_an_unknown_profile_names_those_there_are() -> None:
    with pytest.raises(InvalidInput, match="hr, notices, portfolio, legal, civil"):
        profile_by_name("hrr")


def test_a_field_is_overridden() -> None:
    assert with_overrides(HR, {"top_k": 8, "similarity_threshold": 0.5}).top_k == 8


@pytest.mark.parametrize(
    "overrides",
    [
        pytest.param({"topk": 8}, id="unknown"),
        pytest.param({"name": "mine"}, id="name"),
        pytest.param({"top_k": "8"}, id="text_for_number"),
        pytest.param({"top_k": True}, id="boolean_for_number"),
        pytest.param({"chunk_overlap": 1000}, id="overlap_as_large_as_the_chunk"),
        pytest.param({"top_k": 0}, id="nothing_searched"),
    ],
)
def test_an_override_that_does_not_fit_is_refused(overrides: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        with_overrides(HR, overrides)
