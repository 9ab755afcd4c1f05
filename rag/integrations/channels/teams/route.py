"""Route for messages from Microsoft Teams. Microsoft's library is imported at the first message."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

from anyio import to_thread
from starlette.requests import Request
from starlette.responses import Response

from rag.access.problems import refusal
from rag.errors import BodyTooLarge, KeyRejected, PackagesMissing, RagError
from rag.services import Services, services

if TYPE_CHECKING:
    from rag.integrations.channels.teams.conversations import TeamsConversations

log = logging.getLogger("rag.teams")
MAXIMUM_BYTES = 256 * 1024

#: The conversations for the current services.
_current: list[tuple[Services, TeamsConversations]] = []
_making = threading.Lock()


def _conversations(parts: Services) -> TeamsConversations:
    try:
        from rag.integrations.channels.teams.conversations import TeamsConversations
    except ModuleNotFoundError as exc:
        log.warning("Teams needs a package: %s", exc)
        raise PackagesMissing from exc

    with _making:
        if not _current or _current[0][0] is not parts:
            _current[:] = [(parts, TeamsConversations(parts))]
        return _current[0][1]


async def finish(seconds: float) -> None:
    """Wait until all answers have been sent, at most `seconds`."""
    for _parts, conversations in _current:
        await conversations.finish(seconds)


async def messages(request: Request) -> Response:
    """Receive a message. The answer is sent through Teams, not in this response."""
    parts, header = services(), request.headers.get("authorization", "")
    if not header.startswith("Bearer "):
        return refusal(request.scope, KeyRejected())
    content = b""
    async for part in request.stream():
        content += part
        if len(content) > MAXIMUM_BYTES:
            return refusal(request.scope, BodyTooLarge())
    try:
        conversations = await to_thread.run_sync(_conversations, parts)
        await conversations.take(header.removeprefix("Bearer "), content)
    except RagError as exc:
        return refusal(request.scope, exc)
    return Response(status_code=202)
