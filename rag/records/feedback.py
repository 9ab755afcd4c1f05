"""Feedback on answers: helpful or not, with a comment. One rating per person and answer, which can be changed."""

from __future__ import annotations

import re
from typing import Literal
from uuid import UUID

from rag.errors import InvalidInput, NotFound
from rag.storage.database import Database
from rag.types import Identity

MAXIMUM_COMMENT_CHARACTERS = 2000
#: Why an answer did not help.
REASONS = ("wrong", "incomplete", "outdated", "wrong_source")


class Feedback:
    """Writes `feedback`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def rate(
        self, identity: Identity, message_id: UUID, rating: Literal[0, 1], comment: str = "", reason: str = ""
    ) -> None:
        """Rate an answer: 1 helpful, 0 not, and why not. Rating again replaces the rating, the comment and the reason.

        Raises `NotFound` when the message is not an answer to this person, `InvalidInput` for another rating or reason.
        """
        if rating not in (0, 1):
            raise InvalidInput(f"A rating is 0 or 1, not {rating!r}.")
        if reason not in ("", *REASONS):
            raise InvalidInput(f"A reason is one of {', '.join(REASONS)}, not {reason!r}.")
        comment = re.sub(r"[\x00-\x08\x0b-\x1f\x7f]", "", comment).strip()[:MAXIMUM_COMMENT_CHARACTERS]
        rated = self._database.execute(
            identity,
            "rate_answer",
            account_id=identity.account_id,
            message_id=message_id,
            rating=rating,
            comment=comment,
            reason="" if rating else reason,
        )
        if not rated:
            raise NotFound
