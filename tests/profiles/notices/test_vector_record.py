"""The vector record of source 000: each of its twenty fields comes with a result and narrows a search."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from starlette.testclient import TestClient

from rag import retrieve_context
from rag.api.search_results import RECORD
from rag.profiles.profile import Options
from rag.services import Services
from rag.types import Collection, Identity, SearchFilters
from tests.profiles.notices.boards import days_ago

if TYPE_CHECKING:
    from tests.profiles.notices.boards import Board, Follow

QUESTION = "정착지원금 신청 방법"
FIELDS = {
    "postId", "categoryId", "categoryName", "categorySlug", "title", "excerpt", "createdAt", "updatedAt", "backdatedAt",
    "publishedAt", "isPinned", "isImportant", "status", "viewCount", "attachmentCount", "chunkIndex", "totalChunks",
    "attachmentsJson", "hasImages", "hasDocuments",
}  # fmt: skip


@pytest.fixture(autouse=True)
def two_posts(parts: Services, notices: Collection, administrator: Identity, board: Board, follow: Follow) -> None:
    """They differ in every field."""
    board.put("short", "짧은 글", f"<p>{QUESTION}</p>", category_id="c1", created_at=days_ago(5), view_count=7)
    board.put(
        "long",
        "긴 글",
        "<p>작성일: 2024-12-15</p>" + "".join(f"<p>{number}호 {QUESTION}을 안내합니다.</p>" for number in range(120)),
        category_id="c2",
        created_at=days_ago(9),
        published_at=days_ago(8),
        is_pinned=True,
        is_important=True,
        status="notice",
        view_count=90,
    )
    board.attach("long", "일정.png", size=3_000_000)
    board.attach("long", "양식.hwp", size=900)
    parts.syncs.sync_now(administrator, notices)
    follow.process(notices)


def searched(caller: TestClient, **narrowed: Any) -> list[dict[str, Any]]:
    """The metadata of what a search of the API finds."""
    options = {"topK": 50, "rerankTopN": 50, **({"metadataFilter": narrowed} if narrowed else {})}
    answer = caller.post("/api/rag/search", json={"query": QUESTION, "options": options})
    assert answer.status_code == 200, answer.text
    return [result["metadata"] for result in answer.json()["results"]]


def retrieved(**narrowed: Any) -> set[str]:
    """The titles that the package's function finds."""
    options = Options(filters=SearchFilters(metadata=narrowed))
    found = retrieve_context(query=QUESTION, tenant_id="demo", collection="Board", options=options)
    return {citation.title for citation in found.citations}


def test_all_twenty_fields_come_with_a_result_and_narrow_a_search(caller: TestClient) -> None:
    assert set(RECORD) == FIELDS
    posts = {metadata["postId"]: metadata for metadata in searched(caller)}
    assert set(posts) == {"short", "long"}
    # Another passage of the long post, so that its place in the post differs too.
    (elsewhere,) = searched(caller, postId="long", chunkIndex=1)
    assert posts["short"]["chunkIndex"] == 0
    for name in sorted(FIELDS):
        values = {"short": posts["short"][name], "long": elsewhere[name]}
        assert values["short"] != values["long"], name
        for post, value in values.items():
            found = searched(caller, **{name: value})
            assert {metadata["postId"] for metadata in found} >= {post}, (name, value)
            assert {metadata[name] for metadata in found} == {value}, (name, value)
            assert posts[post]["title"] in retrieved(**{name: value}), (name, value)
        assert searched(caller, **{name: "nothing of the kind"}) == [], name
        assert retrieved(**{name: "nothing of the kind"}) == set(), name


@pytest.mark.parametrize("narrowed", [{"postId": None}, {"postId": ["a"]}, {"x" * 101: 1}, "postId"])
def test_a_condition_that_is_none_is_refused_by_its_field(caller: TestClient, narrowed: Any) -> None:
    answer = caller.post("/api/rag/search", json={"query": QUESTION, "options": {"metadataFilter": narrowed}})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"].startswith("options.metadataFilter")
