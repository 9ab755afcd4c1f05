"""The threshold on a collection's page: what decides, what was measured, when and on what, and measuring it there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from rag.services import Services
from rag.settings import Settings
from rag.types import Collection, Identity, Role, UploadOptions
from tests.pages.small_pdf import pdf
from tests.standins.providers import ProviderStandin

PAGE = "collection_settings.py"
TOPICS = ("vacation", "parking", "glasses", "travel", "overtime", "training", "pension", "canteen", "bicycle")
RULES = tuple(
    tuple(f"The {topic} rule number {n} says what everyone has to know about {topic} here." for n in range(16))
    for topic in TOPICS
)


@pytest.fixture
def settings(tmp_path: Path, provider_standin: ProviderStandin) -> Settings:
    """An installation with an embedding model."""
    return Settings(data_dir=tmp_path / "data", openai_api_key="key", openai_base_url=provider_standin.openai_url)


@pytest.fixture
def rules(running: Services) -> Collection:
    """A collection on the provider's embedder, without documents."""
    return running.documents.ensure_collection("demo", "Rules", "hr", "openai/text-embedding-3-small@1536", "en")


@pytest.fixture
def page(signed_in: Callable[[Role], tuple[AppTest, Identity]], rules: Collection) -> AppTest:
    tab, _ = signed_in(Role.ADMIN)
    tab.run().switch_page(PAGE).run()
    return tab.button(f"collections_open_{rules.id}").click().run()


def texts(page: AppTest) -> str:
    return "\n".join(str(m.value) for m in page.markdown).replace("\\", "")


def test_before_anything_is_measured_the_embedders_own_decides(page: AppTest) -> None:
    assert "This value is the default of text-embedding-3-small by OpenAI" in texts(page)
    assert "This collection has not been measured yet." in texts(page)


def test_too_little_text_is_said_on_the_page(page: AppTest) -> None:
    page.button("collections_calibrate").click().run()
    assert not page.exception
    assert "Rules has too little text" in page.error[0].value


def test_a_threshold_is_measured_and_shown_with_its_day_and_its_passages(
    running: Services, rules: Collection, page: AppTest
) -> None:
    running.pipeline.process_document(
        file=pdf(RULES),
        file_name="rules.pdf",
        tenant_id="demo",
        collection=rules,
        options=UploadOptions(generate_metadata=False),
    )
    page.button("collections_calibrate").click().run()
    assert not page.exception
    kept = running.documents.collection("demo", rules.id)
    assert kept.calibrated_threshold is not None
    assert kept.calibrated_at is not None
    shown = texts(page)
    assert f"at least {kept.calibrated_threshold:.3f}. This value was measured on this collection." in shown
    assert f"on {kept.calibrated_at.day} {kept.calibrated_at:%b %Y}" in shown
    assert f"by OpenAI, 1,536 dimensions, using {kept.calibrated_passages} passages of this collection" in shown
    assert page.button("collections_calibrate").label == "Measure again"


def test_one_that_is_set_is_said_with_what_happens_where_nothing_reaches_it(
    running: Services, rules: Collection, page: AppTest, signed_in: Callable[[Role], tuple[AppTest, Identity]]
) -> None:
    _, admin = signed_in(Role.ADMIN)
    running.documents.override_collection(admin, rules.id, {"threshold_mode": "absolute"})
    shown = texts(page.run())
    assert "at least 0.700. This value is set for this collection." in shown
    assert "If no passage reaches the value set for this collection, a lower value is used" in shown
