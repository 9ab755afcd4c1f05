"""Answer questions in Microsoft Teams. A thread is a conversation, and thumbs are feedback.

Microsoft's library checks each message's token and calls Teams. The library also accepts other issuers, and only warns
if the reply address differs from the token's; this module refuses both. A question is asked with the rights of the
account with the sender's user name or e-mail address. In a personal chat, any collection open to this person can be
searched. In a channel or group chat, which all members can read, only a collection open to the whole company is
searched. If people from other companies take part, questions are refused.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import re
import threading
from collections import OrderedDict
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID

import httpx
import msal
from aiohttp import ClientSession, ClientTimeout
from anyio import to_thread
from joserfc import jws
from microsoft_agents.activity import Activity, Attachment
from microsoft_agents.hosting.core.authorization import AgentAuthConfiguration, ClaimsIdentity
from microsoft_agents.hosting.core.authorization.jwt import JwtTokenValidator
from microsoft_agents.hosting.core.connector.teams import TeamsConnectorClient
from pydantic import ValidationError

from rag import language
from rag.answering.citations import title_with_place
from rag.answering.live_answer import LiveAnswer
from rag.api.event_stream import remarks
from rag.errors import BodyUnreadable, KeyRejected, NotAllowed, NotFound, RagError, TooManyRequests
from rag.integrations.channels.teams.bots import TeamsBot, TeamsBots
from rag.integrations.chat import LONGER, OUTSIDE, WAITING, account_in_chat, choose_chat_collection, is_repeated
from rag.language import N_, _
from rag.profiles.profile import Options
from rag.providers.bounds import Bounds, bound
from rag.services import Services
from rag.types import Citation, Identity, Question, page_path

log = logging.getLogger("rag.teams")
# The library logs messages of people.
logging.getLogger("microsoft_agents").setLevel(logging.CRITICAL)

PROGRAM, CHANNEL = "teams", "msteams"
ISSUER = "https://api.botframework.com"
SCOPE = "https://api.botframework.com/.default"
#: Teams puts this before the application id of a bot.
BOT = "28:"
#: Ids from Teams become parts of addresses, and must not contain slashes or the like.
ID = re.compile(r"[A-Za-z0-9:@._;=~+|-]{1,600}")
MENTION = re.compile(r"<at>.*?</at>", re.DOTALL)
#: Teams takes messages of about 100 KB, in which each character may be four bytes and is escaped.
MOST_CHARACTERS, MOST_SOURCES, MOST_PEOPLE = 10_000, 50, 500
#: Longer answers are cancelled.
ANSWER_SECONDS = 180.0
CALL_SECONDS = 20.0
#: A chat has no threads: after this pause, the next question begins a new conversation.
QUIET = timedelta(hours=8)
MOST_AT_ONCE = 200
STRANGER = N_(
    "I do not know your e-mail address. Ask an administrator of HR Assistant to add you on the page People, with the "
    "address that you have in Teams."
)
HELLO = N_(
    "Ask me about your company's documents. Each answer names its sources. Write “new” to begin a new conversation."
)


@dataclass(frozen=True)
class IncomingMessage:
    """A person's message to a bot, checked."""

    bot: TeamsBot
    activity: Activity
    #: Who wrote, as Teams names them.
    writer: str
    #: The conversation in Teams; in a channel with the thread.
    place: str
    kind: str

    @property
    def is_direct(self) -> bool:
        return self.kind == "personal"

    @property
    def is_chat(self) -> bool:
        """Whether this is a chat, which has no threads."""
        return self.kind in ("personal", "groupChat")


