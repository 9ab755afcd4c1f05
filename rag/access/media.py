"""Which files of Streamlit's memory a session was shown: pictures of pages, exports, recordings.

Streamlit serves them to whoever names them, by a hash of their content. Here they are served to those whose page was
drawn with them, and to nobody else, whatever address has been passed on.
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Iterable

from starlette.types import Message, Send

PATH = "/media/"
NAME = re.compile(rb"/media/([A-Za-z0-9_-]+(?:\.[A-Za-z0-9]+)?)")
#: Files remembered for a session, and sessions; those shown last.
MOST_FILES = 2_000
MOST_SESSIONS = 10_000


class ShownMedia:
    """Remembers what the websockets of each session have named. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._shown: OrderedDict[str, OrderedDict[str, None]] = OrderedDict()

    def may(self, session_id: str, path: str) -> bool:
        """Whether the file of this path was shown to the session."""
        with self._lock:
            return path.removeprefix(PATH) in self._shown.get(session_id, ())

    def noting(self, session_id: str, send: Send) -> Send:
        """`send` of a websocket that remembers the files it names."""

        async def noted(message: Message) -> None:
            frame = message.get("bytes") or b""
            if PATH.encode() in frame:
                self._note(session_id, (found.decode() for found in NAME.findall(frame)))
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
