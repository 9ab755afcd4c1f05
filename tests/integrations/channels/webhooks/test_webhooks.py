"""Outgoing webhooks: written with the change itself, signed, sent again, listed, and kept out of networks of ours."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
from standardwebhooks import Webhook as Verifier
from standardwebhooks import WebhookVerificationError

from rag.errors import InvalidInput, NotAllowed, NotFound
from rag.integrations.channels.webhooks import webhooks as sending
from rag.integrations.channels.webhooks.webhooks import Webhooks, webhooks_of
from rag.money.budgets import Budgets
from rag.providers.outward import OutwardTransport
from rag.records.events import emit
from rag.services import Services, program_of
from rag.settings import Settings
from rag.storage.database import Database
from rag.types import Collection, Identity, Role
from tests.api.callers import Api
from tests.api.test_generated_client import generated
from tests.commands.test_commands import Command, command
from tests.commands.test_lean_commands import SLOW, imported
from tests.patience import patient
from tests.standins.local_server import LocalServer, QuietHandler

__all__ = ["command", "generated"]


class Receiver:
    """Takes what is sent, and answers with the next of `answers`, 204 when there is none."""

    def __init__(self) -> None:
        self.heard: list[tuple[dict[str, str], bytes]] = []
        self.answers: list[int] = []
        receiver = self

        class Handler(QuietHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                receiver.heard.append(({name.lower(): value for name, value in self.headers.items()}, body))
                self.send_response(receiver.answers.pop(0) if receiver.answers else 204)
                self.send_header("location", "http://169.254.169.254/")
                self.end_headers()

        self.server = LocalServer(Handler)
        self.host = self.server.host


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    with made.server:
        yield made


@pytest.fixture
def webhooks(database: Database, receiver: Receiver) -> Webhooks:
    hosts = {"RAG_WEBHOOK_HOSTS": receiver.host}
    return Webhooks(database, Settings(integration_variables=hosts, public_url="https://hr.example.com"))


def person(role: Role = Role.ADMIN, tenant_id: str = "demo") -> Identity:
    return Identity(account_id=uuid4(), tenant_id=tenant_id, email="a@demo.example", name="Ada", role=role)


def waiting(database: Database) -> list[UUID]:
    with database.transaction("demo") as connection:
        found = connection.execute(
            "SELECT args ->> 'delivery_id' FROM procrastinate_jobs WHERE queue_name = 'outgoing' ORDER BY id"
        ).fetchall()
        return [UUID(row[0]) for row in found]


def test_changes_are_told_signed_and_only_when_they_are_committed(
    database: Database, webhooks: Webhooks, receiver: Receiver, collection: Collection
) -> None:
    made, secret = webhooks.add(person(), "Intranet", f"http://{receiver.host}/hook")
    _, other_secret = webhooks.add(person(), "Gaps", f"http://{receiver.host}/gaps", ["gap.solved"])
    webhooks.add(person(tenant_id="other"), "Elsewhere", f"http://{receiver.host}/other")
    with database.transaction("demo") as connection:
        row = connection.execute(
            "INSERT INTO documents (tenant_id, collection_id, title, file_name, sha256, status) "
            "VALUES ('demo', %s, 'Leave', 'leave.pdf', 'x', 'processing') RETURNING id",
            [collection.id],
        ).fetchone()
        assert row is not None
    with database.transaction("demo") as connection, connection.transaction(force_rollback=True):
        connection.execute("UPDATE documents SET status = 'failed', message = 'No.' WHERE id = %s", row)
    assert waiting(database) == []
    with database.transaction("demo") as connection:
        connection.execute("UPDATE documents SET status = 'completed' WHERE id = %s", row)
        connection.execute("UPDATE documents SET page_count = 3 WHERE id = %s", row)
        run = connection.execute(
            "INSERT INTO sync_runs (tenant_id, collection_id, kind, status) "
            "VALUES ('demo', %s, 'folder', 'running') RETURNING id",
            [collection.id],
        ).fetchone()
        connection.execute("UPDATE sync_runs SET status = 'failed', message = 'Gone.' WHERE id = %s", run)
        gap = connection.execute(
            "INSERT INTO gaps (tenant_id, collection_id) VALUES ('demo', %s) RETURNING id", [collection.id]
        ).fetchone()
        assert gap is not None
        connection.execute("UPDATE gaps SET status = 'solved', solved_by_id = %s WHERE id = %s", [row[0], gap[0]])
    emit(database, "demo", "evaluation.fell", {"runId": "1"})

    for delivery_id in waiting(database):
        assert webhooks.deliver("demo", delivery_id) is None
        assert webhooks.deliver("demo", delivery_id) is None  # another process has sent it

    receiver.heard.sort(key=lambda heard: json.loads(heard[1])["type"])
    bodies = [json.loads(body) for _, body in receiver.heard]
    assert sorted(body["type"] for body in bodies) == [
        "document.ready", "evaluation.fell", "gap.solved", "gap.solved", "sync.failed"
    ]  # fmt: skip
    assert bodies[0]["data"] == {
        "documentId": str(row[0]), "collectionId": str(collection.id), "title": "Leave", "fileName": "leave.pdf",
        "version": 1, "message": "", "url": f"https://hr.example.com/api/documents/{row[0]}/file#page=1",
    }  # fmt: skip
    headers, body = receiver.heard[0]
    assert Verifier(secret).verify(body, headers)["type"] == "document.ready"
    with pytest.raises(WebhookVerificationError):
        Verifier(other_secret).verify(body, headers)
    with pytest.raises(WebhookVerificationError):
        Verifier(secret).verify(body.replace(b"Leave", b"Enter"), headers)
    told = webhooks.deliveries(person(), made.id)
    assert {(item.status, item.attempts, item.answer_status, item.answer) for item in told} == {
        ("delivered", 1, 204, "Taken.")
    }
    with database.transaction("demo") as connection:
        stored = connection.execute("SELECT secret FROM webhooks WHERE id = %s", [made.id]).fetchone()
    assert stored is not None
    assert secret.encode() not in bytes(stored[0])
    assert secret not in repr(webhooks.list(person()))


def test_a_delivery_is_sent_again_until_it_is_taken_or_its_address_is_gone(
    database: Database, webhooks: Webhooks, receiver: Receiver
) -> None:
    made, secret = webhooks.add(person(), "Intranet", f"http://{receiver.host}/hook")
    webhooks.test(person(), made.id)
    (delivery,) = waiting(database)
    receiver.answers = [500, 302, 429]
    assert [webhooks.deliver("demo", delivery) for _ in range(4)] == [5.0, 300.0, 1800.0, None]
    ids = [headers["webhook-id"] for headers, _ in receiver.heard]
    assert len(set(ids)) == 1
    assert [Verifier(secret).verify(body, headers)["type"] for headers, body in receiver.heard] == ["test"] * 4
    assert len(receiver.heard) == 4, "a redirect was followed"

    webhooks.deliver_again(person(), delivery)
    receiver.answers = [500] * 7 + [500]
    waits = [webhooks.deliver("demo", delivery) for _ in range(8)]
    assert waits[-1] is None
    assert all(waits[:-1])
    (told,) = webhooks.deliveries(person())
    assert (told.status, told.attempts, told.answer) == ("failed", 8, "It answered 500 Internal Server Error.")

    webhooks.deliver_again(person(), delivery)
    receiver.answers = [410]
    assert webhooks.deliver("demo", delivery) is None
    assert [found.is_active for found in webhooks.list(person())] == [False]
    with pytest.raises(InvalidInput, match="off"):
        webhooks.test(person(), made.id)
    assert emit(database, "demo", "gap.solved", {}) == 0
    receiver.server.shutdown()
    receiver.server.server_close()
    webhooks.switch(person(), made.id, is_active=True)
    webhooks.test(person(), made.id)
    assert webhooks.deliver("demo", waiting(database)[-1]) == 5.0
    assert "could not be reached" in webhooks.deliveries(person())[0].answer


def test_a_removed_webhook_is_put_back_with_its_secret_and_what_it_was_told(
    database: Database, webhooks: Webhooks, receiver: Receiver
) -> None:
    made, secret = webhooks.add(person(), "Intranet", f"http://{receiver.host}/hook", ["gap.solved"])
    webhooks.test(person(), made.id)
    (delivery,) = waiting(database)
    webhooks.deliver("demo", delivery)
    before, told = webhooks.list(person()), webhooks.deliveries(person())
    removed = webhooks.remove(person(), made.id)
    assert (webhooks.list(person()), webhooks.deliveries(person())) == ([], [])
    assert emit(database, "demo", "gap.solved", {}) == 0
    assert secret not in removed
    with pytest.raises(NotAllowed):
        webhooks.put_back(person(Role.MANAGER), removed)
    webhooks.put_back(person(), removed)
    assert (webhooks.list(person()), webhooks.deliveries(person())) == (before, told)
    with pytest.raises(InvalidInput, match="cannot be restored"):
        webhooks.put_back(person(), removed)
    assert emit(database, "demo", "gap.solved", {}) == 1
    webhooks.deliver("demo", waiting(database)[-1])
    headers, body = receiver.heard[-1]
    assert Verifier(secret).verify(body, headers)["type"] == "gap.solved"


def test_an_address_that_the_settings_name_no_longer_is_not_reached(
    database: Database, webhooks: Webhooks, receiver: Receiver
) -> None:
    made, _ = webhooks.add(person(), "Intranet", f"http://{receiver.host}/hook")
    webhooks.test(person(), made.id)
    (delivery,) = waiting(database)
    later = Webhooks(database, Settings())
    later.deliver("demo", delivery)
    assert receiver.heard == []
    assert later.deliveries(person())[0].answer == "The address has to begin with https://."


def test_no_address_leads_into_a_network_of_ours(database: Database, receiver: Receiver) -> None:
    asked: list[str] = []

    def resolve(host: str) -> list[str]:
        asked.append(host)
        return ["10.0.0.7"] if host.startswith("inner") else ["93.184.215.14"]

    reached: list[httpx.URL] = []

    def answer(request: httpx.Request) -> httpx.Response:
        reached.append(request.url)
        return httpx.Response(204)

    webhooks = Webhooks(
        database, Settings(), transport=OutwardTransport(resolve=resolve, transport=httpx.MockTransport(answer))
    )
    for address in (
        "http://example.com/", "https://localhost/", "https://127.0.0.1/", "https://[::1]/", "https://2130706433/",
        "https://0x7f.1/", "https://10.0.0.7/", "https://postgres/", "https://a:b@example.com/", "file:///etc/passwd",
        "https://example.com:port/", "not an address", "", f"http://{receiver.host}/", "https://exämple.com/",
    ):  # fmt: skip
        with pytest.raises(InvalidInput):
            webhooks.add(person(), "Bad", address)
    made, _ = webhooks.add(person(), "Inner", "https://inner.example.com/")
    webhooks.add(person(), "Outer", "https://outer.example.com/")
    assert emit(database, "demo", "gap.solved", {}) == 2
    for delivery in waiting(database):
        webhooks.deliver("demo", delivery)
    assert [url.host for url in reached] == ["93.184.215.14"]
    assert webhooks.deliveries(person(), made.id)[0].answer == "inner.example.com leads into a private network."
    for role in (Role.EMPLOYEE, Role.MANAGER):
        with pytest.raises(NotAllowed):
            webhooks.list(person(role))
    with pytest.raises(NotFound):
        webhooks.get(person(tenant_id="other"), made.id)
    for name, events in (("", []), ("x" * 81, []), ("Name", ["document.read"])):
        with pytest.raises(InvalidInput):
            webhooks.add(person(), name, "https://example.com/", events)
    with pytest.raises(InvalidInput):
        emit(database, "demo", "anything", {})


def test_a_budget_that_is_spent_is_told_once_a_month_for_each_amount(
    database: Database, webhooks: Webhooks, receiver: Receiver
) -> None:
    webhooks.add(person(), "Money", f"http://{receiver.host}/", ["budget.reached"])
    budgets = Budgets(database)
    budgets.set(person(), "company", "5")
    assert budgets.spent_for(person()) is None
    spend(database, Decimal("5.5"))
    for _ in range(3):
        assert budgets.spent_for(person()) is not None
    assert len(waiting(database)) == 1
    budgets.set(person(), "company", "6")
    assert budgets.spent_for(person()) is None
    spend(database, Decimal("1"))
    assert budgets.spent_for(person()) is not None
    first, second = (webhooks.deliveries(person())[place].data for place in (1, 0))
    assert (first["scope"], Decimal(first["amount"]), first["month"]) == (
        "company", Decimal(5), f"{datetime.now(UTC):%Y-%m}"
    )  # fmt: skip
    assert Decimal(second["amount"]) == 6


def spend(database: Database, amount: Decimal) -> None:
    with database.transaction("demo") as connection:
        connection.execute(
            "INSERT INTO cost_ledger (tenant_id, operation, provider, model, cost) "
            "VALUES ('demo', 'chat', 'openai', 'gpt-4o', %s)",
            [amount],
        )


def test_over_the_api_and_through_the_queue(
    api: Api, parts: Services, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sending, "RETRY_SECONDS", (0.0,))
    object.__setattr__(parts.settings, "integration_variables", {"RAG_WEBHOOK_HOSTS": receiver.host})
    client = api.client(api.key("admin"))
    made = client.post("/api/webhooks", json={"name": "Intranet", "address": f"http://{receiver.host}/"})
    assert made.status_code == 201
    secret, where = made.json()["secret"], f"/api/webhooks/{made.json()['id']}"
    assert "secret" not in client.get("/api/webhooks").text
    assert client.post("/api/webhooks", json={"name": "x", "address": "https://10.0.0.1/"}).status_code == 422
    assert api.client(api.key("chat")).get("/api/webhooks").status_code == 403
    receiver.answers = [503]
    parts.queue.start_worker()
    try:
        assert client.post(f"{where}/test").status_code == 202
        _until(lambda: len(receiver.heard) == 2)
        _until(lambda: client.get(f"{where}/deliveries").json()["deliveries"][0]["status"] == "delivered")
    finally:
        parts.queue.stop_worker()
    headers, body = receiver.heard[1]
    assert Verifier(secret).verify(body, headers)["data"] == {"message": "This is a test."}
    (told,) = client.get(f"{where}/deliveries").json()["deliveries"]
    assert (told["attempts"], told["answerStatus"]) == (2, 204)
    assert client.post(f"/api/webhooks/deliveries/{told['id']}/again").status_code == 202
    assert client.patch(where, json={"isActive": False}).json()["isActive"] is False
    assert client.delete(where).status_code == 204
    assert client.get(f"{where}/deliveries").status_code == 404


def test_ids_of_another_company_lead_to_nothing(parts: Services) -> None:
    webhooks, demo, stranger = webhooks_of(parts), program_of("demo"), program_of("other")
    made, _ = webhooks.add(demo, "Intranet", "https://hooks.example.com/hr")
    before = webhooks.list(demo)
    acts: tuple[Callable[[], object], ...] = (
        lambda: webhooks.get(stranger, made.id),
        lambda: webhooks.switch(stranger, made.id, is_active=False),
        lambda: webhooks.remove(stranger, made.id),
        lambda: webhooks.test(stranger, made.id),
    )
    for act in acts:
        with pytest.raises((NotFound, InvalidInput)):
            act()
    with pytest.raises(NotAllowed):
        webhooks.remove(replace(demo, role=Role.EMPLOYEE), made.id)
    assert webhooks.list(demo) == before


def test_a_generated_client_adds_one(api: Api, generated: Any) -> None:
    with generated("client").AuthenticatedClient(base_url=api.url, token=api.key()) as caller:
        made = generated("api.webhooks.add_webhook").sync(
            client=caller, body=generated("models").NewWebhook(name="Intranet", address="https://example.com/hook")
        )
    assert made.secret.startswith("whsec_")


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("webhook list", "There is no webhook yet. Add one: python -m rag webhook add NAME ADDRESS"),
        ("webhook deliveries", "Nothing has been delivered yet. Send a test: python -m rag webhook test WEBHOOK"),
    ],
)
def test_an_empty_list_says_so(command: Command, line: str, sentence: str) -> None:
    shown = command(*line.split(), "--tenant", "demo")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout.endswith(f"{sentence}\n")


def test_the_command_imports_no_sdk(database: Database, owner_conninfo: str, tmp_path: Path) -> None:
    found = imported(
        "webhook", "list",
        DATABASE_URL=database.conninfo, MIGRATION_DATABASE_URL=owner_conninfo, RAG_DATA_DIR=str(tmp_path / "data"),
    )  # fmt: skip
    assert found & {*SLOW, "standardwebhooks"} == set()


def _until(is_so: Callable[[], bool], seconds: float = 30.0) -> None:
    end = time.monotonic() + patient(seconds)
    while time.monotonic() < end:
        if is_so():
            return
        time.sleep(0.05)
    raise AssertionError("it did not come about")
