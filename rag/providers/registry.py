"""Which provider does what, from the settings: keys decide what there is, settings and profile which model."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urlsplit

import cohere
import httpx
import httpx2
import openai

from rag.errors import SettingsError
from rag.profiles import Profile
from rag.providers import ChatModel, Embedder, Reranker
from rag.providers.cohere import CohereReranker
from rag.providers.cross_encoder import LocalCrossEncoder
from rag.providers.offline import LexicalEmbedder
from rag.providers.openai_compatible import OpenAIChatModel, OpenAIEmbedder
from rag.settings import Settings, environment_name

#: A connection that is not made by then will not be made.
CONNECT_TIMEOUT_SECONDS = 5.0
EMBEDDER_ID = re.compile(r"(?P<provider>[^/@\s]+)/(?P<model>[^@\s]+)@(?P<dimensions>[1-9][0-9]{0,4})")
#: Dimensions of models named without them; OpenAI's small one otherwise.
NATIVE_DIMENSIONS = {
    "text-embedding-3-large": 3072,
    "gemini-embedding-001": 3072,
    "bge-m3": 1024,
    "nomic-embed-text": 768,
}
DEFAULT_DIMENSIONS = 1536


class Providers:
    """The models this installation may use. Thread-safe; clients and their connections are shared."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._builtin = LexicalEmbedder()
        #: "openai", unless OPENAI_BASE_URL points to another that is known by its host.
        self.provider = provider_of(settings.openai_base_url)
        for name in ("openai_api_key", "cohere_api_key"):
            _require_sendable(environment_name(name), getattr(settings, name))
        self._openai = self._connect_openai()
        self._cohere = self._connect_cohere()
        self._cross_encoder: Reranker | None = None
        self._embedders: dict[str, Embedder] = {self._builtin.id: self._builtin}

    def embedder_for(self, embedding_model_id: str) -> Embedder:
        """The embedder with this id, `provider/model@dimensions`.

        Raises `SettingsError` with one sentence when its provider's key is missing: vectors of one embedder are never
        searched with another's.
        """
        if embedding_model_id in self._embedders:
            return self._embedders[embedding_model_id]
        parts = EMBEDDER_ID.fullmatch(embedding_model_id)
        if parts is None:
            raise SettingsError(f"{embedding_model_id!r} does not name an embedder: write provider/model@dimensions.")
        provider, model, dimensions = parts["provider"], parts["model"], int(parts["dimensions"])
        if provider == self._builtin.provider:
            raise SettingsError(f"There is no built-in embedder {embedding_model_id!r}; there is {self._builtin.id}.")
        if self._openai is None:
            raise SettingsError(
                f"These documents were embedded with {model}, and its key is missing: set OPENAI_API_KEY."
            )
        if provider != self.provider:
            raise SettingsError(
                f"These documents were embedded with {model} of {provider}, "
                f"but OPENAI_BASE_URL points to {self.provider}."
            )
        embedder = OpenAIEmbedder(self._openai, provider=provider, model=model, dimensions=dimensions)
        self._embedders[embedding_model_id] = embedder
        return embedder

    def default_embedder_id(self, profile: Profile) -> str:
        """The id of a new collection's embedder: the setting's or the profile's with a key, else the built-in's."""
        if self._openai is None:
            return self._builtin.id
        wanted = self._settings.embedding_model or profile.embedding_model
        if wanted == self._builtin.id:
            return wanted
        if not self._settings.embedding_model and not wanted.startswith(f"{self.provider}/"):
            return self._builtin.id  # the profile's own provider is not the one there is a key for
        named = wanted if wanted.startswith(f"{self.provider}/") else f"{self.provider}/{wanted}"
        if EMBEDDER_ID.fullmatch(named):
            return named
        model = named.split("/", 1)[1]
        return f"{named}@{NATIVE_DIMENSIONS.get(model, DEFAULT_DIMENSIONS)}"

    def chat_model_for(self, profile: Profile) -> ChatModel | None:
        """The model that answers, or None without a key: then answers are quoted, not written."""
        return self._chat_model(self._settings.chat_model or profile.chat_model)

    def translation_model_for(self, profile: Profile) -> ChatModel | None:
        """The model that translates and tags, or None without a key."""
        return self._chat_model(self._settings.translation_model or profile.translation_model)

    def reranker_for(self, profile: Profile) -> Reranker | None:
        """The local cross-encoder, else Cohere's reranker, when the profile wants one and it is configured."""
        if not profile.reranking:
            return None
        if self._settings.cross_encoder:
            return self._local_reranker()
        if self._cohere is None:
            return None
        model = self._settings.rerank_model or profile.rerank_model
        return CohereReranker(self._cohere, model=model, timeout_seconds=self._settings.cohere_timeout_seconds)

    def _local_reranker(self) -> Reranker:
        # Two threads may load it at once; the later one's is kept.
        if self._cross_encoder is None:
            self._cross_encoder = LocalCrossEncoder(Path(self._settings.cross_encoder).expanduser())
        return self._cross_encoder

    def close(self) -> None:
        """Close the connections."""
        if self._openai is not None:
            self._openai.close()
        if self._cohere is not None:
            self._cohere_transport.close()

    def _chat_model(self, model: str) -> ChatModel | None:
        if self._openai is None:
            return None
        return OpenAIChatModel(self._openai, provider=self.provider, model=model)

    def _connect_openai(self) -> openai.OpenAI | None:
        settings = self._settings
        # A model that runs on this machine asks for no key, but the SDK does.
        key = settings.openai_api_key or ("unused" if self.provider == "ollama" else "")
        if not key:
            return None
        timeout = httpx2.Timeout(settings.openai_timeout_seconds, connect=CONNECT_TIMEOUT_SECONDS)
        try:
            return openai.OpenAI(api_key=key, base_url=settings.openai_base_url, timeout=timeout, max_retries=0)
        except (httpx2.InvalidURL, openai.OpenAIError, ValueError) as exc:
            raise SettingsError(f"OPENAI_BASE_URL or OPENAI_API_KEY cannot be used: {exc}.") from exc

    def _connect_cohere(self) -> cohere.ClientV2 | None:
        settings = self._settings
        if not settings.cohere_api_key:
            return None
        self._cohere_transport = httpx.Client(
            timeout=httpx.Timeout(settings.cohere_timeout_seconds, connect=CONNECT_TIMEOUT_SECONDS)
        )
        return cohere.ClientV2(
            settings.cohere_api_key, base_url=settings.cohere_base_url.rstrip("/"), httpx_client=self._cohere_transport
        )


def _require_sendable(name: str, key: str) -> None:
    if not all("!" <= character <= "~" for character in key):
        raise SettingsError(f"{name} holds characters that no key has, such as a space or a line break. Copy it again.")


def provider_of(base_url: str) -> str:
    """Who answers at this address, as the ledger and the ids of embedders name it."""
    try:
        address = urlsplit(base_url)
        host, port = (address.hostname or "").lower(), address.port
    except ValueError as exc:
        raise SettingsError(f"OPENAI_BASE_URL is {base_url!r}, but it has to be a web address.") from exc
    if address.scheme not in ("http", "https") or not host:
        raise SettingsError(f"OPENAI_BASE_URL is {base_url!r}, but it has to be a web address.")
    if host.endswith("googleapis.com"):
        return "gemini"
    if host == "openrouter.ai" or host.endswith(".openrouter.ai"):
        return "openrouter"
    if port == 11434 or "ollama" in host:
        return "ollama"
    return "openai"
