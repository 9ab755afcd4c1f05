"""Meet small talk in one friendly line: a greeting, thanks, "who are you", a small insult or "write me a poem".

Only a message that is small talk and nothing else counts: "Hi, how many days of leave do I have?" is a question.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path
from typing import NamedTuple

#: Characters around the words that change nothing: punctuation, emoji and other symbols.
AROUND = re.compile(r"[^\w\s'’]+|_")
PARTS = re.compile(r"[,;.!?。！？、，؟]+|\s[-–—]\s")
#: A longer message is more than small talk.
LONGEST = 120
#: A word this short is small talk only in the asker's own language: in English, "PA" may be a search.
SHORTEST = 2


class _Said(NamedTuple):
    messages: re.Pattern[str]
    reply: str


def small_talk(text: str, *, language: str, reply_language: str = "") -> str | None:
    """Return the friendly line that meets small talk; None for everything else.

    `language` is the one the asker probably writes: it counts for words that several languages say alike. The line is
    in `reply_language`, or where none is given in the language of the words.
    """
    if len(text) > LONGEST:
        return None
    line = _met(text, language, reply_language)
    if line is not None:
        return line
    # "Hi! Who are you?" is met by what answers its last part; one part that is no small talk makes it a question.
    lines = [_met(part, language, reply_language) for part in PARTS.split(text) if AROUND.sub("", part).strip()]
    return lines[-1] if len(lines) > 1 and all(lines) else None


def _met(text: str, language: str, reply_language: str) -> str | None:
    # A capital "I" with a dot, as Turkish writes it, becomes two characters.
    lowered = text.lower().replace("\u0307", "").replace("’", "'")
    said = " ".join(AROUND.sub(" ", lowered).split())
    if not said:
        return None
    likely = _code(language)
    known = _known()
    for code in [likely, *(code for code in known if code != likely)]:
        if len(said) <= SHORTEST and code != likely and said.isascii():
            continue
        for kind, (messages, reply) in known.get(code, {}).items():
            if messages.fullmatch(said):
                wanted = known.get(_code(reply_language), {}).get(kind)
                return wanted.reply if wanted else reply
    return None


def _code(language: str) -> str:
    return language.split("-")[0].lower()


@cache
def _known() -> dict[str, dict[str, _Said]]:
    """By language, then kind."""
    table = tomllib.loads(Path(__file__).with_name("small_talk.toml").read_text("utf-8"))
    return {
        language: {
            kind: _Said(re.compile(messages), parts["replies"][kind]) for kind, messages in parts["messages"].items()
        }
        for language, parts in table.items()
    }
