"""The description of the API is enough for `openapi-python-client` to make a client that works."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rag.server import API
from tests.api.callers import Api

PACKAGE = "hr_assistant_client"


@pytest.fixture
def generated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that imports a module of the client made in this test."""
    described, folder = tmp_path / "openapi.json", tmp_path / "client"
    described.write_text(json.dumps(API.openapi()))
    # The generator would tidy the files up with tools of its own.
    (tmp_path / "config.yml").write_text("post_hooks: []\n")
    made = subprocess.run(
        [sys.executable, "-m", "openapi_python_client", "generate", "--path", described, "--output-path", folder,
         "--config", tmp_path / "config.yml"],
        capture_output=True, text=True,
    )  # fmt: skip
    assert made.returncode == 0, made.stdout + made.stderr
    # The one thing it cannot describe is a picture; its call exists without it.
    skipped = [line for line in (made.stdout + made.stderr).splitlines() if line.startswith(("WARNING", "ERROR"))]
    assert skipped == ["WARNING parsing GET /api/documents/{document_id}/pages/{page}.png within documents."]
    monkeypatch.syspath_prepend(str(folder))
    yield lambda name: importlib.import_module(f"{PACKAGE}.{name}")
    for name in [name for name in sys.modules if name.partition(".")[0] == PACKAGE]:
        del sys.modules[name]


def test_a_generated_client_asks_searches_and_is_refused_in_its_own_types(api: Api, generated: Any) -> None:
    document = api.ready_document()
    models, client = generated("models"), generated("client").AuthenticatedClient
    with client(base_url=api.url, token=api.key()) as caller:
        listed = generated("api.collections.list_collections").sync(client=caller)
        assert [collection.name for collection in listed.collections] == [api.collection.name]
        found = generated("api.questions.search").sync(client=caller, body=models.SearchBody(query="annual leave"))
        assert found.total == len(found.results) > 0
        answer = generated("api.questions.chat").sync(
            client=caller, body=models.ChatBody(query="How many days of annual leave do I have?")
        )
        assert isinstance(answer, models.ChatAnswer)
        assert answer.sources
        assert answer.outcome == "answered"
        shown = generated("api.documents.get_document").sync(document.id, client=caller)
        assert (shown.id, shown.status) == (document.id, "completed")
    with client(base_url=api.url, token="rag_" + "A" * 43) as stranger:
        refused = generated("api.service.me").sync_detailed(client=stranger)
        assert (refused.status_code, refused.parsed.code) == (401, "key_rejected")


def test_fields_of_bodies_that_may_be_left_out_have_no_default() -> None:
    """openapi-typescript takes a field with a default for one that is always there, and would have it sent."""
    described = API.openapi()
    operations = [operation for methods in described["paths"].values() for operation in methods.values()]
    waiting: list[Any] = [operation.get("requestBody", {}) for operation in operations]
    seen: set[str] = set()
    while waiting:
        for place, value in fields_of(waiting.pop()):
            assert "default" not in value, place
            if (name := value.get("$ref", "").rpartition("/")[2]) and name not in seen:
                seen.add(name)
                waiting.append(described["components"]["schemas"][name])
    assert {"ChatBody", "SearchBody", "NewCollection", "UploadForm"} <= seen
    told = described["components"]["schemas"]["NewCollection"]["properties"]["profile"]["description"]
    assert told.endswith('Default: "hr".')


def fields_of(described: Any, place: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each part of a description that is an object, with where it is."""
    if isinstance(described, dict):
        yield place, described
        for name, value in described.items():
            yield from fields_of(value, f"{place}/{name}")
    elif isinstance(described, list):
        for value in described:
            yield from fields_of(value, place)
