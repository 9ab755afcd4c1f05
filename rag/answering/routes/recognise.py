"""Recognise questions about whole documents by their wording: summarise, list, compare, or report changes.

"Summarise the rules on sick leave" is an ordinary question unless a document has this title. Therefore the caller also
looks for the documents before taking a route.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date
from functools import cache
from pathlib import Path
from typing import Literal

from rag.answering.prompts import route_messages
from rag.errors import ProviderError
from rag.providers import ChatModel
from rag.retrieval.bm25.index import tokenize

RouteName = Literal["summary", "listing", "comparison", "changes"]
#: The order of tries: "summarise the changes in the handbook" asks for the changes.
ROUTES: tuple[RouteName, ...] = ("changes", "comparison", "listing", "summary")
#: The longest message which can be a request for a route, in characters.
LONGEST = 200
QUOTED = re.compile(r"[“\"«「『„](?P<label>[^”\"»」』“]{1,200})[”\"»」』“]")
#: Stands for a quoted name while the words around it are read.
MASK = "“¤”"
#: A section's number: "2.2", "5:4", "12a".
NUMBER = r"\d{1,4}(?:[.:]\d{1,3}){0,4}[a-z]?"
YEAR = re.compile(r"(?:19|20)\d\d(?!\d)")
#: Words which may ask for a route; a model then decides.
UNSURE = re.compile(
    r"\b(?:summari[sz]e|(?:a|the) summary of|gist of|in a nutshell|tl;?dr|key points of|samenvat\w*|zusammenfass\w*"
    r"|résum\w*|resum(?:en|ir)|riassu\w*|streszcz\w*|podsumow\w*"
    r"|comparison (?:of|between)|side by side|vergelijk\w*|vergleich\w*)\b"
    r"|(?:요약|비교).*(?:해|줘|주세요|부탁)|要約|比較|总结|概括|对比|تلخيص|ملخص|قارن|özetle|karşılaştır",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Recognised:
    """A request to summarise, list, compare or report changes, with the words for the subject."""

    route: RouteName
    #: The subject to summarise, list, compare or report changes for; "" if no subject is named.
    subject: str = ""
    #: The two sides of a comparison.
    first: str = ""
    second: str = ""
    #: The start of the period for changes, in the question's words.
    since: str = ""
    #: For future changes, the latest first day; `None` for past changes.
    until: date | None = None
    #: Whether the asker has seen the price and agreed.
    is_confirmed: bool = False
    #: The wording's language, or "" if a model interpreted the message.
    language: str = field(default="", compare=False)
    #: The message without "yes," at the start.
    text: str = field(default="", compare=False)


def recognise(text: str, *, language: str) -> Recognised | None:
    """Return the request in a message, or `None` for an ordinary question.

    `language` is the user's ISO 639-1 code; patterns in this language are tried first.
    """
    if len(text) > LONGEST:
        return None
    candidates = [request for code in _order(language) if (request := _recognise_in(text, code)) is not None]
    # "Resume el plan" fits two languages; the small words decide.
    return max(candidates, key=lambda request: _small_words(text, request.language), default=None)


def recognise_coming(text: str, *, language: str) -> Recognised | None:
    """Return the request in a question about future changes, or `None` for other questions.

    The caller must remove the date first: "What changes?" matches, "What changes in May?" does not.
    """
    message = _normalize(text)
    for code in _order(language):
        for pattern in _wordings(code).coming:
            if match := pattern.fullmatch(message):
                return Recognised("changes", subject=(match["subject"] or "").strip(), language=code)
    return None


def recognise_section(text: str, *, language: str) -> tuple[str, str] | None:
    """Return the section number a message asks for, and the words for the document ("" for no document).

    "What does section 2.2 of the handbook say?" gives ("2.2", "the handbook"). Returns `None` for other messages.
    """
    message = _normalize(text)
    if len(text) > LONGEST:
        return None
    matches = (p.fullmatch(message) for code in _order(language) for p in _wordings(code).section)
    match = next(filter(None, matches), None)
    return (match["number"], (match["subject"] or "").strip()) if match else None


def _normalize(text: str) -> str:
    return " ".join(text.replace("’", "'").replace("İ", "i").split()).strip(" .?!。！？؟¿¡,，、")


def _recognise_in(text: str, code: str) -> Recognised | None:
    wordings = _wordings(code)
    request, is_confirmed = _without_yes(text, code)
    message = _normalize(request)
    # An "and" inside a quoted name does not separate two names.
    labels = [label[0] for label in QUOTED.finditer(message)]
    masked = QUOTED.sub(MASK, message)
    for route in ROUTES:
        for pattern in wordings.routes[route]:
            if match := pattern.fullmatch(masked):
                rest = iter(labels)
                groups = {name: value.strip() for name, value in match.groupdict().items() if value}
                named = {
                    name: re.sub(MASK, lambda _: next(rest), groups[name])  # noqa: B023 - called at once
                    for name in sorted(groups, key=match.start)
                }
                return Recognised(
                    route,
                    subject=named.get("subject", ""),
                    first=named.get("one", ""),
                    second=named.get("other", ""),
                    since=named.get("since", ""),
                    is_confirmed=is_confirmed,
                    language=code,
                    text=request,
                )
    return None


def _small_words(text: str, code: str) -> int:
    return sum(not tokenize(word, code) for word in re.findall(r"[^\W\d_]+", QUOTED.sub("", text)))


def without_yes(text: str) -> tuple[str, bool]:
    """Remove "yes," from a message's start. Returns the rest, and whether there was a "yes,"."""
    results = (_without_yes(text, code) for code in _order(""))
    return next((rest for rest in results if rest[1]), (text, False))


