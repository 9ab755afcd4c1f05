"""Group unanswered questions with the same meaning, across wordings and languages. A group is a gap.

A question joins the gap with the highest average similarity. If no gap is similar enough, the question opens a new gap.
Grouping runs in the background, in batches, as soon as a question is answered, rated or passed on.
"""

from __future__ import annotations

import builtins
import logging
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, Literal
from uuid import UUID

import numpy as np
from pgvector import HalfVector, Vector
from psycopg import Connection
from psycopg.types.json import Jsonb

from rag.errors import InvalidInput, NotAllowed, NotFound, RagError
from rag.language import _, speaking
from rag.records.analytics import Filters, Period
from rag.records.help_requests import HelpRequest, HelpRequests
from rag.records.time_zones import TimeZones, midnight
from rag.storage.database import Database
from rag.storage.sql import queries
from rag.types import FloatMatrix, Identity, Role, Who
from rag.types.fields import within

log = logging.getLogger(__name__)

Status = Literal["open", "solved", "dismissed"]
#: The lists of gaps: open questions unrelated to the documents have a separate list.
State = Literal["open", "off topic", "solved", "dismissed"]
#: Questions grouped in a transaction: embedding a question takes some hundredths of a second.
GROUPED_AT_ONCE = 20
MAXIMUM_REASON_CHARACTERS = 500
#: A gap is unrelated to the documents if, for every wording, the best passage's probability is lower. This holds for 2
#: in 3 questions about other subjects, and for 1 in 20 workplace questions the sample documents do not answer.
OFF_TOPIC = 0.06
MAXIMUM_ANSWER_CHARACTERS = 20_000


#: Each language's mean question vector in the built-in model: made by benchmarks/question_means.py.
MEANS = Path(__file__).with_name("question_means.npz")


@dataclass(frozen=True)
class QuestionEmbedder:
    """A model for comparing unanswered questions.

    A question joins a group of similar questions (a gap) if the mean similarity is at least `least`.
    """

    name: str
    least: float
    embed: Callable[[Sequence[str]], FloatMatrix]
    #: A language's contribution to every question vector, subtracted before comparing: otherwise, questions in the same
    #: language would be more similar to each other than to their translations.
    means: Mapping[str, Any] = field(default_factory=dict)


@cache
def question_means() -> Mapping[str, Any]:
    """Return each language's mean question vector in the built-in embedding model."""
    with np.load(MEANS) as archive:
        return {language: archive[language].astype(np.float64) for language in archive.files}


@dataclass(frozen=True, kw_only=True)
class Gap:
    """A group of unanswered questions with the same meaning (a gap), and how the gap was handled.

    Counts cover the requested period.
    """

    id: UUID
    collection_id: UUID
    status: Status
    #: Why it was dismissed.
    reason: str
    assigned_to: UUID | None
    assignee: str
    solved_by_id: UUID | None
    solved_by: str
    #: The uploaded document meant to answer it, not searchable yet.
    awaits_id: UUID | None
    times: int
    times_before: int
    people: int
    last_asked_at: datetime
    user_groups: list[str]
    languages: list[str]
    #: How many there are.
    wordings: int
    #: Answered questions rated not helpful.
    badly_rated: int
    #: People still waiting for a reply, whenever they asked.
    waiting: int
    latest_id: UUID
    #: The latest wording.
    question: str
    nearest_similarity: float
    #: The nearest document's title; "" if no document is near.
    nearest: str


@dataclass(frozen=True, kw_only=True)
class Assignee:
    id: UUID
    name: str


@dataclass(frozen=True, kw_only=True)
class _Uploaded:
    id: UUID
    document_id: UUID
    title: str
    account_id: UUID
    email: str
    name: str
    role: Role
    language: str


