"""Sample documents: four PDFs from an invented company, so people can ask questions after the first start.

`build.py` makes the PDFs from `texts/`; both are kept in the repository.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent


@dataclass(frozen=True, kw_only=True)
class Sample:
    """A sample document. `language` is its ISO 639-1 code."""

    file_name: str
    title: str
    language: str

    @property
    def path(self) -> Path:
        return FOLDER / self.file_name

    def read(self) -> bytes:
        return self.path.read_bytes()


SAMPLES: tuple[Sample, ...] = (
    Sample(file_name="ottermere_handbook.pdf", title="Employee handbook", language="en"),
    Sample(file_name="benefits_guide.pdf", title="Benefits guide 2026", language="en"),
    Sample(file_name="verlofbeleid.pdf", title="Verlofbeleid", language="nl"),
    Sample(file_name="leave_and_remote_work_ko.pdf", title="휴가 및 재택근무 안내", language="ko"),
)

__all__ = ["SAMPLES", "Sample"]