def _without_yes(text: str, code: str) -> tuple[str, bool]:
    first, comma, rest = re.sub(r"[、，،]", ",", text).partition(",")
    if comma and rest.strip() and _wordings(code).yes.fullmatch(first.strip()):
        return rest.strip(), True
    return text, False


def is_yes(text: str) -> bool:
    """Whether a message only says yes."""
    message = " ".join(text.lower().split()).strip(" .!。！")
    return any(_wordings(code).yes.fullmatch(message) for code in _order(""))


def may_be_request(text: str) -> bool:
    """Whether a message may ask about whole documents, although no known wording matches."""
    return len(text) <= LONGEST and bool(UNSURE.search(text))


def quoted_label(subject: str) -> str:
    """Return the first text in quotation marks, or "" without quotation marks."""
    match = QUOTED.search(subject)
    return match["label"].strip() if match else ""


def names_a_kind(subject: str) -> bool:
    """Whether the text names a kind of document, such as "handbook", in any language."""
    return any(_wordings(code).documents.search(subject) for code in _order(""))


def words_of_a_kind(subject: str) -> list[str]:
    """Return the text's words if all name a kind of document: ["plan"] for "the plan". Otherwise return [].

    Stop words in any language are ignored, because "Resume el plan" may be taken for French.
    """
    telling = [word for word in re.findall(r"\w+", subject.lower()) if all(tokenize(word, code) for code in _order(""))]
    kinds = [word for word in telling if any(_wordings(code).documents.fullmatch(word) for code in _order(""))]
    return kinds if kinds == telling else []


def means_any(subject: str, language: str) -> bool:
    """Whether the text names no particular document: "it", "this document", or only stop words."""
    telling = [word for word in re.findall(r"\w+", subject.lower()) if tokenize(word, language)]
    return all(any(_wordings(code).any.fullmatch(word) for code in _order("")) for word in telling)


def kinds_in(text: str) -> frozenset[int]:
    """Return the ids of the kinds of document named in a text.

    A kind has the same id in all languages: a question can match a title in a different language.
    """
    return frozenset(number for number, pattern in enumerate(_kinds()) if pattern.search(text))


def kind_terms(text: str, language: str) -> frozenset[str]:
    """Return the index terms in words like "handbook", which name kinds of document.

    In scripts without spaces, a word may have several terms.
    """
    words = (match[0] for pattern in _kinds() for match in pattern.finditer(text))
    return frozenset(term for word in words for term in tokenize(word, language))


@dataclass(frozen=True)
class _Wordings:
    routes: dict[RouteName, list[re.Pattern[str]]]
    coming: list[re.Pattern[str]]
    section: list[re.Pattern[str]]
    documents: re.Pattern[str]
    any: re.Pattern[str]
    yes: re.Pattern[str]


