"""Answers under way over HTTP: the line is kept open, who leaves stops the work, the log names the request."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from uuid import uuid4

import httpx
import pytest

from rag.answering.events import DoneEvent, TextEvent
from rag.answering.jobs import LiveAnswer
from rag.api.event_stream import HEARTBEAT, answer_events
from rag.types import MessageState, Outcome
from tests.api.callers import Api
from tests.patience import patient
from tests.standins.providers import ProviderStandin, many_words

QUESTION = "How many days of annual leave do employees have?"


def wait_for(condition: Callable[[], bool], seconds: float = 10.0) -> None:
    deadline = time.monotonic() + patient(seconds)
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.03)


def test_a_comment_keeps_a_silent_line_open_and_is_no_event() -> None:
    live = LiveAnswer(
        message_id=uuid4(),
        conversation_id=uuid4(),
        question="?",
        owner=("demo", uuid4()),
        on_forced_end=lambda answer: None,
    )

    async def heard() -> list[str]:
        said = []
        async for sent in answer_events(live, lambda context, citations: [], heartbeat_seconds=0.02):
            said.append(sent)
            if said.count(HEARTBEAT) == 2 and not live.is_done:
                live.take(TextEvent("25 days"))
                live.take(DoneEvent(outcome=Outcome.ANSWERED, state=MessageState.COMPLETE, cost=None, total_ms=1))
                live.set_done()
        return said

    said = asyncio.run(heard())
    assert said[:3] == ['data: {"type": "searching"}\n\n', HEARTBEAT, HEARTBEAT]
    assert HEARTBEAT.startswith(":")
    assert HEARTBEAT.endswith("\n\n")
    kinds = [json.loads(line[6:])["type"] for line in said if line.startswith("data: ")]
    assert kinds == ["searching", "generating", "chunk", "done"]


def test_withdrawn_text_is_told_before_the_text_in_its_place() -> None:
    live = LiveAnswer(
        message_id=uuid4(),
        conversation_id=uuid4(),
        question="?",
        owner=("demo", uuid4()),
        on_forced_end=lambda answer: None,
    )

    async def heard() -> list[dict[str, object]]:
        live.take(TextEvent("Dogs bring joy"))
        said = []
        async for sent in answer_events(live, lambda context, citations: [], heartbeat_seconds=5):
            said.append(json.loads(sent[6:]))
            if said[-1]["type"] == "chunk" and not live.is_done:
                live.take(TextEvent("25 days", starts_over=True))
                live.take(DoneEvent(outcome=Outcome.ANSWERED, state=MessageState.COMPLETE, cost=None, total_ms=1))
                live.set_done()
        return said

    said = asyncio.run(heard())
    told = [(event["type"], event.get("data")) for event in said[2:-1]]
    assert told == [("chunk", "Dogs bring joy"), ("restart", None), ("chunk", "25 days")]


def test_a_sentence_that_its_passage_does_not_bear_out_is_told(api: Api, provider_standin: ProviderStandin) -> None:
    api.ready_document()
    provider_standin.reply(
        "Employees have 25 days of annual leave [1]. Penguins waddle across frozen antarctic ice [1]."
    )
    caller = api.client(api.key("chat"))
    answer = caller.post("/api/rag/chat", json={"query": QUESTION}).json()
    assert answer["unsupported"] == ["Penguins waddle across frozen antarctic ice"]


def test_who_waits_for_a_whole_answer_and_leaves_stops_it(api: Api, provider_standin: ProviderStandin) -> None:
    api.ready_document()
    provider_standin.token_interval_seconds = 0.1
    provider_standin.reply(many_words(300))
    caller = api.client(api.key("chat"))
    with pytest.raises(httpx.ReadTimeout):
        caller.post("/api/rag/chat", json={"query": QUESTION}, timeout=httpx.Timeout(10, read=1.0))
    wait_for(lambda: api.outcomes() == ["stopped"])
