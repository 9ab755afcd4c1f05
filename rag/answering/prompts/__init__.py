"""Build the messages for a chat model. The wording is in the files in `prompts/`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from rag.answering.citations import without_markers
from rag.profiles.parts import Answer
from rag.providers import as_data, defused
from rag.text.tokens import estimate_tokens
from rag.types import ChatMessage

FOLDER = Path(__file__).parent
#: Rules and prompt layouts as given by the sources.
SOURCE = FOLDER / "source"
#: A model starts its reply with this mark if the passages hold no answer; the reader never sees the mark.
NOT_FOUND = "NOT_FOUND"
HISTORY_TOKENS = 1500
#: Characters kept from each earlier turn: a long answer names its subject at the start.
MESSAGE_CHARACTERS = 2000
LANGUAGES = {
    "en": "English",
    "nl": "Dutch",
    "de": "German",
    "fr": "French",
    "es": "Spanish",
    "it": "Italian",
    "pt": "Portuguese",
    "pl": "Polish",
    "ko": "Korean",
    "ja": "Japanese",
    "zh": "Chinese",
    "ar": "Arabic",
    "tr": "Turkish",
}


#: Language names in Korean, for rules written in Korean.
LANGUAGES_IN_KOREAN = {
    "en": "영어",
    "nl": "네덜란드어",
    "de": "독일어",
    "fr": "프랑스어",
    "es": "스페인어",
    "it": "이탈리아어",
    "pt": "포르투갈어",
    "pl": "폴란드어",
    "ko": "한국어",
    "ja": "일본어",
    "zh": "중국어",
    "ar": "아랍어",
    "tr": "튀르키예어",
}
_HANGUL = re.compile(r"[가-힣]")


def language_name(language: str, *, in_korean: bool = False) -> str:
    """Return a language's name for a prompt, from its ISO 639-1 code."""
    names, unknown = LANGUAGES, "the same language as the question"
    if in_korean:
        names, unknown = LANGUAGES_IN_KOREAN, "질문과 같은 언어"
    return names.get(language.split("-")[0], unknown)


def rules_of(answer: Answer, language: str) -> str:
    """Return the system prompt for answers in a language (ISO 639-1).

    `answer` has the profile's settings for answers. The rules are in `prompts/<name>.md` (`name` is the profile's
    prompt), or in `prompts/hr.md` if this file does not exist. With `source_prompt`, `prompts/source/<name>.md` is
    preferred.
    """
    name, persona = answer.prompt, persona_part(answer.persona_name, answer.persona_facts)
    own_name, own_rules = answer.own_name.strip(), answer.own_rules
    if answer.source_prompt and (SOURCE / f"{name}.md").is_file():
        return _source_rules(
            _read(SOURCE / f"{name}.md"),
            {
                "language": language_name(language),
                "persona": persona,
                "board": own_name or "this",
            },
            own_rules,
        )
    path = FOLDER / f"{name}.md"
    rules = _read(path if path.is_file() else FOLDER / "hr.md")
    values = {
        "language": language_name(language, in_korean=bool(_HANGUL.search(rules))),
        "persona": persona,
    }
    called, added = ADDITIONS_IN_KOREAN if _HANGUL.search(rules) else ADDITIONS
    additions = [f"{called} {own_name}"] if own_name else []
    additions += [f"{added}\n{own_rules.strip()}"] if own_rules.strip() else []
    return "\n\n".join([_fill(rules, values), *additions])


def _source_rules(rules: str, values: Mapping[str, str], own_rules: str) -> str:
    added = [f"{ADDITIONS[1]}\n{own_rules.strip()}"] if own_rules.strip() else []
    return "\n\n".join([_fill(rules, values), *added])


#: Introduce a collection's name, and the rules added by the administrator.
ADDITIONS = ("The name of this collection:", "Further rules of its administrator:")
ADDITIONS_IN_KOREAN = ("이 게시판이나 자료의 이름:", "관리자가 더한 규칙:")


def persona_part(name: str, facts: str) -> str:
    """Return the prompt's part about the person for whom the answers speak. Without a name, the part says there is no
    person.
    """
    if not name.strip():
        return _read(FOLDER / "no_persona.md")
    return _fill(_read(FOLDER / "persona.md"), {"name": name.strip(), "facts": facts.strip() or "(none)"})


def _fill(text: str, values: Mapping[str, str]) -> str:
    """Replace each `{name}` in a text by its value; braces inside the values stay unchanged."""
    return re.sub(r"\{(\w+)\}", lambda match: values.get(match[1], match[0]), text)


def own_place_rule(group: str, numbers: Sequence[int]) -> str:
    """Return the prompt's rule about the user's country or site, with the group's name and the passages' numbers."""
    named = defused(" ".join(group.split()))
    return _fill(_read(FOLDER / "own_place.md"), {"group": named, "numbers": "".join(f"[{n}]" for n in numbers)})


