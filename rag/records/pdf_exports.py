"""Write reports and conversations as PDF, if the integration for PDFs is installed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from rag.records.digest import Digest
from rag.types import Conversation, Message


class WriteReport(Protocol):
    def __call__(self, digest: Digest, /) -> bytes: ...


class WriteConversation(Protocol):
    def __call__(self, conversation: Conversation, messages: Sequence[Message], /, *, address: str) -> bytes: ...


@dataclass(frozen=True, kw_only=True)
class PdfExports:
    """An integration's functions for writing PDFs. They raise `PackagesMissing` if the integration is not installed."""

    is_installed: bool
    write_report: WriteReport
    #: `address` is the product's address, without a trailing slash.
    write_conversation: WriteConversation
