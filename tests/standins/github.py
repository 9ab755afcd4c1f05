"""A stand-in for GitHub's REST API over real HTTP."""

from __future__ import annotations

import base64
import json
from typing import Any

from tests.standins.local_server import LocalServer, QuietHandler

README = "# Planner\n\nPlans shifts.\n\n## Install\n\npip install planner\n"


def repository(name: str, **values: Any) -> dict[str, Any]:
    return {
        "name": name,
        "full_name": f"acme/{name}",
        "description": "Plans shifts",
        "language": "Python",
        "stargazers_count": 42,
        "topics": ["planning", "shifts"],
        "updated_at": "2026-01-05T10:00:00Z",
        "html_url": f"https://github.com/acme/{name}",
        "fork": False,
        **values,
    }


class GitHubStandin(LocalServer):
    """Answers like GitHub. Each of the `faults` (status, headers, body) replaces one answer, in order."""

    def __init__(self) -> None:
        super().__init__(Handler)
        self.faults: list[tuple[int, dict[str, str], str]] = []
        self.repositories = [repository("planner"), repository("forked", fork=True), repository("empty")]
        self.requests: list[tuple[str, str]] = []


class Handler(QuietHandler):
    server: GitHubStandin

    def do_GET(self) -> None:
        self.server.requests.append((self.path, self.headers.get("authorization") or ""))
        path, _, query = self.path.partition("?")
        named = {item["full_name"]: item for item in self.server.repositories}
        if self.server.faults:
            self._send(*self.server.faults.pop(0))
        elif (name := path.removeprefix("/repos/")) in named:
            self._send(200, {}, json.dumps(named[name]))
        elif path == "/users/acme/repos":
            page = int(dict(part.split("=") for part in query.split("&"))["page"])
            self._send(200, {}, json.dumps(self.server.repositories[(page - 1) * 100 : page * 100]))
        elif path == "/repos/acme/planner/readme":
            content = base64.encodebytes(README.encode()).decode()
            self._send(200, {}, json.dumps({"content": content, "encoding": "base64"}))
        else:
            self._send(404, {}, '{"message": "Not Found"}')

    def _send(self, status: int, headers: dict[str, str], body: str) -> None:
        self.send_response(status)
        for name, value in {**headers, "content-length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body.encode())
