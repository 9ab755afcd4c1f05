"""Markdown as its reader sees it: the words of links, rows of tables in HTML, nothing of templates."""

from __future__ import annotations

import time

import pytest

from rag.ingestion.loaders.markdown import load_markdown
from tests.patience import patient


def read(text: str) -> str:
    return load_markdown(text.encode()).pages[0].text


@pytest.mark.parametrize(
    ("written", "seen"),
    [
        pytest.param("See [the policy](https://example.org/a(b)c) first.", "See the policy first.", id="a link"),
        pytest.param("* [Sick leave](leave.md)\n* [Pay](<pay day.md> \"Pay\")", "* Sick leave\n* Pay", id="an index"),
        pytest.param("Ask [HR][hr].\n\n[hr]: mailto:hr@example.org \"HR\"", "Ask HR.", id="by reference"),
        pytest.param("![The map](map.png) Turn left.", "The map Turn left.", id="a picture"),
        pytest.param("[![Badge](b.svg)](https://example.org) Ready.", "Badge Ready.", id="a picture in a link"),
        pytest.param("Write to <hr@example.org> or <https://example.org/hr>.",
                     "Write to hr@example.org or https://example.org/hr.", id="addresses"),
        pytest.param("{% alert %}\nAsk first.\n{% endalert %}\n{{% notice %}}Now{{% /notice %}}{: .red }",
                     "Ask first.\n\nNow", id="templates"),
        pytest.param("See [hours]({% page \"/hours\" %}).", "See hours.", id="a template in a link"),
        pytest.param("One.<br>Two. <span class=\"x\">Three.</span>", "One.\nTwo. Three.", id="tags"),
        pytest.param("Cells [1] and [x] stay.", "Cells [1] and [x] stay.", id="brackets"),
        pytest.param("- [x] done\n- [ ] open", "- [x] done\n- [ ] open", id="a list of tasks"),
        pytest.param("Use `[a](b)` and:\n\n```\n{% raw %} <b> [c](d)\n```",
                     "Use `[a](b)` and:\n\n```\n{% raw %} <b> [c](d)\n```", id="code"),
        pytest.param("Less than 5 < 6 and a<b.", "Less than 5 < 6 and a<b.", id="no tags"),
    ],
)  # fmt: skip
def test_markdown_is_what_its_reader_sees(written: str, seen: str) -> None:
    assert read(written) == seen


def test_a_table_in_html_has_rows() -> None:
    text = read("# Holidays\n\n<table>\n<tr><td>Labour Day</td><td>1 May</td></tr>\n"
                "<tr><td>Christmas</td><td>25 December</td></tr>\n</table>\n\nBoth are paid.")  # fmt: skip
    assert "Labour Day | 1 May\nChristmas | 25 December" in text
    assert text.startswith("# Holidays\n")
    assert text.endswith("Both are paid.")
    assert "<" not in text


@pytest.mark.parametrize(
    "text",
    ["<table" * 60_000, "</table>" + "<table" * 60_000, "[" * 200_000, "[a](" * 60_000, "{%" * 100_000, "`" * 100_000,
     "[a" * 60_000 + "](b)", "![" * 100_000, "<" * 200_000, "[x]: " * 50_000],
    ids=ascii,
)  # fmt: skip
def test_no_marks_take_long(text: str) -> None:
    started = time.process_time()
    read(text)
    assert time.process_time() - started < patient(10)
