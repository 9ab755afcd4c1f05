"""Source 000's own example from end to end: question, candidates, one per post, reranker, age, priority, context."""

from __future__ import annotations

import re
from datetime import date, timedelta
from io import BytesIO
from threading import Event
from typing import Any

from PIL import Image
from starlette.testclient import TestClient

from rag.answering.pipeline import DoneEvent, TextEvent
from rag.answering.prompts import answer_messages
from rag.profiles import NOTICES
from rag.profiles.profile import Options, Profile
from rag.retrieval.ranking import attachment_part, day_of, korean_date, without_attachments, written_on
from rag.services import Services
from rag.types import ChatMessage, Collection, Identity, Outcome, Question, SearchFilters
from tests.profiles.notices.boards import QUESTION, TODAY, Board, Follow, days_ago
from tests.standins.providers import ProviderStandin


def ask(parts: Services, collection: Collection, administrator: Identity, **options: Any) -> Any:
    question = Question(text=QUESTION, identity=administrator, collection=collection)
    return parts.retriever.retrieve(
        question, profile=NOTICES.with_overrides(collection.overrides), options=Options(**options)
    )


def ids(found: Any) -> list[str]:
    return [citation.title for citation in found.response.citations]


def test_the_question_of_the_source_is_answered_as_it_says(
    parts: Services, filled: Collection, administrator: Identity, provider_standin: ProviderStandin
) -> None:
    found = ask(parts, filled, administrator)
    # Steps 2 and 3: thirty candidates, one of each post.
    assert len({result.document_id for result in found.hits}) < len(found.hits) <= 30
    (reranking,) = [body for endpoint, body in provider_standin.requests if endpoint == "rerank"]
    assert reranking["model"] == "rerank-v3.5"
    assert not reranking.get("top_n") or reranking["top_n"] == len(reranking["documents"])  # evidence is found in all
    assert "이번 정착지원금\n\n" in "".join(reranking["documents"])
    assert len(reranking["documents"]) == len({result.document_id for result in found.hits})
    # Steps 5 and 6: the pinned one, the important one, then by age.
    order = ids(found)
    assert order[:2] == ["고정 정착지원금", "필독 정착지원금"]
    assert order[2] == "이번 정착지원금"
    assert len(order) <= 5


def test_the_context_is_in_the_sources_form(parts: Services, filled: Collection, administrator: Identity) -> None:
    text = ask(parts, filled, administrator).response.context_text
    day = korean_date(day_of(round((TODAY - timedelta(days=3)).timestamp() * 1000)))
    block = f"---\n제목: 이번 정착지원금\n카테고리: MD 공지\n날짜: {day}\n\n내용:\n{QUESTION} 이번\n---"
    assert block in text
    assert "\n(필독)\n\n내용:" in text
    assert "\n(고정)\n\n내용:" in text
    assert "카테고리: 일반\n날짜: 2024. 12. 15.\n" in text
    assert text.endswith("This is the stand-in's answer.\n- 문서: 양식.hwp")
    assert "--- 첨부파일 정보 ---\n[이번 정착지원금]\n- 문서: image.txt\n  설명: " in text
    assert text.count("첨부파일 정보") == 1


def test_a_category_alone_is_searched_or_all(parts: Services, filled: Collection, administrator: Identity) -> None:
    only = ask(parts, filled, administrator, filters=SearchFilters(categories=("notice-bmmd",)))
    assert ids(only) == ["필독 정착지원금"]
    fallback = ask(parts, filled, administrator, filters=SearchFilters(categories=("general",)))
    assert ids(fallback) == ["옮긴 글"]


def test_only_important_posts_where_the_collection_wants_them(
    parts: Services, filled: Collection, administrator: Identity
) -> None:
    changed = parts.documents.override_collection(administrator, filled.id, {"important_only": True})
    assert ids(ask(parts, changed, administrator)) == ["필독 정착지원금"]


def test_dates_are_those_the_posts_give_themselves(
    parts: Services, filled: Collection, administrator: Identity
) -> None:
    day = date(2024, 12, 15)
    assert ids(ask(parts, filled, administrator, filters=SearchFilters(date_from=day, date_to=day))) == ["옮긴 글"]


