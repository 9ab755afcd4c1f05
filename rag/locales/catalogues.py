"""Update the catalogues from the code: `make translations` (Babel's extract and update together).

Sentences are found in calls to `_`, `ngettext` and `N_`, in the templates, and in raised errors. Errors are plain
English in the code, because logs and programs read them too, and are translated when a person reads them. An error
class's docstring is its sentence.
"""

from __future__ import annotations

import ast
import io
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from babel.messages.catalog import Catalog
from babel.messages.extract import extract_from_dir
from babel.messages.pofile import read_po, write_po

from rag import errors
from rag.language import DOMAIN, ENGLISH, FOLDER, LANGUAGES

PROJECT = Path(__file__).resolve().parent.parent.parent
#: Only programs and terminals read these; they stay English.
NOT_TRANSLATED = (
    "rag/command_line.py", "rag/commands/", "rag/launch.py", "rag/samples/", "rag/sandbox/", "rag/storage/",
    "rag/settings/",
)  # fmt: skip
#: Errors raised here are read by programs or by operators.
ERRORS_IN_ENGLISH = (
    "rag/providers/builtin_embedders.py", "rag/providers/cohere.py", "rag/providers/registry.py",
    "rag/providers/outward.py", "rag/integrations/engines/",
    "rag/retrieval/search_query.py", "rag/retrieval/query_understanding.py", "rag/retrieval/vector_index.py",
    "rag/api/", "rag/access/tenants.py", "rag/integrations/sources/vectors/",
    "rag/profiles/__init__.py", "rag/profiles/profile.py", "rag/profiles/parts.py", "rag/profiles/notices/",
    "rag/profiles/portfolio/", "rag/ingestion/chunking/",
    "rag/integrations/directory/scim/server.py", "rag/integrations/channels/mcp/",
    "rag/integrations/channels/openai_routes/", "rag/integrations/channels/widget/routes.py",
)  # fmt: skip
ERRORS = frozenset(name for name, value in vars(errors).items() if isinstance(value, type)) - {"SettingsError"}
IN_CONTEXT = ((1, "c"), 2)
KEYWORDS: dict[str, Any] = {
    "_": None, "N_": None, "to_markup": None, "ngettext": (1, 2), "pgettext": IN_CONTEXT, "NP_": IN_CONTEXT,
}  # fmt: skip
COMMENT_TAGS = ("Translators:",)
WIDTH = 100
SENTENCE = re.compile(r"(?:[A-Z0-9]|\{count\} ).*\.")
LOADERS = ("rag/ingestion/loaders/", "rag/integrations/formats/")
OF_AN_ERROR = "where an error is raised"


def extract_errors(
    file: IO[bytes], keywords: Any, comment_tags: Any, options: Mapping[str, Any]
) -> Iterator[tuple[int, str, str | tuple[str, ...], list[str]]]:
    """Find error messages in a module, and the texts in its gettext calls; an extractor for Babel."""
    tree = ast.parse(file.read())
    named = named_sentences(tree)
    # Content a file lost during reading is described with its loader's sentences.
    path = Path(str(getattr(file, "name", ""))).as_posix()
    is_of_loaders = any(folder in path for folder in LOADERS)
    for name, sentences in named.items():
        # Handed on to who raises them.
        if name.startswith("SENTENCES"):
            yield from ((0, "_", sentence, [OF_AN_ERROR]) for sentence in sentences)
        elif is_of_loaders and not name.endswith("PROMPTS"):
            yield from ((0, "_", sentence, []) for sentence in sentences if SENTENCE.fullmatch(sentence))
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and node.name in ERRORS and (sentence := ast.get_docstring(node)):
            yield node.lineno, "_", " ".join(sentence.split()), []
        if not isinstance(node, ast.Call):
            continue
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if called in KEYWORDS:
            # Only literals in the call: a word from a table is marked in its table.
            places = KEYWORDS[called] or (1,)
            constants = [item.value for item in node.args[: len(places)] if isinstance(item, ast.Constant)]
            literals = [text for text in constants if isinstance(text, str)]
            if len(literals) == len(places):
                yield node.lineno, called, literals[0] if len(literals) == 1 else tuple(literals), []
        if not isinstance(node.func, ast.Name):
            continue
        if node.func.id in ERRORS and node.args:
            yield from ((node.lineno, "_", sentence, [OF_AN_ERROR]) for sentence in sentences_of(node.args[0], named))
        for text in texts_of_setting(node):
            yield node.lineno, "_", text, []
        if words := words_of(node, node.func.id):
            yield node.lineno, "ngettext" if len(words) == 2 and node.func.id == "count" else "_", words, []


def texts_of_setting(call: ast.Call) -> list[str]:
    """Return title, help and unit from a declared `setting(…)`, or title and description from a `Profile(…)`."""
    name = call.func.id if isinstance(call.func, ast.Name) else ""
    names = {"setting": ("title", "help", "unit"), "Profile": ("title", "description")}.get(name, ())
    arguments = [
        *zip(("default", "title", "help"), call.args, strict=False),
        *((k.arg, k.value) for k in call.keywords),
    ]
    literals = [value.value for place, value in arguments if place in names and isinstance(value, ast.Constant)]
    return [text for text in literals if isinstance(text, str) and text.strip()]


def words_of(call: ast.Call, name: str) -> str | tuple[str, str]:
    """Return singular and plural from a call like `count(number, "page")`: ("{count} page", "{count} pages"); "" for
    other calls.
    """
    literals = [item.value for item in call.args[1:] if isinstance(item, ast.Constant) and isinstance(item.value, str)]
    if name != "count" or not literals or len(literals) < len(call.args) - 1:
        return ""
    one, many = literals[0], literals[1] if len(literals) > 1 else literals[0] + "s"
    return f"{{count}} {one}", f"{{count}} {many}"


