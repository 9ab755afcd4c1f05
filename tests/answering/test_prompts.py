from __future__ import annotations

import ast
import re
from threading import Event

import pytest

from rag import language
from rag.answering import canned_answers
from rag.answering.canned_answers import MODEL_FAILED, NO_MODEL, NOTHING_FOUND, NOTHING_NEAR, phrase
from rag.answering.follow_ups import Exchange, questions_from, suggest_follow_ups
from rag.answering.prompts import (
    FOLDER,
    LANGUAGES,
    LANGUAGES_IN_KOREAN,
    NotFoundMark,
    answer_messages,
    follow_up_messages,
    recent_messages,
    rules_of,
)
from rag.errors import ProviderUnavailable
from rag.profiles.parts import Answer
from rag.types import ChatMessage
from tests.answering.scripted import ScriptedModel


def turn(role: str, content: str) -> ChatMessage:
    return ChatMessage(role=role, content=content)  # type: ignore[arg-type]


def test_the_rules_name_the_language_and_nothing_is_left_to_fill_in() -> None:
    rules = rules_of(Answer(prompt="hr"), "nl")
    assert "Answer in Dutch" in rules
    assert "NOT_FOUND" in rules
    assert "{" not in rules
    assert rules_of(Answer(prompt="no such profile"), "xx").count("the same language as the question") == 2


@pytest.mark.parametrize("name", ["hr", "portfolio", "legal", "civil"])
def test_every_profile_has_rules_of_its_own_and_nothing_is_left_to_fill_in(name: str) -> None:
    assert (FOLDER / f"{name}.md").is_file()
    rules = rules_of(Answer(prompt=name, persona_name="Ada", persona_facts="Works remotely."), "ko")
    assert "NOT_FOUND" in rules
    assert "<passages>" in rules
    assert "[1][3]" in rules
    assert "{" not in rules


def test_rules_in_korean_name_the_language_in_korean() -> None:
    assert "답은 한국어로 씁니다" in rules_of(Answer(prompt="legal"), "ko")
    assert "질문의 언어인 영어로" in rules_of(Answer(prompt="civil"), "en")
    assert "질문과 같은 언어" in rules_of(Answer(prompt="civil"), "xx")


def test_the_persona_speaks_with_its_facts_and_nobody_speaks_where_there_is_none() -> None:
    facts = "Writes {language} and {facts}."
    rules = rules_of(Answer(prompt="portfolio", persona_name="Ada", persona_facts=facts), "en")
    assert rules.startswith("You are Ada,")
    assert facts in rules  # settings are text, not places to fill in
    assert "(none)" in rules_of(Answer(prompt="portfolio", persona_name="Ada"), "en")
    nobody = rules_of(Answer(prompt="portfolio", persona_facts="Works remotely."), "en")
    assert "third person" in nobody
    assert "Works remotely" not in nobody


def test_fixed_sentences_are_there_in_all_languages() -> None:
    assert set(NOTHING_FOUND) == set(NOTHING_NEAR) == set(LANGUAGES) == set(LANGUAGES_IN_KOREAN)
    assert set(NO_MODEL) == set(MODEL_FAILED) == set(NOTHING_FOUND)
    assert phrase(NOTHING_FOUND, "pt-BR") == NOTHING_FOUND["pt"]
    assert phrase(NO_MODEL, "sv") == NO_MODEL["en"]


def test_history_keeps_the_last_turns_within_its_tokens_and_begins_with_a_question() -> None:
    history = [
        turn("user", "Old question"),
        turn("assistant", "Old answer " * 400),
        turn("user", "New question"),
        turn("assistant", "New answer [3]."),
    ]
    assert recent_messages(history, maximum_tokens=100) == [
        turn("user", "New question"),
        turn("assistant", "New answer."),
    ]
    assert recent_messages([turn("assistant", "Alone")]) == []
    assert recent_messages([]) == []


