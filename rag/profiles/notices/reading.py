"""Convert a stored post to pages: the HTML, then a short description of each attachment by a model.

Text in scanned attachments is recognised first. The result and cost of each paid call are stored before the next call,
under the attachment's hash. After a kill, or for the post's next version, the call is not paid again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

from rag.errors import DocumentError, FileEmpty, ProviderError
from rag.ingestion.document_jobs import TEMPORARY, DocumentGone, DocumentJob, JobControl
from rag.ingestion.loaders.attachments import (
    NOTES,
    AttachmentLimits,
    AttachmentReader,
    AttachmentText,
    attachment_kind,
    describe_attachment,
    post_text,
)
from rag.ingestion.loaders.ocr import TextRecognition, pages_to_recognise, with_recognised
from rag.ingestion.loaders.sandbox import Sandbox
from rag.ingestion.loaders.values import ExtractedDocument, page_from_json
from rag.language import N_
from rag.money.durable_calls import DurableCalls, DurableChatModel, Receipt
from rag.profiles.notices.posts import PostAttachment, milliseconds, post_from_bytes
from rag.providers.registry import Providers
from rag.storage.database import queries
from rag.types import Page

StoredTexts = Mapping[str, AttachmentText]
NOT_FETCHED = N_("This attachment was not fetched, so only its name is known.")
SCANNED = N_(
    "This attachment is a scan, and text recognition is not set up here. So only the name of the attachment is "
    "known. To set up text recognition, paste a key of Upstage on the page Set-up or install Tesseract."
)
#: The most scanned pages to recognise per attachment: enough for a summary.
MOST_SCANNED_PAGES = 20
MORE_SCANNED = N_("Text recognition read only the first {count} scanned pages.")


@dataclass(frozen=True)
class OpenedAttachment:
    """Passes an attachment's extracted text to `describe_attachment`, which expects a reader."""

    reader: AttachmentReader
    extracted: ExtractedDocument

    def load(self, content: bytes, *, file_name: str) -> ExtractedDocument:
        """Return the document read earlier. The parameters are not used."""
        return self.extracted

    def picture(self, content: bytes) -> bytes:
        """Convert the attachment to a PNG image."""
        return self.reader.picture(content)


