"""Source 000's callers in JavaScript, run by Node against the served product on a board of synced posts."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rag.services import Services
from rag.types import Collection
from tests.patience import patient
from tests.standins.providers import ProviderStandin, many_words

NODE = shutil.which("node")
CLIENT = Path(__file__).with_name("board_client.mjs")
ANSWER = "12월 정착지원금 신청에 대해 안내드립니다 [1]. 지점에 신청서를 냅니다."
Run = Callable[[str], Any]

pytestmark = pytest.mark.skipif(NODE is None, reason="no Node on this machine (Debian: apt install nodejs)")


@pytest.fixture
def run(behind_routes: Services, filled: Collection, serve: Callable[[], str]) -> Run:
    """Does one of the client's tasks as somebody who is signed in; what it heard."""
    link = behind_routes.accounts.first_admin_link()
    assert link is not None
    account = behind_routes.accounts.create_first_admin(
        link, "reader@example.com", "Reader", "paper-and-linen-thread-7"
    )
    session, address = behind_routes.sessions.start(account), serve()

    def done(task: str) -> Any:
        assert NODE is not None
        told = subprocess.run(
            [NODE, str(CLIENT), address, session, task],
            capture_output=True,
            text=True,
            timeout=patient(60),
            check=False,
        )
        assert told.returncode == 0, told.stderr
        return json.loads(told.stdout)

    return done


def outcomes(parts: Services) -> list[str | None]:
    with parts.database.transaction("demo") as connection:
        return [row[0] for row in connection.execute("SELECT outcome FROM chat_logs ORDER BY created_at")]


def test_the_basic_caller_gets_its_answer_with_its_sources(run: Run, provider_standin: ProviderStandin) -> None:
    provider_standin.reply(ANSWER)
    heard = run("basic")
    assert (heard["status"], heard["answer"]) == (200, ANSWER)
    assert heard["titles"][:2] == ["고정 정착지원금", "필독 정착지원금"]


def test_the_streaming_caller_hears_every_step_and_the_whole_text(run: Run, provider_standin: ProviderStandin) -> None:
    provider_standin.token_interval_seconds = 0.05
    provider_standin.reply(ANSWER)
    heard = run("streaming")
    chunks = heard["kinds"].count("chunk")
    assert chunks > 1
    assert heard["kinds"] == ["searching", "context", "generating", *["chunk"] * chunks, "done"]
    assert (heard["status"], heard["text"]) == (200, ANSWER)


def test_who_reads_as_an_event_source_hears_why_an_answer_broke_off(
    run: Run, provider_standin: ProviderStandin
) -> None:
    provider_standin.reply(ANSWER)
    provider_standin.cut_stream_after(3)
    heard = run("events")
    assert heard["kind"] == "text/event-stream; charset=utf-8"
    kinds = [event["type"] for event in heard["events"]]
    assert kinds[:3] == ["searching", "context", "generating"]
    last = heard["events"][-1]
    assert (last["type"], last["code"]) == ("error", "failed")
    assert last["data"].endswith(".")
    assert last["requestId"]


def test_who_leaves_stops_the_answer(run: Run, parts: Services, provider_standin: ProviderStandin) -> None:
    provider_standin.token_interval_seconds = 0.1
    provider_standin.reply(many_words(200))
    assert run("leaving") == {"left": True}
    deadline = time.monotonic() + patient(10)
    while outcomes(parts) != ["stopped"] and time.monotonic() < deadline:
        time.sleep(0.05)
    assert outcomes(parts) == ["stopped"]


def test_the_filtered_search_finds_nothing_in_a_category_that_is_empty(run: Run) -> None:
    heard = run("filtered")
    assert (heard["status"], heard["query"], heard["results"], heard["total"]) == (200, "MGR 컨퍼런스", [], 0)
    assert heard["latencyMs"] >= 0
