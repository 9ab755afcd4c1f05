"""Source 003 from end to end: a local bge-m3, passages of 1200 characters, four terms, departments."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import pytest

from rag.errors import InvalidInput
from rag.ingestion.chunking import chunk_text, sizes_for
from rag.profile import Options
from rag.profiles import CIVIL
from rag.services import Services
from rag.types import Collection, DocumentStatus, Identity, Outcome, Question, SearchFilters
from tests.hostile import pdf_of
from tests.standin import ProviderStandin

QUESTION = "주차 문제"
PARKING = "주차 문제 민원은 교통과에 신청합니다. 처리 기간은 7일입니다."
WATER = "수도 요금 민원은 상수도과에 신청합니다. 처리 기간은 3일입니다."
ROADS = "도로 위 주차 단속은 건설과에서 합니다. 문제 신고는 전화로 합니다."
FONT = "HYSMyeongJo-Medium"


@pytest.fixture
def civil(app_services: Services, admin: Identity) -> Collection:
    made = app_services.documents.create_collection(admin, "민원", "civil", language="ko")
    for name, text, department in (("a", PARKING, "교통과"), ("b", WATER, "상수도과"), ("c", ROADS, "건설과")):
        content = pdf_of([[text]], headings=False, font=FONT)
        document = app_services.documents.upload(
            admin, made, f"{name}.pdf", content, metadata={"department": department}
        )
        app_services.pipeline.run("demo", document.id)
        app_services.documents.confirm(admin, document.id)
        app_services.pipeline.run("demo", document.id)
        assert app_services.documents.get("demo", document.id).status is DocumentStatus.COMPLETED
    return made


def test_the_documents_question_is_found_by_both_searches_and_scored_by_its_four_terms(
    app_services: Services, admin: Identity, civil: Collection, provider_standin: ProviderStandin, ask: Any
) -> None:
    assert civil.embedding_model == "ollama/bge-m3@1024"
    assert set(provider_standin.paths) & {"/api/embed", "/api/embeddings"} == {"/api/embed"}
    question = Question(text=QUESTION, identity=admin, collection=civil)
    found = app_services.retriever.retrieve(question, profile=CIVIL).hits
    assert "교통과" in found[0].content
    highest = max(item.keyword_score or 0.0 for item in found)
    for item in found:
        is_near = item.similarity is not None and item.similarity > 0.2
        assert (item.vector_rank is not None) <= is_near
        assert item.score == pytest.approx(
            0.6 * (item.similarity or 0.0) * is_near
            + 0.4 * (item.keyword_score or 0.0) / highest
            + (0.3 / (60 + item.vector_rank) if item.vector_rank else 0.0)
            + (0.2 / (60 + item.keyword_rank) if item.keyword_rank else 0.0)
        )
    assert [item.score for item in found] == sorted((item.score for item in found), reverse=True)

    _, message = ask(civil, QUESTION)
    assert message.outcome is Outcome.ANSWERED
    assert "교통과" in message.content
    chats = [body["messages"] for kind, body in provider_standin.requests if kind == "chat"]
    rules = next(messages[0]["content"] for messages in chats if "<passages>" in messages[-1]["content"])
    assert "민원 문서를 찾아 안내하는" in rules
    assert "답은 질문의 언어인 한국어로" in rules


def test_bm25_is_that_of_the_formula(app_services: Services, admin: Identity, civil: Collection) -> None:
    question = Question(text="수도", identity=admin, collection=civil)
    found = app_services.retriever.retrieve(question, profile=CIVIL.changed(similarity_threshold=0.99)).hits
    with app_services.database.transaction("demo") as connection:
        rows = connection.execute("SELECT chunk_id, octet_length(terms) / 4 FROM chunk_terms").fetchall()
    lengths = dict(rows)
    average = sum(lengths.values()) / len(lengths)
    best = found[0]
    # The document's formula for a term that stands there twice, 수도 and 상수도과; the idf is Lucene's.
    frequency = 2 * (1.5 + 1) / (2 + 1.5 * (1 - 0.75 + 0.75 * lengths[best.chunk_id] / average))
    assert best.keyword_score == pytest.approx(frequency * math.log(1 + (3 - 1 + 0.5) / (1 + 0.5)), rel=0.001)


def test_a_department_narrows_the_search_and_the_chat(
    app_services: Services, admin: Identity, civil: Collection, ask: Any
) -> None:
    filters = SearchFilters(metadata={"department": "건설과"})
    question = Question(text=QUESTION, identity=admin, collection=civil, filters=filters)
    found = app_services.retriever.retrieve(question, profile=CIVIL).hits
    assert [ROADS[:10] in item.content for item in found] == [True]
    _, message = ask(civil, QUESTION, options=Options(filters=filters))
    assert "건설과" in message.content
    assert app_services.documents.metadata_values("demo", civil.id, "department") == ["건설과", "교통과", "상수도과"]


def test_an_older_ollama_embeds_one_by_one(
    app_services: Services, admin: Identity, provider_standin: ProviderStandin
) -> None:
    provider_standin.missing_paths = {"/api/embed"}
    embedder = app_services.providers.embedder_for("ollama/bge-m3@1024")
    assert embedder.embed(["주차", "문제"], purpose="document").vectors.shape == (2, 1024)
    assert provider_standin.paths.count("/api/embeddings") == 2


def test_passages_have_1200_characters_and_share_up_to_200() -> None:
    text = "\n\n".join(f"{n}번째 민원은 담당 부서에서 처리합니다. " * 3 for n in range(60))
    chunks = chunk_text(text, method="recursive", **sizes_for(CIVIL, "recursive"))
    assert len(chunks) > 2
    assert all(len(chunk.content) <= 1200 for chunk in chunks)
    shared = [before.end - after.start for before, after in pairwise(chunks)]
    assert max(shared) <= 200
    assert any(characters > 0 for characters in shared)


def test_only_metadata_of_the_profile_is_taken_with_a_file(
    app_services: Services, admin: Identity, civil: Collection
) -> None:
    content = pdf_of([["새 문서"]], headings=False, font=FONT)
    with pytest.raises(InvalidInput, match="department"):
        app_services.documents.upload(admin, civil, "d.pdf", content, metadata={"colour": "red"})
    assert len(app_services.documents.list("demo", collection_id=civil.id)) == 3