class PostReader:
    """Converts posts to pages. Thread-safe."""

    def __init__(
        self,
        control: JobControl,
        providers: Providers,
        calls: DurableCalls,
        sandbox: Sandbox,
        recognition: TextRecognition,
    ) -> None:
        self._control = control
        self._providers = providers
        self._calls = calls
        self._sandbox = sandbox
        self._recognition = recognition

    def load(self, job: DocumentJob, content: bytes, *, on_page: Callable[[int, int], None]) -> ExtractedDocument:
        """Return the post in a single page, with sections and metadata. Calls `on_page(done, total)` after each
        attachment.

        Raises `DocumentError`, `JobInterrupted`, and `ProviderError` if a later attempt may succeed.
        """
        title, html, attachments = post_from_bytes(content)
        read = self._text_of(html, job.document.tenant_id)
        text = read.pages[0].text if read.pages else ""
        language = job.collection.language
        described = []
        for number, attachment in enumerate(attachments, 1):
            described.append(self._describe(job, attachment, language))
            on_page(number, len(attachments))
        full_text = post_text("", text, described, language) or title
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
            pages=(Page(number=1, text=full_text, warnings=warnings),),
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
        stored = self._stored_texts(job).get(digest)
        if stored is not None:
            return AttachmentText(file_name=name, kind=stored.kind, size=size, text=stored.text, note=stored.note)
        model = self._providers.attachment_model_for(profile)
        if model is None:
            reader = self._sandbox.of_tenant(job.document.tenant_id)
            return describe_attachment(name, attachment.content, model=None, reader=reader, limits=limits)
        try:
            opened, note = self._reader_of(job, attachment, digest)
        except (DocumentError, ProviderError) as exc:
            if isinstance(exc, TEMPORARY):
                raise
            return AttachmentText(file_name=name, kind=kind, size=size, note=exc.message)
        self._control.stop_if_asked()
        receipt = self._calls.receipt(job.payer, "ocr", [digest, language])
        described = describe_attachment(
            name,
            attachment.content,
            model=DurableChatModel(model, receipt),
            reader=opened,
            language=language,
            limits=limits,
        )
        self._keep(job, receipt, digest, described)
        return replace(described, note=note) if note and described.note in ("", NOTES["no_text"]) else described

    def _reader_of(self, job: DocumentJob, attachment: PostAttachment, digest: str) -> tuple[AttachmentReader, str]:
        """Return a reader for an attachment, and a sentence about omitted pages, or "". Text on scanned PDF pages is
        recognised.

        Raises `DocumentError` or `ProviderError`.
        """
        reader: AttachmentReader = self._sandbox.of_tenant(job.document.tenant_id)
        if attachment.ending != "pdf":
            return reader, ""
        content = attachment.content or b""
        extracted = reader.load(content, file_name=attachment.file_name)
        pages = extracted.pages
        page_numbers = pages_to_recognise(pages)
        if not page_numbers:
            return OpenedAttachment(reader, extracted), ""
        if self._recognition.engine is None:
            note = "" if any(page.text.strip() for page in pages) else SCANNED
            return OpenedAttachment(reader, extracted), note
        for batch in self._recognition.batches(page_numbers[:MOST_SCANNED_PAGES]):
            read = self._recognised(job, content, digest, [page for page in pages if page.number in batch])
            pages = with_recognised(pages, read)
        note = MORE_SCANNED.format(count=MOST_SCANNED_PAGES) if len(page_numbers) > MOST_SCANNED_PAGES else ""
        return OpenedAttachment(reader, replace(extracted, pages=pages)), note

    def _recognised(self, job: DocumentJob, content: bytes, digest: str, pages: Sequence[Page]) -> Sequence[Page]:
        """Recognise the text on an attachment's pages in batches.

        Text and cost of each batch are stored before the next batch.
        """
        self._control.stop_if_asked()
        document, language = job.document, job.collection.language
        named = [digest, "recognised", *(str(page.number) for page in pages)]
        stored_as = hashlib.sha256("\0".join(named).encode()).hexdigest()
        if (stored := self._stored_texts(job).get(stored_as)) is not None:
            return [page_from_json(row) for row in json.loads(stored.text)]

        receipt = self._calls.receipt(job.payer, "ocr", named)
        read = self._recognition.recognise(
            content, pages, language=language, tenant_id=document.tenant_id, receipt=receipt
        )
        text = json.dumps([asdict(page) for page in read], ensure_ascii=False)
        self._keep(job, receipt, stored_as, AttachmentText(file_name="", kind="document", size=len(content), text=text))
        return read

    def _keep(self, job: DocumentJob, receipt: Receipt, digest: str, attachment_text: AttachmentText) -> None:
        """Store text and cost in a single transaction.

        Failures are not stored: for the post's next version, the call is made again.
        """
        document = job.document
        with self._control.database.transaction(document.tenant_id) as connection:
            is_there = connection.execute(queries["hold_document"], job.key).fetchone() is not None
            receipt.settle(connection)
            if is_there and attachment_text.text:
                row = {
                    **job.key,
                    "sha256": digest,
                    "kind": attachment_text.kind,
                    "text": attachment_text.text,
                    "note": attachment_text.note,
                }
                connection.execute(queries["note_attachment_text"], row)
        if not is_there:
            raise DocumentGone

    def _stored_texts(self, job: DocumentJob) -> StoredTexts:
        with self._control.database.transaction(job.document.tenant_id) as connection:
            rows = connection.execute(queries["attachment_texts"], job.key).fetchall()
        return {
            sha256: AttachmentText(file_name="", kind=kind, size=0, text=text, note=note)
            for sha256, kind, text, note in rows
        }


def _to_json(attachment: PostAttachment, described: AttachmentText) -> dict[str, Any]:
    return {
        "fileName": attachment.file_name,
        "fileSize": attachment.size,
        "mimeType": attachment.mime_type,
        "url": attachment.url,
        "kind": described.kind,
        "description": described.text,
        "note": described.note,
    }
