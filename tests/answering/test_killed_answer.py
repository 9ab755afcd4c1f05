"""A process killed in the middle of a paid call of a question: what had been written is kept, what it cost is known."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from psycopg.rows import dict_row

from rag.answering.prompts import follow_up_messages
from rag.providers.registry import Providers
from rag.records.chat_logs import ChatLogs
from rag.settings import Settings
from rag.storage.database import Database
from rag.types import Collection, Identity
from tests.answering.scripted import add_account
from tests.answering.test_answering_end_to_end import publish
from tests.forked import forked_python
from tests.patience import patient
from tests.standins.providers import ProviderStandin

PROJECT = Path(__file__).resolve().parents[2]
#: Importing the product takes longer than all it does here: each process to be killed is forked from one that has.
FORKS = """
import json, os, signal, sys, time
from dataclasses import replace
from threading import Event
from uuid import UUID
from rag.ingestion.document_jobs import find_collection
from rag.answering.logged_search import Searches
from rag.storage.database import Database
from rag.profiles import HR
from rag.services import assemble
from rag.settings import Settings
from rag.types import ChatMessage, Identity, Question, Role

PLAIN = HR.changed(reranking=False, translate_queries=False, follow_ups=0)

def ask(conninfo, key, settings, account, collection, text, way, fields, said):
    database = Database(conninfo, bytes.fromhex(key))
    database.open()
    parts = assemble(Settings(**settings), database)
    who = Identity(account_id=UUID(account), tenant_id="demo", email="a@example.org", name="A", role=Role.EMPLOYEE)
    found = find_collection(database, "demo", UUID(collection))
    history = [ChatMessage(role=role, content=content) for role, content in said]
    question = Question(text=text, identity=who, collection=found, history=tuple(history))
    profile = PLAIN.changed(**fields)
    if way == "live":
        parts.answers.ask(question)
        time.sleep(60)
    elif way == "search":
        parts.searches.search(question, profile=profile)
    else:
        list(parts.answerer.answer(question, profile=profile, cancel=Event()))

for line in sys.stdin:
    child = os.fork()
    if not child:
        ask(*json.loads(line))
        os._exit(0)
    print(child, flush=True)
    os.waitpid(child, 0)
"""
VACATION = "How many vacation days do employees receive?"
SAID = (("user", "And parental leave?"), ("assistant", "12 days."))
EMBEDDED = "openai/text-embedding-3-small@256"


class Asker:
    """Asks in processes of their own."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._child = 0

    def ask(self, *arguments: Any) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(arguments) + "\n")
        self._process.stdin.flush()
        self._child = int(self._process.stdout.readline())

    def kill(self) -> None:
        os.kill(self._child, signal.SIGKILL)


