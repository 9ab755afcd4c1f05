"""Where the server may be sent."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rag.addresses import require_allowed_address, require_safe_origin, require_web_address
from rag.errors import InvalidInput, SettingsError
from rag.settings import Settings

OPEN = replace(Settings(), allowed_hosts="api.example.com, .trusted.example")


@pytest.mark.parametrize(
    "address",
    [
        "ftp://api.example.com",
        "file:///etc/passwd",
        "https://",
        "https://api.example.com@evil.example/",
        "https://user:password@api.example.com/",
        "https://api.example.com.evil.example/",
        "https://eviltrusted.example/",
        "https://evil.example/?api.example.com",
        "https://api.example.com:99999/",
        "http://127.0.0.1:5432/",
        "http://[::1]/",
        "http://2130706433/",
        "http://0x7f.1/",
        "http://0177.0.0.1/",
        "http://169.254.169.254/latest/meta-data/",
    ],
)
def test_what_an_administrator_may_not_type(address: str) -> None:
    with pytest.raises(InvalidInput):
        require_allowed_address(address, OPEN, resolve=lambda host: ["93.184.215.14"])


@pytest.mark.parametrize(
    "resolved",
    [["10.0.0.5"], ["192.168.1.1"], ["127.0.0.1"], ["fd00::1"], ["::ffff:10.0.0.1"], ["93.184.215.14", "10.0.0.5"]],
    ids=str,
)
def test_a_name_that_leads_into_a_private_network_is_refused_unless_listed(resolved: list[str]) -> None:
    address = "https://api.example.com/v1"
    with pytest.raises(InvalidInput, match="private network"):
        require_allowed_address(address, OPEN, resolve=lambda host: resolved)
    listed = replace(OPEN, allowed_private_hosts="api.example.com")
    assert require_allowed_address(address, listed, resolve=lambda host: resolved) == address


@pytest.mark.parametrize("resolved", ["169.254.169.254", "::ffff:169.254.169.254", "0.0.0.0", "fd00:ec2::254"])
def test_the_secrets_of_a_clouds_machine_are_refused_even_when_listed(resolved: str) -> None:
    listed = replace(OPEN, allowed_private_hosts="api.example.com")
    with pytest.raises(InvalidInput, match="no service"):
        require_allowed_address("https://api.example.com/", listed, resolve=lambda host: [resolved])


def test_a_listed_host_that_leads_outside_is_allowed() -> None:
    for address in ("https://api.example.com/v1", "https://a.trusted.example/"):
        assert require_allowed_address(address, OPEN, resolve=lambda host: ["93.184.215.14"]) == address


def test_a_host_that_does_not_exist_is_said() -> None:
    def nowhere(host: str) -> list[str]:
        raise OSError

    with pytest.raises(InvalidInput, match=r"no host api\.example\.com"):
        require_allowed_address("https://api.example.com/", OPEN, resolve=nowhere)


def test_what_an_operator_sets_may_lie_on_this_machine() -> None:
    assert require_web_address("OLLAMA_URL", "http://localhost:11434") == ("localhost", 11434)
    with pytest.raises(SettingsError, match="OLLAMA_URL"):
        require_web_address("OLLAMA_URL", "http://169.254.169.254/")


def test_a_password_in_an_address_is_not_repeated() -> None:
    with pytest.raises(SettingsError) as caught:
        require_web_address("OPENAI_BASE_URL", "ftp://user:hunter2-secret@example.com")
    assert "hunter2-secret" not in str(caught.value)


def test_keys_go_out_encrypted_or_stay_on_this_machine() -> None:
    assert require_safe_origin("SUPABASE_URL", "http://127.0.0.1:54321")
    with pytest.raises(SettingsError, match="https"):
        require_safe_origin("SUPABASE_URL", "http://project.supabase.co")
