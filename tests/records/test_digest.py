from __future__ import annotations

import argparse
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from rag.commands.records import report
from rag.errors import InvalidInput
from rag.language import speaking
from rag.records.analytics import Filters, Period
from rag.records.digest import Digest, digest_title, make_digest
from rag.services import Services
from rag.settings import Settings
from rag.storage.database import Database
from rag.types import Collection
from tests.question_month import write_month


def test_the_digest_says_what_the_page_says_and_what_was_not_answered(
    app_services: Services, database: Database, collection: Collection,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    yesterday = datetime.now(UTC).date() - timedelta(days=1)
    write_month(database, "demo", collection.id, until=yesterday, days=14, questions_per_day=8)
    with database.transaction("demo") as connection:
        connection.execute(
            "INSERT INTO chat_logs (tenant_id, collection_id, question, outcome, created_at) "
            "SELECT 'demo', %s, 'May <b>dogs</b> come?', 'no_context', %s FROM generate_series(1, 20)",
            (collection.id, datetime.now(UTC) - timedelta(days=2)),
        )
        row = connection.execute(
            "SELECT count(*) FROM chat_logs WHERE created_at >= %s", (yesterday - timedelta(days=6),)
        ).fetchone()
    assert row is not None
    period = Period.of_days(7, until=yesterday)

    def digest() -> Digest:
        title = digest_title("Demo", period, Filters())
        return make_digest(app_services.analytics, app_services.gaps, "demo", period, Filters(), title=title)

    html = digest().as_html()
    with speaking("de"):
        german = digest().as_text()
    asked = argparse.Namespace(days=7, html=None, pdf=None, tenant="demo", language="en")

    assert report(asked, Settings(tenant="demo")) == 0

    text = capsys.readouterr().out
    assert f"{row[0]} (before: " in text
    assert "asked 20 times (before: 0)" in text
    assert "May <b>dogs</b> come?" in text
    assert "Leave policy" in text
    assert "May &lt;b&gt;dogs&lt;/b&gt; come?" in html
    assert "<b>dogs" not in html
    assert f"{row[0]} (davor: " in german
    assert "Noch nicht beantwortet, häufigste zuerst" in german
    asked.days = 0
    with pytest.raises(InvalidInput, match="between 1 and 366"):
        report(asked, Settings(tenant="demo"))


def test_the_report_of_a_document_names_it_and_says_nothing_of_gaps(app_services: Services, database: Database) -> None:
    period = Period.of_days(7, until=datetime.now(UTC).date())
    of_one = Filters(document_id=uuid4(), user_group="Utrecht")
    report = app_services.scheduled_work.digest("demo", period, of_one, chosen=["Leave policy", "Utrecht"])
    assert report.title.endswith("only questions that match the filters: Leave policy · Utrecht")
    assert "Not answered yet" not in report.as_text()
    whole = app_services.scheduled_work.digest("demo", period)
    assert "a part" not in whole.title
    assert "Not answered yet" in whole.as_text()
