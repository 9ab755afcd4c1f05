"""Every kind of paid call meets every fault, once and always: the ledger holds what the provider counted.

What the provider counted and said is a row with exactly that. What it may have counted and did not say is a row marked
as an estimate. Each row is on the document, the re-embedding or the question that it was made for.
"""

from __future__ import annotations

import itertools
import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event, Thread
from typing import Any
from uuid import UUID

import pytest
from psycopg.conninfo import make_conninfo
from psycopg.rows import dict_row

from rag.errors import RagError
from rag.ingestion.loaders.sandbox import Sandbox
from rag.library.documents import DocumentLibrary
from rag.profiles import HR
from rag.profiles.profile import Profile
from rag.providers import openai_compatible, openai_connection, retry
from rag.services import Services, assemble
from rag.settings import Settings
from rag.storage.database import Database
from rag.storage.files import FileStore
from rag.types import ChatMessage, Collection, Identity, Question, UploadOptions
from tests import hostile
from tests.conftest import Copies
from tests.ingestion.uploads import until
from tests.standins.plain_server import PlainServer
from tests.standins.providers import ProviderStandin

MODEL = "openai/text-embedding-3-small@256"
OTHER = "openai/text-embedding-3-large@256"
BUILTIN = "builtin/lexical@1536"
TOPICS = ("vacation", "parental", "study", "moving", "wedding", "sick", "care", "jury", "sport")
TEXT = "\n\n".join(
    f"{n}. The {topic} rule\n\nEvery employee has {n} days of {topic} leave. It is asked for in writing, two weeks "
    f"before. The {topic} office decides about it within a week and says why."
    for n, topic in enumerate(
        ("vacation", "parental", "study", "moving", "wedding", "sick", "care", "jury", "sport"), 11
    )
).encode()
#: Ten passages that are long enough to measure a collection by.
LONG_TEXT = "\n\n".join(
    " ".join(
        f"Rule {n}.{line} says how {topic} leave is asked for in office {line * n}, and who decides about it there."
        for line in range(9)
    )
    for n, topic in enumerate((*TOPICS, "training"), 11)
).encode()
TAGS = json.dumps({"summary": "Leave rules.", "topics": ["Leave"], "questions": ["How many days?"]})
PLAIN = HR.changed(reranking=False, translate_queries=False, follow_ups=0)
Standin = ProviderStandin

TRIES = itertools.count(1)


