"""The product's own way from documents to replies, for benchmarks: on a folder of data, without a key."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from uuid import UUID

from benchmarks.natural import EMBEDDER, TENANT, data_folder
from rag.access.accounts import Accounts
from rag.access.sessions import Sessions
from rag.answering.events import CitationsEvent, DoneEvent, TextEvent
from rag.answering.pipeline import Answerer
from rag.ingestion.pipeline import IngestionPipeline
from rag.library.collections import CollectionLibrary
from rag.money.ledger import Ledger
from rag.profiles import HR
from rag.providers.builtin_embedders import MeaningEmbedder
from rag.providers.registry import Providers
from rag.records.chat_logs import ChatLogs
from rag.retrieval.retriever import Retriever
from rag.settings import Settings
from rag.storage.database import Database, sealing_key
from rag.storage.embedded_postgres import start_server
from rag.storage.files import FileStore
from rag.storage.migrations import migrate
from rag.types import ChatMessage, Citation, Collection, Identity, Outcome, Question

SHOWN = (Outcome.ANSWERED, Outcome.PERHAPS)


@dataclass(frozen=True)
class Reply:
    """A reply as a reader sees it."""

    text: str
    outcome: Outcome
    #: The passages it cites, in order.
    citations: tuple[Citation, ...]

    @property
    def titles(self) -> frozenset[str]:
        """Return the titles of the documents it cites."""
        return frozenset(citation.title for citation in self.citations)


@dataclass(frozen=True)
class Product:
    """The running product."""

    settings: Settings
    database: Database
    providers: Providers
    pipeline: IngestionPipeline
    retriever: Retriever
    answerer: Answerer
    #: The model of meaning; None by words alone.
    meaning: MeaningEmbedder | None

    def collection(self, name: str, language: str = "en") -> Collection:
        """Return an HR collection, made where there is none."""
        with self.database.transaction(TENANT) as connection:
            connection.execute(
                "INSERT INTO tenants (id, name) VALUES (%s, %s) ON CONFLICT DO NOTHING", (TENANT, TENANT)
            )
        shelves = CollectionLibrary(self.database, self.providers)
        return shelves.ensure_collection(TENANT, name, HR.name, EMBEDDER, language=language)

    def asker(self) -> Identity:
        """Return the first administrator, signed in."""
        sessions = Sessions(self.database)
        accounts = Accounts(self.database, sessions, self.settings)
        if link := accounts.first_admin_link():
            accounts.create_first_admin(link, "admin@benchmark.example", "Admin", "paper-and-linen-thread-7")
        found = sessions.find(sessions.start(accounts.sign_in("admin@benchmark.example", "paper-and-linen-thread-7")))
        assert found is not None
        return found


@contextmanager
def product(data: Path | None, embedder: str = "meaning") -> Iterator[Product]:
    """Run the product on a folder of data, a temporary one without; `embedder` is "meaning" or "lexical"."""
    with data_folder(data) as folder:
        settings = Settings(data_dir=folder, tenant=TENANT, builtin_embedder=embedder)
        server = start_server(folder)
        migrate(server.owner)
        database = Database(server.application, sealing_key(server.owner))
        database.open()
        meaning = MeaningEmbedder(gives_way=False) if embedder == "meaning" else None
        providers = Providers(settings, meaning=meaning)
        ledger = Ledger(database)
        pipeline = IngestionPipeline(database, FileStore(folder / "files"), providers, ledger, settings)
        retriever = Retriever(database, providers)
        answerer = Answerer(retriever, providers, ChatLogs(database), settings)
        try:
            yield Product(settings, database, providers, pipeline, retriever, answerer, meaning)
        finally:
            pipeline.close()
            providers.close()
            database.close()
            server.stop()


def ask(
    answerer: Answerer,
    collection: Collection,
    identity: Identity,
    text: str,
    history: tuple[ChatMessage, ...] = (),
    document_ids: tuple[UUID, ...] = (),
) -> Reply:
    """Ask a question as the chat does, of some documents if any are given."""
    question = Question(text=text, identity=identity, collection=collection, history=history, document_ids=document_ids)
    events = list(answerer.answer(question, profile=HR, cancel=Event()))
    (ending,) = [event for event in events if isinstance(event, DoneEvent)]
    return Reply(
        text="".join(event.text for event in events if isinstance(event, TextEvent)),
        outcome=ending.outcome,
        citations=tuple(
            citation
            for event in events
            if isinstance(event, CitationsEvent) and event.kind == "cited"
            for citation in event.citations
        ),
    )
