"""Which files of Streamlit's memory a session was shown: pictures of pages, exports, recordings.

Streamlit serves them to whoever names them, by a hash of their content. Here they are served to those whose page was
drawn with them, and to nobody else, whatever address has been passed on. Only fields that Streamlit fills with the
address of a file count: text that is sent back to a browser, such as a page that was not found, may hold any address.
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator

from google.protobuf.message import DecodeError
from google.protobuf.message import Message as Value
from starlette.types import Message, Send
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

PATH = "/media/"
NAME = re.compile(r"/media/([A-Za-z0-9_-]+(?:\.[A-Za-z0-9]+)?)")
#: Fields of Streamlit's messages to the browser that hold addresses of files, by message.
FILE_FIELDS = frozenset(
    {
        "Audio.url",
        "Block.ChatMessage.avatar",
        "DeferredFileResponsePayload.url",
        "DownloadButton.url",
        "Favicon.url",
        "Image.url",
        "Logo.icon_image",
        "Logo.image",
        "PageConfig.favicon",
        "SubtitleTrack.url",
        "Video.url",
    }
)
#: Files remembered for a session, and sessions; those shown last.
MOST_FILES = 2_000
MOST_SESSIONS = 10_000


class ShownMedia:
    """Remembers the files that pages of each session were drawn with. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._shown: OrderedDict[str, OrderedDict[str, None]] = OrderedDict()

    def may(self, session_id: str, path: str) -> bool:
        """Whether the file of this path was shown to the session."""
        with self._lock:
            return path.removeprefix(PATH) in self._shown.get(session_id, ())

    def noting(self, session_id: str, send: Send) -> Send:
        """`send` of a websocket that remembers the files it draws pages with."""

        async def noted(message: Message) -> None:
            frame = message.get("bytes") or b""
            if PATH.encode() in frame:
                self._note(session_id, files_in(frame))
            await send(message)

        return noted

    def forget(self, session_id: str) -> None:
        """The session has ended."""
        with self._lock:
            self._shown.pop(session_id, None)

    def _note(self, session_id: str, names: Iterable[str]) -> None:
        with self._lock:
            files = self._shown.setdefault(session_id, OrderedDict())
            self._shown.move_to_end(session_id)
            for name in names:
                files[name] = None
                files.move_to_end(name)
            while len(files) > MOST_FILES:
                files.popitem(last=False)
            while len(self._shown) > MOST_SESSIONS:
                self._shown.popitem(last=False)


def files_in(frame: bytes) -> list[str]:
    """The names of the files that this message of Streamlit draws something with, or offers for download."""
    try:
        sent = ForwardMsg.FromString(frame)
    except DecodeError:
        return []
    return [found[1] for address in _file_addresses(sent) if (found := NAME.fullmatch(address))]


def _file_addresses(value: Value) -> Iterator[str]:
    for field, content in value.ListFields():
        if field.message_type is not None:
            for part in content if field.is_repeated else (content,):
                if isinstance(part, Value):
                    yield from _file_addresses(part)
        elif f"{value.DESCRIPTOR.full_name}.{field.name}" in FILE_FIELDS:
            yield content
