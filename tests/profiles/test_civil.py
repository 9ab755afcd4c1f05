"""Source 003 from end to end: a local bge-m3, passages of 1200 characters, four terms, departments."""

from __future__ import annotations

import math
import re
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

from rag import chunk_text
from rag.errors import InvalidInput
from rag.ingestion.chunking import sizes_for
from rag.profiles import CIVIL, profile_of
from rag.profiles.profile import Options
from rag.services import Services
from rag.types import Collection, DocumentStatus, Identity, Outcome, Question, SearchFilters, UploadOptions
from tests.hostile import pdf_of
from tests.standins.providers import ProviderStandin

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
            admin, made, f"{name}.pdf", content, UploadOptions(metadata={"department": department})
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
        app_services.documents.upload(admin, civil, "d.pdf", content, UploadOptions(metadata={"colour": "red"}))
    assert len(app_services.documents.list("demo", collection_id=civil.id)) == 3


# The pipeline of the source, written down once more from its formulas alone.

TEXTS = (
    "주차 문제 민원은 교통과에 신청합니다. 처리 기간은 7일입니다.",
    "수도 요금 민원은 상수도과에 신청합니다. 요금 문제는 전화로 문의합니다.",
    "도로 위 주차 단속은 건설과에서 합니다. 문제 신고는 전화로 합니다.",
    "쓰레기 배출 시간은 저녁 8시부터입니다. 대형 쓰레기 배출은 신고가 필요합니다.",
    "여권 발급 민원은 종합민원실에서 합니다. 여권 발급 기간은 4일입니다.",
    "공원 시설 이용 신청은 공원녹지과에서 받습니다. Park facilities open at 9.",
    "소음 민원 신고는 환경과에 전화로 합니다. 야간 소음 단속 시간은 22시부터입니다.",
    "출산 지원금 신청 기간은 출생 후 60일입니다. 지원금 문의는 복지과로 합니다.",
)
QUESTIONS = (
    "주차 문제", "수도 요금 민원", "주차 단속", "쓰레기 배출 시간", "여권 발급 기간", "공원 시설 이용",
    "야간 소음 신고", "출산 지원금 신청", "Park facilities", "민원 처리 기간은 며칠입니까?",
    "주차 문제, 주차 단속, 주차 신고",
)  # fmt: skip


def tokenize(text: str) -> list[str]:
    text = re.sub(r"[^\w\s가-힣]", " ", text)
    return [token for token in text.split() if len(token) > 1]


def cosine_similarity(vec1: Any, vec2: Any) -> float:
    return float(np.dot(vec1, vec2) / (np.linalg.norm(vec1) * np.linalg.norm(vec2)))


def bm25_scores(query: str, chunks: list[str], k1: float, b: float) -> dict[int, float]:
    documents = [tokenize(chunk) for chunk in chunks]
    average = sum(map(len, documents)) / len(documents)
    scores: dict[int, float] = {}
    for number, document in enumerate(documents):
        score = 0.0
        for token in tokenize(query):
            n = sum(token in other for other in documents)
            idf = math.log(1 + (len(documents) - n + 0.5) / (n + 0.5))
            f = document.count(token)
            score += idf * (f * (k1 + 1)) / (f + k1 * (1 - b + b * len(document) / average))
        if score > 0:
            scores[number] = score
    return scores


def final_scores(query: str, query_vector: Any, chunks: list[str], vectors: list[Any], **bm25: float) -> list[float]:
    similarity = [cosine_similarity(query_vector, vector) for vector in vectors]
    near = {n: s for n, s in enumerate(similarity) if s > 0.2}
    matching = bm25_scores(query, chunks, **bm25)
    vector_rank = {n: rank for rank, n in enumerate(sorted(near, key=lambda n: -near[n]), 1)}
    bm25_rank = {n: rank for rank, n in enumerate(sorted(matching, key=lambda n: -matching[n]), 1)}
    return [
        near.get(n, 0.0) * 0.6
        + matching.get(n, 0.0) * 0.4
        + (0.3 / (60 + vector_rank[n]) if n in near else 0.0)
        + (0.2 / (60 + bm25_rank[n]) if n in matching else 0.0)
        for n in range(len(chunks))
    ]


