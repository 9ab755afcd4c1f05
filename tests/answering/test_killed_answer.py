"""A process killed while an answer streams: what had been written is kept, and what it cost is in the ledger."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from psycopg.rows import dict_row
from scripted import add_account
from standin import ProviderStandin
from test_answering_end_to_end import publish

from rag.answering.answer import Answerer
from rag.answering.live import LiveAnswers
from rag.database import Database
from rag.providers.registry import Providers
from rag.records.chat_logs import ChatLogs
from rag.records.conversations import Conversations
from rag.records.ledger import Ledger
from rag.retrieval.context import Retriever
from rag.settings import Settings
from rag.types import Collection

PROJECT = Path(__file__).resolve().parents[2]
ASKER = """
import sys, time
from uuid import UUID
from rag.answering.answer import Answerer
from rag.answering.live import LiveAnswers
from rag.database import Database
from rag.ingestion.work import find_collection
from rag.providers.registry import Providers
from rag.records.chat_logs import ChatLogs
from rag.records.conversations import Conversations
from rag.records.ledger import Ledger
from rag.retrieval.context import Retriever
from rag.settings import Settings
from rag.types import Identity, Role
conninfo, url, account, collection = sys.argv[1:-1]
settings = Settings(openai_api_key="k", openai_base_url=url)
database = Database(conninfo, bytes.fromhex(sys.argv[-1]))
database.open()
providers = Providers(settings)
answerer = Answerer(Retriever(database, providers), providers, Ledger(database), ChatLogs(database), settings)
answers = LiveAnswers(answerer, Conversations(database), database)
who = Identity(account_id=UUID(account), tenant_id="demo", email="a@example.org", name="A", role=Role.EMPLOYEE)
found = find_collection(database, "demo", UUID(collection))
answers.ask(who, None, found, "How many vacation days do employees receive?")
time.sleep(60)
"""


@pytest.mark.parametrize("written", ["in the middle", "before the first word"])
def test_an_answer_whose_process_is_killed_is_paid_for_in_the_ledger(
    written: str, database: Database, collection: Collection, settings: Settings, provider_standin: ProviderStandin
) -> None:
    provider_standin.reply(" ".join(f"word{number}" for number in range(40)))
    provider_standin.hang_stream_after(20 if written == "in the middle" else 0)
    keyed = replace(settings, openai_api_key="k", openai_base_url=provider_standin.openai_url)
    providers = Providers(keyed)
    publish(database, providers, collection)
    identity = add_account(database, "demo", "a@example.org")
    arguments = [database.conninfo, keyed.openai_base_url, str(identity.account_id), str(collection.id)]
    arguments.append(database.key.hex())
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}

    def stored() -> str | None:
        with database.transaction("demo") as connection:
            row = connection.execute("SELECT content FROM messages WHERE role = 'assistant'").fetchone()
        return row[0] if row else None

    with subprocess.Popen([sys.executable, "-c", ASKER, *arguments], env=environment, cwd=PROJECT) as process:
        deadline = time.monotonic() + 60
        while not (stored() if written == "in the middle" else provider_standin.calls["chat"]):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        process.send_signal(signal.SIGKILL)
    kept = stored() or ""
    answerer = Answerer(Retriever(database, providers), providers, Ledger(database), ChatLogs(database), keyed)
    answers = LiveAnswers(answerer, Conversations(database), database)
    assert answers.close_abandoned("demo", quiet_seconds=0) == 1
    assert answers.close_abandoned("demo", quiet_seconds=0) == 0
    with database.transaction("demo") as connection, connection.cursor(row_factory=dict_row) as cursor:
        (log,) = cursor.execute("SELECT * FROM chat_logs").fetchall()
        (paid,) = cursor.execute("SELECT * FROM cost_ledger").fetchall()
        assert cursor.execute("SELECT * FROM paid_calls").fetchall() == []
    assert (paid["is_estimated"], paid["operation"], paid["chat_log_id"]) == (True, "chat", log["id"])
    assert paid["input_tokens"] > 100
    assert (paid["output_tokens"] > 0) == bool(kept)
    assert log["cost"] == paid["cost"] > 0
    provider_standin.release()
    providers.close()
