"""Statements that travel together: a transaction that only reads, whose answers are waited for when they are read.

The search sends a dozen small statements. The driver's own pipeline sends each by itself, takes its parameters apart
anew and wakes for each answer, which cost as much as running them; here they leave in one write. Only what psycopg
documents of libpq is used (`psycopg.pq`); values are read as psycopg reads them.
"""

from __future__ import annotations

import math
import re
import select
import struct
from collections import deque
from collections.abc import Callable, Mapping
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

BEGIN = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY"
TEXT, BINARY = pq.Format.TEXT, pq.Format.BINARY
#: Postgres' numbers of the types whose arrays are packed here.
UUID_OID, INTEGER_OID, DOUBLE_OID = 2950, 23, 701


class Session(Connection[TupleRow]):
    """A connection of the pool, which knows what statements of flights are prepared on it."""

    #: Names by statement; None: not kept, as the next transaction may have another server's session.
    prepared: dict[str, bytes] | None = None
    #: Statements ever prepared: a name is not given twice.
    names_given = 0
    #: When it last worked, by the clock that only goes forward.
    used_at = -math.inf

    @cached_property
    def transformer(self) -> abc.Transformer:
        """What reads and writes values as this connection is set up to."""
        return Transformer(self)


class Answer:
    """What a statement will have answered once its rows are read."""

    def __init__(self, flight: Flight, statement: str, values: list[bytes | None], formats: list[pq.Format]) -> None:
        self.statement, self.values, self.formats = statement, values, formats
        self.result: pq.abc.PGresult | None = None
        self._flight = flight

    def fetchall(self) -> list[tuple[Any, ...]]:
        """All rows; waits for them."""
        return self._flight.rows(self)

    def fetchone(self) -> tuple[Any, ...] | None:
        """The first row, or None; waits for it."""
        return next(iter(self.fetchall()), None)

    def read(self, row: Callable[..., Row]) -> list[Row]:
        """All rows as values of `row`, which takes the columns by name; waits for them."""
        rows = self.fetchall()
        names = self._flight.columns(self)
        return [row(**dict(zip(names, values, strict=True))) for values in rows]


