"""Labels of choices: two that look the same would be one choice for the browser."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import NamedTuple
from uuid import uuid4

import pytest
from streamlit.testing.v1 import AppTest

from rag.answering.citations import quoted, telling_sentence
from rag.answering.labels import distinct_labels
from rag.language import LANGUAGES, _, speaking
from rag.library.collections import LANGUAGES as LANGUAGES_OF_DOCUMENTS
from rag.types import Citation
from rag.ui.formats import language_name
from rag.ui.sources import source_lines, sources_html
from rag.ui.widgets import name_labels
from tests.patience import patient

PROJECT = Path(__file__).resolve().parents[2]
PICKERS = {"selectbox", "multiselect", "pills", "segmented_control", "radio", "select_slider", "choose_word"}
#: Words in a list beside the call.
WORDS = re.compile(r"N_\('([^']+)'\)")
TABLES = {"dataframe", "data_editor", "draw"}
#: Makers of labels that are never equal.
HELPERS = {"name_labels", "document_labels", "distinct_labels", "status_labels", "as_text"}
#: Pickers whose options are their own labels, and why no two are equal.
OWN_LABELS = {
    "collections_groups": "a set of names of groups",
    "analytics_period": "keys of a constant",
    "analytics_group": "the names of groups, each once",
    "chat_years": "numbers, each once",
    "audit_period": "keys of a constant",
    "prices_model": "a sorted set of names of models",
    "audit_kind": "keys of a constant",
    "audit_actor": "the names of those who act, each once",
    "field('folder')": "the names of folders, each once",
    "field('tags')": "tags, each once",
    "documents_bulk_tag_add": "tags, each once",
    "documents_bulk_tag_remove": "tags, each once",
    "documents_bulk_folder": "the names of folders, each once",
    "opinions_kind": "the kinds of a collection, each once",
    "f'opinions_filter_{tag}": "the words of a tag, each once",
    "f'setup_model_name_{model.setting}": "names of models, each once",
    "key": "words written beside the call, or those of a profile's field",
    "prices_budget_group": "the names of groups, each once",
    "analytics_run_models": "names of models, each once",
    "setup_zone": "names of time zones, each once",
    "analytics_gap_reason": "three sentences of our own",
    "self._field_key(field)": "the values of a field, each once",
}


class Thing(NamedTuple):
    number: str
    title: str
    file: str = ""
    day: str = ""


def labels_of(*things: Thing) -> list[str]:
    return list(
        distinct_labels(things, lambda t: t.number, lambda t: t.title, lambda t: t.file, lambda t: t.day).values()
    )


def test_what_differs_is_added_until_no_two_labels_are_equal() -> None:
    assert labels_of(Thing("1", "Handbook", "a.pdf"), Thing("2", "Travel", "a.pdf")) == ["Handbook", "Travel"]
    assert labels_of(Thing("1", "Handbook", "a.pdf"), Thing("2", "Handbook", "b.pdf"), Thing("3", "Travel")) == [
        "Handbook · a.pdf",
        "Handbook · b.pdf",
        "Travel",
    ]
    same = Thing("1", "Handbook", "a.pdf", "1 May"), Thing("2", "Handbook", "a.pdf", "2 May")
    assert labels_of(*same) == ["Handbook · a.pdf · 1 May", "Handbook · a.pdf · 2 May"]
    twins = Thing("0123456789", "Handbook", "a.pdf", "1 May"), Thing("9876543210", "Handbook", "a.pdf", "1 May")
    assert [label.rpartition(" · ")[2] for label in labels_of(*twins)] == ["01234567", "98765432"]
    beginning_alike = Thing("01234567-a", "Handbook"), Thing("01234567-b", "Handbook")
    assert len(set(labels_of(*beginning_alike))) == 2


def test_a_title_that_looks_like_another_with_its_file_is_told_apart_too() -> None:
    found = labels_of(Thing("1", "A", "b"), Thing("2", "A", "c"), Thing("3", "A · b", "d"))
    assert len({" ".join(label.split()) for label in found}) == 3


def test_spaces_that_nobody_sees_tell_nothing_apart() -> None:
    assert len({" ".join(label.split()) for label in labels_of(Thing("1", "A  b"), Thing("2", "A b"))}) == 2


def test_what_is_no_longer_there_has_a_name() -> None:
    names = name_labels({1: "One"}, missing_label="Deleted collection")
    assert (names.of(1), names.of(2)) == ("One", "Deleted collection")
    assert names.as_text().of("1") == "One"


# Every picker of the pages


class Call(NamedTuple):
    path: Path
    tree: ast.Module
    node: ast.Call
    name: str

    def argument(self, name: str) -> str:
        return next((ast.unparse(k.value) for k in self.node.keywords if k.arg == name), "")

    @property
    def rest(self) -> str:
        """What is given by `**`, such as the key of a field of a form."""
        return next((ast.unparse(k.value) for k in self.node.keywords if k.arg is None), "")

    @property
    def place(self) -> str:
        return f"{self.path.relative_to(PROJECT)}:{self.node.lineno}"


def calls(names: set[str]) -> Iterator[Call]:
    for path in sorted(
        [
            *(PROJECT / "pages").glob("*.py"),
            *(PROJECT / "rag" / "ui").glob("*.py"),
            *PROJECT.glob("rag/integrations/*/*/section.py"),
        ]
    ):
        tree = ast.parse(path.read_text("utf-8"))
        for node in ast.walk(tree):
            function = node.func if isinstance(node, ast.Call) else None
            name = getattr(function, "attr", getattr(function, "id", ""))
            if isinstance(node, ast.Call) and name in names:
                yield Call(path, tree, node, name)


def assigned_from(call: Call, name: str) -> set[str]:
    """The functions whose results a name is given in the file of the call."""
    found = set()
    for node in ast.walk(call.tree):
        if (
            isinstance(node, ast.Assign)
            and any(isinstance(target, ast.Name) and target.id == name for target in node.targets)
            and isinstance(node.value, ast.Call)
        ):
            function = node.value.func
            found.add(function.id if isinstance(function, ast.Name) else getattr(function, "attr", ""))
    return found


def enclosing(call: Call) -> str:
    """The function that a call is in."""
    functions = (node for node in ast.walk(call.tree) if isinstance(node, ast.FunctionDef))
    return next(function.name for function in functions if call.node in ast.walk(function))


def test_there_are_pickers_to_look_at() -> None:
    assert len(list(calls(PICKERS))) > 25


@pytest.mark.parametrize("call", [*calls(PICKERS)], ids=lambda call: f"{call.place}-{call.name}")
def test_no_picker_decides_by_labels_that_could_be_equal(call: Call) -> None:
    shown = call.argument("format_func")
    if call.name == "choose_word":
        shown = f"words_of({ast.unparse(call.node.args[1])})"
    elif shown == "words_of(words)":
        assert enclosing(call) == "choose_word", f"{call.place}: only `choose_word` is given its words"
        return
    if not shown:
        key = (call.argument("key") or call.rest).strip("'\"")
        assert key in OWN_LABELS, f"{call.place}: say why no two options of {key} have one label, or use rag.ui.widgets"
        return
    # Drawn as Markdown, labels stay distinct: they are escaped, not shortened.
    owner, _dot, attribute = re.sub(r"^drawn\((\w+)\)$", r"\1.of", shown).rpartition(".")
    if attribute == "of":
        assert assigned_from(call, owner) & HELPERS, f"{call.place}: {owner} is not made by rag.ui.widgets"
        return
    # Words of the product itself: distinct in every language.
    words: Mapping[object, object]
    if shown == "language_name":
        words = dict(zip(LANGUAGES_OF_DOCUMENTS, LANGUAGES_OF_DOCUMENTS, strict=True))
        assert all(len(in_language(language, language_name, words)) == len(words) for language in LANGUAGES)
        return
    if shown == "_":
        # A function that draws several such choices is given them: all that its file has.
        options = ast.unparse(call.tree if ast.unparse(call.node.args[1]) == "options" else call.node.args[1])
        named = re.fullmatch(r"list\((\w+)\)", options)
        words = {word: word for word in (constant(call.path, named[1]) if named else WORDS.findall(options))}
    elif scopes := re.fullmatch(r"lambda \w+: f'\{_\((\w+)\[\w+\]\)\}.*'", shown):
        words = constant(call.path, scopes[1])
    else:
        made = re.fullmatch(r"words_of\((\w+)\)|(?:(\w+)\.__getitem__)", shown)
        assert made, f"{call.place}: {shown} may give two options one label; use rag.ui.widgets"
        assert (made[1] or made[2]).isupper(), f"{call.place}: {shown} is no constant; use rag.ui.widgets"
        words = constant(call.path, made[1] or made[2])
    assert len(words) > 1
    for language in LANGUAGES:
        assert len(in_language(language, _, words)) == len(words), f"{call.place}: two have one label in {language}"


def in_language(language: str, write: Callable[[str], str], words: Mapping[object, object]) -> set[str]:
    with speaking(language):
        return {write(str(word)) for word in words.values()}


def constant(path: Path, name: str) -> Mapping[object, object]:
    """A constant by the name that a page or a module of the interface has it by; pages are not imported, but read."""
    tree = ast.parse(path.read_text("utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and any(alias.name == name for alias in node.names):
            found: ModuleType = importlib.import_module(str(node.module))
            return dict(getattr(found, name))
    if path.parent.name == "ui":
        return dict(getattr(importlib.import_module(f"rag.ui.{path.stem}"), name))
    for node in ast.walk(tree):
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        if isinstance(node, ast.Assign | ast.AnnAssign) and target and ast.unparse(target) == name:
            assert node.value is not None
            marked = re.sub(r"\b(?:N_|_)(?=\()", "", ast.unparse(node.value))
            found_words: dict[object, object] = ast.literal_eval(marked)
            return found_words
    raise AssertionError(f"{name} is not defined in {path}")


@pytest.mark.parametrize("call", [*calls(TABLES)], ids=lambda call: call.place)
def test_a_selected_row_is_read_with_the_rows_that_were_drawn(call: Call) -> None:
    """A selection is a row number: the rows are part of the key, or of what the key names."""
    if not call.argument("on_select"):
        return
    key = call.argument("key")
    if key == "key":
        key = " ".join(
            ast.unparse(node.value)
            for node in ast.walk(call.tree)
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "key"
        )
    assert re.search(r"\btable_key\(|document\.id", key), f"{call.place}: other rows would be selected with {key}"


def test_rows_that_change_and_come_back_are_a_table_of_their_own() -> None:
    def page() -> None:
        import streamlit as st

        from rag.ui.lists import table_key

        st.text(table_key("table", st.session_state["rows"]))

    tab, keys = AppTest.from_function(page), []
    for rows in ([1, 2], [1, 2], [2, 1], [1, 2]):
        tab.session_state["rows"] = rows
        keys.append(tab.run().text[0].value)
    assert keys[0] == keys[1]
    assert len(set(keys)) == 3


def test_documents_of_one_title_are_told_apart_in_every_list_of_sources() -> None:
    files = ("2025.pdf", "2026.pdf", "2026.pdf")
    documents = {file: uuid4() for file in set(files)}
    twins = [
        Citation(
            number=number, chunk_id=uuid4(), document_id=uuid4() if number == 3 else documents[file], title="Leave",
            file_name=file, first_page=1, last_page=1, section="", passage="", score=0.5,
        )
        for number, file in enumerate(files, 1)
    ]  # fmt: skip
    other = replace(twins[0], number=4, document_id=uuid4(), title="Travel", file_name="travel.pdf")
    assert source_lines([*twins, other]) == [
        "[1] Leave (2025.pdf), p. 1",
        "[2] Leave (2026.pdf (1)), p. 1",
        "[3] Leave (2026.pdf (2)), p. 1",
        "[4] Travel (travel.pdf), p. 1",
    ]
    places = re.findall('data-place="([^"]*)"', sources_html([*twins, other], "s0", uuid4()))
    assert places == ["2025.pdf · p. 1", "2026.pdf (1) · p. 1", "2026.pdf (2) · p. 1", "p. 1"]

    def draw(citations) -> None:  # type: ignore[no-untyped-def]  # a script of its own, without the names above
        from rag.ui.sources import draw_source_cards

        draw_source_cards(citations, anchor="s0", on_open=lambda _: None)

    page = AppTest.from_function(draw, args=([*twins, other],), default_timeout=patient(30)).run()
    shown = [element.value for element in page.markdown]
    for place in (":small[2025\\.pdf · p. 1]", ":small[2026\\.pdf \\(2\\) · p. 1]", ":small[p. 1]"):
        assert place in shown, shown


def test_each_place_of_a_number_opens_what_is_said_there() -> None:
    passage = "The deductible is $1,500 for a person. Dental care is in the plan."
    source = Citation(
        number=1, chunk_id=uuid4(), document_id=uuid4(), title="Plan", file_name="plan.pdf", first_page=1, last_page=1,
        section="", passage=passage, score=0.5,
    )  # fmt: skip
    text = "“The deductible is $1,500 for a person.” [1] “Dental care is in the plan.” [1] A person pays $1,500 [1]."
    places = quoted(text, [source])
    html = sources_html([source], "s0", uuid4(), places)
    assert re.findall('data-source="([^"]*)"', html) == ["s0-1", "s0-1-2", "s0-1-3"]
    assert re.findall('data-opener="([^"]*)"', html) == ["s0_open_1", "s0_open_1_2", "s0_open_1_3"]
    assert re.findall('data-sentence="([^"]*)"', html)[:2] == [
        "The deductible is $1,500 for a person.",
        "Dental care is in the plan.",
    ]

    def draw(source, places) -> None:  # type: ignore[no-untyped-def]  # a script of its own, without the names above
        import streamlit as st

        from rag.ui.sources import draw_source_cards

        draw_source_cards([source], anchor="s0", on_open=lambda c: st.session_state.update(opened=c), places=places)

    page = AppTest.from_function(draw, args=(source, places), default_timeout=patient(30)).run()
    page.button(key="s0_open_1_2").click().run()
    assert telling_sentence(passage, page.session_state["opened"].matched_terms) == "Dental care is in the plan."
    page.button(key="s0_open_1").click().run()
    assert "1" in page.session_state["opened"].matched_terms
