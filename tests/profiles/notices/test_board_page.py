"""The board page: what an administrator and an employee see of posts, and that nothing in them acts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from starlette.testclient import TestClient
from streamlit.testing.v1 import AppTest

import rag.services as services_module
from rag.answering.citations import citation_from_json, citation_to_json
from rag.profiles import NOTICES
from rag.services import Services
from rag.types import Collection, Identity, Question, Role
from tests.patience import patient

if TYPE_CHECKING:
    from tests.profiles.notices.boards import Board, Follow

MAIN = str(Path(__file__).resolve().parents[3] / "pages" / "main.py")


@pytest.fixture
def open_page(parts: Services, monkeypatch: pytest.MonkeyPatch) -> Iterator[object]:
    monkeypatch.setattr(services_module, "connect_services", lambda settings: parts)
    services_module.services.clear()

    def opened(role: Role, page: str = "board.py") -> AppTest:
        with parts.database.transaction("demo") as connection:
            row = connection.execute(
                "INSERT INTO accounts (tenant_id, email, name, role, password_hash) "
                "VALUES ('demo', %s, 'Reader', %s, '') RETURNING id",
                [f"{role.value}@example.com", role.value],
            ).fetchone()
        assert row is not None
        account = next(a for a in parts.accounts.list(_admin(row[0])) if a.id == row[0])
        token = parts.sessions.start(account, "test")
        from rag.access.sessions import token_hash

        at = AppTest.from_file(MAIN, default_timeout=patient(60))
        at.user = {"sid": token_hash(token)}
        at.run()
        return at.switch_page(page).run()

    yield opened
    services_module.services.clear()


def _admin(account_id: object) -> Identity:
    return Identity(account_id=account_id, tenant_id="demo", email="", name="A", role=Role.ADMIN)  # type: ignore[arg-type]


@pytest.fixture
def posts(board: Board, notices: Collection, parts: Services, administrator: Identity, follow: Follow) -> Collection:
    board.put("p1", "고정 글", "<p>본문 <img src=x onerror=alert(1)> $x$ :red[y]</p>", category_id="c1", is_pinned=True)
    board.put("p2", "보통 글", "<p>다른 본문</p>", category_id="c3")
    parts.syncs.sync_now(administrator, notices)
    follow.process(notices)
    return notices


def everything(at: AppTest) -> str:
    return "\n".join(str(element.value) for element in [*at.markdown, *at.caption, *at.header, *at.error])


def test_without_a_board_there_is_no_such_page(open_page: object) -> None:
    with pytest.raises(ValueError, match="Could not find"):
        open_page(Role.ADMIN)  # type: ignore[operator]


def test_an_administrator_sees_state_cost_and_the_last_sync(open_page: object, posts: Collection) -> None:
    at = open_page(Role.ADMIN)  # type: ignore[operator]
    assert not at.exception
    at.session_state["board_view"] = "Table"
    at.run()
    table = at.dataframe[0].value
    assert list(table["Title"]) == ["고정 글", "보통 글"]
    assert {"Status", "Cost"} <= set(table.columns)
    assert "2 added" in everything(at)
    at.button(key="board_sync").click().run()
    assert not at.exception
    assert not at.error


def test_an_employee_reads_posts_and_nothing_about_their_making(open_page: object, posts: Collection) -> None:
    at = open_page(Role.EMPLOYEE)  # type: ignore[operator]
    assert not at.exception
    assert not at.dataframe
    shown = everything(at)
    assert "**고정 글**" in shown
    assert "Pinned" in shown
    at.button(key=next(b.key for b in at.button if b.label == "Read")).click().run()
    assert "본문" in everything(at)
    assert [button.key for button in at.button if button.key == "board_sync"] == []


def test_an_opened_post_is_text_whatever_its_html_wanted(open_page: object, posts: Collection, parts: Services) -> None:
    document = next(d for d in parts.documents.list("demo") if d.title == "고정 글")
    at = open_page(Role.EMPLOYEE)  # type: ignore[operator]
    at.query_params["post"] = str(document.id)
    at.run()
    assert not at.exception
    shown = everything(at)
    assert "본문" in shown
    assert "onerror" not in shown
    assert ":red[" not in shown.replace("\\:red", "")
    assert "Pinned" in shown


def test_categories_narrow_what_is_listed(open_page: object, posts: Collection) -> None:
    at = open_page(Role.EMPLOYEE)  # type: ignore[operator]
    at.button_group(key="board_categories").set_value(["인사시험"]).run()
    shown = everything(at)
    assert ("**보통 글**" in shown, "**고정 글**" in shown) == (True, False)


def test_the_board_is_asked_in_the_chat(open_page: object, posts: Collection) -> None:
    at = open_page(Role.EMPLOYEE)  # type: ignore[operator]
    at.button(key="board_ask").click().run()
    assert not at.exception
    assert at.session_state.chat_collection == posts.id
    assert "Board" in at.chat_input[0].placeholder or at.title


def test_names_of_columns_are_given_by_form(open_page: object, posts: Collection, parts: Services) -> None:
    at = open_page(Role.ADMIN)  # type: ignore[operator]
    at.text_input(key="board_column__title").set_value("subject")
    at.text_input(key="board_column_attachments_table").set_value("post_files")
    next(button for button in at.button if button.label == "Save").click().run()
    assert not at.exception
    (source,) = [item for item in parts.syncs.sources(posts) if item.kind == "posts"]
    assert source.settings["title"] == "subject"
    assert source.settings["attachments"]["table"] == "post_files"


def test_files_and_the_original_post_are_links_on_the_board_and_in_the_api(
    open_page: object, posts: Collection, parts: Services, administrator: Identity, board: Board, follow: Follow,
    caller: TestClient,
) -> None:  # fmt: skip
    at = open_page(Role.ADMIN)  # type: ignore[operator]
    for wrong in ("javascript:alert({id})", "https://board.example.com/posts"):
        at.text_input(key="board_column__post_address").set_value(wrong)
        next(button for button in at.button if button.label == "Save").click().run()
        assert "{id} for the post's id" in at.error[0].value.replace("\\", "")
    at.text_input(key="board_column__post_address").set_value("https://board.example.com/posts/{id}")
    next(button for button in at.button if button.label == "Save").click().run()
    assert not at.error
    board.put("p/3", "첨부 글", "<p>첨부를 보세요: 주차 위치</p>")
    for name, address in (("b.hwp", "https://files.example.com/b"), ("a.hwp", "javascript:alert(1)")):
        board.attach("p/3", name, size=10, url=address)
    report = parts.syncs.sync_now(administrator, posts)
    assert (report.added, report.updated) == (1, 2), "addresses of posts that are there come without reading them"
    follow.process(posts)
    document = next(d for d in parts.documents.list("demo") if d.title == "첨부 글")
    at.query_params["post"] = str(document.id)
    at.run()
    links = [link.proto.url for link in at.get("link_button")]
    assert links == ["https://files.example.com/b", "https://board.example.com/posts/p%2F3"]
    found = caller.post("/api/rag/search", json={"query": "첨부 글 주차 위치", "collection": "Board"}).json()["results"]
    (result,) = [item for item in found if item["postId"] == "p/3"]
    assert result["url"] == "https://board.example.com/posts/p%2F3"
    assert [(item["fileName"], item["url"]) for item in result["attachments"]] == [
        ("b.hwp", "https://files.example.com/b"), ("a.hwp", "")
    ]  # fmt: skip
    assert "javascript" not in result["metadata"]["attachmentsJson"]
    asked = Question(text="첨부 글 주차 위치", identity=administrator, collection=posts)
    cited = parts.retriever.retrieve_context(asked, profile=NOTICES).citations
    (card,) = [citation for citation in cited if citation.document_id == document.id]
    assert card.attachments == (("b.hwp", "https://files.example.com/b"), ("a.hwp", ""))
    kept = json.loads(json.dumps(citation_to_json(card)))
    assert citation_from_json(kept) == card, "as it is stored with an answer"
    # An answer from before, or a row that somebody wrote: what a link leads to is looked at where it is drawn.
    kept["attachments"].insert(0, ["c.hwp", "javascript:alert(2)"])
    drawn = AppTest.from_function(draw_card, args=(kept,)).run()
    assert not drawn.exception
    assert [link.proto.url for link in drawn.get("link_button")] == [
        "https://files.example.com/b", "https://board.example.com/posts/p%2F3"
    ]  # fmt: skip
    assert "javascript" not in everything(drawn)
    assert all(name in everything(drawn).replace("\\", "") for name in ("c.hwp", "a.hwp"))


def draw_card(kept: dict[str, object]) -> None:
    from rag.answering.citations import citation_from_json
    from rag.ui.sources import draw_source_cards

    draw_source_cards([citation_from_json(kept)], anchor="a", on_open=lambda citation: None)
