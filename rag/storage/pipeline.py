"""Send a transaction's statements together, and wait for a result only when its rows are read.

A search sends a dozen small statements. Psycopg's own pipeline is slower: the median hybrid search takes 1.23 times as
long (1.24 in a second run), with 1.18 times the processor time (30,000 chunks, 200 tenants, question by question,
`benchmarks/search.py --only pipeline`). Psycopg writes each statement separately, prepares its parameters again, and
wakes for each result. Here all statements leave in a single write. Only psycopg's documented libpq wrapper is used
(`psycopg.pq`), and values are read like in psycopg.

The single write saves round trips in small transactions too. A transaction with one statement, the most frequent kind
here, needs 1 round trip instead of 4. The beginning of all other transactions needs 1 instead of 2. With fifty busy
threads, a thread which waits for the server must also wait for its turn to run.
"""

from __future__ import annotations

import math
import re
import select
import struct
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, lru_cache
from types import TracebackType
from typing import Any, TypeVar
from uuid import UUID

import numpy as np
from pgvector import HalfVector
from psycopg import Connection, abc, pq
from psycopg.adapt import PyFormat, Transformer
from psycopg.errors import Error, InvalidSqlStatementName, OperationalError, error_from_result
from psycopg.rows import TupleRow

Row = TypeVar("Row")
#: A statement and its values' types, if they are sent with their types.
Key = tuple[str, tuple[int, ...] | None]

SNAPSHOT = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY"
WRITABLE = "BEGIN"
#: psycopg's defaults: uses before a statement is prepared, and prepared statements per connection.
PREPARED_AFTER, MOST_PREPARED = 5, 100
TEXT, BINARY = pq.Format.TEXT, pq.Format.BINARY
#: Postgres' numbers for the types whose arrays are packed here.
UUID_OID, INTEGER_OID, DOUBLE_OID = 2950, 23, 701


class Session(Connection[TupleRow]):
    """A pooled database connection which remembers the statements prepared by pipelines."""

    #: Names by statement and value types; `None`: not kept, because the next transaction may use a different server
    #: session.
    prepared: dict[Key, bytes] | None = None
    #: How often unprepared statements with typed values have come.
    seen: Counter[Key]
    #: Statements ever prepared: a name is not given twice.
    names_given = 0
    #: When the connection last worked, by the monotonic clock.
    used_at = -math.inf

    @cached_property
    def transformer(self) -> abc.Transformer:
        """Return the transformer which reads and writes values with this connection's types."""
        return Transformer(self)


class PendingResult:
    """A statement's result, which is received when rows are first read."""

    def __init__(
        self,
        pipeline: Pipeline,
        key: Key,
        values: Sequence[abc.Buffer | None],
        formats: Sequence[pq.Format],
        read_as: pq.Format,
    ) -> None:
        self.key, self.values, self.formats, self.read_as = key, values, formats, read_as
        self.result: pq.abc.PGresult | None = None
        self._pipeline = pipeline

    def fetchall(self) -> list[tuple[Any, ...]]:
        return self._pipeline.rows(self)

    def fetchone(self) -> tuple[Any, ...] | None:
        """Wait for the result and return the first row, or `None`."""
        return next(iter(self.fetchall()), None)

    def read(self, row: Callable[..., Row]) -> list[Row]:
        """Wait for the result and return all rows as `row` values, with the columns as keyword arguments."""
        rows = self.fetchall()
        names = self._pipeline.columns(self)
        return [row(**dict(zip(names, values, strict=True))) for values in rows]

    @property
    def rowcount(self) -> int:
        """Wait for the result and return the number of rows found or changed."""
        return self._pipeline.rowcount(self)