class Gaps:
    """Group unanswered questions into gaps, list gaps, and record how each was handled."""

    def __init__(
        self, database: Database, embedder_for: Callable[[str], QuestionEmbedder], help_requests: HelpRequests
    ) -> None:
        """`embedder_for` takes a collection's embedding model and returns the embedder for its questions."""
        self._database = database
        self._help_requests = help_requests
        self._zones = TimeZones(database)
        self._embedder_for = embedder_for
        self._lock = threading.Lock()
        self._grouping: set[str] = set()
        self._pending: set[str] = set()
        self._is_closing = threading.Event()

    def group(self, tenant_id: str, *, limit: int = GROUPED_AT_ONCE) -> int:
        """Assign up to `limit` ungrouped questions to gaps, and return how many were assigned.

        Questions from people waiting for a reply come first, then the latest questions.
        """
        with self._database.transaction(tenant_id) as connection:
            connection.execute(queries["lock_gaps"])
            rows = connection.execute(queries["ungrouped_questions"], {"limit": limit}).fetchall()
            for chat_log_id, collection_id, question, model, language in rows:
                embedder = self._embedder_for(model)
                vector = _embed(embedder, question)
                parameters = {
                    "chat_log_id": chat_log_id,
                    "gap_id": _nearest_gap(connection, embedder, collection_id, vector, language)
                    or _open_gap(connection, collection_id),
                    "embedder": embedder.name,
                    "embedding": HalfVector(vector),
                }
                connection.execute(queries["add_gap_question"], parameters)
        return len(rows)

    def group_soon(self, tenant_id: str) -> None:
        """Start grouping all ungrouped questions in a background thread."""
        with self._lock:
            self._pending.add(tenant_id)
            if tenant_id in self._grouping or self._is_closing.is_set():
                return
            self._grouping.add(tenant_id)
        threading.Thread(
            target=self._group_pending, args=(tenant_id,), name=f"gaps of {tenant_id}", daemon=True
        ).start()

    def _group_pending(self, tenant_id: str) -> None:
        while True:
            with self._lock:
                if tenant_id not in self._pending or self._is_closing.is_set():
                    self._grouping.discard(tenant_id)
                    return
                self._pending.discard(tenant_id)
            try:
                while not self._is_closing.is_set() and self.group(tenant_id) >= GROUPED_AT_ONCE:
                    pass
            except Exception as exc:
                if self._is_closing.is_set():
                    continue  # A needed resource was closed first; the next process groups them.
                reason = exc.message if isinstance(exc, RagError) else "see the error below"
                trace = None if isinstance(exc, RagError) else exc
                log.warning(
                    "questions of %s wait for the next one to be grouped: %s", tenant_id, reason, exc_info=trace
                )

    def close(self) -> None:
        """Stop grouping; called when the process ends."""
        self._is_closing.set()

    def list(
        self, who: Who, period: Period, filters: Filters, *, status: State = "open", limit: int = 200
    ) -> builtins.list[Gap]:
        """Return a period's gaps, the most frequent first.

        Gaps with people waiting for a reply come before all others, and are listed even if the questions are from
        another period. A gap is off topic if no chunk was similar, no answer was rated and no reply was requested.
        """
        return self._database.fetch_planned(
            who,
            "list_gaps",
            Gap,
            **self._span(who, period),
            collection_id=filters.collection_id,
            of_group=filters.user_group,
            language=filters.language,
            status="open" if status == "off topic" else status,
            off_topic={"open": False, "off topic": True}.get(status),
            least_probability=OFF_TOPIC,
            limit=limit,
        )

    def wordings(
        self, who: Who, gap_id: UUID, period: Period, filters: Filters, *, limit: int = 20
    ) -> builtins.list[str]:
        """Return the different wordings of a gap's question in a period, latest first."""
        with self._database.transaction(who) as connection:
            rows = connection.execute(
                queries["gap_wordings"],
                {
                    "gap_id": gap_id,
                    **self._span(who, period),
                    "of_group": filters.user_group,
                    "language": filters.language,
                    "limit": limit,
                },
            )
            return [wording for (wording,) in rows]

    def _span(self, who: Who, period: Period) -> dict[str, datetime]:
        zone = self._zones.of(who)
        return {
            "before": midnight(period.previous.first, zone),
            "start": midnight(period.first, zone),
            "end": midnight(period.last + timedelta(days=1), zone),
        }

    def solve(self, identity: Identity, gap_id: UUID, document_id: UUID, reply: str) -> int:
        """Mark a gap as solved by a document, and send `reply` to the people waiting. Return how many people got the
        reply.

        Raises `NotAllowed`, `NotFound`, and `InvalidInput` if someone else has handled the gap meanwhile.
        """
        self._change(identity, gap_id, "solved", solved_by_id=document_id)
        waiting = self.waiting(identity, gap_id)
        for request in waiting:
            self._help_requests.answer(identity, request.id, reply)
        return len(waiting)

    def await_document(self, identity: Identity, gap_id: UUID, document_id: UUID) -> None:
        """Link a gap to an uploaded document.

        When the document is searchable, `solve_awaiting` solves the gap. Raises `NotAllowed`, `NotFound`, and
        `InvalidInput` if someone else has handled the gap meanwhile.
        """
        _check_manager(identity)
        values = {"gap_id": gap_id, "document_id": document_id, "account_id": identity.account_id}
        if not self._database.execute(identity, "await_document", **values):
            self.check_open(identity, gap_id)

    def solve_awaiting(self, tenant_id: str) -> dict[UUID, int]:
        """Solve the gaps whose uploaded documents are searchable now.

        Returns how many people got a reply, by gap id. The reply is sent in the uploader's name and language.
        """
        solved = {}
        for gap in self._database.fetch_all(tenant_id, "answered_gaps", _Uploaded):
            uploader = Identity(
                account_id=gap.account_id, tenant_id=tenant_id, email=gap.email, name=gap.name, role=Role(gap.role)
            )
            with speaking(gap.language), suppress(InvalidInput):  # somebody else was first
                solved[gap.id] = self.solve(uploader, gap.id, gap.document_id, answered_by(gap.title))
        return solved

    def check_open(self, identity: Identity, gap_id: UUID) -> None:
        """Raise `InvalidInput` if someone else has handled the gap meanwhile, and `NotFound` for an unknown gap."""
        status = self._database.fetch_value(identity, "gap_status", gap_id=gap_id)
        if status is None:
            raise NotFound
        if status != "open":
            raise InvalidInput(
                "In the meantime, somebody else has dealt with this question. To change this, open the question again."
            )

    def waiting(self, identity: Identity, gap_id: UUID) -> builtins.list[HelpRequest]:
        """Return the open help requests which belong to a gap."""
        _check_manager(identity)
        with self._database.transaction(identity) as connection:
            request_ids = [row[0] for row in connection.execute(queries["waiting_for_gap"], {"gap_id": gap_id})]
        return [self._help_requests.get(identity, request_id) for request_id in request_ids]

    def dismiss(self, identity: Identity, gap_id: UUID, reason: str) -> None:
        """Close a gap which needs no document. Raises `NotAllowed`, `NotFound`, `InvalidInput`.

        `InvalidInput` is raised if the reason is missing or too long, or if someone else has handled the gap meanwhile.
        """
        reason = within(_clean(reason), MAXIMUM_REASON_CHARACTERS)
        if not reason:
            raise InvalidInput("Say in a few words why this needs no answer, such as: not about our company.")
        self._change(identity, gap_id, "dismissed", reason=reason)

    def reopen(self, identity: Identity, gap_id: UUID) -> None:
        """Reopen a solved or dismissed gap. Raises `NotAllowed`, `NotFound`."""
        self._change(identity, gap_id, "open")

    def assign(self, identity: Identity, gap_id: UUID, account_id: UUID | None) -> None:
        """Assign a gap to a person, or to nobody. Raises `NotAllowed`, `NotFound`."""
        _check_manager(identity)
        if account_id is not None and account_id not in {person.id for person in self.people(identity)}:
            raise NotFound
        if not self._database.execute(identity, "assign_gap", gap_id=gap_id, account_id=account_id):
            raise NotFound

    def people(self, identity: Identity) -> builtins.list[Assignee]:
        """Return the people to whom a gap can be assigned: managers and administrators."""
        _check_manager(identity)
        return self._database.fetch_all(identity, "people_to_assign", Assignee)

    def note_answer(
        self, identity: Identity, document_id: UUID, *, title: str, owner: str, review_on: date | None
    ) -> None:
        """Store title, owner and review date in the metadata of a document which was written to answer a gap."""
        _check_manager(identity)
        fields = {"owner": owner, "review_on": review_on.isoformat() if review_on else None, "written_answer": True}
        self._database.execute(
            identity,
            "note_answer_document",
            document_id=document_id,
            title=title,
            metadata=Jsonb({name: value for name, value in fields.items() if value}),
        )

    def _change(
        self, identity: Identity, gap_id: UUID, status: Status, *, reason: str = "", solved_by_id: UUID | None = None
    ) -> None:
        _check_manager(identity)
        changed = self._database.execute(
            identity, "change_gap", gap_id=gap_id, status=status, reason=reason, solved_by_id=solved_by_id
        )
        if not changed:
            self.check_open(identity, gap_id)
            raise NotFound


