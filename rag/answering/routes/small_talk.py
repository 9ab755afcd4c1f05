"""Reply to small talk with a friendly sentence: a greeting, thanks, "who are you", a small insult, "write me a poem".

Questions about the product, for example the number of documents, are answered here too. The whole message must be small
talk: "Hi, how many days of leave do I have?" is a question.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path
from typing import NamedTuple

#: Characters without meaning around the words: punctuation, emoji and other symbols.
AROUND = re.compile(r"[^\w\s'’]+|_")
PARTS = re.compile(r"[,;.!?。！？、，؟]+|\s[-–—]\s")
#: The longest message which can be small talk, in characters.
LONGEST = 120
#: A message this short is small talk only in the asker's language: "PA", a goodbye in Polish, may be a search in
#: English.
SHORTEST = 2


class _PhraseKind(NamedTuple):
    messages: re.Pattern[str]
    reply: str


class MatchedPhrase(NamedTuple):
    """The kind of small talk in a message, and the reply in the message's language."""

    kind: str
    line: str
    language: str


def small_talk(text: str, *, language: str, reply_language: str = "") -> str | None:
    """Return a friendly reply to small talk, or `None` for any other message.

    `language` is the user's likely language, for words which exist in several languages. The reply is in
    `reply_language`, by default the language of the words.
    """
    if len(text) > LONGEST:
        return None
    if phrase := _match_phrase("small_talk", text, language, reply_language):
        return phrase.line
    # "Hi! Who are you?" gets the reply to its last part. If any part is not small talk, the message is a question.
    parts = [part for part in PARTS.split(text) if AROUND.sub("", part).strip()]
    phrases = [_match_phrase("small_talk", part, language, reply_language) for part in parts]
    return phrases[-1].line if len(phrases) > 1 and phrases[-1] and all(phrases) else None


def about_product(text: str, *, language: str, reply_language: str = "") -> MatchedPhrase | None:
    """Return the reply to a question about the product, with placeholders for numbers, or `None` for other messages.

    The kinds are `documents` (how many, which), `today`, `person` (talking to a person), `kept` (stored data about
    questions) and `instructions`. For the parameters see `small_talk`.
    """
    return _match_phrase("about_product", text, language, reply_language) if len(text) <= LONGEST else None


def _match_phrase(table: str, text: str, language: str, reply_language: str) -> MatchedPhrase | None:
    # Lower-casing the Turkish dotted capital "I" gives two characters.
    lowered = text.lower().replace("\u0307", "").replace("’", "'")
    message = " ".join(AROUND.sub(" ", lowered).split())
    if not message:
        return None
    likely, reply_code = _code(language), _code(reply_language)
    phrases = _read_phrases(table)
    for code in [likely, *(code for code in phrases if code != likely)]:
        if len(message) <= SHORTEST and code != likely and message.isascii():
            continue
        for kind, (messages, reply) in phrases.get(code, {}).items():
            if messages.fullmatch(message):
                return (
                    MatchedPhrase(kind, phrases[reply_code][kind].reply, reply_code)
                    if reply_code in phrases
                    else MatchedPhrase(kind, reply, code)
                )
    return None


def _code(language: str) -> str:
    return language.split("-")[0].lower()


@cache
def _read_phrases(table: str) -> dict[str, dict[str, _PhraseKind]]:
    read = tomllib.loads(Path(__file__).with_name(f"{table}.toml").read_text("utf-8"))
    return {
        language: {
            kind: _PhraseKind(re.compile(messages), parts["replies"][kind])
            for kind, messages in parts["messages"].items()
        }
        for language, parts in read.items()
    }
