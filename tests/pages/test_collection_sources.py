"""What a collection is kept equal to, on its page: an account or a folder followed, synced, and left again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from rag.services import Services
from rag.settings import Settings
from rag.types import Collection, Identity, Role
from tests.github_standin import GitHubStandin, repository, running_github

SignIn = Callable[[Role], tuple[AppTest, Identity]]


@pytest.fixture
def github() -> Iterator[GitHubStandin]:
    with running_github() as server:
        server.repositories = [repository("planner")]
        yield server


@pytest.fixture
def settings(settings: Settings, github: GitHubStandin, tmp_path: Path) -> Settings:
    (tmp_path / "papers").mkdir()
    return replace(settings, github_api_url=github.url, sync_folders=str(tmp_path / "papers"))


@pytest.fixture
def page(signed_in: SignIn, collection: Collection) -> AppTest:
    """The page of the collection, as an administrator sees it."""
    tab, _ = signed_in(Role.ADMIN)
    return (
        tab.run().switch_page("collection_settings.py").run().button(f"collections_open_{collection.id}").click().run()
    )


def follow(page: AppTest, kind: str, value: str) -> AppTest:
    page.text_input(f"collections_follow_{kind}").set_value(value)
    return page.button(f"collections_follow_{kind}_save").click().run()


def has_button(page: AppTest, key: str) -> bool:
    return any(button.key == key for button in page.button)


def test_an_account_is_followed_synced_and_left_with_its_documents_kept(
    running: Services, page: AppTest, collection: Collection
) -> None:
    follow(page, "github", " acme ")
    assert not page.exception
    (run,) = running.syncs.runs("demo", collection.id)
    assert run.is_open, "following asks for the first sync"
    running.syncs.run("demo", collection.id)
    page.button("collections_sync").click().run()
    assert len(running.syncs.runs("demo", collection.id)) == 2
    running.syncs.run("demo", collection.id)
    shown = "\n".join(str(m.value) for m in page.run().markdown)
    assert "GitHub account **acme**" in shown
    assert "1 unchanged" in shown
    page.button("collections_unfollow_github").click().run()
    assert running.syncs.sources(collection) == []
    assert not has_button(page, "collections_sync")
    assert [d.title for d in running.documents.list("demo")] == ["planner"]


@pytest.mark.parametrize(
    ("kind", "value", "said"),
    [
        ("folder", "/etc", "none of RAG_SYNC_FOLDERS"),
        ("folder", " ", "Folder on the server: fill in which one."),
        ("github", "", "GitHub account: fill in which one."),
    ],
)
def test_what_cannot_be_followed_is_said_and_nothing_is_kept(
    running: Services, page: AppTest, collection: Collection, kind: str, value: str, said: str
) -> None:
    follow(page, kind, value)
    assert said in page.error[0].value.replace("\\", "")
    assert running.syncs.sources(collection) == []
    assert not page.exception


def test_a_folder_that_may_be_followed_is_offered_only_where_there_is_one(
    running: Services, page: AppTest, collection: Collection, tmp_path: Path
) -> None:
    follow(page, "folder", str(tmp_path / "papers"))
    assert [source.kind for source in running.syncs.sources(collection)] == ["folder"]
    assert not any(field.key == "collections_follow_folder" for field in page.text_input)
