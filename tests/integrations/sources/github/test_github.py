"""The GitHub loader against a stand-in of the REST API over real HTTP."""

from __future__ import annotations

import time
from collections.abc import Iterator

import httpx
import pytest

from rag.errors import (
    NotFound,
    ProviderAnswerInvalid,
    ProviderError,
    ProviderKeyRejected,
    ProviderQuotaExhausted,
    ProviderUnavailable,
)
from rag.ingestion.chunking import chunk_document
from rag.ingestion.loaders.markdown import load_markdown
from rag.integrations.sources.github.github import GitHub
from tests.patience import patient
from tests.standins.github import GitHubStandin, repository
from tests.standins.github import GitHubStandin as Standin


@pytest.fixture
def api() -> Iterator[Standin]:
    with GitHubStandin() as server:
        yield server


@pytest.fixture
def waits() -> list[float]:
    return []


@pytest.fixture
def github(api: Standin, waits: list[float]) -> Iterator[GitHub]:
    client = GitHub(api_url=api.url, client=httpx.Client(timeout=patient(5)), wait=waits.append)
    yield client
    client.close()


def test_a_repository_is_its_particulars_and_its_readme(github: GitHub) -> None:
    found = list(github.repositories("acme"))
    assert [item.name for item in found] == ["planner", "empty"]
    loaded = load_markdown(github.source_of(found[0]))
    assert loaded.pages[0].text.startswith(
        "Repository: planner\nDescription: Plans shifts\nLanguage: Python\nStars: 42\n"
        "Topics: planning, shifts\nUpdated: 2026-01-05\n\n# Planner"
    )
    assert found[0].metadata()["updatedAt"] == "2026-01-05T10:00:00+00:00"
    chunks = chunk_document(loaded.pages, loaded.sections, method="markdown", file_name="planner")
    assert all(chunk.content.startswith("Repository: planner") for chunk in chunks)
    assert "Description: Plans shifts" in load_markdown(github.source_of(found[1])).pages[0].text


def test_one_repository_is_read_by_its_name_alone(github: GitHub, api: Standin) -> None:
    for written in ("acme/forked", "https://github.com/acme/forked", "github.com/acme/forked.git", "acme/forked/"):
        assert [found.full_name for found in github.repositories(written)] == ["acme/forked"], written
    assert {path.partition("?")[0] for path, _ in api.requests} == {"/repos/acme/forked"}
    for wrong in ("acme/nothing", "acme/..", "acme/a/b", "acme/", "https://example.com/acme/planner", "acme/pl anner"):
        with pytest.raises(NotFound):
            list(github.repositories(wrong))


def test_all_pages_of_a_large_account_are_read(github: GitHub, api: Standin) -> None:
    api.repositories = [repository(f"r{number}") for number in range(230)]
    assert len(list(github.repositories("acme"))) == 230


def test_a_token_is_sent_and_one_that_is_rejected_says_so(api: Standin) -> None:
    github = GitHub(api_url=api.url, token="secret")
    list(github.repositories("acme"))
    assert {authorization for _, authorization in api.requests} == {"Bearer secret"}
    api.faults = [(401, {}, "{}")]
    with pytest.raises(ProviderKeyRejected, match="GITHUB_TOKEN"):
        list(github.repositories("acme"))
    github.close()


def test_a_short_limit_is_waited_for(github: GitHub, api: Standin, waits: list[float]) -> None:
    api.faults = [
        (429, {"retry-after": "7"}, "{}"),
        (403, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": str(int(time.time()) + 20)}, "{}"),
    ]
    assert len(list(github.repositories("acme"))) == 2
    assert waits[0] == 7
    assert 15 < waits[1] <= 20


def test_a_long_limit_is_left_to_the_caller_with_its_time(github: GitHub, api: Standin, waits: list[float]) -> None:
    api.faults = [(403, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": str(int(time.time()) + 1800)}, "{}")]
    with pytest.raises(ProviderQuotaExhausted, match="30 minutes") as raised:
        list(github.repositories("acme"))
    assert 1790 < raised.value.details["retry_after_seconds"] <= 1800
    assert waits == []


def test_what_is_not_there_or_not_readable_says_so(github: GitHub, api: Standin, waits: list[float]) -> None:
    for owner in ("nobody", "../x", ""):
        with pytest.raises(NotFound):
            list(github.repositories(owner))
    api.faults = [(200, {}, "<html>")]
    with pytest.raises(ProviderAnswerInvalid):
        list(github.repositories("acme"))
    api.faults = [(200, {}, '[{"name": "x"}]')]
    with pytest.raises(ProviderAnswerInvalid):
        list(github.repositories("acme"))
    api.faults = [(502, {}, "")]
    assert len(list(github.repositories("acme"))) == 2
    api.shutdown()
    api.server_close()
    with pytest.raises(ProviderUnavailable):
        list(github.repositories("acme"))


def test_a_redirect_is_followed_on_the_same_server_and_nowhere_else(api: Standin) -> None:
    github = GitHub(api_url=api.url, token="secret")
    (planner,) = (item for item in github.repositories("acme") if item.name == "planner")
    api.faults = [(301, {"location": f"{api.url}/repos/acme/planner/readme"}, "")]
    assert github.readme(planner).startswith(b"# Planner")
    with GitHubStandin() as elsewhere:
        api.faults = [(301, {"location": f"{elsewhere.url}/repos/acme/planner/readme"}, "")]
        with pytest.raises(ProviderError, match="HTTP 301"):
            github.readme(planner)
        assert elsewhere.requests == []
