"""What only those who run the product can change is read by them alone."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import rag
from rag.answering.readers import NO_ANSWERS, OPERATORS, notice_for
from rag.language import speaking
from rag.retrieval.reranker import NO_RERANKING

SENT_AWAY = re.compile(r"\. (An administrator (has to|must)|Tell your administrator)")


@pytest.mark.parametrize("sentence", OPERATORS)
def test_a_sentence_for_those_who_run_it_has_another_for_everybody_else(sentence: str) -> None:
    notice = sentence.format(provider="Google Gemini", status=422)
    assert notice_for(notice, is_for_operators=True) == notice
    assert notice_for(f"{notice} {NO_RERANKING}", is_for_operators=False) == NO_ANSWERS
    with speaking("de"):
        assert notice_for(notice, is_for_operators=False).startswith("Zurzeit können keine Antworten")
        assert notice_for(notice, is_for_operators=True) not in ("", notice)


def test_nobody_is_sent_to_an_administrator_by_sentences_that_administrators_read() -> None:
    root = Path(rag.__file__).parent
    sent = [
        f"{path.name}:{node.lineno}: {node.value}"
        for path in sorted([*root.glob("providers/**/*.py"), *root.glob("ingestion/**/*.py"), root / "errors.py"])
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and SENT_AWAY.search(node.value)
    ]
    assert sent == []