def _order(language: str) -> Iterator[str]:
    likely = language.split("-")[0].lower()
    table = _table()
    if likely in table:
        yield likely
    yield from (code for code in table if code != likely)


@cache
def _table() -> dict[str, dict[str, object]]:
    return tomllib.loads(Path(__file__).with_name("wordings.toml").read_text("utf-8"))


@cache
def _wordings(code: str) -> _Wordings:
    table = _table()[code]
    spaced = code not in ("ja", "zh")
    please = f"(?:(?:{table['please']})[,，、]?{' ' if spaced else ' ?'})*"

    def compiled(pattern: object) -> re.Pattern[str]:
        expression = str(pattern).replace("{please}", please).replace("{number}", rf"(?P<number>{NUMBER})")
        return re.compile(expression, re.IGNORECASE)

    def listed(name: str) -> list[re.Pattern[str]]:
        patterns = table[name]
        return [compiled(pattern) for pattern in patterns] if isinstance(patterns, list) else []

    words = table["documents"] if code in ("ko", "ja", "zh") else rf"\b(?:{table['documents']})\b"
    return _Wordings(
        routes={name: listed(name) for name in ROUTES},
        coming=listed("coming"),
        section=listed("section"),
        documents=compiled(words),
        any=compiled(table["any"]),
        yes=compiled(table["yes"]),
    )


@cache
def _kinds() -> tuple[re.Pattern[str], ...]:
    kinds = (
        r"handbook|handboek|handb[uü]ch|manuel|manuale?\b|podręcznik|el kitab|핸드북|편람|ハンドブック|手册|كتيب|دليل",
        r"\bguide|\bgids\b|leitfaden|gu[ií]a\b|guida|przewodnik|rehber|kılavuz|안내|가이드|ガイド|手引|案内|指南|دليل",
        r"polic(?:y|ies)|beleid|richtlinie|politi(?:que|ca)|política|polityk|politika|정책|지침|규정|方針|ポリシー|政策|سياسة",
        r"contract|overeenkomst|vertrag|contrat|contratto|contrato|umow|sözleşme|계약|契約|合同|عقد",
        r"regulation|\brules\b|reglement|ordnung|règlement|reglamento|regolamento|regulamento|regulamin|yönetmeli[kğ]|규칙|規則|規程|制度|لائحة",
        r"plan(?:s|e|en|nen|es|[yuı]|lar[ıi]?)?\b|pläne|\bpian[oi]\b|\bplanos?\b|플랜|요금제|プラン|计划|خطة|خطط",
        r"report|verslag|rapport|bericht|informe|relatório|raport|rapor|보고서|報告書|报告|تقرير",
    )
    return tuple(re.compile(kind, re.IGNORECASE) for kind in kinds)


MAXIMUM_OUTPUT_TOKENS = 120
SCHEMA = {
    "type": "object",
    "properties": {
        "route": {"type": "string", "enum": [*ROUTES, "none"]},
        **{name: {"type": "string"} for name in ("subject", "one", "other", "since")},
    },
    "required": ["route", "subject", "one", "other", "since"],
    "additionalProperties": False,
}


def recognise_by_model(model: ChatModel, text: str) -> Recognised | None:
    """Ask a model which request a message contains. Returns `None` for other messages."""
    try:
        reply = model.complete(
            route_messages(text), temperature=0.0, maximum_output_tokens=MAXIMUM_OUTPUT_TOKENS, json_schema=SCHEMA
        )
    except ProviderError:
        return None
    try:
        values = json.loads(reply.text)
    except (ValueError, RecursionError):
        return None
    route = values.get("route") if isinstance(values, dict) else None
    matching_route = next((name for name in ROUTES if name == route), None)
    if matching_route is None:
        return None
    subject, first, second, since = (
        str(values.get(name) or "").strip() for name in ("subject", "one", "other", "since")
    )
    if (not subject and matching_route in ("summary", "listing")) or (
        matching_route == "comparison" and not (first and second)
    ):
        return None
    return Recognised(matching_route, subject=subject, first=first, second=second, since=since)