@pytest.mark.parametrize("bm25", [{"k1": 1.5, "b": 0.75}, {"k1": 0.9, "b": 0.4}], ids=["source", "other"])
def test_a_collection_as_its_source_scores_its_questions_to_the_digit(
    app_services: Services, admin: Identity, provider_standin: ProviderStandin, bm25: dict[str, float]
) -> None:
    """Vectors are kept at half precision, so they are taken from the database; all the rest is computed here."""
    library = app_services.documents
    made = library.create_collection(admin, "원본", "civil", language="ko", is_as_source=True)
    made = library.override_collection(admin, made.id, {"bm25_k1": bm25["k1"], "bm25_b": bm25["b"]})
    for number, text in enumerate(TEXTS):
        content = pdf_of([[text]], headings=False, font=FONT)
        app_services.pipeline.process_document(
            file=content,
            file_name=f"문서 주차 {number}.pdf",
            tenant_id="demo",
            collection=made,
            options=UploadOptions(generate_metadata=False),
        )
    # The text of a chunk is sent alone, without the name of its file.
    embedded = [text for _, body in provider_standin.requests for text in body.get("input", ())]
    assert embedded
    assert not any("문서 주차" in text for text in embedded)
    with app_services.database.transaction("demo") as connection:
        rows = connection.execute(
            "SELECT id, content, embedding FROM document_chunks ORDER BY created_at, id"
        ).fetchall()
    ids, chunks = [row[0] for row in rows], [row[1] for row in rows]
    vectors = [row[2].to_numpy().astype(np.float64) for row in rows]
    embedder = app_services.providers.embedder_for(made.embedding_model)
    for question in QUESTIONS:
        asked = Question(text=question, identity=admin, collection=made)
        found = app_services.retriever.retrieve(asked, profile=profile_of(made)).hits
        vector = np.float16(embedder.embed([question], purpose="query").vectors[0]).astype(np.float64)
        expected = dict(zip(ids, final_scores(question, vector, chunks, vectors, **bm25), strict=True))
        best = {key: score for key, score in expected.items() if score > 0}
        assert {item.chunk_id: item.score for item in found} == pytest.approx(best, abs=2e-6), question
        assert [item.score for item in found] == sorted((item.score for item in found), reverse=True)


def test_a_search_as_the_source_returns_everything_above_the_threshold(
    app_services: Services, admin: Identity, client: TestClient
) -> None:
    made = app_services.documents.create_collection(admin, "원본", "civil", language="ko", is_as_source=True)
    app_services.documents.override_collection(admin, made.id, {"chunk_size": 100, "chunk_overlap": 0})
    lines = "\n\n".join(
        f"{n}번 주차 구역의 주차 민원은 교통과 {n}호실에서 받고 처리 기간은 {n}일입니다." for n in range(140)
    )
    app_services.pipeline.process_document(
        file=lines.encode(),
        file_name="parking.txt",
        tenant_id="demo",
        collection=app_services.documents.collection("demo", made.id),
        options=UploadOptions(generate_metadata=False),
    )

    def found(**options: Any) -> list[str]:
        body = {"query": "주차 민원", "collection": "원본", "options": options}
        return [result["content"] for result in client.post("/api/rag/search", json=body).json()["results"]]

    chunks = app_services.documents.list("demo", collection_id=made.id)[0].chunk_count
    assert len(set(found())) == len(found()) == chunks > 60
    assert found(topK=4) == found()[:4]
    app_services.documents.override_collection(admin, made.id, {"every_result": False})
    assert len(found()) == CIVIL.search.top_k
