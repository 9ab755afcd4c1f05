"""Collections made as their source: what the descriptions say and the profiles do otherwise, tried by API."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable

import pytest
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import ParagraphStyle
from reportlab.platypus import Flowable, Paragraph, SimpleDocTemplate, Spacer
from starlette.testclient import TestClient

from rag.api import collections
from rag.api.app import Api
from rag.profiles import HR, PROFILES, profile_of
from rag.profiles.profile import SETTINGS, WITHOUT_OUR_STEPS
from rag.services import Services
from rag.types import Collection, Identity
from tests.profiles.conftest import Ask, SignedIn
from tests.standins.providers import ProviderStandin

Make = Callable[[str], Collection]
TOPICS = ("moving to Leeds", "my first team", "a failed launch", "learning to plan", "what I would do again")


@pytest.fixture
def make(app_services: Services, admin: Identity) -> Make:
    """Makes a collection by the API, as its source, with nothing said of its language."""

    def made(profile: str) -> Collection:
        with TestClient(SignedIn(Api([collections.router]), admin)) as client:
            body = {"name": f"{profile} as described", "profile": profile, "asSource": True}
            answer = client.post("/api/collections", json=body)
        assert answer.status_code == 201, answer.text
        return app_services.documents.collection("demo", answer.json()["id"])

    return made


@pytest.mark.parametrize("profile", PROFILES)
def test_steps_that_no_source_describes_are_off_in_a_collection_as_its_source(profile: str, make: Make) -> None:
    own = profile_of(make(profile))
    assert {name: own.value(name) for name in WITHOUT_OUR_STEPS} == dict(WITHOUT_OUR_STEPS)
    # Each step that measured better is among them; of the sources, only 004 reranks and translates.
    ours = {name for name, own in SETTINGS.items() if own.source.startswith("measured") and HR.value(name) is True}
    assert ours <= {*WITHOUT_OUR_STEPS, "rerank_each_wording"}


@pytest.mark.parametrize(("profile", "language"), [("notices", "ko"), ("legal", "ko"), ("hr", "en"), ("civil", "en")])
def test_a_collection_made_by_api_speaks_the_language_of_its_profile(profile: str, language: str, make: Make) -> None:
    assert make(profile).language == language


def journey_of(*, leading: float, space: float, sentences: int = 5) -> bytes:
    """A PDF of five paragraphs of several lines, set with a gap between them and no empty line."""
    style = ParagraphStyle("story", fontSize=11, leading=leading, spaceAfter=space)
    rest = " I moved on with the work and wrote down what went well and what did not." * sentences
    story: list[Flowable] = []
    for topic in TOPICS:
        story += [Paragraph(f"This part is about {topic}.{rest}", style), Spacer(1, 0)]
    made = io.BytesIO()
    SimpleDocTemplate(made, pagesize=A4).build(story)
    return made.getvalue()


def stored(services: Services, collection: Collection, content: bytes) -> list[tuple[str, str]]:
    """Add a PDF as uploads do; content and paragraphs of each chunk."""
    made = services.pipeline.process_document(
        file=content, file_name="journey_fy-2025-2026.pdf", tenant_id="demo", collection=collection
    )
    with services.database.transaction("demo") as connection:
        return connection.execute(
            "SELECT content, metadata->>'paragraphs' FROM document_chunks WHERE document_id = %s ORDER BY chunk_index",
            (made.document_id,),
        ).fetchall()


@pytest.mark.parametrize(("leading", "space"), [(13.2, 8.0), (16.5, 10.0), (22.0, 12.0)], ids=["1.2", "1.5", "double"])
def test_paragraphs_of_a_pdf_are_told_by_its_gaps(
    leading: float, space: float, make: Make, app_services: Services
) -> None:
    """001, "Paragraph-Aware: Respects paragraph boundaries" and "paragraph range" for a journey as PDF."""
    chunks = stored(app_services, make("portfolio"), journey_of(leading=leading, space=space))
    assert (chunks[0][1].split("-")[0], chunks[-1][1].split("-")[-1]) == ("1", str(len(TOPICS)))
    text = "\n\n".join(content for content, _ in chunks)
    for topic in TOPICS[1:]:
        assert f"\n\nThis part is about {topic}." in text
    # Within a paragraph no line is parted from the next.
    parts = [part for content, _ in chunks for part in content.strip().split("\n\n")[1:]]
    assert [part for part in parts if not part.startswith("This part is about")] == []


@pytest.mark.parametrize("is_as_source", [False, True])
def test_a_greeting_and_a_follow_up_are_asked_as_they_are_where_the_source_says_nothing_of_them(
    is_as_source: bool, make: Make, app_services: Services, admin: Identity, ask: Ask, provider_standin: ProviderStandin
) -> None:
    collection = (
        make("portfolio") if is_as_source else app_services.documents.create_collection(admin, "Papers", "portfolio")
    )
    stored(app_services, collection, journey_of(leading=13.2, space=8.0))
    provider_standin.reset()
    live, _ = ask(collection, "Hello!")
    assert bool(provider_standin.calls["embeddings"]) is is_as_source
    ask(collection, "Why did the launch fail?", conversation_id=live.conversation_id)
    written = sum("rewrite" in json.dumps(body).lower() for endpoint, body in provider_standin.requests)
    ask(collection, "And the team?", conversation_id=live.conversation_id)
    again = sum("rewrite" in json.dumps(body).lower() for endpoint, body in provider_standin.requests)
    assert again - written == (0 if is_as_source else 1)


def test_a_portfolio_that_is_not_as_its_source_reads_pdfs_as_before(app_services: Services, admin: Identity) -> None:
    usual = app_services.documents.create_collection(admin, "Papers", "portfolio")
    assert {paragraphs for _, paragraphs in stored(app_services, usual, journey_of(leading=13.2, space=8.0))} == {"1"}


def test_a_portfolio_as_its_source_joins_bare_passages_by_rules_in_one_prompt(
    make: Make, app_services: Services, ask: Ask, provider_standin: ProviderStandin
) -> None:
    """001, "Context Construction": chunks and the separator between them, nothing else."""
    collection = make("portfolio")
    stored(app_services, collection, journey_of(leading=13.2, space=8.0, sentences=14))
    provider_standin.reset()
    provider_standin.reply("The launch failed because nobody had asked the drivers.")
    ask(collection, "Why did the launch fail?")
    body = next(body for endpoint, body in provider_standin.requests if endpoint == "chat")
    system, user = (message["content"] for message in body["messages"])
    assert "[1]" not in system + user
    assert "Answer the question in English from the context below." in system
    (context,) = re.findall(r"<passages>\n(.*)\n</passages>", user, re.DOTALL)
    with app_services.database.transaction("demo") as connection:
        rows = connection.execute("SELECT content FROM document_chunks").fetchall()
    assert len(rows) > 1
    assert sorted(context.split("\n\n---\n\n")) == sorted(content for (content,) in rows)
