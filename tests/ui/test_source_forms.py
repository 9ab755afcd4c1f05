"""The forms of sources say what is read from there."""

from __future__ import annotations

from rag.ingestion.sources.google_drive import EXPORTED
from rag.ui.source_forms import FORMS, form_of_person


def test_both_forms_of_google_drive_name_each_format_that_its_documents_are_read_in() -> None:
    for form in (FORMS["google_drive"], form_of_person(FORMS["google_drive"])):
        for kind in set(EXPORTED.values()):
            assert kind in form.hint.lower(), form.hint
