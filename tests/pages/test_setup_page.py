"""The page Set-up: a checklist that ends, and keys that are checked, kept encrypted and taken over at once."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image
from starlette.applications import Starlette
from starlette.testclient import TestClient
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import TextInput

from rag.api.sign_in import routes
from rag.errors import InvalidInput, NotAllowed
from rag.profiles import DEFAULT
from rag.services import Services
from rag.settings import Settings, load_settings
from rag.storage.provider_settings import KEYS_FILE, ChosenModels, PastedKeys
from rag.types import Collection, Identity, Role
from tests.pages.test_documents_page import words
from tests.standins.providers import ProviderStandin

SignIn = Callable[[Role], tuple[AppTest, Identity]]


@pytest.fixture
def settings(settings: Settings, provider_standin: ProviderStandin) -> Settings:
    """Without keys; the stand-in is where OpenAI and Cohere are."""
    return replace(settings, openai_base_url=provider_standin.openai_url, cohere_base_url=provider_standin.cohere_url)


def test_a_key_is_tried_kept_encrypted_used_at_once_and_removed(
    running: Services, collection: Collection, signed_in: SignIn, provider_standin: ProviderStandin, settings: Settings
) -> None:
    tab, identity = signed_in(Role.ADMIN)
    page = tab.run().switch_page("setup.py").run()
    assert not page.exception
    assert running.providers.chat_model_for(DEFAULT) is None

    def field() -> TextInput:
        return next(f for f in page.text_input if str(f.key).startswith("setup_key_value_openai"))

    def paste(key: str) -> None:
        field().set_value(key)
        next(b for b in page.button if b.label == "Check and save").click().run()
        assert not page.exception

    provider_standin.fail_next(401, endpoint="models")
    paste("sk-wrong")
    assert "rejected" in words(page)
    assert field().value == "sk-wrong", "a mistyped key can be corrected"
    assert not (settings.data_dir / KEYS_FILE).exists()
    assert running.providers.chat_model_for(DEFAULT) is None

    paste("sk-test-1234")
    assert "works and is saved" in "".join(str(success.value) for success in page.success)
    assert field().value == ""
    assert set(provider_standin.calls) == {"models"}, "checking is free"
    assert running.providers.chat_model_for(DEFAULT) is not None
    assert b"sk-test-1234" not in (settings.data_dir / KEYS_FILE).read_bytes()
    assert "sk-test-1234" not in words(page) + repr(settings)
    assert "provider key changed" in {entry.action for entry in running.audit.entries(identity)}
    # The collection on the built-in model says so, and the move is one click away, with its cost on the button.
    assert "is searched with the built-in model" in words(page)
    begin = page.button(f"moves_begin_{collection.id}")
    assert begin.label == "Use this model", "it holds nothing yet"
    begin.click().run()
    assert not page.exception
    (move,) = running.documents.reembeddings.find(identity)
    assert move.status == "running"
    assert move.to_model.startswith("openai/")

    again = replace(settings, openai_api_key="", provider_variables={})
    PastedKeys(again).adopt()
    assert again.openai_api_key == "sk-test-1234", "the next start has it"
    fixed = replace(settings, openai_api_key="from the environment")
    keys = PastedKeys(fixed)
    keys.adopt()
    assert fixed.openai_api_key == "from the environment"
    with pytest.raises(InvalidInput, match="OPENAI_API_KEY"):
        keys.keep("openai", "sk-other")
    other = replace(settings, openai_api_key="", secret_key="another secret than the file's")
    PastedKeys(other).adopt()
    assert other.openai_api_key == ""

    page.button("setup_key_remove_openai").click().run()
    page.button("setup_key_sure_openai_confirmed").click().run()
    assert not page.exception
    assert running.providers.chat_model_for(DEFAULT) is None
    with pytest.raises(InvalidInput, match="not a key"):
        running.pasted_keys.keep("openai", "two words")


def picture(kind: str, size: tuple[int, int] = (900, 300)) -> bytes:
    """A picture with a camera's words in it."""
    file = io.BytesIO()
    image = Image.new("RGB", size, (12, 120, 200))
    exif = Image.Exif()
    exif[271] = "SECRET CAMERA"
    image.save(file, kind, exif=exif)
    return file.getvalue()


