"""Source 002 from end to end: reference documents by all eight routes, and the block for an opinion's prompt."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

import docx
import pytest
from starlette.testclient import TestClient

from rag import build_full_prompt
from rag.errors import NotFound, ProviderError
from rag.ingestion.tagging import NO_TAGS, chunk_tags_from_answer, vocabulary_of
from rag.profiles import LEGAL
from rag.profiles.legal.opinions import Draft, OpinionCase, as_docx, reference_query
from rag.retrieval.multi_query import NO_EMBEDDING
from rag.services import Services
from rag.types import Identity
from tests.hostile import pdf_of
from tests.standins.providers import ProviderStandin, default_reply

PATH = "/api/reference-documents"
THEFT = "절도죄의 양형기준: 피해자와 합의한 경우 집행유예를 참작할 사유가 된다. 선고유예는 초범에 한한다."
FRAUD = "사기죄의 양형기준: 편취액이 1억 원 이상이면 가중영역을 적용한다."
CASE = "무죄 판례: 합리적 의심을 배제할 증명력이 없으면 무죄를 선고한다."
PAGES = [[THEFT], [FRAUD], [CASE]]


def tags_of(passage: str) -> dict[str, Any]:
    crime = next((name for name in ("절도", "사기") if name in passage), None)
    topic = "판례" if "판례" in passage else "양형기준"
    return {"topic": topic, "crime_type": crime, "summary": passage[:20], "keywords": [topic]}


def tagging(messages: list[dict[str, Any]]) -> str:
    """Tags the passage it is given, and answers anything else as the stand-in does."""
    found = re.search(r"<passage>\n(.*)\n</passage>", str(messages[-1]["content"]), re.DOTALL)
    return json.dumps(tags_of(found[1]), ensure_ascii=False) if found else default_reply(messages)


@pytest.fixture
def korean_pdf() -> bytes:
    return pdf_of(PAGES, headings=False, font="HYSMyeongJo-Medium")


@pytest.fixture(autouse=True)
def tags(provider_standin: ProviderStandin) -> None:
    provider_standin.reply(tagging)


def ingest(client: TestClient, content: bytes, **fields: str) -> Any:
    fields = {"title": "대법원 양형기준표 - 절도", "source_description": "대법원", "pdfType": "digital"} | fields
    return client.post(
        f"{PATH}/ingest", data=fields, files={"document": ("양형기준표.pdf", content, "application/pdf")}
    )


def test_a_pdf_is_ingested_and_its_block_drafted_as_the_document_describes(
    client: TestClient, korean_pdf: bytes, provider_standin: ProviderStandin
) -> None:
    made = ingest(client, korean_pdf)
    assert made.status_code == 200, made.text
    body = made.json()
    assert {name: body[name] for name in ("success", "title", "chunksCount", "embedded", "tagged")} == {
        "success": True, "title": "대법원 양형기준표 - 절도", "chunksCount": 3, "embedded": 3, "tagged": 3,
    }  # fmt: skip
    embedding = next(body for kind, body in provider_standin.requests if kind == "embeddings")
    assert (embedding["model"], embedding["dimensions"]) == ("gemini-embedding-001", 768)

    found = client.post(
        "/api/opinion/reference-block",
        json={
            "opinionType": "양형의견서",
            "analysis": {"summary": "편의점 절도, 피해자와 합의", "issues": ["집행유예"]},
        },
    )
    assert found.status_code == 200, found.text
    block = found.json()
    assert block["query"] == "양형기준 양형 참작 사유 선고유예 집행유예 편의점 절도, 피해자와 합의"
    assert block["referenceRagBlock"].startswith("【참고자료】\n\n【양형기준 - 절도】\n절도죄의 양형기준")
    assert "【판례】\n무죄 판례" in block["referenceRagBlock"]  # no offence, so no dash
    assert block["referenceRagBlock"].endswith("\n\n")
    assert block["chunks"][0]["page_number"] == 1

    prompt = build_full_prompt(
        "양형의견서", "피고인은 초범이다.", "초안을 써 주세요.", ["예시 1"], block["referenceRagBlock"]
    )
    order = [
        "「양형의견서」",
        "【사건 자료】\n\n피고인은 초범이다.",
        "【작성 예시】\n\n예시 1",
        "【참고자료】\n\n【",
        "【요청】\n\n초안을",
    ]
    positions = [prompt.index(part) for part in order]
    assert positions == sorted(positions)


def test_a_block_says_what_was_done_without(
    client: TestClient, korean_pdf: bytes, provider_standin: ProviderStandin
) -> None:
    ingest(client, korean_pdf)
    provider_standin.fail_next(400, times=9, endpoint="embeddings")
    block = client.post("/api/opinion/reference-block", json={"opinionType": "무죄주장"}).json()
    assert block["notices"] == [NO_EMBEDDING]


def test_a_block_is_narrowed_by_tags_and_by_how_many(client: TestClient, korean_pdf: bytes) -> None:
    ingest(client, korean_pdf)

    def block(**wanted: Any) -> Any:
        return client.post("/api/opinion/reference-block", json={"opinionType": "무죄주장", **wanted})

    assert len(block().json()["chunks"]) == 3
    assert block().json()["query"] == "무죄 판례 증명력 합리적 의심"
    assert block(topK=1).json()["referenceRagBlock"] == f"【참고자료】\n\n【판례】\n{CASE}\n\n"
    fraud = block(filters={"crime_type": "사기"}).json()
    assert [chunk["metadata"]["crime_type"] for chunk in fraud["chunks"]] == ["사기"]
    nothing = block(filters={"crime_type": "방화"}).json()
    assert (nothing["chunks"], nothing["referenceRagBlock"]) == ([], "")
    assert block(filters={"colour": "red"}).status_code == 422
    assert block(topK=0).status_code == 422


def test_what_is_searched_for_a_kind_of_opinion_is_the_collections_to_say(
    client: TestClient, app_services: Services, admin: Identity, korean_pdf: bytes
) -> None:
    collection_id = app_services.documents.get(admin, UUID(ingest(client, korean_pdf).json()["id"])).collection_id
    changed = {"opinion_queries": [["보석청구", "보석 판례 도주 우려"]]}
    app_services.documents.override_collection(admin, collection_id, changed)
    asked = {"opinionType": "보석청구", "analysis": {"summary": "주거 일정"}}
    answer = client.post("/api/opinion/reference-block", json=asked)
    assert answer.json()["query"] == "보석 판례 도주 우려 주거 일정"


def test_steps_by_hand_in_the_order_of_the_documents_instructions(client: TestClient, korean_pdf: bytes) -> None:
    made = client.post(PATH, json={"title": "판례 요약", "source_description": "모음", "file_name": "a.pdf"})
    assert made.status_code == 201
    document = made.json()["document"]
    assert made.json()["id"] == document["id"]
    assert (document["source_description"], document["chunksCount"], document["status"]) == ("모음", 0, "registered")
    one = f"{PATH}/{document['id']}"
    for step in ("tag", "embed"):
        assert client.post(f"{one}/{step}").status_code == 409  # there is nothing to tag or embed yet

    cut = client.post(f"{one}/chunk", json={"pageTexts": {"2": FRAUD, "1": THEFT}})
    assert (cut.json()["chunksCount"], cut.json()["embedded"]) == (2, 0)
    assert client.post(f"{one}/tag").json()["tagged"] == 2
    assert _found(client) == []  # without vectors nothing is searched
    embedded = client.post(f"{one}/embed").json()
    assert (embedded["embedded"], embedded["tagged"]) == (2, 2)  # embedding keeps the tags
    assert len(_found(client)) == 2

    again = client.post(f"{one}/chunk", json={"fullText": CASE}).json()
    assert (again["chunksCount"], again["embedded"], again["tagged"]) == (1, 0, 0)
    assert _found(client) == []
    client.post(f"{one}/embed")
    assert [chunk["content"] for chunk in _found(client)] == [CASE]


def test_what_failed_half_way_is_finished_by_embed_and_tag(
    client: TestClient, korean_pdf: bytes, provider_standin: ProviderStandin
) -> None:
    provider_standin.fail_next(400, times=20, endpoint="embeddings")
    failed = ingest(client, korean_pdf)
    assert failed.status_code == 500
    one = f"{PATH}/{failed.json()['details']['document_id']}"
    document = client.get(one).json()["document"]
    assert (document["status"], document["embedded"], document["title"]) == ("failed", 0, "대법원 양형기준표 - 절도")
    assert document["message"]

    provider_standin.reset()
    provider_standin.reply(lambda messages: "no JSON" if "<passage>" in str(messages) else default_reply(messages))
    recovered = client.post(f"{one}/embed").json()
    assert (recovered["chunksCount"], recovered["embedded"]) == (3, 3)
    provider_standin.reply(tagging)
    client.post(f"{one}/tag")
    assert client.get(one).json()["document"]["tagged"] == 3
    calls = provider_standin.calls["embeddings"]
    assert client.post(f"{one}/embed").json()["embedded"] == 3
    assert provider_standin.calls["embeddings"] == calls  # nothing is paid for twice


def test_what_is_wrong_with_a_call_is_said_with_its_status(client: TestClient, korean_pdf: bytes) -> None:
    without = [
        client.post(f"{PATH}/ingest", data={"title": "x"}, files={"other": b""}),
        client.post(f"{PATH}/ingest", data={"title": "x"}),
        client.post(PATH, json={}),
        client.post(PATH, json={"source_description": "대법원"}),
    ]
    assert [(answer.status_code, answer.json()["success"]) for answer in without] == [(400, False)] * 4
    assert client.post(f"{PATH}/ingest", files={"document": ("a.pdf", korean_pdf)}).status_code == 400
    without_file = client.post(f"{PATH}/ingest", files={"title": (None, "x")})
    assert (without_file.status_code, without_file.json()["code"]) == (400, "part_missing")
    unreadable = ingest(client, b"no pdf")
    assert (unreadable.status_code, unreadable.json()["success"]) == (400, False)
    assert unreadable.json()["error"] == unreadable.json()["detail"]
    assert unreadable.headers["content-type"] == "application/problem+json"
    paper = ingest(client, korean_pdf, pdfType="paper")
    assert (paper.status_code, paper.json()["code"]) == (400, "request_invalid")
    assert "pdfType" in paper.json()["error"]
    assert ingest(client, korean_pdf).status_code == 200
    assert ingest(client, korean_pdf, title="같은 파일").status_code == 409
    assert client.post(PATH, json={"title": "  "}).status_code == 400
    assert client.post(PATH, json={"title": "x", "collectionId": str(uuid4())}).status_code == 404
    for method, path in (("get", ""), ("delete", ""), ("post", "/embed"), ("post", "/tag")):
        assert client.request(method, f"{PATH}/{uuid4()}{path}").status_code == 404
    registered = client.post(PATH, json={"title": "x"}).json()["document"]["id"]

    def chunk(**body: Any) -> int:
        return client.post(f"{PATH}/{registered}/chunk", json=body).status_code

    assert chunk() == chunk(fullText=" ") == chunk(pageTexts={"one": "x"}) == chunk(pageTexts={"0": "x"}) == 422
    assert chunk(pageTexts={"1" * 5000: "x"}) == chunk(pageTexts={"0" * 9 + "1": "x"}) == 422
    assert chunk(fullText="a", pageTexts={"1": "b"}) == chunk(text="a") == 422


def test_a_document_without_a_file_has_none_to_open(client: TestClient, app_services: Services) -> None:
    registered = client.post(PATH, json={"title": "x"}).json()["document"]["id"]
    with pytest.raises(NotFound, match="without a file"):
        app_services.documents.original("demo", UUID(registered))


def test_files_of_one_name_stay_documents_of_their_own(client: TestClient, korean_pdf: bytes) -> None:
    ingest(client, korean_pdf, title="첫째")
    ingest(client, pdf_of([[CASE]], headings=False, font="HYSMyeongJo-Medium"), title="둘째")
    listed = client.get(PATH).json()
    assert [document["title"] for document in listed["documents"]] == ["둘째", "첫째"]
    assert {document["status"] for document in listed["documents"]} == {"completed"}


def test_the_list_has_counts_and_pages(client: TestClient) -> None:
    for number in range(5):
        client.post(PATH, json={"title": f"문서 {number}"})
    page = client.get(PATH, params={"limit": 2, "offset": 3}).json()
    assert (page["total"], page["limit"], page["offset"]) == (5, 2, 3)
    assert [document["title"] for document in page["documents"]] == ["문서 1", "문서 0"]
    assert client.get(PATH, params={"limit": 2, "offset": 9}).json()["documents"] == []
    assert client.get(PATH, params={"limit": 0}).status_code == 422


def test_a_message_says_that_tags_failed_only_where_they_did(
    client: TestClient, korean_pdf: bytes, provider_standin: ProviderStandin
) -> None:
    """Beside the tags of passages, one call a document writes its summary, which may fail alone."""
    provider_standin.reply(lambda messages: tagging(messages) if "<passage>" in str(messages) else "{}")
    made = ingest(client, korean_pdf).json()
    assert (made["tagged"], made["chunksCount"]) == (3, 3)
    assert "tagged" not in made["message"]
    assert made["message"].startswith("The summary of this document could not be written")
    calls = [body for kind, body in provider_standin.requests if kind == "chat"]
    assert len(calls) == made["chunksCount"] + 1


def test_a_deleted_document_is_in_no_block(client: TestClient, korean_pdf: bytes) -> None:
    document_id = ingest(client, korean_pdf).json()["id"]
    assert client.delete(f"{PATH}/{document_id}").json() == {"success": True, "id": document_id}
    assert client.get(f"{PATH}/{document_id}").status_code == 404
    assert _found(client) == []


def test_nobody_of_another_tenant_sees_or_changes_a_document(
    client: TestClient, client_of: Callable[[Identity], TestClient], stranger: Identity, korean_pdf: bytes
) -> None:
    one = f"{PATH}/{ingest(client, korean_pdf).json()['id']}"
    other = client_of(stranger)
    assert other.get(PATH).json()["total"] == 0
    for method, path in (("get", ""), ("delete", ""), ("post", "/embed"), ("post", "/tag")):
        assert other.request(method, one + path).status_code == 404
    assert other.post("/api/opinion/reference-block", json={"opinionType": "x"}).status_code == 404


def test_documents_of_other_profiles_are_no_reference_documents(
    client: TestClient, app_services: Services, admin: Identity, korean_pdf: bytes
) -> None:
    hr = app_services.documents.collections("demo")[0]
    document = app_services.documents.upload(admin, hr, "handbook.pdf", korean_pdf)
    assert client.get(PATH).json()["total"] == 0
    assert client.delete(f"{PATH}/{document.id}").status_code == 404
    assert client.post(PATH, json={"title": "x", "collectionId": str(hr.id)}).status_code == 422


def test_the_words_of_an_opinion_are_the_profiles_and_unknown_kinds_their_own() -> None:
    assert reference_query(LEGAL, "보석청구", issues=["도주 우려", "주거 일정"]) == "보석청구 도주 우려 주거 일정"
    assert len(reference_query(LEGAL, "무죄주장", summary="가" * 5000)) < 330


def test_empty_parts_of_a_prompt_are_left_out() -> None:
    prompt = build_full_prompt("무죄주장", "사실", "")
    assert "【사건 자료】" in prompt
    assert "【작성 예시】" not in prompt
    assert "【요청】" not in prompt


def _found(client: TestClient) -> list[Any]:
    found = client.post("/api/opinion/reference-block", json={"opinionType": "양형의견서"})
    return list(found.json()["chunks"])


def drafting(messages: list[dict[str, Any]]) -> str:
    """Drafts where it is asked for an opinion, and tags passages."""
    if "의견서 초안" in str(messages[0]["content"]):
        return "피고인은 피해자와 합의하였으므로 집행유예를 참작할 사유가 있습니다 [1]. 판례도 같습니다 [9]."
    return tagging(messages)


def test_an_opinion_is_drafted_on_its_references_cited_billed_and_kept(
    client: TestClient, app_services: Services, admin: Identity, korean_pdf: bytes, provider_standin: ProviderStandin
) -> None:
    """`POST /api/opinion/generate` of the source: query, search, block, prompt, draft."""
    ingest(client, korean_pdf)
    provider_standin.reply(drafting)
    case = {"opinionType": "양형의견서", "analysis": {"summary": "편의점 절도, 피해자와 합의"}}
    asked = {
        **case,
        "dataBlock": "피고인은 초범이다.",
        "userPrompt": "선처를 구하는 초안",
        "learningExamples": ["예시 1"],
    }
    answer = client.post("/api/opinion/generate", json=asked)
    assert answer.status_code == 200, answer.text
    body = answer.json()
    opinion = body["opinion"]
    # A number that points nowhere is dropped; the one that stays leads to its passage.
    assert opinion["content"].endswith("사유가 있습니다 [1]. 판례도 같습니다.")
    assert [(item["cited"], item["content"]) for item in opinion["citations"]] == [(1, body["chunks"][0]["content"])]
    assert (opinion["state"], opinion["model"]) == ("complete", "gemini-flash-latest")
    assert float(opinion["cost"]) > 0
    prompt = [sent for kind, sent in provider_standin.requests if kind == "chat"][-1]["messages"][0]["content"]
    assert body["referenceRagBlock"].strip() in prompt
    assert all(part in prompt for part in ("피고인은 초범이다.", "선처를 구하는 초안", "예시 1"))
    with app_services.database.transaction("demo") as connection:
        row = connection.execute("SELECT sum(cost) FROM cost_ledger WHERE operation = 'chat'").fetchone()
    assert row is not None
    assert float(row[0]) == pytest.approx(float(opinion["cost"]))
    # On chosen references alone.
    chosen = client.post("/api/opinion/generate", json={**asked, "referenceIds": [body["chunks"][1]["id"]]}).json()
    assert [chunk["id"] for chunk in chosen["chunks"]] == [body["chunks"][1]["id"]]

    listed = client.get("/api/opinion").json()
    assert [item["id"] for item in listed["opinions"]] == [chosen["opinion"]["id"], opinion["id"]]
    kept = app_services.opinions.get(admin, UUID(opinion["id"]))
    texts = [paragraph.text for paragraph in docx.Document(io.BytesIO(as_docx(kept))).paragraphs]
    assert texts[0] == "양형의견서"
    assert any(opinion["content"] in text for text in texts)
    assert texts[-1].startswith("[1] 대법원 양형기준표")
    # What it was given of a document goes with the document; nobody else reads the draft.
    document_id = body["chunks"][0]["documentId"]
    assert client.delete(f"{PATH}/{document_id}").status_code == 200
    assert client.get(f"/api/opinion/{opinion['id']}").json()["citations"] == []
    other = replace(admin, account_id=uuid4())
    with pytest.raises(NotFound):
        app_services.opinions.get(other, UUID(opinion["id"]))
    assert client.delete(f"/api/opinion/{opinion['id']}").status_code == 200
    assert client.get(f"/api/opinion/{opinion['id']}").status_code == 404


def test_what_opinions_cost_counts_for_budgets_and_a_spent_one_ends_drafting(
    client: TestClient, app_services: Services, admin: Identity, korean_pdf: bytes, provider_standin: ProviderStandin
) -> None:
    ingest(client, korean_pdf)
    provider_standin.reply(drafting)
    case = {"opinionType": "무죄주장", "dataBlock": "피고인은 초범이다."}
    drafted = client.post("/api/opinion/generate", json=case).json()["opinion"]
    with app_services.database.transaction("demo") as connection:
        connection.execute("UPDATE accounts SET user_group = 'lawyers' WHERE id = %s", [admin.account_id])
    app_services.budgets.set(admin, "person", "0.00001", account_id=admin.account_id)
    app_services.budgets.set(admin, "group", "0.00001", user_group="lawyers")
    # A draft that is deleted was paid all the same.
    assert client.delete(f"/api/opinion/{drafted['id']}").status_code == 200
    assert client.get("/api/opinion").json() == {"opinions": [], "total": 0}
    spent = {budget.scope: float(budget.spent) for budget in app_services.budgets.list(admin)}
    assert spent["person"] >= float(drafted["cost"]) > 0
    assert spent["group"] >= float(drafted["cost"])
    called = provider_standin.calls["chat"]
    refused = client.post("/api/opinion/generate", json=case)
    assert (refused.status_code, refused.json()["code"]) == (403, "budget_spent")
    assert "budget" in refused.json()["error"]
    assert provider_standin.calls["chat"] == called


def test_an_opinion_that_fails_or_is_left_is_kept_and_billed(
    client: TestClient, app_services: Services, admin: Identity, korean_pdf: bytes, provider_standin: ProviderStandin
) -> None:
    ingest(client, korean_pdf)
    provider_standin.reply(drafting)
    assert client.post("/api/opinion/generate", json={"opinionType": "무죄주장"}).status_code == 422
    collection = app_services.documents.choose(admin, profile="legal")
    assert collection is not None
    left = app_services.opinions.begin(
        admin, collection, OpinionCase(opinion_type="무죄주장", facts="피고인은 초범이다."), references=()
    )
    next(left.pieces)
    left.pieces.close()  # the reader closed the page
    kept = app_services.opinions.get(admin, left.id)
    assert (kept.state, bool(kept.content), kept.cost is not None) == ("cut", True, True)
    provider_standin.fail_next(400, times=9, endpoint="chat")
    failed = client.post("/api/opinion/generate", json={"opinionType": "무죄주장", "dataBlock": "사실"})
    assert (failed.status_code, failed.json()["success"]) == (500, False)
    assert client.get("/api/opinion").json()["opinions"][0]["state"] == "failed"


def test_without_a_model_it_is_said_that_nothing_is_drafted_or_tagged(
    client: TestClient, app_services: Services, korean_pdf: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = ingest(client, korean_pdf).json()
    monkeypatch.setattr(type(app_services.providers), "chat_model_for", lambda *_: None)
    monkeypatch.setattr(type(app_services.providers), "translation_model_for", lambda *_: None)
    for answer in (
        client.post("/api/opinion/generate", json={"opinionType": "무죄주장", "dataBlock": "사실"}),
        client.post(f"/api/reference-documents/{document['id']}/tag"),
    ):
        body = answer.json()
        assert (answer.status_code, body["success"], body["code"]) == (503, False, "settings_error")
        assert "There is no language model" in body["error"]
        assert "Set-up" in body["error"]
    another = ingest(client, korean_pdf + b"% another file").json()
    assert (another["success"], another["tagged"], another["embedded"]) == (True, 0, another["chunksCount"])
    assert another["message"] == NO_TAGS


def test_each_call_of_an_opinion_is_a_row_of_the_ledger_whatever_became_of_it(
    client: TestClient, app_services: Services, admin: Identity, korean_pdf: bytes, provider_standin: ProviderStandin
) -> None:
    ingest(client, korean_pdf)
    collection = app_services.documents.choose(admin, profile="legal")
    assert collection is not None

    def rows() -> list[tuple[int, int, bool]]:
        with app_services.database.transaction("demo") as connection:
            return connection.execute(
                "SELECT input_tokens, output_tokens, is_estimated FROM cost_ledger "
                "WHERE operation = 'chat' AND chat_log_id IS NULL AND document_id IS NULL ORDER BY created_at"
            ).fetchall()

    def draft() -> Draft:
        return app_services.opinions.begin(
            admin, collection, OpinionCase(opinion_type="무죄주장", facts="피고인은 초범이다."), references=()
        )

    provider_standin.reply("피고인은 초범이며 깊이 반성하고 있습니다. 선처를 바랍니다.")
    provider_standin.cut_stream_after(2, is_billed=True)
    with pytest.raises(ProviderError):
        list(draft().pieces)
    ((read, written, is_estimated),) = rows()
    assert min(read, written) > 0
    assert is_estimated
    provider_standin.refuse("피고인은")
    before = len(provider_standin.usages)
    with pytest.raises(ProviderError):
        list(draft().pieces)
    (refused,) = provider_standin.usages[before:]
    assert rows()[1:] == [(refused["input_tokens"], refused["output_tokens"], False)]
    provider_standin.fail_next(400, times=9, endpoint="chat")
    with pytest.raises(ProviderError):
        list(draft().pieces)
    assert len(rows()) == 2
    # Its process is killed: what the call may have cost is charged by estimate, and never a second time.
    provider_standin.reset()
    killed = draft()
    next(killed.pieces)
    assert app_services.pipeline.settle_abandoned_calls("demo", quiet_seconds=0) == 1
    assert rows()[2][2]
    list(killed.pieces)
    assert len(rows()) == 3


def test_a_reference_and_its_tags_are_changed_later(
    client: TestClient, app_services: Services, admin: Identity, korean_pdf: bytes, provider_standin: ProviderStandin
) -> None:
    made = ingest(client, korean_pdf, category="양형기준").json()
    one = f"{PATH}/{made['id']}"
    changed = client.patch(one, json={"title": "양형기준표 2026", "category": "기준"}).json()["document"]
    assert (changed["title"], changed["category"], changed["source_description"]) == (
        "양형기준표 2026",
        "기준",
        "대법원",
    )
    assert client.patch(one, json={"title": " "}).status_code == 422
    # The tag prompt says what topic and offence may be; a value in another spelling becomes the collection's word.
    prompt = next(
        str(sent["messages"][0]["content"]) for kind, sent in provider_standin.requests
        if kind == "chat" and "<passage>" in str(sent["messages"])
    )  # fmt: skip
    assert "`topic` is one of 양형기준, 판례, 증거법 where one of them fits." in prompt
    assert "`crime_type` is one of 절도, 사기 where one of them fits." in prompt
    words = vocabulary_of(LEGAL.reading.tag_values)
    tags = chunk_tags_from_answer(
        '{"topic": "양형 기준", "crime_type": "방화", "summary": "s", "keywords": []}', ("topic", "crime_type"), words
    )
    assert (tags["topic"], tags["crime_type"]) == ("양형기준", "방화")
    assert (
        client.patch(f"{one}/chunks/0", json={"tags": {"crime_type": "방화", "keywords": ["합의"]}}).status_code == 200
    )
    assert client.patch(f"{one}/chunks/9", json={"tags": {"topic": "판례"}}).status_code == 404
    assert client.patch(f"{one}/chunks/0", json={"tags": {"colour": "red"}}).status_code == 422
    block = client.post(
        "/api/opinion/reference-block", json={"opinionType": "무죄주장", "filters": {"crime_type": "방화"}}
    ).json()
    assert [chunk["metadata"]["keywords"] for chunk in block["chunks"]] == [["합의"]]
