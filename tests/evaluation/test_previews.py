"""What other settings do to recent questions, before they are saved: passages that come and go, at a known cost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal

import pytest
from streamlit.testing.v1 import AppTest

from rag.errors import NotAllowed
from rag.locales import catalogues
from rag.profiles import profile_of
from rag.services import Services
from rag.settings import Settings
from rag.types import Collection, Identity, Role, UploadOptions
from tests.pages.conftest import handbook, new_tab, running, signed_in  # noqa: F401 - fixtures
from tests.pages.small_pdf import pdf
from tests.standins.providers import ProviderStandin

SignIn = Callable[[Role], tuple[AppTest, Identity]]
LEAVE = "How many days of annual leave do I have?"


def ask(parts: Services, identity: Identity, collection: Collection, *questions: str) -> None:
    for question in questions:
        parts.evaluations.ask_again(identity, collection, question, profile_of(collection))
    with parts.database.transaction(identity) as connection:
        connection.execute("UPDATE chat_logs SET kind = 'question'")


def test_recent_questions_are_compared_for_nothing_and_saved_afterwards(
    running: Services,  # noqa: F811
    handbook: Collection,  # noqa: F811
    signed_in: SignIn,  # noqa: F811
) -> None:
    for number in range(4):
        text = (
            ("Annual leave", f"1 Rule {number}", f"Annual leave of team {number} is booked {number + 2} days ahead."),
        )
        running.pipeline.process_document(
            file=pdf(text),
            file_name=f"leave_{number}.pdf",
            tenant_id="demo",
            collection=handbook,
            options=UploadOptions(generate_metadata=False),
        )
    tab, identity = signed_in(Role.ADMIN)
    ask(running, identity, handbook, LEAVE, "How are meals on business trips reimbursed?", LEAVE.lower())
    previews = running.previews
    recent = previews.recent_questions(identity, handbook.id)
    assert [question.lower() for question in recent] == [LEAVE.lower(), "how are meals on business trips reimbursed?"]

    before = profile_of(handbook)
    assert previews.estimate(handbook, before, before, questions=10) == 0
    logged = running.database.fetch_value(identity, "analytics_count_questions", **NOTHING)
    (leave, meals) = previews.compare(identity, handbook, before, before.changed(top_k=1), recent)
    assert leave.after.verdict == "answered"
    assert len(leave.before.passages) > len(leave.after.passages) == 1
    assert leave.before.without(leave.after)
    assert not leave.after.without(leave.before)
    assert not leave.is_same
    assert leave.cost == 0
    assert all(p.is_same for p in previews.compare(identity, handbook, before, before, recent))
    assert meals.after.passages[0].title
    assert running.database.fetch_value(identity, "analytics_count_questions", **NOTHING) == logged, "nothing is logged"

    page = tab.run().switch_page("collection_settings.py").run()
    page.button(f"collections_open_{handbook.id}").click().run()
    page.button("collections_preset_brief").click().run()
    assert not page.exception
    assert any("be answered only in part" in str(text.value) for text in page.markdown)
    box = f"collections_try_{handbook.id}"
    page.session_state[f"{box}_box"] = True
    page.run()
    assert LEAVE.lower() in str(page.text_area(f"{box}_questions").value).lower()
    page.button(f"{box}_compare").click().run()
    assert not page.exception
    shown = " ".join(str(text.value) for text in page.markdown)
    assert "different results" in shown
    assert ":red[:material/do_not_disturb_on:]" in shown
    assert running.documents.collection("demo", handbook.id).overrides == {}, "nothing is saved yet"
    page.button("collections_preset_save").click().run()
    assert running.documents.collection("demo", handbook.id).overrides["top_k"] == 3
    employee = signed_in(Role.EMPLOYEE)[1]
    with pytest.raises(NotAllowed):
        previews.compare(employee, handbook, before, before, [LEAVE])


NOTHING = dict.fromkeys(
    (
        "kind",
        "start",
        "end",
        "document_id",
        "user_group",
        "collection_id",
        "language",
        "outcome",
        "rating",
        "text",
        "most",
    )
)


class TestWithKeys:
    """A provider embeds and reranks."""

    @pytest.fixture
    def settings(self, settings: Settings, provider_standin: ProviderStandin) -> Settings:
        return replace(
            settings,
            openai_api_key="sk-test",
            openai_base_url=provider_standin.openai_url,
            cohere_api_key="co-test",
            cohere_base_url=provider_standin.cohere_url,
        )

    def test_models_are_asked_only_where_that_is_wanted(
        self,
        running: Services,  # noqa: F811
        handbook: Collection,  # noqa: F811
        signed_in: SignIn,  # noqa: F811
        provider_standin: ProviderStandin,
    ) -> None:
        identity, before = signed_in(Role.ADMIN)[1], profile_of(handbook)
        estimate = running.previews.estimate(handbook, before, before, questions=1)
        assert estimate is not None
        assert estimate > 0
        assert not running.previews.needs_paid_calls(handbook), "the built-in embedder compares"
        provider_standin.calls.clear()
        after = before.changed(top_k=1)
        (free,) = running.previews.compare(identity, handbook, before, after, [LEAVE])
        assert not provider_standin.calls
        assert free.cost == 0
        (paid,) = running.previews.compare(identity, handbook, before, after, [LEAVE], with_paid_models=True)
        assert provider_standin.calls["rerank"] == 2
        assert paid.cost is not None
        assert Decimal(0) < paid.cost <= estimate


def test_titles_and_help_of_settings_are_in_the_catalogues() -> None:
    template = catalogues.template()
    for text in (
        "Passage size",
        "The maximum length of a passage. Long passages keep more of the text around a fact; "
        "short passages are found more exactly.",
        "characters",
        "HR documents",
        "Thorough",
    ):
        assert text in template
