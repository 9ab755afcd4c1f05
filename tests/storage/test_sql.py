"""The named statements keep one convention for the tenant, and name each filter once."""

from __future__ import annotations

import re
from pathlib import Path

from rag.storage.sql import INTEGRATIONS, queries

SQL = Path(__file__).resolve().parents[2] / "rag" / "storage" / "sql"
FILES = [*SQL.glob("*.sql"), *INTEGRATIONS.rglob("*.sql")]
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


#: How a description begins; a new verb joins the list.
VERB = re.compile(
    r"(?:Add|Answer|Ask|Assign|Begin|Bind|Build|Cancel|Change|Choose|Claim|Clear|Close|Compare|Compute|Confirm|Copy|"
    r"Count|Delay|Delete|Disable|Do|Drop|End|Erase|Fetch|Find|Forget|Give|Have|Issue|Keep|Let|"
    r"List|Lock|Make|Move|Name|Note|Pass|Pin|Publish|Put|Queue|Read|Record|Remember|Remove|Rename|"
    r"Replace|Reserve|Restore|Resume|Revoke|Save|Say|Set|Shorten|Stop|Store|Suggest|Sum|Supersede|"
    r"Suspend|Take|Tell|Update|Use|Void|Write)\b"
)


def test_each_statement_says_what_it_does() -> None:
    for path in FILES:
        for name, text in read_queries_of(path).items():
            comment = re.match(r"(?:-- .*\n)+", text + "\n")
            assert comment, f"{name} has no description"
            description = " ".join(comment[0].replace("-- ", "").split())
            assert VERB.match(description), f"{name}: {description}"
            assert description.endswith("."), f"{name}: {description}"


def read_queries_of(path: Path) -> dict[str, str]:
    parts = re.split(r"^-- ([a-z0-9_]+) --$", path.read_text("utf-8"), flags=re.MULTILINE)
    return {name: text.strip() for name, text in zip(parts[1::2], parts[2::2], strict=True)}
