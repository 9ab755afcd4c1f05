"""Read test questions: questions with the documents, pages and words that answer them."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rag.answering.citations import without_markers
from rag.errors import InvalidInput
from rag.records.chat_logs import ChatLogEntry

MAXIMUM_QUESTIONS = 5000
MAXIMUM_CHARACTERS = 2000
#: Separates several values in a CSV cell.
SEPARATOR = ";"
NO = ("no", "false", "0", "n")


@dataclass(frozen=True, kw_only=True)
class GoldenQuestion:
    """A test question and its expected answer."""

    question: str
    #: Title or file name of the answering document; "" if only the answer counts.
    document: str = ""
    #: Pages, each with the answer; empty means any page.
    pages: tuple[int, ...] = ()
    #: A good answer in full.
    answer: str = ""
    #: Words which must all be in a right answer.
    evidence: tuple[str, ...] = ()
    language: str = ""
    tags: tuple[str, ...] = ()
    #: Whether the documents answer it at all.
    is_answerable: bool = True
    #: The logged question's text, if made from a log; erased with the asker.
    asked_as: str = ""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def read_golden(path: Path) -> list[GoldenQuestion]:
    """Read test questions from a CSV or JSONL file. Raises `InvalidInput` naming the line that cannot be read."""
    try:
        text = path.read_text("utf-8-sig")
    except UnicodeDecodeError as exc:
        raise InvalidInput(f"{path} cannot be read as text in UTF-8.") from exc
    return parse_golden(text, is_csv=path.suffix.lower() == ".csv")


def parse_golden(text: str, *, is_csv: bool) -> list[GoldenQuestion]:
    """Read test questions from CSV with a header line, or from a JSON object per line. Raises `InvalidInput`."""
    rows: list[Mapping[str, Any]] = []
    try:
        rows += csv.DictReader(io.StringIO(text, newline="")) if is_csv else _json_rows(text)
    except csv.Error:  # a cell longer than 131,072 characters
        place = len(rows) + 1
        raise InvalidInput(f"Question {place} is empty or longer than {MAXIMUM_CHARACTERS:,} characters.") from None
    questions = [golden_from_json(row, place) for place, row in enumerate(rows, start=1)]
    if not questions:
        raise InvalidInput("There is no question in this file.")
    if len(questions) > MAXIMUM_QUESTIONS:
        raise InvalidInput(f"This file has {len(questions):,} questions; at most {MAXIMUM_QUESTIONS:,} are accepted.")
    return questions


def golden_from_json(row: Mapping[str, Any], place: int = 1) -> GoldenQuestion:
    """Build a test question from a row. Raises `InvalidInput` with `place`, the row's number in the file."""
    question = str(row.get("question") or "").strip()
    if not question or len(question) > MAXIMUM_CHARACTERS:
        raise InvalidInput(f"Question {place} is empty or longer than {MAXIMUM_CHARACTERS:,} characters.")
    try:
        pages = tuple(int(page) for page in _several(row.get("pages", row.get("page"))))
    except ValueError as exc:
        raise InvalidInput(f"Question {place}: the page has to be a number, such as 12.") from exc
    answerable = row.get("is_answerable", row.get("answerable"))
    return GoldenQuestion(
        question=question,
        document=str(row.get("document") or "").strip(),
        pages=pages,
        answer=str(row.get("answer") or "").strip(),
        evidence=tuple(_several(row.get("evidence"))),
        language=str(row.get("language") or "").strip(),
        tags=tuple(_several(row.get("tags"))),
        is_answerable=answerable is None or answerable == "" or str(answerable).strip().lower() not in NO,
        asked_as=str(row.get("asked_as") or ""),
    )


def golden_from_entry(entry: ChatLogEntry) -> GoldenQuestion:
    """Build a test question from a logged question.

    The expected document is the first cited document which supports the answer.
    """
    question = entry.question
    supporting = [passage for passage in (entry.prompt.passages if entry.prompt else ()) if passage.state == "held"]
    of_first = [passage for passage in supporting if passage.document_id == supporting[0].document_id]
    pages = {page for passage in of_first for page in range(passage.first_page, passage.last_page + 1)}
    is_answerable = question.outcome in ("answered", "perhaps")
    return GoldenQuestion(
        question=" ".join(question.question.split()),
        document=supporting[0].title if supporting else "",
        pages=tuple(sorted(pages)),
        answer=without_markers(question.answer).strip() if is_answerable else "",
        language=question.language,
        is_answerable=is_answerable,
        asked_as=str(question.id),
    )


def golden_to_jsonl(questions: Iterable[GoldenQuestion]) -> bytes:
    """Write questions as JSON lines, which `parse_golden` can read."""
    rows = [
        {name: value for name, value in question.to_json().items() if value not in ("", ())} for question in questions
    ]
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def _json_rows(text: str) -> list[Mapping[str, Any]]:
    rows: list[Mapping[str, Any]] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except json.JSONDecodeError as exc:
            raise InvalidInput(f"Line {number} is not a JSON object: {exc.msg}.") from exc
        except (ValueError, RecursionError) as exc:  # too many digits or brackets
            raise InvalidInput(f"Line {number} is not a JSON object.") from exc
        if not isinstance(row, dict):
            raise InvalidInput(f"Line {number} is not a JSON object.")
        rows.append(row)
    return rows


def _several(value: Any) -> Sequence[str]:
    if value is None:
        return ()
    parts = value if isinstance(value, list) else str(value).split(SEPARATOR)
    return [text for part in parts if (text := str(part).strip())]
