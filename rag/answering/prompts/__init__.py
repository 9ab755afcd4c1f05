"""Build the messages for a chat model. The wording is in the files of `prompts/`; this module sets their order."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from rag.answering.citations import without_markers
from rag.profiles.profile import Profile
from rag.providers import as_data, defused
from rag.text.tokens import estimate_tokens
from rag.types import ChatMessage

FOLDER = Path(__file__).parent
#: The rules and the order of prompts as the sources have them.
SOURCE = FOLDER / "source"
#: A model that finds no answer in the passages begins its reply so; the reader never sees it.
NOT_FOUND = "NOT_FOUND"
HISTORY_TOKENS = 1500
#: A long answer of an earlier turn says its subject at its beginning.
TURN_CHARACTERS = 2000
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


#: The same in Korean, for rules that are written in it.
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
    """How the language of an ISO 639-1 code is called in a prompt."""
    names, unknown = LANGUAGES, "the same language as the question"
    if in_korean:
        names, unknown = LANGUAGES_IN_KOREAN, "질문과 같은 언어"
    return names.get(language.split("-")[0], unknown)


def system_prompt(
    name: str,
    *,
    language: str,
    persona_name: str = "",
    persona_facts: str = "",
    own_name: str = "",
    own_rules: str = "",
    is_source: bool = False,
) -> str:
    """Return the rules of a profile's answers from `prompts/<name>.md`, or `hr`'s if the profile has none.

    With `is_source` they are those of `source/<name>.md`, where the profile's source gives any.

    `persona_name` and `persona_facts` describe the person for whom a profile speaks. `own_name` is the collection's
    name, and `own_rules` are its administrator's additions.
    """
    if is_source and (SOURCE / f"{name}.md").is_file():
        return _source_rules(
            _read(SOURCE / f"{name}.md"),
            {
                "language": language_name(language),
                "persona": persona_part(persona_name, persona_facts),
                "board": own_name.strip() or "this",
            },
            own_rules,
        )
    path = FOLDER / f"{name}.md"
    rules = _read(path if path.is_file() else FOLDER / "hr.md")
    values = {
        "language": language_name(language, in_korean=bool(_HANGUL.search(rules))),
        "persona": persona_part(persona_name, persona_facts),
    }
    called, added = OWN_IN_KOREAN if _HANGUL.search(rules) else OWN
    own = [f"{called} {own_name.strip()}"] if own_name.strip() else []
    own += [f"{added}\n{own_rules.strip()}"] if own_rules.strip() else []
    return "\n\n".join([_filled(rules, values), *own])


def rules_of(profile: Profile, language: str) -> str:
    """Return the system prompt for answers of a profile in a language (ISO 639-1)."""
    answer = profile.answer
    return system_prompt(
        answer.prompt,
        language=language,
        persona_name=answer.persona_name,
        persona_facts=answer.persona_facts,
        own_name=answer.own_name,
        own_rules=answer.own_rules,
        is_source=answer.source_prompt,
    )


def _source_rules(rules: str, values: Mapping[str, str], own_rules: str) -> str:
    added = [f"{OWN[1]}\n{own_rules.strip()}"] if own_rules.strip() else []
    return "\n\n".join([_filled(rules, values), *added])


#: Introduces a collection's own name and rules.
OWN = ("The name of this collection:", "Further rules of its administrator:")
OWN_IN_KOREAN = ("이 게시판이나 자료의 이름:", "관리자가 더한 규칙:")


def persona_part(name: str, facts: str) -> str:
    """Who speaks: the person the profile was set up for, or nobody in particular."""
    if not name.strip():
        return _read(FOLDER / "no_persona.md")
    return _filled(_read(FOLDER / "persona.md"), {"name": name.strip(), "facts": facts.strip() or "(none)"})


def _filled(text: str, values: Mapping[str, str]) -> str:
    """Every `{name}` replaced once: braces in what goes in stay as they are."""
    return re.sub(r"\{(\w+)\}", lambda match: values.get(match[1], match[0]), text)


def own_place_rule(group: str, numbers: Sequence[int]) -> str:
    """Return the rule on passages, by their numbers, of documents for the place that the asker's group names."""
    named = defused(" ".join(group.split()))
    return _filled(_read(FOLDER / "own_place.md"), {"group": named, "numbers": "".join(f"[{n}]" for n in numbers)})


def opinion_rules(opinion_type: str) -> str:
    """Return the rules of an opinion's draft."""
    return _filled(_read(FOLDER / "opinion.md"), {"opinion_type": " ".join(opinion_type.split()) or "의견서"})


