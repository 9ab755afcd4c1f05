"""A stand-in of Microsoft's sign-in and of Microsoft Graph: one site with two libraries, delta queries, permissions."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tests.standins.tls import JsonHandler, TlsServer

TENANT, CLIENT, SECRET = "contoso.example", "11111111-2222-3333-4444-555555555555", "hunter2~hunter2"
PER_PAGE = 2
ROOT = "root-id"


class GraphStandin(TlsServer):
    """`files` by path in the library; `read` has the names that were fetched, `asked` the paths of all requests."""

    def __init__(self, folder: Path) -> None:
        super().__init__(Handler, folder)
        self.entries: dict[str, dict[str, Any]] = {}
        self.contents: dict[str, bytes] = {}
        self.log: list[str] = [ROOT]
        self.permissions: dict[str, list[dict[str, Any]]] = {}
        self.read: list[str] = []
        self.asked: list[str] = []
        self.leaked: list[str] = []
        self.has_forgotten = False
        self.is_busy = 0
        self.is_broken = False
        self.entries[ROOT] = {"id": ROOT, "name": "root", "root": {}, "folder": {}}

    @property
    def url(self) -> str:
        return f"https://{self.host}/v1.0"

    def write(self, path: str, content: bytes) -> str:
        """Put a file at a path, with the folders above it, and return its id."""
        above = ROOT
        *folders, name = path.split("/")
        for number, folder in enumerate(folders):
            key = "folder " + "/".join(folders[: number + 1])
            if key not in self.entries:
                self._change({"id": key, "name": folder, "folder": {}, "parentReference": {"id": above}})
            above = key
        key = f"file-{len(self.contents)}"
        known = [i for i, e in self.entries.items() if e["name"] == name and e["parentReference"]["id"] == above] if (
            self.contents
        ) else []  # fmt: skip
        key = known[0] if known else key
        self.contents[key] = content
        self._change({
            "id": key, "name": name, "file": {"mimeType": "text/plain"}, "size": len(content),
            "parentReference": {"id": above}, "cTag": f"c{len(self.log)}", "eTag": f"e{len(self.log)}",
            "lastModifiedDateTime": "2026-01-05T10:00:00Z", "webUrl": f"https://contoso.sharepoint.com/{path}",
        })  # fmt: skip
        return key

    def remove(self, key: str) -> None:
        self._change({"id": key, "name": "", "deleted": {"state": "deleted"}, "parentReference": {"id": ""}})

    def rename(self, key: str, name: str) -> None:
        self._change({**self.entries[key], "name": name})

    def _change(self, entry: dict[str, Any]) -> None:
        self.entries[entry["id"]] = entry
        self.log.append(entry["id"])


class Handler(JsonHandler):
    server: GraphStandin

    def do_POST(self) -> None:
        body = self.body()
        if self.path == f"/{TENANT}/oauth2/v2.0/token":
            form = parse_qs(body.decode())
            is_right = form.get("client_id") == [CLIENT] and form.get("client_secret") == [SECRET]
            scope = form.get("scope", [""])[0]
            if not is_right or f"https://{self.server.host}/.default" not in scope.split():
                self.send({"error": "invalid_client", "error_description": "no"}, 401)
            else:
                self.send({"access_token": "good", "token_type": "Bearer", "expires_in": 3600})
        elif self.path == "/v1.0/$batch" and self._is_signed_in():
            import json

            requests = json.loads(body)["requests"]
            self.server.asked.append(f"$batch {len(requests)}")
            answers = []
            for one in requests:
                key = unquote(one["url"].split("/items/")[1].removesuffix("/permissions"))
                found = self.server.permissions.get(key, self.server.permissions.get(ROOT, []))
                answers.append({"id": one["id"], "status": 200, "body": {"value": found}})
            self.send({"responses": answers[::-1]})
        else:
            self.send({"error": {"code": "InvalidAuthenticationToken"}}, 401)

    def _is_signed_in(self) -> bool:
        return self.headers.get("authorization") == "Bearer good"

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        path, query = unquote(parts.path), parse_qs(parts.query)
        base = f"https://{self.server.host}"
        if path == f"/{TENANT}/v2.0/.well-known/openid-configuration":
            where = f"{base}/{TENANT}"
            self.send({
                "token_endpoint": f"{where}/oauth2/v2.0/token", "issuer": f"{where}/v2.0",
                "authorization_endpoint": f"{where}/oauth2/v2.0/authorize",
            })  # fmt: skip
            return
        if path.startswith("/download/"):
            if self.headers.get("authorization"):
                self.server.leaked.append(path)
            key = path.removeprefix("/download/")
            self.server.read.append(self.server.entries[key]["name"])
            self.send(self.server.contents[key])
            return
        if path.endswith("/.well-known/openid-configuration"):
            self.send({"error": "invalid_tenant"}, 400)
            return
        if not self._is_signed_in():
            self.send({"error": {"code": "InvalidAuthenticationToken"}}, 401)
            return
        self.server.asked.append(path)
        if self.server.is_broken and path.endswith("/delta"):
            self.send({"error": {"code": "invalidRequest"}}, 400)
            return
        if self.server.is_busy:
            self.server.is_busy -= 1
            self.send({"error": {"code": "tooManyRequests"}}, 429, {"Retry-After": "3"})
            return
        path = path.removeprefix("/v1.0")
        known = {
            "/sites/contoso.sharepoint.com:/sites/HR": {"id": "contoso,1,2"},
            "/sites/contoso,1,2/drive": {"id": "b!main"},
            "/sites/contoso,1,2/drives": {"value": [{"id": "b!main", "name": "Documents"}]},
            "/users/ada@contoso.example/drive": {"id": "b!main"},
            "/drives/b!main/root": {"id": ROOT},
        }
        if path in known:
            self.send(known[path])
        elif path == "/drives/b!main/root/delta":
            self._delta(query)
        elif path.startswith("/drives/b!main/root:/"):
            key = "folder " + path.removeprefix("/drives/b!main/root:/")
            found = self.server.entries.get(key)
            self.send(found or {"error": {"code": "itemNotFound"}}, 200 if found else 404)
        elif path.startswith("/drives/b!main/items/") and path.endswith("/content"):
            key = path.split("/")[4]
            self.send(b"", 302, {"Location": f"https://{self.server.other_host}/download/{key}"})
        else:
            self.send({"error": {"code": "itemNotFound"}}, 404)

    def _delta(self, query: dict[str, list[str]]) -> None:
        """Send the entries changed since a token, in pages; without a token all that are there."""
        where = f"{self.server.url}/drives/b!main/root/delta"
        since, skip = int(query.get("token", ["0"])[0]), int(query.get("skip", ["0"])[0])
        if since and self.server.has_forgotten:
            self.send({"error": {"code": "resyncRequired"}}, 410)
            return
        changed = list(dict.fromkeys(self.server.log[since:]))
        found = [self.server.entries[key] for key in changed]
        found = [entry for entry in found if since or "deleted" not in entry]
        page: dict[str, Any] = {"value": found[skip : skip + PER_PAGE]}
        if skip + PER_PAGE < len(found):
            page["@odata.nextLink"] = f"{where}?token={since}&skip={skip + PER_PAGE}"
        else:
            page["@odata.deltaLink"] = f"{where}?token={len(self.server.log)}"
        self.send(page)
