"""The forms of sources say what is read from there."""

from __future__ import annotations

from rag.integrations.sources.google_drive.form import FORM, form_of_person
from rag.integrations.sources.google_drive.google_drive import EXPORTED


def test_both_forms_of_google_drive_name_each_format_that_its_documents_are_read_in() -> None:
    for form in (FORM, form_of_person()):
        for kind in set(EXPORTED.values()):
            assert kind in form.hint.lower(), form.hint
