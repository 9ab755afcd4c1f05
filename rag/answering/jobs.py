"""Run answers as jobs: threads in this process write them, pages and API routes only watch.

Each answer starts immediately in a new thread. A thread mostly waits for providers, and holds no database connection
while waiting. Pages find an answer again after a reload or in a second tab, or after the reader has left. The text is
stored every second, which also shows other processes that the writer is alive. Answers written by a different process
are watched through the database.
"""

from __future__ import annotations

import logging
import re
import time
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import replace
from threading import Event, Lock, Thread
from typing import NamedTuple
from uuid import UUID

from psycopg.types.json import Jsonb

from rag.answering.citations import citation_to_json
from rag.answering.concurrency_limit import AnswerSlot, AnswerSlots
from rag.answering.events import QUEUED, StepEvent, TextEvent
from rag.answering.live_answer import LiveAnswer, Snapshot, StoredAnswer, StoredRow
from rag.answering.pipeline import Answerer
from rag.errors import (
    DatabaseUnavailable,
    InvalidInput,
    NotFound,
    QuestionEmpty,
    QuestionTooLong,
    RagError,
    TooManyRequests,
)
from rag.language import N_
from rag.monitoring import metrics
from rag.monitoring.tracing import span
from rag.profiles import profile_of
from rag.profiles.profile import Options, Profile
from rag.records.chat_logs import PARTIAL_TEXT
from rag.records.conversations import Conversations, title_from_question
from rag.storage.database import Database
from rag.storage.sql import queries
from rag.types import (
    ChatMessage,
    Identity,
    Message,
    MessageState,
    Question,
    narrowing,
)

__all__ = ["LiveAnswer", "LiveAnswers", "Snapshot", "clean_question"]

log = logging.getLogger(__name__)

#: The tenant, and the account or API key.
Owner = tuple[str, UUID]
FLUSH_SECONDS = 1.0
#: Seconds a finished answer stays available here, with its follow-up questions.
KEEP_SECONDS = 60.0
#: Seconds `stop_all` waits for the threads to store their text; less than the server waits for open streams.
SHUTDOWN_SECONDS = 1.5
#: The limit from Unicode's Stream-Safe Text Format (UAX #15); languages use only a few marks.
MARKS_ON_A_LETTER = 30
#: Seconds between the pieces of an answer; each piece is read, checked and sent as a whole. The second value applies
#: while more than `CROWD` answers are being written. The third applies while more than `RUSH` readers wait for their
#: first word, which then matters more than smooth text.
PACE_SECONDS = 0.09
CROWDED_PACE_SECONDS = 0.12
RUSH_PACE_SECONDS = 0.15
CROWD, RUSH = 30, 8
PULSE_SECONDS, CROWDED_PULSE_SECONDS = 0.25, 0.4
#: The most messages read from the conversation as history; tokens limit how many are used.
HISTORY_MESSAGES = 8
MANY = "{most} answers are being written for you at this moment. Wait for one of them to end, or stop it."
RETRY_SECONDS = 5
BUSY = "An answer is still being written in this conversation. Wait for it to end, or stop it."
SHUT_DOWN = N_("The application was shut down while this answer was being written.")


class _StoredQuestion(NamedTuple):
    conversation_id: UUID
    #: The stored answer's id; the answer is still empty.
    message_id: UUID
    chat_log_id: UUID


