"""Answer questions in Slack. A thread is a conversation, and thumbs are feedback.

Slack's library checks signatures and calls Slack's API. A question is asked with the rights of the account with the
sender's e-mail address. In a direct message, any collection open to this person can be searched. In a channel, which
all members can read, only a collection open to the whole company is searched. In channels shared with other companies,
questions are refused.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID

from anyio import to_thread
from slack_bolt import App
from slack_bolt.adapter.starlette.handler import to_bolt_request, to_starlette_response
from slack_sdk import WebClient
from slack_sdk.errors import SlackApiError
from starlette.requests import Request
from starlette.responses import Response

from rag.access.problems import refusal
from rag.answering.citations import title_with_place
from rag.answering.live_answer import LiveAnswer
from rag.api.event_stream import remarks
from rag.errors import BodyTooLarge, NotAllowed, NotFound, RagError
from rag.integrations.chat import LONGER, OUTSIDE, WAITING, account_in_chat, choose_chat_collection, is_repeated
from rag.language import N_, _
from rag.profiles.profile import Options
from rag.services import Services, services
from rag.types import Citation, Identity, Question, page_path

log = logging.getLogger("rag.slack")
PROGRAM = "slack"
MAXIMUM_BYTES = 256 * 1024
#: Slack refuses text blocks above 3,000 characters. A message has at most four of text and three of sources; the
#: conversation in HR Assistant has the rest.
MOST_CHARACTERS, MOST_TEXTS, MOST_SOURCE_LISTS = 2900, 4, 3
#: Threads, each waiting for an answer.
MOST_AT_ONCE = 200
#: Longer answers are cancelled.
ANSWER_SECONDS = 180.0
MENTION = re.compile(r"<@[A-Z0-9]+>")
THUMB = re.compile(r"^rate_[01]$")
STRANGER = N_(
    "I do not know your e-mail address. Ask an administrator of HR Assistant to add you on the page People, with the "
    "address that you have in Slack."
)


class SlackBot:
    """Handles Slack's events in a few threads."""

    def __init__(self, parts: Services) -> None:
        settings = parts.settings
        self._parts = parts
        client = WebClient(settings.variable("SLACK_BOT_TOKEN"), base_url=settings.variable("SLACK_API_URL"))
        self.app = App(
            client=client,
            signing_secret=settings.variable("SLACK_SIGNING_SECRET"),
            token_verification_enabled=False,
            # Messages from bots are never answered.
            ignoring_self_events_enabled=True,
            raise_error_for_unhandled_request=False,
            listener_executor=ThreadPoolExecutor(MOST_AT_ONCE, thread_name_prefix="slack"),
        )
        self.app.event("app_mention")(self._on_mention)
        self.app.event("message")(self._on_message)
        self.app.action(THUMB)(self._on_thumb)

    # Events from Slack

    def _on_mention(self, body: dict[str, Any], event: dict[str, Any], client: WebClient) -> None:
        if event.get("channel_type") != "im":
            self._answer(body, event, client, is_direct=False)

    def _on_message(self, body: dict[str, Any], event: dict[str, Any], client: WebClient) -> None:
        # In channels, only mentions are read; they arrive as `app_mention`.
        if event.get("channel_type") == "im" and not event.get("subtype") and not event.get("bot_id"):
            self._answer(body, event, client, is_direct=True)

    def _on_thumb(self, ack: Callable[[], None], body: dict[str, Any], client: WebClient) -> None:
        ack()
        action = body["actions"][0]
        channel, user = body["channel"]["id"], body["user"]["id"]
        try:
            person = self._person(client, user, body["team"]["id"])
            rating = 1 if action["action_id"] == "rate_1" else 0
            self._parts.feedback.rate(person, UUID(action["value"]), rating)  # type: ignore[arg-type]
            reply = _("Thank you.")
        except NotFound:
            reply = _("Only the person who asked can rate this answer.")
        except RagError as exc:
            reply = exc.message
        client.chat_postEphemeral(channel=channel, user=user, text=reply, thread_ts=body["message"].get("thread_ts"))

    # Answering

    def _answer(self, body: dict[str, Any], event: dict[str, Any], client: WebClient, *, is_direct: bool) -> None:
        # Slack repeats an event after three seconds without an answer.
        database, tenant = self._parts.database, self._parts.settings.tenant
        if is_repeated(database, tenant, PROGRAM, str(body.get("event_id", ""))):
            return
        channel, thread = str(event["channel"]), str(event.get("thread_ts") or event["ts"])
        try:
            if body.get("is_ext_shared_channel"):
                raise NotAllowed(_(OUTSIDE))
            person = self._person(client, str(event.get("user", "")), str(body.get("team_id", "")))
            with self._parts.limits.question(person):
                live, message_id = self._ask(person, client, event, channel, thread, is_direct=is_direct)
        except RagError as exc:
            client.chat_postMessage(channel=channel, thread_ts=thread, text=exc.message)
            return
        live.wait(ANSWER_SECONDS)
        if not live.is_done:
            live.cancel.set()
        blocks = _blocks(live, self._parts.settings.own_address)
        client.chat_update(channel=channel, ts=message_id, text=blocks[0]["text"]["text"], blocks=blocks)

    def _ask(
        self,
        person: Identity,
        client: WebClient,
        event: Mapping[str, Any],
        channel: str,
        thread: str,
        *,
        is_direct: bool,
    ) -> tuple[LiveAnswer, str]:
        """Start an answer and post a placeholder message. Returns the answer and the placeholder's message id."""
        parts = self._parts
        parts.limits.count_request(person)
        place = {"program": PROGRAM, "channel": channel, "thread": thread, "account_id": person.account_id}
        conversation_id = parts.database.fetch_value(person.tenant_id, "conversation_of_thread", **place)
        id_or_name = parts.settings.variable("SLACK_COLLECTION") or None
        if conversation_id is not None:
            id_or_name = str(parts.conversations.get(person, conversation_id).collection_id)
        collection = choose_chat_collection(parts, person, id_or_name, is_direct=is_direct)
        question = MENTION.sub("", str(event.get("text", ""))).strip()
        live = parts.answers.ask(
            Question(text=question, identity=person, collection=collection),
            conversation_id=conversation_id,
            options=Options(follow_ups=0),
        )
        parts.database.execute(person.tenant_id, "note_thread", **place, conversation_id=live.conversation_id)
        placeholder = client.chat_postMessage(channel=channel, thread_ts=thread, text=_(WAITING))
        return live, str(placeholder["ts"])

    def _person(self, client: WebClient, user: str, team: str) -> Identity:
        """Return the account with a Slack user's confirmed e-mail address.

        Raises `NotAllowed` if no account has the address, and for bots, guests and users from different workspaces.
        """
        try:
            slack_user: dict[str, Any] = client.users_info(user=user)["user"]
        except SlackApiError as exc:
            log.warning("Slack does not say who asks: %s", exc.response.get("error"))
            raise NotAllowed(_("Slack does not tell me who you are. Please tell an administrator.")) from None
        is_ours = slack_user.get("team_id") == team and not any(
            slack_user.get(mark)
            for mark in ("is_bot", "is_restricted", "is_ultra_restricted", "is_stranger", "deleted")
        )
        email = str(slack_user.get("profile", {}).get("email", ""))
        if not is_ours or not email or slack_user.get("is_email_confirmed") is False:
            raise NotAllowed(_(STRANGER))
        person = account_in_chat(self._parts.database, self._parts.settings.tenant, email)
        if person is None:
            raise NotAllowed(_(STRANGER))
        return person


