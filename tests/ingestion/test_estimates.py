"""Estimates beside bills, on files of one page and more."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal

import pytest

from rag.ingestion.estimate import EstimateCorrection, tokens_answered
from rag.ingestion.loaders.sandbox import Sandbox
from rag.ingestion.pipeline import IngestionPipeline
from rag.library.documents import DocumentLibrary
from rag.money.ledger import Ledger
from rag.providers.registry import Providers
from rag.settings import Settings
from rag.storage.database import Database
from rag.storage.files import FileStore
from rag.types import Document, UploadOptions
from tests import hostile
from tests.standins.providers import ProviderStandin

MODEL = "openai/text-embedding-3-small@256"
TAGS = {
    "summary": "It says when offices are open and how leave is asked for. It covers who decides and by when.",
    "topics": ["opening hours", "leave", "requests"],
    "questions": ["When do offices close?", "Who approves leave?", "How early is leave asked for?"],
}


@pytest.fixture
def paid(
    database: Database, files: FileStore, settings: Settings, sandbox: Sandbox, provider_standin: ProviderStandin
) -> IngestionPipeline:
    keyed = replace(settings, openai_api_key="sk-test", openai_base_url=provider_standin.openai_url)
    provider_standin.reply(json.dumps(TAGS))
    return IngestionPipeline(database, files, Providers(keyed), Ledger(database), keyed, sandbox=sandbox)


def processed(
    paid: IngestionPipeline, library: DocumentLibrary, name: str, content: bytes, profile: str = "hr"
) -> Document:
    collection = library.ensure_collection("demo", profile, profile, MODEL, "en")
    result = paid.process_document(file=content, file_name=name, tenant_id="demo", collection=collection)
    return library.get("demo", result.document_id)


def error(document: Document) -> float:
    assert document.estimate is not None
    estimated, actual = (Decimal(values["total"]) for values in (document.estimate, document.costs))
    return float(estimated / actual - 1)


@pytest.mark.parametrize("profile", ["hr", "legal"])
def test_after_one_document_estimates_are_within_a_tenth_of_the_bill(
    profile: str, paid: IngestionPipeline, library: DocumentLibrary
) -> None:
    processed(paid, library, "first.pdf", hostile.long_document(3), profile)
    for name, content in {
        "one page.pdf": hostile.long_document(1),
        "two pages.pdf": hostile.long_document(2),
        "eight pages.pdf": hostile.long_document(8),
    }.items():
        assert abs(error(processed(paid, library, name, content, profile))) <= 0.1, name


def test_the_range_of_an_estimate_holds_the_bill_and_narrows_with_what_was_billed(
    paid: IngestionPipeline, library: DocumentLibrary
) -> None:
    shares = []
    for pages in (3, 1, 2, 8):
        document = processed(paid, library, f"{pages} pages.pdf", hostile.long_document(pages))
        assert document.estimate is not None
        low, total, high, bill = (
            Decimal(value) for value in (*map(document.estimate.get, ("low", "total", "high")), document.costs["total"])
        )
        assert low <= bill <= high
        shares.append(float((high - total) / total))
    assert shares[0] == pytest.approx(0.3)
    assert all(0.1 <= share < 0.3 for share in shares[1:])


def test_bills_that_lie_far_apart_widen_the_range() -> None:
    correction = EstimateCorrection(embedding_ratio=Decimal(1), embedding_deviation=Decimal("0.2"))
    assert correction.embedding_spread == Decimal("0.4")
    assert replace(correction, embedding_deviation=Decimal(3)).embedding_spread == 1
    assert replace(correction, embedding_deviation=None).embedding_spread == Decimal("0.1")
    known = replace(correction, tagging_ratio=Decimal(1), answer_tokens=Decimal(70), answer_deviation=Decimal("0.25"))
    assert known.tagging_spread == Decimal("0.5")
    assert EstimateCorrection().tagging_spread == Decimal("0.3")


def test_a_correction_is_learned_from_the_same_models_only(paid: IngestionPipeline, library: DocumentLibrary) -> None:
    first = processed(paid, library, "first.pdf", hostile.long_document(3))
    other = library.ensure_collection("demo", "Other", "hr", "openai/text-embedding-3-large@256", "en")
    result = paid.process_document(
        file=hostile.long_document(2),
        file_name="a.pdf",
        tenant_id="demo",
        collection=other,
        options=UploadOptions(generate_metadata=False),
    )
    estimate = library.get("demo", result.document_id).estimate
    assert estimate is not None
    assert estimate["tokens"] == estimate["embedding_tokens"]
    assert first.estimate is not None
    assert first.estimate["tokens"] == first.estimate["embedding_tokens"]


def test_a_document_embedded_many_times_over_does_not_run_away_with_the_next_estimate() -> None:
    assert EstimateCorrection(embedding_ratio=Decimal(40)).embedding(1000) == 2500
    assert EstimateCorrection(tagging_ratio=Decimal("0.01")).tagging(1000) == 400
    assert EstimateCorrection().embedding(1000) == 1000


ENGLISH = "Employees ask for leave two weeks before it begins, and their manager answers within three days. " * 20
KOREAN = "직원은 휴가를 시작하기 두 주 전에 신청하고 관리자는 사흘 안에 답합니다. " * 20
JAPANESE = "従業員は休暇の二週間前に申請し、管理者は三日以内に回答するものとする。" * 20


def test_before_there_are_answers_their_length_is_what_the_prompt_asks_for_in_the_tokens_of_the_language() -> None:
    english, korean, japanese = (
        tokens_answered(text, 0, (), "gpt-4o-mini", EstimateCorrection()) for text in (ENGLISH, KOREAN, JAPANESE)
    )
    shortest, longest = 70, 96  # answers at both ends of the prompt's limits, counted with o200k
    assert shortest < english < longest
    assert english < japanese < korean < 2.5 * english
    assert tokens_answered("", 0, (), "gpt-4o-mini", EstimateCorrection()) > 50


def test_each_chunk_with_tags_of_its_own_adds_an_answer() -> None:
    one, three = (
        tokens_answered(ENGLISH, chunks, ("topic",), "gpt-4o-mini", EstimateCorrection()) for chunks in (1, 3)
    )
    assert 30 < (three - one) / 2 < 60
    assert tokens_answered(ENGLISH, 3, ("topic",), "gpt-4o-mini", EstimateCorrection(answer_tokens=Decimal(50))) == 200


@pytest.mark.parametrize("profile", ["hr", "legal"])
def test_the_first_document_of_the_next_collection_is_estimated_by_what_the_last_was_billed(
    profile: str, paid: IngestionPipeline, library: DocumentLibrary
) -> None:
    processed(paid, library, "first.pdf", hostile.long_document(3), profile)
    collection = library.ensure_collection("demo", "Next", profile, MODEL, "en")
    result = paid.process_document(
        file=hostile.long_document(2), file_name="a.pdf", tenant_id="demo", collection=collection
    )
    assert abs(error(library.get("demo", result.document_id))) <= 0.1