def opinion_rules(opinion_type: str) -> str:
    """Return the rules for drafting a legal opinion."""
    return _fill(_read(FOLDER / "opinion.md"), {"opinion_type": " ".join(opinion_type.split()) or "의견서"})


def answer_messages(
    *, system: str, history: Sequence[ChatMessage], context_text: str, question: str, form: str = ""
) -> list[ChatMessage]:
    """Return the messages for an answer: the rules, the conversation's last messages, the passages and the question.

    If the file `source/<form>.user.md` exists, the last message has rules, passages and question in this file's layout.
    """
    if form and (path := SOURCE / f"{form}.user.md").is_file():
        values = {"system_prompt": system, "context": defused(context_text), "query": question}
        return [*history, ChatMessage(role="user", content=_fill(_read(path), values))]
    return [
        ChatMessage(role="system", content=system),
        *history,
        ChatMessage(
            role="user",
            content=f"{as_data('passages', context_text)}\n\nThe question:\n{question}",
        ),
    ]


def rewrite_messages(history: Sequence[ChatMessage], question: str) -> list[ChatMessage]:
    """Return the messages which ask for a standalone question."""
    return [
        ChatMessage(role="system", content=_read(FOLDER / "rewrite.md")),
        ChatMessage(role="user", content=f"{_conversation(history)}\n\nThe last message:\n{question}"),
    ]


def route_rules(task: str, language: str) -> str:
    """Return the rules for a reply about whole documents: a `summary`, a `comparison` or a `listing`."""
    return _fill(_read(FOLDER / f"{task}.md"), {"language": language_name(language)})


def route_messages(text: str) -> list[ChatMessage]:
    """Return the messages which ask whether a message is about whole documents."""
    return [
        ChatMessage(role="system", content=_read(FOLDER / "route.md")),
        ChatMessage(role="user", content=f"The message:\n{text}"),
    ]


def follow_up_messages(
    *, question: str, answer: str, context_text: str, language: str, count: int
) -> list[ChatMessage]:
    """Return the messages which ask the model for `count` questions to suggest."""
    system = _read(FOLDER / "follow_ups.md").replace("{language}", language_name(language))
    messages = (
        ChatMessage(role="user", content=question),
        ChatMessage(role="assistant", content=without_markers(answer)),
    )
    return [
        ChatMessage(role="system", content=system.replace("{count}", str(count))),
        ChatMessage(role="user", content=f"{as_data('passages', context_text)}\n\n{_conversation(messages)}"),
    ]


def recent_messages(history: Sequence[ChatMessage], *, maximum_tokens: int = HISTORY_TOKENS) -> list[ChatMessage]:
    """Return the last messages within a token budget, oldest first, without citations. Starts with a question."""
    recent: list[ChatMessage] = []
    remaining = maximum_tokens
    for message in reversed(history):
        content = without_markers(message.content).strip()
        if len(content) > MESSAGE_CHARACTERS:
            content = content[:MESSAGE_CHARACTERS] + " …"
        remaining -= estimate_tokens(content)
        if remaining < 0:
            break
        if content:
            recent.insert(0, ChatMessage(role=message.role, content=content))
    while recent and recent[0].role != "user":
        recent.pop(0)
    return recent


class NotFoundMark:
    """Removes the marker `NOT_FOUND` from a streamed reply's start. `is_set` tells whether the reply had the marker."""

    def __init__(self) -> None:
        self._buffer: str | None = ""
        self.is_set = False

    def feed(self, delta: str) -> str:
        """Return the text to show, or "" while the start may still be the marker."""
        if self._buffer is None:
            return delta
        self._buffer += delta
        start = self._buffer.lstrip(" \t\r\n*_`\"'[(")
        if len(start) < len(NOT_FOUND) and NOT_FOUND.startswith(start.upper()):
            return ""
        if not start.upper().startswith(NOT_FOUND):
            return self._release(self._buffer.lstrip())
        self.is_set = True
        rest = start[len(NOT_FOUND) :].lstrip(" \t\r\n*_`\"'])}:.,;–—-")
        return self._release(rest) if rest else ""

    def finish(self) -> str:
        """Return the text held back when the stream ended. An incomplete marker is ordinary text."""
        rest, self._buffer = self._buffer, None
        return "" if self.is_set or rest is None else rest.strip()

    def _release(self, text: str) -> str:
        self._buffer = None
        return text


def _conversation(messages: Sequence[ChatMessage]) -> str:
    """Return the conversation in a block marked "data", because replies may quote instructions hidden in a document."""
    speakers = {"user": "Asker", "assistant": "Assistant", "system": "System"}
    return as_data("conversation", "\n".join(f"{speakers[message.role]}: {message.content}" for message in messages))


@cache
def _read(path: Path) -> str:
    return path.read_text("utf-8").strip()