def _blocks(live: LiveAnswer, base: str) -> list[dict[str, Any]]:
    notes = remarks(live)
    text = live.text or " ".join(notes) or _("This answer could not be written. Please ask again.")
    texts = list(_pieces(_to_mrkdwn(text).strip()))
    citations = () if live.kind == "nearest" else live.citations
    lists = list(_pieces("\n".join(_source_line(citation, base) for citation in citations)))
    blocks: list[dict[str, Any]] = [
        {"type": "section", "text": {"type": "mrkdwn", "text": piece}} for piece in texts[:MOST_TEXTS]
    ]
    blocks += [_context("mrkdwn", piece) for piece in lists[:MOST_SOURCE_LISTS]]
    if len(texts) > MOST_TEXTS or len(lists) > MOST_SOURCE_LISTS:
        notes.append(_(LONGER))
    if notes and live.text:
        blocks.append(_context("plain_text", "\n".join(notes)[:MOST_CHARACTERS]))
    if live.text:
        thumbs = [("rate_1", ":+1:", _("Helpful")), ("rate_0", ":-1:", _("Not helpful"))]
        blocks.append(
            {
                "type": "actions",
                "elements": [
                    {
                        "type": "button",
                        "action_id": action,
                        "value": str(live.message_id),
                        "text": {"type": "plain_text", "text": sign, "emoji": True},
                        "accessibility_label": label,
                    }
                    for action, sign, label in thumbs
                ],
            }
        )
    return blocks


def _context(kind: str, text: str) -> dict[str, Any]:
    return {"type": "context", "elements": [{"type": kind, "text": text}]}


def _pieces(text: str) -> Iterator[str]:
    while len(text) > MOST_CHARACTERS:
        start = text[:MOST_CHARACTERS]
        # Without either, never inside an entity such as "&lt;".
        ends = (start.rfind("\n"), start.rfind(" "), start.rfind("&") if "&" in start[-6:] else MOST_CHARACTERS)
        end = next(end for end in ends if end > MOST_CHARACTERS // 2)
        yield text[:end].rstrip()
        text = text[end:].lstrip()
    if text:
        yield text


def _source_line(citation: Citation, base: str) -> str:
    title = title_with_place(citation)
    return f"[{citation.number}] <{base}{page_path(citation.document_id, citation.first_page)}|{_plain(title)}>"


def _plain(text: str) -> str:
    """Escape links and mentions, because text from documents must not notify people or link elsewhere."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("|", "¦")


def _to_mrkdwn(text: str) -> str:
    escaped = _plain(text)
    escaped = re.sub(r"\*\*(.+?)\*\*", r"*\1*", escaped)
    escaped = re.sub(r"(?m)^#{1,6}\s+(.+)$", r"*\1*", escaped)
    return re.sub(r"(?m)^([ \t]*)[-*]\s+", r"\1• ", escaped)


#: The bot for the current services.
_current: list[tuple[Services, SlackBot]] = []
_making = threading.Lock()


def _bot(parts: Services) -> SlackBot:
    with _making:
        if not _current or _current[0][0] is not parts:
            _current[:] = [(parts, SlackBot(parts))]
        return _current[0][1]


async def events(request: Request) -> Response:
    """Handle an event or a click from Slack. Slack's library checks the signature."""
    parts = services()
    if not all(map(parts.settings.variable, ("SLACK_BOT_TOKEN", "SLACK_SIGNING_SECRET"))):
        return refusal(request.scope, NotFound())
    content = b""
    async for part in request.stream():
        content += part
        if len(content) > MAXIMUM_BYTES:
            return refusal(request.scope, BodyTooLarge())
    bot = _bot(parts)
    try:
        bolt_request = to_bolt_request(request, content)
    except UnicodeDecodeError:
        return Response(status_code=400)
    return to_starlette_response(await to_thread.run_sync(bot.app.dispatch, bolt_request))
