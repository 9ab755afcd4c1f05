"""Run test questions through the product, store each result, and compare runs.

Every question is answered like a person's question, and is logged as an evaluation. A result is stored before the next
question starts: an interrupted run continues at the next question, and pays for no answer twice.

A single process at a time works on a run. The process renews a claim in the run's row; if the process is killed, the
claim expires within a minute. If several answers in a row fail, for example because a key is rejected, the run is
interrupted too, because these failures say nothing about the documents.
"""

from __future__ import annotations

import builtins
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from threading import Event, Lock, Thread
from typing import Any, Literal
from uuid import UUID, uuid4

from psycopg.types.json import Jsonb

from rag.access.sessions import require_admin
from rag.answering.events import ContextEvent, DoneEvent, TextEvent
from rag.answering.pipeline import Answerer
from rag.errors import DatabaseUnavailable, InvalidInput, NotFound, ProviderUnavailable, RagError
from rag.evaluation.golden import GoldenQuestion, golden_from_json
from rag.evaluation.judging import Judge
from rag.evaluation.metrics import Comparison, EvaluatedAnswer, compare, figures_of, means
from rag.ingestion.document_jobs import JobControl
from rag.profiles import DEFAULT, profile_by_name, profile_of
from rag.profiles.profile import Profile
from rag.retrieval.retriever import Retriever
from rag.storage.collections import find_collections
from rag.storage.database import Database
from rag.storage.sql import queries
from rag.types import Collection, Identity, Outcome, Question, Role, Who

log = logging.getLogger("rag.evaluation")

MAXIMUM_LISTED = 50
#: Proposals to check by search: some ten milliseconds each, while a person waits.
MAXIMUM_CHECKED = 24
#: After this many consecutive failures, the answering service is considered down.
MOST_FAILURES = 3
#: Seconds a claim on a run is valid without renewal, and the share after which it is renewed.
CLAIM_SECONDS, RENEWED_AFTER = 60.0, 0.25
ALREADY_RUNNING = "This test run is already under way elsewhere. Open it again when it has ended."
INTERRUPTED = "The test run was interrupted after {done} of {questions} questions: {why}"
#: Where proposals come from.
Source = Literal["feedback", "gaps", "documents"]


@dataclass(frozen=True, kw_only=True)
class Run:
    """An evaluation run: its settings, progress, and mean metrics."""

    id: UUID
    collection_id: UUID
    collection: str
    profile: str
    model: str
    overrides: dict[str, Any]
    questions: int
    done: int
    figures: dict[str, float]
    created_at: datetime
    finished_at: datetime | None
    #: Whether a model checks the answers as well.
    is_judged: bool = False
    #: Whether it is a nightly run, with the collection's questions and settings.
    is_nightly: bool = False
    #: Whether a process is asking its questions now.
    is_worked_on: bool = False


@dataclass(frozen=True, kw_only=True)
class Result:
    """The metrics for one question in a run."""

    place: int
    figures: dict[str, float]
    chat_log_id: UUID | None
    outcome: str
    answer: str


@dataclass(frozen=True)
class _Proposal:
    question: str
    document: str
    answer: str
    language: str
    pages: list[int]
    is_answerable: bool
    asked_as: str


@dataclass(frozen=True)
class _Golden:
    id: UUID
    golden: dict[str, Any]


@dataclass(frozen=True)
class _EvaluatedQuestion:
    place: int
    chat_log_id: UUID
    reply: EvaluatedAnswer
    notice: str


