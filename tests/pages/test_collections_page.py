"""The collections page: made by choosing a profile, changed field by field, deleted once its name is typed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from rag.services import Services
from rag.types import Collection, DocumentStatus, Identity, Role

SignIn = Callable[[Role], tuple[AppTest, Identity]]
PAGE = "collection_settings.py"


@pytest.fixture
def page(running: Services, signed_in: SignIn, collection: Collection) -> AppTest:
    """The page with one collection, as an administrator sees it."""
    tab, _ = signed_in(Role.ADMIN)
    return tab.run().switch_page(PAGE).run()


def texts(page: AppTest) -> str:
    return "\n".join(str(m.value) for m in (*page.markdown, *page.caption)).replace("\\", "")


def settings_groups(page: AppTest) -> Any:
    """The choice of the settings to show; other choices may stand above it."""
    return next(group for group in page.button_group if group.label == "Settings")


def opened(page: AppTest, collection: Collection) -> AppTest:
    return page.button(f"collections_open_{collection.id}").click().run()


@pytest.mark.parametrize("role", [Role.EMPLOYEE, Role.MANAGER])
def test_only_administrators_see_collections(
    running: Services, signed_in: SignIn, collection: Collection, role: Role
) -> None:
    tab, _ = signed_in(role)
    tab.run()
    with pytest.raises(ValueError, match=PAGE):
        tab.switch_page(PAGE).run()


def test_collections_are_listed_with_what_is_in_them(page: AppTest) -> None:
    assert not page.exception
    assert page.title[0].value == "Collections"
    shown = texts(page)
    for words in ("HR documents", "0 documents", "English", "Built in, 1,536 dimensions"):
        assert words in shown


def test_a_collection_is_made_by_choosing_a_profile(running: Services, page: AppTest) -> None:
    page.button("collections_new").click().run()
    page.text_input("collections_new_name").set_value("Notices *2026*")
    page.radio("collections_new_profile").set_value("notices").run()
    shown = texts(page)
    assert "The best 5 of the 30 found are used for the answer, at most one per document." in shown
    assert "Recent documents count more: 1.5 times as much up to an age of 7 days" in shown
    assert "by OpenAI. One step is still missing: paste a key of OpenAI on the page Set-up" in shown
    assert "gemini-embedding-001 by Gemini · 768 dimensions · $0.15 per million tokens" in shown
    assert "paste a key of Gemini on the page Set-up" in shown
    assert page.selectbox("collections_new_language_notices").value == "ko"
    page.button("collections_new_create").click().run()
    assert not page.exception
    made = running.documents.collections("demo")[1]
    assert (made.name, made.profile, made.language) == ("Notices *2026*", "notices", "ko")
    assert made.embedding_model == "builtin/lexical@1536"
    assert page.query_params["collection"] == str(made.id)
    assert page.title[0].value == r"Notices \*2026\*"


def test_a_name_that_is_taken_is_said_in_the_dialog(running: Services, page: AppTest, collection: Collection) -> None:
    page.button("collections_new").click().run()
    page.text_input("collections_new_name").set_value(collection.name)
    page.button("collections_new_create").click().run()
    assert "already" in page.error[0].value
    assert len(running.documents.collections("demo")) == 1


def test_a_field_is_changed_and_given_back(running: Services, page: AppTest, collection: Collection) -> None:
    opened(page, collection)
    settings_groups(page).set_value("Search").run()
    page.button("collections_change_top_k").click().run()
    page.number_input("collections_value_top_k").set_value(0)
    page.button("collections_field_save").click().run()
    assert "a whole number from 1 to 50" in page.error[0].value.replace("\\", "")
    page.number_input("collections_value_top_k").set_value(8)
    page.button("collections_field_save").click().run()
    assert not page.exception
    assert running.documents.collection("demo", collection.id).overrides == {"top_k": 8}
    shown = texts(page)
    assert "Value in the profile: 5 passages." in shown
    assert "The best 8 of the 32 found" in shown
    page.button("collections_reset_top_k").click().run()
    assert running.documents.collection("demo", collection.id).overrides == {}
    page.button("collections_way_back_taken").click().run()
    assert running.documents.collection("demo", collection.id).overrides == {"top_k": 8}
    page.button("collections_reset_top_k").click().run()
    assert not page.exception


def test_what_cannot_be_changed_says_why(page: AppTest, collection: Collection) -> None:
    opened(page, collection)
    button = page.button("collections_change_embedding_model")
    assert button.disabled
    assert "move the collection to it" in button.help


def test_every_field_of_every_group_can_be_opened(page: AppTest, collection: Collection) -> None:
    opened(page, collection)
    for name in ("chunking_method", "chunk_size"):
        page.button(f"collections_change_{name}").click().run()
        assert not page.exception
        page.button("collections_field_cancel").click().run()
    for group in ("Search", "Order", "Language and answers"):
        settings_groups(page).set_value(group).run()
        assert not page.exception


def test_lists_are_typed_line_by_line(running: Services, signed_in: SignIn) -> None:
    tab, identity = signed_in(Role.ADMIN)
    made = running.documents.create_collection(identity, "Me", "portfolio")
    page = opened(tab.run().switch_page(PAGE).run(), made)
    settings_groups(page).set_value("Order").run()
    page.button("collections_change_category_boosts").click().run()
    area = page.text_area("collections_value_category_boosts")
    assert str(area.value).splitlines()[0] == "resume = 1.3"
    area.set_value("resume 2")
    page.button("collections_field_save").click().run()
    assert "cannot be read" in page.error[0].value
    page.text_area("collections_value_category_boosts").set_value("resume = 2\n\nothers = 1")
    page.button("collections_field_save").click().run()
    assert not page.exception
    stored = running.documents.collection("demo", made.id).overrides
    assert stored == {"category_boosts": [["resume", 2.0], ["others", 1.0]]}


def test_a_conversation_asks_in_the_collection_chosen_for_it(
    running: Services, signed_in: SignIn, handbook: Collection
) -> None:
    tab, identity = signed_in(Role.ADMIN)
    other = running.documents.create_collection(identity, "Notices", "notices")
    tab.run()
    assert tab.segmented_control(key="chat_collection").options == ["All collections", "HR documents", "Notices"]
    tab.session_state["chat_documents"] = [running.documents.list("demo")[0].id]
    tab.segmented_control(key="chat_collection").set_value(other.id).run()
    assert tab.session_state["chat_documents"] == []
    assert "No document in this collection is ready for questions yet." in texts(tab)
    tab.chat_input[0].set_value("How many days of leave?").run()
    assert not tab.exception
    assert [c.collection_id for c in running.conversations.list(identity)] == [other.id]


def test_documents_are_added_to_the_chosen_collection_and_shown_by_collection(
    running: Services, signed_in: SignIn, handbook: Collection
) -> None:
    tab, identity = signed_in(Role.ADMIN)
    other = running.documents.create_collection(identity, "Notices", "notices")
    page = tab.run().switch_page("documents.py").run()
    assert list(page.dataframe[0].value["Collection"]) == ["HR documents"]
    page.selectbox(key="documents_only").set_value(other.id).run()
    assert "No document matches." in texts(page)
    page.selectbox(key="documents_collection").set_value(other.id).run()
    page.file_uploader[0].upload("notice.pdf", running.documents.original("demo", running.documents.list("demo")[0].id))
    page.run()
    assert not page.exception
    assert [d.file_name for d in running.documents.list("demo", collection_id=other.id)] == ["notice.pdf"]


def test_documents_are_added_to_the_collection_that_is_asked_by_default(
    running: Services, signed_in: SignIn, handbook: Collection
) -> None:
    tab, identity = signed_in(Role.ADMIN)
    other = running.documents.create_collection(identity, "Policies", "hr")
    page = tab.run().switch_page("documents.py").run()
    assert page.selectbox(key="documents_collection").value == handbook.id
    again, somebody = signed_in(Role.ADMIN)
    running.documents.note_last(somebody, other)
    page = again.run().switch_page("documents.py").run()
    assert page.selectbox(key="documents_collection").value == other.id


def test_a_collection_is_renamed(running: Services, page: AppTest, collection: Collection) -> None:
    opened(page, collection)
    page.button("collections_rename").click().run()
    page.text_input("collections_name").set_value("Policies")
    page.selectbox("collections_language").set_value("ko")
    page.button("collections_rename_save").click().run()
    changed = running.documents.collection("demo", collection.id)
    assert (changed.name, changed.language) == ("Policies", "ko")
    assert page.title[0].value == "Policies"


def test_a_deleted_collection_is_had_back_and_goes_for_good_once_its_name_is_typed(
    running: Services, page: AppTest, handbook: Collection
) -> None:
    opened(page, handbook)
    page.button("collections_delete").click().run()
    assert "1 document with" in texts(page)
    assert page.button("collections_delete_sure_confirmed").label == ":red[Delete the collection with 1 document]"
    page.button("collections_delete_sure_confirmed").click().run()
    assert not page.exception
    assert running.documents.collections("demo") == []
    assert "is in the bin for 30 days" in texts(page)
    page.button("collections_way_back_taken").click().run()
    assert not page.exception
    assert running.documents.collections("demo") == [handbook]
    assert [d.status for d in running.documents.list("demo")] == [DocumentStatus.COMPLETED]
    opened(page, handbook)
    page.button("collections_delete").click().run()
    page.button("collections_delete_sure_confirmed").click().run()
    page.button(f"collections_restore_{handbook.id}").click().run()
    assert running.documents.collections("demo") == [handbook]

    opened(page, handbook)
    page.button("collections_delete").click().run()
    page.button("collections_delete_sure_confirmed").click().run()
    page.button(f"collections_purge_{handbook.id}").click().run()
    page.text_input("collections_delete_name").set_value("something else")
    page.button("collections_delete_confirmed").click().run()
    assert "To delete the collection" in page.error[0].value
    page.text_input("collections_delete_name").set_value(handbook.name)
    page.button("collections_delete_confirmed").click().run()
    assert not page.exception
    assert running.documents.collections("demo") == []
    assert running.documents.list("demo") == []
    assert running.documents.bin.collections("demo") == []
    assert running.documents.bin.list("demo") == []
    assert "collection" not in page.query_params
    assert "There is no collection yet" in page.info[0].value


def test_the_form_for_a_new_collection_says_that_its_model_can_be_changed(page: AppTest) -> None:
    page.run()
    page.button("collections_new").click().run()
    (embedder,) = [box for box in page.selectbox if box.label == "Search model"]
    assert "cannot be changed" not in embedder.help
    assert "You can move to another model later. You see the cost before the move begins." in embedder.help


def test_who_answers_comes_first_in_a_portfolio_with_a_preview_of_what_is_typed(
    running: Services, signed_in: SignIn
) -> None:
    tab, admin = signed_in(Role.ADMIN)
    made = running.documents.create_collection(admin, "Portfolio", "portfolio")
    tab.run().switch_page("collection_settings.py").run()
    page = tab.button(f"collections_open_{made.id}").click().run()
    key = f"collections_persona_{made.id}"

    def shown() -> str:
        return "\n".join(str(item.value) for item in [*page.markdown, *page.caption])

    assert "in the third person (“They led …”)" in shown()
    assert shown().index("Who answers") < shown().index("What this means")
    page.text_input(f"{key}_name").set_value("Marlowe <b>Quenby")
    page.text_area(f"{key}_facts").set_value("Lives in Leeds.").run()
    assert "Answers speak as Marlowe" in shown()
    assert "You are Marlowe <b>Quenby, and" in shown()
    assert page.button(f"{key}_try").disabled
    page.button(f"{key}_save").click().run()
    assert not page.exception
    kept = running.documents.collection(admin, made.id).overrides
    assert kept == {"persona_name": "Marlowe <b>Quenby", "persona_facts": "Lives in Leeds."}
    page.button(f"{key}_try").click().run()
    assert page.session_state.chat_collection == made.id
