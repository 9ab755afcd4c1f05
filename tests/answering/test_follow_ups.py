"""Follow-ups where no model rewrites them: what the question before it was about is kept, and of twins only the one."""

from __future__ import annotations

import pytest

from rag.answering.follow_up_rewriting import without_others

PLANS = ["Northwind Health Plus Benefits Details", "Northwind Standard Benefits Details", "Employee handbook", "Perks"]
LEAVE = ["Leave policy Germany 2026", "Leave policy France 2026", "Travel policy"]


@pytest.mark.parametrize(
    ("titles", "before", "question", "left"),
    [
        (PLANS, "What is the deductible of Health Plus?", "and on the standard plan?", "What is the deductible of"),
        (PLANS, "Is Health Plus good for mental health?", "And Standard?", "Is good for mental health?"),
        (PLANS, "Does Northwind Standard cover dental?", "And Health Plus?", "Does Northwind cover dental?"),
        (LEAVE, "How long is leave in Germany?", "And in France?", "How long is leave in"),
    ],
)
def test_a_follow_up_about_one_of_two_twins_does_not_ask_about_the_other(
    titles: list[str], before: str, question: str, left: str
) -> None:
    assert without_others(before, question, titles, "en") == left


@pytest.mark.parametrize(
    ("before", "question"),
    [
        ("What is the deductible of Health Plus?", "and for dental?"),
        ("What is the deductible of Health Plus?", "And compared with Standard, is Health Plus cheaper?"),
        ("What is the deductible?", "and on the standard plan?"),
        ("What does the employee handbook say of leave?", "and the perks?"),
        ("How do I stay in good health?", "and on the standard plan?"),
    ],
)
def test_another_follow_up_keeps_the_whole_question_before_it(before: str, question: str) -> None:
    assert without_others(before, question, PLANS, "en") == before
