"""What a search reads is in parts by tenant: one part is read, none by itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from pgvector import HalfVector

from rag.providers.builtin_embedders import LexicalEmbedder
from rag.retrieval.hybrid_search import SearchQuery, hybrid_search
from rag.services import Services
from rag.storage.database import Database, queries
from rag.storage.pipeline import PendingResult, Pipeline, numbered
from rag.types import Collection, Scope, Who
from tests.retrieval.shelf import Shelf

TABLES = ("document_chunks", "chunk_terms", "chunk_bits", "keyword_documents", "keyword_blocks", "meaning_bits")
PASSAGES = [
    f"The {name} rule gives {days} days." for days, name in enumerate(("leave", "travel", "pension", "parking"))
]


class DenseEmbedder(LexicalEmbedder):
    """The built-in embedder under a provider's name, so that its vectors have bits."""

    id = "standin/words@1536"


class Listening(Database):
    """A database that keeps the statements of its pipelines."""

    asked: dict[str, dict[str, Any]]

    @contextmanager
    def pipeline(self, who: Who) -> Iterator[Pipeline]:
        with super().pipeline(who) as pipeline:
            execute, self.asked = pipeline.execute, {}

            def listen(statement: str, values: Mapping[str, Any] | None = None) -> PendingResult:
                self.asked[statement] = dict(values or {})
                return execute(statement, values)

            pipeline.execute = listen  # type: ignore[method-assign]
            yield pipeline


def shelf_of(database: Database, collection: Collection) -> Shelf:
    shelf = Shelf(database, collection, DenseEmbedder())
    shelf.add("Rules", PASSAGES)
    return shelf


def found(database: Database, scope: Scope, text: str) -> list[tuple[str, float]]:
    embedder = DenseEmbedder()
    vector = embedder.embed([text], purpose="query").vectors[0]
    query = SearchQuery(text=text, language="en", vector=vector, embedding_model=embedder.id)
    return [(hit.content, round(hit.score, 6)) for hit in hybrid_search(database, query, scope=scope, limit=4)]


def read_parts(plan: dict[str, Any]) -> set[str]:
    """The parts that a plan's execution opened; those left out as it starts are not in it, others have no loop."""
    here = {plan["Relation Name"]} if plan.get("Schema") == "rag_partitions" and plan["Actual Loops"] else set()
    return here.union(*(read_parts(each) for each in plan.get("Plans", ())))


@pytest.mark.parametrize("mode", ["force_generic_plan", "force_custom_plan"])
def test_a_search_reads_one_part_of_each_table(database: Database, collection: Collection, mode: str) -> None:
    """By a plan for any values, as searches have it prepared, and by one for the values at hand, as behind a pooler."""
    shelf = shelf_of(database, collection)
    listening = Listening(database.conninfo, database.key, maximum_connections=1)
    listening.open()
    assert found(listening, shelf.scope, PASSAGES[0])[0][0] == PASSAGES[0]
    listening.close()
    known = {name: value for values in listening.asked.values() for name, value in values.items()}
    known |= {"reranked": 400, "drawn": 400, "first": 4000}
    asked = {text: values for text, values in listening.asked.items() if "FROM" in text}
    for name in ("search_by_bits", "search_wanted_by_bits", "search_by_meaning_bits"):
        vector = HalfVector(known["vector"].to_list()[:384]) if "meaning" in name else known["vector"]
        asked[queries[name]] = {**known, "vector": vector}
    read: dict[str, set[str]] = {}
    with database.transaction("demo") as connection:
        connection.execute("SELECT set_config('plan_cache_mode', %s, true)", (mode,))
        cursor = psycopg.ClientCursor(connection)
        for number, (text, values) in enumerate(asked.items()):
            statement, names = numbered(text)
            cursor.execute(b"PREPARE asked_%d AS " % number + statement)
            places = ", ".join(["%s"] * len(names))
            explain = (
                f"EXPLAIN (ANALYZE, VERBOSE, TIMING OFF, SUMMARY OFF, FORMAT JSON) EXECUTE asked_{number} ({places})"
            )
            plan = cursor.execute(explain.encode(), [values[name] for name in names]).fetchone()
            assert plan is not None
            for part in read_parts(plan[0][0]["Plan"]):
                read.setdefault(part.rpartition("_")[0], set()).add(part[-2:])
    assert set(TABLES) - {"meaning_bits"} <= read.keys() <= set(TABLES)
    assert len(set.union(*read.values())) == 1, read


