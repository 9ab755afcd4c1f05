"""Follow-ups where no model rewrites them: what the question before it was about is kept, and of twins only the one."""

from __future__ import annotations

import pytest

from rag.answering.carried_over import asks_again, carry_over, without_other_documents
from rag.answering.extractive import best_quotes
from tests.answering.scripted import passage

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
    assert without_other_documents(before, question, titles, "en") == left


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
    assert without_other_documents(before, question, PLANS, "en") == before


@pytest.mark.parametrize(
    ("language", "turns", "searched"),
    [
        ("en", ["What is the limit for staff?", "And for managers?"], "What is the limit for managers?"),
        ("en", ["What is the limit for staff?", "And for managers?", "And directors?"], "What is the limit directors?"),
        ("en", ["When does the Dublin office open?", "And Leeds?"], "When does the office open Leeds?"),
        ("en", ["When does Dublin open?", "And Leeds?", "Where do I park there?"], "Leeds Where do I park there?"),
        ("en", ["What is my notice after three years?", "And after twelve?"], "What is my notice after twelve?"),
        ("en", ["What do you pay if I pay 4 %?", "And if I pay 6 %?"], "What do you pay if I pay if I pay 6 %?"),
        ("en", ["How many days of leave have I?", "Thanks!", "And in July?"], "How many days of leave have I in July?"),
        ("de", ["Wie viel Urlaub gibt es in München?", "Und in Utrecht?"], "Wie viel Urlaub gibt es in Utrecht?"),
        ("nl", ["Hoeveel dagen vrij krijg ik bij een verhuizing?", "En bij een huwelijk?"],
         "Hoeveel dagen vrij krijg ik bij een huwelijk?"),
        ("fr", ["Combien de jours pour un mariage ?", "Et pour un enfant ?"], "Combien de jours pour un enfant?"),
        ("es", ["¿Cuántos días para una boda?", "¿Y para una mudanza?"], "¿Cuántos días para una mudanza?"),
        ("en", ["What is paid after three years?", "And on Sundays?"], "What is paid after three years on Sundays?"),
        ("nl", ["Wat krijg ik na drie jaar?", "En bij een huwelijk?"], "Wat krijg ik na drie jaar bij een huwelijk?"),
        ("de", ["Gibt es Urlaub in München?", "Und Teilzeit?"], "Gibt es Urlaub in München Teilzeit?"),
        ("ko", ["근속 4년이면 연차가 며칠인가요?", "10년이면요?"], "근속 연차가 며칠인가요 10년이면요?"),
        ("en", ["How long are payroll records kept?", "How many characters does a strong password need?"],
         "How many characters does a strong password need?"),
    ],
)  # fmt: skip
def test_a_follow_up_carries_over_what_it_does_not_replace(language: str, turns: list[str], searched: str) -> None:
    *earlier, question = turns
    assert carry_over(question, [(turn, "") for turn in earlier], language=language).text == searched


@pytest.mark.parametrize(
    ("reply", "searched"),
    [
        (
            "The deductible is $400. You may add a partner for $92.",
            "What is the deductible monthly Can I add a partner?",
        ),
        ("A partner is added in the portal.", "Can I add a partner monthly?"),
    ],
)
def test_the_reply_to_a_short_question_tells_whether_it_followed_the_one_before(reply: str, searched: str) -> None:
    earlier = [("What is the deductible?", ""), ("Can I add a partner?", reply)]
    assert carry_over("And monthly?", earlier, language="en").text == searched


@pytest.mark.parametrize(
    ("language", "message"),
    [
        ("en", "Where does it say so?"), ("en", "Are you sure?"), ("nl", "Waar staat dat?"), ("de", "Wo steht das?"),
        ("de", "Bist du sicher?"), ("fr", "Où est-ce écrit ?"), ("es", "¿Estás seguro?"), ("it", "Dove è scritto?"),
        ("pt", "Tem certeza?"), ("pl", "Jesteś pewien?"), ("tr", "Emin misiniz?"), ("ar", "هل أنت متأكد؟"),
        ("ko", "정말인가요?"), ("ja", "本当ですか？"), ("zh", "你确定吗？"),
    ],
)  # fmt: skip
def test_whoever_doubts_an_answer_is_shown_it_again(language: str, message: str) -> None:
    assert asks_again(message, language)
    earlier = [("What may a gift be worth?", "“Gifts worth up to £40 may be kept.” [1]")]
    assert carry_over(message, earlier, language=language).text == "What may a gift be worth?"


@pytest.mark.parametrize(
    "sentences",
    [
        "Si te casas, avisa con un mes. El taller cierra en agosto. Los permisos se piden a Personal.",
        "El permiso por matrimonio dura 15 días. Para el matrimonio de un hermano, el permiso es de un día.",
    ],
)
def test_the_row_of_the_follow_up_is_quoted_though_other_words_for_the_question_say_more(sentences: str) -> None:
    rows = ("Matrimonio propio | 15", "Matrimonio de un hermano | 1", "Fallecimiento | 4", "Mudanza | 2")
    table = "| Motivo | Días |\n" + "\n".join(f"| {row} |" for row in rows)
    asked = [("¿Cuántos días de permiso tengo si se casa mi hermano?", "“Matrimonio de un hermano — Días: 1” [1]")]
    carried = carry_over("¿Y para una mudanza?", asked, language="es")
    citations = [passage(1, f"# Permisos\n\n{sentences}\n\n{table}")]
    quotes = best_quotes(carried.text, citations, language="es", carried=carried)
    assert quotes is not None
    assert "Mudanza — Días: 2" in quotes.text
