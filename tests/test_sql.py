"""The named statements keep one convention for the tenant, and name each filter once."""

from __future__ import annotations

import re
from pathlib import Path

from rag.storage.sql import queries

SQL = Path(__file__).resolve().parents[1] / "rag" / "storage" / "sql"
#: Statements that name a tenant themselves: an operator's, those of jobs, and those of the search.
TENANT_FILES = {"tenants.sql", "search.sql", "meaning.sql"}
#: What the owner of the tables does for a tenant, outside any transaction of theirs.
OF_THE_OWNER = {"vector_index_statement"}
OF_JOBS = {"enqueue", "enqueue_file_removal", "enqueue_reembedding"}


def test_the_tenant_is_that_of_the_transaction() -> None:
    allowed = {
        name
        for path in SQL.glob("*.sql")
        if path.name in TENANT_FILES
        for name in re.findall(r"^-- ([a-z0-9_]+) --$", path.read_text("utf-8"), re.MULTILINE)
    }
    named = {name for name, text in queries.items() if "%(tenant_id)s" in text}
    assert named - allowed - OF_JOBS - {"search_meeting"} - OF_THE_OWNER == set()


def test_each_filter_of_a_page_is_written_once() -> None:
    text = "\n".join(queries.values())
    for of_a_list in (
        "%(mime_type)s::text IS NULL",
        "%(user_group)s::text IS NULL",
        "l.kind = 'question' AND l.created_at",
        "c.user_group =",
    ):
        assert of_a_list not in text
    assert sum("rag_is_listed(" in query for query in queries.values()) >= 4
    assert sum("rag_cost_days(" in query for query in queries.values()) >= 4
    assert sum("rag_question_days(" in query for query in queries.values()) >= 5
    assert sum("rag_is_asked(" in query for query in queries.values()) >= 3