class Flight:
    """A transaction under way on a connection that nobody else uses meanwhile.

    Nothing is waited for until rows are read. Raises psycopg's errors; the connection is left fit for others.
    """

    def __init__(self, session: Session) -> None:
        self._session, self._pgconn = session, session.pgconn
        self._poll = select.poll()
        self._poll.register(self._pgconn.socket, select.POLLIN)
        #: In the order of their results: answers, statements that are prepared, None for the transaction's ends.
        self._expected: deque[Answer | str | None] = deque()
        self._asked: list[Answer] = []
        self._is_sent = self._is_finished = self._is_synchronising = self._is_repeated = False

    def __enter__(self) -> Flight:
        self._pgconn.enter_pipeline_mode()
        self._command(BEGIN)
        return self

    def __exit__(self, _: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is None:
            try:
                self._land()
            except BaseException:
                self._abandon()
                raise
        else:
            self._abandon()

    def execute(self, statement: str, values: Mapping[str, Any] | None = None) -> Answer:
        """Ask for something; its rows are waited for when they are read."""
        _, names = numbered(statement)
        dumped = [self._dumped(values[name]) for name in names] if values else []
        answer = Answer(self, statement, [value for value, _ in dumped], [form for _, form in dumped])
        self._asked.append(answer)
        self._ask(answer)
        return answer

    def flush(self) -> None:
        """Send what is asked; the server answers it before it goes on to what is asked next."""
        self._pgconn.send_flush_request()
        self._is_sent = True
        self._write()

    def finish(self) -> None:
        """Commit together with what is asked; nothing can be asked after it."""
        self._is_finished = self._is_sent = True
        self._command("COMMIT")
        self._synchronise()

    def rows(self, answer: Answer) -> list[tuple[Any, ...]]:
        """The rows of an answer; waits for it and those before it."""
        result = self._result_of(answer)
        self._session.transformer.set_pgresult(result, format=BINARY)
        return self._session.transformer.load_rows(0, result.ntuples, tuple)

    def columns(self, answer: Answer) -> list[str]:
        """The names of an answer's columns; waits for it."""
        result = self._result_of(answer)
        return [(result.fname(i) or b"").decode() for i in range(result.nfields)]

    def _result_of(self, answer: Answer) -> pq.abc.PGresult:
        if answer.result is None and not self._is_sent:
            self.flush()
        while answer.result is None:
            try:
                self._receive()
            except InvalidSqlStatementName:
                # The driver forgets everything prepared on a connection after an error of somebody before us.
                if not self._session.prepared or self._is_repeated:
                    raise
                self._is_repeated = True
                self._ask_again(self._session.prepared)
        return answer.result

    def _ask(self, answer: Answer) -> None:
        text, _ = numbered(answer.statement)
        self._is_sent = False
        prepared = self._session.prepared
        if prepared is None:
            self._pgconn.send_query_params(text, answer.values, None, answer.formats, BINARY)
        else:
            if (name := prepared.get(answer.statement)) is None:
                name = prepared[answer.statement] = b"flight_%d" % self._session.names_given
                self._session.names_given += 1
                self._pgconn.send_prepare(name, text)
                self._expected.append(answer.statement)
            self._pgconn.send_query_prepared(name, answer.values, answer.formats, BINARY)
        self._expected.append(answer)

    def _ask_again(self, forgotten: dict[str, bytes]) -> None:
        """Everything from the beginning, prepared anew."""
        forgotten.clear()
        self._clear()
        for command in ("ROLLBACK", BEGIN):
            self._command(command)
        for answer in self._asked:
            self._ask(answer)
        if self._is_finished:
            self.finish()
        else:
            self.flush()

    def _land(self) -> None:
        if not self._is_finished:
            self.finish()
        while self._expected:
            self._receive()
        self._until_synchronised()
        self._pgconn.exit_pipeline_mode()

    def _abandon(self) -> None:
        """End the transaction whatever its state; a connection that cannot is closed."""
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
        """Read to the end what comes of everything sent, and forget it."""
        if not self._is_synchronising:
            self._synchronise()
        self._until_synchronised()
        for statement in self._expected:
            if isinstance(statement, str) and self._session.prepared:
                self._session.prepared.pop(statement, None)  # whether it was prepared is not known
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
        """Take the next result in, which belongs to what was asked first and is not answered."""
        result = self._result()
        if result is None:
            raise OperationalError("the connection is lost")
        answer = self._expected.popleft()
        while self._result() is not None:
            pass
        if result.status not in (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK):
            if isinstance(answer, str) and self._session.prepared:
                self._session.prepared.pop(answer, None)
            raise error_from_result(result)
        if isinstance(answer, Answer):
            answer.result = result

    def _result(self) -> pq.abc.PGresult | None:
        while self._pgconn.is_busy():
            self._poll.poll()
            self._pgconn.consume_input()
        return self._pgconn.get_result()

    def _write(self) -> None:
        while self._pgconn.flush():
            # The server may wait for us to read before it reads on.
            self._poll.modify(self._pgconn.socket, select.POLLIN | select.POLLOUT)
            for _, events in self._poll.poll():
                if events & select.POLLIN:
                    self._pgconn.consume_input()
            self._poll.modify(self._pgconn.socket, select.POLLIN)

    def _dumped(self, value: Any) -> tuple[bytes | None, pq.Format]:
        """A parameter: as text, which every type reads, or where that takes long as Postgres stores it."""
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
    """The beginning of an array of one dimension without nulls."""
    return struct.pack(">iiiii", 1, 0, oid, count, 1)


@lru_cache(maxsize=500)
def numbered(statement: str) -> tuple[bytes, tuple[str, ...]]:
    """A statement with `$1` for its first parameter and so on, and the parameters' names."""
    names: dict[str, int] = {}

    def number(match: re.Match[str]) -> str:
        name = match[1]
        return "%" if name is None else f"${names.setdefault(name, len(names) + 1)}"

    return re.sub(r"%(?:%|\((\w+)\)s)", number, statement).encode(), tuple(names)


__all__ = ["Answer", "Flight", "Session"]
