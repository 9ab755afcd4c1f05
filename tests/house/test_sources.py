"""The tables of docs/sources.md: every requirement of the five descriptions names tests that are there."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from rag.__main__ import command_line
from rag.profiles.profile import SETTINGS
from rag.server import API

PROJECT = Path(__file__).resolve().parents[2]
TEXT = (PROJECT / "docs" / "sources.md").read_text("utf-8")
HEAD = "| Requirement | Page | API | Command | Package | Test | Otherwise here, and the way back |"
TEST = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?`")


def rows() -> list[list[str]]:
    """The cells of every row of a table of requirements."""
    found = []
    for table in TEXT.split(HEAD)[1:]:
        lines = table.strip().splitlines()
        found += [
            [cell.strip() for cell in line.strip("|").split(" | ")]
            for line in lines[1 : next((n for n, line in enumerate(lines) if not line.startswith("|")), len(lines))]
        ]
    return found


def test_every_requirement_names_a_test_that_is_there() -> None:
    assert len(rows()) > 100
    missing = []
    for row in rows():
        assert len(row) == 7, row
        tests = TEST.findall(row[5])
        if not tests:
            missing.append(row[0])
        for path, name in tests:
            file = PROJECT / path
            text = file.read_text("utf-8") if file.is_file() else ""
            if not text or (name and f"def {name}(" not in text):
                missing.append(f"{row[0]}: {path}::{name}")
    assert missing == []


def test_every_requirement_is_reached_or_says_what_is_otherwise() -> None:
    assert [row[0] for row in rows() if all(cell == "–" for cell in (*row[1:5], row[6]))] == []


def test_the_ways_back_are_settings_there_are() -> None:
    named = {name for row in rows() for name in re.findall(r"`(\w+)=", row[6])}
    assert named - SETTINGS.keys() == set()
    assert named


def test_every_call_and_every_command_of_the_tables_is_there() -> None:
    offered = {
        (method.upper(), re.sub(r"\{\w+\}", "{id}", path))
        for path, methods in API.openapi()["paths"].items()
        for method in methods
    }
    calls = {call for row in rows() for call in re.findall(r"`(GET|POST|PUT|PATCH|DELETE) (/[\w/{}-]+)", row[2])}
    assert calls - offered == set()
    assert len(calls) > 10
    commands = choices_of(command_line())
    for row in rows():
        for code in re.findall(r"`([^`]+)`", row[3]):
            name, *words = code.split()
            if name.startswith("--"):  # of a search
                name, words = "search", [name, *words]
            if name.isupper() or name == "environment":
                continue
            assert name in commands, code
            assert {word for word in words if word.startswith("--")} <= options_of(commands[name]), code


def choices_of(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    return {
        name: choice
        for action in parser._actions
        if isinstance(action.choices, dict)
        for name, choice in action.choices.items()
    }


def options_of(parser: argparse.ArgumentParser) -> set[str]:
    own = {option for action in parser._actions for option in action.option_strings}
    return own.union(*map(options_of, choices_of(parser).values()))
