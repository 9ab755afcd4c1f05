from __future__ import annotations

import pytest

from rag.errors import ProviderAnswerInvalid
from rag.ingestion.loaders.titles import author_from_metadata, title_from_file_name, title_from_metadata
from rag.ingestion.tagging import metadata_from_answer


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


@pytest.mark.parametrize(
    "title",
    [
        *("", "Microsoft Word - leave.doc", "untitled", "Untitled-1", "leave.indd", "12", "C:\\a\\b c", "Document1"),
        *(
            "Word Document",
            "New Document 3",
            "(anonymous)",
            "(unspecified)",
            "unknown",
            "Scan_0012",
            "Dokument2",
            "Title",
        ),
        *("Leave_policy_v3", "PowerPoint Presentation", "Slide 1", "Ohne Titel", "Dokument2"),
    ],
)
def test_titles_that_programs_leave_behind_are_not_used(title: str) -> None:
    assert title_from_metadata(title) == ""


@pytest.mark.parametrize(
    ("author", "kept"),
    [("(anonymous)", ""), ("anonymous", ""), (" Unknown ", ""), ("", ""), ("People Team", "People Team")],
)
def test_an_author_is_a_name(author: str, kept: str) -> None:
    assert author_from_metadata(author) == kept


@pytest.mark.parametrize(
    "title",
    [
        "Title IX policy",
        "Printing and copying",
        "Scanning of badges",
        "Document retention policy",
        "Presentation skills",
    ],
)
def test_titles_that_begin_like_those_of_programs_stay(title: str) -> None:
    assert title_from_metadata(title) == title
