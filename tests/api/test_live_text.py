"""The text of an answer as the page's script follows it."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest

from rag.access.guard import SESSION_COOKIE
from rag.answering.events import CitationsEvent, TextEvent
from rag.answering.jobs import LiveAnswer
from rag.services import Services
from rag.types import Identity, Question, Role
from rag.ui import live_text
from rag.ui.text import GrowingAnswer
from tests.api.callers import Api
from tests.standins.providers import ProviderStandin, many_words

QUESTION = "How many days of annual leave do employees have?"


@pytest.fixture
def live() -> LiveAnswer:
    return LiveAnswer(
        message_id=uuid4(),
        conversation_id=uuid4(),
        question="?",
        owner=("demo", uuid4()),
        on_forced_end=lambda answer: None,
    )


def news_of(said: list[str]) -> list[dict[str, Any]]:
    return [json.loads(event[6:]) for event in said if event.startswith("data: ")]


async def heard(live: LiveAnswer, identity: Identity) -> list[str]:
    return [sent async for sent in live_text._events(live, identity)]


async def followed(live: LiveAnswer, identity: Identity, texts: list[TextEvent]) -> list[str]:
    """What a follower is sent when each text comes once it has heard of the one before."""
    said = []
    async for sent in live_text._events(live, identity):
        said.append(sent)
        if texts:
            live.take(texts.pop(0))
        elif live.written is None:
            live.take(CitationsEvent(()))
    return said


def test_finished_blocks_come_once_and_the_last_grows(live: LiveAnswer, admin: Identity) -> None:
    live.take(TextEvent("You have"))
    said = asyncio.run(followed(live, admin, [TextEvent(" 25 days.\n\nAnd\n"), TextEvent("a day off.")]))
    assert news_of(said) == [
        {"finished": "", "growing": "<p>You have</p>\n"},
        {"finished": "<p>You have 25 days.</p>\n", "growing": "<p>And</p>\n"},
        {"finished": "", "growing": "<p>And\na day off.</p>\n"},
    ]
    assert said[-1] == live_text.END


def test_who_comes_later_is_sent_everything_and_withdrawn_text_is_replaced(live: LiveAnswer, admin: Identity) -> None:
    live.take(TextEvent("Dogs bring joy.\n\nMany\n"))
    said = asyncio.run(followed(live, admin, [TextEvent("25 days", starts_over=True)]))
    assert news_of(said) == [
        {"finished": "<p>Dogs bring joy.</p>\n", "growing": "<p>Many</p>\n"},
        {"finished": "", "growing": "<p>25 days</p>\n", "again": True},
    ]


def test_the_html_of_a_piece_is_written_once_for_all_who_follow(
    live: LiveAnswer, admin: Identity, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[str] = []
    grow = GrowingAnswer.grow

    def counted(self: GrowingAnswer, text: str) -> None:
        written.append(text)
        grow(self, text)

    monkeypatch.setattr(GrowingAnswer, "grow", counted)

    async def five() -> list[list[str]]:
        live.take(TextEvent("One "))
        following = [asyncio.create_task(heard(live, admin)) for _ in range(4)]
        said = await followed(live, admin, [TextEvent("two "), TextEvent("three")])
        return [said, *(await asyncio.gather(*following))]

    assert {news_of(said)[-1]["growing"] for said in asyncio.run(five())} == {"<p>One two three</p>\n"}
    assert written == ["One ", "One two ", "One two three"]


def test_following_ends_with_the_session(
    live: LiveAnswer, parts: Services, admin: Identity, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_text, "RECHECK_SECONDS", 0.02)
    live.take(TextEvent("One"))
    signed_out = replace(admin, session_id="0" * 64)
    said = asyncio.run(asyncio.wait_for(heard(live, signed_out), 10))
    assert len(news_of(said)) == 1
    assert live_text.END not in said
    assert not live.cancel.is_set()  # the answer itself goes on


def test_an_answer_is_followed_by_who_asked_and_nobody_else(api: Api, provider_standin: ProviderStandin) -> None:
    api.ready_document()
    provider_standin.token_interval_seconds = 0.01
    provider_standin.reply("Employees have **25 days** [1]. " + many_words(100))
    mine, another = api.session(Role.EMPLOYEE), api.session(Role.MANAGER)
    owner = api.parts.sessions.find(mine)
    assert owner is not None
    live = api.parts.answers.ask(Question(text=QUESTION, identity=owner, collection=api.collection))
    path = f"/answers/{live.message_id}/text"
    with api.client(cookie=f"{SESSION_COOKIE}={mine}").stream("GET", path) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        said = [line for line in answer.iter_lines() if line]
    assert said[-2:] == ["event: end", "data: {}"]
    news = news_of(said[:-2])
    assert len(news) > 1
    assert "<strong>25 days</strong> <sup>1</sup>" in news[0]["growing"] + news[-1]["growing"]
    assert api.client(cookie=f"{SESSION_COOKIE}={another}").get(path).status_code == 404
    assert api.client().get(path, headers={"accept": "text/event-stream"}).status_code in (302, 303, 307, 401)
    assert api.client(api.key("chat")).get(path).status_code in (302, 303, 307, 401)