class Desk:
    """The product over the stand-in, and one way to make each kind of paid call. What fails is no matter here."""

    def __init__(self, parts: Services, standin: Standin, folder: Path, admin: Identity, sandbox: Sandbox) -> None:
        self.parts, self.standin, self.folder, self.admin, self.sandbox = parts, standin, folder, admin, sandbox
        self.library = DocumentLibrary(
            parts.database, parts.files, parts.providers, parts.settings, parts.queue, sandbox=sandbox
        )

    def collection(self, model: str = BUILTIN, **overrides: Any) -> Collection:
        made = self.library.ensure_collection("demo", f"Rules by {model}", "hr", model, "en")
        return self.library.override_collection(self.admin, made.id, overrides) if overrides else made

    def document(
        self, collection: Collection, *, tags: bool = False, method: Any = "smart", content: bytes = TEXT
    ) -> Any:
        """A document that waits for its yes."""
        added = self.library.upload(
            self.admin, collection, "rules.md", content, UploadOptions(chunking_method=method, generate_metadata=tags)
        )
        self.run(added.id)
        return self.library.confirm(self.admin, added.id)

    def run(self, document_id: UUID) -> None:
        self.parts.pipeline.run("demo", document_id)

    def ready(self, model: str = BUILTIN, content: bytes = TEXT) -> Collection:
        """A collection with a document that answers."""
        collection = self.collection(model)
        self.run(self.document(collection, content=content).id)
        return collection

    def question(self, collection: Collection, text: str = "How many days of vacation leave?") -> Question:
        return Question(text=text, identity=self.admin, collection=collection)

    # The calls. Each prepares what it needs and returns what makes the call at a desk with the same things on it.

    def embedding(self) -> Call:
        document = self.document(self.collection(MODEL))
        return lambda desk: desk.run(document.id)

    def cutting(self) -> Call:
        document = self.document(self.collection(MODEL), method="semantic")
        return lambda desk: desk.run(document.id)

    def tags(self) -> Call:
        return self.tagging(self.collection(), TAGS)

    def chunk_tags(self) -> Call:
        tags = json.dumps({"summary": "s", "topics": [], "questions": [], "keywords": []})
        return self.tagging(self.collection(chunk_tags=("topic",)), tags)

    def tagging(self, collection: Collection, reply: str) -> Call:
        document = self.document(collection, tags=True)

        def call(desk: Desk) -> None:
            desk.standin.reply(reply)
            desk.run(document.id)

        return call

    def recognition(self) -> Call:
        added = self.library.upload(
            self.admin, self.collection(), "scan.pdf", hostile.image_only(), UploadOptions(generate_metadata=False)
        )
        self.run(added.id)
        self.library.confirm(self.admin, added.id)
        return lambda desk: desk.run(added.id)

    def reembedding(self) -> Call:
        moves = self.library.reembeddings
        move = moves.confirm(self.admin, moves.estimate(self.admin, self.ready().id, MODEL).id, enqueue=False)
        return lambda desk: desk.parts.pipeline.reembedding.run("demo", move.id)

    def importing(self) -> Call:
        path = self.folder / "export.jsonl"
        metadata = {"text": "Rule 1: everybody gets 3 days of zebra leave.", "source": "a.pdf", "chunk_index": 0}
        path.write_text(json.dumps({"id": "a#0", "values": [0.1] * 8, "metadata": metadata}) + "\n")
        parts = self.parts
        work = pytest.importorskip("rag.integrations.sources.vectors.imports").VectorImport(
            parts.database, parts.files, parts.providers, self.collection(MODEL)
        )
        (passages,) = work.plan([path]).documents
        (document_id,) = work.store(passages).documents
        return lambda desk: desk.run(document_id)

    def calibration(self) -> Call:
        collection = self.ready(MODEL, LONG_TEXT)
        return lambda desk: desk.parts.calibrations.measure(collection)

    def search(self, model: str = BUILTIN, **fields: Any) -> Call:
        question, profile = self.question(self.ready(model)), PLAIN.changed(**fields)
        return lambda desk: desk.parts.searches.search(question, profile=profile)

    def question_embedding(self) -> Call:
        return self.search(MODEL)

    def translation(self) -> Call:
        collection = self.ready()
        profile = PLAIN.changed(translate_queries=True)

        def call(desk: Desk) -> None:
            desk.standin.reply("How many days of vacation leave?")
            # Each try of this process asks something else: a translation is remembered.
            text = f"Hoeveel vakantiedagen heeft iedereen bij ons per jaar in {next(TRIES)}?"
            desk.parts.searches.search(replace(desk.question(collection, text), language="nl"), profile=profile)

        return call

    def rephrasing(self) -> Call:
        return self.search(expand_question=True)

    def reranking(self) -> Call:
        return self.search(reranking=True)

    def answer(self, profile: Profile = PLAIN, history: tuple[ChatMessage, ...] = ()) -> Call:
        question = replace(self.question(self.ready()), history=history)
        return lambda desk: list(desk.parts.answerer.answer(question, profile=profile, cancel=Event()))

    def rewriting(self) -> Call:
        said = (
            ChatMessage(role="user", content="And parental leave?"),
            ChatMessage(role="assistant", content="12 days."),
        )
        return self.answer(history=said)

    def recognising(self) -> Call:
        question = self.question(self.ready(), "What is the gist of our rules?")
        return lambda desk: list(desk.parts.answerer.answer(question, profile=PLAIN, cancel=Event()))

    def follow_ups(self) -> Call:
        return self.answer(PLAIN.changed(follow_ups=3))


