"""Store conversations, their messages, and feedback on answers.

People see only their own conversations. For someone else's conversation, methods raise `NotFound`, like for a missing
conversation.
"""

from __future__ import annotations

import builtins
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal
from uuid import UUID, uuid4

from psycopg.rows import class_row

from rag.errors import InvalidInput, NotFound
from rag.storage.database import Database
from rag.storage.pipeline import Pipeline
from rag.storage.sql import queries
from rag.types import Conversation, Identity, Message, MessageState, Outcome
from rag.types.fields import one_line, within

MAXIMUM_LISTED = 500
TITLE_CHARACTERS = 60
#: A typed title may be longer than a title derived from a question.
MAXIMUM_TITLE_CHARACTERS = 200
MAXIMUM_COMMENT_CHARACTERS = 2000
#: Why an answer did not help.
REASONS = ("wrong", "incomplete", "outdated", "wrong_source")


@dataclass(frozen=True, kw_only=True)
class SharedConversation:
    """A conversation shared by a colleague, with its content at the time of sharing."""

    conversation: Conversation
    #: The owner's name or e-mail address.
    shared_by: str
    messages: Sequence[Message]


@dataclass(frozen=True, kw_only=True)
class ConversationPage:
    """Data for the chat page: the opened conversation with messages, and the list of recent conversations."""

    #: The open conversation, if the person's.
    opened: Conversation | None
    #: Its messages, oldest first.
    messages: Sequence[Message]
    #: Conversations in the list.
    recent: Sequence[Conversation]


@dataclass(frozen=True, kw_only=True)
class _SharedRow(Conversation):
    shared_by: str


class Conversations:
    """Read and write `conversations`, and read `messages`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def list(self, identity: Identity) -> list[Conversation]:
        """List this person's conversations, last used first."""
        where = {"account_id": identity.account_id, "limit": MAXIMUM_LISTED}

        def read(pipeline: Pipeline) -> builtins.list[Conversation]:
            return pipeline.run(queries["list_conversations"], where).read(Conversation)

        return self._database.read(identity, read, owner_id=identity.account_id)

    def find(self, identity: Identity, text: str, *, limit: int) -> builtins.list[Conversation]:
        """List this person's conversations which contain every word in `text`, last used first.

        Title and messages are searched. Case is ignored, and a word also matches within a longer word.
        """
        return self._database.fetch_all(
            identity,
            "find_conversations",
            Conversation,
            account_id=identity.account_id,
            patterns=[_like_pattern(word) for word in text.split()],
            limit=limit,
        )

    def create(self, identity: Identity, collection_id: UUID, title: str) -> Conversation:
        """Start a conversation. Raises `NotFound` if the collection does not belong to this tenant."""
        with self._database.writing(identity) as pipeline:
            return self.create_within(pipeline, identity, collection_id, title)

    def create_within(self, pipeline: Pipeline, identity: Identity, collection_id: UUID, title: str) -> Conversation:
        """Start a conversation like `create`, in the caller's transaction."""
        parameters = {
            "conversation_id": uuid4(),
            "account_id": identity.account_id,
            "collection_id": collection_id,
            "title": _checked_title(title),
        }
        created = pipeline.run(queries["create_conversation"], parameters)
        return _require(next(iter(created.read(Conversation)), None))

    def get(self, identity: Identity, conversation_id: UUID) -> Conversation:
        """Return a conversation. Raises `NotFound` if it does not exist or belongs to someone else."""
        conversation = self._database.fetch_one(
            identity,
            "get_conversation",
            Conversation,
            account_id=identity.account_id,
            conversation_id=conversation_id,
        )
        return _require(conversation)

    def page(self, identity: Identity, conversation_id: UUID | None, *, last: int) -> ConversationPage:
        """Read the list of conversations and, if one is opened, its `last` newest messages, in a single round trip."""
        where = {"account_id": identity.account_id, "conversation_id": conversation_id}

        def read(pipeline: Pipeline) -> ConversationPage:
            opened: builtins.list[Conversation] = []
            messages: builtins.list[Message] = []
            listed = pipeline.run(queries["list_conversations"], where | {"limit": MAXIMUM_LISTED})
            if conversation_id is not None:
                conversation_result = pipeline.run(queries["get_conversation"], where)
                message_result = pipeline.run(queries["list_messages"], where | {"last": last})
            pipeline.finish()
            recent = listed.read(Conversation)
            if conversation_id is not None:
                opened, messages = conversation_result.read(Conversation), message_result.read(Message)
            return ConversationPage(
                opened=next(iter(opened), None), messages=[_with_states(row) for row in messages], recent=recent
            )

        return self._database.read(identity, read, owner_id=identity.account_id)

    def rename(self, identity: Identity, conversation_id: UUID, title: str) -> Conversation:
        """Rename a conversation. Raises `NotFound`, or `InvalidInput` for an empty title."""
        renamed = self._database.fetch_one(
            identity,
            "rename_conversation",
            Conversation,
            account_id=identity.account_id,
            conversation_id=conversation_id,
            title=_checked_title(title),
        )
        return _require(renamed)

    def pin(self, identity: Identity, conversation_id: UUID, *, is_pinned: bool) -> Conversation:
        """Pin a conversation to the top of the list, or unpin it. Raises `NotFound`."""
        pinned = self._database.fetch_one(
            identity,
            "pin_conversation",
            Conversation,
            account_id=identity.account_id,
            conversation_id=conversation_id,
            is_pinned=is_pinned,
        )
        return _require(pinned)

    def share(self, identity: Identity, conversation_id: UUID, *, is_shared: bool) -> Conversation:
        """Share a conversation's present content, or stop sharing. Raises `NotFound`.

        All colleagues who may read the conversation's collection can then read this content.
        """
        shared = self._database.fetch_one(
            identity,
            "share_conversation",
            Conversation,
            account_id=identity.account_id,
            conversation_id=conversation_id,
            is_shared=is_shared,
        )
        return _require(shared)

    def shared(self, identity: Identity, conversation_id: UUID) -> SharedConversation:
        """Return a conversation shared by a colleague.

        Raises `NotFound` if it does not exist, is no longer shared, or if this person may not read its collection.
        """
        where = {"conversation_id": conversation_id}
        with self._database.transaction(identity) as connection:
            with connection.cursor(row_factory=class_row(_SharedRow)) as cursor:
                conversation = cursor.execute(queries["get_shared_conversation"], where).fetchone()
            if conversation is None:
                raise NotFound
            with connection.cursor(row_factory=class_row(Message)) as cursor:
                rows = cursor.execute(queries["list_shared_messages"], where).fetchall()
        messages = [replace(row, state=MessageState(row.state)) for row in rows]
        return SharedConversation(conversation=conversation, shared_by=conversation.shared_by, messages=messages)

    def delete(self, identity: Identity, conversation_id: UUID) -> str:
        """Delete a conversation with all messages, and return the text from which `put_back` can restore them.

        Stops an unfinished answer in the conversation. Raises `NotFound`.
        """
        removed = self._database.fetch_value(
            identity, "delete_conversation", account_id=identity.account_id, conversation_id=conversation_id
        )
        if removed is None:
            raise NotFound
        return str(removed)

    def put_back(self, identity: Identity, removed: str) -> None:
        """Restore a conversation from the text which `delete` returned.

        Raises `PlaceTaken` if the conversation's collection or owner was deleted meanwhile.
        """
        self._database.put_back(identity, "put_conversation_back", "put_messages_back", kept=removed)

    def messages(self, identity: Identity, conversation_id: UUID, *, last: int | None = None) -> builtins.list[Message]:
        """Return a conversation's messages, oldest first. Raises `NotFound`.

        If `last` is given, only this many of the newest messages are returned.
        """
        where = {"account_id": identity.account_id, "conversation_id": conversation_id}

        def read(pipeline: Pipeline) -> builtins.list[Message] | None:
            conversation_result = pipeline.run(queries["get_conversation"], where)
            message_result = pipeline.run(queries["list_messages"], where | {"last": last})
            pipeline.finish()
            return None if conversation_result.fetchone() is None else message_result.read(Message)

        messages = self._database.read(identity, read, owner_id=identity.account_id)
        if messages is None:
            raise NotFound
        return [_with_states(row) for row in messages]


