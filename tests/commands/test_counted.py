"""Every count that a command prints has the noun for its number: "1 passage", "2 passages"."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from rag.language import counted

PROJECT = Path(__file__).resolve().parents[2]
#: What only commands print: their own sentences, those of `search --explain`, and those of a backup.
PRINTED = [
    *(PROJECT / "rag/commands").glob("*.py"),
    PROJECT / "rag/retrieval/explain.py",
    PROJECT / "rag/storage/backup.py",
]
#: Words with an s that follow a name or a value and are no noun of things.
NO_NOUNS = {"as", "answers", "does", "has", "holds", "invites", "is", "takes", "was"}


@pytest.mark.parametrize(
    ("count", "words"),
    [(0, "0 documents are"), (1, "1 document is"), (2, "2 documents are"), (1234, "1,234 documents are")],
)
def test_a_count_has_the_noun_of_its_number(count: int, words: str) -> None:
    assert counted(count, "document is", "documents are") == words
    assert counted(count, "document") == words.rpartition(" ")[0]


@pytest.mark.parametrize("path", PRINTED, ids=lambda path: path.name)
def test_no_sentence_of_a_command_puts_a_number_before_a_fixed_plural(path: Path) -> None:
    assert list(glued(path.read_text("utf-8"))) == []


def test_a_number_before_a_fixed_plural_is_found() -> None:
    assert list(glued("f'{len(found)} passages, {name} is there, for {BIN_DAYS} days'")) == ["{len(found)} passages"]
    assert list(glued("f'{cited} of {hits:>5} of all passages'")) == ["{hits} of all passages"]


def glued(source: str) -> Iterator[str]:
    """Yield each value that is followed by a plural in an f-string; constants are named in capitals and known."""
    for text in ast.walk(ast.parse(source)):
        if not isinstance(text, ast.JoinedStr):
            continue
        for value, words in zip(text.values, text.values[1:], strict=False):
            if not isinstance(value, ast.FormattedValue) or not isinstance(words, ast.Constant):
                continue
            noun = re.match(r" (?:of (?:all )?)?([a-z]+s)\b", str(words.value))
            shown = ast.unparse(value.value)
            if noun and noun[1] not in {*NO_NOUNS, "its"} and not shown.isupper():
                yield f"{{{shown}}}{noun[0]}"