class Pipeline:
    """A transaction in which statements are sent together. Read-only, unless `begin` is a different statement.

    Needs a connection for itself, and waits only when rows are read. Raises psycopg's errors; the connection stays
    usable afterwards.
    """

    def __init__(self, session: Session, begin: str = SNAPSHOT, *, prepares_at_once: bool = False) -> None:
        self._session, self._pgconn, self._begin = session, session.pgconn, begin
        #: For statements in every question: with thirty connections, a statement would occur the sixth time on a
        #: connection only long after the rush.
        self._prepares_at_once = prepares_at_once
        self._poll = select.poll()
        self._poll.register(self._pgconn.socket, select.POLLIN)
        #: In the order of their results: answers, statements being prepared, `None` for the transaction's ends.
        self._expected: deque[PendingResult | Key | None] = deque()
        self._asked: list[PendingResult] = []
        self._is_sent = self._is_synchronising = self._is_repeated = False
        #: The command which ended it, or "" if it continues without the pipeline.
        self._ending: str | None = None

    def __enter__(self) -> Pipeline:
        self._pgconn.enter_pipeline_mode()
        self._command(self._begin)
        return self

    def __exit__(self, _: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is None:
            try:
                self._complete()
            except BaseException:
                self._roll_back()
                raise
        else:
            self._roll_back()

    def execute(self, statement: str, values: Mapping[str, Any] | None = None) -> PendingResult:
        """Queue a statement and return its result. Reading the result's rows waits for the server."""
        _, names = numbered(statement)
        dumped = [self._dump_value(values[name]) for name in names] if values else []
        key = (statement, None)
        answer = PendingResult(self, key, [value for value, _ in dumped], [form for _, form in dumped], BINARY)
        self._asked.append(answer)
        self._ask(answer)
        return answer

    def run(self, statement: str, values: Mapping[str, Any]) -> PendingResult:
        """Queue any statement, and return the result. Parameters are typed, and rows are read, like in psycopg."""
        _, names = numbered(statement)
        transformer = self._session.transformer
        dumped = transformer.dump_sequence([values[name] for name in names], [PyFormat.AUTO] * len(names))
        types, formats = transformer.types or (), transformer.formats or ()
        answer = PendingResult(self, (statement, tuple(types)), dumped, formats, TEXT)
        self._asked.append(answer)
        self._ask(answer)
        return answer

    def flush(self) -> None:
        """Send the queued statements. The server answers at once, without waiting for further statements."""
        self._pgconn.send_flush_request()
        self._is_sent = True
        self._write()

    def finish(self) -> None:
        """Send the queued statements and a commit. No further statement can be queued afterwards."""
        self._end("COMMIT")

    def hand_over(self) -> None:
        """Send the queued statements. The transaction stays open on the connection for other code."""
        self._end("")

    def _end(self, command: str) -> None:
        self._ending, self._is_sent = command, True
        if command:
            self._command(command)
        self._synchronise()

    def rows(self, answer: PendingResult) -> list[tuple[Any, ...]]:
        """Wait for all results up to this one, and return this result's rows."""
        result = self._result_of(answer)
        self._session.transformer.set_pgresult(result, format=answer.read_as)
        return self._session.transformer.load_rows(0, result.ntuples, tuple)

    def rowcount(self, answer: PendingResult) -> int:
        """Wait for a result, and return the number of rows found or changed."""
        return self._result_of(answer).command_tuples or 0

    def columns(self, answer: PendingResult) -> list[str]:
        """Wait for a result, and return the column names."""
        result = self._result_of(answer)
        return [(result.fname(i) or b"").decode() for i in range(result.nfields)]

    def _result_of(self, answer: PendingResult) -> pq.abc.PGresult:
        if answer.result is None and not self._is_sent:
            self.flush()
        while answer.result is None:
            self._receive_or_repeat()
        return answer.result

    def _receive_or_repeat(self) -> None:
        try:
            self._receive()
        except InvalidSqlStatementName:
            # After an earlier user's error, the driver forgets everything prepared on a connection.
            if not self._session.prepared or self._is_repeated:
                raise
            self._is_repeated = True
            self._ask_again(self._session.prepared)

    def _ask(self, answer: PendingResult) -> None:
        statement, types = answer.key
        text, _ = numbered(statement)
        self._is_sent = False
        prepared = self._session.prepared
        name = prepared.get(answer.key) if prepared is not None else None
        if name is None and prepared is not None and self._is_worth_preparing(answer.key, prepared):
            name = prepared[answer.key] = b"rag_%d" % self._session.names_given
            self._session.names_given += 1
            self._pgconn.send_prepare(name, text, types or None)
            self._expected.append(answer.key)
        if name is None:
            self._pgconn.send_query_params(text, answer.values, types or None, answer.formats, answer.read_as)
        else:
            self._pgconn.send_query_prepared(name, answer.values, answer.formats, answer.read_as)
        self._expected.append(answer)

    def _is_worth_preparing(self, key: Key, prepared: Mapping[Key, bytes]) -> bool:
        if key[1] is None or self._prepares_at_once:
            return True
        seen = self._session.seen
        seen[key] += 1
        return seen[key] > PREPARED_AFTER and len(prepared) < MOST_PREPARED

    def _ask_again(self, forgotten: dict[Key, bytes]) -> None:
        forgotten.clear()
        self._clear()
        for command in ("ROLLBACK", self._begin):
            self._command(command)
        for answer in self._asked:
            self._ask(answer)
        if self._ending is not None:
            self._end(self._ending)
        else:
            self.flush()

    def _complete(self) -> None:
        if self._ending is None:
            self.finish()
        while self._expected:
            self._receive_or_repeat()
        self._until_synchronised()
        self._pgconn.exit_pipeline_mode()

    def _roll_back(self) -> None:
        try:
            self._clear()
            self._command("ROLLBACK")
            self._clear()
            self._pgconn.exit_pipeline_mode()
        except BaseException as trouble:
            self._session.close()
            if not isinstance(trouble, Error):
                raise

    def _clear(self) -> None:
        if not self._is_synchronising:
            self._synchronise()
        self._until_synchronised()
        for key in self._expected:
            if isinstance(key, tuple) and self._session.prepared:
                self._session.prepared.pop(key, None)  # It may or may not have been prepared.
        self._expected.clear()

    def _synchronise(self) -> None:
        self._is_synchronising = True
        self._pgconn.pipeline_sync()
        self._write()

    def _until_synchronised(self) -> None:
        while (result := self._result()) is None or result.status != pq.ExecStatus.PIPELINE_SYNC:
            if result is None and self._pgconn.status != pq.ConnStatus.OK:
                raise OperationalError("the connection is lost")
        self._is_synchronising = False

    def _command(self, command: str) -> None:
        self._pgconn.send_query_params(command.encode(), None)
        self._expected.append(None)

    def _receive(self) -> None:
        result = self._result()
        if result is None:
            raise OperationalError("the connection is lost")
        answer = self._expected.popleft()
        while self._result() is not None:
            pass
        if result.status not in (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK):
            if isinstance(answer, tuple) and self._session.prepared:
                self._session.prepared.pop(answer, None)
            raise error_from_result(result)
        if isinstance(answer, PendingResult):
            answer.result = result

    def _result(self) -> pq.abc.PGresult | None:
        while self._pgconn.is_busy():
            self._poll.poll()
            self._pgconn.consume_input()
        return self._pgconn.get_result()

    def _write(self) -> None:
        while self._pgconn.flush():
            # The server may stop reading until we read.
            self._poll.modify(self._pgconn.socket, select.POLLIN | select.POLLOUT)
            for _, events in self._poll.poll():
                if events & select.POLLIN:
                    self._pgconn.consume_input()
            self._poll.modify(self._pgconn.socket, select.POLLIN)

    def _dump_value(self, value: Any) -> tuple[bytes | None, pq.Format]:
        """Convert a parameter to (bytes, format). The format is binary for types with a slow text form, else text."""
        if value is None:
            return None, TEXT
        if isinstance(value, str) and "\0" not in value:
            return value.encode(), TEXT
        if isinstance(value, HalfVector):
            return value.to_binary(), BINARY
        if isinstance(value, list) and value and isinstance(value[0], UUID):
            return _header(UUID_OID, len(value)) + b"".join([b"\0\0\0\x10" + item.bytes for item in value]), BINARY
        if isinstance(value, list) and value and isinstance(value[0], (int, float)):
            oid, kind = (INTEGER_OID, ">i4") if isinstance(value[0], int) else (DOUBLE_OID, ">f8")
            packed = np.empty(len(value), dtype=[("size", ">i4"), ("value", kind)])
            packed["size"], packed["value"] = packed.dtype["value"].itemsize, value
            return _header(oid, len(value)) + packed.tobytes(), BINARY
        dumped = self._session.transformer.get_dumper(value, PyFormat.TEXT).dump(value)
        return None if dumped is None else bytes(dumped), TEXT


def _header(oid: int, count: int) -> bytes:
    """Return the binary header for a one-dimensional Postgres array without nulls.

    `count` is the number of elements, and `oid` their type.
    """
    return struct.pack(">iiiii", 1, 0, oid, count, 1)


@lru_cache(maxsize=1000)
def numbered(statement: str) -> tuple[bytes, tuple[str, ...]]:
    """Replace a statement's named parameters by `$1`, `$2` ….

    Returns the statement and the parameters' names in the order of their numbers.
    """
    names: dict[str, int] = {}

    def number(match: re.Match[str]) -> str:
        name = match[1]
        return "%" if name is None else f"${names.setdefault(name, len(names) + 1)}"

    return re.sub(r"%(?:%|\((\w+)\)s)", number, statement).encode(), tuple(names)


__all__ = ["SNAPSHOT", "WRITABLE", "PendingResult", "Pipeline", "Session"]
