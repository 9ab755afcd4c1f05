"""The chat as a person uses it, on real services without keys."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from threading import Event
from typing import Any
from uuid import UUID

import pytest
from psycopg.types.json import Jsonb
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime.scriptrunner import ScriptRunContext
from streamlit.testing.v1 import AppTest

from rag.answering import pipeline, retrieving
from rag.answering.canned_answers import UNCITED
from rag.answering.citations import citation_to_json
from rag.answering.follow_ups import Standalone
from rag.answering.jobs import LiveAnswer
from rag.answering.readers import NO_ANSWERS, OPERATORS
from rag.answering.state import AnswerState
from rag.answering.writing import TOO_LONG
from rag.errors import NotFound
from rag.records.analytics import Filters, Period
from rag.retrieval.multi_query import NO_EMBEDDING
from rag.retrieval.reranker import NO_RERANKING
from rag.services import Services
from rag.types import Citation, Collection, ContextResponse, Identity, Role, UploadOptions
from rag.ui.chat_scope import ALL
from rag.ui.text import plain
from tests.patience import patient

NewTab = Callable[[str], AppTest]
SignIn = Callable[[Role], tuple[AppTest, Identity]]


def markdown(tab: AppTest) -> str:
    return "\n".join(m.value for m in tab.main.markdown)


def ask(tab: AppTest, question: str) -> AppTest:
    return tab.chat_input[0].set_value(question).run()


def button(tab: AppTest, label: str) -> Any:
    return next(b for b in tab.button if b.label == label)


@pytest.mark.usefixtures("running")
def test_without_documents_an_employee_is_told_so_and_an_admin_is_shown_where_to_add_some(signed_in: SignIn) -> None:
    employee, _ = signed_in(Role.EMPLOYEE)
    employee.run()
    assert "There are no documents yet, so no question can be answered." in [c.value for c in employee.caption]
    assert not [link for link in employee.get("page_link") if "documents" in link.proto.page]
    admin, _ = signed_in(Role.ADMIN)
    assert admin.run().get("page_link")
    ask(employee, "How many days of leave?")
    said = plain("There are no documents yet. An administrator has to add some first.")
    assert [e.value for e in employee.error] == [said]
    assert not employee.exception


@pytest.mark.usefixtures("handbook")
def test_an_answer_has_its_sources_cost_and_time_and_is_there_after_a_refresh(
    signed_in: SignIn, new_tab: NewTab
) -> None:
    tab, identity = signed_in(Role.EMPLOYEE)
    tab.run()
    assert "How can I help, Robin?" in [t.value for t in tab.title]
    ask(tab, "How many days of annual leave do I have?")
    assert not tab.exception
    assert "25 days" in markdown(tab)
    assert "](#s" in markdown(tab), "its numbers link to the cards"
    assert any("p. 1" in m.value for m in tab.main.markdown)
    assert any("yellow-background[" in c.value for c in tab.main.caption)
    # What it took and cost is for those who look after the answers.
    assert "no charge" not in markdown(tab)
    manager, _ = signed_in(Role.MANAGER)
    ask(manager.run(), "How many days of annual leave do I have?")
    assert "no charge" in markdown(manager)
    # How many of the question's words a passage holds is no measure of whether it answers.
    assert "% match" not in markdown(manager)

    again = new_tab(identity.session_id)
    again.query_params["c"] = tab.query_params["c"]
    again.run()
    assert "25 days" in markdown(again)
    assert [b.label for b in again.sidebar.button if str(b.key).startswith("chat_open_")] == [
        "**How many days of annual leave do I have?**"
    ]


def test_why_an_answer_ended_early_is_read_in_the_readers_language(
    running: Services, handbook: Collection, signed_in: SignIn, new_tab: NewTab
) -> None:
    tab, identity = signed_in(Role.EMPLOYEE)
    ask(tab.run(), "How many days of annual leave do I have?")
    conversation = UUID(tab.query_params["c"])
    with running.database.transaction("demo") as connection:
        connection.execute(
            "UPDATE messages SET state = 'cut', notice = %s WHERE conversation_id = %s AND role = 'assistant'",
            [f"{TOO_LONG} {UNCITED}", conversation],
        )
    running.sessions.set_language(identity.tenant_id, identity.account_id, "de")
    again = new_tab(identity.session_id)
    again.query_params["c"] = str(conversation)
    again.run()
    said = (
        "Die Antwort hat ihre Längengrenze erreicht und endet hier. "
        "Diese Antwort nennt keine Quelle. Vergleichen Sie sie mit den Textstellen unten."
    )
    assert [warning.value for warning in again.warning] == [plain(said)]


def test_who_asks_does_not_read_the_sentences_of_those_who_run_it(
    running: Services, handbook: Collection, signed_in: SignIn, new_tab: NewTab
) -> None:
    of_operators = [sentence.format(provider="OpenAI", status=400) for sentence in OPERATORS]
    said = {}
    for role in (Role.EMPLOYEE, Role.MANAGER):
        tab, identity = signed_in(role)
        ask(tab.run(), "How many days of annual leave do I have?")
        assert "language model" not in markdown(tab)
        conversation = UUID(tab.query_params["c"])
        for notice in (*of_operators, f"{NO_EMBEDDING} {UNCITED} {NO_RERANKING}"):
            with running.database.transaction("demo") as connection:
                connection.execute(
                    "UPDATE messages SET state = 'failed', notice = %s "
                    "WHERE conversation_id = %s AND role = 'assistant'",
                    [notice, conversation],
                )
            again = new_tab(identity.session_id)
            again.query_params["c"] = str(conversation)
            said[role, notice] = [error.value for error in again.run().error]
    for notice in of_operators:
        assert said[Role.MANAGER, notice] == [plain(notice)]
        assert said[Role.EMPLOYEE, notice] == [plain(NO_ANSWERS)]
    assert said[Role.EMPLOYEE, f"{NO_EMBEDDING} {UNCITED} {NO_RERANKING}"] == [plain(UNCITED)]


@pytest.mark.usefixtures("handbook")
def test_small_talk_is_not_asked_again(signed_in: SignIn) -> None:
    tab, _ = signed_in(Role.EMPLOYEE)
    ask(tab.run(), "How many days of annual leave do I have?")
    assert "Ask again" in [button.label for button in tab.button]
    ask(tab, "Thank you!")
    assert not tab.exception
    assert [label for button in tab.button if (label := button.label) in ("Ask again", "Edit question")] == [
        "Edit question"
    ]


@pytest.mark.usefixtures("handbook")
def test_an_answer_that_was_asked_again_is_folded_with_its_sources(running: Services, signed_in: SignIn) -> None:
    tab, identity = signed_in(Role.EMPLOYEE)
    ask(tab.run(), "How many days of annual leave do I have?")
    button(tab, "Ask again").click().run()
    first, second = [m for m in running.conversations.messages(identity, UUID(tab.query_params["c"])) if m.citations]
    assert [m.content for m in (first, second)] == [first.content] * 2
    folded = f"chat_replaced_{first.id}"
    assert "An earlier answer to the same question" in [box.label for box in tab.expander]
    assert len(tab.get("feedback")) == 1, "only the new one is in sight"
    tab.session_state[folded] = True
    tab.run()
    assert not tab.exception
    assert len(tab.get("feedback")) == 2
    assert f"chat_sources_{first.id}" in tab.session_state


@pytest.mark.usefixtures("handbook")
def test_money_in_an_answer_is_text_and_not_a_formula(signed_in: SignIn) -> None:
    tab, _ = signed_in(Role.EMPLOYEE)
    ask(tab.run(), "Up to how much are meals and hotels on business trips reimbursed?")
    assert r"\$1,500" in markdown(tab)
    assert not tab.exception


@pytest.mark.usefixtures("handbook")
def test_what_the_documents_do_not_hold_is_said_so_with_the_nearest_passages(signed_in: SignIn) -> None:
    tab, _ = signed_in(Role.MANAGER)
    ask(tab.run(), "Who commands the submarine on Neptune?")
    assert not tab.exception
    assert "**Sources**" not in markdown(tab)
    assert "**Most similar passages**" in markdown(tab)
    assert "% match" not in markdown(tab)
    assert "source" not in "".join(m.value for m in tab.main.markdown if "no charge" in m.value)


@pytest.mark.usefixtures("handbook")
@pytest.mark.parametrize(
    ("question", "said"),
    [
        pytest.param("x" * 20_000, "20,000 characters", id="20,000 characters"),
        pytest.param("\u200b \u2060", "Please type a question.", id="nothing visible"),
    ],
)
def test_a_question_that_cannot_be_asked_gets_one_sentence_and_starts_nothing(
    running: Services, signed_in: SignIn, question: str, said: str
) -> None:
    tab, person = signed_in(Role.EMPLOYEE)
    ask(tab.run(), question)
    assert len(tab.error) == 1
    assert plain(said) in tab.error[0].value
    assert "c" not in tab.query_params
    assert not tab.exception
    # Nor does it use up one of the questions of this minute.
    for _ in range(running.settings.questions_per_minute):
        running.limits.count_question(person)


@pytest.mark.usefixtures("handbook")
def test_html_in_a_question_is_shown_as_it_was_typed(signed_in: SignIn) -> None:
    tab, _ = signed_in(Role.EMPLOYEE)
    ask(tab.run(), "<b>annual leave</b> ![x](http://x.example/x.png)?")
    assert r"\<b\>annual leave\<\/b\> \!\[x\]" in markdown(tab)
    assert not tab.exception


@pytest.mark.usefixtures("handbook")
def test_somebody_elses_conversation_looks_like_one_that_does_not_exist(signed_in: SignIn) -> None:
    owner, _ = signed_in(Role.EMPLOYEE)
    ask(owner.run(), "How many days of annual leave do I have?")
    for address in (owner.query_params["c"], "00000000-0000-0000-0000-000000000000", "../x"):
        other, _ = signed_in(Role.ADMIN)
        other.query_params["c"] = address
        other.run()
        assert "25 days" not in markdown(other)
        assert "c" not in other.query_params
        assert [t.value for t in other.toast] == ["This conversation does not exist. It may have been deleted."]
        assert not other.exception


@pytest.mark.usefixtures("handbook")
def test_the_zoom_of_pages_is_kept_for_the_pages_that_are_turned_to_and_opened_next(signed_in: SignIn) -> None:
    tab, _ = signed_in(Role.EMPLOYEE)
    ask(tab.run(), "Up to how much are meals and hotels on business trips reimbursed?")

    def shown() -> str:
        return next(h.value for h in tab.html if "<img" in h.value)

    button(tab, "Open page").click().run()
    assert "width:100%" in shown()
    tab.button(key="page_view_zoom_button").click().run()
    assert "width:150%" in shown()
    button(tab, "Previous").click().run()
    assert "/pages/1.png" in shown()
    assert "width:150%" in shown()
    tab.button(key="page_view_close").click().run()
    assert not any("<img" in h.value for h in tab.html)
    button(tab, "Open page").click().run()
    assert "width:150%" in shown()
    assert button(tab, "150%").key == "page_view_zoom_button"


@pytest.mark.usefixtures("handbook")
def test_a_source_opens_at_its_page_beside_the_answer_and_turns_its_pages(signed_in: SignIn) -> None:
    tab, _ = signed_in(Role.EMPLOYEE)
    ask(tab.run(), "Up to how much are meals and hotels on business trips reimbursed?")
    button(tab, "Open page").click().run()
    (image,) = (h.value for h in tab.html if "<img" in h.value)
    # The passage runs over both pages; what was asked for stands on the second.
    assert "/pages/2.png?highlight=" in image
    assert re.search(r"&amp;sentence_start=\d+&amp;sentence_end=\d+\"", image), "the sentence in it stands out"
    assert 'alt="Page 2 of ' in image
    assert tab.link_button[0].url.endswith("/file#page=2")
    button(tab, "Previous").click().run()
    assert any("/pages/1.png" in h.value for h in tab.html)
    assert tab.link_button[0].url.endswith("/file#page=1")
    button(tab, "Back to page 2").click().run()
    assert any("/pages/2.png" in h.value for h in tab.html)
    button(tab, "Next").click().run()
    assert any("/pages/2.png" in h.value for h in tab.html), "there is no page after the last"
    assert not tab.exception


def test_a_deleted_document_is_gone_from_the_cards_of_old_answers(
    running: Services, handbook: Collection, signed_in: SignIn
) -> None:
    tab, _ = signed_in(Role.EMPLOYEE)
    ask(tab.run(), "How many days of annual leave do I have?")
    assert any(b.label == "Open page" for b in tab.button)
    _, admin = signed_in(Role.ADMIN)
    running.documents.delete(admin, running.documents.list("demo")[0].id)
    tab.run()
    assert not any(b.label == "Open page" for b in tab.button)
    assert not tab.exception


def test_a_thumb_and_a_comment_are_saved_and_shown_again(
    running: Services, handbook: Collection, signed_in: SignIn
) -> None:
    tab, identity = signed_in(Role.EMPLOYEE)
    ask(tab.run(), "How many days of annual leave do I have?")
    tab.feedback[0].set_value(0).run()
    conversation = UUID(tab.query_params["c"])
    asks_why = f"chat_why_{running.conversations.messages(identity, conversation)[-1].id}"
    assert tab.session_state[asks_why], "a thumb down asks why by itself"
    tab.text_area[0].set_value("x" * 2001)
    button(tab, "Send comment").click().run()
    assert "at most 2,000 are kept" in tab.error[0].value
    assert (tab.session_state[asks_why], tab.text_area[0].value) == (True, "x" * 2001), "what was written stays"
    tab.text_area[0].set_value("It is 26 days.")
    button(tab, "Send comment").click().run()
    assert not tab.session_state[asks_why]
    assert not tab.error
    assert running.conversations.messages(identity, conversation)[-1].rating == 0
    with running.database.transaction("demo") as connection:
        assert connection.execute("SELECT rating, comment FROM feedback").fetchall() == [(0, "It is 26 days.")]
    assert not tab.exception


@pytest.mark.usefixtures("handbook")
def test_a_conversation_is_renamed_and_deleted_after_asking(running: Services, signed_in: SignIn) -> None:
    tab, identity = signed_in(Role.EMPLOYEE)
    ask(tab.run(), "How many days of annual leave do I have?")
    # The menu button cannot be clicked from here: what it sets is set by hand.
    tab.session_state["chat_dialog"] = "Rename"
    next(t for t in tab.run().text_input if t.label == "Name").set_value("My *leave*")
    button(tab, "Save").click().run()
    assert [c.title for c in running.conversations.list(identity)] == ["My *leave*"]
    assert r"**My \*leave\***" in [b.label for b in tab.sidebar.button]

    tab.session_state["chat_dialog"] = "Delete"
    button(tab.run(), "Keep").click().run()
    assert running.conversations.list(identity)
    tab.session_state["chat_dialog"] = "Delete"
    before = running.conversations.list(identity)
    said = running.conversations.messages(identity, before[0].id)
    button(tab.run(), ":red[Delete]").click().run()
    assert running.conversations.list(identity) == []
    assert "c" not in tab.query_params
    assert "How can I help, Robin?" in [t.value for t in tab.title]
    button(tab, "Undo").click().run()
    assert running.conversations.list(identity) == before
    assert running.conversations.messages(identity, before[0].id) == said
    assert not [b for b in tab.button if b.label == "Undo"]
    assert not tab.exception


@pytest.mark.usefixtures("handbook")
def test_a_conversation_that_cannot_be_deleted_is_not_said_to_be(running: Services, signed_in: SignIn) -> None:
    tab, identity = signed_in(Role.EMPLOYEE)
    ask(tab.run(), "How many days of annual leave do I have?")
    tab.session_state["chat_dialog"] = "Delete"
    tab.run()
    running.conversations.delete(identity, UUID(tab.query_params["c"]))  # in another tab
    button(tab, ":red[Delete]").click().run()
    assert plain(NotFound().message) in [error.value for error in tab.error]
    assert not [b for b in tab.button if b.label == "Undo"]


def test_a_question_is_passed_on_and_a_persons_answer_comes_back_into_the_conversation(
    running: Services, handbook: Collection, signed_in: SignIn, new_tab: NewTab
) -> None:
    tab, asker = signed_in(Role.EMPLOYEE)
    ask(tab.run(), "How many days of annual leave do I have?")
    tab.feedback[0].set_value(0).run()
    tab.pills[0].set_value("outdated")
    tab.text_area[0].set_value("There are new rules.")
    button(tab, "Ask HR").click().run()
    assert not tab.exception
    assert any("Passed on to the people in charge" in c.value for c in tab.caption)
    assert "Ask HR" not in [b.label for b in tab.button]
    _, manager = signed_in(Role.MANAGER)
    (waiting,) = running.help_requests.list(manager, status="open")
    assert (waiting.reason, waiting.comment) == ("outdated", "There are new rules.")
    # Nobody has opened the list of gaps: the question was grouped when it was passed on.
    period = Period.of_days(3, until=datetime.now(UTC).date() + timedelta(days=1))
    until = time.monotonic() + patient(20)
    while not (gaps := running.gaps.list(manager, period, Filters())) and time.monotonic() < until:
        time.sleep(0.05)
    assert [(gap.question, gap.waiting) for gap in gaps] == [("How many days of annual leave do I have?", 1)]
    running.help_requests.answer(manager, waiting.id, "It is *27 days* since May.")

    elsewhere = new_tab(asker.session_id).run()
    (row,) = [b.label for b in elsewhere.sidebar.button if str(b.key).startswith("chat_open_")]
    assert ":green-badge[" in row, "an answer waits there"
    tab.run()
    assert "A person answered: " in markdown(tab)
    assert r"It is \*27 days\* since May\." in markdown(tab)
    assert running.help_requests.unseen(asker) == set()

    # Nothing found: the way to a person is there at once.
    ask(tab, "Who commands the submarine on Neptune?")
    button(tab, "Ask HR").click().run()
    assert running.help_requests.list(manager, status="open")[0].reason == "unanswered"
    assert not tab.exception


@pytest.mark.usefixtures("handbook")
def test_a_conversation_is_shared_as_it_was_pinned_and_asked_again(running: Services, signed_in: SignIn) -> None:
    tab, owner = signed_in(Role.EMPLOYEE)
    ask(tab.run(), "How many days of annual leave do I have?")
    shared = UUID(tab.query_params["c"])
    tab.session_state["chat_dialog"] = "Share"
    button(tab.run(), "Share by link").click().run()
    assert any(f"/?c={shared}" in c.value for c in tab.code)
    tab.session_state["chat_dialog"] = None
    button(tab.run(), "Ask again").click().run()
    assert len(running.conversations.messages(owner, shared)) == 4
    button(tab, "Edit question").click().run()
    assert tab.chat_input[0].proto.value == "How many days of annual leave do I have?"

    colleague, reader = signed_in(Role.EMPLOYEE)
    colleague.query_params["c"] = str(shared)
    colleague.run()
    assert "Shared by Robin" in "".join(c.value for c in colleague.caption)
    assert len(colleague.chat_message) == 2, "what came after sharing is not shared"
    assert not colleague.get("feedback")
    assert not colleague.exception
    ask(colleague, "Up to how much are meals reimbursed?")
    assert colleague.query_params["c"] != str(shared)
    assert len(running.conversations.messages(owner, shared)) == 4
    with running.database.transaction("demo") as connection:
        connection.execute("UPDATE collections SET groups = '{Legal}'")
    with pytest.raises(NotFound):
        running.conversations.shared(reader, shared)
    with running.database.transaction("demo") as connection:
        connection.execute("UPDATE collections SET groups = '{}'")
    running.conversations.share(owner, shared, is_shared=False)
    with pytest.raises(NotFound):
        running.conversations.shared(reader, shared)

    newer = running.conversations.create(owner, running.conversations.get(owner, shared).collection_id, "Newer")
    assert [c.id for c in running.conversations.list(owner)] == [newer.id, shared]
    running.conversations.pin(owner, shared, is_pinned=True)
    assert [c.id for c in running.conversations.list(owner)] == [shared, newer.id]


def test_a_suggested_question_is_asked_at_a_click(running: Services, signed_in: SignIn, handbook: Collection) -> None:
    with running.database.transaction("demo") as connection:
        connection.execute(
            "UPDATE documents SET metadata = %(metadata)s",
            {"metadata": Jsonb({"questions": ["How many days of annual leave do I have?"]})},
        )
    (suggested, *_) = running.documents.suggested_questions("demo", handbook.id)
    tab, identity = signed_in(Role.EMPLOYEE)
    button(tab.run(), suggested).click().run()
    assert [c.title for c in running.conversations.list(identity)] == [suggested]
    assert suggested not in [b.label for b in tab.main.button]
    assert not tab.exception


def test_suggested_questions_are_of_what_is_asked(running: Services, handbook: Collection, signed_in: SignIn) -> None:
    add_named(running, handbook, "Travel policy", "travel.pdf")
    board = running.documents.ensure_collection("demo", "Board", "notices", "builtin/lexical@1536", "en")
    add_named(running, board, "Parking", "parking.pdf")
    with running.database.transaction("demo") as connection:
        connection.execute(
            "UPDATE documents SET metadata = jsonb_build_object('questions', jsonb_build_array('Of ' || title || '?'))"
        )
    travel = next(d for d in running.documents.list("demo") if d.file_name == "travel.pdf")
    tab, _ = signed_in(Role.EMPLOYEE)

    def suggested() -> set[str]:
        tab.run()
        return {b.label for b in tab.main.button if b.label.startswith("Of ")}

    tab.session_state["chat_collection"] = handbook.id
    assert suggested() == {"Of Handbook?", "Of Travel policy?"}
    tab.session_state["chat_documents"] = [travel.id]
    assert suggested() == {"Of Travel policy?"}
    tab.session_state["chat_documents"] = []
    tab.session_state["chat_collection"] = ALL
    assert suggested() == {"Of Handbook?", "Of Travel policy?", "Of Parking?"}
    assert not tab.exception


def test_a_long_history_shows_the_last_turns_and_the_earlier_ones_on_demand(
    running: Services, handbook: Collection, signed_in: SignIn
) -> None:
    tab, identity = signed_in(Role.EMPLOYEE)
    conversation = running.conversations.create(identity, handbook.id, "Long")
    cited = citation_to_json(_citation(running))
    with running.database.transaction("demo") as connection:
        for turn in range(14):
            for role, content in (("user", f"Question {turn}"), ("assistant", f"Answer {turn} [1]")):
                connection.execute(
                    "INSERT INTO messages (tenant_id, conversation_id, role, content, state, citations, created_at) "
                    "VALUES ('demo', %(id)s, %(role)s, %(content)s, 'complete', %(citations)s, "
                    "clock_timestamp())",
                    {
                        "id": conversation.id,
                        "role": role,
                        "content": content,
                        "citations": Jsonb([cited] if role == "assistant" else []),
                    },
                )
    tab.query_params["c"] = str(conversation.id)
    tab.run()
    shown = markdown(tab)
    assert "Question 3" not in shown
    assert "Question 4" in shown
    assert len([b for b in tab.button if b.label == "Open page"]) == 1, "cards of older turns come on demand"
    button(tab, "Show earlier messages").click().run()
    assert "Question 0" in markdown(tab)
    assert not tab.exception


def test_the_first_click_after_a_restart_of_the_server_opens_a_new_chat(
    running: Services, handbook: Collection, signed_in: SignIn, new_tab: NewTab
) -> None:
    tab, identity = signed_in(Role.EMPLOYEE)
    ask(tab.run(), "How many days of annual leave are there?")
    (first,) = running.conversations.list(identity)
    button(tab, "New chat").click()
    restarted = new_tab(identity.session_id)
    restarted.query_params["c"] = str(first.id)
    # What the browser sends to the server it finds: the clicked button, in a session that never drew it.
    restarted._run(tab._tree.get_widget_states())
    assert not restarted.exception
    assert "c" not in restarted.query_params
    ask(restarted, "Who pays for hotels?")
    assert not restarted.exception
    assert len(running.conversations.list(identity)) == 2
    assert len(running.conversations.messages(identity, first.id)) == 2


def test_a_question_sent_right_after_new_chat_is_not_for_the_conversation_before(
    running: Services, handbook: Collection, signed_in: SignIn
) -> None:
    tab, identity = signed_in(Role.EMPLOYEE)
    ask(tab.run(), "How many days of annual leave are there?")
    (first,) = running.conversations.list(identity)

    # Both arrive together: the server was busy.
    button(tab, "New chat").click()
    ask(tab, "Who pays for hotels?")
    assert len(running.conversations.list(identity)) == 2

    # The question interrupts the run of the click, and its browser has the address of before.
    tab.session_state["chat_moved"] = (str(first.id), "")
    tab.query_params["c"] = str(first.id)
    ask(tab, "Who pays for trains?")

    assert not tab.exception
    assert len(running.conversations.list(identity)) == 3
    assert len(running.conversations.messages(identity, first.id)) == 2
    assert tab.session_state["chat_moved"] is None
    tab.query_params["c"] = str(first.id)
    tab.run()
    assert "annual leave" in markdown(tab), "going back to it opens it"


def test_a_question_sent_to_a_restarted_server_is_asked_once(
    running: Services, handbook: Collection, signed_in: SignIn, new_tab: NewTab
) -> None:
    tab, identity = signed_in(Role.EMPLOYEE)
    tab.run()
    tab.chat_input[0].set_value("How many days of annual leave are there?")
    restarted = new_tab(identity.session_id)
    restarted._run(tab._tree.get_widget_states())
    assert not restarted.exception
    (conversation,) = running.conversations.list(identity)
    assert len(running.conversations.messages(identity, conversation.id)) == 2


def test_all_collections_are_asked_at_once_and_the_conversation_remembers_it(
    running: Services, handbook: Collection, signed_in: SignIn, new_tab: NewTab
) -> None:
    texts = {
        "Port": b"Boats pay twelve crowns of mooring fee each night.",
        "Closed": b"Canary boats of lawyers pay forty crowns of mooring fee.",
    }
    for name, text in texts.items():
        made = running.documents.ensure_collection("demo", name, "notices", "builtin/lexical@1536", "en")
        running.pipeline.process_document(
            file=text,
            file_name=f"{name}.txt",
            tenant_id="demo",
            collection=made,
            options=UploadOptions(generate_metadata=False),
        )
        if name == "Closed":
            with running.database.transaction("demo") as connection:
                connection.execute("UPDATE collections SET groups = '{Legal}' WHERE id = %s", [made.id])
    tab, identity = signed_in(Role.EMPLOYEE)
    tab.session_state["chat_filter"] = True
    tab.run()
    choice = tab.segmented_control(key="chat_collection")
    assert choice.options == ["All collections", handbook.name, "Port"]
    choice.set_value(ALL).run()
    ask(tab, "How high is the mooring fee of boats?")
    assert not tab.exception
    assert "twelve crowns" in markdown(tab)
    assert "Port" in markdown(tab), "its collection"
    assert "Canary" not in markdown(tab), "of a group that this person is not in"
    (conversation,) = running.conversations.list(identity)
    again = new_tab(identity.session_id)
    again.query_params["c"] = str(conversation.id)
    again.session_state["chat_filter"] = True
    again.run()
    (toggle,) = [t for t in again.toggle if t.label == "All collections"]
    assert toggle.value
    toggle.set_value(False).run()
    ask(again, "How high is the mooring fee of boats?")
    assert not again.exception
    assert not running.conversations.get(identity, conversation.id).asks_all

    # Somebody of that group is answered from it too; neither a colleague it is shared with nor a manager reads that.
    lawyer_tab, lawyer = signed_in(Role.EMPLOYEE)
    with running.database.transaction("demo") as connection:
        connection.execute("UPDATE accounts SET user_group = 'Legal' WHERE id = %s", [lawyer.account_id])
    running.sessions.forget([lawyer.session_id])
    known = running.sessions.find_by_id(lawyer.session_id)
    assert known is not None
    lawyer_tab.session_state["chat_collection"] = ALL
    lawyer_tab.run()
    ask(lawyer_tab, "How many crowns of mooring fee do canary boats of lawyers pay?")
    assert "Canary" in markdown(lawyer_tab)
    (theirs,) = running.conversations.list(known)
    running.conversations.share(known, theirs.id, is_shared=True)
    assert not running.conversations.shared(identity, theirs.id).messages
    manager = signed_in(Role.MANAGER)[1]
    with running.database.transaction(manager) as connection:
        logged = connection.execute("SELECT count(*) FROM chat_logs WHERE answer LIKE '%Canary%'").fetchone()
    assert logged == (0,)


def test_documents_with_one_title_are_told_apart_in_the_list_to_ask_in(
    running: Services, handbook: Collection, signed_in: SignIn
) -> None:
    add_named(running, handbook, "Handbook", "other.pdf")
    older = next(d for d in running.documents.list("demo") if d.file_name == "handbook.pdf")
    tab, _ = signed_in(Role.EMPLOYEE)
    tab.session_state["chat_filter"] = True
    tab.run()
    assert sorted(tab.multiselect(key="chat_documents").options) == [
        "Handbook · handbook.pdf",
        "Handbook · other.pdf",
    ]
    tab.multiselect(key="chat_documents").set_value([older.id]).run()
    assert tab.session_state["chat_documents"] == [older.id]
    # Its label is shorter again once the other is gone; it stays chosen.
    other = next(d for d in running.documents.list("demo") if d.id != older.id)
    with running.database.transaction("demo") as connection:
        connection.execute("DELETE FROM documents WHERE id = %s", [other.id])
    tab.run()
    assert tab.multiselect(key="chat_documents").options == ["Handbook"]
    assert tab.session_state["chat_documents"] == [older.id]
    assert not tab.exception


def test_what_was_chosen_holds_for_one_conversation_and_is_named_where_it_holds_no_answer(
    running: Services, handbook: Collection, signed_in: SignIn
) -> None:
    add_named(running, handbook, "Travel policy", "travel.pdf")
    travel = next(d for d in running.documents.list("demo") if d.file_name == "travel.pdf")
    tab, _ = signed_in(Role.EMPLOYEE)
    tab.run()
    tab.session_state["chat_documents"] = [travel.id]
    ask(tab, "How many days of annual leave do I have?")
    shown = markdown(tab)
    assert "25 days" not in shown
    assert any("Only the chosen documents were searched" in c.value for c in [*tab.caption, *tab.markdown])
    everywhere = next(b for b in tab.button if b.label == "Ask in all documents")
    everywhere.click().run()
    assert "25 days" in markdown(tab)
    assert tab.session_state["chat_documents"] == []
    assert not [b for b in tab.button if b.label == "Ask in all documents"]
    tab.session_state["chat_documents"] = [travel.id]
    tab.button(key="chat_new").click().run()
    assert tab.session_state["chat_documents"] == []
    assert not tab.exception


def test_what_a_conversation_was_narrowed_to_is_there_after_a_reload_and_in_no_other(
    running: Services, handbook: Collection, signed_in: SignIn, new_tab: NewTab
) -> None:
    add_named(running, handbook, "Travel policy", "travel.pdf")
    chosen = next(d for d in running.documents.list("demo") if d.file_name == "handbook.pdf")
    tab, identity = signed_in(Role.EMPLOYEE)
    tab.run()
    tab.session_state["chat_documents"] = [chosen.id]
    ask(tab, "How many days of annual leave do I have?")
    opened = tab.query_params["c"]
    assert running.conversations.get(identity, UUID(opened)).narrowed_to == {"documents": [str(chosen.id)]}

    reloaded = new_tab(identity.session_id)
    reloaded.query_params["c"] = opened
    reloaded.run()
    assert reloaded.session_state["chat_documents"] == [chosen.id]
    reloaded.button(key="chat_new").click().run()
    assert reloaded.session_state["chat_documents"] == []
    reloaded.button(key=f"chat_open_{opened}").click().run()
    assert reloaded.session_state["chat_documents"] == [chosen.id]
    # What is taken back is not brought back by the next run.
    reloaded.session_state["chat_documents"] = []
    ask(reloaded.run(), "How many days of annual leave do I have?")
    assert reloaded.session_state["chat_documents"] == []
    assert running.conversations.get(identity, UUID(opened)).narrowed_to == {}
    assert not reloaded.exception


def test_what_a_begun_conversation_is_narrowed_to_next_survives_a_reload(
    running: Services, handbook: Collection, signed_in: SignIn, new_tab: NewTab
) -> None:
    add_named(running, handbook, "Travel policy", "travel.pdf")
    chosen = next(d for d in running.documents.list("demo") if d.file_name == "handbook.pdf")
    tab, identity = signed_in(Role.EMPLOYEE)
    ask(tab.run(), "How many days of annual leave do I have?")
    assert "scope" not in tab.run().query_params
    for documents in ([chosen.id], []):  # narrowed, and widened again
        tab.session_state["chat_documents"] = documents
        tab.run()
        reloaded = new_tab(identity.session_id)
        for name in ("c", "scope"):
            reloaded.query_params[name] = tab.query_params[name]
        reloaded.run()
        assert reloaded.session_state["chat_documents"] == documents
        ask(reloaded, "How many days of annual leave do I have?")
        narrowed = running.conversations.get(identity, UUID(reloaded.query_params["c"])).narrowed_to
        assert narrowed == ({"documents": [str(chosen.id)]} if documents else {})
        assert "scope" not in reloaded.run().query_params
        tab.run()  # which reads the conversation as it is now
    assert not reloaded.exception


def test_what_a_new_chat_was_narrowed_to_is_there_after_a_reload_before_anything_is_asked(
    running: Services, handbook: Collection, signed_in: SignIn, new_tab: NewTab
) -> None:
    add_named(running, handbook, "Travel policy", "travel.pdf")
    chosen = next(d for d in running.documents.list("demo") if d.file_name == "handbook.pdf")
    tab, identity = signed_in(Role.EMPLOYEE)
    tab.run()
    assert "scope" not in tab.query_params
    tab.session_state["chat_documents"] = [chosen.id]
    tab.run()
    reloaded = new_tab(identity.session_id)
    reloaded.query_params["scope"] = tab.query_params["scope"]
    reloaded.run()
    assert reloaded.session_state["chat_documents"] == [chosen.id]
    reloaded.run()
    ask(reloaded, "How many days of annual leave do I have?")
    opened = UUID(reloaded.query_params["c"])
    assert running.conversations.get(identity, opened).narrowed_to == {"documents": [str(chosen.id)]}
    assert "scope" not in reloaded.run().query_params, "the conversation keeps it"
    reloaded.button(key="chat_new").click().run()
    assert (reloaded.session_state["chat_documents"], "scope" in reloaded.query_params) == ([], False)
    assert not reloaded.exception


@pytest.mark.usefixtures("handbook")
@pytest.mark.parametrize("text", ["", "[1]", "{}", '{"in": 7}', '{"in": "x"}', '{"in": "' + str(UUID(int=7)) + '"}'])
def test_an_address_that_somebody_changed_narrows_nothing(signed_in: SignIn, text: str) -> None:
    tab, _ = signed_in(Role.EMPLOYEE)
    tab.query_params["scope"] = text
    tab.run()
    assert not tab.exception
    ask(tab, "How many days of annual leave do I have?")
    assert "25 days" in markdown(tab)


@pytest.mark.usefixtures("handbook")
def test_a_document_that_was_chosen_and_is_gone_narrows_no_question(signed_in: SignIn) -> None:
    tab, _ = signed_in(Role.EMPLOYEE)
    tab.run()
    tab.session_state["chat_documents"] = [UUID(int=7)]
    ask(tab, "How many days of annual leave do I have?")
    assert not tab.exception
    assert "25 days" in markdown(tab)


def add_named(running: Services, collection: Collection, title: str, file_name: str, **metadata: Any) -> None:
    with running.database.transaction("demo") as connection:
        connection.execute(
            "INSERT INTO documents (tenant_id, collection_id, title, file_name, sha256, status, metadata) "
            "VALUES ('demo', %s, %s, %s, %s, 'completed', %s)",
            [collection.id, title, file_name, file_name, Jsonb(metadata)],
        )


@pytest.mark.usefixtures("handbook")
def test_in_a_rush_the_place_of_an_answer_is_drawn_before_the_rest_and_the_rest_is_held_back(
    running: Services, signed_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    tab, _ = signed_in(Role.EMPLOYEE)
    tab.run()
    drawn: list[str] = []
    gate = Event()
    enqueue, hold, retrieve = ScriptRunContext.enqueue, LiveAnswer.wait_until_begun, retrieving.retrieve

    def retrieve_late(state: AnswerState, standalone: Standalone) -> ContextResponse:
        assert gate.wait(patient(20))
        return retrieve(state, standalone)

    def noting(context: ScriptRunContext, message: ForwardMsg, *arguments: Any, **options: Any) -> None:
        text = str(message.delta)
        drawn.extend(name for name in ("div data-answer", "New chat", "How many days of leave?") if name in text)
        enqueue(context, message, *arguments, **options)
        if "New chat" in drawn:
            gate.set()

    def held(live: LiveAnswer, seconds: float) -> bool:
        drawn.append("held back")
        gate.set()
        return hold(live, 20)

    monkeypatch.setattr(ScriptRunContext, "enqueue", noting)
    monkeypatch.setattr(LiveAnswer, "wait_until_begun", held)
    monkeypatch.setattr(pipeline, "retrieve", retrieve_late)
    tab.chat_input[0].set_value("How many days of leave?").run()
    # Few wait: nothing is held back.
    assert drawn.index("div data-answer") < drawn.index("New chat")
    assert "held back" not in drawn

    monkeypatch.setattr("rag.answering.jobs.RUSH", 0)
    drawn.clear()
    gate.clear()
    tab.chat_input[0].set_value("How many days of leave?").run()
    assert [name for name in dict.fromkeys(drawn) if name != "How many days of leave?"] == [
        "div data-answer",
        "held back",
        "New chat",
    ]
    assert not tab.exception
    assert tab.button(key="chat_new")
    assert len(tab.chat_message) == 3, "the answer before is folded up: its question was asked again"

    # An open answer that was not just asked for here has the page around it first.
    drawn.clear()
    tab.run()
    assert drawn[0] == "New chat"


def test_a_question_is_narrowed_by_the_years_and_the_marks_that_a_board_has(
    running: Services, handbook: Collection, signed_in: SignIn
) -> None:
    tab, identity = signed_in(Role.ADMIN)
    board = running.documents.create_collection(identity, "Notices", "notices")
    add_named(running, board, "Old", "1.html", year=2023, years=[2022, "soon", None, 2023])
    add_named(running, board, "New", "2.html", year=2025, isImportant=True)
    add_named(running, board, "Strange", "3.html", year="2019", years={"a": 1})
    add_named(running, board, "Absurd", "4.html", year=1e300)
    tab.session_state["chat_filter"] = True
    tab.run()
    assert not [w for w in tab.toggle if w.key == "chat_important"], "documents have no such mark"
    tab.segmented_control(key="chat_collection").set_value(board.id).run()
    assert tab.multiselect(key="chat_years").options == ["2025", "2023", "2022"]
    tab.multiselect(key="chat_years").set_value([2023, 2025])
    tab.toggle(key="chat_important").set_value(True).run()
    assert "2023, 2025, Important posts" in [each.proto.popover.label for each in tab.get("popover")]
    ask(tab, "How many parking days are there?")
    assert not tab.exception
    assert "years 2023, 2025; important ones only" in said_of_searches(running)

    # Another collection has none of these: what was chosen does not count there.
    button(tab, "New chat").click().run()
    tab.segmented_control(key="chat_collection").set_value(handbook.id).run()
    tab.session_state["chat_years"] = [2023]
    ask(tab, "How many days of annual leave do I have?")
    assert "25 days" in markdown(tab)
    assert not tab.exception


def said_of_searches(running: Services) -> str:
    with running.database.transaction("demo") as connection:
        return str(connection.execute("SELECT string_agg(rag_details ->> 'steps', '') FROM chat_logs").fetchall())


def test_a_stopped_answer_keeps_what_it_has_and_is_marked(
    running: Services, handbook: Collection, signed_in: SignIn
) -> None:
    tab, identity = signed_in(Role.EMPLOYEE)
    conversation = running.conversations.create(identity, handbook.id, "Stopped")
    with running.database.transaction("demo") as connection:
        for state in ("stopped", "cut", "failed"):
            connection.execute(
                "INSERT INTO messages (tenant_id, conversation_id, role, content, state, notice, created_at) VALUES "
                "('demo', %(id)s, 'assistant', %(content)s, %(state)s, %(notice)s, clock_timestamp())",
                {"id": conversation.id, "content": f"Half {state}", "state": state, "notice": f"Why {state}."},
            )
    tab.query_params["c"] = str(conversation.id)
    tab.run()
    assert all(f"Half {state}" in markdown(tab) for state in ("stopped", "cut", "failed"))
    assert any("Why stopped" in c.value for c in tab.caption)
    assert "Why cut" in tab.warning[0].value
    assert "Why failed" in tab.error[0].value
    assert not tab.exception


def _citation(running: Services) -> Citation:
    document = running.documents.list("demo")[0]
    chunk = running.documents.chunks("demo", document.id)[0]
    return Citation(
        number=1,
        chunk_id=chunk.id,
        document_id=document.id,
        title=document.title,
        file_name=document.file_name,
        first_page=1,
        last_page=1,
        section="",
        passage=chunk.content,
        score=0.5,
    )


def test_a_new_chat_opens_the_collection_with_documents_and_later_the_one_asked_last(
    running: Services, collection: Collection, signed_in: SignIn, new_tab: NewTab
) -> None:
    texts = {"Rules": b"Boats pay twelve crowns of mooring fee each night.", "Canteen": b"Lunch is served at noon."}
    for name, text in texts.items():
        made = running.documents.ensure_collection("demo", name, "hr", "builtin/lexical@1536", "en")
        running.pipeline.process_document(
            file=text,
            file_name=f"{name}.txt",
            tenant_id="demo",
            collection=made,
            options=UploadOptions(generate_metadata=False),
        )
    tab, identity = signed_in(Role.EMPLOYEE)
    tab.run()
    assert tab.chat_input[0].placeholder == "Ask in Rules", "the oldest collection is empty"
    chosen = next(c for c in running.documents.collections("demo") if c.name == "Canteen")
    tab.session_state["chat_collection"] = chosen.id
    ask(tab.run(), "When is lunch?")
    assert "Lunch is served at noon" in markdown(tab)
    assert new_tab(identity.session_id).run().chat_input[0].placeholder == "Ask in Canteen"
    assert not tab.exception
