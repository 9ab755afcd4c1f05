"""A statement smuggled into a person's transaction sees and changes nothing of a colleague.

Each attack is without a condition, so that no policy for reading helps, and succeeds in an administrator's transaction.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg import Connection, sql
from psycopg.types.json import Jsonb

from rag.storage.database import ENTER, Database, entering
from rag.types import Identity, Role

COLLEAGUE, CONVERSATION, QUESTION, COLLECTION, GAP, RUN = (UUID(int=number) for number in range(1, 7))
#: A row of a colleague, or about them, in each table; what is not given here is filled in by type.
THINGS: dict[str, dict[str, object]] = {
    "accounts": {"id": COLLEAGUE, "email": "colleague@demo.example", "role": "employee", "user_group": ""},
    "collections": {"id": COLLECTION, "groups": []},
    "conversations": {"id": CONVERSATION, "account_id": COLLEAGUE, "collection_id": COLLECTION},
    "messages": {"conversation_id": CONVERSATION, "role": "user", "state": "complete"},
    "chat_logs": {
        "id": QUESTION, "account_id": COLLEAGUE, "conversation_id": CONVERSATION, "collection_id": COLLECTION,
        "kind": "search",
    },
    "prompts": {"chat_log_id": QUESTION},
    "feedback": {"chat_log_id": QUESTION, "account_id": COLLEAGUE, "rating": 0},
    "help_requests": {"account_id": COLLEAGUE, "collection_id": COLLECTION, "chat_log_id": QUESTION, "status": "open"},
    "chat_threads": {"account_id": COLLEAGUE, "conversation_id": CONVERSATION, "program": "slack"},
    "opinions": {"account_id": COLLEAGUE, "collection_id": COLLECTION},
    "history_changes": {"owner_id": COLLEAGUE},
    "audit_log": {"account_id": COLLEAGUE},
    "api_keys": {"created_by": COLLEAGUE, "scopes": ["chat"], "requests_per_minute": 60},
    "budgets": {"account_id": COLLEAGUE, "scope": "person", "amount": 1, "warn_share": 0.8},
    "budget_consents": {"account_id": COLLEAGUE},
    "gaps": {"id": GAP, "collection_id": COLLECTION, "assigned_to": COLLEAGUE, "status": "open"},
    "gap_questions": {"gap_id": GAP, "chat_log_id": QUESTION, "account_id": COLLEAGUE},
    "gap_meanings": {"gap_id": GAP},
    "golden_questions": {"collection_id": COLLECTION},
    "evaluation_runs": {"id": RUN, "collection_id": COLLECTION},
    "evaluation_results": {"run_id": RUN, "chat_log_id": QUESTION},
    "paid_calls": {"owner_id": QUESTION, "chat_log_id": QUESTION, "operation": "chat"},
    "cost_ledger": {"chat_log_id": QUESTION, "operation": "chat"},
    "webhook_deliveries": {"status": "waiting"},
    "erasures": {"erased_id": COLLEAGUE},
    "question_days": {"people": [COLLEAGUE]}, "question_weeks": {"people": [COLLEAGUE]},
    "question_time_days": {}, "question_time_weeks": {}, "document_days": {}, "document_weeks": {},
    "cost_days": {"operation": "chat"}, "cost_weeks": {"operation": "chat"},
    "saved_views": {"account_id": COLLEAGUE}, "refused_files": {"account_id": COLLEAGUE},
}  # fmt: skip
#: Tables that refer to a person and hold nothing of them: who added, changed or asked for something of the company; and
#: how people sign in, which `test_injected_statements.py` is about.
OF_THE_COMPANY = {
    "documents", "page_corrections", "sync_runs", "attachment_texts", "widgets",
    "sessions", "one_time_links", "known_browsers", "second_factors", "recovery_codes", "connected_apps",
    "external_identities", "session_origins", "used_app_tokens",
}  # fmt: skip
#: What managers do with what others asked.
OF_MANAGERS = {("help_requests", "UPDATE"), ("gaps", "UPDATE")}
#: What everybody sees of a colleague, and may add for the company.
OF_EVERYBODY = {("collections", "SELECT"), ("webhook_deliveries", "INSERT")}
FILLED = {
    "text": "'x'", "bigint": "1", "integer": "1", "smallint": "1", "real": "1", "boolean": "true",
    "date": "current_date",
    "uuid": "gen_random_uuid()", "jsonb": "'{}'", "timestamp with time zone": "now()", "bytea": "'x'", "xid8": "'1'",
    "uuid[]": "'{}'", "integer[]": "'{1}'", "bigint[]": "'{1}'", "extensions.vector": "'[1]'",
    "extensions.halfvec": "'[1]'",
}  # fmt: skip
COLUMNS = """
    SELECT attname, format_type(atttypid, NULL), attnotnull AND NOT atthasdef FROM pg_attribute
    WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = '' AND attidentity <> 'a'
    ORDER BY attnum
