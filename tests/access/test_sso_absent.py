"""Without a provider in the settings there is no trace of one."""

from __future__ import annotations

from collections.abc import Callable

from starlette.testclient import TestClient


def test_there_is_no_button_and_no_route(client_of: Callable[..., TestClient]) -> None:
    client = client_of()
    assert "/sso/start" not in client.get("/login").text
    assert client.get("/sso/start").status_code == 404
    assert client.get("/sso/callback").status_code in (401, 404)
    assert client.post("/sso/logout").status_code == 404