def answered_by(title: str) -> str:
    """Return a sentence in the current language, which tells a waiting person that this document has the answer."""
    return _("The documents answer this now: see “{title}”. Ask again.", title=title)


def written_answer(question: str, answer: str, *, owner: str, review_on: date | None) -> tuple[str, bytes]:
    """Convert an answer to a Markdown document; return file name and content.

    The question becomes the heading, which helps the search find the answer. Owner and review date follow the text.
    Raises `InvalidInput` for an empty or too long answer.
    """
    title, text = " ".join(_clean(question).split()).strip("# "), _clean(answer)
    if not title or not text:
        raise InvalidInput("Please write the question and its answer.")
    if len(text) > MAXIMUM_ANSWER_CHARACTERS:
        raise InvalidInput(
            f"The answer has {len(text):,} characters; at most {MAXIMUM_ANSWER_CHARACTERS:,} are accepted. Upload a "
            f"document instead."
        )
    foot = [f"Owner: {owner}"] if owner else []
    foot += [f"To be reviewed by {review_on:%-d %B %Y}"] if review_on else []
    name = re.sub(r"[^\w\s-]", "", title)[:80].strip() or "Answer"
    parts = [f"# {title}", text, *([" · ".join(foot)] if foot else [])]
    return f"{name}.md", "\n\n".join(parts).encode()


