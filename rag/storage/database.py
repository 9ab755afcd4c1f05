"""Access Postgres: connections from a pool, transactions as a tenant, statements by name.

Each transaction switches to `rag_app`, a role which owns nothing and cannot bypass row-level security. The transaction
also states who acts: the tenant and, if a person acts, the person. This identity is sealed (signed) with the database's
key, because injected statements must not be able to state a different identity. All settings end with the transaction,
which allows poolers in transaction mode. Without an identity, no rows are visible.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, Literal, Protocol, TypeVar
from uuid import UUID, uuid4

import psycopg
from pgvector.psycopg import register_vector
from psycopg import Connection
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from rag.errors import DatabaseUnavailable, NotFound, PlaceTaken
from rag.settings import Settings, first_line
from rag.storage.availability import Availability
from rag.storage.pipeline import SNAPSHOT, WRITABLE, PendingResult, Pipeline, Session
from rag.storage.sql import queries
from rag.types import Identity, Role, Who, tenant_of

Row = TypeVar("Row")
Result = TypeVar("Result")

#: Connections used within this time are not checked: a check would double the time for a small statement.
TRUSTED_SECONDS = 2.0
#: Waits for a free connection in the pool, each followed by a check of the server. A pool in full use for a moment is
#: no reason to refuse callers.
WAITS_SECONDS = (0.4, 2.0, 4.0, 8.6)
#: A failed attempt to connect is left to the next caller; the pool itself would wait longer each time.
RECONNECT_SECONDS = 0.3
CONNECT_SECONDS = 10
#: A connection ends when sent data is not acknowledged for this many milliseconds: the other side is unreachable.
UNREACHABLE_MS = 15_000
#: Supabase's pooler port in transaction mode, and PgBouncer's default port.
POOLER_PORTS = frozenset({"6543", "6432"})

DISK_FULL = "The disk of the database server is full. Free some space there and try again."

# Postgres underestimates the cost of starting parallel workers: scanning the bits of 10,000 vectors takes 5 ms, but
# waited 7 ms for workers. At 2000, twice the default, they start for some 80,000 and more.
ENTER = """
SELECT set_config('role', 'rag_app', true), set_config('search_path', 'public, extensions, pg_temp', true),
       set_config('rag.identity', %(identity)s, true), set_config('rag.seal', %(seal)s, true),
       set_config('plan_cache_mode', %(plans)s, true), set_config('parallel_setup_cost', '2000', true)
"""


#: Groups the entries written in the transactions of a single act, such as deleting 500 documents.
ACT = "SELECT set_config('rag.act', %(act)s, true)"
_act: ContextVar[str] = ContextVar("act", default="")


@contextmanager
def one_act() -> Iterator[None]:
    """Inside the `with` block, record all changes in the audit log as a single action.

    The changes may be made in several transactions.
    """
    token = _act.set(_act.get() or uuid4().hex)
    try:
        yield
    finally:
        _act.reset(token)


class Worker:
    """A background worker's identity: access to all tenants' job queues, and nothing else."""


WORKER = Worker()
Entering = Who | Worker | None
Plans = Literal["auto", "force_generic_plan", "force_custom_plan"]
#: A standby is "behind" if it lacks a change to the rows being read.
ReadOutcome = Literal["read", "behind", "failed"]
GENERIC: Plans = "force_generic_plan"


def entering(
    key: bytes,
    who: Entering,
    *,
    token_hash: str = "",
    email: str = "",
    checks: UUID | None = None,
    plans: Plans = "auto",
) -> dict[str, str]:
    """Return the parameters for the statement `ENTER`: the transaction's identity and read rights, sealed with `key`.

    The product and administrators read everything in their tenant. Other people read collections open to everyone or to
    their group; managers also read the questions asked there. `plans` is Postgres's setting for generic or custom
    plans. With generic plans, a connection plans each statement only once, for all values, because planning a
    question's small statements takes several times longer than running them. Custom plans are made for the given
    values. They suit filters which may be null, and periods which may be a week or a year.
    """
    values: dict[str, str] = {}
    if isinstance(who, Identity):
        kind = "manager" if who.may(Role.MANAGER) else "group"
        reads = "all" if who.may(Role.ADMIN) else f"{kind}:{who.user_group}"
        actor = who.email or who.name
        values = {"tenant_id": who.tenant_id, "account_id": str(who.account_id), "actor": actor, "reads": reads}
    elif isinstance(who, Worker):
        values = {"worker": "yes"}
    elif who:
        values = {"tenant_id": who, "reads": "all"}
    presented = {"token_hash": token_hash, "email": email, "checks": str(checks or "")}
    values |= {name: value for name, value in presented.items() if value}
    # Postgres accepts neither zero characters nor lone surrogates.
    parameters = {name: value.replace("\x00", "").encode("utf-8", "replace").decode() for name, value in values.items()}
    return {**sealed(key, parameters), "plans": plans}


def sealed(key: bytes, values: dict[str, str]) -> dict[str, str]:
    """Return an identity with a seal (a signature), which the database checks in `rag_verified`."""
    identity = json.dumps(values) if values else ""
    return {"identity": identity, "seal": hmac.new(key, identity.encode(), hashlib.sha256).hexdigest()}


def reading_as(key: bytes, tenant_id: str) -> dict[str, str]:
    """Return the Postgres settings for a session which may read all a tenant's data."""
    values = sealed(key, {"tenant_id": tenant_id, "reads": "all"})
    return {"rag.identity": values["identity"], "rag.seal": values["seal"], "search_path": "public,extensions"}