def test_the_answer_is_made_by_the_sources_model_and_figures(
    parts: Services, filled: Collection, administrator: Identity, provider_standin: ProviderStandin
) -> None:
    provider_standin.reply("‘이번 정착지원금’ 공지에 따라 신청합니다 [1].")
    events = list(
        parts.answerer.answer(
            Question(text=QUESTION, identity=administrator, collection=filled), profile=NOTICES, cancel=Event()
        )
    )
    done = events[-1]
    assert isinstance(done, DoneEvent)
    assert done.outcome is Outcome.ANSWERED
    assert "".join(e.text for e in events if isinstance(e, TextEvent)).startswith("‘이번 정착지원금’")
    _, body = [(name, body) for name, body in provider_standin.requests if name == "chat"][-1]
    assert (body["model"], body["temperature"]) == ("gemini-flash-latest", 0.3)
    assert body.get("max_completion_tokens", body.get("max_tokens")) == 2048
    system, user = body["messages"][0]["content"], body["messages"][-1]["content"]
    assert "답은 한국어로 씁니다" in system
    assert "제목: 이번 정착지원금" in user
    assert user.endswith(QUESTION)
    card = done.citations[0]
    assert (card.title, card.category, card.is_pinned, card.is_important) == ("고정 정착지원금", "영업 DB", True, False)
    assert card.written_on


def test_a_question_in_english_is_answered_in_korean_unless_asked_otherwise(
    parts: Services, filled: Collection, administrator: Identity, provider_standin: ProviderStandin
) -> None:
    question = Question(
        text="How do I apply? 정착지원금 신청 방법이 어떻게 되나요", identity=administrator, collection=filled
    )
    list(parts.answerer.answer(question, profile=NOTICES, cancel=Event()))
    system = [body for name, body in provider_standin.requests if name == "chat"][-1]["messages"][0]["content"]
    assert "답은 한국어로 씁니다" in system
    assert "다른 언어로 답해 달라고" in system


def test_attachments_take_no_more_room_than_there_is() -> None:
    metadata = {"attachmentsJson": '[{"fileName": "a.png", "kind": "image", "description": "그림"}, {"fileName": "b"}]'}
    posts = [("공지", metadata), ("다른 공지", {})]
    assert attachment_part(NOTICES.answer.attachment_format, iter(posts), lambda text: True) == (
        "--- 첨부파일 정보 ---\n[공지]\n- 이미지: a.png\n  설명: 그림\n- 문서: b"
    )
    assert attachment_part(NOTICES.answer.attachment_format, iter(posts), lambda text: False) == ""
    assert (
        attachment_part(NOTICES.answer.attachment_format, iter([("공지", {"attachmentsJson": "no JSON"})]), bool) == ""
    )


def test_a_passage_that_is_all_attachments_is_shown_by_its_excerpt() -> None:
    text = "--- 첨부파일 정보 ---\n- 이미지: a.png"
    assert without_attachments(text, {"excerpt": "본문"}) == "본문"
    assert without_attachments(f"본문\n\n{text}", {}) == "본문"


def test_a_time_that_is_not_set_is_no_day() -> None:
    assert written_on({"backdatedAt": 0, "createdAt": 1734188400000}) == date(2024, 12, 15)
    assert written_on({"backdatedAt": "nonsense", "createdAt": 0}) is None
    assert korean_date(None) == ""


def test_the_profile_is_the_sources() -> None:
    profile: Profile = NOTICES
    assert profile.search.categories == ("notice-md", "notice-bmmd", "hr-exam", "sales-db-notice", "general")


def test_a_search_returns_the_best_five_and_an_answer_needs_evidence(
    behind_routes: Services, filled: Collection, caller: TestClient
) -> None:
    """The source's search always returns its top five; `onlyEvidence` asks for what speaks to the question."""

    def search(**options: Any) -> list[str]:
        body = {"query": "구내식당 메뉴는 무엇인가요?", "collection": str(filled.id), "options": options}
        answer = caller.post("/api/rag/search", json=body)
        assert answer.status_code == 200, answer.text
        return [result["title"] for result in answer.json()["results"]]

    assert len(search(rerank=False)) >= 4
    assert search(rerank=False, onlyEvidence=True) == []