class TeamsConversations:
    """Receives messages from Teams, and answers them in background tasks."""

    def __init__(self, parts: Services) -> None:
        self._parts = parts
        self._bots = TeamsBots(parts.database)
        self._lock = threading.Lock()
        self._applications: OrderedDict[bytes, msal.ConfidentialClientApplication] = OrderedDict()
        self._login = bound(httpx.Client(timeout=CALL_SECONDS), Bounds(longest_seconds=2 * CALL_SECONDS))
        self._at_work: set[asyncio.Task[None]] = set()

    async def take(self, token: str, content: bytes) -> None:
        """Check a message and start to answer it.

        Raises `KeyRejected` if the message is not proven to be from Teams, `NotAllowed` for people from other
        companies, `BodyUnreadable` for a malformed message, and `TooManyRequests`.
        """
        try:
            activity = Activity.model_validate_json(content)
        except ValidationError as exc:
            raise BodyUnreadable from exc
        message = await self._verify(token, activity)
        # Before the delivery is remembered, because Teams repeats it.
        if len(self._at_work) >= MOST_AT_ONCE:
            raise TooManyRequests(wait_seconds=5)
        named = (message.bot.app_id, str(message.place), str(activity.id))
        if await to_thread.run_sync(is_repeated, self._parts.database, message.bot.tenant_id, PROGRAM, *named):
            return
        language.speak(language.choose(language.accepted(str(activity.locale or ""))))
        if activity.type == "message" and isinstance(activity.value, dict) and "rating" in activity.value:
            self._start(self._rate(message, activity.value))
        elif activity.type == "message" and activity.text:
            self._start(self._answer(message))
        elif activity.type == "conversationUpdate" and any(
            member.id == f"{BOT}{message.bot.app_id}" for member in activity.members_added or ()
        ):
            self._start(self._say(message, _(HELLO)))

    # The person and the bot

    async def _verify(self, token: str, activity: Activity) -> IncomingMessage:
        """Verify a message's token and sender, and find the bot. Raises `KeyRejected` or `NotAllowed`."""
        where = activity.conversation
        ids = [
            str(party.id or "") if party is not None else ""
            for party in (activity.recipient, activity.from_property, where)
        ]
        has_ids = all(ID.fullmatch(id) for id in ids) and bool(activity.id)
        if where is None or not has_ids or str(activity.channel_id) != CHANNEL:
            raise KeyRejected
        bot = await to_thread.run_sync(self._bots.find, ids[0].removeprefix(BOT))
        if bot is None:
            raise KeyRejected
        configuration = AgentAuthConfiguration(client_id=bot.app_id, issuers=[ISSUER], validate_issuer=True)
        try:
            # For an unchecked token, the library would fetch keys from any Microsoft issuer.
            if json.loads(jws.extract_compact(token.encode()).payload)["iss"] != ISSUER:
                raise KeyRejected
            claims: ClaimsIdentity = await JwtTokenValidator(configuration).validate_token(token)
        except Exception as exc:  # any error means the token is not from Microsoft
            log.warning("A message for the bot in Teams has no valid token: %s", type(exc).__name__)
            raise KeyRejected from None
        address = str(activity.service_url or "")
        is_theirs = (
            claims.get_claim_value("iss") == ISSUER
            and claims.get_claim_value("exp") is not None
            and str(claims.get_claim_value("serviceurl") or "").rstrip("/") == address.rstrip("/")
        )
        if not is_theirs or not self._is_of_teams(address):
            log.warning("A message for the bot in Teams is not of Teams, or wants its answer elsewhere")
            raise KeyRejected
        data = activity.channel_data if isinstance(activity.channel_data, dict) else {}
        tenant = data.get("tenant")
        named = [where.tenant_id, tenant.get("id") if isinstance(tenant, dict) else None]
        directories = {str(name).lower() for name in named if name}
        if not directories or not directories <= set(bot.directories):
            raise NotAllowed
        return IncomingMessage(bot, activity, writer=ids[1], place=ids[2], kind=str(where.conversation_type or ""))

    def _is_of_teams(self, address: str) -> bool:
        base = self._parts.settings.variable("TEAMS_SERVICE_URL").rstrip("/") + "/"
        return (address.rstrip("/") + "/").lower().startswith(base.lower())

    async def _person(self, message: IncomingMessage, client: TeamsConnectorClient) -> Identity:
        """Return the sender's account. Raises `NotAllowed` for guests and people without an account."""
        member = await client.get_conversation_member(message.place, message.writer)
        if not _is_own(message.bot, member):
            raise NotAllowed(_(STRANGER))
        for email in (member.user_principal_name, member.email):
            if email:
                person = await to_thread.run_sync(account_in_chat, self._parts.database, message.bot.tenant_id, email)
                if person is not None:
                    return person
        raise NotAllowed(_(STRANGER))

    async def _require_own_people(self, message: IncomingMessage, client: TeamsConnectorClient) -> None:
        """Raise `NotAllowed` if people outside the company could read the answer."""
        data = message.activity.channel_data if isinstance(message.activity.channel_data, dict) else {}
        channel = data.get("channel")
        if isinstance(channel, dict) and channel.get("type") == "shared":
            raise NotAllowed(_(OUTSIDE))
        if not message.is_chat:
            return
        people = await client.get_conversation_paged_member(message.place, MOST_PEOPLE, "")
        if people.continuation_token or not all(_is_own(message.bot, member) for member in people.members or ()):
            raise NotAllowed(_(OUTSIDE))

    # Answering

    async def _answer(self, message: IncomingMessage) -> None:
        async with self._open_connection(message) as client:
            try:
                person = await self._person(message, client)
                if not message.is_direct:
                    await self._require_own_people(message, client)
                question = MENTION.sub("", message.activity.text or "").strip()
                is_new = message.is_chat and question.strip("/").lower() == "new"
                if is_new:
                    await to_thread.run_sync(self._forget, message, person)
                    await self._post(client, message, _(HELLO))
                    return
                live = await to_thread.run_sync(self._ask_within_limits, message, person, question)
            except RagError as exc:
                await self._post(client, message, exc.message)
                return
            placeholder_id = await self._post(client, message, _(WAITING))
            await _wait(live)
            answer = _message(live, self._parts.settings.own_address)
            answer.id = placeholder_id
            await client.conversations.update_activity(message.place, placeholder_id, answer)

    def _ask_within_limits(self, message: IncomingMessage, person: Identity, question: str) -> LiveAnswer:
        with self._parts.limits.question(person):
            return self._ask(message, person, question)

    def _ask(self, message: IncomingMessage, person: Identity, question: str) -> LiveAnswer:
        parts = self._parts
        parts.limits.count_request(person)
        place = _thread(message, person)
        conversation_id: UUID | None = parts.database.fetch_value(person.tenant_id, "conversation_of_thread", **place)
        collection_id = str(message.bot.collection_id) if message.bot.collection_id else None
        if conversation_id is not None:
            conversation = parts.conversations.get(person, conversation_id)
            if message.is_chat and datetime.now(UTC) - conversation.updated_at > QUIET:
                conversation_id = None
            else:
                collection_id = str(conversation.collection_id)
        collection = choose_chat_collection(parts, person, collection_id, is_direct=message.is_direct)
        live = parts.answers.ask(
            Question(text=question, identity=person, collection=collection),
            conversation_id=conversation_id,
            options=Options(follow_ups=0),
        )
        parts.database.execute(person.tenant_id, "note_thread", **place, conversation_id=live.conversation_id)
        return live

    def _forget(self, message: IncomingMessage, person: Identity) -> None:
        self._parts.database.execute(person.tenant_id, "forget_thread", **_thread(message, person))

    async def _rate(self, message: IncomingMessage, value: dict[str, Any]) -> None:
        async with self._open_connection(message) as client:
            try:
                person = await self._person(message, client)
                message_id = UUID(str(value.get("message")))
                rate = partial(self._parts.feedback.rate, person, message_id, 1 if value["rating"] == 1 else 0)
                await to_thread.run_sync(rate)
                reply = _("Thank you.")
            except (NotFound, ValueError):
                reply = _("Only the person who asked can rate this answer.")
            except RagError as exc:
                reply = exc.message
            await self._post(client, message, reply)

    async def _say(self, message: IncomingMessage, text: str) -> None:
        async with self._open_connection(message) as client:
            await self._post(client, message, text)

    # To Teams

    def _open_connection(self, message: IncomingMessage) -> _Connection:
        return _Connection(self, message)

    async def connect(self, message: IncomingMessage) -> TeamsConnectorClient:
        token = await to_thread.run_sync(self._token, message.bot)
        base = str(message.activity.service_url).rstrip("/") + "/"
        session = ClientSession(base_url=base, timeout=ClientTimeout(total=CALL_SECONDS), raise_for_status=True)
        return TeamsConnectorClient(endpoint=base, token=token, session=session)

    async def _post(self, client: TeamsConnectorClient, message: IncomingMessage, text: str) -> str:
        response = await client.conversations.send_to_conversation(message.place, _text(_plain(text)))
        return str(response.id)

    def _token(self, bot: TeamsBot) -> str:
        """Request an access token for the bot. Raises `NotAllowed` if Microsoft rejects the client secret."""
        with self._lock:
            application = self._applications.get(bot.secret)
            if application is None:
                application = msal.ConfidentialClientApplication(
                    bot.app_id,
                    client_credential=self._bots.secret_of(bot),
                    authority=f"{self._parts.settings.microsoft_login_url}/{bot.directories[0]}",
                    http_client=self._login,
                    instance_discovery=False,
                )
                self._applications[bot.secret] = application
                while len(self._applications) > MOST_AT_ONCE:
                    self._applications.popitem(last=False)
        result = application.acquire_token_for_client(scopes=[SCOPE])
        if not result or "access_token" not in result:
            reason = str((result or {}).get("error"))[:80]
            raise NotAllowed(f"Microsoft does not accept the client secret of the bot in Teams ({reason}).")
        return str(result["access_token"])

    async def finish(self, seconds: float) -> None:
        """Wait until all answers have been sent, at most `seconds`."""
        if self._at_work:
            await asyncio.wait(set(self._at_work), timeout=seconds)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        async def guarded() -> None:
            try:
                await work
            except Exception as exc:  # no caller waits; messages of people stay out of the log
                reason = exc.message if isinstance(exc, RagError) else type(exc).__name__
                log.warning("An answer could not be sent to Teams: %s", reason)

        task = asyncio.create_task(guarded())
        self._at_work.add(task)
        task.add_done_callback(self._at_work.discard)