class LiveAnswers:
    """Starts answers, finds them again and stores their text."""

    def __init__(self, answerer: Answerer, conversations: Conversations, database: Database) -> None:
        self._answerer = answerer
        self._conversations = conversations
        self._database = database
        self._lock = Lock()
        self._answers: dict[UUID, LiveAnswer] = {}
        #: Answers which are starting, counted by person.
        self._beginning: Counter[Owner] = Counter()
        #: How many answers are being written here.
        self._under_way = 0
        #: How many answers have no text yet.
        self._without_text = 0
        self._slots = AnswerSlots(lambda: answerer.settings)
        self._keeper: Thread | None = None
        self._closing = Event()

    def ask(
        self,
        question: Question,
        *,
        conversation_id: UUID | None = None,
        options: Options | None = None,
        is_again: bool = False,
    ) -> LiveAnswer:
        """Store a question, start the answer, and return the answer in progress.

        Without `conversation_id`, create a conversation titled with the question. Otherwise the conversation's messages
        replace the question's history. `options` override collection settings and the question's filters. If
        `is_again`, the reader repeats the last question, and the model does not get the earlier answer.

        Raises `QuestionEmpty`, `QuestionTooLong` and `DatabaseUnavailable`. Raises `NotFound` for someone else's
        conversation or collection, `InvalidInput` while the conversation has an unfinished answer, `TooManyRequests`
        while this person has the maximum number of answers in progress, and `Saturated` while this process is full.
        """
        with self._place(question.identity) as give_up_place:
            slot = self._slots.take()
            try:
                options = options or Options()
                question = self._prepare(question, conversation_id, options, is_again=is_again)
                profile = options.applied_to(profile_of(question.collection))
                stored = self._store_question(question, conversation_id)
                return self._begin(question, stored, profile, give_up_place, slot)
            except BaseException:
                slot.end()
                raise

    def _prepare(
        self, question: Question, conversation_id: UUID | None, options: Options, *, is_again: bool
    ) -> Question:
        """Clean the question, and add the filters and the conversation's latest messages. Raises `NotFound`."""
        text = clean_question(question.text, maximum_characters=self._answerer.settings.maximum_question_characters)
        identity = question.identity
        if any(collection.tenant_id != identity.tenant_id for collection in (question.collection, *question.others)):
            raise NotFound
        history = tuple(question.history)
        if conversation_id is not None:
            messages = self._conversations.messages(identity, conversation_id, last=HISTORY_MESSAGES + 2 * is_again)
            history = _history(_before(messages, text) if is_again else messages)
        filters = options.filters or question.filters
        return replace(question, text=text, history=history[-HISTORY_MESSAGES:], filters=filters)

    def _begin(
        self,
        question: Question,
        stored: _StoredQuestion,
        profile: Profile,
        give_up_place: Callable[[], None],
        slot: AnswerSlot,
    ) -> LiveAnswer:
        live = LiveAnswer(
            message_id=stored.message_id,
            conversation_id=stored.conversation_id,
            question=question.text,
            owner=(question.identity.tenant_id, question.identity.account_id),
            on_forced_end=self._save,
        )
        with self._lock:
            self._answers[live.message_id] = live
            # From here on, the answer itself counts against the limit.
            give_up_place()
            self._under_way += 1
            self._without_text += 1
            if self._keeper is None or not self._keeper.is_alive():
                self._keeper = Thread(target=self._keep, name="answers-keeper", daemon=True)
                self._keeper.start()
        started = time.perf_counter()
        metrics.answers_under_way.inc()
        metrics.answers_waiting.inc()

        def work() -> None:
            has_text = False
            try:
                slot.wait(live.cancel, lambda before: live.take(StepEvent(QUEUED, str(before))))
                for event in self._answerer.answer(
                    question,
                    profile=profile,
                    cancel=live.cancel,
                    chat_log_id=stored.chat_log_id,
                    on_step=live.take,
                    every_seconds=self.pace_seconds,
                ):
                    live.take(event)
                    if not has_text and isinstance(event, TextEvent):
                        has_text = True
                        metrics.first_text.observe(time.perf_counter() - started)
                        metrics.answers_waiting.dec()
                        with self._lock:
                            self._without_text -= 1
            except Exception:
                log.exception("an answer ended unexpectedly")
                live.fail(str(RagError()))
            finally:
                self._save(live)
                metrics.answers.labels(live.outcome or "failed").observe(time.perf_counter() - started)
                metrics.answers_under_way.dec()
                metrics.answers_waiting.dec(not has_text)
                with self._lock:
                    self._under_way -= 1
                    self._without_text -= not has_text
                slot.end()
                live.set_done()

        def traced() -> None:
            attributes = {
                "gen_ai.operation.name": "invoke_agent",
                "gen_ai.conversation.id": str(stored.conversation_id),
                "rag.chat_log.id": str(stored.chat_log_id),
                "rag.profile": profile.name,
            }
            with span("invoke_agent", attributes) as begun:
                work()
                begun.set_attribute("rag.outcome", live.outcome or "failed")

        # Daemon threads: a hanging provider must not keep the process alive. The thread gets the caller's context, so
        # logs and traces of the answer belong to the request.
        Thread(target=copy_context().run, args=(traced,), name=f"answer-{live.message_id}", daemon=True).start()
        return live

    @contextmanager
    def _place(self, identity: Identity) -> Iterator[Callable[[], None]]:
        """Count a starting answer towards the person's limit while the `with` block runs.

        Yields a function which ends the reservation early; callers must hold the lock. Raises `TooManyRequests`.
        """
        settings, owner = self._answerer.settings, (identity.tenant_id, identity.account_id)
        # An API key stands for several people.
        most = settings.answers_at_once if identity.is_person else settings.key_answers_at_once
        with self._lock:
            under_way = sum(live.owner == owner and not live.is_done for live in self._answers.values())
            if most and under_way + self._beginning[owner] >= most:
                raise TooManyRequests(MANY.format(most=most), wait_seconds=RETRY_SECONDS)
            self._beginning[owner] += 1
        is_reserved = True

        def give_up() -> None:
            nonlocal is_reserved
            if is_reserved:
                is_reserved = False
                self._beginning[owner] -= 1
                if not self._beginning[owner]:
                    del self._beginning[owner]

        try:
            yield give_up
        finally:
            with self._lock:
                give_up()

    def find(self, identity: Identity, message_id: UUID) -> LiveAnswer | None:
        """Find a person's answer: in progress in any process, or finished in this process less than a minute ago.

        Returns `None` for someone else's answer and for older answers; `Conversations.messages` returns older answers.
        """
        if (live := self.find_here(identity, message_id)) is not None:
            return live
        row = self._read(identity, message_id)
        if row is None or row.state != MessageState.STREAMING:
            return None
        if self._close_abandoned_in(identity, row.conversation_id):
            return None
        return StoredAnswer(
            row,
            question=row.question,
            owner=(identity.tenant_id, identity.account_id),
            read=lambda: self._read(identity, message_id),
            request_stop=lambda: self._request_stop(identity, message_id),
        )

    def find_here(self, identity: Identity, message_id: UUID) -> LiveAnswer | None:
        """Find a person's answer among this process's answers, without querying the database.

        Answers are found while being written, and for a minute afterwards. Returns `None` for a different person's
        answer.
        """
        with self._lock:
            live = self._answers.get(message_id)
        return live if live is not None and live.owner == (identity.tenant_id, identity.account_id) else None

    def active_here(self, identity: Identity, conversation_id: UUID) -> LiveAnswer | None:
        """Return the answer which this process is writing in a person's conversation, without querying the database."""
        owner = (identity.tenant_id, identity.account_id)
        with self._lock:
            answers = [a for a in self._answers.values() if a.conversation_id == conversation_id and a.owner == owner]
        return next((live for live in answers if not live.is_done), None)

    def active(self, identity: Identity, conversation_id: UUID) -> LiveAnswer | None:
        """Return the answer in progress in a person's conversation, from any process."""
        if (live := self.active_here(identity, conversation_id)) is not None:
            return live
        message_id = self._database.fetch_value(
            identity,
            "find_active_answer",
            conversation_id=conversation_id,
            account_id=identity.account_id,
        )
        return self.find(identity, message_id) if message_id else None

    def pace_seconds(self) -> float:
        """Return the seconds between pieces of text. More with many readers, because each piece costs time."""
        if self.is_rushed:
            return RUSH_PACE_SECONDS
        return PACE_SECONDS if self._under_way <= CROWD else CROWDED_PACE_SECONDS

    @property
    def has_capacity(self) -> bool:
        """Whether this process accepts more people. Becomes false shortly before all slots are taken."""
        return self._slots.has_capacity

    @property
    def is_rushed(self) -> bool:
        """Whether many readers are waiting for their first word."""
        return self._without_text > RUSH

    def pulse_seconds(self) -> float:
        """Return the seconds between a waiting page's checks for clicks. More with many readers, because checks cost
        time.
        """
        return PULSE_SECONDS if self._under_way <= CROWD else CROWDED_PULSE_SECONDS

    def close_abandoned(self, tenant_id: str, *, quiet_seconds: float | None = None) -> int:
        """Close a tenant's answers left behind by a dead process, and return their number.

        An answer is abandoned after 15 seconds without a sign of life, or after `quiet_seconds` if given. Use 0 when
        the only process starts. If a process dies later, an answer left behind is closed when next opened.
        """
        return self._answerer.chat_logs.close_abandoned(tenant_id, quiet_seconds=quiet_seconds)

    def stop_all(self) -> None:
        """Stop all answers and store their text, when the process ends. Returns within a few seconds."""
        self._closing.set()
        with self._lock:
            running = [live for live in self._answers.values() if not live.is_done]
        for live in running:
            live.notice = f"{SHUT_DOWN} {PARTIAL_TEXT}" if live.text else SHUT_DOWN
            live.cancel.set()
        deadline = time.monotonic() + SHUTDOWN_SECONDS
        for live in running:
            live.stop(wait_seconds=max(0.0, deadline - time.monotonic()))

    # Storing

    def _store_question(self, question: Question, conversation_id: UUID | None) -> _StoredQuestion:
        """Store question, log row and empty answer in a single transaction."""
        stored = self._try_to_store(question, conversation_id)
        # Close an unfinished answer left by a dead process and try again.
        if stored is None and conversation_id and self._close_abandoned_in(question.identity, conversation_id):
            stored = self._try_to_store(question, conversation_id)
        if stored is None:
            raise InvalidInput(BUSY)
        return stored

    def _try_to_store(self, question: Question, conversation_id: UUID | None) -> _StoredQuestion | None:
        """Store the question; return `None` without storing if the conversation has an unfinished answer.

        Raises `NotFound`.
        """
        identity, collection_id = question.identity, question.collection.id
        with self._database.writing(identity) as pipeline:
            if conversation_id is None:
                title = title_from_question(question.text)
                conversation_id = self._conversations.create_within(pipeline, identity, collection_id, title).id
                where = {"conversation_id": conversation_id}
            else:
                where = {"conversation_id": conversation_id, "account_id": identity.account_id}
                locked = pipeline.run(queries["lock_conversation"], where)
                busy = pipeline.run(queries["has_streaming_answer"], where)
                if locked.fetchone() is None:
                    raise NotFound
                if (streaming := busy.fetchone()) and streaming[0]:
                    return None
            chat_log_id = self._answerer.chat_logs.open(question, conversation_id=conversation_id, within=pipeline)
            message_scope = where | {"limited_to": question.limited_to or None}
            user_message = {"role": "user", "content": question.text, "state": "complete", "chat_log_id": None}
            assistant_message = {"role": "assistant", "content": "", "state": "streaming", "chat_log_id": chat_log_id}
            pipeline.run(queries["add_message"], message_scope | user_message)
            added = pipeline.run(queries["add_message"], message_scope | assistant_message)
            scope = {
                "asks_all": bool(question.others),
                "narrowed_to": Jsonb(narrowing(question.document_ids, question.filters)),
            }
            pipeline.run(queries["touch_conversation"], where | scope)
            pipeline.run(queries["note_last_collection"], {"collection_id": collection_id})
            pipeline.finish()
            row = added.fetchone()
        assert row is not None  # noqa: S101  an INSERT … RETURNING that did not raise has a row
        return _StoredQuestion(conversation_id, row[0], chat_log_id)

    def _save(self, live: LiveAnswer) -> None:
        """Store a finished answer. If the database is unavailable, `_keep` tries again."""
        with live.saving:
            try:
                self._database.execute(
                    live.owner[0],
                    "finish_answer",
                    message_id=live.message_id,
                    content=live.text,
                    state=live.state.value,
                    notice=live.notice,
                    citations=Jsonb([citation_to_json(citation, live.kind) for citation in live.citations]),
                )
                live.is_saved = True
            except DatabaseUnavailable:
                log.error("an answer could not be stored; trying again")
                live.is_saved = False

    def _keep(self) -> None:
        """Store the unfinished answers every second, in a separate thread.

        Also stop answers which a different process stopped or deleted, and forget finished answers after a minute.
        """
        while not self._closing.wait(FLUSH_SECONDS):
            with self._lock:
                answers = list(self._answers.values())
                if not answers and not self._answerer.chat_logs.has_postponed:
                    self._keeper = None
                    return
            try:
                self._flush([live for live in answers if not live.is_done])
                for live in answers:
                    if live.is_done and not live.is_saved:
                        self._save(live)
                self._answerer.chat_logs.close_postponed()
            except DatabaseUnavailable:
                log.warning("the text so far could not be stored; trying again")
            except Exception:
                log.exception("the text so far could not be stored; trying again")
            with self._lock:
                for live in answers:
                    if live.is_done and live.is_saved and live.seconds_since_done > KEEP_SECONDS:
                        self._answers.pop(live.message_id, None)

    def _flush(self, running: list[LiveAnswer]) -> None:
        by_tenant: Mapping[str, list[LiveAnswer]] = defaultdict(list)
        for live in running:
            by_tenant[live.owner[0]].append(live)
        for tenant_id, answers in by_tenant.items():
            with self._database.transaction(tenant_id) as connection:
                rows = connection.execute(
                    queries["flush_answers"],
                    {
                        "ids": [live.message_id for live in answers],
                        "texts": [live.text for live in answers],
                        "elapsed_ms": [live.elapsed_ms for live in answers],
                    },
                ).fetchall()
            streaming_ids = {row[0] for row in rows}
            for live in answers:
                if live.message_id not in streaming_ids and not live.is_done:
                    live.cancel.set()

    # Answers of other processes

    def _read(self, identity: Identity, message_id: UUID) -> StoredRow | None:
        return self._database.fetch_one(
            identity,
            "find_answer",
            StoredRow,
            message_id=message_id,
            account_id=identity.account_id,
        )

    def _request_stop(self, identity: Identity, message_id: UUID) -> None:
        self._database.execute(identity, "stop_answer", message_id=message_id, account_id=identity.account_id)

    def _close_abandoned_in(self, identity: Identity, conversation_id: UUID) -> int:
        return self._answerer.chat_logs.close_abandoned(identity.tenant_id, conversation_id=conversation_id)


