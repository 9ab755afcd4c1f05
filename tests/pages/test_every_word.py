"""Every word that a page draws comes from a catalogue: the pages in a language that brackets each of its sentences.

What a page sends to the browser outside the brackets is data, figures, or words that nobody can translate; these are
found as literals of our own code.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from babel.messages.pofile import write_po
from google.protobuf.message import Message
from streamlit.dataframe_util import convert_arrow_bytes_to_pandas_df
from streamlit.testing.v1 import AppTest

from rag import language
from rag.language import LANGUAGES
from rag.locales import catalogues
from rag.samples.load import load_samples
from rag.services import Services
from rag.types import Collection, Identity, Role, UploadOptions
from tests.pages.conftest import HANDBOOK
from tests.pages.small_pdf import pdf
from tests.question_month import write_month

SignIn = Callable[[Role], tuple[AppTest, Identity]]
PROJECT = Path(__file__).resolve().parents[2]
PAGES = sorted(path.name for path in (PROJECT / "pages").glob("*.py") if path.name != "main.py")
#: Where a chart, or what a table's columns are set to, keeps its words.
FIGURE_WORDS = {"text", "name", "title", "hovertemplate", "label", "customdata", "x", "y", "help"}
OPEN, CLOSE = "⟦", "⟧"
#: Whose words are in the language of an answer, of a program or of a document.
WORDED = {
    "answering", "retrieval", "samples", "commands", "providers", "question_templates", "storage", "sandbox",
    "evaluation", "openapi", "digest",
}  # fmt: skip
#: Names of products and languages, and what only looks like a sentence of ours.
OF_NOBODY = {"Operations", "HR documents", "days of", "of the", "People", "Websites", "Events", *LANGUAGES.values()}
#: What a browser never shows: who is who, styles, formats, addresses and scripts.
NOT_SHOWN = {
    "id", "element_id", "url", "icon", "format", "javascript", "js_content", "css_content", "html_content", "color",
    "url_pathname", "page_script_hash", "script_hash", "form_id", "type", "query_param_key", "user_key", "key",
    "position", "step", "language", "coordinates", "identifier", "component_name", "mime_type", "download_filename",
    "bind", "active_script_hash", "raw_value", "raw_values", "page", "divider",
}  # fmt: skip


@pytest.fixture
def bracketed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """German as a language whose every sentence is the English one in brackets."""
    catalogue = catalogues.template()
    catalogue.locale = "de"
    for message in catalogue:
        if message.id:
            many = isinstance(message.id, (tuple, list))
            marked = tuple(f"{OPEN}{text}{CLOSE}" for text in (message.id if many else (message.id,)))
            message.string = marked if many else marked[0]
            message.flags.discard("fuzzy")
    path = tmp_path / "de" / "LC_MESSAGES" / f"{language.DOMAIN}.po"
    path.parent.mkdir(parents=True)
    with path.open("wb") as file:
        write_po(file, catalogue)
    monkeypatch.setattr(language, "FOLDER", tmp_path)
    for kept in (language._read, language._beginnings, language._refilled):
        kept.cache_clear()
    with language.speaking("de"):
        yield
    for kept in (language._read, language._beginnings, language._refilled):
        kept.cache_clear()


@cache
def literals() -> frozenset[str]:
    """Words that our pages could draw: strings of the code of several words, or of one that begins with a capital."""
    found: set[str] = set()
    for path in [*(PROJECT / "pages").glob("*.py"), *(PROJECT / "rag").rglob("*.py")]:
        if not WORDED.isdisjoint(path.relative_to(PROJECT).with_suffix("").parts):
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found |= {piece.strip() for piece in re.split(r"\{\w+\}|\n", node.value)}
    return frozenset(text for text in found if re.fullmatch(r"[A-Za-z][\w-]* .*[a-z]{2}.*|[A-Z][a-z]{2,}", text))


def strings(message: Message, path: str = "") -> Iterator[tuple[str, str]]:
    """Every text within a message to the browser, with the field it is in; tables cell by cell."""
    for field, value in message.ListFields():
        name = f"{path}.{field.name}" if path else field.name
        if field.name in NOT_SHOWN:
            continue
        for one in value if field.is_repeated else [value]:
            if isinstance(one, Message):
                yield from strings(one, name)
            elif isinstance(one, str) and field.name in {"spec", "columns"}:
                yield from figure_texts(json.loads(one), name)
            elif isinstance(one, str) and path == "" and field.name == "body" and "<" in one:
                shown = re.sub(r"<(script|style)\b.*?</\1>", " ", one, flags=re.DOTALL)
                yield name, re.sub(r"<[^>]*>", "\n", shown)
            elif isinstance(one, str):
                yield name, one
            elif isinstance(one, bytes) and field.name == "data":
                frame = convert_arrow_bytes_to_pandas_df(one)
                yield from ((f"{name}.head", str(head)) for head in frame.columns)
                yield from ((f"{name}.cell", str(cell)) for column in frame for cell in frame[column].head(20) if cell)


def figure_texts(figure: Any, path: str, key: str = "") -> Iterator[tuple[str, str]]:
    """The words of a chart: its titles, names and what is read under the pointer."""
    if isinstance(figure, dict):
        for name, value in figure.items():
            yield from figure_texts(value, path, name)
    elif isinstance(figure, list):
        for value in figure:
            yield from figure_texts(value, path, key)
    elif isinstance(figure, str) and key in {
        "text",
        "name",
        "title",
        "hovertemplate",
        "label",
        "customdata",
        "x",
        "y",
        "help",
    }:
        yield f"{path}.{key}", figure


def outside(text: str) -> str:
    """What is left of a text without the sentences of the catalogues, whatever was filled into them."""
    while (less := re.sub(rf"{OPEN}[^{OPEN}{CLOSE}]*{CLOSE}", " ", text)) != text:
        text = less
    return text


def words_past(tab: AppTest) -> set[tuple[str, str]]:
    """Literals of ours that the page drew past the catalogues, with the field of the message they are in."""
    found = set()
    for node in tab._tree:
        proto = getattr(node, "proto", None)
        for name, text in strings(proto) if proto is not None else ():
            rest = outside(text)
            pieces = {piece.strip(" *:#_`") for piece in re.split(r"[\n·|]|\*\*", rest)}
            for literal in literals():
                if literal in pieces or (" " in literal and f" {literal} " in f" {rest} "):
                    found.add((f"{type(proto).__name__}.{name}", literal))
    return found


@pytest.mark.usefixtures("bracketed")
def test_every_word_of_every_page_is_asked_of_a_catalogue(
    running: Services, signed_in: SignIn, new_tab: Callable[[str], AppTest], handbook: Collection
) -> None:
    load_samples(running, collection=handbook)
    write_month(running.database, "demo", handbook.id, until=datetime.now(UTC).date(), days=40, questions_per_day=6)
    _, identity = signed_in(Role.ADMIN)
    running.sessions.set_language(identity.tenant_id, identity.account_id, "de")
    references = running.documents.create_collection(identity, "Case law", "legal")
    running.pipeline.process_document(
        file=pdf(HANDBOOK),
        file_name="judgment.pdf",
        tenant_id="demo",
        collection=references,
        options=UploadOptions(generate_metadata=False),
    )
    document = next(d for d in running.documents.list("demo") if d.file_name == "handbook.pdf")
    found: dict[str, set[tuple[str, str]]] = {}
    for page, query, state in looked_at(document.id, handbook.id, references.id):
        tab = new_tab(identity.session_id).run()
        for name, value in query.items():
            tab.query_params[name] = value
        for name, value in state.items():
            tab.session_state[name] = value
        tab.switch_page(page).run()
        if closed := [key for node in tab._tree if (key := expander_key(node))]:
            for key in closed:
                tab.session_state[key] = True
            tab.run()
        assert not tab.exception
        for place, words in words_past(tab):
            found.setdefault(words, set()).add((page, place))
    past = {words: places for words, places in found.items() if words not in OF_NOBODY}
    assert not past, "\n".join(f"{words}: {sorted(places)}" for words, places in past.items())


def looked_at(document: UUID, *collections: UUID) -> Iterator[tuple[str, dict[str, str], dict[str, Any]]]:
    """Pages with what is in their address and what was chosen on them."""
    yield from ((page, {}, {}) for page in PAGES)
    for tab in ("Pages", "Passages", "Details", "Questions", "Cost"):
        yield "documents.py", {"document": str(document)}, {f"documents_tabs_{document}": f"{OPEN}{tab}{CLOSE}"}
    yield "documents.py", {}, {"documents_selected": [document]}
    yield "documents.py", {}, {"documents_view": "bin"}
    yield "library.py", {"document": str(document)}, {}
    yield from (("collection_settings.py", {"collection": str(collection)}, {}) for collection in collections)
    for tab in ("Costs", "Times", "Search", "Questions", "Unanswered questions", "Quality"):
        yield "analytics.py", {"analytics_view": f"{OPEN}{tab}{CLOSE}"}, {}


def expander_key(node: Any) -> str:
    """The key of an expander or a popover that draws its content only when it is open."""
    proto: Any = getattr(node, "proto", None)
    key = proto.id.rsplit("-", 1)[-1] if type(proto).__name__ in {"Expandable", "Popover"} and proto.id else ""
    return "" if key == "None" else key