"""


def person(role: Role, group: str = "") -> Identity:
    return Identity(
        account_id=uuid4(), tenant_id="demo", email="me@demo.example", name="Me", role=role, user_group=group
    )


EMPLOYEE, MANAGER, ADMIN = (person(role) for role in (Role.EMPLOYEE, Role.MANAGER, Role.ADMIN))


@pytest.fixture
def things(superuser_conninfo: str) -> Iterator[Connection]:
    """A superuser's connection to a database in which a colleague has one row of each kind. Nothing of it is kept."""
    with psycopg.connect(superuser_conninfo) as connection:
        connection.execute("SET LOCAL session_replication_role = replica")
        for table, given in THINGS.items():
            columns = connection.execute(COLUMNS, (table,)).fetchall()
            values = {
                name: sql.Literal(Jsonb(given[name]) if isinstance(given.get(name), dict) else given[name])
                if name in given
                else sql.SQL("'demo'" if name == "tenant_id" else FILLED[kind])
                for name, kind, is_needed in columns
                if name in given or is_needed
            }
            connection.execute(
                sql.SQL("INSERT INTO {} ({}) VALUES ({})").format(
                    sql.Identifier(table),
                    sql.SQL(", ").join(map(sql.Identifier, values)),
                    sql.SQL(", ").join(values.values()),
                )
            )
        yield connection
        connection.rollback()


@contextmanager
def acting(connection: Connection, key: bytes, who: Identity) -> Iterator[None]:
    """Be the application's role with somebody's sealed identity, until the end. What is done then is undone."""
    with connection.transaction(force_rollback=True):
        connection.execute(ENTER, entering(key, who))
        yield


def rows(connection: Connection, statement: sql.Composed) -> int:
    try:
        with connection.transaction(force_rollback=True):
            return connection.execute(statement).rowcount
    except psycopg.errors.InsufficientPrivilege:
        return 0


def reached(connection: Connection, key: bytes, who: Identity, tables: set[str] | None = None) -> set[tuple[str, str]]:
    """What a person's transaction reads, changes, removes, or adds in a colleague's name, by table and command."""
    found: set[tuple[str, str]] = set()
    for table in tables or set(THINGS):
        name, columns = sql.Identifier(table), connection.execute(COLUMNS, (table,)).fetchall()
        listed = sql.SQL(", ").join(sql.Identifier(column) for column, *_ in columns)
        attacks = {
            # Names of columns, because the hash of a password is selected by nobody.
            "SELECT": sql.SQL("SELECT tenant_id FROM {}").format(name),
            # A constant, because reading a column is bound by what may be read.
            "UPDATE": sql.SQL("UPDATE {} SET {} = 'demo'").format(name, sql.Identifier(changed_in(table))),
            "DELETE": sql.SQL("DELETE FROM {}").format(name),
        }
        with acting(connection, key, who):
            found |= {(table, command) for command, attack in attacks.items() if rows(connection, attack)}
        with connection.transaction(force_rollback=True):
            kept = connection.execute(sql.SQL("DELETE FROM {} t RETURNING to_jsonb(t)").format(name)).fetchone()
            assert kept is not None
            again = sql.SQL("INSERT INTO {} ({}) SELECT {} FROM jsonb_populate_record(NULL::{}, {})").format(
                name, listed, listed, name, sql.Literal(Jsonb(kept[0]))
            )
            with acting(connection, key, who):
                if rows(connection, again):
                    found.add((table, "INSERT"))
    return found


def changed_in(table: str) -> str:
    """A column that the application may change."""
    return {"gap_questions": "outcome"}.get(table, "tenant_id")


def test_nothing_of_a_colleague_is_seen_or_changed(database: Database, things: Connection) -> None:
    assert reached(things, database.key, EMPLOYEE) == OF_EVERYBODY
    seen = reached(things, database.key, MANAGER)
    assert {attack for attack in seen - OF_EVERYBODY if attack[1] != "SELECT"} == OF_MANAGERS | {
        ("history_changes", command) for command in ("UPDATE", "DELETE", "INSERT")
    }
    private = {
        "conversations",
        "messages",
        "chat_threads",
        "opinions",
        "audit_log",
        "api_keys",
        "budgets",
        "paid_calls",
    }
    assert not {(table, "SELECT") for table in private} & seen
    assert {(table, "SELECT") for table in ("chat_logs", "prompts", "feedback", "help_requests", "gaps")} <= seen


