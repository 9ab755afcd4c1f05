"""Slack: signed events in, answers with sources out, against a stand-in of Slack's API and its own library."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode

import httpx
import pytest
from slack_sdk.signature import SignatureVerifier

from rag.integrations.channels.slack import bot as slack
from rag.settings import Settings, load_settings
from rag.types import Role
from tests.api.callers import Api
from tests.patience import patient
from tests.standins.local_server import LocalServer, QuietHandler
from tests.standins.providers import ProviderStandin

SECRET = "8f742231b10e8888abcd99yyyzzz85a5"
OURS = {"team_id": "T1", "is_bot": False}
PEOPLE: dict[str, dict[str, Any]] = {
    "U1": {**OURS, "profile": {"email": "ADMIN@example.com"}},
    "U2": {**OURS, "profile": {"email": "one-employee@example.com"}},
    "U3": {**OURS, "profile": {"email": "stranger@example.com"}},
    "U4": {"team_id": "T2", "profile": {"email": "admin@example.com"}},
    "U5": {**OURS, "is_restricted": True, "profile": {"email": "admin@example.com"}},
    "U6": {**OURS, "is_email_confirmed": False, "profile": {"email": "admin@example.com"}},
}


class SlackStandin:
    """Answers the methods of Slack's Web API that a bot calls, and keeps what it was told."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, dict[str, Any]]] = []
        standin = self

        class Handler(QuietHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length") or 0)).decode()
                is_json = "json" in self.headers.get("content-type", "")
                sent = json.loads(body) if is_json else {k: v[0] for k, v in parse_qs(body).items()}
                method = self.path.rpartition("/")[2]
                assert self.headers["authorization"] == "Bearer xoxb-token"
                answer: dict[str, Any] = {"ok": True, "channel": "C1", "ts": f"{len(standin.calls)}.9"}
                if method == "auth.test":
                    answer = {"ok": True, "team_id": "T1", "user_id": "UBOT", "bot_id": "BBOT", "user": "hr"}
                elif method == "users.info":
                    known = PEOPLE.get(sent["user"])
                    answer = {"ok": True, "user": known} if known else {"ok": False, "error": "user_not_found"}
                else:
                    standin.calls.append((method, sent))
                content = json.dumps(answer).encode()
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

        self.server = LocalServer(Handler)

    def said(self, count: int) -> list[tuple[str, dict[str, Any]]]:
        """Wait until the bot has called so often, and return what it said since the last time."""
        end = time.monotonic() + patient(30)
        while len(self.calls) < count and time.monotonic() < end:
            time.sleep(0.02)
        assert len(self.calls) >= count, self.calls
        calls, self.calls[:] = list(self.calls), []
        return calls


@pytest.fixture
def standin() -> Iterator[SlackStandin]:
    made = SlackStandin()
    with made.server:
        yield made


@pytest.fixture
def settings(settings: Settings, standin: SlackStandin) -> Settings:
    address = f"http://127.0.0.1:{standin.server.server_port}/api/"
    variables = {"SLACK_BOT_TOKEN": "xoxb-token", "SLACK_SIGNING_SECRET": SECRET, "SLACK_API_URL": address}
    return replace(settings, integration_variables=variables, answers_at_once=0)


def blocks_of(said: dict[str, Any]) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = said["blocks"] if isinstance(said["blocks"], list) else json.loads(said["blocks"])
    return blocks


Send = Callable[..., httpx.Response]


@pytest.fixture
def send(api: Api) -> Iterator[Send]:
    client, numbers = api.client(), iter(range(1000))

    def post(body: str, kind: str, secret: str = SECRET, at: float | None = None) -> httpx.Response:
        moment = str(int(at or time.time()))
        signature = SignatureVerifier(secret).generate_signature(timestamp=moment, body=body)
        headers = {"x-slack-request-timestamp": moment, "x-slack-signature": str(signature), "content-type": kind}
        return client.post("/slack/events", content=body, headers=headers)

    def event(text: str, user: str = "U1", kind: str = "message", *, rest: Any = None, **more: Any) -> httpx.Response:
        inner = {"type": kind, "user": user, "text": text, "ts": f"{next(numbers)}.1", "channel": "D1"}
        inner |= {"channel_type": "im"} if kind == "message" else {}
        body = {"type": "event_callback", "team_id": "T1", "api_app_id": "A1", "event_id": f"Ev{next(numbers)}"}
        known = {name: more.pop(name) for name in ("secret", "at") if name in more}
        whole = json.dumps({**body, "event": {**inner, **more}, **(rest or {})})
        return post(whole, "application/json", **known)

    event.post = post  # type: ignore[attr-defined]
    yield event
    slack._current.clear()


def test_a_thread_is_a_conversation_and_thumbs_are_feedback(api: Api, standin: SlackStandin, send: Send) -> None:
    api.ready_document()
    assert send("How many days of annual leave do I have?").status_code == 200
    (_, waiting), (method, answer) = standin.said(2)
    assert method == "chat.update", (waiting, answer)
    assert answer["ts"] == "0.9"
    assert "three minutes" in waiting["text"]
    blocks = blocks_of(answer)
    assert [block["type"] for block in blocks] == ["section", "context", "actions"]
    assert "/api/documents/" in blocks[1]["elements"][0]["text"]
    again = send("And the next year?", thread_ts=waiting["thread_ts"])
    assert again.status_code == 200
    standin.said(2)
    (conversation,) = api.parts.conversations.list(api.admin)
    assert len(api.parts.conversations.messages(api.admin, conversation.id)) == 4
    thumb = blocks[2]["elements"][1]
    click = {
        "type": "block_actions", "team": {"id": "T1"}, "user": {"id": "U1"}, "channel": {"id": "D1"},
        "message": {"ts": "1.9", "thread_ts": waiting["thread_ts"]}, "api_app_id": "A1", "token": "x",
        "container": {"type": "message"}, "trigger_id": "1",
        "actions": [{"type": "button", "action_id": thumb["action_id"], "value": thumb["value"], "block_id": "b"}],
    }  # fmt: skip
    form = "application/x-www-form-urlencoded"
    assert send.post(urlencode({"payload": json.dumps(click)}), form).status_code == 200  # type: ignore[attr-defined]
    assert standin.said(1)[0][1]["text"] == "Thank you."
    api.session(Role.EMPLOYEE)
    click["user"] = {"id": "U2"}
    send.post(urlencode({"payload": json.dumps(click)}), form)  # type: ignore[attr-defined]
    assert "Only the person who asked" in standin.said(1)[0][1]["text"]
    with api.parts.database.transaction("demo") as connection:
        rows = connection.execute("SELECT rating, account_id FROM feedback").fetchall()
    assert rows == [(0, api.admin.account_id)]


def test_rights_hold_in_messages_and_channels(api: Api, standin: SlackStandin, send: Send) -> None:
    api.ready_document()
    api.session(Role.EMPLOYEE)
    for user in ("U3", "U4", "U5", "U6"):
        send("How much leave?", user)
        ((_, said),) = standin.said(1)
        assert "do not know your e-mail address" in said["text"], user
    send("How much leave?", "U9")
    assert "does not tell me who you are" in standin.said(1)[0][1]["text"]
    send("<@UBOT> How many days of annual leave do I have?", kind="app_mention", channel="C1")
    assert standin.said(2)[1][0] == "chat.update"
    send("<@UBOT> Leave?", kind="app_mention", channel="C1", rest={"is_ext_shared_channel": True})
    assert "shared with other companies" in standin.said(1)[0][1]["text"]
    api.parts.documents.change_collection(api.admin, api.collection.id, groups=["Board"])
    send("<@UBOT> How much leave?", kind="app_mention", channel="C1")
    assert "Only some groups may read" in standin.said(1)[0][1]["text"]
    send("How many days of annual leave do I have?")
    assert standin.said(2)[1][0] == "chat.update"
    send("How many days of annual leave do I have?", "U2")
    assert "no collection" in standin.said(1)[0][1]["text"]
    assert api.outcomes().count(None) == 0


def test_a_long_answer_is_whole_with_all_sources_and_what_to_know_of_it(
    api: Api, standin: SlackStandin, send: Send, provider_standin: ProviderStandin
) -> None:
    """Slack takes 3,000 characters in a block, and a page of a model's has more."""
    api.ready_document()
    first = "Everyone has 25 days of paid leave a year [1]. Each of them gets 3 company cars [1].\n\n"
    long = first + " ".join(f"Paragraph{number} of paid leave {number * 7919}?" for number in range(150))
    provider_standin.reply(long, finish_reason="length")
    send("How many days of annual leave do I have?")
    blocks = blocks_of(standin.said(2)[1][1])
    texts = [block["text"]["text"] for block in blocks if block["type"] == "section"]
    assert len(texts) > 1
    assert max(map(len, texts)) < 3000
    (live,) = api.parts.answers._answers.values()
    assert " ".join(" ".join(texts).split()) == " ".join(slack._to_mrkdwn(live.text).split())
    notes = [e["text"] for block in blocks if block["type"] == "context" for e in block["elements"]][-1]
    assert "The answer reached its length limit and ends here." in notes
    assert "Check this sentence, because its source does not support it: “Each of them gets 3 company cars”" in notes
    assert [block["type"] for block in blocks][-1] == "actions"


def test_pieces_are_parted_between_lines_or_words_and_never_within_a_sign() -> None:
    for text in ("word " * 2000, "line\n" * 2000, "&lt;" * 2000, "글" * 7000, "x" * 2899 + "&amp;" + "y" * 10):
        pieces = list(slack._pieces(text))
        assert max(map(len, pieces)) <= slack.MOST_CHARACTERS
        assert "".join("".join(pieces).split()) == "".join(text.split())
        assert not any(piece.endswith(("&", "&l", "&lt", "&am")) for piece in pieces)


def test_what_a_person_may_ask_is_limited_in_slack_too(api: Api, standin: SlackStandin, send: Send) -> None:
    most = api.parts.settings.questions_per_minute
    for _ in range(most):
        api.parts.limits.count_question(api.admin)
    send("How many days of annual leave do I have?")
    assert f"You may ask {most} questions a minute" in standin.said(1)[0][1]["text"]
    assert api.outcomes() == []


def test_many_are_answered_at_once(
    api: Api, standin: SlackStandin, send: Send, provider_standin: ProviderStandin
) -> None:
    """Whoever waits for an answer keeps nobody else from asking: all of them are with the model at one time."""
    api.ready_document()
    provider_standin.reply("Everyone has 25 days of paid leave a year [1].")
    barrier = provider_standin.meet("chat", 12)
    for number in range(12):
        send("How many days of annual leave do I have?", ts=f"{9000 + number}.1")
    updates = [said for method, said in standin.said(24) if method == "chat.update"]
    assert not barrier.broken
    assert all("25 days" in said["text"] for said in updates)


def test_a_channel_asks_what_everybody_may_read_whatever_the_person_asked_last(
    api: Api, standin: SlackStandin, send: Send
) -> None:
    api.ready_document()
    board = api.parts.documents.create_collection(api.admin, "Board", "hr")
    api.parts.documents.change_collection(api.admin, board.id, groups=["Board"])
    api.parts.documents.note_last(api.admin, board)
    send("<@UBOT> How many days of annual leave do I have?", kind="app_mention", channel="C1")
    assert standin.said(2)[1][0] == "chat.update"
    (conversation,) = api.parts.conversations.list(api.admin)
    assert conversation.collection_id == api.collection.id


def test_only_slack_is_heard_and_each_event_once(api: Api, standin: SlackStandin, send: Send) -> None:
    assert send("Leave?", secret="another secret").status_code == 401
    assert send("Leave?", at=time.time() - 600).status_code == 401
    assert api.client().post("/slack/events", json={"type": "url_verification", "challenge": "x"}).status_code == 401
    challenge = json.dumps({"type": "url_verification", "challenge": "abc"})
    assert "abc" in send.post(challenge, "application/json").text  # type: ignore[attr-defined]
    assert api.client().post("/slack/events", content=b"x" * 300_000).status_code == 413
    assert api.client().get("/slack/events").status_code in (404, 405)
    for _ in range(3):
        send("Hello", rest={"event_id": "EvSame"}, ts="77.1")
        slack._current.clear()  # the next one reaches another process
    send("I am a bot", bot_id="B1")
    send("edited", subtype="message_changed")
    standin.said(2)
    send("Hello")
    assert len(standin.said(2)) == 2, "an event was answered twice"
    assert slack._to_mrkdwn("**Bold** <!channel> <https://evil.example|Here>\n# Head\n- one") == (
        "*Bold* &lt;!channel&gt; &lt;https://evil.example¦Here&gt;\n*Head*\n• one"
    )


def test_settings_are_read_by_their_variables(tmp_path: Path) -> None:
    secrets = tmp_path / "secrets.toml"
    secrets.write_text('SLACK_COLLECTION = "HR"\nSLACK_BOT_TOKEN = "stored"\n')
    settings = load_settings({"SLACK_BOT_TOKEN": " given "}, secrets)
    assert settings.variable("SLACK_BOT_TOKEN") == "given"
    assert settings.variable("SLACK_COLLECTION") == "HR"
    assert settings.variable("SLACK_API_URL") == "https://slack.com/api/"
    assert "given" not in repr(settings)