def test_a_part_by_itself_is_closed_to_everybody(
    database: Database, collection: Collection, owner_conninfo: str, superuser_conninfo: str
) -> None:
    shelf_of(database, collection)
    with psycopg.connect(superuser_conninfo) as connection:
        parts = connection.execute(
            "SELECT c.oid::regclass::text, p.relname, c.relrowsecurity AND c.relforcerowsecurity, c.relacl, "
            "(SELECT count(*) FROM pg_policy o WHERE o.polrelid = c.oid) "
            "FROM pg_class c JOIN pg_inherits i ON i.inhrelid = c.oid JOIN pg_class p ON p.oid = i.inhparent "
            "WHERE c.relnamespace = 'rag_partitions'::regnamespace AND c.relkind = 'r'"
        ).fetchall()
        assert sorted({row[1] for row in parts}) == sorted(TABLES)
        assert len(parts) == 16 * len(TABLES)
        assert {row[2:] for row in parts} == {(True, None, 0)}
        (filled,) = {
            name
            for name, table, *_ in parts
            if table == "document_chunks" and connection.execute(f"SELECT FROM {name}".encode()).fetchall()
        }
    count = f"SELECT count(*) FROM {filled}".encode()
    with pytest.raises(psycopg.errors.InsufficientPrivilege), database.transaction("demo") as connection:
        connection.execute(count)
    with psycopg.connect(owner_conninfo) as owner:
        owner.execute("SELECT rag_enter('demo')")
        assert owner.execute("SELECT count(*) FROM document_chunks").fetchone() == (len(PASSAGES),)
        assert owner.execute(count).fetchone() == (0,)


def test_tables_that_have_grown_are_analysed_as_a_whole(app_services: Services, superuser_conninfo: str) -> None:
    """Postgres looks at each part by itself, which leaves the planner without a word on the whole."""
    assert app_services.queue.on_every_minute is not None
    with psycopg.connect(superuser_conninfo, autocommit=True) as connection:

        def known(table: str) -> tuple[float, int]:
            found = connection.execute(
                "SELECT reltuples, (SELECT count(*) FROM pg_statistic WHERE starelid = c.oid AND stainherit) "
                "FROM pg_class c WHERE oid = %s::regclass",
                (table,),
            ).fetchone()
            assert found is not None
            return found

        def grow(rows: int) -> None:
            connection.execute("SET session_replication_role = replica")  # passages of documents that are not there
            connection.execute(
                "INSERT INTO chunk_terms (chunk_id, tenant_id, collection_id, document_id, terms) "
                "SELECT gen_random_uuid(), 'demo', gen_random_uuid(), gen_random_uuid(), '' "
                "FROM generate_series(1, %s)",
                (rows,),
            )
            connection.execute("SELECT pg_stat_force_next_flush()")
            connection.execute("SELECT")

        grow(900)
        app_services.queue.on_every_minute()
        assert known("chunk_terms")[1] == 0, "a few rows are not worth it"
        grow(600)
        app_services.queue.on_every_minute()
        rows, columns = known("chunk_terms")
        assert rows == 1500
        assert columns > 0
        seen = "SELECT analyze_count FROM pg_stat_all_tables WHERE relid = 'chunk_terms'::regclass"
        assert connection.execute(seen).fetchone() == (1,)
        grow(2500)
        app_services.queue.on_every_minute()
        assert connection.execute(seen).fetchone() == (1,), "once an hour at the most"
