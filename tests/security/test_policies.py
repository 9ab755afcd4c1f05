"""Row-level security: what every policy has to say, and that each one which says less is noticed."""

from __future__ import annotations

import re
from collections.abc import Iterator

import psycopg
from psycopg import Connection, sql

TOKEN = r"\( SELECT rag_presented\(\) AS rag_presented\)"
#: What may show a row before its tenant is known: the hash of a secret, or an address, that whoever asks presents.
PRESENTED = re.compile(
    rf"\((?:(?:token|secret|subject|key)_hash = {TOKEN}"
    r"|email = \( SELECT rag_verified\('email'::text\) AS rag_verified\)"
    rf"|\({TOKEN} = subject_hash\) OR \({TOKEN} = session_hash\)"
    rf"|\(*{TOKEN} = code_hash\)(?: OR \({TOKEN} = (?:access|refresh)_hash\)\)?)+)\)?"
)
TENANT = "( SELECT rag_tenant() AS rag_tenant)"
OWN = f"(tenant_id = {TENANT})"
WORKER = "( SELECT rag_is_worker() AS rag_is_worker)"
OWN_JOBS = f"({WORKER} OR ((args ->> 'tenant_id'::text) = {TENANT}))"
#: Of jobs that may be seen.
OWN_EVENTS = re.compile(
    rf"\({re.escape(WORKER)} OR \(EXISTS \( SELECT\s+FROM procrastinate_jobs j\s+"
    r"WHERE \(j\.id = procrastinate_events\.job_id\)\)\)\)"
)
ACCOUNT = "( SELECT rag_account() AS rag_account)"
#: What people keep for themselves.
PERSONAL = {"refused_files", "saved_views"}
ALL = "( SELECT rag_reads_all() AS rag_reads_all)"
READS_ALL = f"({ALL} OR "
#: How people sign in: seen and changed by each person alone, or by nobody.
SIGN_IN = {
    "sessions", "one_time_links", "known_browsers", "second_factors", "recovery_codes", "connected_apps",
    "external_identities",
}  # fmt: skip
OF_NOBODY = {"session_origins", "used_app_tokens"}
#: What everybody's transactions write: what follows from their questions, and belongs to nobody.
WRITTEN_BY_PEOPLE = {
    "attachment_texts", "calendar_work", "chat_deliveries", "rolled_days", "rolled_weeks", "sentence_vectors",
    "tenant_changes", "webhook_deliveries (INSERT)",
}  # fmt: skip
#: Whose a row is: of the person whose account this column names.
WHOSE = {
    "audit_log": "account_id", "budget_consents": "account_id", "chat_logs": "account_id", "chat_threads": "account_id",
    "help_requests": "account_id", "opinions": "owner_id",
}  # fmt: skip
OTHERS = "( SELECT rag_sees_others() AS rag_sees_others)"
#: Through the conversation that a row belongs to.
THROUGH = (
    "(EXISTS ( SELECT FROM conversations c WHERE ((c.id = {}.conversation_id) AND (c.owner_id = " + ACCOUNT + "))))"
)
OF_MANAGERS = f"({OTHERS} AND (collection_id = ANY (ARRAY( SELECT collections.id FROM collections))))"
PROGRAM = f"(EXISTS ( SELECT FROM api_keys k WHERE (k.id = {ACCOUNT})))"
RATED = (
    f"((account_id = {ACCOUNT}) OR {ALL} OR ((account_id IS NULL) AND (EXISTS ( SELECT FROM (chat_logs l JOIN "
    "conversations c ON ((c.id = l.conversation_id))) WHERE ((l.id = feedback.chat_log_id) AND "
    f"(c.owner_id = {ACCOUNT}))))))"
)
#: What managers see of others, and administrators alone.
SEEN_BY_MANAGERS = {
    "gaps", "golden_questions", "evaluation_runs", "cost_ledger", "cost_days", "cost_weeks", "question_days",
    "question_weeks", "question_time_days", "question_time_weeks", "document_days", "document_weeks",
}  # fmt: skip
SEEN_BY_ADMINISTRATORS = {"budgets", "erasures", "paid_calls", "webhook_deliveries"}
#: Policies of what is people's own that say something else than their table's row above.
OWN_OTHERWISE = {
    ("conversations", "own_read"): f"((owner_id = {ACCOUNT}) OR {ALL} OR (shared_at IS NOT NULL))",
    ("conversations", "own_added"): f"((owner_id = {ACCOUNT}) OR {ALL})",
    ("conversations", "own_changed"): f"((owner_id = {ACCOUNT}) OR {ALL})",
    ("conversations", "own_removed"): f"((owner_id = {ACCOUNT}) OR {ALL})",
    ("messages", "own_added"): f"({ALL} OR {THROUGH.format('messages')})",
    ("messages", "own_changed"): f"({ALL} OR {THROUGH.format('messages')})",
    ("chat_logs", "own_read"): f"((account_id = {ACCOUNT}) OR {OTHERS} OR ((account_id IS NULL) AND "
    f"{THROUGH.format('chat_logs')}))",
    ("chat_logs", "own_added"): f"((((account_id = {ACCOUNT}) OR ((account_id IS NULL) AND {PROGRAM})) AND "
    f"((conversation_id IS NULL) OR {THROUGH.format('chat_logs')})) OR {ALL})",
    ("chat_logs", "own_removed"): ALL,
    ("feedback", "own_added"): RATED,
    ("feedback", "own_changed"): RATED,
    ("help_requests", "own_read"): f"({OTHERS} OR (account_id = {ACCOUNT}))",
    ("help_requests", "own_changed"): f"({ALL} OR (account_id = {ACCOUNT}) OR {OF_MANAGERS})",
    ("gaps", "own_added"): ALL,
    ("gaps", "own_changed"): f"({ALL} OR {OF_MANAGERS})",
    ("history_changes", "own"): f"((owner_id = {ACCOUNT}) OR {OTHERS})",
    ("api_keys", "own_read"): f"({ALL} OR (id = {ACCOUNT}) OR ({TENANT} IS NULL))",
    ("accounts", "own_read"): f"((id = {ACCOUNT}) OR {OTHERS} OR ({TENANT} IS NULL) OR "
    "(CURRENT_USER = 'rag_owner'::name))",
    ("webhook_deliveries", "own_changed"): ALL,
    ("webhook_deliveries", "own_removed"): ALL,
}  # fmt: skip
#: What a reader may see: rows of collections open to them, or below such a row. Rows without a collection are the
#: tenant's own.
OF_COLLECTION = "(collection_id = ANY (ARRAY( SELECT collections.id FROM collections)))"
OF_COLLECTION_OR_NONE = f"(collection_id IS NULL) OR {OF_COLLECTION}"
BELOW = r"EXISTS \( SELECT FROM (\w+) (\w) WHERE \(\2\.id = {table}\.\w+_id\)\)"
LIMITED = "((limited_to IS NULL) OR (limited_to <@ ARRAY( SELECT collections.id FROM collections)))"
SHOWN = "(key_hash = ( SELECT rag_presented() AS rag_presented)) OR "
SHARED = (
    f"((EXISTS ( SELECT FROM conversations c WHERE ((c.id = messages.conversation_id) AND ((c.owner_id = {ACCOUNT}) OR "
    f"(messages.created_at <= c.shared_at))))) AND {LIMITED})"
)
READERS = {
    OF_COLLECTION, OF_COLLECTION_OR_NONE, "(below)", f"(({OF_COLLECTION_OR_NONE}) AND {LIMITED})",
    SHOWN + OF_COLLECTION, SHOWN + OF_COLLECTION_OR_NONE,
}  # fmt: skip
FEW_READERS = {
    "messages": SHARED,
    "collections": "(cardinality(groups) = 0) OR (( SELECT rag_group() AS rag_group) = ANY (groups))",
    "vector_indexes": f"({TENANT} IS NULL) OR {OF_COLLECTION}",
}
POLICIES = (
    "SELECT tablename, policyname, permissive, cmd, roles::text[], qual, with_check FROM pg_policies "
    "WHERE schemaname = 'public' ORDER BY 1, 2"
)
WITH_TENANT = (
    "SELECT relname, relrowsecurity AND relforcerowsecurity FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid "
    "WHERE relkind IN ('r', 'p') AND attname = 'tenant_id' AND NOT attisdropped "
    "AND relnamespace = 'public'::regnamespace"
)
#: Tables that belong to a collection, by a column or by a reference to a table that does.
OF_A_COLLECTION = """
    WITH RECURSIVE belongs AS (
        SELECT attrelid AS oid FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
        WHERE attname IN ('collection_id', 'conversation_id') AND NOT attisdropped AND relkind IN ('r', 'p')
          AND relnamespace = 'public'::regnamespace
        UNION
        SELECT conrelid FROM pg_constraint JOIN belongs ON confrelid = belongs.oid
        WHERE contype = 'f' AND confdeltype = 'c'
    )
    SELECT oid::regclass::text FROM belongs
"""

