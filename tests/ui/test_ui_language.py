"""The interface in the reader's language: every string goes through the catalogues, and these are usable."""

from __future__ import annotations

import ast
import io
import re
import threading
from collections.abc import Callable, Container, Iterator
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from babel.messages.catalog import Catalog, Message
from streamlit.testing.v1 import AppTest

from rag.api.form_pages import to_markup
from rag.errors import DocumentError, QuestionEmpty
from rag.language import (
    LANGUAGES,
    NP_,
    _,
    accepted,
    choose,
    direction,
    meant_by,
    ngettext,
    pgettext,
    speaking,
    translated,
)
from rag.locales import catalogues
from rag.services import Services
from rag.types import Identity, Role
from rag.ui.formats import ago, count, date_time, duration, money, percent
from tests.pages.conftest import new_tab, running, signed_in  # noqa: F401 - fixtures
from tests.patience import patient
from tests.ui.test_every_text import SINKS, name_of, page_files

TRANSLATED = [language for language in LANGUAGES if language != "en"]
PLACEHOLDER = re.compile(r"\{\w+\}")
WRAPPERS = {"_", "N_", "NP_", "pgettext", "ngettext", "count", "translated", "to_markup", "known_cost"}
#: Calls whose words are keys or codes.
KEYS = {"get", "join", "setdefault", "code"}
#: Directives of Streamlit's Markdown, and names of models and settings.
NO_WORDS = re.compile(
    r"-badge\[|^openai/\S+$|^\{\"content.*$|:material/\w+:|:[\w-]+\[|https?://\S+|/\w[\w/.]*|[A-Z_]{4,}|\bp95\b|\bUTC\b|\b[KMG]?B\b|\bms\b"
)


def texts_of(message: Message) -> tuple[str, ...]:
    texts = message.string if isinstance(message.string, (tuple, list)) else [message.string]
    return tuple(str(text or "") for text in texts)


def ids_of(message: Message) -> tuple[str, ...]:
    return tuple(message.id) if isinstance(message.id, (list, tuple)) else (str(message.id),)


def test_a_word_of_two_meanings_has_a_translation_for_each() -> None:
    durations = NP_("how long answers take", "Times")
    assert (_(durations), pgettext("of a keyboard", "Key")) == ("Times", "Key")
    with speaking("de"):
        assert (_(durations), _("How often")) == ("Zeiten", "Wie oft")
        assert (pgettext("of a keyboard", "Key"), _("Key")) == ("Taste", "Schlüssel")
        assert pgettext("never heard of", "Zebra") == "Zebra"
    # A link to the tab is understood from either language.
    assert meant_by("Zeiten", [durations]) == meant_by("Times", [durations]) == durations


def test_numbers_in_an_error_are_written_as_its_reader_does() -> None:
    sentence = "The answer has 20,001 characters; at most 20,000 are accepted. Upload a document instead."
    with speaking("de"):
        assert "20.001" in translated(sentence)
        assert "20,0" not in translated(sentence)


def test_the_sign_in_page_has_no_english_sentence_in_another_language() -> None:
    with speaking("de"):
        assert to_markup("No account? Ask your administrator.") == "Kein Konto? Fragen Sie Ihre Administration."


# Strings that bypass the catalogues


def words_past(files: dict[str, str]) -> Iterator[str]:
    """Literal words that a page draws without asking a catalogue: file, line and words."""
    for name, text in files.items():
        for call in (n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Call)):
            if isinstance(call.func, ast.Attribute) and name_of(call.func.value) == "log":
                continue
            parameters = SINKS.get(call.func.attr if isinstance(call.func, ast.Attribute) else "")
            if parameters is None:
                continue
            by_place = [parameter for parameter in parameters if parameter != "help"]
            given = [*zip(by_place, call.args, strict=False), *((k.arg or "", k.value) for k in call.keywords)]
            for parameter, value in given:
                if parameter in {*parameters, "placeholder", "alt"} and parameter != "page":
                    yield from (f"{name}:{value.lineno}: {words}" for words in literal_words(value))


def literal_words(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Call) and name_of(node.func) in {
        *WRAPPERS,
        "get",
        "join",
        "setdefault",
        "argument",
        "code",
    }:
        return
    if isinstance(node, (ast.Compare, ast.Subscript)):
        return
    if isinstance(node, ast.FormattedValue):
        yield from literal_words(node.value)
        return
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        if re.search(r"[A-Za-z]{3,}", NO_WORDS.sub(" ", node.value)):
            yield node.value
        return
    for child in ast.iter_child_nodes(node):
        yield from literal_words(child)


@pytest.mark.parametrize(
    "call",
    ["st.button('Open it')", "st.caption(f'{number} documents')", "st.text_input(_('Name'), placeholder='Any name')"],
)
def test_a_string_that_bypasses_the_catalogues_is_found(call: str) -> None:
    assert list(words_past({"page.py": call}))


