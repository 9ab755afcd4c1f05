"""Read a notice board's tables through a Supabase project's REST API, if the project's Postgres cannot be reached.

Rows are JSON, like over a Postgres connection. The tables are never written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import httpx
from postgrest import APIError, CountMethod
from pydantic import ValidationError

from rag.errors import ProviderAnswerInvalid, ProviderUnavailable, SettingsError
from rag.providers.addresses import require_safe_origin
from rag.providers.bounds import bound
from rag.providers.supabase import UNREACHABLE, UNREADABLE
from supabase import Client, ClientOptions, create_client

TIMEOUT_SECONDS = 20.0
#: Values in one address; gateways cut addresses after some thousand characters.
VALUES_PER_REQUEST = 40
#: Error codes in PostgREST and Postgres for a table that is missing or that the key may not read.
NO_TABLE = frozenset({"PGRST205", "42P01"})
NOT_GRANTED = frozenset({"42501", "403"})
REFUSED = NOT_GRANTED | {"PGRST301", "PGRST302", "PGRST303", "401"}
#: A missing column.
NO_COLUMN = frozenset({"42703", "PGRST204"})
#: The error code for a range past the last row.
NO_MORE = "PGRST103"
#: A table in every database of this product.
OWN_TABLE = "rag_migrations"

Rows = list[Mapping[str, Any]]


class RestRows:
    """Reads a project's tables with an API key. Thread-safe."""

    def __init__(self, url: str, key: str) -> None:
        if not key:
            raise SettingsError(
                "RAG_POSTS_SUPABASE_URL is set, but there is no key to read it with. Set RAG_POSTS_SUPABASE_KEY."
            )
        self._url = require_safe_origin("RAG_POSTS_SUPABASE_URL", url).rstrip("/")
        self._key = key
        self._is_checked = False

    @contextmanager
    def reading(self) -> Iterator[RestReader]:
        """Yield a reader with an open client, which is closed after the `with` block."""
        timeout = httpx.Timeout(TIMEOUT_SECONDS, connect=5.0)
        with bound(httpx.Client(timeout=timeout, follow_redirects=False)) as transport:
            options = ClientOptions(auto_refresh_token=False, persist_session=False, httpx_client=transport)
            try:
                client = create_client(self._url, self._key, options)
            except Exception as exc:  # a class without a base
                raise SettingsError("RAG_POSTS_SUPABASE_URL or its key cannot be used. Copy them again.") from exc
            client.postgrest.retry_enabled = False  # the queue tries again
            reader = RestReader(client)
            self._require_other_database(reader)
            yield reader

    def _require_other_database(self, reader: RestReader) -> None:
        """Raise `SettingsError` if the project has this product's tables: the project's key could then read every
        tenant.
        """
        if self._is_checked:
            return
        try:
            is_own = reader.exists(OWN_TABLE)
        except SettingsError as exc:
            is_own = exc.details.get("code") in NOT_GRANTED
        if is_own:
            raise SettingsError(
                "The project of RAG_POSTS_SUPABASE_URL holds this product's own tables. Posts beside them are read by "
                "the connection of DATABASE_URL: leave RAG_POSTS_SUPABASE_URL empty."
            )
        self._is_checked = True


class RestReader:
    """Reads tables with an open client."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._known: dict[str, bool] = {}

    def exists(self, table: str) -> bool:
        if table not in self._known:
            self._known[table] = self._ask(table, lambda: self._of(table).select("*").limit(0).execute()) is not None
        return self._known[table]

    def count(self, table: str) -> int:
        answer = self._ask(table, lambda: self._of(table).select("*", count=CountMethod.exact).limit(0).execute())
        return int(answer.count or 0) if answer is not None else 0

    def after(self, table: str, column: str, last: str | None, limit: int) -> Rows:
        """Return the next `limit` rows with values after `last` in a column, ordered by this column."""

        def ask() -> Any:
            query = self._of(table).select("*").order(column).limit(limit)
            return (query.gt(column, last) if last is not None else query).execute()

        return _rows(self._ask(table, ask))

    def having(self, table: str, column: str, values: list[str]) -> Rows:
        """Return the rows with any of these values in a column, or [] if the table does not exist."""
        rows: Rows = []
        for first in range(0, len(values), VALUES_PER_REQUEST):
            some, begun = values[first : first + VALUES_PER_REQUEST], len(rows)
            while self.exists(table):
                # A project returns a thousand rows at most, however many are requested.
                page = _rows(self._ask(table, partial(self._page, table, column, some, len(rows) - begun)))
                rows += page
                if not page:
                    break
        return rows

    def _page(self, table: str, column: str, values: list[str], first: int) -> Any:
        return self._of(table).select("*").in_(column, values).order(column).range(first, first + 999).execute()

    def _of(self, table: str) -> Any:
        schema, _dot, name = table.rpartition(".")
        return (self._client.postgrest.schema(schema) if schema else self._client.postgrest).from_(name)

    def _ask(self, table: str, ask: Callable[[], Any]) -> Any:
        """Send a request. Returns `None` for a missing table or a page after the last row.

        Errors are converted to errors from `rag.errors`.
        """
        try:
            return ask()
        except APIError as exc:
            code = str(exc.code or "")
            if code in NO_TABLE or code == NO_MORE:
                return None
            raise _error(table, code, str(exc.message or "")) from exc
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, OSError) as exc:
            raise ProviderUnavailable(UNREACHABLE) from exc
        except (ValidationError, ValueError, KeyError, TypeError) as exc:
            raise ProviderAnswerInvalid(UNREADABLE) from exc


def _error(table: str, code: str, message: str) -> Exception:
    reason = (message.strip().splitlines() or ["no reason given"])[0].rstrip(".")
    if code in REFUSED or "api key" in message.lower():
        return SettingsError(
            f"Supabase does not let {table} be read: {reason}. Check RAG_POSTS_SUPABASE_KEY, and that its role may "
            "read the table.",
            code=code,
        )
    if code in NO_COLUMN:
        return SettingsError(f"The columns of {table} differ: {reason}.")
    return ProviderUnavailable(f"The table of posts cannot be read at the moment: {reason}")


def _rows(answer: Any) -> Rows:
    rows = [] if answer is None else answer.data
    if not isinstance(rows, list) or not all(isinstance(row, Mapping) for row in rows):
        raise ProviderAnswerInvalid(UNREADABLE)
    return rows
