"""A message with several questions, without a model: each has its answer, or a sentence that it has none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from threading import Event

import pytest

from rag.answering.events import AnswerEvent, CitationsEvent, DoneEvent, StepEvent, TextEvent
from rag.answering.pipeline import Answerer
from rag.profiles import profile_of
from rag.providers.registry import Providers
from rag.records.chat_logs import ChatLogs
from rag.retrieval.query_understanding import questions_in
from rag.retrieval.retriever import Retriever
from rag.settings import Settings
from rag.storage.database import Database
from rag.types import Collection, Identity, Outcome, Question
from tests.answering.scripted import add_account
from tests.answering.test_answering_end_to_end import publish

PAGES = [
    "Tools and clothing\n\n| Item | Who pays | Replaced |\n|---|---|---|\n| Safety boots | Company | once a year |\n"
    "| Safety glasses | Company | every two years |\n| Gloves | Employee | as needed |\n",
    "Annual leave\n\nFull-time employees have 27 days of annual leave a year.\n\n"
    "Carrying leave over\n\nUp to six days may be carried into the next year and are taken by 31 March.",
    "Claims\n\nClaims are handed in by 15 January. Bicycles are leased for three years.",
    "Pay\n\nPay reaches your account on the 25th of each month.\n\nPension\n\nThe company adds 6 % to your pension.",
]

CLOSEST, NOT_ANSWERED = "This is the closest I found.", "The documents do not answer this question."


class Desk:
    """Asks without a key."""

    def __init__(self, database: Database, collection: Collection, settings: Settings) -> None:
        self.database, self.collection = database, collection
        self.providers = Providers(settings)
        publish(database, self.providers, collection, PAGES)
        self.answerer = Answerer(Retriever(database, self.providers), self.providers, ChatLogs(database), settings)
        self.identity: Identity = add_account(database, "demo", "somebody@example.org")

    def ask(self, text: str) -> tuple[Outcome, list[str], list[AnswerEvent]]:
        """Return how it ended, the reply's paragraphs, and all events."""
        question = Question(text=text, identity=self.identity, collection=self.collection)
        events = list(self.answerer.answer(question, profile=profile_of(self.collection), cancel=Event()))
        (ending,) = [event for event in events if isinstance(event, DoneEvent)]
        shown = "".join(event.text for event in events if isinstance(event, TextEvent))
        if "**" in shown:
            is_whole = NOT_ANSWERED not in shown and CLOSEST not in shown
            assert ending.outcome is (Outcome.ANSWERED if is_whole else Outcome.PERHAPS)
            with self.database.transaction("demo") as connection:
                rows = connection.execute(
                    "SELECT has_unanswered FROM chat_logs WHERE question = %s", (text,)
                ).fetchall()
            assert rows == [(NOT_ANSWERED in shown,)]
        return ending.outcome, shown.split("\n\n"), events


@pytest.fixture
def desk(database: Database, collection: Collection, settings: Settings) -> Iterator[Desk]:
    made = Desk(database, collection, settings)
    yield made
    made.providers.close()


def between(paragraphs: list[str], question: str) -> str:
    """Return what stands below a question, up to the next one."""
    start = paragraphs.index(f"**{question}**") + 1
    end = next((n for n in range(start, len(paragraphs)) if paragraphs[n].startswith("**")), len(paragraphs))
    return "\n\n".join(paragraphs[start:end])


def test_rows_of_one_table_answer_both_questions(desk: Desk) -> None:
    _, shown, _ = desk.ask("How often are safety boots replaced and who pays for gloves?")
    assert "once a year" in between(shown, "How often are safety boots replaced?")
    assert "Employee" in between(shown, "Who pays for gloves?")


def test_a_question_without_its_subject_takes_it_from_the_one_before(desk: Desk) -> None:
    _, shown, _ = desk.ask("How many days of annual leave do I have and how many can I carry over?")
    assert "27 days" in between(shown, "How many days of annual leave do I have?")
    assert "six days" in between(shown, "How many can I carry over?")


def test_a_pronoun_points_to_the_question_before(desk: Desk) -> None:
    _, shown, _ = desk.ask("How many days of annual leave do I have and by when must I take them?")
    assert "leave" in between(shown, "By when must I take them?")


def test_each_answered_is_an_answer(desk: Desk) -> None:
    text = "How many days of annual leave do full-time employees have a year, and how often are safety boots replaced?"
    assert desk.ask(text)[0] is Outcome.ANSWERED


def test_a_question_without_an_answer_is_named(desk: Desk) -> None:
    outcome, shown, _ = desk.ask("When does pay reach my account? How high is the tower of the cathedral in Cologne?")
    assert outcome is Outcome.PERHAPS
    assert "25th" in between(shown, "When does pay reach my account?")
    assert between(shown, "How high is the tower of the cathedral in Cologne?") == NOT_ANSWERED


LEAVE = "How many days of annual leave do I have?", "27 days"
PAY = "When does pay reach my account?", "the 25th"
BOOTS = "How often are safety boots replaced?", "once a year"


