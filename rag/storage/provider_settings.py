"""Store administrators' choices on the page Setup in the data folder: provider keys (encrypted) and models.

The choices are read at every start. Values in the environment and secrets.toml take precedence. The keys are encrypted
with RAG_SECRET_KEY, or with a secret in the data folder which only its owner can read.
"""

from __future__ import annotations

import base64
import json
import logging
import re
import threading
from collections.abc import Mapping

from cryptography.fernet import Fernet, InvalidToken
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from rag.errors import InvalidInput
from rag.settings import Settings
from rag.settings.providers import PROVIDERS
from rag.storage.data_folder import write_private

#: Variables whose value can be pasted, by provider.
PASTED = {spec.name: spec.key_variable for spec in PROVIDERS if spec.key_variable}
LONGEST_KEY = 500
KEYS_FILE, SECRET_FILE, MODELS_FILE = "provider_keys", "provider_keys.secret", "chosen_models.json"

log = logging.getLogger("rag.settings")


class PastedKeys:
    """Stores pasted provider keys and puts them into the settings. Thread-safe within a process."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._folder = settings.data_dir
        self._lock = threading.Lock()
        #: Providers with a key in the environment.
        self.fixed = frozenset(name for name in PASTED if settings.key_of(name))

    def adopt(self) -> None:
        """Put the stored keys into the settings, except keys which the environment sets."""
        with self._lock:
            self._settings.adopt({PASTED[name]: key for name, key in self._read().items() if name not in self.fixed})

    def hint(self, provider: str) -> str:
        """Return a hint by which people recognise a provider's key: "…" and the key's last four characters.

        Returns "set" for a key with at most 8 characters, "" without a key.
        """
        key = self._settings.key_of(provider)
        return f"…{key[-4:]}" if len(key) > 8 else "set" if key else ""

    def keep(self, provider: str, key: str) -> None:
        """Store a key and put it into the settings. An empty key removes the stored key. Raises `InvalidInput`."""
        key = key.strip()
        if provider not in PASTED:
            raise InvalidInput("This provider has no key.")
        if provider in self.fixed:
            raise InvalidInput(f"{PASTED[provider]} is set where this product is started, and that counts.")
        if len(key) > LONGEST_KEY or not key.isascii() or any(not c.isprintable() or c == " " for c in key):
            raise InvalidInput("This is not a key: a key is one line of letters and digits, without spaces.")
        self._folder.mkdir(parents=True, exist_ok=True)
        with self._lock:
            keys = {**self._read(), provider: key}
            keys = {name: value for name, value in keys.items() if value}
            text = self._cipher().encrypt(json.dumps(keys).encode()).decode()
            write_private(self._folder / KEYS_FILE, text)
            self._settings.adopt({PASTED[provider]: key})

    def _read(self) -> Mapping[str, str]:
        path = self._folder / KEYS_FILE
        if not path.is_file():
            return {}
        try:
            keys = json.loads(self._cipher().decrypt(path.read_bytes()))
        except InvalidToken:
            log.warning(
                "The keys of providers that were pasted cannot be read with this RAG_SECRET_KEY; paste them again"
            )
            return {}
        return {name: str(key) for name, key in keys.items() if name in PASTED}

    def _cipher(self) -> Fernet:
        if secret_key := self._settings.secret_key:
            derived = HKDF(algorithm=SHA256(), length=32, salt=None, info=b"provider keys").derive(secret_key.encode())
            return Fernet(base64.urlsafe_b64encode(derived))
        path = self._folder / SECRET_FILE
        if not path.is_file():
            write_private(path, Fernet.generate_key().decode())
        return Fernet(path.read_text("utf-8").strip())


#: Choosable settings, with their variables.
CHOSEN = {
    "chat_model": "CHAT_MODEL",
    "translation_model": "TRANSLATION_MODEL",
    "embedding_model": "EMBEDDING_MODEL",
    "rerank_model": "RERANK_MODEL",
}
MODEL_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,119}")


class ChosenModels:
    """Stores chosen models and puts them into the settings. Thread-safe within a process."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        #: Settings that the environment sets.
        self.fixed = frozenset(name for name in CHOSEN if getattr(settings, name))

    def adopt(self) -> None:
        """Put the stored models into the settings, except where the environment sets a model."""
        with self._lock:
            models = self._read()
            self._settings.adopt({CHOSEN[name]: model for name, model in models.items() if name not in self.fixed})

    def keep(self, name: str, model: str) -> None:
        """Store a model and put it into the settings. Raises `InvalidInput`.

        An empty name removes the stored choice, and each collection's own model is used again.
        """
        model = model.strip()
        if name not in CHOSEN:
            raise InvalidInput("There is no such model to choose.")
        if name in self.fixed:
            raise InvalidInput(f"{CHOSEN[name]} is set where this product is started, and that counts.")
        if model and not MODEL_NAME.fullmatch(model):
            raise InvalidInput("This is not the name of a model: it has letters, digits and . _ : / @ + - alone.")
        self._settings.data_dir.mkdir(parents=True, exist_ok=True)
        with self._lock:
            models = {key: value for key, value in {**self._read(), name: model}.items() if value}
            write_private(self._settings.data_dir / MODELS_FILE, json.dumps(models))
            self._settings.adopt({CHOSEN[name]: model})

    def _read(self) -> Mapping[str, str]:
        path = self._settings.data_dir / MODELS_FILE
        if not path.is_file():
            return {}
        try:
            models = json.loads(path.read_text("utf-8"))
        except (ValueError, RecursionError):
            log.warning("The models that were chosen cannot be read; choose them again")
            return {}
        return {name: model for name, model in models.items() if name in CHOSEN and MODEL_NAME.fullmatch(str(model))}
