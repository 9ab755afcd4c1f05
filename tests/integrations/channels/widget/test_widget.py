"""A collection on pages of other sites: which sites, how often, for how much, and nothing besides."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from decimal import Decimal
from threading import Barrier
from typing import Any
from uuid import UUID

import httpx
import pytest

from rag.errors import InvalidInput, NotAllowed, NotFound, TooManyRequests
from rag.integrations.channels.widget.widgets import Widget, WidgetChange, widgets_of
from rag.services import program_of
from rag.types import Identity, Role, UploadOptions
from tests import hostile
from tests.api.callers import Api
from tests.security.test_access_matrix import PUBLIC, refusals
from tests.standins.providers import ProviderStandin

SITE = "https://intranet.example.com"


@pytest.fixture
def widget(api: Api) -> Widget:
    api.ready_document()
    made = widgets_of(api.parts.database).add(api.admin, api.collection, "Leave", [SITE + "/"])
    return widgets_of(api.parts.database).change(api.admin, made.id, WidgetChange(is_active=True))


def asked(client: httpx.Client, key: str, question: str, conversation: str | None = None, **headers: str) -> Any:
    body = {"question": question, "conversation": conversation}
    answer = client.post("/widget/ask", params={"key": key}, json=body, headers=headers)
    if not answer.is_success:
        return answer
    return [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: ")]


def test_a_visitor_asks_goes_on_and_rates(api: Api, widget: Widget) -> None:
    visitor = api.client()
    begun, *texts, done = asked(visitor, widget.public_key, "How many days of annual leave do I have?", origin=SITE)
    assert begun["type"] == "begun"
    assert any("<p>" in news["finished"] + news["growing"] for news in texts if news["type"] == "text")
    assert done["outcome"] == "answered"
    assert set(done["sources"][0]) == {"number", "title", "place", "sentence"}
    again = asked(visitor, widget.public_key, "And how do I ask for it?", begun["conversation"])
    assert again[0]["conversation"] == begun["conversation"]
    for rating in (1, 0):
        rated = visitor.post(
            "/widget/rate", params={"key": widget.public_key}, json={"message": begun["message"], "rating": rating}
        )
        assert rated.status_code == 204
    other = widgets_of(api.parts.database).add(api.admin, api.collection, "Other")
    widgets_of(api.parts.database).change(api.admin, other.id, WidgetChange(is_active=True))
    stolen = visitor.post(
        "/widget/rate", params={"key": other.public_key}, json={"message": begun["message"], "rating": 1}
    )
    assert stolen.status_code == 404
    assert asked(visitor, other.public_key, "What was said?", begun["conversation"]).status_code == 404
    with api.parts.database.transaction("demo") as connection:
        ratings = connection.execute("SELECT rating FROM feedback").fetchall()
        logged = connection.execute("SELECT kind, outcome FROM chat_logs ORDER BY created_at").fetchall()
    assert ratings == [(0,)]
    assert [kind for kind, _ in logged] == ["question", "question"]
    assert widgets_of(api.parts.database).get(api.admin, widget.id).asked_today == 2
    assert not [key for key in api.parts.api_keys.list(api.admin) if key.name.startswith("Widget")]


def test_a_visitor_is_told_what_to_know_of_an_answer_in_their_language(
    api: Api, widget: Widget, provider_standin: ProviderStandin
) -> None:
    text = "Everyone has 25 days of paid leave a year [1]. Each of them gets 3 company cars [1]."
    provider_standin.reply(text, finish_reason="length")
    language = {"accept-language": "de"}
    *_, done = asked(api.client(), widget.public_key, "How many days of annual leave do I have?", **language)
    assert done["state"] == "cut"
    assert done["remarks"] == [
        "Die Antwort hat ihre Längengrenze erreicht und endet hier.",
        "Prüfen Sie diesen Satz, seine Quelle sagt das nicht: „Each of them gets 3 company cars“",
    ]


def test_only_its_sites_show_it_and_call(api: Api, widget: Widget) -> None:
    visitor = api.client()
    page = visitor.get("/widget", params={"key": widget.public_key}, headers={"sec-fetch-dest": "iframe"})
    policy = page.headers["content-security-policy"]
    assert policy.endswith(f"frame-ancestors {SITE}")
    assert "unsafe" not in policy
    assert "x-frame-options" not in page.headers
    assert "set-cookie" not in page.headers
    opened = visitor.get("/widget", params={"key": widget.public_key}, headers={"sec-fetch-dest": "document"})
    assert opened.status_code == 404
    assert opened.headers["x-frame-options"] == "DENY"
    changed = widgets_of(api.parts.database).change(
        api.admin, widget.id, WidgetChange(has_page=True, title="<b>Leave</b>", sites=[])
    )
    opened = visitor.get("/widget", params={"key": widget.public_key}, headers={"sec-fetch-dest": "document"})
    assert opened.status_code == 200
    assert "<b>" not in opened.text
    assert opened.headers["content-security-policy"].endswith("frame-ancestors 'none'")
    assert opened.headers["x-frame-options"] == "DENY"
    assert changed.sites == []
    widgets_of(api.parts.database).change(api.admin, widget.id, WidgetChange(sites=[SITE]))
    for name in ("/widget.js", "/widget/app.js", "/widget/app.css"):
        assert visitor.get(name).status_code == 200
    assert "__WORDS__" not in visitor.get("/widget.js").text
    preflight = {"access-control-request-method": "POST", "access-control-request-headers": "content-type"}
    where = {"key": widget.public_key}
    allowed = visitor.options("/widget/ask", params=where, headers={**preflight, "origin": SITE})
    assert allowed.headers["access-control-allow-origin"] == SITE
    assert "access-control-allow-credentials" not in allowed.headers
    for origin in ("https://evil.example.com", "null", f"{SITE}.evil.com", "http://intranet.example.com"):
        refused = visitor.options("/widget/ask", params=where, headers={**preflight, "origin": origin})
        assert refused.status_code == 403
        assert "access-control-allow-origin" not in refused.headers
        assert asked(visitor, widget.public_key, "Leave?", origin=origin).status_code == 403
    assert asked(visitor, widget.public_key, "Leave?", origin=api.url)[-1]["type"] == "done"


def test_a_public_key_opens_nothing_else_and_nothing_when_off(api: Api, widget: Widget) -> None:
    visitor = api.client()
    for path in ("/api/me", "/api/documents", "/v1/models"):
        answer = visitor.get(path, headers={"authorization": f"Bearer {widget.public_key}"})
        assert answer.status_code == 401, path
    bodies: list[Any] = [{"question": ""}, {"question": "x" * 5000}, {"question": "x", "collection": "y"}, [], "x"]
    for body in bodies:
        sent = visitor.post("/widget/ask", params={"key": widget.public_key}, json=body)
        assert sent.status_code == 422
    large = visitor.post("/widget/ask", params={"key": widget.public_key}, content=b"x" * 40_000)
    assert large.status_code == 413
    for key in ("", "pub_" + "A" * 24, widget.public_key[:-1], "rag_" + "A" * 43):
        assert asked(visitor, key, "Leave?").status_code == 404
    api.parts.documents.change_collection(api.admin, api.collection.id, groups=["Board"])
    assert asked(visitor, widget.public_key, "Leave?").status_code == 404
    closed = next(c for c in api.parts.documents.collections(api.admin) if c.id == api.collection.id)
    with pytest.raises(InvalidInput, match="Only some groups may read"):
        widgets_of(api.parts.database).add(api.admin, closed, "Board")
    api.parts.documents.change_collection(api.admin, api.collection.id, groups=[])
    widgets_of(api.parts.database).change(api.admin, widget.id, WidgetChange(is_active=False))
    assert asked(visitor, widget.public_key, "Leave?").status_code == 404


def test_its_limits_are_its_own(api: Api, widget: Widget) -> None:
    visitor = api.client()
    change = widgets_of(api.parts.database).change
    change(api.admin, widget.id, WidgetChange(budget=Decimal("0")))
    spent = asked(visitor, widget.public_key, "How many days of annual leave do I have?")
    assert "assistant's budget" in spent[-1]["notice"]
    with api.parts.database.transaction("demo") as connection:
        models = connection.execute("SELECT model FROM chat_logs").fetchall()
    assert models == [("",)], "a model was called beyond the budget"
    change(api.admin, widget.id, WidgetChange(questions_per_day=1))
    over = asked(visitor, widget.public_key, "Leave?")
    assert over.status_code == 429
    assert "tomorrow" in over.json()["detail"]
    change(api.admin, widget.id, WidgetChange(questions_per_day=100, requests_per_minute=2))
    assert asked(visitor, widget.public_key, "Leave?").status_code == 429
    change(api.admin, widget.id, WidgetChange(requests_per_minute=1000))
    answers = [asked(visitor, widget.public_key, "") for _ in range(9)]
    assert {answer.status_code for answer in answers} == {422}
    last = [asked(visitor, widget.public_key, "Hello") for _ in range(7)][-1]
    assert last.status_code == 429, "one address may ask as much as it likes"
    assert int(last.headers["retry-after"]) > 0


def test_of_questions_at_once_as_many_are_answered_as_the_day_has_left(api: Api, widget: Widget) -> None:
    widgets = widgets_of(api.parts.database)
    widget = widgets.change(api.admin, widget.id, WidgetChange(questions_per_day=3, requests_per_minute=1000))
    together = Barrier(10)

    def ask(number: int) -> bool:
        together.wait()
        try:
            widgets.count_question(widget, f"192.0.2.{number}")
        except TooManyRequests:
            return False
        return True

    with ThreadPoolExecutor(10) as pool:
        assert sum(pool.map(ask, range(10))) == 3
    # More room is there at once, and the next day begins anew.
    widget = widgets.change(api.admin, widget.id, WidgetChange(questions_per_day=4))
    assert ask_again(api, widget) is True
    assert ask_again(api, widget) is False
    with api.parts.database.transaction("demo") as connection:
        connection.execute("UPDATE widgets SET counted_on = counted_on - 1")
    assert ask_again(api, widget) is True


def ask_again(api: Api, widget: Widget) -> bool:
    try:
        widgets_of(api.parts.database).count_question(widget, "192.0.2.200")
    except TooManyRequests:
        return False
    return True


def test_administrators_manage_them_by_the_api(api: Api, widget: Widget) -> None:
    client = api.client(api.key("admin"))
    made = client.post("/api/widgets", json={"name": "Portal", "collection": api.collection.name, "sites": [SITE]})
    assert made.status_code == 201
    shape = made.json()
    assert (shape["isActive"], shape["hasPage"], shape["sites"]) == (False, False, [SITE])
    assert f'data-key="{shape["publicKey"]}"' in shape["script"]
    where = f"/api/widgets/{shape['id']}"
    changed = client.patch(where, json={"isActive": True, "budget": "2.5", "greeting": "Hello"}).json()
    assert (changed["isActive"], changed["budget"], changed["greeting"]) == (True, "2.5", "Hello")
    for body in ({"sites": ["intranet.example.com"]}, {"sites": ["https://a.example/path"]}, {"sites": ["https://*"]},
                 {"sites": ["http://intranet.example.com"]}, {"name": " "}, {"unknown": 1},
                 {"name": "n" * 81}, {"title": "t" * 81}, {"greeting": "g" * 501}, {"requestsPerMinute": 1001},
                 {"questionsPerDay": "5"}, {"questionsPerDay": 100_001}, {"budget": "much"}, {"budget": "1e9"},
                 ):  # fmt: skip
        assert client.patch(where, json=body).status_code == 422, body
    assert client.patch(where, json={"name": None, "title": "Leave"}).json() == {**changed, "title": "Leave"}
    assert api.client(api.key("chat")).get("/api/widgets").status_code == 403
    assert client.get("/api/widgets").json()["total"] == 2
    assert client.delete(where).status_code == 204
    assert client.patch(where, json={"isActive": True}).status_code == 404
    employee = Identity(account_id=UUID(int=1), tenant_id="demo", email="e@x", name="E", role=Role.EMPLOYEE)
    with pytest.raises(NotAllowed):
        widgets_of(api.parts.database).list(employee)


def test_another_company_and_an_employee_change_no_widget(api: Api, widget: Widget) -> None:
    widgets = widgets_of(api.parts.database)
    before = widgets.list(api.admin)
    for who, refusal in ((program_of("other"), NotFound), (replace(api.admin, role=Role.EMPLOYEE), NotAllowed)):
        with pytest.raises(refusal):
            widgets.get(who, widget.id)
        with pytest.raises(refusal):
            widgets.change(who, widget.id, WidgetChange(is_active=True, budget=Decimal(900)))
        with pytest.raises(refusal):
            widgets.remove(who, widget.id)
        with pytest.raises(refusal):
            widgets.add(who, api.collection, "Mine")
    assert widgets.list(api.admin) == before


def test_its_public_key_opens_what_visitors_reach(api: Api, widget: Widget) -> None:
    assert refusals(api.client(widget.public_key), {PUBLIC}, "who are you") == []


def test_a_removed_widget_is_put_back_and_answers_in_the_pages_that_show_it(api: Api, widget: Widget) -> None:
    widgets, visitor = widgets_of(api.parts.database), api.client()
    assert asked(visitor, widget.public_key, "Leave?")[-1]["type"] == "done"
    removed = widgets.remove(api.admin, widget.id)
    assert asked(visitor, widget.public_key, "Leave?").status_code == 404
    widgets.put_back(api.admin, removed)
    back = widgets.get(api.admin, widget.id)
    assert back == replace(widget, asked_today=1, spent=back.spent), "what it was asked and cost counts on"
    assert asked(visitor, widget.public_key, "Leave?")[-1]["type"] == "done"
    # A collection that some groups alone may read by now is opened to no page.
    removed = widgets.remove(api.admin, widget.id)
    api.parts.documents.change_collection(api.admin, api.collection.id, groups=["Mill"])
    with pytest.raises(InvalidInput, match="cannot be restored"):
        widgets.put_back(api.admin, removed)
    assert widgets.list(api.admin) == []


def test_a_portfolio_is_asked_on_a_public_page_and_answers_as_its_person(
    api: Api, provider_standin: ProviderStandin
) -> None:
    parts = api.parts
    made = parts.documents.create_collection(api.admin, "Portfolio", "portfolio")
    made = parts.documents.override_collection(api.admin, made.id, {"persona_name": "Marlowe Quenby"})
    resume = hostile.pdf_of([["Marlowe Quenby", "EXPERIENCE", "I built the AI projects that plan shifts for depots."]])
    added = parts.documents.upload(api.admin, made, "resume.pdf", resume, UploadOptions(generate_metadata=False))
    parts.pipeline.run("demo", added.id)
    parts.documents.confirm(api.admin, added.id)
    parts.pipeline.run("demo", added.id)
    widget = widgets_of(parts.database).add(api.admin, made, "Portfolio")
    visitor, where = api.client(), {"key": widget.public_key}
    page = {"sec-fetch-dest": "document"}
    assert not visitor.get("/widget", params=where, headers=page).is_success, "off by default"
    widgets_of(parts.database).change(
        api.admin, widget.id, WidgetChange(is_active=True, has_page=True, title="Ask Marlowe Quenby")
    )
    assert "Ask Marlowe Quenby" in visitor.get("/widget", params=where, headers=page).text
    provider_standin.requests.clear()
    done = asked(visitor, widget.public_key, "What AI projects have you built?")[-1]
    assert (done["type"], done["outcome"]) == ("done", "answered")
    written = [body for kind, body in provider_standin.requests if kind == "chat"]
    assert written[0]["messages"][0]["content"].startswith("You are Marlowe Quenby")
