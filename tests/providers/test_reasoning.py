"""What a reasoning model's text is without its reasoning, however the pieces come."""

from __future__ import annotations

import pytest

from rag.providers.streaming import ReasoningFilter, without_reasoning


def streamed(text: str, size: int, *, waits: bool = False) -> str:
    answer, shown = ReasoningFilter(waits=waits), ""
    for start in range(0, len(text), size):
        had = answer.has_unopened
        piece = answer.feed(text[start : start + size])
        shown = piece if answer.has_unopened and not had else shown + piece
    return shown + answer.finish()


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
@pytest.mark.parametrize(
    ("text", "answer"),
    [
        pytest.param("You have 25 days.", "You have 25 days.", id="none"),
        pytest.param("<think>25?</think>You have 25 days.", "You have 25 days.", id="before"),
        pytest.param("\n<THINK>\n25?\n</THINK>\n\nYou have 25 days.", "You have 25 days.", id="with space around"),
        pytest.param("<thinking>a</thinking>One. <thinking>b</thinking>Two.", "One. Two.", id="twice"),
        pytest.param("25? I guess so.</think>\nYou have 25 days.", "You have 25 days.", id="without its first tag"),
        pytest.param("<think>It never ends", "", id="without its last tag"),
        pytest.param("Less than 5 < 6, and <b>bold</b> stays.", "Less than 5 < 6, and <b>bold</b> stays.", id="others"),
        pytest.param("It ends with <thi", "It ends with <thi", id="a tag cut off"),
        pytest.param("  indented", "indented", id="space first"),
        pytest.param("", "", id="empty"),
    ],
)
def test_the_answer_is_what_lies_outside_the_tags(text: str, answer: str, size: int) -> None:
    assert streamed(text, size) == answer
    assert without_reasoning(text) == answer


@pytest.mark.parametrize("size", [1, 5, 1000])
def test_a_model_known_to_begin_with_reasoning_is_held_until_it_ends(size: int) -> None:
    assert streamed("25?</think> You have 25 days.", size, waits=True) == "You have 25 days."
    assert streamed("This time without any.", size, waits=True) == "This time without any."
