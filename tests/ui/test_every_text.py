"""No call of a page draws text of documents, models or people past `rag.ui.text`.

What a page gives to Streamlit's Markdown is followed back through names, functions and their callers. Allowed are words
of our own and what `plain`, `marked`, `lines`, `answer_markdown` or a function for figures returns.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

PROJECT = Path(__file__).resolve().parents[2]
#: What Streamlit draws as Markdown, by call: names of parameters; the places of those that come by place.
SINKS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(["title", "header", "subheader", "markdown", "caption"], ("body", "help")),
    **dict.fromkeys(["info", "success", "warning", "error"], ("body", "title")),
    **dict.fromkeys(["text_input", "text_area", "number_input", "date_input", "datetime_input"], ("label", "help")),
    **dict.fromkeys(["time_input", "file_uploader", "camera_input", "audio_input", "slider"], ("label", "help")),
    **dict.fromkeys(["button", "download_button", "link_button", "form_submit_button"], ("label", "help")),
    **dict.fromkeys(["checkbox", "toggle", "color_picker", "popover", "badge"], ("label", "help")),
    **dict.fromkeys(["expander", "status"], ("label",)),
    **dict.fromkeys(["selectbox", "multiselect"], ("label", "help")),
    **dict.fromkeys(["radio", "pills", "segmented_control", "select_slider"], ("label", "options", "help")),
    "menu_button": ("label", "options", "help"),
    "page_link": ("page", "label", "help"),
    "metric": ("label", "value", "delta", "help"),
    "tabs": ("tabs",),
    "table": ("data",),
    "image": ("image", "caption"),
    "text": ("body", "help"),
    "latex": ("body", "help"),
    "toast": ("body",),
    "dialog": ("title",),
    "spinner": ("text",),
    "progress": ("value", "text"),
    "write": ("args",),
    "write_stream": ("stream",),
    "Page": ("page", "title", "help"),
    "update": ("label",),
}
#: Parameters of these that Streamlit shows as they are.
NOT_MARKDOWN = {
    ("page_link", "page"), ("image", "image"), ("text", "body"), ("progress", "value"), ("Page", "page"),
}  # fmt: skip
#: Words in Streamlit's documentation that name Markdown without drawing it, by call and parameter.
NOT_DRAWN = {"unsafe_allow_html", "width", "wrap", "anchors", "bind", "cursor", "pages", "menu_items", "format_func"}
#: What takes text of others and returns it harmless.
HARMLESS = {"plain", "lines", "code", "marked", "answer_markdown", "drawn"}
#: Figures, dates and sizes: there is nothing in them that anybody could have written.
FIGURES = {
    "count", "money", "duration", "date_time", "ago", "until", "percent", "pages", "file_size", "len", "int", "float",
    "round", "sum", "min", "max", "page_ranges", "str_of_number",
    "formats_in_words",  # of the table of loaders
    "thousands", "number", "percentage", "dollars", "day", "clock", "language_name",
    "status_badge", "method_name", "kind_name",  # of tables of ours, translated
    "engine_title", "provider_name",  # of the table of providers
}  # fmt: skip
#: Words of our own that come from beyond these files, or from a table beside what is no text: by file and expression.
OURS = {
    ("rag/ui/collection_settings.py", "field.title"),  # rag.profiles
    ("rag/ui/collection_settings.py", "field.choices"),
    ("rag/ui/collection_settings.py", "preset.title"),  # of the table of presets
    ("rag/ui/collection_changes.py", "preset.icon"),
    ("rag/ui/document_steps.py", "words"),  # of `buttons`, in rows with a chosen method
    ("rag/ui/document_steps.py", "text"),
    ("rag/ui/document_library.py", "words"),  # of the buttons of a menu, beside what they do
    ("rag/ui/analytics.py", "change.delta"),  # figures
    ("rag/ui/collection_profile.py", "icon"),  # of `sentences_on`, beside a sentence
    ("rag/ui/board.py", "words"),  # of `counted`, beside a figure
    ("rag/ui/forms.py", "field.title"),  # of the models and tables of fields
    ("rag/ui/forms.py", "field.help"),
    ("rag/ui/collection_sources.py", "form.icon"),
    ("rag/ui/collection_sources.py", "form.name"),
    ("rag/ui/collection_sources.py", "form.hint"),
    ("rag/ui/collection_sources.py", "forms[kind].name"),
    ("rag/ui/conversation_list.py", "group"),  # of `group_of`: one of a few headings
}
#: Calls whose HTML is drawn, and what may build it; each escapes what it is given (test_html_is_built_by_few).
NUMBER = r"((list|Sequence)\[)?(int|float|Decimal|bool|datetime|date)\]?( \| None)?"
HTML_BUILDERS = {
    "picture_html",
    "text_html",
    "marked_page",
    "page_html",
    "copy_button",
    "changes_html",
    "chunk_html",
    "legend_html",
    "account_actions",
    "link_here",
    "copy_html",
    "place_of",
    "sources_html",
    "unseen_heading",
    "page_script",
    "frame_scripts",
    "key_scripts",
}


class Source:
    """The modules of the pages: their functions by name, their constants, and who calls what."""

    def __init__(self, files: dict[str, str], figures: frozenset[str] = frozenset()) -> None:
        self.figures = figures
        self.trees = {name: ast.parse(text) for name, text in files.items()}
        self.names: dict[ast.AST, str] = {tree: name for name, tree in self.trees.items()}
        self.functions: dict[str, list[ast.FunctionDef]] = defaultdict(list)
        self.modules: dict[ast.AST, ast.AST] = {}
        self.calls: dict[str, list[ast.Call]] = defaultdict(list)
        self.parents: dict[ast.AST, ast.AST] = {}
        self._asked: set[tuple[int, str]] = set()
        for tree in self.trees.values():
            for node in ast.walk(tree):
                self.modules[node] = tree
                for child in ast.iter_child_nodes(node):
                    self.parents[child] = node
                if isinstance(node, ast.FunctionDef):
                    self.functions[node.name].append(node)
                elif isinstance(node, ast.Call):
                    self.calls[name_of(node.func)].append(node)

    def scopes(self, node: ast.AST) -> Iterator[ast.AST]:
        """The function a node is in, those around it, and the module."""
        while node in self.parents:
            node = self.parents[node]
            if isinstance(
                node, ast.FunctionDef | ast.Lambda | ast.Module | ast.GeneratorExp | ast.ListComp | ast.DictComp
            ):
                yield node

    # Whether an expression holds nothing that others wrote.

    def is_ours(self, node: ast.AST | None) -> bool:
        match node:
            case None | ast.Constant():
                return True
            case ast.JoinedStr(values=values):
                return all(map(self.is_ours, values))
            case ast.FormattedValue(value=value, format_spec=spec):
                return self.is_figure(spec) or self.is_ours(value)
            case ast.IfExp(body=body, orelse=orelse):
                return self.is_ours(body) and self.is_ours(orelse)
            case ast.BoolOp(values=values) | ast.List(elts=values) | ast.Tuple(elts=values) | ast.Set(elts=values):
                return all(map(self.is_ours, values))
            case ast.BinOp(left=left, right=right):
                return self.is_ours(left) and self.is_ours(right)
            case ast.Compare() | ast.UnaryOp():
                return True
            case ast.Starred(value=value) | ast.Subscript(value=value) | ast.NamedExpr(value=value):
                return self.is_ours(value)
            case ast.Dict(values=values):
                return all(map(self.is_ours, values))
            case ast.GeneratorExp(elt=elt) | ast.ListComp(elt=elt):
                return self.is_ours(elt)
            case ast.DictComp(value=value):
                return self.is_ours(value)
            case ast.Call(func=ast.Name(id="red"), args=[label]):
                return self.is_ours(label)
            case ast.Call():
                return self.is_call_ours(node)
            case ast.Attribute(value=owner, attr="of" | "__getitem__"):
                return self.is_ours(owner)  # labels by option, given to format options
            case ast.Attribute():
                return node.attr in self.figures or self.is_known(node) or self.is_constant(node.attr)
            case ast.Name(id=name):
                return self.is_known(node) or self.is_name_ours(node, name)
        return False

    def is_known(self, node: ast.AST) -> bool:
        return (self.names[self.modules[node]], ast.unparse(node)) in OURS

    @staticmethod
    def is_figure(spec: ast.expr | None) -> bool:
        """Formatted as a number or a date, which no text can be."""
        return spec is not None and bool(re.search(r"[,.\d]*[dfg%]|,|%-?[a-zA-Z]", ast.unparse(spec).strip("f'\"")))

    @staticmethod
    def is_constant(name: str) -> bool:
        return name.lstrip("_").isupper()

    def is_call_ours(self, call: ast.Call) -> bool:
        name = name_of(call.func)
        given = [*call.args, *(keyword.value for keyword in call.keywords)]
        if name in HARMLESS | FIGURES:
            return True
        if name in (
            "str",
            "join",
            "strip",
            "lower",
            "upper",
            "capitalize",
            "list",
            "tuple",
            "sorted",
            "zip",
            "dict",
            "map",
            "DataFrame",
            "name_labels",
            "enumerate",
            # Sentences of the catalogues, with what is filled in.
            "_",
            "N_",
            "ngettext",
            "pgettext",
            "words_of",
            "listed",
        ):
            is_method = isinstance(call.func, ast.Attribute) and name != "DataFrame"
            owner = [call.func.value] if isinstance(call.func, ast.Attribute) and is_method else []
            if name == "map":
                return name_of(call.args[0]) in HARMLESS | FIGURES | {"_"}
            return all(map(self.is_ours, [*owner, *given]))
        if name in ("get", "values", "items", "keys") and isinstance(call.func, ast.Attribute):
            return self.is_ours(call.func.value) and all(map(self.is_ours, given[1:]))
        everywhere = self.functions.get(name, [])
        found = [f for f in everywhere if self.modules[f] is self.modules[call]] or everywhere
        return bool(found) and all(self.returns_ours(function) for function in found)

    def returns_ours(self, function: ast.FunctionDef) -> bool:
        if (id(function), "") in self._asked:
            return True
        self._asked.add((id(function), ""))
        returned = [
            n.value for n in ast.walk(function) if isinstance(n, ast.Return | ast.Yield) and n.value is not None
        ]
        return all(map(self.is_ours, returned))

    def is_name_ours(self, node: ast.AST, name: str) -> bool:
        if self.is_constant(name):
            return True
        for scope in self.scopes(node):
            if isinstance(scope, ast.GeneratorExp | ast.ListComp | ast.DictComp):
                for part in scope.generators:
                    if name in names_in(part.target):
                        return self.is_ours(part.iter)
                continue
            if isinstance(scope, ast.FunctionDef | ast.Lambda):
                arguments = scope.args
                names = [a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
                annotations = {a.arg: a.annotation for a in (*arguments.args, *arguments.kwonlyargs)}
                if name in names and is_number(annotations[name]):
                    return True
                if name in names or (arguments.vararg and arguments.vararg.arg == name):
                    return isinstance(scope, ast.FunctionDef) and self.is_parameter_ours(scope, name)
            if isinstance(scope, ast.Lambda):
                continue
            if assigned := list(self.assigned(scope, name)):
                if (id(scope), name) in self._asked:
                    return True
                self._asked.add((id(scope), name))
                return all(map(self.is_ours, assigned))
        return False

    def is_parameter_ours(self, function: ast.FunctionDef, name: str) -> bool:
        """Whether every caller gives it words of ours."""
        if (id(function), name) in self._asked:
            return True
        self._asked.add((id(function), name))
        names = [a.arg for a in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)]
        calls = self.calls[function.name]
        if function.name.startswith("_"):
            calls = [call for call in calls if self.modules[call] is self.modules[function]]
        for call in calls:
            given = {keyword.arg: keyword.value for keyword in call.keywords}
            if name not in names:  # further arguments by place
                if not all(map(self.is_ours, call.args[len(function.args.args) :])):
                    return False
                continue
            place = names.index(name) - (names[0] == "self")
            value = given.get(name, call.args[place] if place < len(call.args) else None)
            if not self.is_ours(value):
                return False
        return bool(calls)

    def assigned(self, scope: ast.AST, name: str) -> Iterator[ast.AST]:
        """What a name is given within a function or module, not within functions in it."""
        inner = [n for n in ast.walk(scope) if n is not scope and isinstance(n, ast.FunctionDef | ast.ClassDef)]
        hidden = {n for function in inner for n in ast.walk(function) if n is not function}
        for node in ast.walk(scope):
            if node in hidden:
                continue
            match node:
                case ast.Assign(targets=targets, value=value):
                    for target in targets:
                        if name in names_in(target):
                            yield value
                case ast.AnnAssign(target=target, value=value) | ast.AugAssign(target=target, value=value):
                    if value is not None and name in names_in(target):
                        yield value
                case ast.NamedExpr(target=target, value=value) if name in names_in(target):
                    yield value
                case ast.For(target=target, iter=value) if name in names_in(target):
                    yield value
                case ast.Call(func=ast.Attribute(value=ast.Name(id=owner), attr="append"), args=[value]):
                    if owner == name:
                        yield value


def is_number(annotation: ast.expr | None) -> bool:
    return annotation is not None and bool(re.fullmatch(NUMBER, ast.unparse(annotation)))


@cache
def numbers_of_values() -> frozenset[str]:
    """Names of fields that hold a number in every value of the product."""
    kinds: dict[str, set[bool]] = defaultdict(set)
    for file in (PROJECT / "rag").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                kinds[node.target.id].add(is_number(node.annotation))
    return frozenset(name for name, found in kinds.items() if found == {True})


def name_of(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def names_in(target: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(target) if isinstance(n, ast.Name)}


def drawn_past(files: dict[str, str]) -> list[str]:
    """Where text of others reaches Streamlit's Markdown: file, line and what is drawn."""
    source = Source(files, numbers_of_values())
    found = []
    for name, tree in source.trees.items():
        for call in (n for n in ast.walk(tree) if isinstance(n, ast.Call)):
            method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
            if isinstance(call.func, ast.Attribute) and name_of(call.func.value) == "log":
                continue  # a line of the log, which nobody draws
            parameters = SINKS.get(method)
            if parameters is None or (method == "update" and not any(k.arg == "label" for k in call.keywords)):
                continue
            by_place = [parameter for parameter in parameters if parameter != "help"]
            given = [*zip(by_place, call.args, strict=False), *((k.arg or "", k.value) for k in call.keywords)]
            for parameter, value in given:
                is_drawn = parameter in parameters and (method, parameter) not in NOT_MARKDOWN
                source._asked.clear()
                if is_drawn and parameter == "options":
                    shown = next((k.value for k in call.keywords if k.arg == "format_func"), value)
                    value = value if name_of(shown) == "_" else shown  # translated options are words of ours
                if is_drawn and not source.is_ours(value):
                    found.append(f"{name}:{value.lineno}: {method}({parameter}={ast.unparse(value)})")
    return found