class _Connection:
    def __init__(self, conversations: TeamsConversations, message: IncomingMessage) -> None:
        self._conversations, self._message = conversations, message

    async def __aenter__(self) -> TeamsConnectorClient:
        self._client = await self._conversations.connect(self._message)
        return self._client

    async def __aexit__(self, *_: object) -> None:
        await self._client.close()


async def _wait(live: LiveAnswer) -> None:
    """Wait for an answer without blocking a thread; stop the answer after three minutes."""
    loop, changed = asyncio.get_running_loop(), asyncio.Event()

    def note() -> None:
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(changed.set)

    with suppress(TimeoutError), live.heard_by(note, with_steps=False):
        async with asyncio.timeout(ANSWER_SECONDS):
            while not live.is_done:
                await changed.wait()
                changed.clear()
    if not live.is_done:
        live.cancel.set()


def _thread(message: IncomingMessage, person: Identity) -> dict[str, Any]:
    """Return the columns which identify a Teams thread in the database: program, channel, hash and account."""
    channel, _separator, _root = message.place.partition(";")
    thread = hashlib.sha256(message.place.encode()).hexdigest()
    return {"program": PROGRAM, "channel": channel[:200], "thread": thread, "account_id": person.account_id}


def _is_own(bot: TeamsBot, member: Any) -> bool:
    name = str(member.user_principal_name or "")
    is_guest = str(member.user_role or "").lower() in ("guest", "anonymous") or "#EXT#" in name.upper()
    return str(member.tenant_id or "").lower() in bot.directories and not is_guest