def sealing_key(conninfo: str) -> bytes:
    """Read the key for signing identities, with the connection of the tables' owner.

    Raises `DatabaseUnavailable` if the server does not answer, or `conninfo` is not the owner's.
    """
    try:
        with psycopg.connect(conninfo, connect_timeout=10, prepare_threshold=None) as connection:
            row = connection.execute("SELECT key FROM rag_private.sealing_key").fetchone()
    except psycopg.errors.InsufficientPrivilege as exc:
        raise DatabaseUnavailable(
            "Only the owner of the tables may read the key by which transactions prove whose they are. "
            "Set MIGRATION_DATABASE_URL to the owner's address."
        ) from exc
    except psycopg.OperationalError as exc:
        raise DatabaseUnavailable(f"The database does not answer: {first_line(exc)}") from exc
    if row is None:
        raise DatabaseUnavailable("The database has lost the key of its identities. Restore a backup.")
    return bytes(row[0])


def analyse_grown_tables(conninfo: str) -> bool:
    """Update the planner's statistics for partitioned tables which have grown. Return whether there were any.

    Needs the connection of the tables' owner. Raises `psycopg.Error`.
    """
    # While an index is being built, analysing is postponed.
    with suppress(psycopg.errors.LockNotAvailable), psycopg.connect(conninfo, prepare_threshold=None) as connection:
        row = connection.execute(queries["tables_in_parts_have_grown"]).fetchone()
        if row == (True,):
            connection.execute("SELECT set_config('lock_timeout', '2s', true)")
            connection.execute(queries["analyse_tables_in_parts"])
            return True
    return False


class ReadServer(Protocol):
    """A server with a read-only copy of the database (standby)."""

    @property
    def database(self) -> Database: ...

    def note(self, outcome: ReadOutcome) -> None:
        """Count a read by outcome: "read", "behind" (the server lacks a change) or "failed"."""


class ReadServers(Protocol):
    """Chooses the server for each read."""

    def next(self) -> ReadServer | None:
        """Return the server for the next read; `None` means the primary."""

    def close(self) -> None: ...


class PrimaryAlone:
    """A `ReadServers` without standbys: all reads go to the primary."""

    def next(self) -> None:
        return None

    def close(self) -> None:
        pass