def test_a_pinned_post_leads_only_where_it_is_about_the_question(
    parts: Services, filled: Collection, administrator: Identity
) -> None:
    """Nothing on the board answers this; by the source's rule, a floor of 0, the pinned post leads all the same."""
    asked = Question(text="이번 양식은 어디에 있나요?", identity=administrator, collection=filled)

    def order(profile: Profile) -> list[str]:
        found = parts.retriever.retrieve(asked, profile=profile, options=Options(only_evidence=False, reranking=False))
        return [citation.title for citation in found.response.citations]

    assert order(NOTICES.changed(pinned_floor=0.0))[0] == "고정 정착지원금"
    assert order(NOTICES.changed(pinned_floor=1.0)) == order(NOTICES.changed(pinned_first=False))
    assert NOTICES.ranking.pinned_floor > 0


def test_a_board_as_its_source_is_in_korean_reranks_to_five_and_reads_posts_alone(
    behind_routes: Services, filled: Collection, caller: TestClient, administrator: Identity,
    provider_standin: ProviderStandin,
) -> None:  # fmt: skip
    library = behind_routes.documents
    made = library.create_collection(administrator, "As the source", "notices", is_as_source=True)
    assert (made.language, library.create_collection(administrator, "Policies", "hr").language) == ("ko", "en")
    library.override_collection(administrator, filled.id, dict(made.overrides))
    provider_standin.reset()
    body = {"query": QUESTION, "collection": str(filled.id)}
    found = caller.post("/api/rag/search", json=body).json()["results"]
    assert len(found) == 5
    (reranking,) = [body for endpoint, body in provider_standin.requests if endpoint == "rerank"]
    assert (reranking["top_n"], len(reranking["documents"]) > 5) == (5, True)
    # The long post is found in one of its parts, and those beside it are left out.
    own = NOTICES.with_overrides(made.overrides)
    asked = Question(text=QUESTION, identity=administrator, collection=filled)
    texts = [
        behind_routes.retriever.retrieve(asked, profile=profile, options=Options(top_k=10, rerank_top_n=10))
        .response.context_text
        for profile in (own, own.changed(stitch_neighbours=True))
    ]  # fmt: skip
    assert len(texts[0]) < len(texts[1])


def test_a_board_made_without_a_language_has_its_pictures_described_in_korean(
    board: Board, parts: Services, administrator: Identity, follow: Follow, provider_standin: ProviderStandin
) -> None:
    picture = BytesIO()
    Image.new("RGB", (300, 200), "white").save(picture, "PNG")
    made = parts.documents.create_collection(administrator, "Board", "notices")
    board.put("new", "교육 일정", "<p>일정은 그림에 있습니다.</p>", category_id="c1", created_at=days_ago(3))
    board.attach("new", "image.png", picture.getvalue())
    provider_standin.reply("교육 일정표가 표시된 이미지입니다. " * 60)
    parts.syncs.sync_now(administrator, made)
    follow.process(made)
    (described,) = [body for kind, body in provider_standin.requests if kind == "chat" and "image_url" in str(body)]
    assert "한국어로 500자 이내" in str(described["messages"])
    found = parts.retriever.retrieve(
        Question(text="교육 일정", identity=administrator, collection=made), profile=NOTICES
    ).response.context_text
    description = found.partition("설명: ")[2]
    assert description.startswith("교육 일정표가 표시된 이미지입니다.")
    assert 250 < len(description.strip()) <= 500


