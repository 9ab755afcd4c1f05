"""`python -m rag prices` as whoever runs the product types it."""

from __future__ import annotations

import argparse
from dataclasses import replace

import pytest

import rag.services
from rag.__main__ import command_line
from rag.errors import InvalidInput
from rag.services import Services
from rag.settings import Settings


def run(*words: str, settings: Settings) -> int:
    arguments: argparse.Namespace = command_line().parse_args(["prices", *words])
    return int(arguments.run(arguments, settings))


def test_prices_are_set_and_listed(
    app_services: Services, settings: Settings, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # Each command closes its own; here they share the test's.
    monkeypatch.setattr(rag.services, "connect_services", lambda _: replace(app_services, closers=()))
    assert run("list", settings=settings) == 0
    assert "No model is in use yet" in capsys.readouterr().out
    assert run("set", "gpt-4o", "input_mtok", "2.50", settings=settings) == 0
    assert "own 2.5 since 20" in capsys.readouterr().out
    assert run("set", "gpt-4o", "input_mtok", "list", "--from", "2999-01-01", settings=settings) == 0
    assert "list from 2999-01-01" in capsys.readouterr().out
    for wrong in (("2.50", "--from", "2020-01-01"), ("much",), ("1", "--from", "tomorrow")):
        with pytest.raises(InvalidInput):
            run("set", "gpt-4o", "input_mtok", *wrong, settings=settings)
    with pytest.raises(InvalidInput, match="choose one of input_mtok"):
        run("set", "gpt-4o", "word", "1", settings=settings)