#: What keeps people who are no administrators from writing.
MANAGED = {"INSERT": "managed_added", "UPDATE": "managed_changed", "DELETE": "managed_removed"}
#: What keeps people from writing what is others'.
OWN_WRITTEN = {"INSERT": "own_added", "UPDATE": "own_changed", "DELETE": "own_removed"}
#: What the application may write, by a right on the table or on some of its columns.
WRITTEN = """
    SELECT relname, privilege_type FROM pg_class, aclexplode(relacl)
    WHERE relnamespace = 'public'::regnamespace AND grantee = 'rag_app'::regrole AND relkind IN ('r', 'p')
      AND privilege_type IN ('INSERT', 'UPDATE', 'DELETE') AND relname NOT LIKE 'procrastinate%'
    UNION
    SELECT relname, privilege_type FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid, aclexplode(attacl)
    WHERE relnamespace = 'public'::regnamespace AND grantee = 'rag_app'::regrole AND privilege_type = 'UPDATE'
"""


def complaints(connection: Connection) -> list[str]:
    """Return what is wrong with the row-level security of a database, a line for each table or policy."""
    forced: dict[str, bool] = dict(connection.execute(WITH_TENANT).fetchall())
    policies = connection.execute(POLICIES).fetchall()
    names = {(table, name) for table, name, *_ in policies}
    found = [f"{table} is not forced" for table, is_forced in forced.items() if not is_forced]
    found += [f"{table} has no tenant" for table in forced if (table, "tenant") not in names]
    found += [f"{table} has no owner" for table in PERSONAL | SIGN_IN | OF_NOBODY if (table, "own") not in names]
    found += [f"{table} has no {name}" for table, name in OWN_OTHERWISE if (table, name) not in names]
    found += [
        f"{table} is seen by everybody"
        for table in SEEN_BY_MANAGERS | SEEN_BY_ADMINISTRATORS | {"audit_log"}
        if (table, "own_read") not in names
    ]
    found += [f"{table} is written by everybody" for table in written_by_everybody(connection, names)]
    for table in ("collections", *(row[0] for row in connection.execute(OF_A_COLLECTION).fetchall())):
        is_closed = (table, "reader") in names or table in PERSONAL | SIGN_IN | OF_NOBODY | {"paid_calls"}
        if table in forced and not is_closed:
            found.append(f"{table} is open to readers of other groups")
    if ("chat_logs", "searches_discarded") not in names:
        found.append("chat_logs can be deleted")
    return found + [f"{table}.{name}" for table, name, *rest in policies if not is_right(table, name, *rest)]