def answer_messages(
    *, system: str, history: Sequence[ChatMessage], context_text: str, question: str, form: str = ""
) -> list[ChatMessage]:
    """Return the rules, the last turns, then the passages and the question.

    `form` names a profile whose source gives the order: then all of it is in the last message, as in
    `source/<form>.user.md`.
    """
    if form and (path := SOURCE / f"{form}.user.md").is_file():
        values = {"system_prompt": system, "context": defused(context_text), "query": question}
        return [*history, ChatMessage(role="user", content=_filled(_read(path), values))]
    return [
        ChatMessage(role="system", content=system),
        *history,
        ChatMessage(
            role="user",
            content=f"{as_data('passages', context_text)}\n\nThe question:\n{question}",
        ),
    ]


def rewrite_messages(history: Sequence[ChatMessage], question: str) -> list[ChatMessage]:
    """Return the messages that ask for a standalone form of the question."""
    return [
        ChatMessage(role="system", content=_read(FOLDER / "rewrite.md")),
        ChatMessage(role="user", content=f"{_conversation(history)}\n\nThe last message:\n{question}"),
    ]


def route_rules(task: str, language: str) -> str:
    """Return the rules of an answer about whole documents: a `summary`, a `comparison` or a `listing`."""
    return _filled(_read(FOLDER / f"{task}.md"), {"language": language_name(language)})


def route_messages(text: str) -> list[ChatMessage]:
    """Asks what a message wants of whole documents."""
    return [
        ChatMessage(role="system", content=_read(FOLDER / "route.md")),
        ChatMessage(role="user", content=f"The message:\n{text}"),
    ]


def follow_up_messages(
    *, question: str, answer: str, context_text: str, language: str, count: int
) -> list[ChatMessage]:
    """Asks for questions to ask next."""
    system = _read(FOLDER / "follow_ups.md").replace("{language}", language_name(language))
    turns = (ChatMessage(role="user", content=question), ChatMessage(role="assistant", content=without_markers(answer)))
    return [
        ChatMessage(role="system", content=system.replace("{count}", str(count))),
        ChatMessage(role="user", content=f"{as_data('passages', context_text)}\n\n{_conversation(turns)}"),
    ]


def recent_turns(history: Sequence[ChatMessage], *, maximum_tokens: int = HISTORY_TOKENS) -> list[ChatMessage]:
    """Return the last turns that fit, oldest first, without citations; begins with a question."""
    kept: list[ChatMessage] = []
    left = maximum_tokens
    for turn in reversed(history):
        content = without_markers(turn.content).strip()
        if len(content) > TURN_CHARACTERS:
            content = content[:TURN_CHARACTERS] + " …"
        left -= estimate_tokens(content)
        if left < 0:
            break
        if content:
            kept.insert(0, ChatMessage(role=turn.role, content=content))
    while kept and kept[0].role != "user":
        kept.pop(0)
    return kept


class NotFoundMark:
    """Takes `NOT_FOUND` off the beginning of a reply while it streams. `is_set` says whether it was there."""

    def __init__(self) -> None:
        self._held: str | None = ""
        self.is_set = False

    def feed(self, delta: str) -> str:
        """Return what may be shown; nothing until the beginning is known not to be the mark."""
        if self._held is None:
            return delta
        self._held += delta
        start = self._held.lstrip(" \t\r\n*_`\"'[(")
        if len(start) < len(NOT_FOUND) and NOT_FOUND.startswith(start.upper()):
            return ""
        if not start.upper().startswith(NOT_FOUND):
            return self._release(self._held.lstrip())
        self.is_set = True
        rest = start[len(NOT_FOUND) :].lstrip(" \t\r\n*_`\"'])}:.,;–—-")
        return self._release(rest) if rest else ""

    def finish(self) -> str:
        """Return the text held back when the reply ended: an incomplete mark is text after all."""
        held, self._held = self._held, None
        return "" if self.is_set or held is None else held.strip()

    def _release(self, text: str) -> str:
        self._held = None
        return text


def _conversation(turns: Sequence[ChatMessage]) -> str:
    """Return turns as data: what the assistant said may repeat a document."""
    speakers = {"user": "Asker", "assistant": "Assistant", "system": "System"}
    return as_data("conversation", "\n".join(f"{speakers[turn.role]}: {turn.content}" for turn in turns))


@cache
def _read(path: Path) -> str:
    return path.read_text("utf-8").strip()
