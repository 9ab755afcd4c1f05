from __future__ import annotations

import pytest

from rag.ingestion.loaders.characters import normalise_characters
from rag.ingestion.loaders.page_text import RepeatedLines, compounds_in, joined_lines, unreadable_reason


@pytest.mark.parametrize(
    ("raw", "clean"),
    [
        ("", ""),
        ("a\0b\ud800c", "abc"),
        ("oﬃce ﬂoor", "office floor"),
        ("㎏ ①ｶﾞ 한글", "㎏ ①ｶﾞ 한글"),
        ("one\ftwo\r\nthree", "one\ntwo\nthree"),
        ("  a \u00a0\t b  ", "a b"),
        ("soft\u00adhyphen", "softhyphen"),
    ],
    ids=["empty", "nul-and-surrogate", "ligatures", "cjk-stays", "line-ends", "spaces", "soft-hyphen"],
)
def test_characters_are_normalised_and_no_others_changed(raw: str, clean: str) -> None:
    assert normalise_characters(raw) == clean


@pytest.mark.parametrize(
    "text",
    [
        "à À â Â ä Ä ç Ç é É è È ê Ê ë Ë î Î ï Ï ô Ô ù Ù û Û ü Ü",
        "제3조(육아휴직) 직원은 1년까지 쉴 수 있다.",
        "有給休暇はカレンダーで申請します。",
        "«Le congé», dit-il : 25 €, § 3, n° 7.",
        "Ελληνικά και English μαζί",
        "",
    ],
)
def test_readable_text_in_any_script_is_not_called_unreadable(text: str) -> None:
    assert unreadable_reason(text) == ""


@pytest.mark.parametrize(
    "text",
    [
        "Ä¿ ¡¡ Â¼ ¹Ø ÓÚ ºì ¾ü ×÷ Õ½ µÄ Ô Ôò £± ¡ ¡",
        "ABC ͍͋͏͓͑ 123",
        "ॎॻ͖ͷςετ ủހׅ\u038bॎॻ͖ỐỨ ừހׅॎॻ͖ỐỬ",
        "\ue001\ue002\ue003 text",
        "\ufffd\ufffd\ufffd\ufffd of it",
    ],
)
def test_garbage_of_wrong_encodings_is_recognised(text: str) -> None:
    assert unreadable_reason(text)


def cleaned(pages: list[list[str]]) -> list[list[str]]:
    """The pages without what repeats on them."""
    repeated = RepeatedLines()
    for lines in pages:
        repeated.add(lines)
    return [repeated.without(number, lines) for number, lines in enumerate(pages, 1)]


def test_running_heads_and_page_numbers_go_but_similar_facts_stay() -> None:
    pages = [["Staff manual", f"Office {n}: {100 + n} EUR", f"Page {n} of 9"] for n in range(1, 10)]
    assert cleaned(pages) == [[f"Office {n}: {100 + n} EUR"] for n in range(1, 10)]


def test_a_page_that_holds_only_what_repeats_keeps_it() -> None:
    assert cleaned([["Confidential"]] * 5) == [["Confidential"]] * 5


def test_page_numbers_may_begin_after_a_title_page() -> None:
    pages = [["Title"], *([f"Text {'abcdefgh'[n]}", str(n)] for n in range(1, 8))]
    assert cleaned(pages)[3] == ["Text d"]


def test_two_pages_are_too_few_to_call_a_line_repeated() -> None:
    assert cleaned([["Same"], ["Same"]]) == [["Same"], ["Same"]]


def test_words_broken_at_line_ends_are_whole_again_and_compounds_keep_their_hyphen() -> None:
    compounds = frozenset(compounds_in("a well-known rule"))
    assert joined_lines(["the exam-", "ple is well-", "known in Nord-", "Holland"], compounds) == (
        "the example is well-known in Nord-Holland"
    )


def test_paragraph_breaks_stay_and_more_blank_lines_become_one() -> None:
    assert joined_lines(["", "a", "", "", "", "b", ""], frozenset()) == "a\n\nb"
