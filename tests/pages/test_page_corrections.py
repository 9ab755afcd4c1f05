"""The panel of a document: an administrator corrects the text of a page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from streamlit.testing.v1 import AppTest

from rag.ingestion.corrections import fingerprint
from rag.services import Services
from rag.settings import Settings
from rag.types import Citation, Collection, Document, Identity, Role, UploadOptions
from rag.ui.page_corrections import changes_html
from tests.pages.small_pdf import pdf
from tests.standins.providers import ProviderStandin

SignIn = Callable[[Role], tuple[AppTest, Identity]]
WRONG, RIGHT = "has 25 days", "has 26 days"


@pytest.fixture
def settings(settings: Settings, provider_standin: ProviderStandin) -> Settings:
    """With a provider that costs money; the collection of the handbook needs none."""
    return replace(settings, openai_api_key="sk-test", openai_base_url=provider_standin.openai_url)


@pytest.fixture
def document(running: Services, handbook: Collection) -> Document:
    (found,) = running.documents.list("demo", collection_id=handbook.id)
    return found


def opened(tab: AppTest, document: Document) -> AppTest:
    tab.run().switch_page("documents.py")
    tab.query_params["document"] = str(document.id)
    return tab.run()


def key(document: Document, number: int = 1) -> str:
    return f"documents_correcting_{document.original_id}_{number}"


def shown(tab: AppTest) -> str:
    drawn = [*tab.caption, *tab.markdown, *tab.error, *tab.info, *tab.warning]
    return "\n".join([*(element.value for element in drawn), *(html.value for html in tab.html)])


def text_of(running: Services, document: Document) -> str:
    return running.documents.pages("demo", document.id)[0].text


def latest(running: Services, document: Document) -> Document:
    (found,) = running.documents.list("demo", collection_id=document.collection_id)
    return found


def test_a_page_is_corrected_beside_its_picture_and_taken_back(
    running: Services, signed_in: SignIn, document: Document
) -> None:
    tab, identity = signed_in(Role.ADMIN)
    opened(tab, document).button(f"{key(document)}_begin").click().run()
    area = tab.text_area(f"{key(document)}_text")
    as_read = str(area.value)
    assert WRONG in as_read
    area.set_value(as_read.replace(WRONG, RIGHT)).run()
    assert ">25</del>" in shown(tab)
    assert ">26</ins>" in shown(tab)
    tab.button(f"{key(document)}_save").click().run()
    assert not tab.exception
    made = next(v for v in running.documents.versions.of(identity, document) if v.version == 2)
    assert str(tab.query_params["document"]) == str(made.id)
    running.pipeline.run("demo", made.id)
    tab.run()
    assert f"{identity.name} corrected the text of this page" in shown(tab)
    assert RIGHT in text_of(running, latest(running, document))

    tab.button(f"{key(document)}_back").click().run()
    tab.button(f"{key(document)}_save").click().run()
    running.pipeline.run("demo", running.documents.versions.of(identity, document)[0].id)
    tab.run()
    assert not tab.exception
    assert text_of(running, latest(running, document)) == as_read
    assert "corrected the text" not in shown(tab)
    assert [c.text_after is None for c in running.documents.corrections.of(identity, document)] == [True, False]


def test_what_costs_money_is_saved_by_a_second_press(
    running: Services, signed_in: SignIn, provider_standin: ProviderStandin
) -> None:
    paid = running.documents.ensure_collection("demo", "Paid", "hr", "openai/text-embedding-3-small@1536", "en")
    pages = (("Employee handbook", "1 Annual leave", "Every employee has 25 days of annual leave in a year."),)
    made = running.pipeline.process_document(
        file=pdf(pages),
        file_name="paid.pdf",
        tenant_id="demo",
        collection=paid,
        options=UploadOptions(generate_metadata=False),
    )
    tab, identity = signed_in(Role.ADMIN)
    document = running.documents.get("demo", made.document_id)
    opened(tab, document).button(f"{key(document)}_begin").click().run()
    tab.text_area(f"{key(document)}_text").set_value(text_of(running, document).replace(WRONG, RIGHT)).run()
    calls = provider_standin.calls["embeddings"]
    tab.button(f"{key(document)}_save").click().run()
    assert "Saving sends 1 passage to the search model again. Estimated cost:" in shown(tab)
    assert running.documents.corrections.of(identity, document) == []
    assert provider_standin.calls["embeddings"] == calls
    assert tab.button(f"{key(document)}_save").label == "Save at this cost"
    tab.button(f"{key(document)}_save").click().run()
    assert not tab.exception
    last = running.documents.versions.of(identity, document)[0]
    running.pipeline.run("demo", last.id)
    assert provider_standin.calls["embeddings"] == calls + 1
    assert latest(running, document).costs["total"] is not None
    assert RIGHT in text_of(running, latest(running, document))

    # What was paid for before is applied by one press, a text whose vectors are gone by two.
    running.documents.versions.restore(identity, document.id)
    with running.database.transaction("demo") as connection:
        connection.execute("UPDATE document_chunks SET embedding = NULL WHERE document_id = %s", (last.id,))
    apply = f"documents_waiting_{running.documents.corrections.of(identity, document)[0].id}_apply"
    opened(tab, document).button(apply).click().run()
    assert not tab.exception
    assert "Estimated cost:" in shown(tab)
    assert len(running.documents.versions.of(identity, document)) == 2
    tab.button(f"{key(document)}_save").click().run()
    assert len(running.documents.versions.of(identity, document)) == 3


def test_the_second_of_two_keeps_what_was_typed_and_sees_the_other_text(
    running: Services, signed_in: SignIn, document: Document
) -> None:
    tab, identity = signed_in(Role.ADMIN)
    opened(tab, document).button(f"{key(document)}_begin").click().run()
    mine = text_of(running, document).replace(WRONG, "has 27 days")
    tab.text_area(f"{key(document)}_text").set_value(mine).run()
    theirs = text_of(running, document).replace(WRONG, RIGHT)
    seen = fingerprint(text_of(running, document))
    made = running.documents.corrections.save(identity, document.id, 1, theirs, seen=seen)
    running.pipeline.run("demo", made.id)

    tab.button(f"{key(document)}_save").click().run()
    assert not tab.exception
    assert "was changed in the meantime" in shown(tab)
    assert tab.text_area(f"{key(document)}_text").value == mine
    assert ">26</del>" in shown(tab)
    assert ">27</ins>" in shown(tab)
    tab.button(f"{key(document)}_save").click().run()
    last = running.documents.versions.of(identity, document)[0]
    assert last.version == 3
    assert "has 27 days" in text_of(running, last)


def test_what_cannot_be_saved_says_why_and_cancelling_changes_nothing(
    running: Services, signed_in: SignIn, document: Document
) -> None:
    tab, identity = signed_in(Role.ADMIN)
    opened(tab, document).button(f"{key(document)}_begin").click().run()
    tab.button(f"{key(document)}_save").click().run()
    assert "Nothing was changed" in shown(tab)
    tab.text_area(f"{key(document)}_text").set_value(" ").run()
    tab.button(f"{key(document)}_save").click().run()
    assert "Type the text of the page" in shown(tab)
    tab.button(f"{key(document)}_cancel").click().run()
    assert not tab.exception
    assert not tab.text_area
    assert running.documents.corrections.of(identity, document) == []


def test_a_correction_of_another_reading_is_shown_and_applied(
    running: Services, signed_in: SignIn, document: Document, handbook: Collection
) -> None:
    tab, identity = signed_in(Role.ADMIN)
    text, seen = text_of(running, document), fingerprint(text_of(running, document))
    made = running.documents.corrections.save(identity, document.id, 1, text.replace(WRONG, RIGHT), seen=seen)
    running.pipeline.run("demo", made.id)
    other = pdf((("Employee handbook", "1 Annual leave", "Every employee has 35 days of annual leave in a year."),))
    new = running.documents.upload(identity, handbook, document.file_name, other, UploadOptions(replaces=document.id))
    running.pipeline.run("demo", new.id)
    running.documents.confirm(identity, new.id)
    running.pipeline.run("demo", new.id)

    opened(tab, new)
    assert "The text of page 1 has changed" in shown(tab)
    (waiting,) = running.documents.corrections.of(identity, new)
    tab.button(f"documents_waiting_{waiting.id}_apply").click().run()
    assert not tab.exception
    last = running.documents.versions.of(identity, new)[0]
    assert RIGHT in text_of(running, last)
    assert "The text of page 1 has changed" not in shown(tab.run())


def test_a_restored_version_offers_the_correction_that_it_lacks(
    running: Services, signed_in: SignIn, document: Document
) -> None:
    tab, identity = signed_in(Role.ADMIN)
    text, seen = text_of(running, document), fingerprint(text_of(running, document))
    made = running.documents.corrections.save(identity, document.id, 1, text.replace(WRONG, RIGHT), seen=seen)
    running.pipeline.run("demo", made.id)
    running.documents.versions.restore(identity, document.id)
    assert "is not in this version" in shown(opened(tab, document))
    latest_one = running.documents.corrections.of(identity, document)[0]
    tab.button(f"documents_waiting_{latest_one.id}_apply").click().run()
    assert not tab.exception
    running.pipeline.run("demo", running.documents.versions.of(identity, document)[0].id)
    assert RIGHT in text_of(running, latest(running, document))
    assert "is not in this version" not in shown(tab.run())


def test_a_source_says_that_a_person_corrected_its_page(signed_in: SignIn, running: Services) -> None:
    from uuid import uuid4

    from rag.answering.citations import citation_from_json, citation_to_json

    citation = Citation(
        number=1, chunk_id=uuid4(), document_id=uuid4(), title="Handbook", file_name="a.pdf", first_page=1, last_page=1,
        section="", passage="26 days", score=1.0, is_corrected=True,
    )  # fmt: skip
    assert citation_from_json(citation_to_json(citation)) == citation
    older = {name: value for name, value in citation_to_json(citation).items() if name != "is_corrected"}
    assert citation_from_json(older) == replace(citation, is_corrected=False)


def test_changes_are_shown_as_text() -> None:
    html = changes_html("a <b>301</b> day", "a <b>30</b> day")
    assert "<b>" not in html
    assert "&lt;" in html
    assert ">301</del>" in html
    assert ">30</ins>" in html
    assert "Nothing changes" in changes_html("same", "same")