@pytest.mark.parametrize("call", ["ngettext", "language.ngettext"])
def test_both_forms_of_a_sentence_with_a_number_are_found_however_it_is_called(call: str) -> None:
    source = io.BytesIO(f'{call}("{{count}} day ago", "{{count}} days ago", days)'.encode())
    assert [found[2] for found in catalogues.extract_errors(source, {}, (), {})] == [
        ("{count} day ago", "{count} days ago")
    ]


@pytest.mark.parametrize(
    "raised",
    [
        "raise NotFound('It is gone.')",
        "GONE = 'It is gone.'\nraise NotFound(GONE)",
        "GONE = 'It is gone.'\nraise NotFound(GONE.format(day=1))",
        "GONE = {'file': 'It is gone.'}\nraise NotFound(GONE[kind])",
        "def fail():\n    gone = 'It is gone.'\n    raise NotFound(gone if is_file else None)",
        "SENTENCES = {'missing': 'It is gone.'}",
    ],
)
def test_the_sentence_of_an_error_is_found_also_where_it_has_a_name(raised: str) -> None:
    found = catalogues.extract_errors(io.BytesIO(raised.encode()), {}, (), {})
    assert [sentence for _line, _function, sentence, _comments in found] == ["It is gone."]


def test_no_string_of_the_pages_bypasses_the_catalogues() -> None:
    assert list(words_past(page_files())) == []


# Sentences that an answer brings along


def sentences_past(name: str, text: str, known: Container[str]) -> Iterator[str]:
    """Yield the sentences of a module that no catalogue has: not docstrings, nor words to models or by language."""
    tree, skipped = ast.parse(text), set[int]()
    for node in ast.walk(tree):
        match node:
            case ast.Expr(value=ast.Constant() as docstring):
                skipped.add(id(docstring))
            case ast.JoinedStr(values=pieces):
                skipped.update(map(id, pieces))
            case ast.Dict(keys=keys, values=values):
                own = (
                    v for k, v in zip(keys, values, strict=True) if isinstance(k, ast.Constant) and k.value in LANGUAGES
                )
                skipped.update(id(part) for value in own for part in ast.walk(value))
            case ast.Assign(targets=[ast.Name(id="INSTRUCTION" | "PROMPTS" | "DOCUMENT_SYSTEM" | "CHUNK_SYSTEM")]):
                skipped.update(map(id, ast.walk(node)))
            case ast.Call(func=ast.Name(id="SettingsError")):
                skipped.update(map(id, node.args))  # for the one who sets it
    for node in ast.walk(tree):
        if id(node) in skipped or not isinstance(node, (ast.Constant, ast.JoinedStr)):
            continue
        sentence = catalogues.sentence_of(node)
        if re.fullmatch(r"[A-Z“{\d][^\n]* [^\n]* [^\n]*[a-z)][.!]", sentence) and sentence not in known:
            yield f"{name}:{node.lineno}: {sentence}"


@pytest.fixture(scope="module")
def current() -> Catalog:
    """Every sentence of the code."""
    return catalogues.template()


def test_no_sentence_that_reaches_an_answer_bypasses_the_catalogues(current: Catalog) -> None:
    """What was done without, and why an answer ended early, is read by the person who asked."""
    known = {text for message in current if message.id for text in ids_of(message)}
    found: list[str] = []
    for folder in ("answering", "retrieval", "providers"):
        for path in sorted((catalogues.PROJECT / "rag" / folder).rglob("*.py")):
            name = path.relative_to(catalogues.PROJECT).as_posix()
            if not name.startswith((*catalogues.ERRORS_IN_ENGLISH, "rag/answering/model_trials.py")):
                found += sentences_past(name, path.read_text("utf-8"), known)
    assert found == []


@pytest.mark.parametrize(
    "code",
    [
        "TOO_LONG = 'It ends here, too long.'",
        "WHY = {'long': 'It ends here, too long.'}",
        "run.end('It is at an end.')",
    ],
)
def test_a_sentence_of_an_answer_that_bypasses_the_catalogues_is_found(code: str) -> None:
    assert list(sentences_past("writing.py", code, ()))


def test_notices_in_a_row_are_read_in_the_readers_language() -> None:
    """An answer's notices are stored in one line; each is translated, and what nobody translated stays."""
    row = (
        "The answer reached its length limit and ends here. “Leave guide” is valid from 2027-01-01 on. "
        "This answer names no source. Compare the answer with the passages below."
    )
    collection = (
        "In the collection “Handbooks v. 2”: The model for the second sorting did not answer, so the passages are in "
        "the order in which they were found."
    )
    cut = (
        "The search model sent 3 results for 4 texts. Try again in a moment. The answer reached its length limit and "
        "ends here."
    )
    with speaking("de"):
        assert translated(row) == (
            "Die Antwort hat ihre Längengrenze erreicht und endet hier. “Leave guide” is valid from 2027-01-01 on. "
            "Diese Antwort nennt keine Quelle. Vergleichen Sie sie mit den Textstellen unten."
        )
        assert translated(collection).startswith(
            "In der Sammlung „Handbooks v. 2“: Das Modell für die Neusortierung hat nicht geantwortet"
        )
        assert translated(cut) == (
            "Das Suchmodell hat 3 Ergebnisse für 4 Texte gesendet. Versuchen Sie es gleich noch einmal. "
            "Die Antwort hat ihre Längengrenze erreicht und endet hier."
        )
    assert translated(row) == row