def page_files() -> dict[str, str]:
    files = [
        *(PROJECT / "rag" / "ui").glob("*.py"),
        *PROJECT.glob("rag/integrations/*/*/section.py"),
        *(PROJECT / "pages").glob("*.py"),
        PROJECT / "rag" / "server.py",
    ]
    return {str(file.relative_to(PROJECT)): file.read_text() for file in sorted(files)}


def test_no_page_draws_what_others_wrote_as_markdown() -> None:
    assert drawn_past(page_files()) == []


@pytest.mark.parametrize(
    "call",
    [
        "st.markdown(document.title)",
        "st.error(exc.message)",
        "st.caption(f'**{plain(document.title)}** {document.file_name}')",
        "st.button('Open', help=document.title)",
        "st.pills('Category', categories, format_func=name_labels({c.id: c.name for c in found}).of)",
        "st.table({'File': document.file_name})",
        "words = document.title\nst.toast(words)",
        "def draw(words):\n    st.subheader(words)\ndraw(document.title)",
        "def draw(*words):\n    for one in words:\n        st.markdown(one)\ndraw('Ours', document.title)",
        "def words():\n    return document.title\nst.caption(words())",
        "facts = ['a']\nfacts.append(document.title)\nst.caption(' '.join(facts))",
        "st.caption(' '.join(d.title for d in documents))",
        "for d in documents:\n    st.expander(d)",
        "st.caption(NAMES.get(document.method, document.method))",
    ],
)
def test_a_call_that_does_is_found(call: str) -> None:
    assert drawn_past({"page.py": call})