@pytest.fixture(scope="module")
def asker() -> Iterator[Asker]:
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    command = [*forked_python(), "-c", FORKS]
    with subprocess.Popen(
        command, env=environment, cwd=PROJECT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield Asker(process)
        assert process.stdin is not None
        process.stdin.close()


@pytest.fixture
def keys(provider_standin: ProviderStandin) -> dict[str, str]:
    return {
        "openai_api_key": "k",
        "openai_base_url": provider_standin.openai_url,
        "cohere_api_key": "k",
        "cohere_base_url": provider_standin.cohere_url,
    }


@pytest.fixture
def who(database: Database) -> Identity:
    return add_account(database, "demo", "a@example.org")


@pytest.fixture
def shelf(database: Database, collection: Collection, settings: Settings, keys: dict[str, str]) -> Collection:
    """The collection, embedded by a provider, with the leave policy."""
    moved = replace(collection, embedding_model=EMBEDDED)
    with database.transaction("demo") as connection:
        connection.execute("UPDATE collections SET embedding_model = %s", (EMBEDDED,))
    providers = Providers(replace(settings, **keys))  # type: ignore[arg-type]
    publish(database, providers, moved)
    providers.close()
    return moved


def wait_for(is_there: Any) -> None:
    deadline = time.monotonic() + patient(60)
    while not is_there():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def books(database: Database) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The log and the ledger, where no call is under way any more."""
    with database.transaction("demo") as connection, connection.cursor(row_factory=dict_row) as cursor:
        assert cursor.execute("SELECT * FROM paid_calls").fetchall() == []
        logs = cursor.execute("SELECT * FROM chat_logs").fetchall()
        return logs, cursor.execute("SELECT * FROM cost_ledger ORDER BY created_at, id").fetchall()


@pytest.mark.parametrize("written", ["in the middle", "before the first word"])
def test_an_answer_whose_process_is_killed_is_paid_for_in_the_ledger(
    written: str,
    database: Database,
    collection: Collection,
    settings: Settings,
    provider_standin: ProviderStandin,
    keys: dict[str, str],
    who: Identity,
    asker: Asker,
) -> None:
    provider_standin.reply(" ".join(f"word{number}" for number in range(40)))
    provider_standin.hang_stream_after(20 if written == "in the middle" else 0)
    providers = Providers(replace(settings, **keys))  # type: ignore[arg-type]
    publish(database, providers, collection)
    providers.close()
    keys = {name: value for name, value in keys.items() if name.startswith("openai")}

    def stored() -> str | None:
        with database.transaction("demo") as connection:
            row = connection.execute("SELECT content FROM messages WHERE role = 'assistant'").fetchone()
        return row[0] if row else None

    asker.ask(
        database.conninfo, database.key.hex(), keys, str(who.account_id), str(collection.id), VACATION, "live", {}, ()
    )
    wait_for(lambda: stored() if written == "in the middle" else provider_standin.calls["chat"])
    asker.kill()
    kept = stored() or ""
    assert ChatLogs(database).close_abandoned("demo", quiet_seconds=0) == 1
    assert ChatLogs(database).close_abandoned("demo", quiet_seconds=0) == 0
    (log,), (paid,) = books(database)
    assert (paid["is_estimated"], paid["operation"], paid["chat_log_id"]) == (True, "chat", log["id"])
    assert paid["input_tokens"] > 100
    assert (paid["output_tokens"] > 0) == bool(kept)
    assert log["cost"] == paid["cost"] > 0
    provider_standin.release()


#: Each with its operation in the ledger, the question, what the profile wants, and what was said before.
CALLS: dict[str, tuple[str, str, dict[str, Any], tuple[tuple[str, str], ...]]] = {
    "embedding": ("embedding", VACATION, {}, ()),
    "reranking": ("reranking", VACATION, {"reranking": True}, ()),
    "translation": (
        "translation", "Hoeveel vakantiedagen krijgen alle werknemers?", {"translate_queries": True}, (),
    ),
    "rephrasing": ("chat", VACATION, {"expand_question": True}, ()),
    "rewriting": ("chat", "And for part-timers?", {}, SAID),
    "recognising": ("chat", "What is the gist of the leave policy?", {}, ()),
    "follow-ups": ("chat", VACATION, {"follow_ups": 3}, ()),
}  # fmt: skip
OF_SEARCHES = ("embedding", "reranking", "translation", "rephrasing")


@pytest.mark.parametrize(
    ("call", "way"), [*((call, "answer") for call in CALLS), *((call, "search") for call in OF_SEARCHES)]
)
def test_a_call_of_a_question_whose_process_is_killed_is_an_estimated_row(
    call: str,
    way: str,
    database: Database,
    shelf: Collection,
    provider_standin: ProviderStandin,
    keys: dict[str, str],
    who: Identity,
    asker: Asker,
) -> None:
    operation, text, fields, said = CALLS[call]
    released, hanging = Event(), Event()
    meeting = None
    if operation in ("embedding", "reranking"):
        endpoint = "embeddings" if operation == "embedding" else "rerank"
        meeting = provider_standin.meet(endpoint, 2, timeout_seconds=60)
    else:
        follow_ups = follow_up_messages(question="", answer="", context_text="", language="en", count=3)[0].content

        def reply(messages: list[dict[str, Any]]) -> str:
            if call != "follow-ups" or messages[0]["content"] == follow_ups:
                hanging.set()
                released.wait(patient(60))
            return "They receive 25 days [1]."

        provider_standin.reply(reply)
    asker.ask(database.conninfo, database.key.hex(), keys, str(who.account_id), str(shelf.id), text, way, fields, said)
    wait_for(lambda: meeting.n_waiting if meeting else hanging.is_set())
    asker.kill()
    released.set()
    if meeting:
        meeting.abort()
    assert ChatLogs(database).close_abandoned("demo", quiet_seconds=0) == 1
    assert ChatLogs(database).close_abandoned("demo", quiet_seconds=0) == 0
    (log,), rows = books(database)
    (estimated,) = (row for row in rows if row["is_estimated"])
    assert rows[-1] == estimated
    assert estimated["operation"] == operation
    assert estimated["search_units"] if operation == "reranking" else estimated["input_tokens"]
    assert {row["chat_log_id"] for row in rows} == {log["id"]}
    assert log["cost"] == sum(row["cost"] for row in rows) > 0
    assert (log["outcome"], log["kind"]) == ("failed", "search" if way == "search" else "question")