def test_each_attack_is_one(database: Database, things: Connection) -> None:
    """An administrator's transaction may do what the application may do at all."""
    granted = things.execute(
        "SELECT relname, privilege_type FROM pg_class, aclexplode(relacl) WHERE relnamespace = 'public'::regnamespace "
        "AND grantee = 'rag_app'::regrole AND privilege_type IN ('SELECT', 'INSERT', 'UPDATE', 'DELETE')"
    ).fetchall()
    possible = {(table, command) for table, command in granted if table in THINGS}
    personal = {(table, command) for table, command in possible if table in ("saved_views", "refused_files")}
    got = reached(things, database.key, ADMIN)
    #: Rights to some columns, and what a trigger or a policy for all keeps.
    assert possible - personal - got <= {("chat_logs", "DELETE"), ("erasures", "INSERT")}


def test_each_policy_that_is_gone_lets_an_attack_through(database: Database, things: Connection) -> None:
    policies = things.execute(
        "SELECT tablename, policyname FROM pg_policies WHERE tablename = ANY (%s) "
        "AND policyname ~ '^(own|managed_)' ORDER BY 1, 2",
        (list(THINGS),),
    ).fetchall()
    before = {who: reached(things, database.key, who) for who in (EMPLOYEE, MANAGER)}
    # What the application has no right to do at all is forbidden twice.
    granted = things.execute(
        "SELECT relname, privilege_type FROM pg_class, aclexplode(relacl) WHERE grantee = 'rag_app'::regrole"
    ).fetchall()
    commands = {"added": "INSERT", "changed": "UPDATE", "removed": "DELETE"}
    missed = []
    for table, name in policies:
        if (command := commands.get(name.rpartition("_")[2])) and (table, command) not in granted:
            continue
        with things.transaction(force_rollback=True):
            things.execute(sql.SQL("DROP POLICY {} ON {}").format(sql.Identifier(name), sql.Identifier(table)))
            if all(reached(things, database.key, who, {table}) <= before[who] for who in before):
                missed.append(f"{table}.{name}")
    assert len(policies) > 70
    assert missed == []


#: Tables that refer to a person, a key, or to what refers to one.
REFERRING = """
    WITH RECURSIVE referring AS (
        SELECT 'accounts'::regclass::oid AS oid UNION SELECT 'api_keys'::regclass::oid
        UNION SELECT attrelid FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
        WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND NOT attisdropped
          AND attname IN ('account_id', 'owner_id', 'asked_by', 'added_by', 'corrected_by', 'people', 'chat_log_id')
        UNION SELECT conrelid FROM pg_constraint JOIN referring ON confrelid = referring.oid
        WHERE contype = 'f' AND confrelid IN ('accounts'::regclass, 'api_keys'::regclass, 'chat_logs'::regclass,
                                              'conversations'::regclass, 'messages'::regclass)
    )
    SELECT DISTINCT referring.oid::regclass::text FROM referring JOIN pg_class ON pg_class.oid = referring.oid
    WHERE NOT relispartition
"""


def test_each_table_that_refers_to_a_person_is_tried(superuser_conninfo: str) -> None:
    with psycopg.connect(superuser_conninfo) as connection:
        found = {table for (table,) in connection.execute(REFERRING).fetchall()}
    assert found - set(THINGS) - OF_THE_COMPANY == set()


def test_what_is_shared_is_seen_as_it_was_by_then_and_changed_by_nobody_else(
    database: Database, things: Connection
) -> None:
    things.execute("UPDATE messages SET created_at = now() - interval '1 hour'")
    things.execute("UPDATE conversations SET shared_at = now() - interval '30 minutes'")
    things.execute(
        "INSERT INTO messages (tenant_id, conversation_id, role, content, state) "
        "VALUES ('demo', %s, 'user', 'afterwards', 'complete')",
        (CONVERSATION,),
    )
    tables = {"conversations", "messages"}
    assert reached(things, database.key, EMPLOYEE, tables) == {("conversations", "SELECT"), ("messages", "SELECT")}
    with acting(things, database.key, EMPLOYEE):
        assert things.execute("SELECT content FROM messages").fetchall() == [("",)]
        # Nor is it taken over.
        taken = sql.SQL("UPDATE conversations SET account_id = {}").format(sql.Literal(EMPLOYEE.account_id))
        assert rows(things, taken) == 0


def test_what_is_ones_own_is_still_seen_and_changed(database: Database, things: Connection) -> None:
    own = Identity(account_id=COLLEAGUE, tenant_id="demo", email="colleague@demo.example", name="C", role=Role.EMPLOYEE)
    got = reached(things, database.key, own)
    for table in ("conversations", "messages", "chat_logs", "feedback", "help_requests", "audit_log"):
        assert {(table, "SELECT"), (table, "INSERT")} <= got, table
    for table in ("chat_threads", "opinions", "budget_consents", "history_changes"):
        assert {(table, "SELECT"), (table, "INSERT")} <= got, table
