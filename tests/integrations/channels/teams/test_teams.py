"""Microsoft Teams: signed activities in, answers with sources out, against stand-ins of Microsoft's keys, sign-in and
connector, and its own library.
"""

from __future__ import annotations

import base64
import importlib
import io
import json
import re
import time
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from joserfc import jwt
from joserfc.jwk import RSAKey
from microsoft_agents.hosting.core.authorization.jwt import JwtTokenValidator
from PIL import Image

from rag.errors import InvalidInput, NotAllowed
from rag.integrations.channels.teams import conversations, route
from rag.integrations.channels.teams.bots import TeamsBots
from rag.integrations.channels.teams.conversations import ISSUER
from rag.integrations.channels.teams.section import teams_package
from rag.integrations.chat import WAITING
from rag.settings import Settings
from rag.storage.database import Database
from rag.types import Identity, Role
from tests.api.callers import Api
from tests.patience import patient
from tests.standins.local_server import LocalServer, QuietHandler
from tests.standins.providers import ProviderStandin
from tests.standins.tls import JsonHandler, TlsServer

APP = "11111111-2222-4333-8444-555555555555"
OURS, THEIRS = "aaaaaaaa-0000-4000-8000-000000000001", "bbbbbbbb-0000-4000-8000-000000000002"
SECRET = "hunter2~hunter2"


def member(name: str, tenant: str = OURS, role: str = "user", email: str = "") -> dict[str, Any]:
    return {"id": "29:x", "tenantId": tenant, "userRole": role, "userPrincipalName": name, "email": email or name}


PEOPLE = {
    "29:admin": member("ADMIN@example.com"),
    "29:one": member("somebody@contoso.example", email="one-employee@example.com"),
    "29:nobody": member("stranger@example.com"),
    "29:other": member("admin@example.com", tenant=THEIRS),
    "29:guest": member("admin@example.com", role="guest"),
    "29:invited": member("admin_example.com#EXT#@contoso.example", email="admin@example.com"),
}


class Login(JsonHandler):
    """Microsoft's sign-in: gives a bot its token for the right secret."""

    def do_GET(self) -> None:
        base = f"https://{self.headers['host']}/{OURS}"
        ends = {
            "authorization_endpoint": f"{base}/oauth2/v2.0/authorize",
            "token_endpoint": f"{base}/oauth2/v2.0/token",
        }
        self.send({"issuer": f"{base}/v2.0", **ends})

    def do_POST(self) -> None:
        form = parse_qs(self.body().decode())
        is_right = form["client_secret"] == [SECRET] and form["scope"] == ["https://api.botframework.com/.default"]
        is_right &= self.path == f"/{OURS}/oauth2/v2.0/token"
        given = {"token_type": "Bearer", "expires_in": 3600, "access_token": "bot-token"}
        self.send(given if is_right else {"error": "invalid_client"}, 200 if is_right else 401)


