"""Every route under whatever anybody sends: no error of the server's own, nothing answered that is not described."""

from __future__ import annotations

import logging
import random
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import CheckFunction
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from rag.server import API
from tests.api.bodies_at_random import random_body
from tests.api.callers import Api
from tests.integration_rows import unserved_paths

#: The documentation's own, by method and path: streams are among them.
EXAMPLES = {
    (method.upper(), path): tuple(example["value"] for example in content.get("examples", {}).values())
    for path, methods in API.openapi()["paths"].items()
    for method, operation in methods.items()
    for content in operation.get("requestBody", {}).get("content", {}).values()
}
CHECKS: list[CheckFunction] = [
    schemathesis.checks.not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]


@pytest.mark.filterwarnings("ignore")
def test_no_route_fails_or_answers_what_is_not_described(api: Api, caplog: pytest.LogCaptureFixture) -> None:
    document = api.ready_document()
    key = {"Authorization": f"Bearer {api.key(requests_per_minute=100_000)}"}
    schema = schemathesis.openapi.from_url(f"{api.url}/api/openapi.json", headers=key)
    for found in schema.get_all_operations():
        assert isinstance(found, Ok)
        operation = found.ok()
        if any(path and operation.path.endswith(path) for path in unserved_paths()):
            continue

        @settings(
            max_examples=8,
            deadline=None,
            database=None,
            derandomize=True,
            phases=[Phase.explicit, Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy())
        def call(case: Any) -> None:
            # Half of all calls are about something that is there.
            for name, known in (("document_id", document.id), ("collection_id", api.collection.id)):
                if name in case.path_parameters and case.method == "GET" and random.random() < 0.5:
                    case.path_parameters[name] = str(known)
            case.call_and_validate(headers=key, checks=CHECKS)

        call()
        for example in EXAMPLES.get((operation.method.upper(), operation.path), ()):
            case = operation.Case(body=example, media_type="application/json")
            case.call_and_validate(headers=key, checks=CHECKS)
    assert not [record for record in caplog.records if record.exc_info]


def test_no_body_leaves_a_traceback(api: Api, caplog: pytest.LogCaptureFixture) -> None:
    """`benchmarks/fuzz_api.py` does the same with 10,000."""
    chance = random.Random(7)
    caller = api.client(api.key(requests_per_minute=100_000))
    with caplog.at_level(logging.WARNING):
        for _ in range(150):
            content, kind = random_body(chance)
            path = chance.choice(
                ["/api/rag/chat", "/api/rag/search", f"/api/collections/{api.collection.id}/documents"]
            )
            answer = caller.post(path, content=content, headers={"Content-Type": kind})
            assert answer.status_code < 500, (path, content[:200])
    assert not [record for record in caplog.records if record.exc_info]