def _open_gap(connection: Connection, collection_id: UUID) -> UUID:
    row = connection.execute(queries["open_gap"], {"collection_id": collection_id}).fetchone()
    assert row is not None  # noqa: S101  an INSERT … RETURNING that did not raise has a row
    return UUID(str(row[0]))


def _nearest_gap(
    connection: Connection, embedder: QuestionEmbedder, collection_id: UUID, vector: Any, language: str
) -> UUID | None:
    """Return the gap whose questions are most similar on average.

    Returns `None` if the mean similarity is below `embedder.least`.
    """
    means = embedder.means
    mean = sum(means.values()) / len(means) if means else np.zeros_like(vector)
    meaning = vector - means.get(language, mean)
    meaning = meaning / (np.linalg.norm(meaning) or 1)
    parameters = {
        "collection_id": collection_id,
        "embedder": embedder.name,
        "vector": Vector(meaning),
        "offsets": Jsonb({name: float(meaning @ of_language) for name, of_language in means.items()}),
        "offset": float(meaning @ mean),
    }
    row = connection.execute(queries["nearest_gap"], parameters).fetchone()
    return row[0] if row and row[1] >= embedder.least else None


def _embed(embedder: QuestionEmbedder, question: str) -> Any:
    """Embed a question to a vector of length 1, or a zero vector if the embedder rejects the question."""
    try:
        vector = np.asarray(embedder.embed([question])[0], dtype=np.float64)
    except InvalidInput:
        return np.zeros(embedder.embed(["question"]).shape[1])
    return vector / (np.linalg.norm(vector) or 1)


def _check_manager(identity: Identity) -> None:
    if not identity.may(Role.MANAGER):
        raise NotAllowed


def _clean(text: str) -> str:
    return re.sub(r"[\x00-\x08\x0b-\x1f\x7f]", "", text.replace("\r\n", "\n")).strip()
