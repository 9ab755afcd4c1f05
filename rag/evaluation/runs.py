"""Run golden questions through the product, store what each brought, and compare runs.

Every question goes the whole way of a person's, and is logged as one of an evaluation. Its result is stored before the
next is asked: a run that was interrupted goes on where it ended, and nothing is paid for twice.
"""

from __future__ import annotations

import builtins
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from threading import Event, Lock, Thread
from typing import Any, Literal
from uuid import UUID

from psycopg.types.json import Jsonb

from rag.access.sessions import require_admin
from rag.answering.events import ContextEvent, DoneEvent, TextEvent
from rag.answering.pipeline import Answerer
from rag.errors import InvalidInput, NotFound, RagError
from rag.evaluation.golden import GoldenQuestion, golden_from_json
from rag.evaluation.judging import Judge
from rag.evaluation.metrics import Comparison, Reply, compare, figures_of, means
from rag.profile import Profile
from rag.profiles import DEFAULT, profile_by_name, profile_of
from rag.retrieval.retriever import Retriever
from rag.storage.database import Database
from rag.storage.sql import queries
from rag.types import Collection, Identity, Outcome, Question, Role, Who

log = logging.getLogger("rag.evaluation")

MAXIMUM_LISTED = 50
#: Proposals that are searched for: some ten milliseconds each, while somebody waits.
MAXIMUM_CHECKED = 24
#: Where proposals come from.
Source = Literal["feedback", "gaps", "documents"]


@dataclass(frozen=True, kw_only=True)
class Run:
    """A run: with what, over how many questions, how far it came, and the means of its figures."""

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


@dataclass(frozen=True, kw_only=True)
class Result:
    """What was measured of one question."""

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


@dataclass(frozen=True)
class _Golden:
    id: UUID
    golden: dict[str, Any]


