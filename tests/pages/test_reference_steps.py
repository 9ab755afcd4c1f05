"""What the pages show of single kinds of documents: reference steps, repositories, departments."""

from __future__ import annotations

from collections.abc import Callable
from uuid import uuid4

from psycopg.types.json import Jsonb
from streamlit.testing.v1 import AppTest

from rag.profiles import CIVIL, LEGAL, PORTFOLIO
from rag.profiles.legal.references import DescribedReference
from rag.services import Services
from rag.types import Collection, Identity, Role
from rag.ui.document_library import columns_of_kinds
from rag.ui.document_upload import fields_to_say

SignIn = Callable[[Role], tuple[AppTest, Identity]]


def test_only_what_nothing_finds_by_itself_has_to_be_said() -> None:
    assert fields_to_say(CIVIL) == ["department"]
    assert fields_to_say(LEGAL) == fields_to_say(PORTFOLIO) == []
    assert fields_to_say(LEGAL.changed(metadata_filters=("court", "topic"))) == ["court"]


#: Some articles, of which one says how long something is.
STATUTE = "제3조(육아휴직) 육아휴직 기간은 최대 1년이다. 얼마나 쓸지는 근로자가 정한다.\n" + "\n".join(
    f"제{number}조({subject}) " + f"{subject}에 관하여 필요한 사항은 따로 규정으로 정하고 게시판에 알린다. " * 25
    for number, subject in enumerate(("출장", "당직", "비품", "주차장", "식당"), 4)
)


def test_a_registered_document_is_cut_and_embedded_on_the_page(
    running: Services, collection: Collection, signed_in: SignIn
) -> None:
    page, admin = signed_in(Role.ADMIN)
    references = running.documents.create_collection(admin, "References", "legal", language="ko")
    registered = running.references.register(admin, references, DescribedReference(title="판례 요약"))
    page.run()
    page.switch_page("documents.py")
    page.query_params["document"] = str(registered.id)
    page.run()
    assert not page.exception
    assert any("none yet" in element.value for element in page.markdown)
    page.text_area(key=f"documents_reference_value_{registered.id}").set_value(STATUTE)
    next(button for button in page.button if button.label == "Split into passages").click().run()
    assert not page.exception
    page.button(key=f"documents_reference_embed_{registered.id}").click().run()
    assert not page.exception
    assert running.references.get("demo", registered.id).status == "completed"
    # Its articles are asked about as the sections of other documents are.
    assert "육아휴직 기간은 얼마나 되나요?" in running.documents.suggested_questions("demo", references.id)


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
    assert {title: list(column.values) for title, column in columns_of_kinds(shown).items()} == {
        "Stars": [None, 42], "Topics": ["", "ai, rag"], "Department": ["–", "교통과"],
    }  # fmt: skip
    assert columns_of_kinds(shown[:1]) == {}