# The catalogues


@pytest.mark.parametrize("language", TRANSLATED)
def test_a_catalogue_fits_the_code(language: str, current: Catalog) -> None:
    """`make translations` was run, every sentence is there, and what is filled in is filled in."""
    known = catalogues.read(language)
    assert {ids_of(m) for m in known if m.id} == {ids_of(m) for m in current if m.id}, "run make translations"
    assert catalogues.missing(known, current) == []
    for message in known:
        if message.id and all(texts_of(message)):
            names = set(PLACEHOLDER.findall(" ".join(ids_of(message))))
            assert all(set(PLACEHOLDER.findall(text)) <= names for text in texts_of(message)), message.id
            assert len(texts_of(message)) == (known.num_plurals if len(ids_of(message)) > 1 else 1)


@pytest.mark.parametrize("language", TRANSLATED)
def test_a_sentence_calls_a_page_as_the_menu_does(language: str) -> None:
    titles = re.findall(r'title=_\("([^"]+)"\)', page_files()["pages/main.py"])
    known, told = catalogues.read(language), 0
    names = {title: " ".join(texts_of(message)) for title in titles if (message := known.get(title))}
    for message in known:
        for title in titles:
            if re.search(rf"\bpage [“*]*{title}\b", ids_of(message)[0]) and all(texts_of(message)):
                assert all(names[title].casefold() in text.casefold() for text in texts_of(message)), (
                    title,
                    message.id,
                )
                told += 1
    assert told > 10


def test_plurals_are_those_of_the_language() -> None:
    written = {}
    for language in ("pl", "ar", "ja"):
        with speaking(language):
            written[language] = [ngettext("{count} page", "{count} pages", n) for n in (1, 2, 5, 22)]
    assert written["pl"] == ["1 strona", "2 strony", "5 stron", "22 strony"]
    assert written["ar"] == ["صفحة واحدة", "صفحتان", "5 صفحات", "22 صفحة"]
    assert written["ja"] == ["1ページ", "2ページ", "5ページ", "22ページ"]


# Choosing, and two people at once


def test_the_first_language_that_is_spoken_is_chosen() -> None:
    assert accepted("fr-CH, fr;q=0.9, en;q=0.8, de;q=0.7, *;q=0.5")[:3] == ["fr", "en", "de"]
    assert choose("", "", accepted("sv, nl-BE;q=0.8")) == "nl"
    assert choose("xx", []) == "en"
    assert (direction("ar"), direction("de")) == ("rtl", "ltr")


def test_two_people_at_once_read_their_own_language() -> None:
    barrier, found = threading.Barrier(2, timeout=patient(30)), dict[str, str]()

    def read(language: str) -> None:
        with speaking(language):
            barrier.wait()
            found[language] = _("Sign in")
            barrier.wait()

    threads = [threading.Thread(target=read, args=(language,)) for language in ("de", "ja")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {"de": "Anmelden", "ja": "ログイン"}
    assert _("Sign in") == "Sign in"


def test_an_error_is_read_in_the_readers_language_and_logged_in_english() -> None:
    stored = "Too many wrong passwords. Wait 3 minutes and try again."
    with speaking("de"):
        assert QuestionEmpty().message == "Bitte geben Sie eine Frage ein."
        assert str(QuestionEmpty()) == "Please type a question."
        assert DocumentError(stored).message.startswith("Zu viele falsche Passwörter. Warten Sie 3 minutes")
        assert DocumentError("What nobody translated.").message == "What nobody translated."


def test_figures_dates_and_money_are_written_as_the_reader_does() -> None:
    moment = datetime(2026, 11, 21, 14, 5, tzinfo=UTC)
    with speaking("de"):
        assert (money(Decimal("0.0092")), percent(0.772)) == ("0,0092\N{NO-BREAK SPACE}$", "77,2\N{NO-BREAK SPACE}%")
        assert (date_time(moment), count(1200, "page")) == ("21.11.2026, 14:05", "1.200 Seiten")
        assert (duration(3200), ago(moment, moment)) == ("3,2 s", "gerade eben")
    assert (money(1234.5), date_time(moment), percent(0.772)) == ("$1,234.50", "21 Nov 2026, 14:05", "77.2%")


# A page


def test_a_person_chooses_the_language_of_their_pages(
    signed_in: Callable[[Role], tuple[AppTest, Identity]],  # noqa: F811
    running: Services,  # noqa: F811
) -> None:
    tab, identity = signed_in(Role.EMPLOYEE)
    tab.run().switch_page("account.py").run()
    assert not tab.exception
    assert tab.title[0].value == "Your account"
    tab.selectbox(key="account_language").set_value("de").run()
    assert tab.title[0].value == "Ihr Konto"
    again = running.sessions.find_by_id(identity.session_id)
    assert again is not None
    assert again.language == "de"
