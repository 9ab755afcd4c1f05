"""What a reader gets of a model that repeats itself, cites what does not say so, or finds nothing in its own words."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from threading import Event
from typing import Any

import pytest
from psycopg.rows import dict_row

from rag.answering.events import DoneEvent
from rag.answering.groundedness import CitedSource
from rag.answering.guardrails import AnswerWatch, Repetition, sources_of
from rag.answering.jobs import LiveAnswers
from rag.answering.live_answer import StoredAnswer, StoredRow
from rag.answering.pipeline import Answerer, CitationsEvent, TextEvent
from rag.answering.writing import PROMPT_CUT, WITHDRAWN
from rag.profiles import HR
from rag.providers import Discarded
from rag.providers.registry import Providers
from rag.records.chat_logs import ChatLogs
from rag.records.conversations import Conversations
from rag.retrieval.retriever import Retriever
from rag.settings import Settings
from rag.storage.database import Database
from rag.types import Collection, MessageState, Outcome, Question
from tests.answering.scripted import FixedRetriever, add_account, passage
from tests.answering.test_answer import answering, run_to_end
from tests.answering.test_answering_end_to_end import publish
from tests.patience import patient
from tests.standins.providers import ProviderStandin

VACATION = "How many vacation days do employees have?"
CHILDCARE = (
    "Parents of children under twelve may ask for help with the costs of childcare. "
    "The company pays half of them, up to a yearly limit, once the form has been handed in. "
)
ABSURD = (
    "Office dogs bring colleagues much joy on Fridays [1]. ",
    "Submarines travel quietly beneath frozen polar oceans [2]. ",
    "Volcanoes erupt whenever tectonic plates collide violently [1]. ",
    "Penguins huddle together against antarctic blizzards [2]. ",
)


def tokens(text: str) -> list[str]:
    return [f"{word} " for word in text.split()]


# Going round in circles


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(CHILDCARE * 4, id="a passage"),
        pytest.param("Ask your manager about it first of all. " * 6, id="a sentence"),
        pytest.param("leave " * 60, id="a word"),
        pytest.param("".join(f"Ask your manager about this before you go [{n}]. " for n in range(1, 9)), id="numbered"),
        pytest.param("".join(f"{n}. Ask your manager about this before you go.\n" for n in range(1, 9)), id="a list"),
        pytest.param("연차는 인사팀에 신청하고 승인을 받은 다음 날부터 사용할 수 있습니다. " * 5, id="Korean"),
        pytest.param("休暇は人事部に申請して承認を受けてから取ることができます。" * 5, id="Japanese"),
        pytest.param("年假须向人力资源部申请并获得批准后才能使用。" * 5, id="Chinese"),
        pytest.param("| Dental | covered in full | every year |\n" * 8, id="a row"),
    ],
)
@pytest.mark.parametrize("size", [1, 5, 10_000])
def test_a_loop_is_seen_however_it_arrives(text: str, size: int) -> None:
    repetition = Repetition()
    for start in range(0, len(text), size):
        repetition.feed(text[start : start + size])
    repetition.finish()
    assert repetition.is_found


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(CHILDCARE, id="once"),
        pytest.param(CHILDCARE * 2, id="twice"),
        pytest.param(
            "| Plan | Dental | Sight | Hospital | Abroad |\n|---|---|---|---|---|\n"
            + "".join(f"| Plan {n} | Yes | Yes | Yes | Not covered |\n" for n in range(8)),
            id="a table with the same cells",
        ),
        pytest.param(
            "".join(
                f"- In {city} you ask the head of the office.\n" for city in ("Utrecht", "Busan", "Berlin", "Lyon")
            ),
            id="a list of similar items",
        ),
        pytest.param(
            "".join(f"{year}: up to {year - 2000} days are carried over to the next.\n" for year in range(2020, 2030)),
            id="a row of years",
        ),
    ],
)
def test_an_answer_with_a_form_is_no_loop(text: str) -> None:
    repetition = Repetition()
    for token in tokens(text) if "\n" not in text else text.splitlines(keepends=True):
        repetition.feed(token)
    repetition.finish()
    assert not repetition.is_found


def test_a_loop_is_stopped_early_and_the_documents_are_quoted(desk: Any) -> None:
    written = tokens(f"{CHILDCARE.strip()} [1] " * 4)
    never = Event()
    desk.model.scripts = [[*written, never]]
    text, done, events = run_to_end(desk, VACATION)
    assert (done.outcome, done.state, done.kind) == (Outcome.ANSWERED, MessageState.COMPLETE, "cited")
    assert done.notices == (WITHDRAWN["repeats"],)
    texts = [event for event in events if isinstance(event, TextEvent)]
    (again,) = [place for place, event in enumerate(texts) if event.starts_over]
    assert 60 < again < len(written)
    quoted = "".join(event.text for event in texts[again:])
    assert quoted.startswith("The language model's answer could not be used")
    assert "“Employees have 25 days of vacation.” [1]" in quoted
    assert [c.passage for c in done.citations] == ["Employees have 25 days of vacation."]
    (log,) = desk.rows("chat_logs")
    assert (log["answer"], log["outcome"]) == (quoted, "answered")
    (paid,) = desk.rows("cost_ledger")
    assert paid["unit_prices"]["tokens"] == "estimated"
    assert 0 < paid["output_tokens"] < 200
    assert text.startswith("Parents of children")


def test_a_loop_of_a_model_that_was_perhaps_given_the_answer_leaves_the_closest_passages(desk: Any) -> None:
    desk.retriever.evidence = "perhaps"
    desk.model.scripts = [tokens(CHILDCARE * 4)]
    _, done, events = run_to_end(desk, "Does the canteen serve lasagne with truffles?")
    assert (done.outcome, done.kind) == (Outcome.PERHAPS, "cited")
    (again,) = [event for event in events if isinstance(event, TextEvent) and event.starts_over]
    assert again.text.startswith("This")


# Sentences that are not in what they cite


def test_a_sentence_that_is_not_in_its_passage_is_marked_and_the_answer_stays(desk: Any) -> None:
    desk.model.scripts = [["Employees have 25 days of vacation [1]. ", ABSURD[0], "Vacation is booked in June [2]."]]
    _, done, events = run_to_end(desk, "When may I go?")
    assert not [event for event in events if isinstance(event, TextEvent) and event.starts_over]
    assert [c.is_supported for c in done.citations] == [False, True]
    assert done.citations[0].unsupported == ("Office dogs bring colleagues much joy on Fridays",)
    assert done.notices == ()
    (shown,) = [event for event in events if isinstance(event, CitationsEvent)]
    assert shown.citations == done.citations


def test_an_answer_of_which_most_is_unsupported_is_stopped_before_its_end(desk: Any) -> None:
    desk.model.scripts = [[*ABSURD, Event()]]
    _, done, events = run_to_end(desk, VACATION)
    assert (done.outcome, done.notices) == (Outcome.ANSWERED, (WITHDRAWN["unsupported"],))
    shown = "".join(e.text for e in events if isinstance(e, TextEvent))
    assert "Penguins" not in shown.replace(ABSURD[3], "", 1)
    assert desk.rows("chat_logs")[0]["answer"].endswith("“Employees have 25 days of vacation.” [1]")


@pytest.mark.parametrize(
    ("answer", "is_withdrawn"),
    [
        pytest.param("Employees do not have 25 days of vacation [1].", True, id="turned round"),
        pytest.param(ABSURD[0], True, id="about something else"),
        pytest.param("Employees have 99 days of vacation [1].", False, id="another figure"),
        pytest.param("Employees have 99 days of vacation [1]. Book in 12 weeks [2].", True, id="other figures"),
        pytest.param("You get 25 days [1].", False, id="right"),
        pytest.param("직원의 휴가는 25일입니다 [1]. 6월에 예약할 수 없습니다 [2].", False, id="another language"),
        pytest.param(
            "직원의 휴가는 99일입니다 [1]. 88주에 예약합니다 [2].", True, id="another language, other figures"
        ),
        pytest.param("Vacation is 25 days [1], not 30. It is booked in June [2].", False, id="a contrast"),
    ],
)
def test_a_short_answer_is_judged_when_it_has_ended(desk: Any, answer: str, is_withdrawn: bool) -> None:
    desk.model.scripts = [[answer]]
    _, done, _ = run_to_end(desk, VACATION)
    assert (WITHDRAWN["unsupported"] in done.notices) is is_withdrawn
    holds = any(citation.is_supported for citation in done.citations)
    assert done.outcome is (Outcome.ANSWERED if holds else Outcome.PERHAPS)
    assert holds is ("99 days" not in answer or is_withdrawn)


def test_as_its_source_an_unsupported_answer_stays_and_its_sentences_are_named(desk: Any) -> None:
    desk.model.scripts = [["Employees have 99 days of vacation [1]. Book in 12 weeks [2]."]]
    text, done, _ = run_to_end(desk, VACATION, profile=HR.changed(withdraw_unsupported=False))
    assert "99 days" in text
    assert WITHDRAWN["unsupported"] not in done.notices
    assert [citation.is_supported for citation in done.citations] == [False, False]
    assert done.outcome is Outcome.PERHAPS


def test_what_the_model_read_around_a_passage_supports_its_sentences() -> None:
    given = passage(1, "Employees have 25 days of vacation.")
    context = "[1] Leave policy, p. 1\nRequests pass through the portal first. Employees have 25 days of vacation."
    answer = "Every request must pass through the portal [1]. "
    with_context = AnswerWatch(sources_of([given], context, ("en",)), {1: 1}, "", lambda _: "en")
    assert with_context.feed(answer * 2) is None
    with_context.finish()
    assert not any(claim.faults for claim in with_context.checked)
    alone = AnswerWatch(sources_of([given], given.passage, ("en",)), {1: 1}, "", lambda _: "en")
    assert alone.feed(answer) is None
    assert alone.finish() == "unsupported"


def test_watching_a_piece_costs_no_more_the_longer_the_answer_is() -> None:
    body = " ".join(f"Rule {n} says that employee number {n} books room {n} on floor {n}." for n in range(60))
    sources = {1: CitedSource(body, "Rules", ("en",))}
    watch = AnswerWatch(sources, {1: 1}, "What do the rules say?", lambda _: "en")
    answer = [t for n in range(60) for t in tokens(f"Rule {n} says that employee {n} books room {n} upstairs [1].")]
    watch.feed("Rule 0 begins [1]. So ")  # reads the passage once
    taken, half = [], len(answer) // 2
    for part in (answer[:half], answer[half:]):
        started = time.thread_time()
        for token in part:
            watch.feed(token)
        taken.append(time.thread_time() - started)
    assert taken[1] < 4 * taken[0]


# Nothing found, in the model's own words


@pytest.mark.parametrize(
    ("question", "reply", "kept"),
    [
        ("Parking?", ["I could not find this in ", "the documents."], 2),
        ("Parking?", ["The passages [2] do not mention parking."], 2),
        ("주차 벌금은 누가 내나요?", ["문서에서 주차에 대한 내용을 찾을 수 없습니다."], 2),
        ("Wer bezahlt die Strafe?", ["Die Dokumente enthalten dazu keine Angaben."], 2),
    ],
)
def test_a_model_that_finds_nothing_without_our_mark_has_not_answered(
    desk: Any, question: str, reply: Sequence[str], kept: int
) -> None:
    desk.model.scripts = [list(reply)]
    _, done, _ = run_to_end(desk, question)
    assert (done.outcome, done.kind, len(done.citations)) == (Outcome.NO_CONTEXT, "nearest", kept)
    assert done.notices == ()
    assert desk.rows("chat_logs")[0]["outcome"] == "no_context"


def test_a_part_that_was_found_beside_one_that_was_not_is_an_answer(desk: Any) -> None:
    desk.model.scripts = [["I could not find who approves it, but vacation is booked in June [2]."]]
    _, done, _ = run_to_end(desk, "Who approves vacation, and when is it booked?")
    assert (done.outcome, done.kind, len(done.citations)) == (Outcome.ANSWERED, "cited", 1)


def test_our_mark_before_a_loop_still_counts_as_not_found(desk: Any) -> None:
    desk.model.scripts = [["NOT_FOUND\n", *tokens("The documents do not say anything at all about the canteen. " * 6)]]
    _, done, _ = run_to_end(desk, "Parking?")
    assert (done.outcome, done.kind) == (Outcome.NO_CONTEXT, "nearest")


# What watchers of an answer see


def test_who_follows_an_answer_gets_the_new_text_whole(desk: Any) -> None:
    go_on = Event()
    desk.model.scripts = [["Dogs bring joy ", go_on, *tokens(CHILDCARE * 4)]]
    live = desk.ask(VACATION)
    written, restarts = "", 0
    for piece in live.tail(every_seconds=0.001):
        if live.restarts > restarts:
            written, restarts = "", live.restarts
        written += piece
        if written:
            go_on.set()
    assert (restarts, written) == (1, live.text)
    message = desk.conversations.messages(desk.identity, live.conversation_id)[-1]
    assert message.content == live.text
    assert "Dogs" not in live.text
    assert WITHDRAWN["repeats"] in message.notice


def test_an_answer_begun_again_in_another_process_is_read_from_its_beginning() -> None:
    empty = passage(1, "x")
    rows = [("Dogs bring joy and", "streaming"), ("The language", "streaming"), ("The language model.", "complete")]
    stored = [StoredRow(empty.chunk_id, empty.document_id, text, state, "", [], None, "?") for text, state in rows]
    answer = StoredAnswer(
        stored[0], question="?", owner=("demo", empty.chunk_id), read=lambda: None, request_stop=lambda: None
    )
    for row in stored[1:]:
        answer._take_row(row)
    assert (answer.text, answer.restarts) == ("The language model.", 1)


# Over the real client


def test_the_call_is_ended_and_paid_for_as_far_as_it_came(
    database: Database, collection: Collection, settings: Settings, provider_standin: ProviderStandin
) -> None:
    settings = replace(settings, openai_api_key="key", openai_base_url=provider_standin.openai_url)
    provider_standin.reply(CHILDCARE * 40)
    # What a model that loops would still send; nobody waits for it.
    provider_standin.hang_stream_after(400)
    providers = Providers(settings)
    try:
        publish(database, providers, collection)
        answerer = Answerer(Retriever(database, providers), providers, ChatLogs(database), settings)
        answers = LiveAnswers(answerer, Conversations(database), database)
        live = answers.ask(
            Question(
                text="How many vacation days do full-time employees receive?",
                identity=add_account(database, "demo", "somebody@example.org"),
                collection=collection,
            )
        )
        assert live.wait(patient(20))
        assert "“Full-time employees receive 25 vacation days per calendar year.” [1]" in live.text
        assert live.state is MessageState.COMPLETE
        with database.transaction("demo") as connection, connection.cursor(row_factory=dict_row) as cursor:
            ledger = cursor.execute("SELECT * FROM cost_ledger WHERE operation = 'chat'").fetchall()
    finally:
        provider_standin.release()
        providers.close()
    (answer,) = ledger
    assert answer["unit_prices"]["tokens"] == "estimated"
    assert 50 < answer["output_tokens"] < 500


def test_a_reader_who_leaves_while_quotes_take_the_place_ends_it(desk: Any) -> None:
    desk.model.scripts = [tokens(CHILDCARE * 4)]
    events = answering(desk, VACATION)
    for event in events:
        if isinstance(event, TextEvent) and event.starts_over:
            break
    events.close()
    assert desk.rows("chat_logs")[0]["outcome"] == "stopped"


def test_without_a_model_nothing_is_withdrawn(desk: Any) -> None:
    desk.providers.chat = None
    assert isinstance(desk.retriever, FixedRetriever)
    _, done, _ = run_to_end(desk, VACATION)
    assert isinstance(done, DoneEvent)
    assert not {*done.notices} & {*WITHDRAWN.values()}


def test_the_language_of_an_answer_is_looked_at_again_only_when_there_is_twice_as_much() -> None:
    given = passage(1, "Employees receive 25 days of vacation a year.")
    looked: list[int] = []

    def language_of(text: str) -> str:
        looked.append(len(text))
        return "en"

    watch = AnswerWatch(sources_of([given], given.passage, ("en",)), {1: 1}, "", language_of)
    for sentence in range(100):
        watch.feed(f"Employees receive 25 days, as rule {'i' * (sentence % 7 + 1)} of the handbook says [1]. ")
    watch.finish()
    assert looked
    assert len(looked) <= 5
    assert looked[-1] >= 200
    assert all(later >= 2 * earlier for earlier, later in pairwise(looked))


# Reasoning


def test_reasoning_that_turns_out_late_is_taken_back(desk: Any) -> None:
    desk.model.scripts = [
        ["They ask about vacation. ", "Passage 1 says 25 [1]. ", Discarded(), "You have 25 days [1]."]
    ]
    _, done, events = run_to_end(desk, VACATION)
    shown = ""
    for event in events:
        if isinstance(event, TextEvent):
            shown = event.text if event.starts_over else shown + event.text
    assert shown == "You have 25 days [1]."
    assert (done.outcome, done.notices) == (Outcome.ANSWERED, ())
    assert desk.rows("chat_logs")[0]["answer"] == shown


# Prompts that are longer than the model's window


def test_an_answer_from_a_cut_prompt_says_so_and_the_next_prompt_fits(
    database: Database, collection: Collection, provider_standin: ProviderStandin
) -> None:
    provider_standin.window = 2048
    provider_standin.reply("Full-time employees receive 25 vacation days per calendar year [1].")
    settings = Settings(ollama_url=provider_standin.ollama_url, chat_model="llama3.2")
    providers = Providers(settings)
    asks = "Employees of office {0} have {0} vacation days for moving to floor {0} when lift {0} is under repair. "
    rules = ["".join(asks.format(20 * n + m) for m in range(20)) for n in range(1, 9)]
    publish(
        database, providers, collection, ["Full-time employees receive 25 vacation days per calendar year.", *rules]
    )
    answerer = Answerer(Retriever(database, providers), providers, ChatLogs(database), settings)
    asker = add_account(database, "demo", "somebody@example.org")
    try:
        profile = HR.changed(chat_provider="ollama", chat_model="llama3.2")
        asked = Question(text=VACATION, identity=asker, collection=collection)
        ends = [list(answerer.answer(asked, profile=profile, cancel=Event()))[-1] for _ in range(2)]
    finally:
        providers.close()
    cut, fitting = [body["messages"] for _, body in provider_standin.requests if body.get("max_tokens", 0) > 500]
    assert [isinstance(end, DoneEvent) and PROMPT_CUT in end.notices for end in ends] == [True, False]
    assert len(cut[-1]["content"]) > 8000 > len(fitting[-1]["content"]) > 500
