"""What the pages show of single kinds of documents: reference steps, repositories, departments."""

from __future__ import annotations

from collections.abc import Callable
from uuid import uuid4

from psycopg.types.json import Jsonb
from streamlit.testing.v1 import AppTest

from rag.profiles import CIVIL, LEGAL, PORTFOLIO
from rag.services import Services
from rag.types import Collection, Identity, Role
from rag.ui.document_library import columns_of_kinds
from rag.ui.document_upload import fields_to_say

SignIn = Callable[[Role], tuple[AppTest, Identity]]


def test_only_what_nothing_finds_by_itself_has_to_be_said() -> None:
    assert fields_to_say(CIVIL) == ["department"]
    assert fields_to_say(LEGAL) == fields_to_say(PORTFOLIO) == []
    assert fields_to_say(LEGAL.changed(metadata_filters=("court", "topic"))) == ["court"]


def test_a_registered_document_is_cut_and_embedded_on_the_page(
    running: Services, collection: Collection, signed_in: SignIn
) -> None:
    page, admin = signed_in(Role.ADMIN)
    references = running.documents.create_collection(admin, "References", "legal", language="ko")
    registered = running.references.register(admin, references, title="판례 요약")
    page.run()
    page.switch_page("documents.py")
    page.query_params["document"] = str(registered.id)
    page.run()
    assert not page.exception
    assert any("none yet" in element.value for element in page.markdown)
    page.text_area(key=f"documents_reference_value_{registered.id}").set_value("무죄 판례 요약입니다.")
    next(button for button in page.button if button.label == "Split into passages").click().run()
    assert not page.exception
    page.button(key=f"documents_reference_embed_{registered.id}").click().run()
    assert not page.exception
    assert running.references.get("demo", registered.id).status == "completed"


def test_stars_topics_and_departments_are_columns_only_where_documents_have_them(
    running: Services, collection: Collection
) -> None:
    with running.database.transaction("demo") as connection:
        for name, metadata in (
            ("a", {}),
            ("b", {"repository": {"stars": 42, "topics": ["ai", "rag"]}, "department": "교통과"}),
        ):
            connection.execute(
                "INSERT INTO documents (tenant_id, collection_id, title, file_name, sha256, metadata) "
                "VALUES ('demo', %s, %s, %s, %s, %s)",
                (collection.id, name, name, str(uuid4()), Jsonb(metadata)),
            )
    shown = sorted(running.documents.list("demo"), key=lambda document: document.title)
    assert columns_of_kinds(shown) == {
        "Stars": [None, 42], "Topics": ["", "ai, rag"], "Department": ["–", "교통과"],
    }  # fmt: skip
    assert columns_of_kinds(shown[:1]) == {}
