"""Statements that travel together: what goes wrong stays with them, and the next ones find the connection fit."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import psycopg
import pytest
from pgvector import HalfVector
from psycopg import pq
from psycopg.types.json import Jsonb

from rag.errors import DatabaseUnavailable
from rag.records.gaps import Gap
from rag.storage.database import Database
from rag.storage.pipeline import MOST_PREPARED, PREPARED_AFTER, WRITABLE, Pipeline, Session, numbered
from rag.types import Collection

COUNT = "SELECT count(*) FROM collections"


@pytest.fixture
def alone(database: Database) -> Iterator[Database]:
    """The same database through a single connection, so that whatever is left on it meets the next one."""
    opened = Database(database.conninfo, database.key, maximum_connections=1)
    opened.open()
    yield opened
    opened.close()


def backend(database: Database) -> int:
    with database.pipeline("demo") as pipeline:
        row = pipeline.execute("SELECT pg_backend_pid()").fetchone()
    assert row is not None
    return int(row[0])


@pytest.mark.parametrize("wrong", ["SELECT nothing", "SELECT 1 / (SELECT count(*) - 1 FROM collections)"])
def test_an_error_is_told_and_what_came_before_it_is_answered(
    alone: Database, collection: Collection, wrong: str
) -> None:
    session = backend(alone)
    answered: list[object] = []

    def ask() -> None:
        with alone.pipeline("demo") as pipeline:
            answers = [pipeline.execute(text) for text in (COUNT, wrong, COUNT)]
            answered.extend(answer.fetchall() for answer in answers)  # keeps what came before the error

    with pytest.raises(psycopg.Error):
        ask()
    assert answered == [[(1,)]]
    with alone.pipeline("demo") as pipeline:
        assert pipeline.execute(COUNT).fetchall() == [(1,)]
    assert backend(alone) == session


def test_an_error_nobody_reads_is_told_at_the_end(alone: Database) -> None:
    def ask(*, is_finished: bool) -> None:
        with alone.pipeline("demo") as pipeline:
            pipeline.execute("SELECT nothing")
            if is_finished:
                pipeline.finish()

    for is_finished in (False, True):
        with pytest.raises(psycopg.errors.UndefinedColumn):
            ask(is_finished=is_finished)
    assert backend(alone)


def test_a_lost_server_is_unavailable_and_the_next_pipeline_has_another(
    alone: Database, superuser_conninfo: str
) -> None:
    lost = backend(alone)

    def ask() -> None:
        with alone.pipeline("demo") as pipeline, psycopg.connect(superuser_conninfo) as connection:
            connection.execute("SELECT pg_terminate_backend(%s, 2000)", (lost,))
            pipeline.execute(COUNT).fetchall()

    with pytest.raises(DatabaseUnavailable):
        ask()
    assert backend(alone) != lost


def test_whoever_gives_up_in_the_middle_leaves_no_tenant_behind(alone: Database) -> None:
    def give_up() -> None:
        with alone.pipeline("demo") as pipeline:
            pipeline.execute(COUNT)
            pipeline.flush()
            raise KeyError

    with pytest.raises(KeyError):
        give_up()
    with alone._pool.connection() as connection:
        assert connection.execute("SELECT rag_tenant()").fetchone() == (None,)


def test_nothing_can_be_written(alone: Database) -> None:
    with pytest.raises(psycopg.errors.ReadOnlySqlTransaction), alone.pipeline("demo") as pipeline:
        pipeline.execute("DELETE FROM documents").fetchall()


def test_a_tenant_sees_its_own_rows_alone(alone: Database, collection: Collection) -> None:
    counts = {}
    for tenant in ("demo", "other", "demo"):
        with alone.pipeline(tenant) as pipeline:
            counts[tenant] = pipeline.execute(COUNT).fetchall()
    assert counts == {"demo": [(1,)], "other": [(0,)]}


def test_statements_that_the_driver_made_the_server_forget_are_prepared_again(
    alone: Database, collection: Collection
) -> None:
    for statement in ("DEALLOCATE ALL", "SELECT 1 / 0"):
        for _ in range(3):
            with alone.pipeline("demo") as pipeline:
                asked = [pipeline.execute(COUNT), pipeline.execute("SELECT 2")]
                pipeline.finish()
                assert [answer.fetchall() for answer in asked] == [[(1,)], [(2,)]]
        try:
            with alone.transaction("demo") as connection:
                for _ in range(8):  # so often that the driver prepares it, and forgets everything at an error
                    connection.execute(COUNT)
                connection.execute(statement)
        except psycopg.errors.DivisionByZero:
            pass
    with alone.pipeline("demo") as pipeline:
        assert pipeline.execute(COUNT).fetchall() == [(1,)]
    with pytest.raises(psycopg.errors.InvalidSqlStatementName), alone.pipeline("demo") as pipeline:
        pipeline.execute("EXECUTE unheard_of").fetchall()


def test_behind_a_pooler_nothing_is_prepared(database: Database, collection: Collection) -> None:
    pooled = Database(database.conninfo, database.key, maximum_connections=1, is_pooled=True)
    pooled.open()
    try:
        for _ in range(8):
            with pooled.pipeline("demo") as pipeline:
                assert pipeline.execute(COUNT).fetchall() == [(1,)]
                prepared = pipeline.execute("SELECT count(*) FROM pg_prepared_statements").fetchall()
        assert prepared == [(0,)]
    finally:
        pooled.close()


def test_all_statements_see_one_moment(database: Database, collection: Collection) -> None:
    with database.pipeline("demo") as pipeline:
        first = pipeline.execute(COUNT).fetchall()
        with database.transaction("demo") as connection:
            connection.execute("INSERT INTO collections (tenant_id, name, embedding_model) VALUES ('demo', 'x', 'y')")
        assert pipeline.execute(COUNT).fetchall() == first
    with database.pipeline("demo") as pipeline:
        assert pipeline.execute(COUNT).fetchall() != first


def test_more_is_sent_and_received_than_the_socket_holds(alone: Database) -> None:
    words = ["x" * 1_000] * 5_000
    with alone.pipeline("demo") as pipeline:
        asked = [pipeline.execute("SELECT %(words)s::text[]", {"words": words}) for _ in range(3)]
        assert all(answer.fetchall() == [(words,)] for answer in asked)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (None, "text"), ("", "text"), ("50 %, 'so' {\"\\", "text"), (True, "boolean"), (-3, "bigint"),
        (0.25, "float8"), (date(2026, 2, 28), "date"), (UUID(int=7), "uuid"), ([], "uuid[]"), ([], "integer[]"),
        ([UUID(int=1), UUID(int=2**127)], "uuid[]"), ([0, -1, 2**31 - 1], "integer[]"), (["a", 'b,"'], "text[]"),
        ([0.25, -1e-300], "float8[]"), ({"a": [1, None]}, "jsonb"),
    ],
)  # fmt: skip
def test_values_come_back_as_they_were_given(alone: Database, value: object, kind: str) -> None:
    given = Jsonb(value) if isinstance(value, dict) else value
    with alone.pipeline("demo") as pipeline:
        assert pipeline.execute(f"SELECT %(value)s::{kind}", {"value": given}).fetchone() == (value,)


def test_vectors_come_back_as_they_were_given(alone: Database) -> None:
    vector = HalfVector([0.5, -1.0, 0.0])
    with alone.pipeline("demo") as pipeline:
        row = pipeline.execute("SELECT %(vector)s::halfvec", {"vector": vector}).fetchone()
    assert row is not None
    assert row[0].to_list() == vector.to_list()


def test_a_text_with_a_null_character_is_refused(alone: Database) -> None:
    with pytest.raises(psycopg.DataError), alone.pipeline("demo") as pipeline:
        pipeline.execute("SELECT %(value)s::text", {"value": "a\0b"})
    assert backend(alone)


def test_parameters_are_numbered_by_their_first_place() -> None:
    text, names = numbered("SELECT %(b)s, %(a)s, %(b)s, 5 %% 2, 'x %% y'")
    assert text == b"SELECT $1, $2, $1, 5 % 2, 'x % y'"
    assert names == ("b", "a")


def test_a_statement_alone_is_one_round_trip_and_beginning_another_transaction_too(
    alone: Database, collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    trips: list[str] = []

    def counted(owner: type, name: str) -> None:
        method = getattr(owner, name)

        def noted(self: Any, *given: Any, **also: Any) -> Any:
            # Without a transaction, the end of one asks the server for nothing.
            if name != "wait" or self.pgconn.transaction_status != pq.TransactionStatus.IDLE:
                trips.append(name)
            return method(self, *given, **also)

        monkeypatch.setattr(owner, name, noted)

    alone.fetch_value("demo", "count_active_admins")
    counted(Session, "wait")
    counted(Pipeline, "_synchronise")
    assert alone.fetch_value("demo", "count_active_admins") == 0
    assert trips == ["_synchronise"]
    trips.clear()
    with alone.transaction("demo") as connection:
        connection.execute(COUNT)
    assert trips == ["_synchronise", "wait", "wait"]


@pytest.mark.parametrize("way", ["pipeline", "writing"])
def test_statements_of_a_question_are_prepared_and_planned_once_on_a_connection(
    alone: Database, collection: Collection, way: str
) -> None:
    plans = "SELECT custom_plans, generic_plans FROM pg_prepared_statements WHERE statement LIKE '%AS' || ' own%'"
    for time in (1, 2, 3):
        with getattr(alone, way)("demo") as pipeline:
            counted = pipeline.run("SELECT count(*) AS own FROM collections WHERE id = %(id)s", {"id": collection.id})
            assert counted.fetchall() == [(1,)]
            assert pipeline.execute(plans).fetchall() == [(0, time)]


def test_a_statement_with_filters_that_vary_is_planned_for_each(alone: Database) -> None:
    """One plan for a week and a year, with and without a group, took ten times as long as one for each."""
    period = {"start": datetime(2026, 1, 1, tzinfo=UTC), "end": datetime(2026, 2, 1, tzinfo=UTC)}
    period["before"] = datetime(2025, 12, 1, tzinfo=UTC)
    filters = {"collection_id": None, "of_group": None, "language": None, "status": "open", "off_topic": None}
    for _ in range(15):
        alone.fetch_planned("demo", "list_gaps", Gap, **period, **filters, least_probability=0.1, limit=5)
    with alone.transaction("demo") as connection:
        plans = connection.execute(
            "SELECT custom_plans > 0, generic_plans FROM pg_prepared_statements "
            "WHERE statement LIKE '%FROM gap_questions q%'"
        ).fetchall()
    assert plans == [(True, 0)]


def test_statements_alone_read_and_write_as_the_driver_does(alone: Database, collection: Collection) -> None:
    values = {
        "text": "100 % \u00e9", "number": 3, "large": 2**40, "share": 0.25, "money": Decimal("1.50"), "none": None,
        "is_true": True, "day": date(2026, 1, 31), "at": datetime(2026, 1, 31, 9, tzinfo=UTC), "id": collection.id,
        "ids": [collection.id], "words": ["a", "b"], "json": Jsonb({"a": [1]}), "bytes": b"\x00\xff",
    }  # fmt: skip
    statement = "SELECT " + ", ".join(f"%({name})s AS {name}" for name in values)
    for _ in range(PREPARED_AFTER + 2):  # as it comes, and prepared
        with alone._session() as session, Pipeline(session, WRITABLE) as pipeline:
            ours = pipeline.run(statement, values)
            pipeline.finish()
            found = ours.fetchall()
        with alone.transaction("demo") as connection:
            assert connection.execute(statement, values).fetchall() == found
    assert found[0][:2] == ("100 % \u00e9", 3)
    assert found[0][-2:] == ({"a": [1]}, b"\x00\xff")


def test_a_statement_alone_that_fails_changes_nothing_and_leaves_the_connection_fit(
    alone: Database, collection: Collection
) -> None:
    session = backend(alone)
    for _ in range(PREPARED_AFTER + 2):
        with pytest.raises(psycopg.errors.NotNullViolation) as caught:
            alone.execute("demo", "begin_paid_call", operation="chat", digest=None, owner_id=collection.id,
                          expected=Jsonb({}), document_id=None, chat_log_id=None)  # fmt: skip
        assert caught.value.diag.column_name == "digest"
        assert alone.fetch_value("demo", "count_active_admins") == 0
    assert backend(alone) == session
    with alone._pool.connection() as connection:
        assert connection.execute("SELECT rag_tenant()").fetchone() == (None,)


def test_so_many_statements_are_prepared_on_a_connection_and_no_more(alone: Database, collection: Collection) -> None:
    for number in range(MOST_PREPARED + 20):
        for _ in range(PREPARED_AFTER + 1):
            with alone._session() as session, Pipeline(session, WRITABLE) as pipeline:
                assert pipeline.run(f"SELECT {number}", {}).fetchall() == [(number,)]
    with alone._session() as session:
        assert session.prepared is not None
        assert len(session.prepared) == MOST_PREPARED
