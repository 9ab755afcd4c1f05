"""Pass badly answered questions on to managers, and store their replies.

An employee asks for help under an answer (`open`). Managers and administrators list the requests for collections they
may read (`list`), and answer or dismiss them. The employee finds the reply in the conversation (`of_conversation`),
marked as written by a person.
"""

from __future__ import annotations

import builtins
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, get_args
from uuid import UUID

from rag.errors import InvalidInput, NotAllowed, NotFound
from rag.storage.database import Database
from rag.storage.sql import queries
from rag.types import Identity, Role, storable
from rag.types.fields import within

Reason = Literal["wrong", "incomplete", "outdated", "wrong_source", "unanswered", "other"]
Status = Literal["open", "answered", "dismissed"]

MAXIMUM_COMMENT_CHARACTERS = 2000
MAXIMUM_ANSWER_CHARACTERS = 10_000
MAXIMUM_LISTED = 500


#: The conditions on requests, all open.
ANY_REQUEST: Mapping[str, Any] = dict.fromkeys(
    ("request_id", "status", "collection_id", "account_id", "conversation_id")
)


@dataclass(frozen=True, kw_only=True)
class HelpRequest:
    """A question which an employee has forwarded to managers, and the managers' reply, if any."""

    id: UUID
    collection_id: UUID
    #: `None` after the asker deleted it.
    conversation_id: UUID | None
    chat_log_id: UUID | None
    question: str
    reason: Reason
    comment: str
    status: Status
    #: The reply, or the reason for a dismissal, if given.
    answer: str
    created_at: datetime
    answered_at: datetime | None
    seen_at: datetime | None
    #: Names, or e-mail addresses if there is no name; "" if the account is gone.
    asker: str
    answered_by: str
    #: The documents' answer, which did not help.
    answer_of_documents: str


class HelpRequests:
    """Read and write `help_requests`."""

    def __init__(self, database: Database, *, on_gap: Callable[[str], None] = lambda tenant_id: None) -> None:
        """`on_gap` is called with the tenant id after a question was forwarded."""
        self._database = database
        self._on_gap = on_gap

    def open(self, identity: Identity, message_id: UUID, *, reason: str = "other", comment: str = "") -> HelpRequest:
        """Forward the question behind an answer to managers, at most once per answer.

        Raises `NotFound` if the message is not an answer to this person, and `InvalidInput` if the reason is unknown or
        the comment too long.
        """
        if reason not in get_args(Reason):
            raise InvalidInput(f"A reason has to be one of {', '.join(get_args(Reason))}, not {reason!r}.")
        request_id = self._database.fetch_value(
            identity,
            "open_help_request",
            account_id=identity.account_id,
            message_id=message_id,
            reason=reason,
            comment=within(_clean(comment), MAXIMUM_COMMENT_CHARACTERS),
        )
        if request_id is None:
            raise NotFound
        self._on_gap(identity.tenant_id)
        return self._find(identity, {"request_id": request_id})[0]

    def list(
        self,
        identity: Identity,
        *,
        status: Status | None = None,
        collection_id: UUID | None = None,
        limit: int = MAXIMUM_LISTED,
    ) -> builtins.list[HelpRequest]:
        """List help requests for a manager. Raises `NotAllowed`.

        Open requests come first, the longest waiting at the top. The rest follow, latest first.
        """
        _check_manager(identity)
        return self._find(identity, {"status": status, "collection_id": collection_id}, limit=limit)

    def get(self, identity: Identity, request_id: UUID) -> HelpRequest:
        """Return a request, for a manager. Raises `NotAllowed`, `NotFound`."""
        _check_manager(identity)
        requests = self._find(identity, {"request_id": request_id})
        if not requests:
            raise NotFound
        return requests[0]

    def count_open(self, identity: Identity) -> int:
        """Count the waiting requests, for a manager. Raises `NotAllowed`."""
        _check_manager(identity)
        return int(self._database.fetch_value(identity, "count_open_help_requests"))

    def answer(self, identity: Identity, request_id: UUID, text: str) -> HelpRequest:
        """Answer a request as a manager. A second call replaces the answer.

        Raises `NotAllowed`, `NotFound`, or `InvalidInput` for an empty or too long answer.
        """
        text = _clean(text)
        if not text:
            raise InvalidInput("Please write an answer first.")
        return self._end(identity, request_id, "answered", within(text, MAXIMUM_ANSWER_CHARACTERS))

    def dismiss(self, identity: Identity, request_id: UUID, why: str = "") -> HelpRequest:
        """Close a request as a manager without answering. The person who asked sees the reason `why`.

        Raises `NotAllowed`, `NotFound`, or `InvalidInput` for too long a text.
        """
        return self._end(identity, request_id, "dismissed", within(_clean(why), MAXIMUM_ANSWER_CHARACTERS))

    def of_conversation(self, identity: Identity, conversation_id: UUID) -> builtins.list[HelpRequest]:
        """List the help requests from a conversation that belongs to this person."""
        return self._find(identity, {"conversation_id": conversation_id, "account_id": identity.account_id})

    def mark_seen(self, identity: Identity, conversation_id: UUID) -> None:
        """Record that the person has seen the replies in their conversation."""
        self._database.execute(
            identity, "see_help_answers", account_id=identity.account_id, conversation_id=conversation_id
        )

    def unseen(self, identity: Identity) -> set[UUID]:
        """Return the ids of this person's conversations with an unseen reply."""
        parameters = {"account_id": identity.account_id}
        with self._database.transaction(identity) as connection:
            return {row[0] for row in connection.execute(queries["conversations_with_unseen_help"], parameters)}

    def _end(self, identity: Identity, request_id: UUID, status: Status, answer: str) -> HelpRequest:
        _check_manager(identity)
        ended = self._database.execute(
            identity,
            "end_help_request",
            request_id=request_id,
            status=status,
            answer=answer,
            answered_by=identity.account_id,
        )
        if not ended:
            raise NotFound
        return self._find(identity, {"request_id": request_id})[0]

    def _find(
        self, identity: Identity, conditions: Mapping[str, Any], *, limit: int = MAXIMUM_LISTED
    ) -> builtins.list[HelpRequest]:
        parameters = {**ANY_REQUEST, **conditions, "limit": limit}
        return self._database.fetch_all(identity, "list_help_requests", HelpRequest, **parameters)


def _check_manager(identity: Identity) -> None:
    if not identity.may(Role.MANAGER):
        raise NotAllowed


def _clean(text: str) -> str:
    return re.sub(r"[\x00-\x08\x0b-\x1f\x7f]", "", storable(text.replace("\r\n", "\n"))).strip()