class Evaluations:
    """Keeps golden questions, runs them, and compares runs."""

    def __init__(self, database: Database, answerer: Answerer, judge: Judge, by_words: Retriever) -> None:
        """Take what they are run with; `by_words` searches for nothing, to check what documents propose."""
        self._database = database
        self._answerer = answerer
        self._by_words = by_words
        self.judge = judge
        self._cancel = Event()
        self._running: set[UUID] = set()
        self._lock = Lock()

    # Golden questions

    def golden(self, who: Who, collection_id: UUID) -> dict[UUID, GoldenQuestion]:
        """Return the golden questions of a collection by their ids, in the order in which they were added."""
        rows = self._database.fetch_all(who, "list_golden_questions", _Golden, collection_id=collection_id)
        return {row.id: golden_from_json(row.golden) for row in rows}

    def add_golden(self, who: Who, collection: Collection, questions: Sequence[GoldenQuestion]) -> None:
        """Add golden questions; one with the same words replaces the earlier. For administrators."""
        require_admin(who)
        with self._database.transaction(who) as connection:
            for question in questions:
                row = {"collection_id": collection.id, "golden": Jsonb(question.to_json())}
                connection.execute(queries["put_golden_question"], row)

    def remove_golden(self, who: Who, golden_id: UUID) -> None:
        """Remove a golden question. For administrators; raises `NotFound`."""
        require_admin(who)
        if not self._database.execute(who, "delete_golden_question", id=golden_id):
            raise NotFound

    def proposals(
        self, who: Who, collection_id: UUID, source: Source, document_id: UUID | None = None
    ) -> builtins.list[GoldenQuestion]:
        """Return questions that may become golden ones: rated as helpful, of gaps, or read from documents.

        Those of documents were written by the model that tagged them, or are about their headings; they are proposed
        where a search by words finds them answered in that document first, with the pages found.
        """
        found = self._database.fetch_all(
            who, f"golden_from_{source}", _Proposal, collection_id=collection_id, document_id=document_id,
            limit=MAXIMUM_LISTED,
        )  # fmt: skip
        proposed = [
            GoldenQuestion(
                question=row.question, document=row.document, answer=row.answer, language=row.language,
                pages=tuple(row.pages), is_answerable=row.is_answerable, tags=(source,),
            )
            for row in found
        ]  # fmt: skip
        if source != "documents":
            return proposed
        collection = self._database.fetch_one(
            who, "find_collections", Collection, collection_id=collection_id, collection_name=None
        )
        if collection is None:
            return []
        checked = [self._with_pages(collection, golden) for golden in proposed[:MAXIMUM_CHECKED]]
        return [golden for golden in checked if golden is not None]

    def _with_pages(self, collection: Collection, golden: GoldenQuestion) -> GoldenQuestion | None:
        """Return a question with the pages of its document that answer it; None where another one comes first."""
        program = Identity(
            account_id=UUID(int=0), tenant_id=collection.tenant_id, email="", name="program", role=Role.ADMIN
        )
        question = Question(text=golden.question, identity=program, collection=collection)
        try:
            found = self._by_words.retrieve_context(question, profile=DEFAULT, language=golden.language or None)
        except RagError:
            return None
        if not found.citations or found.citations[0].file_name != golden.document:
            return None
        best = found.citations[0]
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
    ) -> UUID:
        """Store a run that is to be made; `model` answers in place of the profile's.

        With `is_judged` a model checks the answers as well, one paid call each. Raises `InvalidInput`.
        """
        if not golden:
            raise InvalidInput("There are no golden questions. Add some, or name a file that has them.")
        if is_judged and not self.judge.model(profile):
            raise InvalidInput("No model can check the answers: no provider is set up. Paste a key on the page Set-up.")
        base = profile_by_name(profile.name)
        overrides = {name: values[1] for name, values in base.differences(profile).items()}
        overrides |= {"chat_model": model} if model else {}
        found = self._database.fetch_value(
            collection.tenant_id,
            "open_evaluation_run",
            collection_id=collection.id,
            profile=profile.name,
            model=model or profile.answer.chat_model,
            overrides=Jsonb(overrides),
            golden=Jsonb([question.to_json() for question in golden]),
            is_judged=is_judged,
        )
        return UUID(str(found))

    def work(
        self,
        collection: Collection,
        run_id: UUID,
        asker: Identity,
        *,
        cancel: Event | None = None,
        on_progress: Callable[[int, int], None] = lambda done, questions: None,
    ) -> Run:
        """Ask what a run has not asked yet, and return it; with `cancel` set it ends after the present question."""
        run = self.run(collection.tenant_id, run_id)
        profile = profile_by_name(run.profile).changed(**run.overrides)
        golden = self.questions(collection.tenant_id, run_id)
        done = {result.place: result.figures for result in self.results(collection.tenant_id, run_id)}
        for place, question in enumerate(golden):
            if place in done:
                continue
            if cancel is not None and cancel.is_set():
                return self.run(collection.tenant_id, run_id)
            chat_log_id, reply = self._ask(collection, profile, question, asker)
            done[place] = figures_of(question, reply)
            if run.is_judged and reply.outcome in (Outcome.ANSWERED, Outcome.PERHAPS):
                share = self.judge.share_supported(asker, profile, chat_log_id, reply.answer, reply.cited)
                done[place] |= {} if share is None else {"grounded_by_model": share}
            self._database.execute(
                collection.tenant_id,
                "add_evaluation_result",
                run_id=run_id,
                place=place,
                chat_log_id=chat_log_id,
                figures=Jsonb(done[place]),
            )
            on_progress(len(done), len(golden))
        figures = Jsonb(means([done[place] for place in sorted(done)]))
        self._database.execute(collection.tenant_id, "finish_evaluation_run", run_id=run_id, figures=figures)
        return self.run(collection.tenant_id, run_id)

    def start(
        self,
        identity: Identity,
        collection: Collection,
        golden: Sequence[GoldenQuestion],
        profile: Profile | None = None,
        *,
        is_judged: bool = False,
    ) -> UUID:
        """Begin a run in the background, of the collection's own settings without `profile`. For administrators."""
        require_admin(identity)
        run_id = self.begin(collection, profile or profile_of(collection), golden, is_judged=is_judged)
        self.go_on(identity, collection, run_id)
        return run_id

    def go_on(self, identity: Identity, collection: Collection, run_id: UUID) -> None:
        """Go on with an interrupted run in the background; nothing where it is under way here. For administrators."""
        require_admin(identity)
        self.run(identity, run_id)
        with self._lock:
            if run_id in self._running or self._cancel.is_set():
                return
            self._running.add(run_id)

        def work() -> None:
            try:
                self.work(collection, run_id, identity, cancel=self._cancel)
            except Exception:
                log.exception("run %s was interrupted", run_id)
            finally:
                with self._lock:
                    self._running.discard(run_id)

        Thread(target=work, name=f"evaluation {run_id}", daemon=True).start()

    def is_running(self, run_id: UUID) -> bool:
        """Return whether this process works on a run."""
        with self._lock:
            return run_id in self._running

    def stop(self) -> None:
        """Have runs end after their present question; they can be gone on with."""
        self._cancel.set()

    def ask_again(self, identity: Identity, collection: Collection, question: str, profile: Profile) -> UUID:
        """Ask one question with another profile or other settings; return its row in the log.

        It counts as one of an evaluation: no question of a person, and its cost is in the ledger.
        """
        chat_log_id, _ = self._ask(collection, profile, GoldenQuestion(question=question), identity)
        return chat_log_id

    def runs(self, who: Who, collection_id: UUID | None = None) -> builtins.list[Run]:
        """Return the newest runs first."""
        return self._database.fetch_all(
            who, "evaluation_runs", Run, run_id=None, collection_id=collection_id, limit=MAXIMUM_LISTED
        )

    def run(self, who: Who, run_id: UUID) -> Run:
        """Return one run. Raises `NotFound`."""
        found = self._database.fetch_one(who, "evaluation_runs", Run, run_id=run_id, collection_id=None, limit=1)
        if found is None:
            raise NotFound
        return found

    def results(self, who: Who, run_id: UUID) -> builtins.list[Result]:
        """Return what was measured of each question, in their order."""
        return self._database.fetch_all(who, "evaluation_results", Result, run_id=run_id)

    def questions(self, who: Who, run_id: UUID) -> builtins.list[GoldenQuestion]:
        """Return the questions of a run as they were when it began. Raises `NotFound`."""
        asked = self._database.fetch_value(who, "evaluation_golden", run_id=run_id)
        if asked is None:
            raise NotFound
        return [golden_from_json(row) for row in asked]

    def compare(self, who: Who, first: UUID, second: UUID) -> builtins.list[Comparison]:
        """Compare two runs over the questions that both asked.

        Raises `NotFound`, and `InvalidInput` when there are none.
        """
        asked = [
            {
                questions[result.place].question: result.figures
                for result in self.results(who, run_id)
                if result.place < len(questions)
            }
            for run_id in (first, second)
            for questions in [self.questions(who, run_id)]
        ]
        both = [question for question in asked[0] if question in asked[1]]
        if not both:
            raise InvalidInput("These two runs asked no question in common.")
        return compare([asked[0][question] for question in both], [asked[1][question] for question in both])

    def _ask(
        self, collection: Collection, profile: Profile, golden: GoldenQuestion, asker: Identity
    ) -> tuple[UUID, Reply]:
        question = Question(text=golden.question, identity=asker, collection=collection)
        chat_log_id = self._answerer.chat_logs.open(
            asker, golden.question, collection_id=collection.id, kind="evaluation"
        )
        ranked: Sequence[Any] = ()
        text, end = "", None
        for event in self._answerer.answer(question, profile=profile, cancel=Event(), chat_log_id=chat_log_id):
            if isinstance(event, ContextEvent):
                ranked = event.context.citations or event.context.nearest
            elif isinstance(event, TextEvent):
                text = event.text if event.starts_over else text + event.text
            elif isinstance(event, DoneEvent):
                end = event
        assert end is not None  # noqa: S101  an answer ends with DoneEvent
        return chat_log_id, Reply(
            ranked=ranked,
            answer=text,
            outcome=end.outcome,
            cited=end.citations if end.kind == "cited" else (),
            total_ms=end.total_ms,
            cost=None if end.cost is None else float(end.cost),
        )