def test_a_mark_is_drawn_again_and_shown_on_every_page(
    running: Services, settings: Settings, signed_in: SignIn
) -> None:
    tab, identity = signed_in(Role.ADMIN)
    page = tab.run().switch_page("setup.py").run()
    page.file_uploader[0].upload("mark.jpg", picture("JPEG"), "image/jpeg")
    page.run()
    assert not page.exception
    mark = running.tenants.mark(identity)
    shown = Image.open(io.BytesIO(mark))
    assert (shown.format, shown.size) == ("PNG", (288, 96))
    assert b"SECRET" not in mark
    assert page.session_state["frame_mark"] == mark
    front = TestClient(Starlette(routes=routes(lambda: running)))
    assert base64.b64encode(mark).decode() in front.get("/login").text
    for refused in (b"<svg onload='alert(1)'/>", b"GIF89a", picture("PNG", (5000, 5000)), b"x" * 3_000_000):
        with pytest.raises(InvalidInput):
            running.tenants.set_mark(identity, refused)
    with pytest.raises(NotAllowed):
        running.tenants.set_mark(signed_in(Role.MANAGER)[1], mark)
    page.button("setup_mark_remove").click().run()
    page.button("setup_mark_remove_confirmed").click().run()
    assert not page.exception
    assert running.tenants.mark(identity) == b""
    assert "data:image/png" not in front.get("/login").text
    page.button("setup_way_back_taken").click().run()
    assert not page.exception
    assert Image.open(io.BytesIO(running.tenants.mark(identity))).size == (288, 96)


def test_models_are_listed_tried_and_changed(
    running: Services, collection: Collection, signed_in: SignIn, provider_standin: ProviderStandin, settings: Settings
) -> None:
    running.pasted_keys.keep("openai", "sk-test-1234")
    running.providers.reconnect()
    tab, identity = signed_in(Role.ADMIN)
    page = tab.run().switch_page("setup.py").run()
    assert "models" not in provider_standin.calls, "the list is asked for where it is wanted"
    page.button("setup_models").click().run()
    assert not page.exception
    assert provider_standin.calls["models"] == 2, "one of texts, one of vectors"
    page.button("setup_model_try_chat_model").click().run()
    assert not page.exception
    assert "answered in" in " ".join(str(success.value) for success in page.success)
    assert provider_standin.calls["chat"] == 1
    with running.database.transaction(identity) as connection:
        assert connection.execute("SELECT count(*) FROM cost_ledger").fetchone() == (1,)
    page.selectbox("setup_model_name_chat_model").set_value("gpt-4o").run()
    page.button("setup_model_save_chat_model").click().run()
    assert not page.exception
    assert running.settings.chat_model == "gpt-4o"
    assert "model changed" in {entry.action for entry in running.audit.entries(identity)}
    again = replace(settings, chat_model="")
    ChosenModels(again).adopt()
    assert again.chat_model == "gpt-4o", "the next start has it"
    fixed = ChosenModels(replace(settings, chat_model="of the environment"))
    with pytest.raises(InvalidInput, match="CHAT_MODEL"):
        fixed.keep("chat_model", "gpt-other")
    with pytest.raises(InvalidInput, match="name of a model"):
        running.chosen_models.keep("chat_model", "two words")
    provider_standin.fail_next(401, endpoint="chat")
    page.button("setup_model_try_chat_model").click().run()
    assert not page.exception
    assert page.error, "why it failed is said"


def test_the_checklist_ends_and_is_for_administrators(running: Services, signed_in: SignIn) -> None:
    tab, identity = signed_in(Role.ADMIN)
    page = tab.run().switch_page("setup.py").run()
    assert "0 of 5 steps done" in [str(heading.value) for heading in page.header], "Demo comes from the tenant's id"
    page.button("setup_name_save").click().run()
    assert "1 of 5 steps done" in [str(heading.value) for heading in page.header], "it is really called Demo"
    page.text_input("setup_name").set_value("Ottermere  Mills").run()
    page.button("setup_name_save").click().run()
    assert "The name is saved" in "".join(str(success.value) for success in page.success)
    assert not page.run().success, "what is done is said once"
    assert running.tenants.progress(identity).name == "Ottermere Mills"
    page.button("setup_finish").click().run()
    assert not page.exception
    assert not [heading for heading in page.header if "steps done" in str(heading.value)]
    _, employee = signed_in(Role.EMPLOYEE)
    for act in (running.tenants.progress, running.tenants.finish_setup):
        with pytest.raises(NotAllowed):
            act(employee)


def test_the_secret_comes_from_the_environment(tmp_path: Path) -> None:
    settings = load_settings({"RAG_DATA_DIR": str(tmp_path), "RAG_SECRET_KEY": "a long sentence of ours"}, None)
    PastedKeys(settings).keep("cohere", "co-1234567890")
    assert [path.name for path in tmp_path.iterdir()] == [KEYS_FILE]
    assert "a long sentence" not in repr(settings)
    assert PastedKeys(settings).hint("cohere") == "…7890"
