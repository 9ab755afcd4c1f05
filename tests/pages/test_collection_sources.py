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
from tests.integration_rows import needs
from tests.standins.bucket import ACCESS_KEY, SECRET_KEY, BucketStandin
from tests.standins.github import GitHubStandin, repository
from tests.standins.website import WebsiteStandin

SignIn = Callable[[Role], tuple[AppTest, Identity]]


@pytest.fixture
def github() -> Iterator[GitHubStandin]:
    pytest.importorskip("rag.integrations.sources.github")
    with GitHubStandin() as server:
        server.repositories = [repository("planner")]
        yield server


@pytest.fixture
def storage() -> Iterator[BucketStandin]:
    pytest.importorskip("rag.integrations.sources.s3")
    with BucketStandin() as server:
        server.files = {"hr/leave.md": b"# Leave\n\nTwenty-eight days."}
        yield server


@pytest.fixture
def site() -> Iterator[WebsiteStandin]:
    pytest.importorskip("rag.integrations.sources.website")
    with WebsiteStandin() as server:
        server.write("/", "Leave rules", "Twenty-eight days of paid leave for everybody who works here.")
        yield server


@pytest.fixture
def settings(
    settings: Settings, github: GitHubStandin, storage: BucketStandin, site: WebsiteStandin, tmp_path: Path
) -> Settings:
    (tmp_path / "papers").mkdir()
    papers = str(tmp_path / "papers")
    variables = {"GITHUB_API_URL": github.url}
    own = f"{storage.host},{site.host}"
    return replace(settings, integration_variables=variables, sync_folders=papers, sync_hosts=own)


@pytest.fixture
def page(signed_in: SignIn, collection: Collection) -> AppTest:
    """The page of the collection, as an administrator sees it."""
    tab, _ = signed_in(Role.ADMIN)
    return (
        tab.run().switch_page("collection_settings.py").run().button(f"collections_open_{collection.id}").click().run()
    )


def choose(page: AppTest, kind: str) -> AppTest:
    return page.pills("collections_source_kind").set_value(kind).run()


def fill_in(page: AppTest, kind: str, **values: str) -> None:
    for name, value in values.items():
        page.text_input(f"collections_follow_{kind}_{name}").set_value(value)


def follow(page: AppTest, kind: str, value: str) -> AppTest:
    choose(page, kind)
    fill_in(page, kind, **{"folder": {"path": value}, "github": {"owner": value}}[kind])
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
    assert "GitHub account or repository **acme**" in shown
    assert "1 unchanged" in shown
    (earlier,) = page.dataframe
    assert list(earlier.value["Documents"]) == ["1 added"], "the sync before stays to be looked back on"
    page.selectbox(f"schedule_{collection.id}_github").set_value(60).run()
    page.button("collections_unfollow_github").click().run()
    page.button("collections_unfollow_github_confirmed").click().run()
    assert running.syncs.sources(collection) == []
    page.button("collections_way_back_taken").click().run()
    assert not page.exception
    (back,) = running.syncs.sources(collection)
    assert (back.settings, back.every_minutes) == ({"owner": "acme"}, 60)
    page.button("collections_unfollow_github").click().run()
    page.button("collections_unfollow_github_confirmed").click().run()
    page.button("collections_way_back_gone").click().run()
    assert running.syncs.sources(collection) == []
    assert not has_button(page, "collections_sync")
    assert [d.title for d in running.documents.list("demo")] == ["planner"]


@pytest.mark.parametrize(
    ("kind", "value", "said"),
    [
        ("folder", "/etc", "may not be followed"),
        ("folder", " ", "Fill in this field: Folder on the server."),
        ("github", "", "Fill in this field: GitHub account or repository."),
        ("github", "o" * 301, "cannot be this long. Enter a text of at most 300 characters."),
    ],
    ids=["not_allowed", "blank", "empty", "too_long"],
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
    assert "Folder on the server" not in "".join(page.pills("collections_source_kind").options)


@needs("s3")
def test_a_bucket_is_followed_by_its_form_and_its_keys_are_not_shown_again(
    running: Services, page: AppTest, collection: Collection, storage: BucketStandin
) -> None:
    choose(page, "s3")
    fill_in(page, "s3", address="https://s3.example.com")
    page.button("collections_follow_s3_save").click().run()
    assert "name of the bucket" in page.error[0].value
    assert running.syncs.sources(collection) == []
    fill_in(page, "s3", address=f"http://{storage.host}", region="eu-1", bucket="papers", folder="hr")
    fill_in(page, "s3", access_key="nobody", secret_key=SECRET_KEY)
    page.button("collections_follow_s3_try").click().run()
    assert "rejected the keys" in page.error[0].value
    fill_in(page, "s3", access_key=ACCESS_KEY)
    page.button("collections_follow_s3_try").click().run()
    assert "leave.md" in page.success[0].value.replace("\\", "")
    assert running.syncs.sources(collection) == [], "checking keeps nothing"
    page.button("collections_follow_s3_save").click().run()
    assert not page.exception
    running.syncs.run("demo", collection.id)
    page.run()
    shown = "\n".join(str(m.value) for m in page.markdown).replace("\\", "")
    assert "S3-compatible storage **papers/hr**" in shown
    assert SECRET_KEY not in str(page)
    page.button("collections_unfollow_s3").click().run()
    page.button("collections_unfollow_s3_confirmed").click().run()
    page.button("collections_way_back_taken").click().run()
    page.button("collections_sync").click().run()
    running.syncs.run("demo", collection.id)
    assert running.syncs.runs("demo", collection.id)[0].unchanged == 1, "its keys are there again"
    assert [d.title for d in running.documents.list("demo")] == ["Leave"]


@needs("website", "google_drive")
def test_a_website_is_tried_and_followed_and_a_key_of_several_lines_is_checked(
    running: Services, page: AppTest, collection: Collection, site: WebsiteStandin
) -> None:
    choose(page, "google_drive")
    fill_in(page, "google_drive", folder="https://drive.google.com/drive/folders/abcdefgh")
    page.text_area("collections_follow_google_drive_key").set_value("no key")
    page.button("collections_follow_google_drive_try").click().run()
    assert "Paste the whole key" in page.error[0].value
    choose(page, "website")
    fill_in(page, "website", address=site.url)
    page.button("collections_follow_website_try").click().run()
    assert "Leave rules" in page.success[0].value
    page.button("collections_follow_website_save").click().run()
    assert not page.exception
    running.syncs.run("demo", collection.id)
    assert [d.title for d in running.documents.list("demo")] == ["Leave rules"]
    assert site.url in "\n".join(str(m.value) for m in page.run().markdown).replace("\\", "")
