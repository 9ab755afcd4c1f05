"""Every kind of paid call meets every fault, once and always: the ledger holds what the provider counted.

What the provider counted and said is a row with exactly that. What it may have counted and did not say is a row marked
as an estimate. Each row is on the document, the re-embedding or the question that it was made for.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from psycopg.rows import dict_row

from rag.errors import RagError
from rag.ingestion.documents import DocumentLibrary
from rag.ingestion.loaders.sandbox import Sandbox
from rag.ingestion.sources.import_vectors import VectorImport
from rag.profile import Profile
from rag.profiles import HR
from rag.providers import openai_compatible, openai_embedder, retry
from rag.services import Services, assemble
from rag.settings import Settings
from rag.storage.database import Database
from rag.storage.files import FileStore
from rag.types import ChatMessage, Collection, Identity, Question
from tests import hostile
from tests.ingestion.uploads import until
from tests.standin import ProviderStandin

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
            self.admin, collection, "rules.md", content, chunking_method=method, generate_metadata=tags
        )
        self.parts.pipeline.run("demo", added.id)
        return self.library.confirm(self.admin, added.id)

    def ready(self, model: str = BUILTIN, content: bytes = TEXT) -> Collection:
        """A collection with a document that answers."""
        collection = self.collection(model)
        self.parts.pipeline.run("demo", self.document(collection, content=content).id)
        return collection

    def question(self, collection: Collection, text: str = "How many days of vacation leave?") -> Question:
        return Question(text=text, identity=self.admin, collection=collection)

    # The calls. Each prepares what it needs and returns what makes the call.

    def embedding(self) -> Callable[[], object]:
        document = self.document(self.collection(MODEL))
        return lambda: self.parts.pipeline.run("demo", document.id)

    def cutting(self) -> Callable[[], object]:
        document = self.document(self.collection(MODEL), method="semantic")
        return lambda: self.parts.pipeline.run("demo", document.id)

    def tags(self) -> Callable[[], object]:
        self.standin.reply(TAGS)
        document = self.document(self.collection(), tags=True)
        return lambda: self.parts.pipeline.run("demo", document.id)

    def chunk_tags(self) -> Callable[[], object]:
        self.standin.reply(lambda messages: json.dumps({"summary": "s", "topics": [], "questions": [], "keywords": []}))
        document = self.document(self.collection(chunk_tags=("topic",)), tags=True)
        return lambda: self.parts.pipeline.run("demo", document.id)

    def recognition(self) -> Callable[[], object]:
        added = self.library.upload(
            self.admin, self.collection(), "scan.pdf", hostile.image_only(), generate_metadata=False
        )
        self.parts.pipeline.run("demo", added.id)
        self.library.confirm(self.admin, added.id)
        return lambda: self.parts.pipeline.run("demo", added.id)

    def reembedding(self) -> Callable[[], object]:
        moves = self.library.reembeddings
        move = moves.confirm(self.admin, moves.estimate(self.admin, self.ready().id, MODEL).id, enqueue=False)
        return lambda: self.parts.pipeline.reembedding.run("demo", move.id)

    def importing(self) -> Callable[[], object]:
        path = self.folder / "export.jsonl"
        metadata = {"text": "Rule 1: everybody gets 3 days of zebra leave.", "source": "a.pdf", "chunk_index": 0}
        path.write_text(json.dumps({"id": "a#0", "values": [0.1] * 8, "metadata": metadata}) + "\n")
        parts = self.parts
        work = VectorImport(parts.database, parts.files, parts.providers, self.collection(MODEL))
        (passages,) = work.plan([path]).documents
        (document_id,) = work.store(passages).documents
        return lambda: parts.pipeline.run("demo", document_id)

    def calibration(self) -> Callable[[], object]:
        collection = self.ready(MODEL, LONG_TEXT)
        return lambda: self.parts.calibrations.measure(collection)

    def search(self, model: str = BUILTIN, text: str = "How many days of vacation leave?", **fields: Any) -> Any:
        question, profile = self.question(self.ready(model), text), PLAIN.changed(**fields)
        return lambda: self.parts.searches.search(question, profile=profile)

    def question_embedding(self) -> Any:
        return self.search(MODEL)

    def translation(self) -> Callable[[], object]:
        # Each try of this process asks something else: a translation is remembered.
        self.standin.reply("How many days of vacation leave?")
        collection = self.ready()
        profile = PLAIN.changed(translate_queries=True)
        return lambda: self.parts.searches.search(
            self.question(collection, f"Hoeveel vakantiedagen heeft iedereen bij ons per jaar in {next(TRIES)}?"),
            profile=profile,
            language="nl",
        )

    def rephrasing(self) -> Any:
        return self.search(expand_question=True)

    def reranking(self) -> Any:
        return self.search(reranking=True)

    def answer(self, profile: Profile = PLAIN, history: tuple[ChatMessage, ...] = ()) -> Callable[[], object]:
        question = replace(self.question(self.ready()), history=history)
        return lambda: list(self.parts.answerer.answer(question, profile=profile, cancel=Event()))

    def rewriting(self) -> Callable[[], object]:
        said = (
            ChatMessage(role="user", content="And parental leave?"),
            ChatMessage(role="assistant", content="12 days."),
        )
        return self.answer(history=said)

    def recognising(self) -> Callable[[], object]:
        question = self.question(self.ready(), "What is the gist of our rules?")
        return lambda: list(self.parts.answerer.answer(question, profile=PLAIN, cancel=Event()))

    def follow_ups(self) -> Callable[[], object]:
        return self.answer(PLAIN.changed(follow_ups=3))


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


@pytest.fixture
def desk(
    database: Database,
    settings: Settings,
    provider_standin: Standin,
    tmp_path: Path,
    admin: Identity,
    sandbox: Sandbox,
    collection: Collection,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Desk]:
    # How long is waited between two tries is not what is tried here.
    monkeypatch.setattr(retry, "FIRST_WAIT_SECONDS", 0.001)
    monkeypatch.setattr(openai_embedder, "FIRST_WAIT_SECONDS", 0.001)
    monkeypatch.setattr(openai_compatible, "RETRY_AFTER_SECONDS", 0.001)
    url = provider_standin.cohere_url
    keyed = replace(
        settings, openai_api_key="k", openai_base_url=provider_standin.openai_url, cohere_api_key="k",
        cohere_base_url=url, upstage_api_key="k", upstage_base_url=url,
    )  # fmt: skip
    parts = assemble(keyed, database)
    # The sandbox of all tests: starting one takes longer than all the calls.
    parts.pipeline.close()
    parts = replace(
        parts,
        pipeline=type(parts.pipeline)(
            database, FileStore(keyed.data_dir / "files"), parts.providers, parts.ledger, keyed, sandbox=sandbox
        ),
    )
    yield Desk(parts, provider_standin, tmp_path, admin, sandbox)
    parts.providers.close()


@pytest.mark.parametrize("times", [pytest.param(1, id="once"), pytest.param(10_000, id="always")])
@pytest.mark.parametrize(
    ("call", "fault"), [pytest.param(c, f, id=f"{c}-{f.replace(' ', '_')}") for c in CALLS for f in faults_of(c)]
)
def test_what_was_billed_is_in_the_ledger_whatever_became_of_it(
    call: str, fault: str, times: int, desk: Desk, database: Database, provider_standin: Standin
) -> None:
    make = getattr(desk, call)()
    made = provider_standin.calls[CALLS[call]]
    faults_of(call)[fault](provider_standin, CALLS[call], times)
    with suppress(RagError):  # the ledger is what counts
        make()
    assert provider_standin.calls[CALLS[call]] > made, "nothing was called"
    with database.transaction("demo") as connection, connection.cursor(row_factory=dict_row) as cursor:
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
    desk: Desk, provider_standin: ProviderStandin, database: Database
) -> None:
    def ledger() -> list[tuple[bool, bool]]:
        with database.transaction("demo") as connection:
            rows = connection.execute("SELECT is_estimated, input_tokens > 0 FROM cost_ledger ORDER BY created_at")
            return rows.fetchall()

    measure = desk.calibration()
    before = ledger()
    met = provider_standin.meet("embeddings", 2)
    work = Thread(target=measure)
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
