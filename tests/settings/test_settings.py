"""Where settings come from, and what a bad one says."""

from __future__ import annotations

from pathlib import Path

import pytest

from rag.errors import SettingsError
from rag.settings import Settings, load_settings


def test_defaults_need_no_environment() -> None:
    assert load_settings({}, None) == Settings()


def test_the_environment_wins_over_the_secrets_file(tmp_path: Path) -> None:
    secrets = tmp_path / "secrets.toml"
    secrets.write_text('OPENAI_API_KEY = "from file"\nPORT = 9000\n')
    settings = load_settings({"OPENAI_API_KEY": "from environment"}, secrets)
    assert (settings.openai_api_key, settings.port) == ("from environment", 9000)


def test_an_empty_variable_counts_as_not_set() -> None:
    assert load_settings({"OPENAI_API_KEY": "", "PORT": ""}, None) == Settings()


@pytest.mark.parametrize(
    ("environment", "sentence"),
    [
        pytest.param({"PORT": "http"}, "PORT is 'http', but it has to be a whole number.", id="word_for_number"),
        pytest.param({"PORT": "70000"}, "PORT is 70000", id="port_out_of_range"),
        pytest.param({"RAG_WORKER": "maybe"}, "RAG_WORKER is 'maybe', but it has to be true or false.", id="boolean"),
    ],
)
def test_a_bad_value_is_named(environment: dict[str, str], sentence: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load_settings(environment, None)
    assert sentence in caught.value.message


def test_a_secrets_file_that_is_not_toml_is_named(tmp_path: Path) -> None:
    secrets = tmp_path / "secrets.toml"
    secrets.write_text("OPENAI_API_KEY = sk-")
    with pytest.raises(SettingsError, match=r"secrets\.toml"):
        load_settings({}, secrets)


def test_no_secret_is_shown() -> None:
    secret = "sk-very-secret"
    shown = repr(
        Settings(
            openai_api_key=secret,
            cohere_api_key=secret,
            gemini_api_key=secret,
            openrouter_api_key=secret,
            database_url=secret,
            migration_database_url=secret,
        )
    )
    assert secret not in shown
    assert "***" in shown


@pytest.mark.parametrize(
    ("environment", "sentence"),
    [
        ({"SUPABASE_URL": "https://p.supabase.co"}, "DATABASE_URL is not.*need the project's Postgres"),
        ({"SUPABASE_SERVICE_ROLE_KEY": "key"}, "SUPABASE_URL is not"),
        ({"RAG_SIGN_IN": "ldap"}, "builtin or supabase"),
        ({"RAG_SIGN_IN": "supabase"}, "SUPABASE_URL has to be set"),
    ],
)
def test_a_part_of_supabase_that_cannot_work_alone_is_refused(environment: dict[str, str], sentence: str) -> None:
    with pytest.raises(SettingsError, match=sentence):
        load_settings(environment, None)


def test_supabase_is_also_found_by_the_names_that_next_js_gives_it() -> None:
    given = {"NEXT_PUBLIC_SUPABASE_URL": "https://x.supabase.co", "DATABASE_URL": "postgresql://x"}
    assert load_settings(given, None).supabase_url == "https://x.supabase.co"
    both = {**given, "SUPABASE_URL": "https://own.supabase.co"}
    assert load_settings(both, None).supabase_url == "https://own.supabase.co"


@pytest.mark.parametrize(
    ("address", "public_url", "expected"),
    [
        ("127.0.0.1", "", "http://127.0.0.1:8501"),
        ("0.0.0.0", "", "http://localhost:8501"),
        ("::", "", "http://localhost:8501"),
        ("::1", "", "http://[::1]:8501"),
        ("192.168.1.5", "", "http://192.168.1.5:8501"),
        ("0.0.0.0", "https://hr.example.com/", "https://hr.example.com"),
    ],
)
def test_links_lead_to_an_address_that_can_be_opened(address: str, public_url: str, expected: str) -> None:
    assert Settings(address=address, public_url=public_url).own_address == expected


@pytest.mark.parametrize(
    "given", ["https://example.com/hr", "hr.example.com", "https://", "https://hr.example.com?x=1"]
)
def test_a_public_address_with_a_path_or_without_a_scheme_is_refused_at_the_start(given: str) -> None:
    with pytest.raises(SettingsError, match=r"RAG_PUBLIC_URL is .* without a path"):
        load_settings({"RAG_PUBLIC_URL": given}, None)
    for works in ("https://hr.example.com", "https://HR.example.com/", "http://localhost:8501", "http://10.0.0.5:80"):
        assert load_settings({"RAG_PUBLIC_URL": works}, None).public_url == works


def test_the_setting_for_text_recognition_takes_two_words() -> None:
    with pytest.raises(SettingsError, match="has to be builtin or none"):
        load_settings({"RAG_RECOGNITION": "tesseract"})