Call = Callable[[Desk], object]
EMBEDDING_CALLS = ("embedding", "cutting", "reembedding", "importing", "calibration", "question_embedding")
WHOLE_CHAT_CALLS = ("tags", "chunk_tags", "translation", "rephrasing", "rewriting", "recognising")
STREAMED_CALLS = ("answer", "follow_ups")
CALLS = {
    **dict.fromkeys(EMBEDDING_CALLS, "embeddings"),
    **dict.fromkeys(WHOLE_CHAT_CALLS, "chat"),
    **dict.fromkeys(STREAMED_CALLS, "chat"),
    "recognition": "ocr",
    "reranking": "rerank",
}
Fail = Callable[[Standin, str, int], None]
ANY: dict[str, Fail] = {
    "500": lambda s, endpoint, times: s.fail_next(500, times, endpoint=endpoint),
    "401": lambda s, endpoint, times: s.fail_next(401, times, endpoint=endpoint),
    "402": lambda s, endpoint, times: s.fail_next(402, times, endpoint=endpoint),
    "no credit": lambda s, endpoint, times: s.fail_next(429, times, code="insufficient_quota", endpoint=endpoint),
    "closed": lambda s, endpoint, times: s.close_next(times, endpoint=endpoint),
    "garbage": lambda s, endpoint, times: s.garbage_next(times, endpoint=endpoint),
}
WHOLE: dict[str, Fail] = {
    "closed and billed": lambda s, endpoint, times: s.close_next(times, endpoint=endpoint, is_billed=True),
    "garbage and billed": lambda s, endpoint, times: s.garbage_next(times, endpoint=endpoint, is_billed=True),
    "empty": lambda s, endpoint, times: s.spoil_next("empty", times, endpoint=endpoint),
    "uncounted": lambda s, endpoint, times: s.spoil_next("uncounted", times, endpoint=endpoint),
}
VECTORS: dict[str, Fail] = {
    how: lambda s, endpoint, times, how=how: s.spoil_next(how, times, endpoint=endpoint)  # type: ignore[misc]
    for how in ("dimension", "nan", "missing")
}
TEXTS: dict[str, Fail] = {
    how: lambda s, endpoint, times, how=how: s.spoil_next(how, times, endpoint=endpoint)  # type: ignore[misc]
    for how in ("filter", "half")
}
STREAMS: dict[str, Fail] = {
    "cut at once": lambda s, endpoint, times: s.cut_stream_after(0, times),
    "cut": lambda s, endpoint, times: s.cut_stream_after(2, times, is_billed=True),
    "ends early": lambda s, endpoint, times: s.end_stream_after(1, times),
    "garbage within": lambda s, endpoint, times: s.garbage_next(times, endpoint=endpoint, after=1),
    "error event": lambda s, endpoint, times: s.error_event_after(0, times),
    "no credit event": lambda s, endpoint, times: s.error_event_after(0, times, code="insufficient_quota"),
    "filter": lambda s, endpoint, times: s.refuse("I"),
    "uncounted": lambda s, endpoint, times: setattr(s, "sends_usage", False),
    "empty": lambda s, endpoint, times: s.reply(""),
}


def faults_of(call: str) -> dict[str, Fail]:
    if call in STREAMED_CALLS:
        return ANY | STREAMS
    own = VECTORS if call in EMBEDDING_CALLS else TEXTS if call in WHOLE_CHAT_CALLS else {}
    return ANY | WHOLE | own


@dataclass(frozen=True)
class Prepared:
    """What is stored the moment before a call is made, what was billed by then, and what makes the call."""

    database_name: str
    folder: Path
    admin: Identity
    usages: list[dict[str, Any]]
    answered: dict[str, bytes]
    call: Call


@contextmanager
def desk_at(
    server: PlainServer, database_name: str, settings: Settings, standin: Standin, admin: Identity, sandbox: Sandbox
) -> Iterator[Desk]:
    """A desk over a database and the files in `settings.data_dir`."""
    url = standin.cohere_url
    keyed = replace(
        settings, openai_api_key="k", openai_base_url=standin.openai_url, cohere_api_key="k",
        cohere_base_url=url, upstage_api_key="k", upstage_base_url=url,
    )  # fmt: skip
    database = Database(make_conninfo(server.application, dbname=database_name), server.key)
    database.open()
    parts = assemble(keyed, database)
    # The sandbox of all tests: starting one takes longer than all the calls.
    parts.pipeline.close()
    files = FileStore(keyed.data_dir / "files")
    pipeline = type(parts.pipeline)(database, files, parts.providers, parts.ledger, keyed, sandbox=sandbox)
    parts = replace(parts, pipeline=pipeline)
    yield Desk(parts, standin, keyed.data_dir.parent, admin, sandbox)
    parts.providers.close()
    database.close()


@pytest.fixture(scope="module")
def prepared(copies: Copies) -> Iterator[dict[str, Prepared]]:
    made: dict[str, Prepared] = {}
    yield made
    for each in made.values():
        copies.drop(each.database_name)


