from __future__ import annotations

import pytest

from rag.errors import ProviderAnswerInvalid
from rag.ingestion.loaders import title_from_file_name, title_from_metadata
from rag.ingestion.tagging import metadata_from_answer, questions_from_sections
from rag.types import Section


def sections(*titles: str) -> list[Section]:
    return [Section(title=title, level=1, page=1, start=0) for title in titles]


@pytest.mark.parametrize(
    ("title", "heading", "language", "question"),
    [
        ("Leave Policy", "2.1 Parental Leave", "en", "What does the leave policy say about parental leave?"),
        ("Zava 2026", "Zava Wellness", "en", "What does “Zava 2026” say about Zava Wellness?"),
        ("Staff guide", "HR", "en", None),
        ("Staff guide", "PENSION SCHEME", "en", "What does the staff guide say about pension scheme?"),
        ("Verlofbeleid", "4.3 Ouderschapsverlof", "nl", "Wat staat er in het verlofbeleid over ouderschapsverlof?"),
        (
            "휴가 규정",
            "제3조(육아휴직)",
            "ko",
            "‘휴가 규정’에서는 ‘육아휴직’에 대해 어떻게 정하고 있나요?",
        ),
        ("Leave policy", "Introduction", "en", None),
        ("Leave policy", "Parental leave", "xx", None),
    ],
)
def test_headings_become_questions_in_the_documents_language(
    title: str, heading: str, language: str, question: str | None
) -> None:
    text = "All people of Zava may join. The parental leave is long."
    found = questions_from_sections(title, sections(heading), text, language)
    assert found == ([question] if question else [])


def test_questions_are_taken_from_the_whole_document() -> None:
    found = questions_from_sections("Guide", sections(*(f"Rule {chr(97 + n)} x" for n in range(20))), "", "en", limit=4)
    assert len(found) == 4
    assert "rule a" in found[0]
    assert "rule p" in found[3]


def test_a_document_without_headings_has_no_questions() -> None:
    assert questions_from_sections("Guide", (), "Every employee has 25 days.", "en") == []


def test_sections_with_figures_are_asked_about_first() -> None:
    written = {
        "Who is covered": "This policy is for everybody.",
        "Our values": "Respect and care, see section 3.",
        "Annual leave": "You have 25 days of leave a year.",
        "Asking for help": "Speak with your manager.",
        "Meal allowance": "Meals cost at most $40 a day.",
        "Bonus": "A bonus of 5% is paid.",
    }
    text, found = "", []
    for title, body in written.items():
        found.append(Section(title=title, level=1, page=1, start=len(text)))
        text += f"{title}\n{body}\n"
    asked = questions_from_sections("Staff guide", found, text, "en", limit=3)
    assert asked == [
        "What does the staff guide say about annual leave?",
        "What does the staff guide say about meal allowance?",
        "What does the staff guide say about bonus?",
    ]
    assert len(questions_from_sections("Staff guide", found, text, "en")) == 5


@pytest.mark.parametrize(
    "answer", ["", "no JSON", "{}", '{"summary": 1}', "[1]", '{"summary":"","topics":1,"questions":1}']
)
def test_an_answer_that_is_not_what_was_asked_for_is_refused(answer: str) -> None:
    with pytest.raises(ProviderAnswerInvalid):
        metadata_from_answer(answer)


def test_json_inside_other_words_is_taken_and_cleaned() -> None:
    answer = 'Sure: {"summary": "a\\u0000b", "topics": ["x", " "], "questions": ["1?", "2?", "3?", "4?"]} done'
    assert metadata_from_answer(answer) == {"summary": "a\ufffdb", "topics": ["x"], "questions": ["1?", "2?", "3?"]}


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("employee_handbook.pdf", "Employee handbook"),
        ("Northwind_Health-Plus.pdf", "Northwind Health Plus"),
        ("휴가 규정.pdf", "휴가 규정"),
        ("2026-01-02.pdf", "2026-01-02"),
        (".pdf", "Document"),
        ("_.pdf", "Document"),
    ],
)
def test_titles_of_files_are_readable(name: str, title: str) -> None:
    assert title_from_file_name(name) == title


@pytest.mark.parametrize("title", ["", "Microsoft Word - leave.doc", "untitled", "leave.indd", "12", "C:\\a\\b c"])
def test_titles_that_programs_leave_behind_are_not_used(title: str) -> None:
    assert title_from_metadata(title) == ""
