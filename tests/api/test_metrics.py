"""What Prometheus reads, and who may."""

from __future__ import annotations

from dataclasses import replace

from prometheus_client.parser import text_string_to_metric_families

from tests.api.callers import Api
from tests.standins.providers import ProviderStandin

QUESTION = "How many days of annual leave do employees have?"


def samples(text: str) -> dict[tuple[str, tuple[str, ...]], float]:
    families = text_string_to_metric_families(text)
    each = (sample for family in families for sample in family.samples if "le" not in sample.labels)
    return {(item.name, tuple(value for _, value in sorted(item.labels.items()))): item.value for item in each}


def test_a_question_is_counted_with_its_time_and_its_cost(api: Api, provider_standin: ProviderStandin) -> None:
    api.ready_document()
    before = samples(api.client().get("/metrics").text)
    provider_standin.reply("Employees have 25 days of annual leave [1].")
    caller = api.client(api.key("chat"))
    assert caller.post("/api/rag/chat", json={"query": QUESTION}).status_code == 200
    assert caller.get("/api/nobody/knows/this/path").status_code == 404
    after = samples(api.client().get("/metrics").text)

    def rise(name: str, *labels: str) -> float:
        return after.get((name, labels), 0) - before.get((name, labels), 0)

    assert rise("hr_request_seconds_count", "chat", "200") == 1
    assert rise("hr_request_seconds_count", "api", "404") == 1
    assert rise("hr_first_text_seconds_count") == 1
    assert rise("hr_answer_seconds_count", "answered") == 1
    models = [labels for name, labels in after if name == "hr_paid_calls_total" and "chat" in labels]
    called = [labels for labels in models if rise("hr_paid_calls_total", *labels) >= 1]
    assert called
    assert all(rise("hr_cost_dollars_total", *labels) > 0 for labels in called)
    assert after["hr_answers_under_way", ()] == 0
    assert after["hr_answers_without_text", ()] == 0
    assert after["hr_database_up", ()] == 1
    assert after["hr_database_connections", ("used",)] >= 0
    # Nothing that a visitor chose, and nobody's name.
    assert "nobody" not in str(after)
    assert "demo" not in str(after)


def test_figures_are_for_this_machine_or_for_the_key(api: Api) -> None:
    assert api.client().get("/metrics").status_code == 200
    assert api.client(**{"X-Forwarded-For": "203.0.113.9"}).get("/metrics").status_code == 401
    assert api.client(Host="hr.example.com").get("/metrics").status_code == 401
    with_key = replace(api.parts.settings, metrics_key="a-key-of-its-own")
    object.__setattr__(api.parts, "settings", with_key)  # the parts are frozen, and assembled before
    assert api.client().get("/metrics").status_code == 401
    assert api.client("another").get("/metrics").status_code == 401
    assert api.client("a-key-of-its-own").get("/metrics").status_code == 200
