"""Text of others in Streamlit's Markdown: whatever it is made of, nothing in it acts."""

from __future__ import annotations

import re
import tomllib
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from random import Random

import pytest

from rag.records.spreadsheet import to_csv
from rag.ui import text as ui_text
from rag.ui.text import ANSWER_TAGS, GrowingAnswer, answer_markdown, code, excerpt, in_chart, lines, marked, plain
from tests.markdown_links import PIECES, acting


def texts(number: int, seed: int) -> list[str]:
    """Texts of some of the pieces, always the same."""
    random = Random(seed)
    return ["".join(random.choices(PIECES, k=random.randint(1, 14))) for _ in range(number)]


#: Own citations are the only links there are.
OWN = re.compile(r"#s1-[12](-\d+)?")


def test_an_escaped_backtick_around_a_link_makes_no_link() -> None:
    attack = r"Leave is 25 days. \`[click here](https://evil.test/phish)\` [1]"
    assert acting(answer_markdown(attack, [1], "s1")) == ["#s1-1"]


@pytest.mark.parametrize(
    "attack",
    [
        "https://evil.test/x",
        "www.evil.test",
        "somebody@evil.test",
        "wow![1]",
        '```mermaid\ngraph TD; A-->B; click A "https://evil.test"\n```',
        "| `a\\\\|https://evil.test/` |\n|---|\n| x |",
        "``a`b`c``www.evil.test`",
        "&#10;&#10;&#35; x &#104;ttps://evil.test",
        ":material/home: :material_home: :streamlit:",
        "```\n```https://evil.test",
        ">" * 30 + "https://evil.test",
    ],
)
def test_an_answer_has_no_links_but_its_citations(attack: str) -> None:
    assert set(acting(answer_markdown(attack, [1], "s1"))) <= {"#s1-1"}


@pytest.mark.parametrize("seed", range(8))
def test_no_mixture_acts_in_an_answer(seed: int) -> None:
    for text in texts(250, seed):
        drawn = answer_markdown(text, [1, 2], "s1")
        assert all(map(OWN.fullmatch, acting(drawn))), (text, drawn)


#: What an answer is made of, and what makes its blocks.
BLOCKS = (
    "Leave is **25 days** [1].", "- one\n- two", "- one\n\n- two\n\n  more", "1. first\n2. second", "> said\n> so",
    "| Plan | Cost |\n|---|---|\n| Plus | £14 |", "```\ncode\n\nmore\n```", "# Head", "    indented", "~~~\nopen",
    "a\r\nb\rc",
)  # fmt: skip


WORDS = ("leave", "days", "25", "and so", "연차는", "(see", "3)", "end.", "so,", "é", "。", "word", "more")
MARKS = (
    "**bold**", "_it_", "*em*", "`code`", "a&amp;b", "AT&T", "<b>", "[1]", "[1, 2]", "\\*", "**open", "x_y_z", "—",
    "- ", "# ", "> ", "1. ", "| a | b |", "|---|---|", "\n", "\n\n", "  \n", "```", "    ", "~", "&", "'", '"', "\t",
    "\u00a0", "=", "==", "!", "---", "*", "_", "__",
)  # fmt: skip


def html_of(answer: GrowingAnswer) -> str:
    return "".join(answer.finished) + answer.growing


class Drawn(HTMLParser):
    """Tags, attributes and text of HTML."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += attributes

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize("seed", range(4))
def test_an_answer_that_grows_is_written_as_it_would_be_at_once(seed: int) -> None:
    random = Random(seed)
    answers = [random.choice(["\n", "\n\n"]).join(random.choices(BLOCKS, k=6)) for _ in range(60)]
    for text in answers + texts(60, seed):
        growing, end = GrowingAnswer(), 0
        while end < len(text):
            end += random.randint(1, 40)
            growing.grow(text[:end])
            at_once = GrowingAnswer()
            at_once.grow(text[:end])
            assert html_of(growing) == html_of(at_once), text[:end]


@pytest.mark.parametrize("seed", range(4))
def test_words_are_added_to_their_block_as_if_it_were_parsed_again(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever stands before them: marks that are open or closed, spaces, the beginnings of lists, quotes and code."""
    random, parses = Random(seed), 0
    parse = ui_text.PARSER.parse

    def counted(text: str) -> object:
        nonlocal parses
        parses += 1
        return parse(text)

    monkeypatch.setattr(ui_text.PARSER, "parse", counted)
    pieces = quick = 0
    for _ in range(300):
        parts = random.choices((*WORDS * 3, *MARKS), k=random.randint(3, 40))
        text = "".join(part + random.choice((" ", " ", "", "  ")) for part in parts)
        growing, end = GrowingAnswer(), 0
        while end < len(text):
            end += random.randint(1, 12)
            parses = 0
            growing.grow(text[:end])
            pieces, quick = pieces + 1, quick + (not parses)
            if not parses:
                at_once = GrowingAnswer()
                at_once.grow(text[:end])
                assert html_of(growing) == html_of(at_once), text[:end]
    assert quick > pieces / 20


