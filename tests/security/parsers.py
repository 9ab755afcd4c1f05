"""What reads the text of strangers in the application's own process, for `benchmarks.fuzz` and its test.

A target takes any text and raises nothing but its refusals. The longest text that reaches it, 1 MB where nothing else
limits it, takes at most two seconds of processor time. Files are parsed in the sandbox: these look at them before.
Integrations have theirs in `parsers.py` beside their tests.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request

from rag import chunk_text, language
from rag.access.connected_apps import check_address
from rag.access.guard import is_own_host, is_same_origin, read_cookie
from rag.access.mail import list_text, people_from
from rag.api.questions import accepted_languages
from rag.errors import FileKindUnknown, FileNotAsNamed, InvalidInput
from rag.evaluation.golden import parse_golden
from rag.ingestion.loaders.detection import kind_of, require_as_named
from rag.ingestion.loaders.format_table import file_formats
from rag.settings import Settings
from rag.text.analysers import analyse
from rag.text.language_detection import detect_language
from rag.types import storable
from rag.ui.text import answer_markdown, excerpt, marked, plain
from tests.integration_rows import modules
from tests.security.target import JSON, OF_A_HEAD, Target, content


def request(**headers: str) -> dict[str, Any]:
    """What a server makes of a request with these headers; it reads them as Latin-1."""
    encoded = [(name.encode(), value.encode("utf-8", "replace")) for name, value in headers.items()]
    return {"type": "http", "method": "POST", "scheme": "https", "path": "/", "query_string": b"", "headers": encoded}


def kind_of_file(text: str) -> None:
    kind = kind_of(content(text), "file")
    for loader in file_formats().loaders:
        if loader.kind == kind:
            require_as_named(loader, content(text), f"file{loader.endings[0]}")


SETTINGS = Settings(public_url="https://hr.example.com")
PROSE = (
    "word ",
    "Aa Bb. ",
    "1.",
    "2024-01-01",
    "§ 1",
    "\n\n",
    "# ",
    "- ",
    "| a | b |\n",
    "|---|\n",
    "가나 ",
    "a-b",
    "http://",
)

TARGETS: Mapping[str, Target] = {
    "Accept-Language": Target(
        language.accepted, pieces=("en", "de-DE", ",", ";q=", "0.5", "*"), longest=OF_A_HEAD
    ),
    "Accept-Language of the API": Target(
        lambda text: accepted_languages(Request(request(**{"accept-language": text}))),
        pieces=("en", "de-DE", ",", ";q=", "0.5", "*"), longest=OF_A_HEAD,
    ),
    "Cookie": Target(
        lambda text: read_cookie(request(cookie=text), SETTINGS, "hr_session"),
        pieces=("__Host-hr_session=", "; ", '"', "\\073"), longest=OF_A_HEAD,
    ),
    "Origin": Target(
        lambda text: is_same_origin(request(origin=text, host="hr.example.com"), SETTINGS),
        pieces=("https://", "hr.example.com", ":443", "@", "[::1]", "null"), longest=OF_A_HEAD,
    ),
    "Host": Target(
        lambda text: is_own_host(request(host=text), SETTINGS),
        pieces=("hr.example.com", "localhost", ":443", "[::1]", "@"), longest=OF_A_HEAD,
    ),
    "addresses of programs": Target(
        check_address, (InvalidInput,), ("https://", "http://127.0.0.1", "com.example:", "#", "@", "[::1]", ":99999"),
        4000,
    ),
    "lists of people": Target(
        lambda text: people_from(list_text(content(text))), (InvalidInput,),
        ("email", "name", "role", "group", ",", ";", '"', "a@b.example", "A <a@b.example>", "\n", "admin"),
    ),
    "test questions, CSV": Target(
        lambda text: parse_golden(text, is_csv=True), (InvalidInput,),
        ("question,document,pages\n", "question", "pages", ",", '"', "\n", "1", "leave?"),
    ),
    "test questions, JSON": Target(
        lambda text: parse_golden(text, is_csv=False), (InvalidInput,), (*JSON, '{"question": "leave?", ', '"pages": '),
    ),
    "kinds of files": Target(
        kind_of_file, (FileKindUnknown, FileNotAsNamed),
        ("%PDF-1.7", "PK\x03\x04", "<html>", "<!--", "-->", "<?xml ", "From: a", "Subject: ", "{\\rtf1", "<!DOCTYPE "),
    ),
    # Whatever a document says is made storable first.
    "chunks": Target(lambda text: chunk_text(storable(text)), pieces=PROSE),
    "chunks by sentences": Target(lambda text: chunk_text(storable(text), method="sentences"), pieces=PROSE),
    "chunks of any kind": Target(
        lambda text: chunk_text(storable(text), method="auto", file_name="a.md"), pieces=PROSE
    ),
    "keywords": Target(lambda text: analyse(storable(text), "en"), pieces=PROSE),
    "keywords, Korean": Target(
        lambda text: analyse(storable(text), "ko"), pieces=(*PROSE, "연차휴가를 ", "가" * 30), longest=40_000
    ),
    "language of a text": Target(lambda text: detect_language(storable(text)), pieces=PROSE),
    # A passage and an answer are this long at most, by far.
    "answers": Target(
        lambda text: answer_markdown(text, (1, 2), "a"),
        pieces=(*PROSE, "[1]", "**", "`", "```", "> ", "1. ", "![", "](", "<b>", ":red[", "$"), longest=40_000,
    ),
    "marked passages": Target(
        lambda text: (marked(text, ["leave", text[:20]]), excerpt(text, [text[:9]]), plain(text)),
        pieces=(*PROSE, "leave"), longest=40_000,
    ),
    **{name: target for module in modules("parsers").values() for name, target in module.TARGETS.items()},
}  # fmt: skip

#: What was found once, by target: each is tried in every run of the tests.
FOUND: Mapping[str, tuple[str, ...]] = {
    "lists of people": ("a" * 200_000, f"email\n{'a' * 200_000}"),
    "test questions, CSV": ("a" * 200_000, f'question\n"{"a" * 200_000}'),
    "test questions, JSON": ("[" * 100_000, "1" * 5000),
    # A chunk for each hundred rows, which all were read for each chunk.
    "chunks": ("a | b\n|---|---|\n" + "c | d\n" * 50_000, "a \x94|---|\n" * 100_000),
    # All hits were looked at for each.
    "marked passages": ("}}" * 20_000,),
    # Each script was looked for in all of it, and a word of 1 MB ended nobody knows when.
    "language of a text": ("\xa2[" * 500_000, "p" * 1_000_000),
}