def _text(text: str, **more: Any) -> Activity:
    return Activity(type="message", text_format="markdown", text=text[:MOST_CHARACTERS], **more)


def _message(live: LiveAnswer, base: str) -> Activity:
    notes = remarks(live)
    text = _plain(live.text or " ".join(notes) or _("This answer could not be written. Please ask again."))
    parts = [text[:MOST_CHARACTERS]]
    citations = () if live.kind == "nearest" else live.citations
    if citations:
        parts.append(f"**{_('Sources')}**")
        parts.extend(_source_line(citation, base) for citation in citations[:MOST_SOURCES])
    if len(text) > MOST_CHARACTERS or len(citations) > MOST_SOURCES:
        notes.append(_(LONGER))
    if live.text:
        parts.extend(f"*{_plain(note)}*" for note in notes)
    message = Activity(type="message", text_format="markdown", text="\n\n".join(parts))
    if not live.text:
        return message
    thumbs = [(1, "👍", _("Helpful")), (0, "👎", _("Not helpful"))]
    actions = [
        {
            "type": "Action.Submit",
            "title": f"{sign} {label}",
            "data": {"rating": rating, "message": str(live.message_id)},
        }
        for rating, sign, label in thumbs
    ]
    card = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json", "type": "AdaptiveCard", "version": "1.4",
        "body": [], "actions": actions,
    }  # fmt: skip
    message.attachments = [Attachment(content_type="application/vnd.microsoft.card.adaptive", content=card)]
    return message


def _source_line(citation: Citation, base: str) -> str:
    title = title_with_place(citation)
    label = _plain(title).replace("[", "(").replace("]", ")")
    return f"[{citation.number}] [{label}]({base}{page_path(citation.document_id, citation.first_page)})"


def _plain(text: str) -> str:
    """Escape tags, mentions and links, because text from documents must not notify people or link elsewhere."""
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return escaped.replace("](", "] (")
