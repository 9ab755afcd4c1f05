"""Every statement is prepared on the database; its columns are those that the code which reads them takes."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import psycopg
import pytest

from rag.storage.sql import queries

PROJECT = Path(__file__).resolve().parents[2]
PLACEHOLDER = re.compile(r"%\((\w+)\)[sbt]")
#: Methods of `Database` and of pending results that make a value of each row, by the names of its columns.
BY_NAME = {"fetch_all", "fetch_one", "fetch_lately", "fetch_planned"}
BY_POSITION = {"fetchone", "fetchall"}


@dataclass(frozen=True)
class Reading:
    """A place that reads a statement's rows: into a type, by unpacking, or by the position of a column."""

    statement: str
    place: str
    type_name: str = ""
    unpacked: int = 0
    highest: int = -1
    has_rest: bool = False


def columns_of(connection: psycopg.Connection[tuple[object, ...]], name: str) -> list[str]:
    """Prepare a statement and return the names of its columns."""
    names: list[str] = []

    def number(found: re.Match[str]) -> str:
        if found[1] not in names:
            names.append(found[1])
        return f"${names.index(found[1]) + 1}"

    text = PLACEHOLDER.sub(number, queries[name]).replace("%%", "%")
    result = connection.pgconn.prepare(b"", text.encode())
    if result.status != psycopg.pq.ExecStatus.COMMAND_OK:
        raise AssertionError(f"{name}: {result.get_error_message()}")
    described = connection.pgconn.describe_prepared(b"")
    return [(described.fname(index) or b"").decode() for index in range(described.nfields)]