@pytest.mark.parametrize("asked", [(LEAVE, PAY), (PAY, LEAVE), (BOOTS, PAY, LEAVE)], ids=len)
def test_numbers_count_through_the_reply_and_name_their_passages(desk: Desk, asked: Sequence[tuple[str, str]]) -> None:
    _, shown, events = desk.ask(" ".join(question for question, _ in asked))
    (cited,) = [event for event in events if isinstance(event, CitationsEvent)]
    assert [c.number for c in cited.citations] == list(range(1, len(cited.citations) + 1))
    for question, words in asked:
        said = next(line for line in between(shown, question).split("\n\n") if line.endswith("]"))
        number = int(said.rpartition("[")[2].rstrip("]"))
        assert words in said
        assert words in next(c.passage for c in cited.citations if c.number == number)


def test_a_question_with_signs_is_repeated_without_them(desk: Desk) -> None:
    _, shown, _ = desk.ask(
        "When does *pay* [reach](https://example.org) my account and how many days of <b>annual</b> leave?"
    )
    assert "**When does pay reach (https://example.org) my account?**" in shown
    assert "27 days" in between(shown, "How many days of b annual /b leave?")


def test_small_talk_is_no_question_to_the_documents(desk: Desk) -> None:
    _, shown, _ = desk.ask("Hi, how are you? When does pay reach my account? How often are safety boots replaced?")
    assert [line for line in shown if line.startswith("**")] == [f"**{PAY[0]}**", f"**{BOOTS[0]}**"]
    _, shown, _ = desk.ask("Hi, how are you? When does pay reach my account?")
    assert not any(line.startswith("**") for line in shown)
    assert any("the 25th" in line for line in shown)


@pytest.mark.parametrize("searches", [1, 2, 3])
def test_a_stopped_message_ends_at_the_search_it_was_stopped_in(desk: Desk, searches: int) -> None:
    cancel, started = Event(), list[str]()

    def stop(step: StepEvent) -> None:
        started.append(step.name)
        if started.count("searching") == searches:
            cancel.set()

    question = Question(text=f"{LEAVE[0]} {PAY[0]} {BOOTS[0]}", identity=desk.identity, collection=desk.collection)
    events = list(desk.answerer.answer(question, profile=profile_of(desk.collection), cancel=cancel, on_step=stop))
    assert started.count("searching") == searches
    assert not any(isinstance(event, TextEvent) for event in events)
    (ending,) = [event for event in events if isinstance(event, DoneEvent)]
    assert ending.outcome is Outcome.STOPPED
    with desk.database.transaction("demo") as connection:
        rows = connection.execute("SELECT outcome, has_unanswered FROM chat_logs").fetchall()
    assert rows == [("stopped", False)]


def test_none_answered_is_one_reply(desk: Desk) -> None:
    outcome, shown, _ = desk.ask("How tall is the Eiffel tower and who built the pyramids of Giza?")
    assert outcome is Outcome.NO_CONTEXT
    assert not any(line.startswith("**") for line in shown)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("How long is probation and what notice do I give?", ["How long is probation", "what notice do I give?"]),
        ("Wie viele Tage habe ich und bis wann muss ich sie nehmen?", 2),
        ("Hoeveel dagen krijg ik en mag ik ze meenemen?", 2),
        ("Quel est le délai et qui dois-je prévenir ?", 2),
        ("¿Cuántos días tengo? ¿Puedo cambiar un festivo?", ["Cuántos días tengo", "Puedo cambiar un festivo?"]),
        ("Quanto dura la pausa e posso avere un prestito?", 2),
        ("Quantos dias tenho e quando os posso tirar?", 2),
        ("Ile mam dni urlopu i kiedy mogę je wziąć?", 2),
        ("Kaç gün iznim var ve ne zaman kullanabilirim?", 2),
        ("연차는 며칠인가요? 그리고 언제 쓸 수 있나요?", ["연차는 며칠인가요", "언제 쓸 수 있나요?"]),
        ("有給は何日ですか？いつ取れますか？", 2),
        ("年假有几天？什么时候可以休？", 2),
        ("كم يوم إجازة لدي ومتى يمكنني أخذها؟", 2),
        ("I am ill today, whom do I call and how late? How many days do I get?",
         ["I am ill today, whom do I call and how late", "How many days do I get?"]),
        ("quand prévenir si je suis malade et sous combien de temps envoyer l'arrêt ?", 2),
        ("do I get a break on a long shift, and are the breaks paid?", 2),
        # One question.
        ("Do employees who are sick and have a note get paid?", 0),
        ("Can people who work nights and are on probation take leave?", 0),
        ("What do I get paid when I do overtime at night?", 0),
        ("How much leave do I get? I work part time.", 0),
        ("When and how do I get paid?", 0),
        ("Is the gym open and free?", 0),
        ("Hello? How much leave do I get?", 0),
        ("Overtime on Sunday and time off", 0),
    ],
)  # fmt: skip
def test_a_message_is_split_where_another_question_begins(text: str, found: list[str] | int) -> None:
    parts = questions_in(text)
    assert (len(parts) if isinstance(found, int) else parts) == found
