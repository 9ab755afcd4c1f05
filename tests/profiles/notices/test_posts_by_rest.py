"""A board read through the REST address of a Supabase project, by its real client."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from rag.errors import ProviderError, ProviderUnavailable, SettingsError
from rag.retrieval.ranking import attachments_of
from rag.services import Services, assemble
from rag.settings import Settings
from rag.storage.database import Database
from rag.types import Collection, Document, Identity
from tests.profiles.notices.boards import Board, Follow, event
from tests.standins.supabase import SERVICE, SupabaseStandin


@pytest.fixture
def elsewhere(superuser_conninfo: str) -> Iterator[str]:
    """A database with none of the product's tables."""
    name = f"posts_{uuid4().hex[:8]}"
    with psycopg.connect(superuser_conninfo, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    yield make_conninfo(superuser_conninfo, dbname=name)
    with psycopg.connect(superuser_conninfo, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def project(elsewhere: str) -> Iterator[SupabaseStandin]:
    with SupabaseStandin(database=elsewhere) as running:
        yield running


@pytest.fixture
def board(elsewhere: str) -> Iterator[Board]:
    made = Board(elsewhere)
    yield made
    made.connection.close()


@pytest.fixture
def paid_settings(paid_settings: Settings, project: SupabaseStandin) -> Settings:
    return replace(paid_settings, posts_supabase_url=project.url, posts_supabase_key=SERVICE)


def by_key(documents: list[Document]) -> dict[str, Document]:
    return {str(document.metadata["postId"]): document for document in documents}


def test_posts_come_with_categories_and_attachments_in_their_order_however_few_rows_an_answer_has(
    board: Board,
    notices: Collection,
    parts: Services,
    administrator: Identity,
    follow: Follow,
    project: SupabaseStandin,
) -> None:
    project.most_rows = 2
    for number in range(5):
        board.put(f"p{number}, ({number})", f"제목 {number}", "<p>본문</p>", category_id="c1")
    board.put("draft", "숨김", "<p>본문</p>", status="draft")
    board.connection.execute("ALTER TABLE hof_attachments ADD sort_order integer")
    for name in ("셋.txt", "둘.txt", "하나.txt"):
        board.attach("p1, (1)", name, name.encode(), url=f"https://files.example.com/{name}")
    board.connection.execute("UPDATE hof_attachments SET sort_order = 10 - id")
    report = parts.syncs.sync_now(administrator, notices)
    assert (report.added, report.failed) == (5, 0), report.problems
    found = by_key(follow.process(notices))
    post = found["p1, (1)"]
    assert post.metadata["categoryName"] == "MD 공지"
    assert [a["fileName"] for a in attachments_of(post.metadata)] == ["하나.txt", "둘.txt", "셋.txt"]
    assert parts.syncs.sync_now(administrator, notices).unchanged == 5
    # Word of a change: what the post is now is read from there too.
    record = board.put("p9", "새 글", "<p>새 본문</p>")
    assert parts.syncs.receive("demo", event("INSERT", {**record, "title": "alt"}))
    assert "새 글" in {document.title for document in follow(notices)}


@pytest.mark.parametrize(
    ("fault", "error", "said"),
    [
        ((401, {"message": "Invalid API key"}), SettingsError, "Check RAG_POSTS_SUPABASE_KEY"),
        ((403, {"code": "42501", "message": "permission denied for table hof_posts"}), SettingsError, "permission"),
        (
            (400, {"code": "42703", "message": "column p.id does not exist"}),
            SettingsError,
            "columns of hof_posts differ",
        ),
        ((503, {"message": "upstream is down"}), ProviderUnavailable, "upstream is down"),
        (("garbage", None), ProviderError, "cannot be read"),
        (("reset", None), ProviderUnavailable, "cannot be reached"),
    ],
)
def test_what_goes_wrong_is_said_and_removes_nothing(
    board: Board, notices: Collection, parts: Services, administrator: Identity, project: SupabaseStandin,
    fault: tuple[Any, Any], error: type[Exception], said: str,
) -> None:  # fmt: skip
    board.put("p1", "제목", "<p>본문</p>")
    parts.syncs.sync_now(administrator, notices)
    project.fail("/rest/v1/hof_posts", *fault, times=9)
    with pytest.raises(error, match=said):
        parts.syncs.sync_now(administrator, notices)
    assert len(parts.documents.list("demo", collection_id=notices.id)) == 1


def test_a_missing_table_and_a_missing_key_are_said(
    notices: Collection, parts: Services, administrator: Identity, database: Database
) -> None:
    with pytest.raises(SettingsError, match="There is no table hof_posts"):
        parts.syncs.sync_now(administrator, notices)
    without = assemble(replace(parts.settings, posts_supabase_key=""), database)
    with pytest.raises(SettingsError, match="Set RAG_POSTS_SUPABASE_KEY"):
        without.syncs.sync_now(administrator, notices)
    for url in ("http://db.example.com", "ftp://db.example.com"):
        unsafe = assemble(replace(parts.settings, posts_supabase_url=url), database)
        with pytest.raises(SettingsError, match="RAG_POSTS_SUPABASE_URL"):
            unsafe.syncs.sync_now(administrator, notices)


def test_a_project_with_the_products_own_tables_is_refused(
    notices: Collection, parts: Services, administrator: Identity, project: SupabaseStandin, superuser_conninfo: str
) -> None:
    """Its key would read the rows of every company."""
    project.database = superuser_conninfo
    parts.syncs.set_source(administrator, notices, "posts", {"table": "accounts", "title": "email"})
    with pytest.raises(SettingsError, match="leave RAG_POSTS_SUPABASE_URL empty"):
        parts.syncs.sync_now(administrator, notices)
    project.fail("/rest/v1/rag_migrations", 403, {"code": "42501", "message": "permission denied"})
    with pytest.raises(SettingsError, match="leave RAG_POSTS_SUPABASE_URL empty"):
        parts.syncs.sync_now(administrator, notices)
