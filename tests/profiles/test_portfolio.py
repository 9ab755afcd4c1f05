"""Source 001 from end to end: a folder of PDFs and a GitHub account kept in sync, and its own question answered."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from rag.answering.follow_ups import fill_up, questions_from
from rag.errors import DocumentAlreadyStored, InvalidInput
from rag.ingestion.loaders.values import ExtractionLimits
from rag.ingestion.sources.folder import FolderSource, allowed_folder
from rag.ingestion.sources.sync import SyncReport, SyncWriter, sync_collection
from rag.profiles import PORTFOLIO
from rag.retrieval.retriever import Retriever
from rag.services import Services
from rag.settings import Settings
from rag.types import Collection, DocumentStatus, Identity, Outcome, Question, UploadOptions
from tests.hostile import pdf_of
from tests.standins.github import README, GitHubStandin, repository
from tests.standins.providers import ProviderStandin

QUESTION = "What AI projects have you built?"
RESUME = [
    ["Marlowe Quenby", "EXPERIENCE", "Brightmoor (Logistics) | Engineer | Leeds | 2022 - 2026",
     "I built the AI projects that plan shifts for three depots.", "EDUCATION", "Northmoor | MA | Leeds | 2012 - 2014",
     "SKILLS", "Python, AI"],
]  # fmt: skip
JOURNEY = [["My journey", "The AI projects I built taught me to ask why before how."]]


@pytest.fixture
def github() -> Iterator[GitHubStandin]:
    pytest.importorskip("rag.integrations.sources.github")
    with GitHubStandin() as server:
        server.repositories = [repository("planner", description="AI projects: plans shifts")]
        yield server


@pytest.fixture
def settings(settings: Settings, github: GitHubStandin, tmp_path: Path) -> Settings:
    return replace(
        settings, integration_variables={"GITHUB_API_URL": github.url}, sync_folders=str(tmp_path / "papers")
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "papers"
    made.mkdir()
    (made / "resume_2026.pdf").write_bytes(pdf_of(RESUME))
    (made / "journey_fy-2025-2026.pdf").write_bytes(pdf_of(JOURNEY))
    return made


@pytest.fixture
def portfolio(app_services: Services, admin: Identity, folder: Path) -> Collection:
    made = app_services.documents.create_collection(admin, "Portfolio", "portfolio")
    persona = {"persona_name": "Marlowe Quenby", "persona_facts": "Lives in Leeds."}
    app_services.documents.override_collection(admin, made.id, persona)
    app_services.syncs.set_source(admin, made, "folder", {"path": str(folder)})
    app_services.syncs.set_source(admin, made, "github", {"owner": "acme"})
    return app_services.documents.collection("demo", made.id)


def sync(services: Services, admin: Identity, collection: Collection) -> SyncReport:
    report = services.syncs.sync_now(admin, collection)
    for document_id in report.documents:
        services.pipeline.run("demo", document_id)
    return report


def counts(report: SyncReport) -> tuple[int, ...]:
    return report.added, report.updated, report.unchanged, report.removed, report.failed


def test_only_what_changed_is_read_again(
    app_services: Services,
    admin: Identity,
    portfolio: Collection,
    folder: Path,
    github: GitHubStandin,
    provider_standin: ProviderStandin,
) -> None:
    assert counts(sync(app_services, admin, portfolio)) == (3, 0, 0, 0, 0)
    documents = {d.title: d for d in app_services.documents.list("demo", collection_id=portfolio.id)}
    assert {d.status for d in documents.values()} == {DocumentStatus.COMPLETED}
    # Pages of a PDF are shown as pictures, wherever it came from.
    assert {d.mime_type for d in documents.values()} == {"application/pdf", "text/markdown"}
    planner = documents["planner"]
    assert (planner.metadata["repository"]["stars"], planner.metadata["categories"]) == (42, ["github"])
    bills, requests = len(provider_standin.usages), len(github.requests)

    assert counts(sync(app_services, admin, portfolio)) == (0, 0, 3, 0, 0)
    assert len(provider_standin.usages) == bills
    assert len(github.requests) == requests + 1  # the list; no README

    github.repositories[0]["updated_at"] = "2026-06-01T00:00:00Z"
    (folder / "resume_2026.pdf").write_bytes(pdf_of([[*RESUME[0], "Rust"]]))
    (folder / "journey_fy-2025-2026.pdf").unlink()
    assert counts(sync(app_services, admin, portfolio)) == (0, 2, 0, 1, 0)
    assert len(app_services.documents.list("demo", collection_id=portfolio.id)) == 2


def test_the_documents_own_question_is_answered_as_it_describes(
    app_services: Services, admin: Identity, portfolio: Collection, provider_standin: ProviderStandin, ask: Any
) -> None:
    sync(app_services, admin, portfolio)
    provider_standin.requests.clear()
    provider_standin.reply(
        lambda messages: (
            "Which depots?\nWhich tools?\nSince when?"
            if "Suggest 3" in str(messages[0]["content"])
            else "I built the AI projects that plan shifts [1]."
        )
    )
    live, message = ask(portfolio, QUESTION)
    assert message.outcome is Outcome.ANSWERED
    assert live.follow_ups == ("Which depots?", "Which tools?", "Since when?")

    embedding, answer, _ = (body for _, body in provider_standin.requests)
    assert (embedding["model"], embedding["input"]) == ("text-embedding-3-small", [QUESTION])  # as it is: no rewriting
    assert answer["model"] == "meta-llama/llama-3.1-8b-instruct:free"
    rules, asked = answer["messages"][0]["content"], answer["messages"][-1]["content"]
    assert rules.startswith("You are Marlowe Quenby")
    assert "Lives in Leeds." in rules
    assert "\n\n---\n\n" in asked
    assert asked.index("plan shifts") < asked.index("Repository: planner")
    assert "ask why before how" not in asked  # a journey is none of github, resume, linkedin

    with app_services.database.transaction("demo") as connection:
        row = connection.execute("SELECT rag_details FROM chat_logs").fetchone()
    assert row is not None
    steps = {step["name"]: step["detail"] for step in row[0]["steps"]}
    assert "github, resume, linkedin" in steps["filter"]
    assert row[0]["search"]["vectorTopK"] == 20  # limit 5, times 4


def test_the_api_tells_sources_and_next_questions_as_the_document_ends_an_answer(
    app_services: Services,
    admin: Identity,
    portfolio: Collection,
    provider_standin: ProviderStandin,
    client_of: Callable[[Identity], TestClient],
) -> None:
    sync(app_services, admin, portfolio)
    provider_standin.reply(
        lambda messages: (
            "Which depots?\nWhich tools?\nSince when?"
            if "Suggest 3" in str(messages[0]["content"])
            else "I built the AI projects that plan shifts [1]."
        )
    )
    client = client_of(admin)
    said = client.post("/api/rag/chat", json={"query": QUESTION, "collection": "Portfolio"}).json()
    assert said["answer"] == "I built the AI projects that plan shifts [1]."
    assert said["followUps"] == ["Which depots?", "Which tools?", "Since when?"]
    assert said["sourceNames"] == list(dict.fromkeys(source["title"] for source in said["sources"]))
    assert len(said["sourceNames"]) == 2
    streamed = {"query": QUESTION, "collection": "Portfolio", "options": {"stream": True}}
    text = client.post("/api/rag/chat", json=streamed).text
    events = [json.loads(line[6:]) for line in text.split("\n\n") if line.startswith("data: ")]
    done = {"type": "done", "sources": said["sources"], "outcome": "answered", "state": "complete", "notices": []}
    assert events[-2:] == [{"type": "followUps", "data": said["followUps"]}, done]
    without = {"query": QUESTION, "collection": "Portfolio", "options": {"followUps": 0}}
    assert "followUps" not in client.post("/api/rag/chat", json=without).json()


def test_a_folder_that_the_server_may_not_follow_is_refused(settings: Settings, folder: Path, tmp_path: Path) -> None:
    assert allowed_folder(str(folder), settings) == folder
    for elsewhere in (tmp_path, folder / "..", Path("/etc"), ""):
        with pytest.raises(InvalidInput, match="RAG_SYNC_FOLDERS"):
            allowed_folder(str(elsewhere), settings)
    with pytest.raises(InvalidInput, match="no folder"):
        FolderSource(folder / "gone", ExtractionLimits())


def test_a_file_that_cannot_be_read_keeps_the_others(
    app_services: Services, portfolio: Collection, folder: Path
) -> None:
    (folder / "large.pdf").write_bytes(pdf_of(RESUME) + b"%" * 200_000)
    source = FolderSource(folder, ExtractionLimits(maximum_bytes=100_000))
    writer = SyncWriter(app_services.database, app_services.files, portfolio, source.kind, queue=None)
    report = sync_collection(writer, source)
    assert counts(report) == (2, 0, 0, 0, 1)
    assert "larger than the limit" in report.problems[0]


def test_a_folder_that_lists_nothing_any_more_removes_nothing_unasked(
    app_services: Services, portfolio: Collection, folder: Path
) -> None:
    source = FolderSource(folder, ExtractionLimits())
    writer = SyncWriter(app_services.database, app_services.files, portfolio, source.kind, queue=None)
    sync_collection(writer, source)
    for path in folder.iterdir():
        path.unlink()
    with pytest.raises(InvalidInput, match="lists nothing"):
        sync_collection(writer, source)


def test_a_year_finds_the_jobs_that_held_it_and_only_the_condition_that_leaves_nothing_is_dropped(
    app_services: Services, admin: Identity
) -> None:
    made = app_services.documents.create_collection(admin, "Jobs", "portfolio")
    jobs = [
        ["EXPERIENCE", "Contoso (Retail) | Adviser | York | 2019 - 2023", "I advised shops."],
        ["EXPERIENCE", "Brightmoor (Logistics) | Engineer | Leeds | 2024 - Present", "I plan shifts."],
        ["EDUCATION", "Northmoor, a master of arts"],
    ]
    for number, page in enumerate(jobs):
        app_services.pipeline.process_document(
            file=pdf_of([page]),
            file_name=f"resume_{number}.pdf",
            tenant_id="demo",
            collection=made,
            options=UploadOptions(generate_metadata=False),
        )

    retriever = Retriever(app_services.database, app_services.providers, today=lambda: date(2026, 6, 1))

    def found(text: str) -> tuple[set[str], str]:
        retrieval = retriever.retrieve(Question(text=text, identity=admin, collection=made), profile=PORTFOLIO)
        steps = {step.name: step.detail for step in retrieval.response.rag_details.steps or []}
        return {str(r.metadata.get("company")) for r in retrieval.hits}, steps.get("filter", "")

    assert found("What was your job in 2021?")[0] == {"Contoso"}
    this_year = datetime.now(UTC).year
    assert found(f"What is your job in {this_year}?")[0] == {"Brightmoor"}
    # No passage is of the kind `journey`: the year stays.
    companies, said = found("What did you learn in 2021?")
    assert companies == {"Contoso"}
    assert "0 of" in said
    assert said.count("dropped") == 1
    # No passage is of that year: the kind stays, and so do all of them.
    companies, said = found("What was your job in 1999?")
    assert companies == {"Contoso", "Brightmoor", "None"}
    assert said.count("dropped") == 1


def test_next_questions_are_questions_and_filled_up_to_three() -> None:
    reply = "Which depots?\nI can also tell about tools.\nPlanner\nWelke diensten?"
    asked = questions_from(reply, original="What AI projects?", count=3)
    assert asked == ("Which depots?", "Welke diensten?")
    more = ["what ai projects?", "Which depots?", "Since when?", "Where?"]
    assert fill_up(asked, more, original="What AI projects?", count=3) == (
        "Which depots?",
        "Welke diensten?",
        "Since when?",
    )


def test_three_next_questions_come_from_the_documents_where_the_model_writes_none(
    app_services: Services,
    admin: Identity,
    provider_standin: ProviderStandin,
    client_of: Callable[[Identity], TestClient],
) -> None:
    written = ["Which AI projects plan shifts?", "Which depots plan shifts?", "Who built the AI projects for depots?"]
    described = json.dumps({"summary": "A résumé.", "topics": ["AI"], "questions": written})
    provider_standin.reply(
        lambda messages: (
            described
            if "<document" in str(messages)
            else "I can also tell about tools."
            if "Suggest 3" in str(messages[0]["content"])
            else "I built the AI projects that plan shifts [1]."
        )
    )
    made = app_services.documents.create_collection(admin, "Portfolio", "portfolio")
    app_services.pipeline.process_document(
        file=pdf_of(RESUME), file_name="resume_2026.pdf", tenant_id="demo", collection=made
    )
    said = client_of(admin).post("/api/rag/chat", json={"query": QUESTION, "collection": "Portfolio"}).json()
    assert said["outcome"] == "answered"
    assert len(set(said["followUps"])) == 3
    assert all(question.endswith("?") for question in said["followUps"])


def test_a_search_by_year_finds_the_jobs_of_that_year(
    app_services: Services, admin: Identity, client_of: Callable[[Identity], TestClient]
) -> None:
    made = app_services.documents.create_collection(admin, "Jobs", "portfolio")
    jobs = (
        "Contoso (Retail) | Adviser | York | 2019 - 2023",
        "Brightmoor (Logistics) | Engineer | Leeds | 2024 - Present",
    )
    for number, job in enumerate(jobs):
        app_services.pipeline.process_document(
            file=pdf_of([["EXPERIENCE", job, "I worked there."]]),
            file_name=f"resume_{number}.pdf",
            tenant_id="demo",
            collection=made,
            options=UploadOptions(generate_metadata=False),
        )

    def companies(year: int) -> set[str]:
        body = {"query": f"What was your job in {year}?", "collection": "Jobs"}
        found = client_of(admin).post("/api/rag/search", json=body).json()["results"]
        return {company for company in ("Contoso", "Brightmoor") if company in str(found)}

    assert companies(2019) == companies(2021) == companies(2023) == {"Contoso"}
    assert companies(2024) == companies(datetime.now(UTC).year) == {"Brightmoor"}


def test_the_same_bytes_are_not_added_twice_by_upload_folder_and_github(
    app_services: Services, admin: Identity, portfolio: Collection, folder: Path
) -> None:
    library = app_services.documents
    readme = README.encode()
    library.upload(admin, portfolio, "about.pdf", pdf_of(RESUME), UploadOptions(generate_metadata=False))
    report = app_services.syncs.sync_now(admin, portfolio)
    assert counts(report) == (2, 0, 1, 0, 0)  # the résumé is the upload
    assert report.problems == ("resume_2026.pdf: The same file is here already as “About”, so it is not added twice.",)
    for name, content in (("journey.pdf", pdf_of(JOURNEY)), ("README.md", readme)):
        with pytest.raises(DocumentAlreadyStored, match="which is already stored"):
            library.upload(admin, portfolio, name, content, UploadOptions(generate_metadata=False))
    (folder / "planner.md").write_bytes(readme)
    report = app_services.syncs.sync_now(admin, portfolio)
    assert (report.added, report.unchanged) == (0, 4), "a folder's copy of a README is the repository's"
    # Two files of one folder stay two documents, and what was deleted elsewhere comes from the source again.
    (folder / "journey_copy.pdf").write_bytes(pdf_of(JOURNEY))
    (uploaded,) = [d for d in library.list("demo", collection_id=portfolio.id) if d.title == "About"]
    library.delete(admin, uploaded.id)
    assert app_services.syncs.sync_now(admin, portfolio).added == 2
