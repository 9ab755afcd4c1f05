"""The step that says what a document and its chunks are about. What fails leaves {}, is counted, and can be rerun."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from rag.errors import ProviderError
from rag.ingestion.chunk_tags import messages_for_chunk, tag_chunk
from rag.ingestion.chunking import join_pages
from rag.ingestion.paid_calls import PaidCall, PaidCalls
from rag.ingestion.parallel import in_parallel
from rag.ingestion.tagging import messages_for, questions_from_sections, tag_document
from rag.ingestion.work import WAITED_FOR, Bench, Work, progress
from rag.money.ledger import Ledger
from rag.money.price_list import charge
from rag.providers import ChatModel
from rag.providers.calls import estimated_chat
from rag.providers.registry import Providers
from rag.storage.database import queries
from rag.types import Page, Section, Step, Usage

Chunk = tuple[UUID, str]
Tagged = tuple[PaidCall | None, dict[str, Any], Usage | None, str]


class TagStep:
    """Tags what has no tags yet."""

    def __init__(self, bench: Bench, providers: Providers, ledger: Ledger, calls: PaidCalls) -> None:
        self._bench = bench
        self._providers = providers
        self._ledger = ledger
        self._calls = calls

    def run(self, work: Work, pages: Sequence[Page], sections: Sequence[Section]) -> str:
        """Tag the document, and its chunks where its profile says so; a sentence for the admin where it failed.

        Raises those of `WAITED_FOR`: what is tagged by then is kept.
        """
        self._bench.stop_if_asked()
        model = self._providers.translation_model_for(work.profile) if work.document.generate_metadata else None
        said = [self._tag_document(work, pages, sections, model)]
        if model is not None and work.profile.chunk_tags:
            said.append(self._tag_chunks(work, model))
        return " ".join(filter(None, said))

    def _tag_document(
        self, work: Work, pages: Sequence[Page], sections: Sequence[Section], model: ChatModel | None
    ) -> str:
        document = work.document
        if self._bench.database.fetch_value(document.tenant_id, "has_metadata", **work.key):
            return ""
        self._bench.note_progress(work, Step.TAG, 0, 1)
        started = time.monotonic()
        text = join_pages(pages)
        language = document.language or work.collection.language
        questions = questions_from_sections(document.title, sections, text, language)
        metadata: dict[str, Any] = {"suggested_questions": questions}
        call, usage, message = None, None, ""
        if model is not None:
            expected = estimated_chat(model.provider, model.model, messages_for(document.title, text))
            try:
                call, tags, usage, message = self._call(
                    work, [document.title, text], lambda: tag_document(model, document.title, text), expected
                )
            except WAITED_FOR:
                # Questions from headings are worth having meanwhile.
                self._bench.database.execute(
                    document.tenant_id, "note_metadata", **work.key, metadata=Jsonb(metadata), message=None
                )
                raise
            metadata |= tags
            if message or not tags:
                message = f"It could not be tagged: {message or 'the model’s answer was not usable.'}"
        with self._bench.database.transaction(document.tenant_id) as connection:
            connection.execute(queries["note_metadata"], {**work.key, "metadata": Jsonb(metadata), "message": None})
            self._settle(work, connection, call, usage)
            connection.execute(queries["note_progress"], progress(work, Step.TAG, 1, 1, started))
        return message

    def _tag_chunks(self, work: Work, model: ChatModel) -> str:
        document, fields = work.document, work.profile.chunk_tags
        with self._bench.database.transaction(document.tenant_id) as connection:
            untagged: list[Chunk] = connection.execute(queries["untagged_chunks"], work.key).fetchall()
        total, failed, reason = len(untagged), 0, ""
        started = time.monotonic()

        def tag(chunk: Chunk) -> Tagged:
            expected = estimated_chat(model.provider, model.model, messages_for_chunk(chunk[1]))
            return self._call(work, [str(chunk[0]), chunk[1]], lambda: tag_chunk(model, chunk[1], fields), expected)

        made = in_parallel(tag, untagged, threads=self._calls.threads, on_tick=self._bench.stop_if_asked)
        for done, (chunk, (call, tags, usage, problem)) in enumerate(made, 1):
            failed += not tags
            reason = problem or reason
            with self._bench.database.transaction(document.tenant_id) as connection:
                connection.execute(queries["tag_chunk"], {"chunk_id": chunk[0], "tags": Jsonb(tags)})
                self._settle(work, connection, call, usage)
                connection.execute(queries["note_progress"], progress(work, Step.TAG, done, total, started))
            started = time.monotonic()
        metadata = Jsonb({"untagged_chunks": failed})
        self._bench.database.execute(document.tenant_id, "note_metadata", **work.key, metadata=metadata, message=None)
        return f"{failed} of {total} chunks could not be tagged. {reason}".strip() if failed else ""

    def _call(self, work: Work, texts: Sequence[str], function: Any, expected: Usage) -> Tagged:
        """A call with its row; its failure as a sentence, for tags are never worth failing a document.

        A refused key and used-up money are raised: they are waited for.
        """
        document = work.document
        try:
            call, (tags, usage) = self._calls.make(
                document.tenant_id,
                document.id,
                "tagging",
                texts,
                function,
                wait=self._bench.wait,
                expected=expected,
                document_id=document.id,
            )
        except WAITED_FOR:
            raise
        except ProviderError as exc:
            return None, {}, None, exc.message
        return call, tags, usage, ""

    def _settle(self, work: Work, connection: Any, call: PaidCall | None, usage: Usage | None) -> None:
        if usage is not None:
            item = charge("tagging", usage, work.prices)
            self._ledger.record(work.document.tenant_id, item, document_id=work.document.id, connection=connection)
        if call is not None:
            call.finish(connection)
