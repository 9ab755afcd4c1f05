"""What a run of a page reads from the database: a page's worth, however much there is."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from typing import Any
from uuid import UUID

import psycopg
import pytest
from streamlit.runtime.state.common import WidgetMetadata
from streamlit.testing.v1 import AppTest

from rag.library.documents import DOCUMENTS_PER_PAGE
from rag.services import Services
from rag.storage.database import Database
from rag.storage.pipeline import PendingResult, Pipeline, Session
from rag.storage.sql import queries
from rag.types import Collection, Identity, Question, Role
from tests.patience import patient

SignIn = Callable[[Role], tuple[AppTest, Identity]]
FEW, MANY, RUNS = 20, 300, 3
#: Rows of one table or list, and as many again for figures, filters, people, collections and conversations.
MOST_ROWS = 2 * DOCUMENTS_PER_PAGE + 20
PAGES = [
    "chat.py",
    "library.py",
    "documents.py",
    "collection_settings.py",
    "board.py",
    "analytics.py",
    "people.py",
    "prices.py",
    "programs.py",
    "health.py",
    "audit.py",
]


class Reads:
    """Counts what cursors and pipelines bring; everything they do is done as ever."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.rows: list[tuple[int, str]] = []
        execute, rows_of = psycopg.Cursor.execute, Pipeline.rows

        def counting(cursor: Any, query: Any, *arguments: Any, **options: Any) -> Any:
            done = execute(cursor, query, *arguments, **options)
            if cursor.description is not None and cursor.rowcount > 0:
                self.rows.append((cursor.rowcount, " ".join(str(query).split())[:90]))
            return done

        def counting_rows(pipeline: Pipeline, answer: PendingResult) -> list[tuple[Any, ...]]:
            found = rows_of(pipeline, answer)
            if found:
                self.rows.append((len(found), " ".join(answer.key[0].split())[:90]))
            return found

        monkeypatch.setattr(psycopg.Cursor, "execute", counting)
        monkeypatch.setattr(Pipeline, "rows", counting_rows)

    def of(self, run: Callable[[], Any]) -> tuple[int, int]:
        """Statements that brought something, and their rows, of one run."""
        self.rows.clear()
        run()
        return len(self.rows), sum(number for number, _ in self.rows)

    def least_of(self, run: Callable[[], Any]) -> tuple[int, int]:
        """Of a few runs: one may fall on a refresh, in which the page is drawn twice or what was kept is read again."""
        return min(self.of(run) for _ in range(RUNS))


def add_documents(running: Services, collection_id: UUID, first: int, last: int, *, is_board: bool = False) -> None:
    with running.database.transaction("demo") as connection:
        connection.execute(
            """
            INSERT INTO documents (tenant_id, collection_id, title, file_name, sha256, status, page_count, metadata)
            SELECT 'demo', %(collection)s, 'Rule ' || n, 'rule_' || n || '.pdf', 'rule ' || %(kind)s || n,
                   'completed', 3, CASE WHEN %(kind)s = 'post'
                       THEN jsonb_build_object('postId', n::text, 'categorySlug', 'c', 'categoryName', 'News')
                       ELSE jsonb_build_object('summary', 'About rule ' || n,
                                               'questions', jsonb_build_array('What is rule ' || n || '?')) END
            FROM generate_series(%(first)s::integer, %(last)s::integer) AS n
            """,
            {"collection": collection_id, "kind": "post" if is_board else "file", "first": first, "last": last},
        )


