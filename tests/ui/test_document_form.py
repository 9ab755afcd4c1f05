"""Which of several new files is meant for which document."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

import pytest

from rag.types import DocumentName
from rag.ui.document_form import pair

HANDBOOK, PARKING, COPY = (
    DocumentName(id=UUID(int=number), title=title, file_name=name, created_at=datetime(2026, 1, number, tzinfo=UTC))
    for number, title, name in (
        (1, "Employee handbook", "handbook_final.pdf"),
        (2, "Parking rules", "parking.pdf"),
        (3, "Parking rules", "Parking.PDF.pdf"),
    )
)


@pytest.mark.parametrize(
    ("files", "documents", "meant"),
    [
        pytest.param(["PARKING.pdf"], [HANDBOOK, PARKING], [PARKING], id="by its name, in capitals"),
        pytest.param(["handbook final 2027.docx"], [HANDBOOK, PARKING], [HANDBOOK], id="by the letters of its name"),
        pytest.param(["Employee Handbook v2.pdf"], [HANDBOOK, PARKING], [HANDBOOK], id="by the title"),
        pytest.param(["Parking rules.pdf"], [PARKING, COPY], [None], id="two of one title are chosen by hand"),
        pytest.param(["canteen.pdf", "2027.pdf"], [HANDBOOK], [None, None], id="not known"),
        pytest.param(
            ["parking 2027.pdf", "parking.pdf"], [PARKING], [None, PARKING], id="the name counts before the letters"
        ),
    ],
)
def test_a_file_is_meant_for_the_document_that_is_called_like_it(
    files: list[str], documents: list[DocumentName], meant: list[DocumentName | None]
) -> None:
    assert pair(files, documents) == [document and document.id for document in meant]