@pytest.fixture
def about_to(
    server: PlainServer,
    copies: Copies,
    settings: Settings,
    provider_standin: Standin,
    admin: Identity,
    sandbox: Sandbox,
    prepared: dict[str, Prepared],
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Callable[[str], Desk]]:
    """Returns a desk where everything is ready for a call. It is prepared once, and each test has a copy of it."""
    # How long is waited between two tries is not what is tried here.
    monkeypatch.setattr(retry, "FIRST_WAIT_SECONDS", 0.001)
    monkeypatch.setattr(openai_connection, "FIRST_WAIT_SECONDS", 0.001)
    monkeypatch.setattr(openai_compatible, "RETRY_AFTER_SECONDS", 0.001)

    def prepare(call: str) -> Prepared:
        name, folder = copies.take(), tmp_path_factory.mktemp("prepared")
        its_settings = replace(settings, data_dir=folder / "data")
        with Standin() as standin, desk_at(server, name, its_settings, standin, admin, sandbox) as desk:
            make = getattr(desk, call)()
            return Prepared(name, folder, admin, standin.usages, standin.answered, make)

    with ExitStack() as closing:

        def desk(call: str) -> Desk:
            if call not in prepared:
                prepared[call] = prepare(call)
            ready = prepared[call]
            shutil.copytree(ready.folder / "data", settings.data_dir, dirs_exist_ok=True)
            provider_standin.usages.extend(ready.usages)
            provider_standin.answered.update(ready.answered)
            name = copies.take_of(ready.database_name)
            closing.callback(copies.drop, name)
            return closing.enter_context(desk_at(server, name, settings, provider_standin, ready.admin, sandbox))

        yield desk


@pytest.mark.parametrize("times", [pytest.param(1, id="once"), pytest.param(10_000, id="always")])
@pytest.mark.parametrize(
    ("call", "fault"), [pytest.param(c, f, id=f"{c}-{f.replace(' ', '_')}") for c in CALLS for f in faults_of(c)]
)
def test_what_was_billed_is_in_the_ledger_whatever_became_of_it(
    call: str,
    fault: str,
    times: int,
    about_to: Callable[[str], Desk],
    prepared: dict[str, Prepared],
    provider_standin: Standin,
) -> None:
    desk = about_to(call)
    made = provider_standin.calls[CALLS[call]]
    faults_of(call)[fault](provider_standin, CALLS[call], times)
    with suppress(RagError):  # the ledger is what counts
        prepared[call].call(desk)
    assert provider_standin.calls[CALLS[call]] > made, "nothing was called"
    with desk.parts.database.transaction("demo") as connection, connection.cursor(row_factory=dict_row) as cursor:
        rows = cursor.execute("SELECT * FROM cost_ledger WHERE provider <> 'builtin'").fetchall()
        logs = cursor.execute("SELECT * FROM chat_logs").fetchall()
        documents = cursor.execute("SELECT id, costs FROM documents").fetchall()
        under_way = cursor.execute("SELECT * FROM paid_calls WHERE unsettled > 0").fetchall()
    told = [usage for usage in provider_standin.usages if not any(usage is other for other in provider_standin.untold)]
    counted = [row for row in rows if not row["is_estimated"]]
    for unit in ("input_tokens", "output_tokens", "search_units", "pages"):
        assert sum(row[unit] for row in counted) == sum(usage.get(unit, 0) for usage in told), unit
    assert len(rows) - len(counted) == provider_standin.silent, "a call without a count is an estimate, and only that"
    assert under_way == []
    # Each is where it belongs, and what it belongs to says the same sum.
    assert all(row["document_id"] or row["chat_log_id"] for row in rows) or call == "calibration"
    for log in logs:
        own = [row["cost"] for row in rows if row["chat_log_id"] == log["id"]]
        assert log["cost"] == sum(own)
        assert log["rag_details"]["costs"]["total"] == pytest.approx(float(sum(own)), abs=1e-8)
    for document in documents:
        own = [row["cost"] for row in rows if row["document_id"] == document["id"]]
        assert float(document["costs"].get("total", 0)) == pytest.approx(float(sum(own)), abs=1e-8)


def test_a_calibration_killed_in_a_request_leaves_its_estimate_and_no_second_charge(
    about_to: Callable[[str], Desk], prepared: dict[str, Prepared], provider_standin: ProviderStandin
) -> None:
    desk = about_to("calibration")

    def ledger() -> list[tuple[bool, bool]]:
        with desk.parts.database.transaction("demo") as connection:
            rows = connection.execute("SELECT is_estimated, input_tokens > 0 FROM cost_ledger ORDER BY created_at")
            return rows.fetchall()

    before = ledger()
    met = provider_standin.meet("embeddings", 2)
    work = Thread(target=prepared["calibration"].call, args=[desk])
    work.start()
    try:
        # The request is at the provider: another process takes this one for dead.
        until(lambda: met.n_waiting == 1)
        assert desk.parts.pipeline.settle_abandoned_calls("demo", quiet_seconds=0) == 1
        assert ledger()[len(before) :] == [(True, True)]
    finally:
        provider_standin.meetings.clear()
        met.wait()
        work.join()
    # The request that was settled is not charged again; the one after it is, as the provider counted it.
    assert ledger()[len(before) :] == [(True, True), (False, True)]