class Database:
    """A connection pool for a database. Thread-safe. Callers must not hold a connection while a model streams."""

    def __init__(
        self,
        conninfo: str,
        key: bytes = b"",
        *,
        maximum_connections: int = 30,
        is_pooled: bool | None = None,
        outage: Callable[[], str] | None = None,
    ) -> None:
        """Set up the pool; `open` connects.

        `key` seals identities (`sealing_key`); without a key, no tenant is visible. `is_pooled` says whether
        connections go through a pooler in transaction mode; `None` guesses from the address. `outage` returns a known
        reason why the server does not answer, if any.
        """
        self.conninfo = conninfo
        self.key = key
        #: How recent a sign-in has to be for sensitive acts (`rag.access.sessions`); 0: any is.
        self.recent_sign_in_minutes = Settings().recent_sign_in_minutes
        self._outage = outage
        #: Servers for reading statements, from an integration.
        self.standbys: ReadServers = PrimaryAlone()
        self.is_pooled = looks_pooled(conninfo) if is_pooled is None else is_pooled
        # A prepared statement lives in a server's session, and behind a pooler the next transaction may have another.
        self._prepare_threshold = None if self.is_pooled else 5
        options = _connection_options(conninfo)
        #: A connection with the vector types registered. Others copy the types: asking the server takes four
        #: statements, while fifty people asking at the same time wait for new connections.
        self._types: Session | None = None
        self._pool = ConnectionPool(
            conninfo,
            connection_class=Session,
            kwargs=lambda: options if self._types is None else options | {"context": self._types},
            min_size=1,
            max_size=maximum_connections,
            reconnect_timeout=RECONNECT_SECONDS,
            open=False,
            configure=self._configure,
            check=_check,
            name="rag",
        )
        #: Knows whether the server answers, without a query.
        self.availability = Availability(_with_options(conninfo, options), self._check_pool)

    def open(self, *, wait: bool = True) -> None:
        """Connect. Raises `DatabaseUnavailable` with the driver's reason if the server does not answer.

        With `wait=False`, the method does not wait for the server.
        """
        if wait:
            self._require_answer()
        try:
            self._pool.open(wait=wait, timeout=15)
        except PoolTimeout as exc:
            raise self.unavailable() from exc
        self.availability.start()

    def _require_answer(self) -> None:
        try:
            with psycopg.connect(self.conninfo, connect_timeout=10) as connection:
                connection.execute("SELECT set_config('role', 'rag_app', true)")
        except psycopg.OperationalError as exc:
            sentence = self._outage() if self._outage else f"The database does not answer: {first_line(exc)}"
            raise DatabaseUnavailable(sentence) from exc
        except psycopg.errors.InsufficientPrivilege as exc:
            raise DatabaseUnavailable(
                "The role in DATABASE_URL may not work as rag_app, the role that is bound by row-level security. "
                "As the owner of the tables, run: GRANT rag_app TO that role."
            ) from exc
        except psycopg.ProgrammingError as exc:
            raise DatabaseUnavailable(f"DATABASE_URL is not a usable address: {first_line(exc)}") from exc

    def close(self) -> None:
        self.standbys.close()
        self.availability.stop()
        self._pool.close(timeout=5)

    def unavailable(self, reason: BaseException | None = None) -> DatabaseUnavailable:
        """Return the error to raise during an outage, with the reason if known, for example a full disk."""
        if isinstance(reason, psycopg.errors.DiskFull):
            return DatabaseUnavailable(self._outage() if self._outage else DISK_FULL)
        return DatabaseUnavailable(self._outage() if self._outage else None)

    @contextmanager
    def transaction(
        self, who: Entering, *, token_hash: str = "", email: str = "", checks: UUID | None = None
    ) -> Iterator[Connection]:
        """Yield a transaction, which is committed at the end.

        `who` is a person's identity, a tenant's id for the product itself, or `WORKER`, which sees all tenants' jobs.
        `token_hash` (hex) and `email` give access to the session, link or account which they name, before the tenant is
        known. `checks` names the account whose password is being checked. Raises `DatabaseUnavailable` without a
        connection.
        """
        with self._session() as session:
            with Pipeline(session, WRITABLE) as beginning:
                beginning.execute(ENTER, entering(self.key, who, token_hash=token_hash, email=email, checks=checks))
                if act := _act.get():
                    beginning.execute(ACT, {"act": act})
                beginning.hand_over()
            yield session

    @contextmanager
    def snapshot(self, who: Who) -> Iterator[Connection]:
        """Yield a read-only transaction as `who`. All statements see the data from the same moment.

        Raises `DatabaseUnavailable`.
        """
        with self._session() as session:
            with Pipeline(session, SNAPSHOT) as beginning:
                beginning.execute(ENTER, entering(self.key, who))
                beginning.hand_over()
            yield session

    @contextmanager
    def pipeline(self, who: Who) -> Iterator[Pipeline]:
        """Open a `snapshot` in which statements are sent together.

        Only reading a statement's rows waits for the server, which saves round trips. Meant for statements which every
        question needs: these are prepared and planned once per connection. Behind a pooler, prepared statements are
        lost. There, statements are planned for the given values, which reads less from partitioned tables. Raises
        `DatabaseUnavailable`.
        """
        with self._session() as session, Pipeline(session, prepares_at_once=True) as pipeline:
            pipeline.execute(ENTER, entering(self.key, who, plans="auto" if self.is_pooled else GENERIC))
            yield pipeline

    @contextmanager
    def writing(self, who: Who) -> Iterator[Pipeline]:
        """Open a `transaction` in which statements are sent together.

        Only reading a statement's rows waits for the server, which saves round trips. An error inside rolls back all
        statements. Plans are made like in `pipeline`. Raises `DatabaseUnavailable`.
        """
        with self._session() as session, Pipeline(session, WRITABLE, prepares_at_once=True) as pipeline:
            pipeline.execute(ENTER, entering(self.key, who, plans="auto" if self.is_pooled else GENERIC))
            yield pipeline

    def read(self, who: Who, work: Callable[[Pipeline], Result], *, owner_id: UUID | None = None) -> Result:
        """Run `work` at a standby which has all changes to the tenant's documents, else at the primary. Return its
        result.

        With `owner_id`, the standby also needs all changes to this account's or program's conversations. If the standby
        fails or is behind, `work` runs again at the primary. Raises `DatabaseUnavailable`.
        """
        standby = self.standbys.next()
        if standby is not None:
            outcome: ReadOutcome = "failed"
            with self.pipeline(who) as pipeline:
                primary_changes = _ask_changes(pipeline, who, owner_id)
                pipeline.finish()
                needed = _counts(primary_changes)
            with suppress(DatabaseUnavailable), standby.database.pipeline(who) as pipeline:
                # In the snapshot read by `work`, sent with its first statements.
                standby_changes = _ask_changes(pipeline, who, owner_id)
                result = work(pipeline)
                if all(has >= needs for has, needs in zip(_counts(standby_changes), needed, strict=True)):
                    standby.note("read")
                    return result
                outcome = "behind"
            standby.note(outcome)
        with self.pipeline(who) as pipeline:
            return work(pipeline)

    def fetch_lately(self, who: Entering, name: str, row: type[Row], /, **parameters: Any) -> list[Row]:
        """Return all rows from a named read-only statement. The rows may be a few seconds old."""
        standby = self.standbys.next()
        if standby is not None:
            with suppress(DatabaseUnavailable):
                rows = standby.database.fetch_planned(who, name, row, **parameters)
                standby.note("read")
                return rows
            standby.note("failed")
        return self.fetch_planned(who, name, row, **parameters)

    def fetch_planned(self, who: Entering, name: str, row: type[Row], /, **parameters: Any) -> list[Row]:
        """Return all rows from a named statement as `row` values.

        Postgres makes a new plan for the given parameter values instead of using a generic plan.
        """
        return self._run_alone(who, name, parameters, lambda result: result.read(row), plans="force_custom_plan")

    def fetch_all(self, who: Entering, name: str, row: type[Row], /, **parameters: Any) -> list[Row]:
        """Return all rows from a named statement, as `row` values."""
        return self._run_alone(who, name, parameters, lambda result: result.read(row))

    def fetch_one(self, who: Entering, name: str, row: type[Row], /, **parameters: Any) -> Row | None:
        """Return the first row from a named statement as a `row` value, or `None`."""
        return next(iter(self.fetch_all(who, name, row, **parameters)), None)

    def fetch_value(self, who: Entering, name: str, /, **parameters: Any) -> Any:
        """Return the first column in the first row, or `None`."""
        first_row = self._run_alone(who, name, parameters, PendingResult.fetchone)
        return first_row[0] if first_row else None

    def execute(self, who: Entering, name: str, /, **parameters: Any) -> int:
        """Run a named statement; return the number of affected rows."""
        return self._run_alone(who, name, parameters, lambda result: result.rowcount)

    def put_back(self, who: Who, *names: str, kept: str) -> None:
        """Insert removed rows again.

        `kept` is the value returned when the rows were removed. The statements `names` run in order, and each returns
        the inserted rows. Raises `PlaceTaken` if the table has a row with the same key by now, or if a referenced row
        is gone.
        """
        try:
            with self.writing(who) as pipeline:
                # For row-level security, each statement must see the rows from the statements before.
                if not all(pipeline.run(queries[name], {"kept": kept}).fetchone() for name in names):
                    raise PlaceTaken
        except (psycopg.errors.IntegrityError, NotFound) as exc:
            raise PlaceTaken from exc

    def execute_together(self, who: Who, statements: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
        """Run named statements with parameters in a single transaction and round trip."""
        with self.writing(who) as pipeline:
            for name, parameters in statements:
                pipeline.run(queries[name], parameters)

    def _run_alone(
        self,
        who: Entering,
        name: str,
        parameters: Mapping[str, Any],
        read: Callable[[PendingResult], Result],
        *,
        plans: Plans = "auto",
    ) -> Result:
        with self._session() as session, Pipeline(session, WRITABLE) as pipeline:
            pipeline.execute(ENTER, entering(self.key, who, plans=plans))
            result = pipeline.run(queries[name], parameters)
            pipeline.finish()
            return read(result)

    @contextmanager
    def _session(self) -> Iterator[Session]:
        """Yield a connection from the pool, and commit at the end.

        Raises `NotFound` if a referenced row is missing, and `DatabaseUnavailable` if the server does not answer for
        two seconds.
        """
        try:
            session = self._connection()
            try:
                with session:
                    yield session
                    session.used_at = time.monotonic()
                    self.availability.note_answer()
            finally:
                self._pool.putconn(session)
        except psycopg.OperationalError as exc:
            raise self.unavailable(exc) from exc
        except psycopg.errors.ForeignKeyViolation as exc:
            # A referenced row was deleted meanwhile, or belongs to another company.
            raise NotFound from exc

    def _connection(self) -> Session:
        for wait_seconds in WAITS_SECONDS:
            if self.availability.is_down:
                break
            with suppress(PoolTimeout):
                return self._pool.getconn(timeout=wait_seconds)
            if not self.availability.ask_again():
                break
        raise self.unavailable()

    def pool_use(self) -> tuple[int, int, int]:
        """Return three numbers: the pool's connections, the free connections, and the waiting callers."""
        stats = self._pool.get_stats()
        return stats.get("pool_size", 0), stats.get("pool_available", 0), stats.get("requests_waiting", 0)

    def _check_pool(self) -> None:
        self._types = None  # the server may have been restored, with other numbers for them
        with suppress(PoolClosed, PoolTimeout, psycopg.Error):
            self._pool.check()

    def _configure(self, connection: Session) -> None:
        connection.prepare_threshold = self._prepare_threshold
        connection.prepared, connection.seen = None if self.is_pooled else {}, Counter()
        if self._types is not None:
            return
        with connection.transaction():
            # Use the application's role: other roles may not see the types' schema.
            connection.execute(
                "SELECT set_config('role', 'rag_app', true), "
                "set_config('search_path', 'public, extensions, pg_temp', true)"
            )
            register_vector(connection)
        self._types = connection


def _ask_changes(pipeline: Pipeline, who: Who, owner_id: UUID | None) -> PendingResult:
    if owner_id is None:
        return pipeline.execute(queries["tenant_changes"], {"tenant_id": tenant_of(who)})
    return pipeline.execute(queries["history_changes"], {"owner_id": owner_id})


def _counts(result: PendingResult) -> tuple[int, ...]:
    return tuple(int(count) for count in result.fetchone() or (0,))


def _connection_options(conninfo: str) -> dict[str, Any]:
    options = {"connect_timeout": CONNECT_SECONDS, "tcp_user_timeout": UNREACHABLE_MS}
    try:
        address_options = conninfo_to_dict(conninfo)
    except psycopg.ProgrammingError:
        address_options = {}  # Connecting reports the error.
    return {name: value for name, value in options.items() if name not in address_options}


def _with_options(conninfo: str, options: dict[str, Any]) -> str:
    try:
        return make_conninfo(conninfo, **options)
    except psycopg.ProgrammingError:
        return conninfo


def _check(session: Session) -> None:
    if time.monotonic() - session.used_at >= TRUSTED_SECONDS:
        ConnectionPool.check_connection(session)


def looks_pooled(conninfo: str) -> bool:
    """Whether a database address has the usual port of a pooler in transaction mode: Supabase's or PgBouncer's."""
    try:
        port = str(conninfo_to_dict(conninfo).get("port", ""))
    except psycopg.ProgrammingError:
        return False  # Connecting reports the error.
    return port in POOLER_PORTS


__all__ = ["WORKER", "Database", "queries", "sealing_key"]