def statement_of(node: ast.AST | None) -> str:
    """Return `name` for `….execute(queries["name"], …)` with or without `.fetchall()`; else an empty string."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in BY_POSITION:
        node = node.func.value
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "execute"):
        return ""
    first = node.args[0] if node.args else None
    if isinstance(first, ast.Subscript) and isinstance(first.value, ast.Name) and first.value.id == "queries":
        return str(first.slice.value) if isinstance(first.slice, ast.Constant) else ""
    return ""


def readings(path: Path) -> Iterator[Reading]:
    """Find the places of a module that read rows of named statements."""
    for function in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(function, ast.FunctionDef):
            yield from readings_of(function, path.relative_to(PROJECT).as_posix())


def readings_of(function: ast.FunctionDef, path: str) -> Iterator[Reading]:
    # Names that stand for rows, or for one row, of a statement; a name used for two of them is left out.
    rows: dict[str, set[str]] = {}
    row: dict[str, set[str]] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign | ast.NamedExpr):
            target = node.target if isinstance(node, ast.NamedExpr) else node.targets[0]
            if isinstance(target, ast.Name):
                is_one = isinstance(node.value, ast.Call) and getattr(node.value.func, "attr", "") == "fetchone"
                (row if is_one else rows).setdefault(target.id, set()).add(statement_of(node.value))

    def rows_of(node: ast.AST) -> str:
        if isinstance(node, ast.Name) and len(rows.get(node.id, ())) == 1:
            return next(iter(rows[node.id]))
        return statement_of(node)

    def row_of(node: ast.AST) -> str:
        if isinstance(node, ast.Name) and len(row.get(node.id, ())) == 1 and node.id not in rows:
            return next(iter(row[node.id]))
        is_one = isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "fetchone"
        return statement_of(node) if is_one else ""

    made = cursor_types(function)
    for node in ast.walk(function):
        place = f"{path}:{getattr(node, 'lineno', function.lineno)}"
        if (name := statement_of(node)) and (type_name := made.get(receiver_of(node))):
            yield Reading(name, place, type_name=type_name)
            continue
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in BY_NAME and len(node.args) > 2:
            called, kind = node.args[1], node.args[2]
            if isinstance(called, ast.Constant) and isinstance(kind, ast.Name):
                yield Reading(str(called.value), place, type_name=kind.id)
        elif isinstance(node, ast.For | ast.comprehension) and (name := rows_of(node.iter)):
            place = f"{path}:{node.iter.lineno}"
            yield from unpacking(node.target, name, place)
            if isinstance(node.target, ast.Name):
                row.setdefault(node.target.id, set()).add(name)
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple) and (name := row_of(node.value)):
            yield from unpacking(node.targets[0], name, place)
        elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            position, name = node.slice.value, row_of(node.value)
            if name and isinstance(position, int):
                yield Reading(name, place, highest=position)


def receiver_of(node: ast.AST) -> str:
    """Return `cursor` for `cursor.execute(…)`."""
    value = node.func.value if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else None
    return value.id if isinstance(value, ast.Name) else ""


def cursor_types(function: ast.FunctionDef) -> dict[str, str]:
    """Find cursors of the function that make a value of each row: their names, and the names of the types."""
    found: dict[str, set[str]] = {}
    for item in (item for node in ast.walk(function) if isinstance(node, ast.With) for item in node.items):
        if isinstance(item.context_expr, ast.Call) and isinstance(item.optional_vars, ast.Name):
            for keyword in item.context_expr.keywords:
                factory = keyword.value
                if (
                    keyword.arg == "row_factory"
                    and isinstance(factory, ast.Call)
                    and isinstance(factory.args[0], ast.Name)
                ):
                    found.setdefault(item.optional_vars.id, set()).add(factory.args[0].id)
    return {name: next(iter(types)) for name, types in found.items() if len(types) == 1}


def unpacking(target: ast.AST, name: str, place: str) -> Iterator[Reading]:
    if isinstance(target, ast.Tuple):
        has_rest = any(isinstance(part, ast.Starred) for part in target.elts)
        yield Reading(name, place, unpacked=len(target.elts) - has_rest, has_rest=has_rest)


@cache
def all_readings() -> list[Reading]:
    return [reading for path in sorted((PROJECT / "rag").rglob("*.py")) for reading in readings(path)]


@pytest.fixture
def columns(owner_conninfo: str) -> Iterator[dict[str, list[str]]]:
    """The columns of every statement, by its name."""
    with psycopg.connect(owner_conninfo, options="-c search_path=public,extensions", autocommit=True) as connection:
        yield {name: columns_of(connection, name) for name in queries}


def test_every_statement_fits_the_tables_and_the_code_that_reads_it(columns: dict[str, list[str]]) -> None:
    wrong = [
        f"{reading.place}: {why}" for reading in all_readings() if (why := misfit(reading, columns[reading.statement]))
    ]
    assert not wrong, "\n".join(wrong)


def misfit(reading: Reading, columns: list[str]) -> str:
    """Say how a place and the columns of its statement disagree; an empty string if they agree."""
    name, count = reading.statement, len(columns)
    if reading.type_name:
        if (fields := fields_of(reading)) is None:
            return ""
        taken, needed = fields
        if unknown := set(columns) - taken:
            return f"{reading.type_name} has no field for {sorted(unknown)} of {name}"
        if lacking := needed - set(columns):
            return f"{name} has no column for {sorted(lacking)} of {reading.type_name}"
    elif reading.unpacked and (reading.unpacked > count or (reading.unpacked != count and not reading.has_rest)):
        return f"takes {reading.unpacked} columns of {name}, which has {count}"
    elif reading.highest >= count:
        return f"takes column {reading.highest} of {name}, which has {count}"
    return ""


@cache
def fields_of(reading: Reading) -> tuple[frozenset[str], frozenset[str]] | None:
    """Return the fields of the type that a place reads into, and those without a default; None if it takes any."""
    module = importlib.import_module(reading.place.split(":")[0].removesuffix(".py").replace("/", "."))
    kind = getattr(module, reading.type_name, None)
    if not callable(kind):
        return None
    if dataclasses.is_dataclass(kind):
        fields = dataclasses.fields(kind)
        lacking = dataclasses.MISSING
        needed = {f.name for f in fields if f.default is lacking and f.default_factory is lacking and f.init}
        return frozenset(f.name for f in fields if f.init), frozenset(needed)
    parameters = inspect.signature(kind).parameters.values()
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return None
    return (
        frozenset(parameter.name for parameter in parameters),
        frozenset(parameter.name for parameter in parameters if parameter.default is parameter.empty),
    )


def test_the_places_that_read_rows_are_found() -> None:
    """Most statements are read in one of the ways that this file knows; it would be of no use otherwise."""
    assert len({reading.statement for reading in all_readings()}) > 130
    example = ast.parse(
        "def f(c):\n"
        "    rows = c.execute(queries['two'], {}).fetchall()\n"
        "    a, b, d = c.execute(queries['one']).fetchone()\n"
        "    return [x for x, y in rows], c.execute(queries['three']).fetchone()[4]\n"
    ).body[0]
    assert isinstance(example, ast.FunctionDef)
    found = {(reading.statement, reading.unpacked, reading.highest) for reading in readings_of(example, "f.py")}
    assert found == {("two", 2, -1), ("one", 3, -1), ("three", 0, 4)}