@pytest.mark.parametrize("path", PAGES)
def test_a_page_reads_no_more_where_there_are_many_documents(
    running: Services, collection: Collection, signed_in: SignIn, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    tab, identity = signed_in(Role.ADMIN)
    board = running.documents.create_collection(identity, "Board", "notices")
    for where, is_board in ((collection, False), (board, True)):
        add_documents(running, where.id, 1, FEW, is_board=is_board)
    reads = Reads(monkeypatch)
    tab.run()
    if path != "chat.py":
        tab.switch_page(path).run()
    assert not tab.exception
    few_statements, _ = reads.least_of(tab.run)

    for where, is_board in ((collection, False), (board, True)):
        add_documents(running, where.id, FEW + 1, MANY, is_board=is_board)
    tab.run()
    statements, rows = reads.least_of(tab.run)
    assert not tab.exception
    assert rows <= MOST_ROWS, sorted(reads.rows, reverse=True)[:5]
    # A pager, a search in a list, a connection that is asked whether it works: some statements, none for each document.
    assert statements <= few_statements + 10


@pytest.mark.usefixtures("handbook")
def test_the_frame_and_the_page_read_the_collections_once(signed_in: SignIn, monkeypatch: pytest.MonkeyPatch) -> None:
    tab, _ = signed_in(Role.EMPLOYEE)
    tab.run()
    tab.chat_input[0].set_value("How many days of leave?").run()
    reads = Reads(monkeypatch)
    reads.of(tab.run)
    assert not tab.exception
    wanted = " ".join(queries["find_collections"].split())[:90]
    assert [query for _, query in reads.rows].count(wanted) == 1


@pytest.mark.usefixtures("handbook")
def test_an_open_conversation_and_a_question_take_few_transactions(
    running: Services, signed_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    tab, identity = signed_in(Role.EMPLOYEE)
    tab.run()
    tab.chat_input[0].set_value("How many days of leave?").run()
    lent: list[str] = []
    lend = Database._connection

    def counting(database: Database) -> Session:
        lent.append(threading.current_thread().name)
        return lend(database)

    monkeypatch.setattr(Database, "_connection", counting)
    tab.run()
    assert not tab.exception
    # The collections; the conversation with its messages and the list; what is left of the budget.
    in_script = [name for name in lent if "script" in name.lower()]
    assert len(in_script) <= 3, lent

    lent.clear()
    conversation = running.conversations.list(identity)[0]
    (handbook,) = running.documents.collections(identity)
    asked = []
    for conversation_id in (None, conversation.id):
        lent.clear()
        live = running.answers.ask(
            Question(text="How many days of leave?", identity=identity, collection=handbook),
            conversation_id=conversation_id,
        )
        asked.append(lent.count(threading.current_thread().name))
        assert live.wait(patient(20))
    # All of a question; before it, what was said before.
    assert asked == [1, 2]


@pytest.mark.usefixtures("handbook")
def test_a_tab_holds_no_more_runs_of_its_page_with_each_question(signed_in: SignIn) -> None:
    def held() -> tuple[int, int]:
        """Return how many runs of the chat somebody still holds the names of, and how many widgets."""
        gc.collect()
        objects = gc.get_objects()
        runs = [one for one in objects if isinstance(one, dict) and "show_source" in one and "draw_around" in one]
        return len(runs), sum(isinstance(one, WidgetMetadata) for one in objects)

    tab, _ = signed_in(Role.EMPLOYEE)
    tab.run()
    counts = []
    for number in range(6):
        tab.chat_input[0].set_value(f"How many days of annual leave are there, {number}?").run()
        assert not tab.exception
        counts.append(held())
    assert counts[-1][0] <= counts[1][0], f"runs are kept: {counts}"
    tab.query_params.clear()
    tab.run()
    assert held()[1] <= counts[0][1], f"widgets that are gone are kept: {counts}"


def test_the_model_of_a_document_is_named_without_reading_its_passages(
    running: Services, handbook: Collection, signed_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    (document,) = running.documents.list("demo")
    tab, _ = signed_in(Role.ADMIN)
    tab.run()
    tab.query_params["document"] = str(document.id)
    tab.switch_page("documents.py")
    tab.session_state[f"documents_tabs_{document.id}"] = "Details"
    tab.run()
    reads = Reads(monkeypatch)
    reads.of(tab.run)
    assert not tab.exception
    (facts,) = [table for table in tab.get("table") if "Search model" in str(getattr(table, "value", ""))]
    assert handbook.embedding_model.split("@")[0].split("/")[1] in str(getattr(facts, "value", "")).replace("\\", "")
    assert not [query for _, query in reads.rows if "FROM document_chunks" in query or "has_embedding" in query]
