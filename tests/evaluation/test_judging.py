"""Answers checked by a model, and the prompt that is shown: against the provider's stand-in."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from rag.errors import InvalidInput
from rag.evaluation import judging
from rag.evaluation.golden import GoldenQuestion
from rag.profiles import HR, profile_of
from rag.services import Services, assemble, program_of
from rag.settings import Settings
from rag.storage.database import Database
from rag.types import Collection, Usage
from tests.answering.test_answering_end_to_end import publish
from tests.standins.providers import ProviderStandin

GOLDEN = GoldenQuestion(question="How many vacation days do full-time employees receive?")
ANSWER = "Full-time employees receive 25 vacation days [1]. The canteen serves soup [1]."
VERDICTS = {"sentences": [{"sentence": "25 days", "supported": True}, {"sentence": "soup", "supported": False}]}


def replied(messages: list[dict[str, Any]]) -> str:
    return json.dumps(VERDICTS) if messages[0]["content"] == judging.SYSTEM else ANSWER


def calls_of_judge(standin: ProviderStandin) -> list[dict[str, Any]]:
    return [
        body for kind, body in standin.requests if kind == "chat" and body["messages"][0]["content"] == judging.SYSTEM
    ]


def test_a_model_checks_each_answer_once_within_the_budget_and_the_prompt_shown_is_the_one_sent(
    database: Database, collection: Collection, settings: Settings, provider_standin: ProviderStandin
) -> None:
    settings = replace(settings, openai_api_key="key", openai_base_url=provider_standin.openai_url)
    parts = assemble(settings, database)
    provider_standin.reply(replied)
    evaluations, admin = parts.evaluations, program_of("demo")
    try:
        publish(database, parts.providers, collection)
        run_id = evaluations.begin(collection, HR, [GOLDEN], is_judged=True)
        run = evaluations.work(collection, run_id, admin)

        assert run.is_judged
        assert run.figures["grounded_by_model"] == 0.5
        (asked,) = calls_of_judge(provider_standin)
        assert "The canteen serves soup" in asked["messages"][1]["content"]
        assert "25 vacation days" in asked["messages"][1]["content"]
        (result,) = evaluations.results("demo", run_id)
        assert result.chat_log_id is not None
        entry = parts.analytics.question("demo", result.chat_log_id)
        billed = [usage for usage in provider_standin.usages if usage["endpoint"] == "chat"]
        rows = [row for row in entry.charges if row.operation in ("chat", "translation")]
        assert sorted((row.model, row.input_tokens, row.output_tokens) for row in rows) == sorted(
            (usage["model"], usage["input_tokens"], usage["output_tokens"]) for usage in billed
        ), "one row of the ledger for each call"
        estimate = evaluations.judge.estimate("demo", HR, 10)
        assert estimate is not None
        assert 0 < estimate < Decimal("0.1")

        # The prompt shown of a question is what the provider was sent, word by word.
        assert entry.prompt is not None
        sent = [
            [(message["role"], message["content"]) for message in body["messages"]]
            for kind, body in provider_standin.requests
            if kind == "chat"
        ]
        assert [(role, content) for role, content in entry.prompt.messages] in sent

        assert entry.question.cost == sum(row.cost or 0 for row in entry.charges), "the judge's call counts too"
        # A process that is killed while the judge reads: its call is charged by estimate.
        usage = Usage(provider="openai", model="gpt-4o-mini", input_tokens=7, is_estimated=True)
        parts.ledger.begin("demo", result.chat_log_id, "chat", "request 1", usage)
        assert parts.chat_logs.close_abandoned("demo", quiet_seconds=0) == 0
        charges = parts.analytics.question("demo", result.chat_log_id).charges
        assert [(row.input_tokens, row.is_estimated) for row in charges if row not in entry.charges] == [(7, True)]

        # A model that cannot be read or reached leaves the figure out; so does a spent budget, which calls nobody.
        provider_standin.reply(lambda messages: "[]" if messages[0]["content"] == judging.SYSTEM else ANSWER)
        run = evaluations.work(collection, evaluations.begin(collection, HR, [GOLDEN], is_judged=True), admin)
        assert "grounded_by_model" not in run.figures
        before = len(calls_of_judge(provider_standin))
        parts.budgets.set(admin, "company", "0")
        run = evaluations.work(collection, evaluations.begin(collection, HR, [GOLDEN], is_judged=True), admin)
        assert "grounded_by_model" not in run.figures
        assert len(calls_of_judge(provider_standin)) == before
    finally:
        parts.close()


def test_without_a_key_no_model_can_be_asked_to_check(app_services: Services, collection: Collection) -> None:
    with pytest.raises(InvalidInput, match="no provider is set up"):
        app_services.evaluations.begin(collection, profile_of(collection), [GOLDEN], is_judged=True)
    assert judging.share_of("{}") is None
    assert judging.share_of('{"sentences": []}') is None
