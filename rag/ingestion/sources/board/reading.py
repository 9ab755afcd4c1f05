"""Read a stored post as pages: its HTML as text, then its attachments, described or summarised by a model.

Each paid call is stored with its bill before the next is made, by the attachment's content: a kill or the next version
of the post does not pay for it again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from rag.errors import FileEmpty
from rag.ingestion.document_jobs import DocumentGone, DocumentJob
from rag.ingestion.loaders import ExtractedDocument
from rag.ingestion.loaders.attachments import (
    NOTES,
    AttachmentLimits,
    AttachmentText,
    attachment_kind,
    describe_attachment,
    post_text,
)
from rag.ingestion.loaders.sandbox import Sandbox
from rag.ingestion.paid_calls import PaidCall, PaidCalls
from rag.ingestion.sources.board.posts import PostAttachment, milliseconds, post_from_bytes
from rag.providers import ChatModel
from rag.providers.registry import Providers
from rag.providers.retry import IMAGE_TOKENS
from rag.storage.database import queries
from rag.types import Page, Usage

Known = Mapping[str, AttachmentText]
NOT_FETCHED = "Its file was not fetched, so only its name is known."


class PostReader:
    """Reads posts. Thread-safe."""

    def __init__(self, providers: Providers, calls: PaidCalls, sandbox: Sandbox) -> None:
        self._control = calls.control
        self._providers = providers
        self._calls = calls
        self._sandbox = sandbox

    def load(self, job: DocumentJob, content: bytes, *, on_page: Callable[[int, int], None]) -> ExtractedDocument:
        """Read the post's one page with sections and metadata; call `on_page(done, total)` after each attachment.

        Raises `DocumentError`s, `JobInterrupted`, and `ProviderError`s that are worth another try.
        """
        title, html, attachments = post_from_bytes(content)
        read = self._text_of(html, job.document.tenant_id)
        text = read.pages[0].text if read.pages else ""
        language = job.collection.language
        described = []
        for number, attachment in enumerate(attachments, 1):
            described.append(self._describe(job, attachment, language))
            on_page(number, len(attachments))
        whole = post_text("", text, described, language) or title
        warnings = read.pages[0].warnings if read.pages else ()
        backdated = read.metadata.get("backdated_at")
        metadata: dict[str, Any] = {
            **{name: value for name, value in read.metadata.items() if name != "backdated_at"},
            "excerpt": text[: job.profile.reading.excerpt_characters],
            "backdatedAt": milliseconds(datetime.fromisoformat(backdated)) if backdated else 0,
            "attachmentsJson": json.dumps(
                [_to_json(a, d) for a, d in zip(attachments, described, strict=True)], ensure_ascii=False
            ),
        }
        return ExtractedDocument(
            pages=(Page(number=1, text=whole, warnings=warnings),),
            sections=read.sections,
            language=read.language,
            metadata=metadata,
        )

    def _text_of(self, html: str, tenant_id: str) -> ExtractedDocument:
        try:
            return self._sandbox.load(html.encode("utf-8", "replace"), file_name="post.html", tenant_id=tenant_id)
        except FileEmpty:
            return ExtractedDocument(pages=())

    def _describe(self, job: DocumentJob, attachment: PostAttachment, language: str) -> AttachmentText:
        """Describe an attachment, by a model where needed. Nothing is asked twice."""
        profile, name, size = job.profile, attachment.file_name, attachment.size
        limits = AttachmentLimits(
            maximum_bytes=profile.reading.maximum_attachment_bytes,
            description_characters=profile.reading.image_description_characters,
            summary_characters=profile.reading.document_summary_characters,
        )
        kind = attachment_kind(name, size, limits=limits)
        if attachment.description:
            return AttachmentText(file_name=name, kind=kind, size=size, text=attachment.description)
        if attachment.content is None:
            return AttachmentText(file_name=name, kind=kind, size=size, note=NOTES.get(kind, NOT_FETCHED))
        digest = hashlib.sha256(attachment.content).hexdigest()
        known = self._known(job).get(digest)
        if known is not None:
            return AttachmentText(file_name=name, kind=known.kind, size=size, text=known.text, note=known.note)
        model = self._providers.attachment_model_for(profile)
        if model is None:
            reader = self._sandbox.of_tenant(job.document.tenant_id)
            return describe_attachment(name, attachment.content, model=None, reader=reader, limits=limits)
        return self._ask(job, attachment, digest, model, limits, language)

    def _ask(
        self,
        job: DocumentJob,
        attachment: PostAttachment,
        digest: str,
        model: ChatModel,
        limits: AttachmentLimits,
        language: str,
    ) -> AttachmentText:
        self._control.stop_if_asked()

        def ask() -> AttachmentText:
            return describe_attachment(
                attachment.file_name,
                attachment.content or b"",
                model=model,
                reader=self._sandbox.of_tenant(job.document.tenant_id),
                language=language,
                limits=limits,
            )

        document = job.document
        key = [model.model, digest, language]
        expected = Usage(provider=model.provider, model=model.model, input_tokens=IMAGE_TOKENS, is_estimated=True)
        call, found = self._calls.make(
            document.tenant_id,
            document.id,
            "ocr",
            key,
            ask,
            expected=expected,
        )
        self._keep(job, call, digest, found)
        return found

    def _keep(self, job: DocumentJob, call: PaidCall, digest: str, found: AttachmentText) -> None:
        """Store text and bill in one transaction. A failure is not kept: the next version asks again."""
        document = job.document
        with self._control.database.transaction(document.tenant_id) as connection:
            is_there = connection.execute(queries["hold_document"], job.key).fetchone() is not None
            self._calls.settle(connection, call, [found.usage] if found.usage else [], job.prices)
            if is_there and found.text:
                row = {**job.key, "sha256": digest, "kind": found.kind, "text": found.text, "note": found.note}
                connection.execute(queries["note_attachment_text"], row)
        if not is_there:
            raise DocumentGone

    def _known(self, job: DocumentJob) -> Known:
        with self._control.database.transaction(job.document.tenant_id) as connection:
            rows = connection.execute(queries["attachment_texts"], job.key).fetchall()
        return {
            sha256: AttachmentText(file_name="", kind=kind, size=0, text=text, note=note)
            for sha256, kind, text, note in rows
        }


def _to_json(attachment: PostAttachment, described: AttachmentText) -> dict[str, Any]:
    """Return an attachment as `attachmentsJson` holds it."""
    return {
        "fileName": attachment.file_name,
        "fileSize": attachment.size,
        "mimeType": attachment.mime_type,
        "url": attachment.url,
        "kind": described.kind,
        "description": described.text,
        "note": described.note,
    }