def test_words_that_cite_passages_are_added_without_parsing_their_block_again(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[str] = []
    parse = ui_text.PARSER.parse

    def noted(text: str) -> object:
        parsed.append(text)
        return parse(text)

    monkeypatch.setattr(ui_text.PARSER, "parse", noted)
    answer, text = GrowingAnswer(), "Employees have 25 days [1]."
    for piece in ("", " They may carry over", " five of them [2, 3].", " No", " more [1][4]. Ask", " first [2]"):
        text += piece
        answer.grow(text)
    assert parsed == ["Employees have 25 days [1]."]
    assert answer.growing == (
        "<p>Employees have 25 days <sup>1</sup>. They may carry over five of them <sup>2</sup><sup>3</sup>. "
        "No more <sup>1</sup><sup>4</sup>. Ask first <sup>2</sup></p>\n"
    )


def test_an_answer_that_grows_has_the_blocks_of_the_stored_one() -> None:
    answer = GrowingAnswer()
    answer.grow(
        "## Leave\n\n**25 days** [1]\n\n3. one\n4. two\n\n| a | b |\n|---|:--|\n| c | d |\n\n```python\nx < y\n```\nEnd"
    )
    assert html_of(answer).replace("\n", "") == (
        "<h5>Leave</h5><p><strong>25 days</strong> <sup>1</sup></p>"
        '<ol start="3"><li>one</li><li>two</li></ol>'
        "<table><thead><tr><th>a</th><th>b</th></tr></thead><tbody><tr><td>c</td><td>d</td></tr></tbody></table>"
        "<pre><code>x &lt; y</code></pre><p>End</p>"
    )


@pytest.mark.parametrize("seed", range(8))
def test_no_mixture_acts_in_an_answer_that_grows(seed: int) -> None:
    for text in texts(250, seed):
        answer = GrowingAnswer()
        answer.grow(text)
        drawn = Drawn(html_of(answer))
        assert drawn.tags <= ANSWER_TAGS, text
        assert all(name == "start" and (value or "").isdigit() for name, value in drawn.attributes), text


def test_blocks_that_are_finished_are_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[str] = []
    parse = ui_text.PARSER.parse

    def counted(text: str) -> object:
        parsed.append(text)
        return parse(text)

    monkeypatch.setattr(ui_text.PARSER, "parse", counted)
    growing, paragraph = GrowingAnswer(), "Leave is **25 days** a year [1].\n\n"
    for count in range(1, 101):
        growing.grow(paragraph * count)
    assert max(map(len, parsed)) <= 3 * len(paragraph)


@pytest.mark.parametrize("seed", range(4))
def test_no_mixture_acts_where_a_name_or_a_passage_is_drawn(seed: int) -> None:
    for text in texts(150, 100 + seed):
        for drawn in (
            plain(text),
            lines(text),
            code(text),
            f"**{plain(text)}**",
            f"| {plain(text)} | {plain(text)} |\n|---|---|\n| {plain(text)} | x |",
        ):
            assert acting(drawn) == [], (text, drawn)
        shown = marked(excerpt(text, ["leave", "evil"]), ["leave", "evil", "https", "a]b"])
        assert [a for a in acting(shown) if a != "directive :yellow-background["] == [], (text, shown)


def test_no_name_closes_the_badge_it_is_drawn_in() -> None:
    for text in texts(400, 7):
        drawn = plain(text)
        depth = 0
        position = 0
        # Streamlit looks for the end of a badge without a thought for code.
        while position < len(drawn):
            character = drawn[position]
            if character == "\\":
                position += 2
                continue
            depth += {"[": 1, "]": -1}.get(character, 0)
            assert depth == 0, (text, drawn)
            position += 1


def test_an_answer_keeps_its_words() -> None:
    for text in (
        "25 days, 12:30, a_b, R&D; 5 * 3 = 15",
        "hr@example.com or https://example.com/a_(b)?c=1&d=2.",
        "1. x\n2. y",
    ):
        drawn = answer_markdown(text)
        for word in text.replace("\n", " ").split():
            assert word.rstrip(".,;") in drawn.replace("\\", ""), drawn


def test_addresses_are_shown_as_they_are_and_can_be_copied() -> None:
    assert plain("See https://example.com/a_b?c=1.") == r"See `https://example.com/a_b?c=1`\."
    assert answer_markdown("Write to hr@example.com, please.") == "Write to `hr@example.com`, please."


@pytest.mark.parametrize(
    "start", ["=", "+", "-", "@", "\t=", "\r=", "\n=", " =", "|", "%", "＝", "＋", "－", "＠", "\u00a0="]
)
def test_no_cell_or_heading_of_an_export_is_a_formula(start: str) -> None:
    text = f'{start}HYPERLINK("https://evil.test")'
    for line in to_csv([text], [[text]]).split("\r\n"):
        assert not line.strip('"').strip().startswith(("=", "+", "-", "@", "|", "%", "＝", "＋", "－", "＠"))
    assert to_csv(["Cost"], [[-1.5]]) == "Cost\r\n-1.5\r\n"  # a figure is one


def test_a_model_s_name_is_no_html_of_a_chart() -> None:
    name = '<a href="https://evil.test">gpt</a> <b>x</b> &lt;a&gt;'
    assert "<" not in in_chart(name)
    assert unescape(in_chart(name)) == name


@pytest.mark.parametrize(
    "acts",
    [
        "https://evil.test", "www.evil.test", "x a@evil.test", "[x](y)", "![x](y)", "<b>", "<https://evil.test>",
        ":red[x]", "::leaf[x]", ":::note\n", "$x$", "[^1]", ":material/home:", ":streamlit:", "```mermaid\nx\n```",
        "[a]\n\n[a]: b",
    ],
)  # fmt: skip
def test_what_acts_is_found(acts: str) -> None:
    assert acting(acts)


def test_tables_are_saved_by_exports_of_ours_alone() -> None:
    """Streamlit's own button below a table writes formulas as they are."""
    settings = tomllib.loads((Path(__file__).parents[2] / ".streamlit" / "config.toml").read_text())
    assert settings["client"]["disableDataExport"] is True