def written_by_everybody(connection: Connection, names: set[tuple[str, str]]) -> set[str]:
    """Return the tables that a person's transaction may write, and that are not listed as theirs."""
    granted = connection.execute(WRITTEN).fetchall()
    open_to_people = {
        f"{table} ({right})"
        for table, right in granted
        if not {(table, MANAGED[right]), (table, OWN_WRITTEN[right]), (table, "own")} & names
        and table not in WRITTEN_BY_PEOPLE
    }
    open_to_people |= {"one_time_links"} - {table for table, name in names if name == MANAGED["INSERT"]}
    for table in {table for table, name in names if name in MANAGED.values()} - {"one_time_links"}:
        open_to_people |= {table for name in MANAGED.values() if (table, name) not in names}
    return open_to_people - WRITTEN_BY_PEOPLE


def is_right(
    table: str, name: str, permissive: str, command: str, roles: list[str], reads: str | None, writes: str | None
) -> bool:
    """Whether a policy says what the policies of its name say."""
    kind = (permissive, command)
    match name:
        case "searches_discarded":  # of the rows that the tenant may see
            own = "((kind = 'search'::text) AND (outcome IS NULL))"
            return (table, *kind, reads, writes) == ("chat_logs", "RESTRICTIVE", "DELETE", own, None)
        case "own" if table in SIGN_IN | OF_NOBODY:
            rows = "" if table in OF_NOBODY else f"(account_id = {ACCOUNT}) OR "
            return (*kind, reads, writes) == ("RESTRICTIVE", "ALL", f"{READS_ALL}{rows}({TENANT} IS NULL))", None)
        case "managed_added":
            return (*kind, reads, writes) == ("RESTRICTIVE", "INSERT", None, ALL)
        case "managed_changed" if table == "accounts":
            return (*kind, reads, writes) == ("RESTRICTIVE", "UPDATE", f"{READS_ALL}(id = {ACCOUNT}))", None)
        case "managed_changed":
            return (*kind, reads, writes) == ("RESTRICTIVE", "UPDATE", ALL, None)
        case "managed_removed":
            return (*kind, reads, writes) == ("RESTRICTIVE", "DELETE", ALL, None)
        case "own_read" | "own_added" | "own_changed" | "own_removed":
            said = {"own_read": "SELECT", **{own: right for right, own in OWN_WRITTEN.items()}}[name]
            given = " ".join(((writes if said == "INSERT" else reads) or "").split())
            other = reads if said == "INSERT" else writes
            return (*kind, given, other) == ("RESTRICTIVE", said, own_rows(table, name), None)
        case "own" if (table, name) in OWN_OTHERWISE or table in WHOSE:
            return (*kind, reads, writes) == ("RESTRICTIVE", "ALL", own_rows(table, name), None)
        case "own":
            own = f"((account_id = {ACCOUNT}) OR ({ACCOUNT} IS NULL))"
            return kind == ("RESTRICTIVE", "ALL") and reads == own and writes in (own, None)
        case "reader":
            return (*kind, writes) == ("RESTRICTIVE", "SELECT", None) and shows_to_readers(table, reads or "")
        case "worker":  # what belongs to no tenant
            tables = ("procrastinate_workers", "procrastinate_periodic_defers")
            return table in tables and (*kind, reads, writes) == ("PERMISSIVE", "ALL", WORKER, WORKER)
        case "tenant" if table == "procrastinate_events":
            return reads == writes and bool(OWN_EVENTS.fullmatch(reads or ""))
        case "tenant":
            own = {"tenants": OWN.replace("tenant_id", "id", 1), "procrastinate_jobs": OWN_JOBS}.get(table, OWN)
            return (*kind, reads, writes) == ("PERMISSIVE", "ALL", own, own)
        case "operator":
            # The owner sees which tenants there are, and which indexes belong to a collection: it drops the others.
            return table in ("tenants", "vector_indexes") and (command, roles, writes) == (
                "SELECT",
                ["rag_owner"],
                None,
            )
        case "presented":
            return (*kind, writes) == ("PERMISSIVE", "SELECT", None) and bool(PRESENTED.fullmatch(reads or ""))
    return False


