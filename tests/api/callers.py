"""The served product as the tests of the API call it."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field

import httpx

from rag.access.api_keys import ApiKey
from rag.services import Services
from rag.types import Collection, Document, Identity, Role
from tests import hostile
from tests.patience import patient

SCOPES = ("chat", "search", "documents:read", "documents:write", "sync", "admin")


@dataclass
class Api:
    """The served product with an administrator."""

    url: str
    parts: Services
    admin: Identity
    collection: Collection
    #: Closes the clients at the end of the test.
    opened: ExitStack = field(default_factory=ExitStack)

    def key(self, *scopes: str, requests_per_minute: int = 10_000) -> str:
        return self.made_key(*scopes, requests_per_minute=requests_per_minute)[1]

    def made_key(self, *scopes: str, requests_per_minute: int = 10_000) -> tuple[ApiKey, str]:
        return self.parts.api_keys.create(
            self.admin, "Intranet", scopes or SCOPES, requests_per_minute=requests_per_minute
        )

    def client(self, secret: str = "", **headers: str) -> httpx.Client:
        if secret:
            headers["Authorization"] = f"Bearer {secret}"
        return self.opened.enter_context(httpx.Client(base_url=self.url, headers=headers, timeout=patient(20)))

    def session(self, role: Role) -> str:
        """A token of somebody who is signed in."""
        account, _ = self.parts.accounts.invite(self.admin, f"one-{role}@example.com", "Somebody", role)
        return self.parts.sessions.start(account)

    def ready_document(self, content: bytes | None = None) -> Document:
        library, tenant = self.parts.documents, self.admin.tenant_id
        added = library.upload(self.admin, self.collection, "leave.pdf", content or hostile.leave_policy())
        self.parts.pipeline.run(tenant, added.id)
        library.confirm(self.admin, added.id)
        self.parts.pipeline.run(tenant, added.id)
        return library.get(tenant, added.id)

    def outcomes(self) -> list[str | None]:
        with self.parts.database.transaction(self.admin.tenant_id) as connection:
            return [row[0] for row in connection.execute("SELECT outcome FROM chat_logs ORDER BY created_at")]
