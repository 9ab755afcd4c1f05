"""Read all statements by name from the `.sql` files here and in the integrations' folders.

A statement begins with `-- name --`, followed by a line with a description. Parameters are `%(named)s`. Optional
filters are written in SQL (`%(x)s::type IS NULL OR …`), and shared filters are SQL functions. No statement is built
from strings.

A statement sees the transaction's tenant, `rag_tenant()`; statements with scans write `(SELECT rag_tenant())`, which
Postgres evaluates once. Only three kinds take a parameter `tenant_id`: operators' statements about other tenants;
statements for jobs, which name the tenant in their arguments; and searches, which run too often to verify the identity
again.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import LiteralString, cast

INTEGRATIONS = Path(__file__).resolve().parents[2] / "integrations"


def read_queries(*folders: Path) -> dict[str, LiteralString]:
    """Return the statements in all `.sql` files in these folders, by name.

    Raises `ValueError` if a name is used twice.
    """
    queries: dict[str, LiteralString] = {}
    for path in sorted(path for folder in folders for path in folder.rglob("*.sql")):
        parts = re.split(r"^-- ([a-z0-9_]+) --$", path.read_text("utf-8"), flags=re.MULTILINE)
        for name, text in zip(parts[1::2], parts[2::2], strict=True):
            if name in queries:
                raise ValueError(f"two statements are called {name}")
            queries[name] = cast(LiteralString, text.strip())
    return queries


queries = read_queries(Path(__file__).parent, INTEGRATIONS)
