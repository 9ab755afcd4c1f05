"""Connect to OpenAI, or to a compatible server. Redirects are not followed."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from functools import partial

import httpx2
import openai

from rag.errors import SettingsError
from rag.providers import CONNECT_TIMEOUT_SECONDS, CONNECTIONS, KEPT_CONNECTIONS, ChatModel, Connection, Embedder
from rag.providers.bounds import Bounds, bound
from rag.providers.context_window import loaded_window
from rag.providers.openai_compatible import OpenAIChatModel, openai_errors
from rag.providers.openai_embedder import OpenAIEmbedder
from rag.settings import Settings
from rag.settings.providers import Capability, ProviderSpec

#: Writing an answer may take an hour; a batch of embeddings as JSON is 80 MB.
BOUNDS = Bounds(most_bytes=2**28, longest_seconds=3600.0)
LIMITS = httpx2.Limits(max_connections=CONNECTIONS, max_keepalive_connections=KEPT_CONNECTIONS)


class _Transport(openai.DefaultHttpxClient):
    """Follows no redirect; closes with its last user, like the SDK's client."""

    def __init__(self) -> None:
        super().__init__(follow_redirects=False, limits=LIMITS)
        bound(self, BOUNDS)

    def __del__(self) -> None:
        # At interpreter exit, objects needed for closing may already be gone.
        with suppress(Exception):
            self.close()


#: Names of models which write no text.
NO_CHAT = re.compile(r"embed|whisper|tts|dall-e|moderation|image|audio|realtime|transcribe|sora|babbage|davinci|bge-")


class OpenAIConnection(Connection):
    """OpenAI, or another server with the same API."""

    def __init__(
        self, spec: ProviderSpec, settings: Settings, *, key: str = "", address: str = "", variables: str = ""
    ) -> None:
        super().__init__(spec, settings)
        self._key, self._address = key or settings.key_of(spec.name), address or settings.address_of(spec.name)
        #: By name: facts learned about a model are remembered.
        self._models: dict[str, OpenAIChatModel] = {}
        try:
            self._client = openai.OpenAI(
                api_key=self._key,
                base_url=self._address,
                max_retries=0,
                timeout=timeout_of(settings),
                http_client=_Transport(),
            )
        except (httpx2.InvalidURL, openai.OpenAIError, ValueError) as exc:
            raise SettingsError(f"{variables or spec.address_variable} cannot be used: {exc}.") from exc

    def chat_model(self, model: str) -> ChatModel:
        if model not in self._models:
            self._models[model] = OpenAIChatModel(
                self._client, provider=self.spec.name, model=model, window=self._window_of(model)
            )
        return self._models[model]

    def _window_of(self, model: str) -> Callable[[], int | None] | None:
        if self.spec.name != "ollama":
            return None
        return partial(loaded_window, self._address.rstrip("/").removesuffix("/v1"), self._key, model)

    def embedder(self, model: str, dimensions: int) -> Embedder:
        return OpenAIEmbedder(self._client, provider=self.spec.name, model=model, dimensions=dimensions)

    def probe(self, *, timeout_seconds: float) -> None:
        with openai_errors(self.spec.name):
            self._client.with_options(timeout=timeout_seconds).models.list()

    def models(self, capability: Capability, *, timeout_seconds: float) -> list[str]:
        with openai_errors(self.spec.name):
            found = self._client.with_options(timeout=timeout_seconds).models.list().data
            names = sorted(str(model.id).removeprefix("models/") for model in found)
        if capability == "embed":
            return [name for name in names if "embed" in name or name.startswith("bge")]
        # The list does not say what a model is for; its name does.
        return [name for name in names if not NO_CHAT.search(name)]

    def close(self) -> None:
        self._client.close()


def timeout_of(settings: Settings) -> httpx2.Timeout:
    """Return the timeouts for an OpenAI-compatible provider, and for connecting to it."""
    return httpx2.Timeout(settings.openai_timeout_seconds, connect=CONNECT_TIMEOUT_SECONDS)