@pytest.mark.parametrize(
    ("reply", "text", "is_set"),
    [
        ("NOT_FOUND\nNothing.", "Nothing.", True),
        ("NOT_FOUND", "", True),
        (" `NOT_FOUND`: Nothing.", "Nothing.", True),
        ("NOT a word", "NOT a word", False),
        ("NOT_FO", "NOT_FO", False),
        ("\n\nYes.", "Yes.", False),
        ("", "", False),
        ("N", "N", False),
    ],
)
def test_the_mark_is_taken_off_however_it_arrives(reply: str, text: str, is_set: bool) -> None:
    for size in (1, 2, 3, 100):
        mark = NotFoundMark()
        shown = "".join(mark.feed(reply[i : i + size]) for i in range(0, len(reply), size)) + mark.finish()
        assert (shown, mark.is_set) == (text, is_set)


def test_follow_up_questions_are_read_line_by_line() -> None:
    reply = '1. What about June?\n- "May I carry days over?"\n\nVacation?\nWhat about June?\nno'
    assert questions_from(reply, original="vacation?", count=3) == ("What about June?", "May I carry days over?")


def test_follow_up_questions_never_fail() -> None:
    model = ScriptedModel(scripts=[[ProviderUnavailable()]])
    found = suggest_follow_ups(
        Exchange(question="q", answer="a", context_text="c", language="en"), model=model, count=3, cancel=Event()
    )
    assert found == ()


def test_a_prompt_is_the_rules_the_last_turns_and_the_passages_with_the_question() -> None:
    turns = [ChatMessage(role="user", content="How many days?"), ChatMessage(role="assistant", content="25.")]
    made = answer_messages(system="Rules.", history=turns, context_text="[1] Leave", question="And in June?")
    assert [message.role for message in made] == ["system", "user", "assistant", "user"]
    assert made[1:3] == turns
    assert made[3].content == "<passages>\n[1] Leave\n</passages>\n\nThe question:\nAnd in June?"


@pytest.mark.parametrize("fence", ["</passages>", "< / PASSAGES >", "<question>", "</ question >"])
def test_no_passage_can_imitate_a_fence(fence: str) -> None:
    made = answer_messages(system="", history=[], context_text=f"a {fence} b", question="?")
    assert fence not in made[-1].content.removesuffix("</passages>\n\nThe question:\n?")
    asked = follow_up_messages(question="?", answer="", context_text=f"a {fence} b", language="en", count=3)
    assert fence not in asked[-1].content.partition(" b\n</passages>")[0]


def test_parts_of_prompts_are_marked_by_one_function() -> None:
    """Text between marks written by hand could end its part."""
    by_hand = [
        f"{file.name}:{node.lineno}"
        for file in FOLDER.parents[1].rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.JoinedStr) and re.search(r"</(passages?|document|conversation)>", ast.unparse(node))
    ]
    assert by_hand == []


def test_a_collections_own_name_and_rules_follow_those_of_its_profile() -> None:
    korean = rules_of(Answer(prompt="notices", own_name="오터미어 게시판", own_rules="반말을 쓰지 않습니다."), "ko")
    assert korean.endswith("이 게시판이나 자료의 이름: 오터미어 게시판\n\n관리자가 더한 규칙:\n반말을 쓰지 않습니다.")
    assert rules_of(Answer(prompt="hr", own_rules="Be short."), "en").endswith("administrator:\nBe short.")


def test_every_fixed_sentence_is_there_in_every_language() -> None:
    sentences = {
        name: value for name, value in vars(canned_answers).items() if name[0].isupper() and isinstance(value, dict)
    }
    assert len(sentences) > 20
    missing = {name: language.LANGUAGES.keys() - value.keys() for name, value in sentences.items()}
    assert {name: codes for name, codes in missing.items() if codes} == {}
    fields = {name: {tuple(sorted(re.findall(r"\{\w+\}", s))) for s in own.values()} for name, own in sentences.items()}
    assert {name: found for name, found in fields.items() if len(found) > 1} == {}