def _like_pattern(word: str) -> str:
    return "%" + re.sub(r"[%_\\]", r"\\\g<0>", word) + "%"


def _with_states(row: Message) -> Message:
    return replace(row, state=MessageState(row.state), outcome=Outcome(row.outcome) if row.outcome else None)


def title_from_question(question: str) -> str:
    """Shorten a question to a line with about 60 characters, cut between words."""
    line = " ".join(question.split())
    if len(line) <= TITLE_CHARACTERS:
        return line
    cut = line[:TITLE_CHARACTERS]
    # Korean, Chinese and Japanese may have no space at all: then the cut falls between two characters.
    at_word = cut.rsplit(" ", 1)[0] if line[TITLE_CHARACTERS] != " " else cut
    shortened = at_word if len(at_word) >= TITLE_CHARACTERS // 2 else cut
    return shortened.rstrip(" ,.;:–-") + "…"


def _checked_title(title: str) -> str:
    title = within(one_line(title), MAXIMUM_TITLE_CHARACTERS)
    if not title:
        raise InvalidInput("Please give the conversation a name.")
    return title


def _require(conversation: Conversation | None) -> Conversation:
    if conversation is None:
        raise NotFound
    return conversation


class Feedback:
    """Store ratings in `feedback`. Each person has a single rating per answer, and may change it."""

    def __init__(self, database: Database, *, on_gap: Callable[[str], None] = lambda tenant_id: None) -> None:
        """`on_gap` is called with the tenant id when an answer is rated as not helpful."""
        self._database = database
        self._on_gap = on_gap

    def rate(
        self, identity: Identity, message_id: UUID, rating: Literal[0, 1], comment: str = "", reason: str = ""
    ) -> None:
        """Rate an answer, 1 for helpful or 0 for not helpful, with comment and reason. Replaces an earlier rating.

        Raises `NotFound` if the message is not an answer to this person, and `InvalidInput` if the rating or the reason
        is unknown or the comment is too long.
        """
        if rating not in (0, 1):
            raise InvalidInput(f"A rating has to be 0 or 1, not {rating!r}.")
        if reason not in ("", *REASONS):
            raise InvalidInput(f"A reason has to be one of {', '.join(REASONS)}, not {reason!r}.")
        comment = within(re.sub(r"[\x00-\x08\x0b-\x1f\x7f]", "", comment).strip(), MAXIMUM_COMMENT_CHARACTERS)
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
        if rating == 0:
            self._on_gap(identity.tenant_id)