@pytest.mark.parametrize(
    "call",
    [
        "st.markdown(plain(document.title))",
        "st.markdown(f':{COLORS[status]}-badge[{plain(word)}] {len(found):,}')",
        "st.pills('Category', categories, format_func=drawn(labels))",
        "def draw(words):\n    st.subheader(words)\ndraw('Ours')\ndraw(words='Also ours')",
        "def draw(*words):\n    for one in words:\n        st.markdown(one)\ndraw('Ours', 'Also ours')",
        "st.selectbox('Document', titles, format_func=titles.of)",
        "log.warning(document.title)",
    ],
)
def test_words_of_ours_and_harmless_text_pass(call: str) -> None:
    assert drawn_past({"page.py": call}) == []


def test_every_parameter_that_streamlit_draws_as_markdown_is_looked_at() -> None:
    """The installed Streamlit says in its documentation which they are; a new version may have more."""
    missing = set()
    for owner in (st, DeltaGenerator):
        for name in dir(owner):
            if name.startswith("_") or not callable(call := getattr(owner, name)):
                continue
            for parameter in markdown_parameters(inspect.getdoc(call) or "") - NOT_DRAWN:
                if parameter not in SINKS.get(name, ()):
                    missing.add((name, parameter))
    assert missing == set()


def markdown_parameters(documentation: str) -> set[str]:
    if "Parameters\n" not in documentation:
        return set()
    text = re.split(r"\n(?:Returns|Examples)\n", documentation.split("Parameters\n", 1)[1])[0]
    parts = re.split(r"^\*{0,2}(\w+)(?= ?:|$)", text, flags=re.MULTILINE)
    return {name for name, words in zip(parts[1::2], parts[2::2], strict=True) if "markdown" in words.lower()}


