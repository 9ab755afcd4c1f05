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
