"""The house stays in order: no circles of files, no crooked prose beyond today's, nothing public lost unnoticed."""

from __future__ import annotations

import tomllib
from graphlib import CycleError, TopologicalSorter

import grimp
import pytest

from tests.prose import CROWDED_PERCENT, FIGURES, counted, figures, texts_of
from tests.public import NAMES, public_names

#: A new folder begins plainly.
NEW = {"percent": 7.0, "crowded": 0}


def circle_in(imports: dict[str, set[str]]) -> list[str]:
    """Return the modules of a circle, the first again at its end; none where there is no circle."""
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_no_files_import_each_other_in_a_circle() -> None:
    graph = grimp.build_graph("rag", cache_dir=None)
    assert circle_in({module: graph.find_modules_directly_imported_by(module) for module in graph.modules}) == []


def test_a_circle_is_found() -> None:
    assert circle_in({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}})[0] in "abc"
    assert circle_in({"a": {"b", "c"}, "b": {"c"}}) == []


def test_no_folder_is_written_less_plainly_than_before() -> None:
    """`python -m tests.prose` lists the folders; write the new text more plainly, or lower the figures after gains."""
    before = tomllib.loads(FIGURES.read_text("utf-8"))
    worse = [
        f"{folder}: {kind} {now[kind]}, before {then[kind]}"
        for folder, now in figures().items()
        for then in [before.get(folder, NEW)]
        for kind in ("percent", "crowded")
        if now[kind] > then[kind]
    ]
    assert worse == []


@pytest.mark.parametrize(
    ("text", "odd", "words"),
    [("Return what it is of those that have none.", 6, 9), ("Split `what it is` into chunks.", 0, 3)],
)
def test_words_are_counted_without_code(text: str, odd: int, words: int) -> None:
    assert counted(text) == (odd, words)
    assert (100 * odd / words > CROWDED_PERCENT) is bool(odd)


def test_comments_of_consecutive_lines_are_one_text() -> None:
    source = '"""First."""\n# second\n# goes on\nx = 1  # noqa: E501\n\n# third\n'
    assert [text for text in texts_of(source) if text] == ["First.", "second goes on", "third"]


def test_public_names_change_deliberately() -> None:
    """After a deliberate change: `python -m tests.public`, and a line in CHANGELOG.md."""
    assert public_names() == NAMES.read_text("utf-8").splitlines()
