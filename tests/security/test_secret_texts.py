"""No secret in what is shown, raised or logged."""

from __future__ import annotations

import io
import logging
from dataclasses import fields, replace
from pathlib import Path

import pytest

from rag.errors import DatabaseUnavailable, SettingsError
from rag.settings import INTEGRATION_VARIABLES, SECRET_FIELDS, Settings, hide_secrets, load_settings, without_passwords
from rag.storage.database import Database
from rag.storage.migrations import migrate

SECRET = "hunter2-hunter2"
OF_AN_INTEGRATION = "xoxb-hunter2"


def test_every_setting_that_sounds_like_a_secret_is_one() -> None:
    suspicious = {
        item.name
        for item in fields(Settings)
        if item.name.endswith(("_key", "_key_id", "_secret", "_token", "database_url", "smtp_url"))
    }
    assert suspicious == SECRET_FIELDS
    of_integrations = {
        name
        for name in INTEGRATION_VARIABLES
        if name.endswith(("_KEY", "_KEY_ID", "_SECRET", "_TOKEN", "_PASSWORD", "_URLS"))
    }
    assert of_integrations == {name for name, kind in INTEGRATION_VARIABLES.items() if kind.is_secret}
    assert OF_AN_INTEGRATION not in repr(Settings(integration_variables={"SLACK_BOT_TOKEN": OF_AN_INTEGRATION}))


@pytest.mark.parametrize("name", sorted(SECRET_FIELDS))
def test_no_secret_is_in_the_settings_as_text(name: str) -> None:
    settings = replace(Settings(), **{name: SECRET})  # type: ignore[arg-type]
    assert SECRET not in repr(settings)
    assert SECRET not in str(settings)
    assert SECRET not in f"{settings}"


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://user:{SECRET}@127.0.0.1:1/none",
        f"postgres//user:{SECRET}@127.0.0.1/none",
        f"host=127.0.0.1 port=1 password={SECRET}",
        f"host=127.0.0.1 port=1 password='{SECRET}' nonsense",
        f"postgresql://user:{SECRET}@127.0.0.1:nonsense/none",
        f"postgresql://user:{SECRET}@127.0.0.1:1/none?nonsense={SECRET}&password={SECRET}",
    ],
)
def test_a_database_address_that_fails_is_told_without_its_password(url: str) -> None:
    for connect in (lambda: migrate(url), lambda: Database(url).open()):
        with pytest.raises(DatabaseUnavailable) as caught:
            connect()
        if "nonsense=" not in url:
            assert SECRET not in str(caught.value)


def test_a_secrets_file_that_is_not_toml_is_told_without_its_content(tmp_path: Path) -> None:
    path = tmp_path / "secrets.toml"
    path.write_text(f'OPENAI_API_KEY = "{SECRET}\n')
    with pytest.raises(SettingsError) as caught:
        load_settings({}, path)
    assert SECRET not in str(caught.value)


def test_what_is_logged_holds_no_secret_of_the_settings() -> None:
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    of_integrations = {name: OF_AN_INTEGRATION for name, kind in INTEGRATION_VARIABLES.items() if kind.is_secret}
    settings = Settings(
        openai_api_key=SECRET,
        database_url="postgresql://u:opensesame@h/d",
        integration_variables=of_integrations,
    )
    hide_secrets(settings, [handler])
    log = logging.getLogger("test.secrets")
    log.propagate = False
    log.addHandler(handler)
    try:
        log.warning("sent %s", {"authorization": f"Bearer {SECRET}"})
        log.warning("tokens %s", of_integrations)
        log.warning("postgresql://somebody:other-password@host/db")
        try:
            raise ValueError(f"key {SECRET} at postgresql://u:opensesame@h/d")
        except ValueError:
            log.exception("it failed")
    finally:
        log.removeHandler(handler)
    text = written.getvalue()
    assert "it failed" in text
    assert "Bearer ***" in text
    assert not [word for word in (SECRET, *of_integrations.values(), "opensesame", "other-password") if word in text]


@pytest.mark.parametrize("text", ["Read //server/share and mail me@example.com.", "token counts = 3 of 5 tokens"])
def test_a_sentence_without_a_secret_is_left_alone(text: str) -> None:
    assert without_passwords(text) == text
