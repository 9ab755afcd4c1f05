"""Stand-ins of what an answer is made from: a model that says what it is told, passages that are given."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from threading import Event
from typing import Any
from uuid import UUID, uuid4

from rag.errors import RagError
from rag.money.bill import open_bill
from rag.profiles.profile import Profile
from rag.providers import ChatModel, Completed, Completion, Discarded, TextDelta
from rag.providers.registry import ModelChoice
from rag.storage.database import Database
from rag.types import (
    Charge,
    ChatMessage,
    Citation,
    Collection,
    ContextResponse,
    Evidence,
    Identity,
    Question,
    RAGDetails,
    Role,
    TokenUsage,
    Usage,
)
from tests.patience import patient

Script = Sequence[str | Exception | Event | Discarded]


@dataclass
class ScriptedModel:
    """Streams its scripts in turn: texts as deltas, errors raised, events waited for (`cancel` ends the wait)."""

    scripts: list[Script] = field(default_factory=list)
    completions: list[str | Exception] = field(default_factory=list)
    finish_reason: str = "stop"
    heeds_cancel: bool = True
    provider: str = "openai"
    model: str = "gpt-4o"
    asked: list[list[ChatMessage]] = field(default_factory=list)

    def context_window(self) -> int | None:
        return None

    def usage(self, output_tokens: int) -> Usage:
        return Usage(provider=self.provider, model=self.model, input_tokens=1000, output_tokens=output_tokens)

    def stream(
        self,
        messages: Sequence[ChatMessage],
        *,
        temperature: float,
        maximum_output_tokens: int,
        cancel: Event,
        every_seconds: Callable[[], float] = float,
    ) -> Iterator[TextDelta | Discarded | Completed]:
        self.asked.append(list(messages))
        script = self.scripts.pop(0) if self.scripts else ()
        for part in script:
            if isinstance(part, Exception):
                raise part
            if isinstance(part, Event):
                while not part.wait(0.005) and not (self.heeds_cancel and cancel.is_set()):
                    pass
            elif isinstance(part, Discarded):
                yield part
            elif not (self.heeds_cancel and cancel.is_set()):
                yield TextDelta(part)
            if self.heeds_cancel and cancel.is_set():
                return
        yield Completed(self.usage(len(script)), self.finish_reason)

    def complete(
        self,
        messages: Sequence[ChatMessage],
        *,
        temperature: float,
        maximum_output_tokens: int,
        json_schema: Mapping[str, Any] | None = None,
    ) -> Completion:
        self.asked.append(list(messages))
        reply = self.completions.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return Completion(reply, self.usage(5))


@dataclass
class ScriptedProviders:
    chat: ChatModel | None = None
    small: ChatModel | None = None

    def chat_model_for(self, profile: Profile) -> ChatModel | None:
        return self.chat

    def meaning_for(self, embedding_model_id: str) -> None:
        """There is no model of meaning."""

    def translation_model_for(self, profile: Profile) -> ChatModel | None:
        return self.small

    def chat_choice(self, profile: Profile) -> ModelChoice:
        """Both models are of one provider."""
        return ModelChoice(wanted_provider="openai", wanted_model="scripted", provider="openai", model="scripted")

    translation_choice = chat_choice


@dataclass
class FixedRetriever:
    """Finds the same passages for every question and remembers what was searched."""

    citations: tuple[Citation, ...] = ()
    nearest: tuple[Citation, ...] = ()
    charges: tuple[Charge, ...] = ()
    notices: tuple[str, ...] = ()
    evidence: Evidence = "answered"
    error: Exception | None = None
    wait_for: Event | None = None
    searched: list[str] = field(default_factory=list)

    def retrieve_context(
        self,
        question: Question,
        *,
        profile: Profile,
        top_k: int | None = None,
        on_step: Callable[[str, str], None] | None = None,
    ) -> ContextResponse:
        self.searched.append(question.text)
        bill = open_bill()
        for charge in self.charges:
            bill.record(charge)
        if on_step:
            on_step("searching", "")
        if self.wait_for is not None:
            self.wait_for.wait(patient(10))
        if self.error is not None:
            raise self.error
        if on_step:
            on_step("found", str(len(self.citations)))
        details = RAGDetails()
        details.query.original = question.text
        return ContextResponse(
            context_text="\n\n".join(f"[{c.number}] {c.title}, p. {c.first_page}\n{c.passage}" for c in self.citations),
            citations=self.citations,
            nearest=self.nearest,
            token_usage=TokenUsage(),
            cost=Decimal(0),
            rag_details=details,
            charges=self.charges,
            notices=self.notices,
            evidence=self.evidence,
        )


def passage(number: int, text: str, *, document_id: UUID | None = None, page: int = 1) -> Citation:
    """A citation of a made-up passage."""
    return Citation(
        number=number,
        chunk_id=uuid4(),
        document_id=document_id or uuid4(),
        title="Leave policy",
        file_name="leave.pdf",
        first_page=page,
        last_page=page,
        section="Vacation",
        passage=text,
        score=1.0,
    )


def add_account(
    database: Database,
    tenant_id: str,
    email: str,
    *,
    name: str = "Somebody",
    role: Role = Role.EMPLOYEE,
    group: str = "office",
) -> Identity:
    """An account in a group, of an employee by default."""
    with database.transaction(tenant_id) as connection:
        row = connection.execute(
            "INSERT INTO accounts (tenant_id, email, name, role, password_hash, user_group) "
            "VALUES (%s, %s, %s, %s, 'x', %s) RETURNING id",
            (tenant_id, email, name, role.value, group),
        ).fetchone()
    assert row is not None
    return Identity(account_id=row[0], tenant_id=tenant_id, email=email, name=name, role=role, user_group=group)


def add_document(database: Database, collection: Collection, *pages: str, title: str = "Leave policy") -> UUID:
    """A document with these pages."""
    with database.transaction(collection.tenant_id) as connection:
        row = connection.execute(
            "INSERT INTO documents (tenant_id, collection_id, title, file_name, sha256, status) "
            "VALUES (%s, %s, %s, %s, %s, 'completed') RETURNING id",
            (collection.tenant_id, collection.id, title, f"{title}.pdf", uuid4().hex),
        ).fetchone()
        assert row is not None
        for number, text in enumerate(pages, start=1):
            connection.execute(
                "INSERT INTO document_pages (document_id, number, tenant_id, text, characters, method) "
                "VALUES (%s, %s, %s, %s, %s, 'text')",
                (row[0], number, collection.tenant_id, text, len(text)),
            )
    return UUID(str(row[0]))


def charged(operation: Any, cost: str | None) -> Charge:
    usage = Usage(provider="openai", model="some-model", input_tokens=10)
    return Charge(operation=operation, usage=usage, cost=None if cost is None else Decimal(cost))


class Trouble(RagError):
    """The search does not work."""
