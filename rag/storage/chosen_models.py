"""Models that an administrator of the installation chose in a page, in the data folder, read at every start.

What the environment or secrets.toml sets wins over what was chosen.
"""

from __future__ import annotations

import json
import logging
import re
import threading
from collections.abc import Mapping

from rag.errors import InvalidInput
from rag.settings import Settings
from rag.storage.data_folder import write_private

#: Settings that can be chosen, by the variable of each.
CHOSEN = {
    "chat_model": "CHAT_MODEL",
    "translation_model": "TRANSLATION_MODEL",
    "embedding_model": "EMBEDDING_MODEL",
    "rerank_model": "RERANK_MODEL",
}
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,119}")
FILE = "chosen_models.json"

log = logging.getLogger("rag.settings")


class ChosenModels:
    """Reads, keeps and takes over chosen models. Thread-safe within a process."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        #: Settings that the environment sets.
        self.fixed = frozenset(name for name in CHOSEN if getattr(settings, name))

    def adopt(self) -> None:
        """Take over what was chosen before, but for what the environment sets."""
        with self._lock:
            kept = self._read()
            self._settings.adopt({CHOSEN[name]: model for name, model in kept.items() if name not in self.fixed})

    def keep(self, name: str, model: str) -> None:
        """Keep a model and take it over; an empty one goes back to that of each collection. Raises `InvalidInput`."""
        model = model.strip()
        if name not in CHOSEN:
            raise InvalidInput("There is no such model to choose.")
        if name in self.fixed:
            raise InvalidInput(f"{CHOSEN[name]} is set where this product is started, and that counts.")
        if model and not NAME.fullmatch(model):
            raise InvalidInput("This is not the name of a model: it has letters, digits and . _ : / @ + - alone.")
        self._settings.data_dir.mkdir(parents=True, exist_ok=True)
        with self._lock:
            kept = {key: value for key, value in {**self._read(), name: model}.items() if value}
            write_private(self._settings.data_dir / FILE, json.dumps(kept))
            self._settings.adopt({CHOSEN[name]: model})

    def _read(self) -> Mapping[str, str]:
        path = self._settings.data_dir / FILE
        if not path.is_file():
            return {}
        try:
            found = json.loads(path.read_text("utf-8"))
        except ValueError:
            log.warning("The models that were chosen cannot be read; choose them again")
            return {}
        return {name: model for name, model in found.items() if name in CHOSEN and NAME.fullmatch(str(model))}