class Connector:
    """Teams' connector and the list of its keys; keeps what it was told."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str, dict[str, Any]]] = []
        self.people = ["29:admin"]
        self.key = RSAKey.import_key(rsa.generate_private_key(65537, 2048), {"kid": "k1", "use": "sig"})
        self.keys_read = 0
        standin = self

        class Handler(QuietHandler):
            def answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                path = unquote(urlsplit(self.path).path)
                content: Any = {"id": f"said-{len(standin.calls)}"}
                status = 200
                if path == "/keys":
                    standin.keys_read += 1
                    content = {"keys": [standin.key.as_dict(private=False)]}
                else:
                    assert self.headers["authorization"] == "Bearer bot-token"
                    if found := re.fullmatch(r"/emea/v3/conversations/[^/]+/members/(.+)", path):
                        content = PEOPLE.get(found[1], {})
                        status = 200 if content else 404
                    elif path.lower().endswith("/pagedmembers"):
                        content = {"members": [PEOPLE[one] for one in standin.people]}
                    else:
                        standin.calls.append((self.command, path, json.loads(body)))
                sent = json.dumps(content).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(sent)))
                self.end_headers()
                self.wfile.write(sent)

            do_GET = do_POST = do_PUT = answer

        self.server = LocalServer(Handler)
        self.address = f"{self.server.url}/emea/"

    def said(self, count: int) -> list[tuple[str, str, dict[str, Any]]]:
        """Wait until the bot has called so often, and return what it said since the last time."""
        end = time.monotonic() + patient(30)
        while len(self.calls) < count and time.monotonic() < end:
            time.sleep(0.02)
        assert len(self.calls) >= count, self.calls
        calls, self.calls[:] = list(self.calls), []
        return calls

    def token(self, key: RSAKey | None = None, *, algorithm: str = "RS256", **claims: Any) -> str:
        now = int(time.time())
        told = {
            "iss": ISSUER, "aud": APP, "exp": now + 600, "nbf": now - 10, "serviceurl": self.address, **claims,
        }  # fmt: skip
        told = {name: value for name, value in told.items() if value is not None}
        return jwt.encode({"alg": algorithm, "kid": "k1"}, told, key or self.key, algorithms=[algorithm])


@pytest.fixture
def connector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Connector]:
    made = Connector()
    # The library knows Microsoft's own address alone.
    issuers = importlib.import_module("microsoft_agents.hosting.core.authorization._entra_issuers")
    monkeypatch.setitem(issuers.BOTFRAMEWORK_JWKS_URIS, ISSUER, f"{made.server.url}/keys")
    with made.server:
        yield made


@pytest.fixture
def settings(
    settings: Settings, connector: Connector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Settings]:
    login = TlsServer(Login, tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(login.certificate))
    with login:
        yield replace(
            settings,
            microsoft_login_url=f"https://{login.host}",
            integration_variables={"TEAMS_SERVICE_URL": connector.address},
        )


Send = Callable[..., httpx.Response]


@pytest.fixture
def bot(api: Api, connector: Connector) -> Iterator[None]:
    TeamsBots(api.parts.database).keep(api.admin, APP.upper(), [OURS], SECRET)
    yield
    route._current.clear()
    JwtTokenValidator._jwk_client_manager._cache.clear()


@pytest.fixture
def send(api: Api, connector: Connector, bot: None) -> Send:
    client, numbers = api.client(), iter(range(1000))

    def post(text: str = "", person: str = "29:admin", *, token: str | None = None, **more: Any) -> httpx.Response:
        activity = {
            "type": "message", "id": f"a{next(numbers)}", "channelId": "msteams", "serviceUrl": connector.address,
            "from": {"id": person, "name": "A"}, "recipient": {"id": f"28:{APP}"}, "text": text,
            "conversation": {"id": "a:1personal", "conversationType": "personal", "tenantId": OURS},
            "channelData": {"tenant": {"id": OURS}}, "locale": "en-US", **more,
        }  # fmt: skip
        headers = {} if token == "" else {"authorization": f"Bearer {token or connector.token()}"}
        return client.post("/teams/messages", json=activity, headers=headers)

    return post


IN_CHANNEL = {"id": "19:c@thread.tacv2;messageid=1700000000001", "conversationType": "channel", "tenantId": OURS}
IN_GROUP = {"id": "19:g@thread.v2", "conversationType": "groupChat", "isGroup": True, "tenantId": OURS}


def test_nobody_but_teams_is_heard(
    api: Api, connector: Connector, send: Send, caplog: pytest.LogCaptureFixture
) -> None:
    now = int(time.time())
    stranger = RSAKey.import_key(rsa.generate_private_key(65537, 2048), {"kid": "k1"})
    unsigned = ".".join(
        base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode()
        for part in ({"alg": "none", "kid": "k1"}, {"iss": ISSUER, "aud": APP, "exp": now + 600})
    )
    evil = "https://smba.trafficmanager.net.evil.example/"
    refused: dict[str, httpx.Response] = {
        "no token": send("Leave?", token=""),
        "not a token": send("Leave?", token="a.b.c"),
        "unsigned": send("Leave?", token=f"{unsigned}."),
        "another's key": send("Leave?", token=connector.token(stranger)),
        "another issuer": send("Leave?", token=connector.token(iss="https://sts.windows.net/x/")),
        "an issuer that is a list": send("Leave?", token=connector.token(iss=[ISSUER])),
        "no issuer": send("Leave?", token=connector.token(iss=None)),
        "another audience": send("Leave?", token=connector.token(aud=APP.replace("1", "2"))),
        "several audiences": send("Leave?", token=connector.token(aud=[APP])),
        "over": send("Leave?", token=connector.token(exp=now - 3600)),
        "never over": send("Leave?", token=connector.token(exp=None)),
        "not yet": send("Leave?", token=connector.token(nbf=now + 3600)),
        "an answer elsewhere": send("Leave?", serviceUrl=evil),
        "signed for elsewhere": send("Leave?", serviceUrl=evil, token=connector.token(serviceurl=evil)),
        "signed for no address": send("Leave?", token=connector.token(serviceurl=None)),
        "another bot": send("Leave?", recipient={"id": f"28:{APP.replace('1', '9')}"}),
        "a path for an id": send("Leave?", conversation={**IN_CHANNEL, "id": "../../v3/x?y#"}),
        "a person who is a path": send("Leave?", person="29:x/../y"),
        "another channel": send("Leave?", channelId="directline"),
    }
    assert {what: answer.status_code for what, answer in refused.items()} == dict.fromkeys(refused, 401)
    assert send("Leave?", person="").status_code == 400
    elsewhere = {"tenant": {"id": THEIRS}}
    assert send("Leave?", channelData=elsewhere).status_code == 403
    assert send("Leave?", conversation={**IN_CHANNEL, "tenantId": THEIRS}).status_code == 403
    nowhere = {"id": "a:1", "conversationType": "personal"}
    assert send("Leave?", channelData={}, conversation=nowhere).status_code == 403
    client = api.client()
    bearer = {"authorization": "Bearer x"}
    assert client.post("/teams/messages", content=b"x" * 300_000, headers=bearer).status_code == 413
    assert client.post("/teams/messages", content=b'{"type":' + b"[" * 100_000, headers=bearer).status_code == 400
    assert client.get("/teams/messages").status_code in (404, 405)
    unknown = connector.token().replace(".", ".", 1)
    before = connector.keys_read
    for number in range(5):
        header = base64.urlsafe_b64encode(json.dumps({"alg": "RS256", "kid": f"made-up-{number}"}).encode()).decode()
        send("Leave?", token=".".join([header.rstrip("="), *unknown.split(".")[1:]]))
    assert connector.keys_read <= before + 1, "made-up keys have Microsoft's list read each time"
    assert "ConnectionError" not in caplog.text, "keys of other issuers are asked for"
    TeamsBots(api.parts.database).switch(api.admin, is_active=False)
    assert send("Leave?").status_code == 401
    assert not connector.calls
    assert api.outcomes() == []
    assert "Leave?" not in caplog.text


def test_what_there_was_no_room_for_is_answered_when_teams_sends_it_again(
    api: Api, connector: Connector, send: Send, monkeypatch: pytest.MonkeyPatch
) -> None:
    api.ready_document()
    with monkeypatch.context() as full:
        full.setattr(conversations, "MOST_AT_ONCE", 0)
        assert send("How many days of annual leave do I have?", id="late").status_code == 429
    assert send("How many days of annual leave do I have?", id="late").status_code == 202
    assert "**Sources**" in connector.said(2)[-1][2]["text"]


def test_a_thread_is_a_conversation_and_thumbs_are_feedback(api: Api, connector: Connector, send: Send) -> None:
    api.ready_document()
    where = {"conversation": IN_CHANNEL, "channelData": {"tenant": {"id": OURS}, "channel": {"id": "19:c"}}}
    assert send("<at>HR</at> How many days of annual leave do I have?", **where).status_code == 202
    (_, path, waiting), (method, updated, answer) = connector.said(2)
    assert (method, waiting["text"]) == ("PUT", WAITING)
    assert path == f"/emea/v3/conversations/{IN_CHANNEL['id']}/activities"
    assert updated == f"{path}/said-0"
    assert "**Sources**" in answer["text"]
    assert f"({api.parts.settings.own_address}/api/documents/" in answer["text"]
    same = {"id": "once", "conversation": IN_CHANNEL}
    for _ in range(3):
        assert send("And next year?", **same).status_code == 202
        route._current.clear()  # the next one reaches another process
    connector.said(2)
    (conversation,) = api.parts.conversations.list(api.admin)
    assert len(api.parts.conversations.messages(api.admin, conversation.id)) == 4, "an activity was answered twice"

    actions = answer["attachments"][0]["content"]["actions"]
    assert [action["title"] for action in actions] == ["👍 Helpful", "👎 Not helpful"]
    send("", value=actions[1]["data"], **where)
    assert connector.said(1)[0][2]["text"] == "Thank you."
    api.session(Role.EMPLOYEE)
    for value in (actions[0]["data"], {"rating": 1, "message": "nonsense"}, {"rating": 1}):
        send("", "29:one", value=value, **where)
        assert "Only the person who asked" in connector.said(1)[0][2]["text"]
    with api.parts.database.transaction("demo") as connection:
        assert connection.execute("SELECT rating, account_id FROM feedback").fetchall() == [(0, api.admin.account_id)]

    # A chat has no threads: it goes on until somebody says so, or nothing was asked for long.
    for number, text in enumerate(["How many days of leave?", "And then?", "new", "How many days of leave?"], start=1):
        send(text)
        connector.said(1 if text == "new" else 2)
        assert len(api.parts.conversations.list(api.admin)) == (2 if number < 4 else 3), number
    with api.parts.database.transaction("demo") as connection:
        connection.execute("UPDATE conversations SET updated_at = updated_at - interval '9 hours'")
    send("How many days of leave?")
    connector.said(2)
    assert len(api.parts.conversations.list(api.admin)) == 4


def test_a_long_answer_is_whole_and_what_to_know_of_it_is_said_in_the_readers_language(
    api: Api, connector: Connector, send: Send, provider_standin: ProviderStandin
) -> None:
    api.ready_document()
    text = "Everyone has 25 days of paid leave a year [1]. Each of them gets 3 company cars [1].\n\n"
    text += " ".join(f"Paragraph{number} of paid leave {number * 7919}?" for number in range(150))
    provider_standin.reply(text, finish_reason="length")
    send("How many days of annual leave do I have?", locale="de-DE")
    said = connector.said(2)[1][2]["text"]
    (live,) = api.parts.answers._answers.values()
    assert conversations._plain(live.text) in said
    assert "*Die Antwort hat ihre Längengrenze erreicht und endet hier.*" in said
    assert "*Prüfen Sie diesen Satz, seine Quelle sagt das nicht: „Each of them gets 3 company cars“*" in said


def test_what_a_person_may_ask_is_limited_in_teams_too(api: Api, connector: Connector, send: Send) -> None:
    most = api.parts.settings.questions_per_minute
    for _ in range(most):
        api.parts.limits.count_question(api.admin)
    send("How many days of annual leave do I have?")
    assert f"You may ask {most} questions a minute" in connector.said(1)[0][2]["text"]
    assert api.outcomes() == []


def test_teams_is_told_how_answers_ended_before_the_application_does(
    api: Api, connector: Connector, send: Send, provider_standin: ProviderStandin
) -> None:
    api.ready_document()
    provider_standin.reply("Everyone has 25 days of paid leave a year [1].")
    provider_standin.hang_stream_after(4)
    send("How many days of annual leave do I have?")
    connector.said(1)
    api.parts.answers.stop_all()
    ((method, _, said),) = connector.said(1)
    assert method == "PUT"
    assert "was shut down while this answer was being written" in said["text"]


def test_rights_hold_in_chats_and_channels(api: Api, connector: Connector, send: Send) -> None:
    api.ready_document()
    api.session(Role.EMPLOYEE)
    for person in ("29:nobody", "29:other", "29:guest", "29:invited"):
        send("How much leave?", person)
        ((_, _, said),) = connector.said(1)
        assert "do not know your e-mail address" in said["text"], person
    shared = {"tenant": {"id": OURS}, "channel": {"id": "19:c", "type": "shared"}}
    send("Leave?", conversation=IN_CHANNEL, channelData=shared)
    assert "shared with other companies" in connector.said(1)[0][2]["text"]
    send("How many days of leave?", "29:one", conversation=IN_GROUP)
    assert connector.said(2)[1][0] == "PUT"
    for other in ("29:other", "29:guest"):
        connector.people = ["29:admin", other]
        send("How many days of leave?", conversation=IN_GROUP)
        assert "shared with other companies" in connector.said(1)[0][2]["text"]
    api.parts.documents.change_collection(api.admin, api.collection.id, groups=["Board"])
    send("How much leave?", conversation=IN_CHANNEL)
    assert "Only some groups may read" in connector.said(1)[0][2]["text"]
    send("How many days of annual leave do I have?")
    assert connector.said(2)[1][0] == "PUT"
    send("How many days of annual leave do I have?", "29:one")
    assert "no collection" in connector.said(1)[0][2]["text"]
    added = {"type": "conversationUpdate", "membersAdded": [{"id": f"28:{APP}"}]}
    send("", locale="de-DE", **added)
    assert connector.said(1)[0][2]["text"]
    assert api.outcomes().count(None) == 0
    assert conversations._plain("<at>all</at> [Here](https://evil.example)") == (
        "&lt;at&gt;all&lt;/at&gt; [Here] (https://evil.example)"
    )


def test_a_bot_is_kept_with_its_secret_encrypted(api: Api, connector: Connector, database: Database, bot: None) -> None:
    bots: TeamsBots = TeamsBots(api.parts.database)
    kept = bots.get(api.admin)
    assert kept is not None
    assert (kept.app_id, kept.directories) == (APP, [OURS])
    assert SECRET.encode() not in kept.secret
    assert "hunter2" not in repr(kept)
    assert bots.secret_of(kept) == SECRET
    again = bots.keep(api.admin, APP, [OURS, THEIRS], "", api.collection.id)
    assert bots.secret_of(again) == SECRET, "an empty secret leaves the one that is kept"
    for app_id, directories, secret in [
        ("nonsense", [OURS], SECRET), (APP, ["contoso.com"], SECRET), (APP, [], SECRET), (APP, [OURS], "a b"),
        (APP, [OURS], "a\nb"), (APP, [OURS], APP), (APP.replace("1", "2"), [OURS], ""),
    ]:  # fmt: skip
        with pytest.raises(InvalidInput):
            bots.keep(api.admin, app_id, directories, secret)
    employee = Identity(
        account_id=api.admin.account_id, tenant_id="demo", email="e@example.com", name="", role=Role.EMPLOYEE
    )
    refused: list[Callable[[], object]] = [
        lambda: bots.keep(employee, APP, [OURS], SECRET),
        lambda: bots.remove(employee),
        lambda: bots.switch(employee, is_active=True),
        lambda: bots.get(employee),
    ]
    for act in refused:
        with pytest.raises(NotAllowed):
            act()

    package = zipfile.ZipFile(io.BytesIO(teams_package(again, "https://hr.example.com")))
    manifest = json.loads(package.read("manifest.json"))
    assert manifest["bots"][0]["botId"] == APP == manifest["id"]
    assert manifest["validDomains"] == ["hr.example.com"]
    sizes = {icon: Image.open(io.BytesIO(package.read(file))).size for icon, file in manifest["icons"].items()}
    assert sizes == {"color": (192, 192), "outline": (32, 32)}
    removed = bots.remove(api.admin)
    assert bots.get(api.admin) is None
    assert SECRET not in removed
    bots.put_back(api.admin, removed)
    back = bots.get(api.admin)
    assert back == again
    assert bots.secret_of(back) == SECRET