def clean_question(text: str, *, maximum_characters: int) -> str:
    """Return the question without NUL, control and invisible direction characters. HTML tags are kept as plain text.

    Raises `QuestionEmpty`, or `QuestionTooLong` with the length and the limit.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n").encode("utf-8", "ignore").decode()
    text = re.sub(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufeff]", "", text).strip()
    text = _stream_safe(text)
    if not text.strip("\u200b\u200c\u200d\u2060\u3164\u00ad \t\n"):
        raise QuestionEmpty
    if len(text) > maximum_characters:
        raise QuestionTooLong(
            f"This question has {len(text):,} characters; at most {maximum_characters:,} are possible. Make it shorter."
        )
    return text


def _stream_safe(text: str) -> str:
    """Limit the combining marks per letter. Unicode normalisation takes time quadratic in their number."""
    if text.isascii():
        return text
    characters, marks = [], 0
    for character in text:
        marks = marks + 1 if unicodedata.combining(character) else 0
        if marks <= MARKS_ON_A_LETTER:
            characters.append(character)
    return "".join(characters)


def _before(messages: list[Message], text: str) -> list[Message]:
    """Remove the exchanges at the end in which the user's message is exactly `text`."""
    while len(messages) > 1 and messages[-2].role == "user" and messages[-2].content == text:
        messages = messages[:-2]
    return messages


def _history(messages: list[Message]) -> tuple[ChatMessage, ...]:
    return tuple(
        ChatMessage(role=message.role, content=message.content)
        for message in messages
        if message.content.strip() and message.state != MessageState.STREAMING
    )
