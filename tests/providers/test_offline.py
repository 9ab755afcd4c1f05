"""The built-in embedder: any text, any script, the same on every machine."""

from __future__ import annotations

import subprocess
import sys
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.errors import InvalidInput
from rag.providers import Embedder
from rag.providers.builtin_embedders import LexicalEmbedder
from rag.settings import PROJECT

EMBEDDER = LexicalEmbedder()


def similarity(one: str, other: str) -> float:
    vectors = EMBEDDER.embed([one, other], purpose="document").vectors
    return float(vectors[0] @ vectors[1])


def test_it_keeps_the_protocol_and_costs_nothing() -> None:
    assert isinstance(EMBEDDER, Embedder)
    assert EMBEDDER.id == "builtin/lexical@1536"
    assert not EMBEDDER.is_paid
    made = EMBEDDER.embed(["leave"], purpose="query")
    assert made.usages == ()
    assert made.vectors.dtype == np.float32
    assert made.vectors.shape == (1, 1536)
    assert EMBEDDER.embed([], purpose="document").vectors.shape == (0, 1536)


@pytest.mark.parametrize("text", ["", " ", "\n\t\u3000"])
def test_a_text_of_only_spaces_has_no_direction(text: str) -> None:
    with pytest.raises(InvalidInput):
        EMBEDDER.embed(["leave", text], purpose="document")


@pytest.mark.parametrize(
    "text", ["***", "to be or not to be", "—", "€", "a", "\x00", "\ud800", "👍", "휴", "年", "x" * 100_000]
)
def test_every_other_text_has_one(text: str) -> None:
    vector = EMBEDDER.embed([text], purpose="document").vectors[0]
    assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-5)


@given(st.text(min_size=1).filter(str.strip))
def test_rows_are_of_length_one_whatever_the_text(text: str) -> None:
    vector = EMBEDDER.embed([text], purpose="document").vectors[0]
    assert np.isfinite(vector).all()
    assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize(
    ("question", "answer", "other"),
    [
        ("How many vacation days do I get?", "Each employee has 25 vacation days.", "The canteen opens at noon."),
        ("Hoeveel vakantiedagen krijg ik?", "Je hebt 25 vakantiedagen per jaar.", "De kantine opent om twaalf uur."),
        ("연차휴가는 며칠 받습니까?", "직원은 연차휴가를 25일 받습니다.", "구내식당은 정오에 문을 엽니다."),
        ("有給休暇は何日ですか", "社員は年に25日の有給休暇を取得できます。", "食堂は正午に開きます。"),
        ("年假有多少天", "员工每年有二十五天年假。", "食堂中午开门。"),
        ("كم يوما في الإجازة السنوية؟", "الإجازة السنوية خمسة وعشرون يوما.", "يفتح المطعم ظهرا."),
        ("Сколько дней отпуска?", "Сотрудник получает 25 дней отпуска.", "Столовая открыта в полдень."),
        ("resume upload", "Résumé uploads are kept.", "The canteen opens at noon."),
        ("maternitty leave", "Maternity leave is sixteen weeks.", "The canteen opens at noon."),
    ],
    ids=["en", "nl", "ko", "ja", "zh", "ar", "ru", "accents", "typing error"],
)
def test_the_answer_is_nearer_than_another_text(question: str, answer: str, other: str) -> None:
    assert similarity(question, answer) > EMBEDDER.default_threshold
    assert similarity(question, other) < similarity(question, answer) / 2


def test_function_words_do_not_make_texts_similar() -> None:
    assert abs(similarity("What is the policy of this?", "This is what the canteen is of.")) < 0.12


def test_letter_case_and_unicode_form_do_not_matter() -> None:
    assert similarity("RÉSUMÉ Ｌｅａｖｅ", "re\u0301sume\u0301 leave") == pytest.approx(1, abs=1e-5)
    assert similarity("휴가", "\u1112\u1172\u1100\u1161") == pytest.approx(1, abs=1e-5)


def test_another_process_makes_the_same_vectors() -> None:
    program = (
        "import hashlib; from rag.providers.builtin_embedders import LexicalEmbedder; "
        "v = LexicalEmbedder().embed(['25 vacation days, 연차휴가 年假'], purpose='query').vectors; "
        "print([int(i) for i in v[0].nonzero()[0]], [round(float(x), 4) for x in v[0][v[0].nonzero()]])"
    )
    answers = {
        subprocess.run(
            [sys.executable, "-c", program],
            cwd=PROJECT,
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(answers) == 1


def test_the_time_for_paragraphs_grows_no_faster_than_their_number() -> None:
    text = "Employees accrue paid time off every month, unused days of {} are carried over until the end of March. " * 8
    paragraphs = [text.replace("{}", str(number)) for number in range(1000)]

    def least(count: int) -> float:
        taken = []
        for _ in range(3):
            started = time.thread_time()
            EMBEDDER.embed(paragraphs[:count], purpose="document")
            taken.append(time.thread_time() - started)
        return min(taken)

    assert least(1000) < 3 * 5 * least(200)
