"""Read a board's table in Postgres as a source: rows as JSON, page by page; nothing is ever written.

Only names of tables and columns are put into statements, quoted by the driver; everything else is the mapping's, in
Python, and so the same for rows and for the records of webhook events.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import psycopg
from psycopg import Connection, sql

from rag.errors import ProviderUnavailable, SettingsError
from rag.ingestion.loaders.attachments import MAXIMUM_BYTES
from rag.ingestion.sources.board.attachments import AttachmentFiles
from rag.ingestion.sources.board.posts import POST_TYPE, Post, PostsMapping, is_hidden, post_from_record, post_to_bytes
from rag.ingestion.sources.sync import SourceContent, SourceItem

ROWS_PER_PAGE = 200
Rows = list[Mapping[str, Any]]


class PostsTable:
    """A source of the posts of one table.

    In the application's own database it reads as `rag_app` without a tenant: of our tables it sees nothing, and the
    table of posts has to be granted to that role. The queue's tables and Postgres's own, which that role sees without a
    tenant, count as not there.
    """

    kind = "posts"

    def __init__(
        self,
        conninfo: str,
        mapping: PostsMapping,
        *,
        files: AttachmentFiles,
        is_own_database: bool,
        maximum_attachment_bytes: int = MAXIMUM_BYTES,
    ) -> None:
        self._conninfo = conninfo
        self._mapping = mapping
        self._files = files
        self._is_own_database = is_own_database
        self._maximum_bytes = maximum_attachment_bytes

    def is_readable(self) -> bool:
        """Return whether the table is there. Raises `ProviderUnavailable` when its database does not answer."""
        with self._reading() as connection:
            return self._exists(connection, self._mapping.table)

    def items(self) -> Iterator[SourceItem]:
        """Yield the posts that people may read, in the order of their keys."""
        last: str | None = None
        while True:
            with self._reading() as connection:
                if last is None and not self._exists(connection, self._mapping.table):
                    raise SettingsError(
                        f"There is no table {self._mapping.table} to read posts from. Set its name and columns for "
                        "this collection, and RAG_POSTS_DATABASE_URL where it is in another database."
                    )
                rows = self._posts(connection, "> " if last is not None else "", last)
                posts = self._complete(connection, rows)
            for post in posts:
                yield self.item_of(post)
            if len(rows) < ROWS_PER_PAGE:
                return
            last = str(rows[-1][self._mapping.id])

    def expected(self) -> int:
        """Count the rows of the table, hidden posts included; 0 where there is no table."""
        with self._reading() as connection:
            if not self._exists(connection, self._mapping.table):
                return 0
            counting = sql.SQL("SELECT count(*) FROM {}").format(_table(self._mapping.table))
            found = connection.execute(counting).fetchone()
        return int(found[0]) if found else 0

    def find(self, keys: Sequence[str]) -> dict[str, SourceItem]:
        """Find these posts by their keys, where the table holds them and people may read them."""
        with self._reading() as connection:
            if not self._exists(connection, self._mapping.table):
                return {}
            rows = self._posts(connection, "=", list(keys))
            return {post.id: self.item_of(post) for post in self._complete(connection, rows)}

    def item_of(self, post: Post) -> SourceItem:
        """Make a sync item of a post."""
        return item_from_post(post, files=self._files, maximum_bytes=self._maximum_bytes)

    def _complete(self, connection: Connection, rows: Rows) -> list[Post]:
        """Make posts of rows, with their categories and attachments."""
        mapping = self._mapping
        shown = [row for row in rows if not is_hidden(row, mapping)]
        ids = [str(row[mapping.id]) for row in shown]
        named = {str(row.get(mapping.category_id)) for row in shown}
        categories = self._rows(connection, mapping.categories.table, mapping.categories.id, list(named))
        by_id = {str(row[mapping.categories.id]): row for row in categories}
        attached: dict[str, Rows] = {}
        for row in self._rows(connection, mapping.attachments.table, mapping.attachments.post_id, ids):
            attached.setdefault(str(row[mapping.attachments.post_id]), []).append(row)
        return [
            post_from_record(row, mapping, categories=by_id, attachments=attached.get(str(row[mapping.id]), ()))
            for row in shown
        ]

    def _posts(self, connection: Connection, comparison: str, value: str | list[str] | None) -> Rows:
        column = sql.Identifier(self._mapping.id)
        condition = {
            "": sql.SQL("true"),
            "> ": sql.SQL('p.{}::text > %(value)s COLLATE "C"').format(column),
            "=": sql.SQL("p.{}::text = ANY (%(value)s)").format(column),
        }[comparison]
        statement = sql.SQL(
            'SELECT to_jsonb(p) FROM {} AS p WHERE {} ORDER BY p.{}::text COLLATE "C" LIMIT %(limit)s'
        ).format(_table(self._mapping.table), condition, column)
        limit = ROWS_PER_PAGE if comparison != "=" else None
        return [row[0] for row in connection.execute(statement, {"value": value, "limit": limit}).fetchall()]

    def _rows(self, connection: Connection, table: str, column: str, values: list[str]) -> Rows:
        """Read rows of a table beside the posts; none where there is no such table."""
        if not values or not self._exists(connection, table):
            return []
        statement = sql.SQL("SELECT to_jsonb(p) FROM {} AS p WHERE p.{}::text = ANY (%(values)s) ORDER BY 1").format(
            _table(table), sql.Identifier(column)
        )
        return [row[0] for row in connection.execute(statement, {"values": values}).fetchall()]

    def _exists(self, connection: Connection, table: str) -> bool:
        found = connection.execute(
            "SELECT EXISTS (SELECT FROM pg_class c WHERE c.oid = to_regclass(%(table)s) AND NOT (%(is_own)s AND "
            "(c.relnamespace::regnamespace::text IN ('pg_catalog', 'information_schema') "
            "OR c.relname LIKE 'procrastinate%%')))",
            {"table": _table(table).as_string(connection), "is_own": self._is_own_database},
        ).fetchone()
        return bool(found and found[0])

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        """Open a connection for a moment; errors of the database become sentences."""
        try:
            with psycopg.connect(self._conninfo, connect_timeout=10, prepare_threshold=None) as connection:
                connection.read_only = True
                connection.execute("SET LOCAL statement_timeout = '30s'")
                if self._is_own_database:
                    connection.execute("SELECT set_config('role', 'rag_app', true)")
                yield connection
        except psycopg.errors.InsufficientPrivilege as exc:
            raise SettingsError(
                f"The table {self._mapping.table} may not be read: {_first_line(exc)}. As its owner, run: "
                f"GRANT SELECT ON {self._mapping.table} TO rag_app."
            ) from exc
        except psycopg.errors.UndefinedColumn as exc:
            raise SettingsError(f"The columns of {self._mapping.table} differ: {_first_line(exc)}.") from exc
        except psycopg.Error as exc:
            raise ProviderUnavailable(f"The table of posts cannot be read at the moment: {_first_line(exc)}") from exc


def item_from_post(post: Post, *, files: AttachmentFiles, maximum_bytes: int = MAXIMUM_BYTES) -> SourceItem:
    """Make a sync item of a post; its attachments are fetched when it is loaded."""
    return SourceItem(
        key=post.id,
        updated_at=post.updated_at,
        hash=post.hash,
        title=post.title,
        load=partial(_content, post, files, maximum_bytes),
        metadata=post.metadata(),
    )


def _content(post: Post, files: AttachmentFiles, maximum_bytes: int) -> SourceContent:
    attachments = [files.with_content(item, maximum_bytes=maximum_bytes) for item in post.attachments]
    return SourceContent(
        file_name=f"{post.id}.post",
        content=post_to_bytes(post, attachments),
        mime_type=POST_TYPE,
        title=post.title or post.id,
    )


def _table(name: str) -> sql.Identifier:
    return sql.Identifier(*name.split("."))


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or ["no reason given"])[0].rstrip(".")
