"""Fixtures for a notice board: its tables in the test's database, a collection which follows them, and all services."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from uuid import uuid4

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

import rag.services as services_module
from rag.services import Services, assemble
from rag.settings import Settings
from rag.storage.database import Database
from rag.types import Collection, Identity, Role
from tests.profiles.notices.boards import Board, Follow, days_ago
from tests.standins.providers import ProviderStandin


@pytest.fixture
def board(superuser_conninfo: str) -> Iterator[Board]:
    made = Board(superuser_conninfo)
    yield made
    made.connection.close()


@pytest.fixture
def paid_settings(settings: Settings, provider_standin: ProviderStandin) -> Settings:
    """Settings which direct all providers of source 000 to the stand-in."""
    return replace(
        settings,
        openai_api_key="key",
        openai_base_url=provider_standin.openai_url,
        gemini_api_key="key",
        gemini_base_url=provider_standin.gemini_url,
        cohere_api_key="key",
        cohere_base_url=provider_standin.cohere_url,
        webhook_secret="a secret of the webhook",
    )


@pytest.fixture
def parts(database: Database, paid_settings: Settings) -> Iterator[Services]:
    made = assemble(paid_settings, database)
    made.queue.retry_seconds = (0.05, 0.05)
    yield made
    made.close()


@pytest.fixture
def behind_routes(parts: Services, monkeypatch: pytest.MonkeyPatch) -> Iterator[Services]:
    """All services on the test's database, as routes get them."""
    monkeypatch.setattr(services_module, "connect_services", lambda settings: parts)
    services_module.services.clear()
    yield parts
    parts.answers.stop_all()
    services_module.services.clear()


@pytest.fixture
def caller(behind_routes: Services, administrator: Identity) -> Iterator[TestClient]:
    """An API client whose key may ask questions."""
    from rag.server import ERROR_HANDLERS, MIDDLEWARE, ROUTES

    _, secret = behind_routes.api_keys.create(administrator, "intranet", ["chat", "search"])
    app = Starlette(routes=ROUTES, middleware=MIDDLEWARE, exception_handlers=ERROR_HANDLERS)
    with TestClient(app, headers={"Authorization": f"Bearer {secret}"}) as made:
        yield made


@pytest.fixture
def notices(parts: Services, administrator: Identity) -> Collection:
    """A collection which follows the board's table, with the embedder of source 000."""
    return parts.documents.create_collection(administrator, "Board", "notices", language="ko")


@pytest.fixture
def administrator() -> Identity:
    return Identity(account_id=uuid4(), tenant_id="demo", email="a@example.com", name="A", role=Role.ADMIN)


@pytest.fixture
def follow(parts: Services) -> Follow:
    return Follow(parts)


@pytest.fixture
def filled(board: Board, notices: Collection, parts: Services, administrator: Identity, follow: Follow) -> Collection:
    """A board with posts about one subject, of every age and mark."""
    about = "<p>12월 정착지원금 신청 방법이 어떻게 되나요? {}</p>"
    board.put("old", "작년 정착지원금", about.format("작년"), category_id="c1", created_at=days_ago(700))
    board.put("new", "이번 정착지원금", about.format("이번"), category_id="c1", created_at=days_ago(3))
    board.put(
        "important",
        "필독 정착지원금",
        about.format("필독"),
        category_id="c2",
        created_at=days_ago(50),
        is_important=True,
    )
    board.put(
        "pinned", "고정 정착지원금", about.format("고정"), category_id="c4", created_at=days_ago(800), is_pinned=True
    )
    board.put(
        "dated", "옮긴 글", "<p>작성일: 2024-12-15</p>" + about.format("옮긴"), category_id="c9", created_at=days_ago(1)
    )
    board.put("other", "주차 안내", "<p>지하 2층에 주차합니다.</p>", category_id="c3", created_at=days_ago(2))
    board.put(
        "long", "긴 글", "<p>정착지원금 신청 방법이 어떻게 되나요. </p>" * 150, category_id="c1", created_at=days_ago(9)
    )
    board.attach("new", "image.txt", "신청 일정".encode())
    board.attach("new", "양식.hwp", size=1000)
    parts.syncs.sync_now(administrator, notices)
    follow.process(notices)
    return notices