def test_a_long_post_is_embedded_in_batches_of_100(
    board: Board, notices: Collection, parts: Services, administrator: Identity, follow: Follow,
    provider_standin: ProviderStandin,
) -> None:  # fmt: skip
    text = " ".join(f"{n}번 규정은 담당 부서의 승인을 받아 적용합니다." for n in range(5500))
    board.put("long", "규정집", f"<p>{text}</p>", category_id="c1", created_at=days_ago(3))
    parts.syncs.sync_now(administrator, notices)
    follow.process(notices)
    sizes = [len(body["input"]) for kind, body in provider_standin.requests if kind == "embeddings"]
    assert sorted(sizes, reverse=True)[0] == 100
    assert len(sizes) == 2


def test_a_board_as_its_source_sends_the_sources_prompt_in_its_order(
    behind_routes: Services, filled: Collection, caller: TestClient, administrator: Identity,
    provider_standin: ProviderStandin,
) -> None:  # fmt: skip
    """000, step 7 and 8: one prompt, rules first, contexts without numbers; five posts of one call of the reranker."""
    library = behind_routes.documents
    made = library.create_collection(administrator, "As the source", "notices", is_as_source=True)
    own = {**made.overrides, "own_name": "KB생명보험 HO&F Branch"}
    library.override_collection(administrator, filled.id, own)
    provider_standin.reset()
    provider_standin.reply(f"‘이번 정착지원금’ 공지: {QUESTION} 이번")
    answer = caller.post("/api/rag/chat", json={"query": QUESTION, "collection": str(filled.id)})
    assert answer.status_code == 200, answer.text
    (reranking,) = [body for endpoint, body in provider_standin.requests if endpoint == "rerank"]
    assert (reranking["top_n"], len(reranking["documents"]) > 5) == (5, True)
    ((message,),) = [body["messages"] for endpoint, body in provider_standin.requests if endpoint == "chat"]
    assert message["role"] == "user"
    marks = "아래는 관련 공지사항 내용입니다:\n\n|\n\n---\n\n사용자 질문: "
    before, context, after = re.split(marks, message["content"])
    assert before == (
        "You are a helpful assistant for KB생명보험 HO&F Branch notice board. Your role is to answer questions based "
        "on the provided notice content. Always respond in Korean unless the user specifically asks for another "
        "language. If the information is not available in the provided context, say so clearly. When citing "
        "information, mention the notice title and date when relevant. If there are attachments mentioned, include "
        "that information in your response. Be concise but thorough in your responses.\n\n"
    )
    assert after == (
        f"{QUESTION}\n\n위 공지사항 내용을 바탕으로 질문에 답변해주세요.\n"
        "답변에 사용한 공지사항의 제목을 인용해주세요.\n"
        "첨부파일이 있는 경우 해당 정보도 포함해주세요."
    )
    posts, attachments = context.split("\n--- 첨부파일 정보 ---\n")
    blocks = posts.removeprefix("---\n").removesuffix("\n---").split("\n---\n---\n")
    assert [block.splitlines()[0].partition(": ")[0] for block in blocks] == ["제목"] * 5
    assert blocks[0].startswith("제목: 고정 정착지원금\n카테고리: 영업 DB\n날짜: ")
    assert "[1]" not in context
    assert attachments.startswith("[이번 정착지원금]\n- ")
    # The answer names its sources although no number stood in the prompt.
    assert "이번 정착지원금" in [source["title"] for source in answer.json()["sources"]]


def test_earlier_turns_stand_before_the_sources_one_message() -> None:
    earlier = [
        ChatMessage(role="user", content="정착지원금은 언제인가요?"),
        ChatMessage(role="assistant", content="12월입니다."),
    ]
    sent = answer_messages(
        system="Rules.", history=earlier, context_text="Post", question="그리고 1월은?", form="notices"
    )
    assert sent[:-1] == earlier
    assert sent[-1].role == "user"
    assert sent[-1].content.startswith("Rules.\n\n")


def test_a_question_cannot_end_its_part_of_the_sources_prompt() -> None:
    (message,) = answer_messages(
        system="Rules {query}.",
        history=(),
        context_text="Post {query} {context}",
        question="{context}?",
        form="notices",
    )
    assert message.content.startswith("Rules {query}.\n\n아래는")
    assert "\n\nPost {query} {context}\n\n---\n\n사용자 질문: {context}?\n" in message.content
