"""Sensitive acts need a recent sign-in: a browser that was left open makes no keys, and exports and deletes nothing.

The rule is checked where the act is done. It is about browsers: API keys, commands and the product's own work have no
session, and a key is its own proof.
"""

from __future__ import annotations

from urllib.parse import quote

from rag.errors import SignInAgain
from rag.storage.database import Database
from rag.types import Identity, Who

#: The page that asks again.
CONFIRM = "/account/confirm"


def is_recent(database: Database, who: Who) -> bool:
    """Whether this person proved who they are within `RAG_RECENT_SIGN_IN_MINUTES`, or need not."""
    minutes = database.recent_sign_in_minutes
    if not isinstance(who, Identity) or not who.session_id or not minutes:
        return True
    where = {"session_id": who.session_id, "account_id": who.account_id, "minutes": minutes}
    return bool(database.fetch_value(who, "is_recent_sign_in", **where))


def require_recent(database: Database, who: Who) -> None:
    """Raise `SignInAgain` unless the sign-in of this session is recent enough for a sensitive act."""
    if not is_recent(database, who):
        raise SignInAgain(link=CONFIRM)


def confirm_address(back_to: str) -> str:
    """Where to confirm who one is, and to be sent back from to this path."""
    return f"{CONFIRM}?next={quote(back_to, safe='/')}"
