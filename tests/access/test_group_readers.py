"""A collection for a group, as people of other groups meet it: not found, not cited, not opened, not counted."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from uuid import UUID, uuid4

import pytest

from rag.errors import NotFound
from rag.profiles import HR
from rag.records.analytics import Filters, Period
from rag.records.chat_logs import QuestionEnd
from rag.samples import SAMPLES
from rag.types import Collection, Document, Identity, Outcome, Question, RAGDetails, Role, UploadOptions

if TYPE_CHECKING:
    from rag.services import Services

QUESTION = "How many days of annual leave do full-time employees have?"


def person(role: Role, group: str) -> Identity:
    return Identity(
        account_id=uuid4(), tenant_id="demo", email=f"{group}@demo.example", name="P", role=role, user_group=group
    )


@pytest.fixture
def minutes(app_services: Services, collection: Collection) -> Document:
    """A document of a collection that only the group Council may read."""
    sample = SAMPLES[0]
    result = app_services.pipeline.process_document(
        file=sample.read(),
        file_name=sample.file_name,
        tenant_id="demo",
        collection=collection,
        options=UploadOptions(generate_metadata=False),
    )
    app_services.documents.change_collection(person(Role.ADMIN, ""), collection.id, groups=["Council", " "])
    return app_services.documents.get("demo", result.document_id)


def ask(parts: Services, who: Identity, collection: Collection) -> tuple[int, int]:
    """How many passages are cited and how many are near."""
    found = parts.retriever.retrieve_context(Question(text=QUESTION, identity=who, collection=collection), profile=HR)
    return len(found.citations), len(found.nearest)


def test_others_find_and_cite_nothing_even_when_they_name_the_collection(
    app_services: Services, collection: Collection, minutes: Document
) -> None:
    assert ask(app_services, person(Role.EMPLOYEE, "Council"), collection)[0] > 0
    assert ask(app_services, person(Role.EMPLOYEE, "Sales"), collection) == (0, 0)
    assert ask(app_services, person(Role.MANAGER, ""), collection) == (0, 0)
    assert ask(app_services, person(Role.ADMIN, ""), collection)[0] > 0


def test_others_neither_list_nor_open_it(app_services: Services, collection: Collection, minutes: Document) -> None:
    other, library = person(Role.EMPLOYEE, "Sales"), app_services.documents
    assert library.collections(other) == []
    assert library.list(other) == []
    assert library.pages(other, minutes.id) == []
    assert library.chunks(other, minutes.id) == []
    assert library.contents(other) == {}
    for opened in (
        lambda: library.get(other, minutes.id),
        lambda: library.original(other, minutes.id),
        lambda: library.page_image(other, minutes.id, 1),
        lambda: library.collection(other, collection.id),
    ):
        with pytest.raises(NotFound):
            opened()


def test_others_cannot_begin_a_conversation_there(
    app_services: Services, collection: Collection, minutes: Document
) -> None:
    with pytest.raises(NotFound):
        app_services.answers.ask(
            Question(text=QUESTION, identity=person(Role.EMPLOYEE, "Sales"), collection=collection)
        )


def test_a_manager_of_another_group_counts_nothing_of_it(
    app_services: Services, collection: Collection, minutes: Document
) -> None:
    log = app_services.chat_logs
    asker = person(Role.ADMIN, "")
    with app_services.database.transaction("demo") as connection:
        connection.execute(
            "INSERT INTO accounts (id, tenant_id, email, role, password_hash) "
            "VALUES (%s, 'demo', 'a@b.c', 'admin', '')",
            (asker.account_id,),
        )
    log_id = log.open(Question(text=QUESTION, identity=asker, collection=collection))
    log.close("demo", log_id, QuestionEnd(outcome=Outcome.ANSWERED, answer="27 days", details=RAGDetails(), total_ms=5))
    today = datetime.now(UTC).date()
    period = Period(first=today - timedelta(days=1), last=today)
    analytics = app_services.analytics

    def counted(who: Identity) -> tuple[int, bool]:
        questions = analytics.summary(who, period, Filters()).current.questions
        try:
            analytics.question(who, UUID(str(log_id)))
        except NotFound:
            return questions, False
        return questions, True

    assert counted(person(Role.MANAGER, "Council")) == (1, True)
    assert counted(person(Role.MANAGER, "Sales")) == (0, False)
    assert counted(person(Role.ADMIN, "")) == (1, True)


def test_without_groups_everybody_reads_again(
    app_services: Services, collection: Collection, minutes: Document
) -> None:
    app_services.documents.change_collection(person(Role.ADMIN, ""), collection.id, groups=[])
    assert ask(app_services, person(Role.EMPLOYEE, "Sales"), collection)[0] > 0