def named_sentences(tree: ast.AST) -> dict[str, list[str]]:
    """Return the sentences which a module assigns to each name, alone, in a tuple or in a table."""
    named: dict[str, list[str]] = {}
    for node in ast.walk(tree):
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        value = getattr(node, "value", None)
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(target, ast.Name) and value is not None:
            values = value.values if isinstance(value, ast.Dict) else [value]
            values = [one for each in values for one in (each.elts if isinstance(each, ast.Tuple) else [each])]
            named.setdefault(target.id, []).extend(filter(None, map(sentence_of, values)))
    return named


def sentences_of(node: ast.expr, named: Mapping[str, list[str]]) -> list[str]:
    """Return the sentences which an expression may give: the literals inside, or sentences assigned to a name in
    `named`.
    """
    match node:
        case ast.IfExp(body=one, orelse=other):
            return sentences_of(one, named) + sentences_of(other, named)
        case ast.Name(id=name) | ast.Subscript(value=ast.Name(id=name)):
            return named.get(name, [])
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="format")):
            return named.get(name, [])
        case _:
            return [sentence] if (sentence := sentence_of(node)) else []


def sentence_of(node: ast.expr) -> str:
    """Return the text in a literal, or in an f-string with `{name}` for each value; "" for other expressions."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) and " " in node.value else ""
    if not isinstance(node, ast.JoinedStr):
        return ""
    text, names = "", list[str]()
    for piece in node.values:
        if isinstance(piece, ast.Constant):
            text += str(piece.value)
        elif isinstance(piece, ast.FormattedValue):
            name = name_of(piece.value)
            while name in names:
                name += "_"
            names.append(name)
            text += f"{{{name}}}"
    return text if " " in text.strip() else ""


def name_of(node: ast.expr) -> str:
    """Return a placeholder name for a value in an f-string, which a translator understands."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name.strip("_").lower() or "value"
        case ast.Call(args=[first, *_]):
            return name_of(first)
        case ast.Subscript(value=value) | ast.BoolOp(values=[value, *_]):
            return name_of(value)
        case _:
            return "value"


METHODS: list[tuple[str, Any]] = [
    ("rag/api/templates/**.html", "jinja2.ext:babel_extract"),
    ("rag/**.py", extract_errors),
    ("pages/**.py", extract_errors),
]


def template() -> Catalog:
    """Collect every sentence in the code, untranslated."""
    catalogue = Catalog(project="HR Assistant", charset="utf-8", fuzzy=False)
    # By file and not by line: a line more in a file would change every catalogue.
    for folder in ("rag", "pages"):
        for name, _line, message, comments, context in extract_from_dir(
            PROJECT / folder,
            method_map=[(p.removeprefix(f"{folder}/"), m) for p, m in METHODS if p.startswith(folder)],
            keywords=KEYWORDS,
            comment_tags=COMMENT_TAGS,
        ):
            path = f"{folder}/{name}"
            is_error = comments == [OF_AN_ERROR]
            is_english = path.startswith(NOT_TRANSLATED) or path.endswith("/commands.py")
            if not is_english and not (is_error and path.startswith(ERRORS_IN_ENGLISH)):
                catalogue.add(
                    message, None, [(path, 0)], auto_comments=[c for c in comments if c != OF_AN_ERROR], context=context
                )
    return catalogue


def path_of(language: str) -> Path:
    return FOLDER / language / "LC_MESSAGES" / f"{DOMAIN}.po"


def read(language: str) -> Catalog:
    """Return a language's catalogue, empty if there is none yet."""
    path = path_of(language)
    if not path.exists():
        return Catalog(locale=language, domain=DOMAIN, project="HR Assistant", fuzzy=False)
    with path.open("rb") as file:
        return read_po(file, locale=language, domain=DOMAIN)


def write(language: str, catalogue: Catalog) -> None:
    """Write a catalogue in the format translation programs read, sorted by sentence."""
    path = path_of(language)
    path.parent.mkdir(parents=True, exist_ok=True)
    buffer = io.BytesIO()
    catalogue.fuzzy = False
    write_po(buffer, catalogue, width=WIDTH, ignore_obsolete=True, sort_output=True, omit_header=False)
    head = ("POT-Creation-Date", "PO-Revision-Date", "Generated-By", "Report-Msgid", "Last-Translator", "Language-Team")
    lines = buffer.getvalue().decode("utf-8").splitlines(keepends=True)
    # Dates and tools would change every file at every run.
    path.write_text("".join(line for line in lines if not line.startswith(tuple(f'"{name}' for name in head))), "utf-8")


def missing(catalogue: Catalog, current: Catalog) -> list[str]:
    """Return sentences in the code for which a catalogue lacks the translation or plural forms."""
    lacking = []
    for message in current:
        translation = catalogue.get(message.id, message.context) if message.id else None
        if not message.id:
            continue
        texts = (
            ()
            if translation is None
            else translation.string
            if isinstance(translation.string, (tuple, list))
            else (translation.string,)
        )
        if not texts or not all(texts) or (translation and translation.fuzzy):
            lacking.append(message.id if isinstance(message.id, str) else message.id[0])
    return lacking


def main() -> int:
    """Update every catalogue, and print the untranslated sentences."""
    current = template()
    for language in LANGUAGES:
        if language == ENGLISH:
            continue
        catalogue = read(language)
        catalogue.update(current, no_fuzzy_matching=True)
        write(language, catalogue)
        print(f"{LANGUAGES[language]}: {len(missing(catalogue, current))} of {len(current)} still to translate")  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main())