def test_html_is_built_by_few_and_never_in_markdown() -> None:
    for name, text in page_files().items():
        for call in (n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Call)):
            assert not any(keyword.arg == "unsafe_allow_html" for keyword in call.keywords), name
            if isinstance(call.func, ast.Attribute) and call.func.attr == "html":
                drawn = call.args[0]
                is_fixed = isinstance(drawn, ast.Name) and drawn.id.isupper()
                is_anchor = ast.unparse(drawn).startswith("f'<span id=\"{anchor}-{citation.number}")
                assert is_fixed or is_anchor or (isinstance(drawn, ast.Call) and name_of(drawn.func) in HTML_BUILDERS)


def test_tables_hold_no_links_and_charts_no_html() -> None:
    for name, text in page_files().items():
        assert not re.search(r"\b(LinkColumn|ImageColumn|JsonColumn|components\.|st\.iframe)", text), name
    chart = (PROJECT / "rag" / "ui" / "analytics.py").read_text()
    given = [
        k.value for n in ast.walk(ast.parse(chart)) if isinstance(n, ast.Call) for k in n.keywords if k.arg == "name"
    ]
    assert all(
        name_of(getattr(v, "func", v)) == "in_chart" or ast.unparse(v).startswith("_(STAGE_NAMES") for v in given
    )