def own_rows(table: str, name: str) -> str:
    """Return what a policy of what is people's own has to say."""
    if (table, name) in OWN_OTHERWISE:
        return OWN_OTHERWISE[table, name]
    if name == "own_read" and table in SEEN_BY_MANAGERS:
        return OTHERS
    if name == "own_read" and table in SEEN_BY_ADMINISTRATORS:
        return ALL
    return f"({ALL} OR ({WHOSE.get(table)} = {ACCOUNT}))"


def shows_to_readers(table: str, reads: str) -> bool:
    """Whether the policy of readers leaves them rows of their collections alone."""
    said = re.sub(BELOW.format(table=table), "below", " ".join(reads.split()))
    allowed = {FEW_READERS[table]} if table in FEW_READERS else READERS
    return said in {f"{READS_ALL}{rows})" for rows in allowed}


def test_every_policy_holds_rows_to_their_tenant_and_readers_to_their_groups(superuser_conninfo: str) -> None:
    with psycopg.connect(superuser_conninfo) as connection:
        assert complaints(connection) == []


def weaker(connection: Connection) -> Iterator[tuple[str, sql.Composed]]:
    """Yield statements that open one table or one policy each, with a name."""
    for table, *_ in connection.execute(WITH_TENANT).fetchall():
        for change in ("NO FORCE", "DISABLE"):
            yield (
                f"{table} {change}",
                sql.SQL("ALTER TABLE {} {} ROW LEVEL SECURITY").format(sql.Identifier(table), sql.SQL(change)),
            )
    for table, name, permissive, command, roles, reads, writes in connection.execute(POLICIES).fetchall():
        policy, where = sql.Identifier(name), sql.Identifier(table)
        if reads is None:
            pass  # of what is added, which the policy's check is about
        elif roles == ["public"] or permissive == "RESTRICTIVE":
            yield f"{table}.{name} is true", sql.SQL("ALTER POLICY {} ON {} USING (true)").format(policy, where)
            yield (
                f"{table}.{name} is also others'",
                sql.SQL("CREATE POLICY {} ON {} AS PERMISSIVE FOR {} USING (true)").format(
                    sql.Identifier(f"{name}_more"), where, sql.SQL(command)
                ),
            )
        else:
            yield f"{table}.{name} is everybody's", sql.SQL("ALTER POLICY {} ON {} TO PUBLIC").format(policy, where)
        if writes is not None:
            yield f"{table}.{name} takes all", sql.SQL("ALTER POLICY {} ON {} WITH CHECK (true)").format(policy, where)
        if permissive == "RESTRICTIVE":
            yield f"{table}.{name} is gone", sql.SQL("DROP POLICY {} ON {}").format(policy, where)


def test_each_policy_that_says_less_is_noticed(superuser_conninfo: str) -> None:
    with psycopg.connect(superuser_conninfo) as connection:
        changes = list(weaker(connection))
        missed = []
        for name, statement in changes:
            with connection.transaction(force_rollback=True):
                connection.execute(statement)
                if not complaints(connection):
                    missed.append(name)
    assert len(changes) > 400
    assert missed == []