class Evaluations:
    """Store test questions, run them, and compare runs."""

    def __init__(self, database: Database, answerer: Answerer, judge: Judge, by_words: Retriever) -> None:
        """`by_words` is a retriever which makes no paid calls, for checking questions proposed from documents."""
        self._database = database
        self._answerer = answerer
        self._by_words = by_words
        self._control = JobControl(database)
        self.judge = judge
        self._cancel = Event()
        #: Stops each answer in progress.
        self._asking: set[Event] = set()
        self._running: set[UUID] = set()
        #: Why this process's runs were interrupted.
        self._troubles: dict[UUID, str] = {}
        self._lock = Lock()
        #: Background runs take turns, because each run asks without pause.
        self._turn = Lock()

    # Test questions

    def golden(self, who: Who, collection_id: UUID) -> dict[UUID, GoldenQuestion]:
        """Return a collection's test questions by id, in the order they were added."""
        rows = self._database.fetch_all(who, "list_golden_questions", _Golden, collection_id=collection_id)
        return {row.id: golden_from_json(row.golden) for row in rows}

    def add_golden(self, who: Who, collection: Collection, questions: Sequence[GoldenQuestion]) -> None:
        """Add test questions. For administrators. A question with the same words as a stored question replaces it."""
        require_admin(who)
        with self._database.transaction(who) as connection:
            for question in questions:
                row = {"collection_id": collection.id, "golden": Jsonb(question.to_json())}
                connection.execute(queries["put_golden_question"], row)

    def change_golden(self, who: Who, collection: Collection, golden_id: UUID, question: GoldenQuestion) -> None:
        """Replace a test question. For administrators; raises `NotFound`."""
        require_admin(who)
        row = {"id": golden_id, "collection_id": collection.id, "golden": Jsonb(question.to_json())}
        with self._database.transaction(who) as connection:
            connection.execute(queries["delete_same_golden_question"], row)
            if not connection.execute(queries["change_golden_question"], row).rowcount:
                raise NotFound

    def remove_golden(self, who: Who, golden_ids: Sequence[UUID]) -> str:
        """Remove test questions, and return a value for `put_golden_back`. For administrators; raises `NotFound`."""
        require_admin(who)
        removed = self._database.fetch_value(who, "delete_golden_questions", ids=[*golden_ids])
        if removed is None:
            raise NotFound
        return str(removed)

    def put_golden_back(self, who: Who, removed: str) -> None:
        """Restore removed test questions. For administrators; raises `InvalidInput` if their collection is gone."""
        require_admin(who)
        self._database.put_back(who, "put_golden_questions_back", kept=removed)

    def proposals(
        self, who: Who, collection_id: UUID, source: Source, document_id: UUID | None = None
    ) -> builtins.list[GoldenQuestion]:
        """Return proposed test questions, made from answers rated helpful, from gaps, or from documents.

        Questions from documents were written by the tagging model or come from headings. They are proposed only if
        their document is the first hit in a keyword search. The hit's pages become the expected pages.
        """
        rows = self._database.fetch_all(
            who, f"golden_from_{source}", _Proposal, collection_id=collection_id, document_id=document_id,
            limit=MAXIMUM_LISTED,
        )  # fmt: skip
        proposed = [
            GoldenQuestion(
                question=row.question, document=row.document, answer=row.answer, language=row.language,
                pages=tuple(row.pages), is_answerable=row.is_answerable, tags=(source,), asked_as=row.asked_as,
            )
            for row in rows
        ]  # fmt: skip
        if source != "documents":
            return proposed
        collections = find_collections(self._database, who, collection_id=collection_id)
        if not collections:
            return []
        checked = [self._with_pages(collections[0], golden) for golden in proposed[:MAXIMUM_CHECKED]]
        return [golden for golden in checked if golden is not None]

    def _with_pages(self, collection: Collection, golden: GoldenQuestion) -> GoldenQuestion | None:
        """Set the expected pages in a question to the first hit's pages.

        Returns `None` if the first hit is in a different document.
        """
        program = Identity(
            account_id=UUID(int=0), tenant_id=collection.tenant_id, email="", name="program", role=Role.ADMIN
        )
        question = Question(
            text=golden.question, identity=program, collection=collection, language=golden.language or None
        )
        try:
            context = self._by_words.retrieve_context(question, profile=DEFAULT)
        except RagError:
            return None
        if not context.citations or context.citations[0].file_name != golden.document:
            return None
        best = context.citations[0]
        return replace(golden, pages=tuple(range(best.first_page, best.last_page + 1)))

    # Runs

    def begin(
        self,
        collection: Collection,
        profile: Profile,
        golden: Sequence[GoldenQuestion],
        *,
        model: str = "",
        is_judged: bool = False,
        is_nightly: bool = False,
    ) -> UUID:
        """Store a new run and return its id. Raises `InvalidInput`.

        `model` replaces the profile's chat model. With `is_judged`, a model also judges the answers, at one paid call
        per answer.
        """
        if not golden:
            raise InvalidInput("There are no test questions. Add some, or name a file with test questions.")
        if is_judged and not self.judge.model(profile):
            raise InvalidInput("No model can check the answers: no provider is set up. Paste a key on the page Set-up.")
        base = profile_by_name(profile.name)
        overrides = {name: values[1] for name, values in base.differences(profile).items()}
        overrides |= {"chat_model": model} if model else {}
        run_id = self._database.fetch_value(
            collection.tenant_id,
            "open_evaluation_run",
            collection_id=collection.id,
            profile=profile.name,
            model=model or profile.answer.chat_model,
            overrides=Jsonb(overrides),
            golden=Jsonb([question.to_json() for question in golden]),
            is_judged=is_judged,
            is_nightly=is_nightly,
        )
        return UUID(str(run_id))

    def interrupted(
        self, collection: Collection, profile: Profile, golden: Sequence[GoldenQuestion], *, since: datetime
    ) -> UUID | None:
        """Return the latest unfinished nightly run, or `None`.

        Only runs with the same questions and settings which started after `since` count.
        """
        overrides = {name: values[1] for name, values in profile_by_name(profile.name).differences(profile).items()}
        for run in self.runs(collection.tenant_id, collection.id):
            if run.finished_at is None and run.is_nightly and run.created_at >= since:
                is_same = (run.profile, run.overrides) == (profile.name, overrides)
                if is_same and self.questions(collection.tenant_id, run.id) == list(golden):
                    return run.id
        return None

    def work(
        self,
        collection: Collection,
        run_id: UUID,
        asker: Identity,
        *,
        cancel: Event | None = None,
        on_progress: Callable[[int, int], None] = lambda done, questions: None,
    ) -> Run:
        """Ask the remaining questions of a run, and return the run.

        Stops when `cancel` is set, by default when the application stops; the current question is then asked again
        later. Raises `InvalidInput` while another process works on the run, `ProviderUnavailable` if several answers
        fail in a row, `TenantSuspended` for a suspended tenant.
        """
        self._control.stop_if_suspended(collection.tenant_id)
        with self._claimed(collection.tenant_id, run_id) as worker:
            self._work(collection, run_id, worker, asker, cancel or self._cancel, on_progress)
        return self.run(collection.tenant_id, run_id)

    @contextmanager
    def _claimed(self, tenant_id: str, run_id: UUID) -> Iterator[UUID]:
        """Claim a run for this process, renew the claim inside the `with` block, and yield the worker's id.

        Raises `InvalidInput` if a different process works on the run.
        """
        worker = uuid4()
        claim = {"run_id": run_id, "worker": worker, "seconds": CLAIM_SECONDS}
        if not self._database.execute(tenant_id, "claim_run", **claim):
            raise InvalidInput(ALREADY_RUNNING)
        over = Event()

        def renew() -> None:
            while not over.wait(CLAIM_SECONDS * RENEWED_AFTER):
                # Without the database, storing the results fails anyway.
                with suppress(DatabaseUnavailable):
                    self._database.execute(tenant_id, "claim_run", **claim)

        renewal = Thread(target=renew, name=f"claim of run {run_id}", daemon=True)
        renewal.start()
        try:
            yield worker
        finally:
            over.set()
            renewal.join()
            with suppress(DatabaseUnavailable):  # then it runs out
                self._database.execute(tenant_id, "release_run", run_id=run_id, worker=worker)

    def _work(
        self,
        collection: Collection,
        run_id: UUID,
        worker: UUID,
        asker: Identity,
        cancel: Event,
        on_progress: Callable[[int, int], None],
    ) -> None:
        run = self.run(collection.tenant_id, run_id)
        profile = profile_by_name(run.profile).changed(**run.overrides)
        golden = self.questions(collection.tenant_id, run_id)
        done = {result.place: result.figures for result in self.results(collection.tenant_id, run_id)}
        failed: list[_EvaluatedQuestion] = []
        has_answered = False

        def keep(evaluated: _EvaluatedQuestion) -> None:
            done[evaluated.place] = self._measured(run, worker, profile, golden[evaluated.place], evaluated, asker)
            on_progress(len(done), len(golden))

        def interrupted() -> ProviderUnavailable:
            why = failed[-1].notice or str(ProviderUnavailable())
            return ProviderUnavailable(INTERRUPTED.format(done=len(done), questions=len(golden), why=why))

        for place, question in enumerate(golden):
            if place in done:
                continue
            if cancel.is_set():
                return
            evaluated = self._ask(collection, profile, question, asker, place=place)
            if evaluated.reply.outcome is Outcome.STOPPED:
                return
            if evaluated.reply.outcome is Outcome.FAILED:
                failed.append(evaluated)
                if len(failed) == MOST_FAILURES:
                    raise interrupted()
                continue
            has_answered = True
            # If other questions are answered, earlier failures are informative, too.
            for answered in (*failed, evaluated):
                keep(answered)
            failed.clear()
        if failed and not has_answered:
            raise interrupted()
        for answered in failed:
            keep(answered)
        figures = Jsonb(means([done[place] for place in sorted(done)]))
        end = {"run_id": run_id, "worker": worker, "figures": figures}
        if not self._database.execute(collection.tenant_id, "finish_evaluation_run", **end):
            raise InvalidInput(ALREADY_RUNNING)

    def _measured(
        self,
        run: Run,
        worker: UUID,
        profile: Profile,
        golden: GoldenQuestion,
        evaluated: _EvaluatedQuestion,
        asker: Identity,
    ) -> dict[str, float]:
        """Measure an answer, store the metrics and return them.

        Raises `InvalidInput` if a different process has taken over the run.
        """
        reply = evaluated.reply
        figures = figures_of(golden, reply)
        if run.is_judged and reply.outcome in (Outcome.ANSWERED, Outcome.PERHAPS):
            share = self.judge.share_supported(asker, profile, evaluated.chat_log_id, reply.answer, reply.cited)
            figures |= {} if share is None else {"grounded_by_model": share}
        stored = self._database.execute(
            asker.tenant_id,
            "add_evaluation_result",
            run_id=run.id,
            worker=worker,
            place=evaluated.place,
            chat_log_id=evaluated.chat_log_id,
            figures=Jsonb(figures),
        )
        if not stored:
            raise InvalidInput(ALREADY_RUNNING)
        return figures

    def start(
        self,
        identity: Identity,
        collection: Collection,
        golden: Sequence[GoldenQuestion],
        profile: Profile | None = None,
        *,
        model: str = "",
        is_judged: bool = False,
    ) -> UUID:
        """Start a run in the background, by default with the collection's profile, and return its id.

        For administrators.
        """
        require_admin(identity)
        run_id = self.begin(collection, profile or profile_of(collection), golden, model=model, is_judged=is_judged)
        self.go_on(identity, collection, run_id)
        return run_id

    def go_on(self, identity: Identity, collection: Collection, run_id: UUID) -> None:
        """Continue an interrupted run in the background, unless a process is working on it. For administrators."""
        require_admin(identity)
        if self.run(identity, run_id).is_worked_on:
            return
        with self._lock:
            if run_id in self._running or self._cancel.is_set():
                return
            self._running.add(run_id)
            self._troubles.pop(run_id, None)

        def work() -> None:
            try:
                with self._turn:
                    self.work(collection, run_id, identity)
            except RagError as exc:
                log.warning("run %s was interrupted: %s", run_id, exc.message)
                self._troubles[run_id] = exc.message
            except Exception:
                log.exception("run %s was interrupted", run_id)
            finally:
                with self._lock:
                    self._running.discard(run_id)

        Thread(target=work, name=f"evaluation {run_id}", daemon=True).start()

    def trouble(self, run_id: UUID) -> str:
        """Return why a run in this process was interrupted; "" if it was not."""
        return self._troubles.get(run_id, "")

    def is_running(self, run_id: UUID) -> bool:
        """Whether this process is working on a run."""
        with self._lock:
            return run_id in self._running

    def stop(self) -> None:
        """Stop all runs in this process; they can be continued later."""
        with self._lock:
            self._cancel.set()
            for cancel in self._asking:
                cancel.set()

    def ask_again(self, identity: Identity, collection: Collection, question: str, profile: Profile) -> UUID:
        """Ask a question with another profile, and return the id of the log row.

        The question is logged as an evaluation, not as a person's question. Its cost is in the ledger.
        """
        return self._ask(collection, profile, GoldenQuestion(question=question), identity).chat_log_id

    def runs(self, who: Who, collection_id: UUID | None = None) -> builtins.list[Run]:
        """Return the tenant's or a collection's runs, newest first."""
        return self._database.fetch_all(
            who, "evaluation_runs", Run, run_id=None, collection_id=collection_id, limit=MAXIMUM_LISTED
        )

    def run(self, who: Who, run_id: UUID) -> Run:
        """Return one run. Raises `NotFound`."""
        run = self._database.fetch_one(who, "evaluation_runs", Run, run_id=run_id, collection_id=None, limit=1)
        if run is None:
            raise NotFound
        return run

    def results(self, who: Who, run_id: UUID) -> builtins.list[Result]:
        """Return a run's metrics by question, in order."""
        return self._database.fetch_all(who, "evaluation_results", Result, run_id=run_id)

    def questions(self, who: Who, run_id: UUID) -> builtins.list[GoldenQuestion]:
        """Return a run's questions in their wording at the start. Raises `NotFound`."""
        rows = self._database.fetch_value(who, "evaluation_golden", run_id=run_id)
        if rows is None:
            raise NotFound
        return [golden_from_json(row) for row in rows]

    def compare(self, who: Who, first: UUID, second: UUID) -> builtins.list[Comparison]:
        """Compare two runs over their common questions. Raises `NotFound`, and `InvalidInput` without common
        questions.
        """
        figures_by_question = [
            {
                questions[result.place].question: result.figures
                for result in self.results(who, run_id)
                if result.place < len(questions)
            }
            for run_id in (first, second)
            for questions in [self.questions(who, run_id)]
        ]
        both = [question for question in figures_by_question[0] if question in figures_by_question[1]]
        if not both:
            raise InvalidInput("These two test runs have no question in common.")
        return compare(
            [figures_by_question[0][question] for question in both],
            [figures_by_question[1][question] for question in both],
        )

    def _ask(
        self,
        collection: Collection,
        profile: Profile,
        golden: GoldenQuestion,
        asker: Identity,
        *,
        place: int = 0,
    ) -> _EvaluatedQuestion:
        question = Question(text=golden.question, identity=asker, collection=collection)
        chat_log_id = self._answerer.chat_logs.open(question, kind="evaluation")
        ranked: Sequence[Any] = ()
        text, end, cancel = "", None, Event()
        with self._lock:
            self._asking.add(cancel)
        try:
            for event in self._answerer.answer(question, profile=profile, cancel=cancel, chat_log_id=chat_log_id):
                if isinstance(event, ContextEvent):
                    ranked = event.context.citations or event.context.nearest
                elif isinstance(event, TextEvent):
                    text = event.text if event.starts_over else text + event.text
                elif isinstance(event, DoneEvent):
                    end = event
        finally:
            with self._lock:
                self._asking.discard(cancel)
        assert end is not None  # noqa: S101  an answer ends with DoneEvent
        reply = EvaluatedAnswer(
            ranked=ranked,
            answer=text,
            outcome=end.outcome,
            cited=end.citations if end.kind == "cited" else (),
            total_ms=end.total_ms,
            cost=None if end.cost is None else float(end.cost),
        )
        return _EvaluatedQuestion(place, chat_log_id, reply, end.notice)
