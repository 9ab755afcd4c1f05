"""Text of models and documents cannot act on the page."""

from __future__ import annotations

import pytest

from rag.ui.text import EXCERPT_CHARACTERS, answer_markdown, excerpt, marked, plain


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", ""),
        pytest.param("$1,500 and $2,000", r"\$1,500 and \$2,000", id="money is not a formula"),
        pytest.param("![x](http://e.example/x.png)", r"!\[x\](`http://e.example/x.png`)", id="images are text"),
        pytest.param("[here](http://e.example)", r"\[here\](`http://e.example`)", id="links are text"),
        pytest.param("<b>x</b> a < b", r"\<b>x\</b> a \< b", id="html is text"),
        pytest.param(":red[alarm]", r"\:red\[alarm\]", id="directives are text"),
        pytest.param(
            r"\$5 and \\$6 \\\[x](y)", r"\$5 and \\\$6 \\\[x\](y)", id="escapes of the model do not undo ours"
        ),
        pytest.param("~~gone~~", r"\~\~gone\~\~", id="nothing is struck out"),
        pytest.param("# Huge", "##### Huge", id="headings stay small"),
        pytest.param("Text\n---", "Text\n\\---", id="a rule does not make a heading of the line above"),
        pytest.param("**bold**\n\n- one\n- two", "**bold**\n\n- one\n- two", id="bold and lists stay"),
        pytest.param("| a | b |\n|---|---|\n| 1 | 2 |", "| a | b |\n|---|---|\n| 1 | 2 |", id="tables stay"),
        pytest.param("`cost $x` $y", r"`cost $x` \$y", id="code is left alone"),
    ],
)
def test_an_answer_keeps_its_form_and_loses_what_could_act(text: str, shown: str) -> None:
    assert answer_markdown(text) == shown


def test_only_verified_citations_are_links() -> None:
    assert answer_markdown("So [1][2] and [1, 3].", [1, 3], "s1") == (r"So [1](#s1-1)\[2\] and [1](#s1-1-2)[3](#s1-3).")
    assert answer_markdown("So [1].", [1]) == r"So \[1\]."


def test_plain_text_has_no_meaning_left() -> None:
    assert plain("a *b* [c](d)\n$e$") == r"a \*b\* \[c\]\(d\) \$e\$"
    assert plain("<script>") == r"\<script\>"
    assert plain("연차 휴가 §4") == "연차 휴가 §4"


def test_terms_are_marked_as_whole_words_in_any_case_and_neighbours_as_one() -> None:
    assert marked("Annual leave: leaves and LEAVE.", ["leave", "annual"]) == (
        r":yellow-background[Annual leave]\: leaves and :yellow-background[LEAVE]\."
    )
    assert marked("no terms here", []) == "no terms here"
    assert marked("no hit", ["leave"]) == "no hit"


def test_terms_with_a_short_word_between_them_are_marked_as_one() -> None:
    assert marked("days of the annual leave without pay, leave", ["days", "annual", "leave", "pay"]) == (
        r":yellow-background[days of the annual leave] without :yellow-background[pay], :yellow-background[leave]"
    )


def test_terms_are_marked_inside_words_where_a_script_has_no_spaces() -> None:
    assert marked("연차휴가는 15일", ["휴가"]) == "연차:yellow-background[휴가]는 15일"


def test_a_number_is_not_marked_within_another_number() -> None:
    assert marked("5.1 has 5 and 1,500", ["5", "500", "1"]) == r"5\.1 has :yellow-background[5] and 1,500"


def test_rows_of_a_table_are_on_lines_of_their_own_and_no_mark_goes_over_two() -> None:
    passage = (
        "Hotels are **paid**\nin full:\n\n| Country | Limit |\n|---|---:|\n| France | 130 EUR |\n| Norway | 210 CHF |"
    )
    shown = excerpt(passage, ["Norway", "210", "CHF"])
    assert shown == "Hotels are paid in full:\nCountry | Limit\nFrance | 130 EUR\nNorway | 210 CHF"
    assert marked("France | 130 EUR\nNorway | 210 CHF", ["EUR", "Norway"]) == (
        "France \\| 130 :yellow-background[EUR]  \n:yellow-background[Norway] \\| 210 CHF"
    )


def test_marks_of_markdown_are_no_words_of_an_excerpt() -> None:
    assert excerpt("Up to `three` **days a week**, 2 * 3, a_b and __init__ *", []) == (
        "Up to three days a week, 2 * 3, a_b and __init__ *"
    )


def test_a_marked_term_cannot_close_its_mark() -> None:
    assert marked("x a]b y", ["a]b"]) == r"x :yellow-background[a\]b] y"


def test_a_short_passage_is_shown_whole() -> None:
    assert (
        excerpt("# Travel\n\nC# is no heading.\n## Hotels\n150 euros", ["150"])
        == "Travel C# is no heading. Hotels 150 euros"
    )
    assert excerpt("  a \n b ", ["b"]) == "a b"


def test_a_long_passage_is_cut_around_most_of_the_terms() -> None:
    passage = "filler " * 80 + "annual leave of 21 days " + "filler " * 80
    cut = excerpt(passage, ["annual", "leave", "days"])
    assert "annual leave of 21 days" in cut
    assert cut.startswith("… ")
    assert cut.endswith(" …")
    assert len(cut) <= EXCERPT_CHARACTERS + 6


def test_terms_that_stand_together_count_each_where_a_passage_is_cut() -> None:
    passage = "The plan of health has terms. " + "filler " * 40 + "Health Plus has a deductible of $2,000 per year."
    assert "$2,000" in excerpt(passage, ["health", "plus", "deductible"])


def test_a_long_passage_without_a_term_or_a_space_is_still_cut() -> None:
    assert len(excerpt("x" * 5000, ["leave"])) <= EXCERPT_CHARACTERS + 6
