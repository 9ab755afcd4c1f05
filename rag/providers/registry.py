"""Choose the provider and model for each task.

Keys decide which providers are available. Settings and profile decide the model. Creating a connection sends nothing,
and imports only the provider's module.
"""

from __future__ import annotations

import importlib
import re
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from rag.errors import ProviderError, SettingsError
from rag.language import N_
from rag.profiles import DEFAULT, PROFILES
from rag.profiles.profile import Profile
from rag.providers import ChatModel, Connection, Embedder, Reranker, TextRecogniser
from rag.providers.addresses import require_web_address
from rag.providers.builtin_embedders import LexicalEmbedder, MeaningEmbedder, is_installed, shared_embedder
from rag.providers.local_engines import cross_encoder
from rag.settings import Settings
from rag.settings.providers import (
    BY_NAME,
    FREE_PROVIDERS,
    KEY_VARIABLES,
    PROVIDERS,
    Capability,
    ProviderSpec,
    provider_spec,
    providers_for,
    variable_of,
)

__all__ = ["EmbedderOption", "ModelChoice", "Providers", "provider_of"]

EMBEDDER_ID = re.compile(r"(?P<provider>[^/@\s]+)/(?P<model>[^@\s]+)@(?P<dimensions>[1-9][0-9]{0,4})")
#: Dimensions for models named without them; by default those of OpenAI's small model.
NATIVE_DIMENSIONS = {model: count for spec in PROVIDERS for model, count in spec.dimensions.items()}
DEFAULT_DIMENSIONS = 1536
#: Offered for a new collection, besides the profile's and the settings' embedder.
OFFERED = tuple(f"{spec.name}/{model}" for spec in PROVIDERS for model in spec.offered_embedders)
#: Providers which embed or answer, by the names allowed in settings and profiles.
ASKABLE = tuple(spec.name for spec in PROVIDERS if variable_of(spec.name))


@dataclass(frozen=True)
class Connections:
    """The connections to all configured providers, by name."""

    #: The provider OPENAI_BASE_URL points to, configured or not.
    primary: str
    #: The connection to it; `None` without a key.
    at_primary: Connection | None
    by_name: Mapping[str, Connection]

    def able(self, capability: Capability, provider: str = "") -> Connection | None:
        """Return the connection to a provider with a capability, or `None`. The default is the preferred provider."""
        names = [provider] if provider else [spec.name for spec in providers_for(capability)]
        connections = [self.by_name[name] for name in names if name in self.by_name]
        return next((connection for connection in connections if capability in connection.spec.capabilities), None)

    def close(self) -> None:
        for connection in {id(one): one for one in (*self.by_name.values(), self.at_primary) if one}.values():
            connection.close()


def connect(settings: Settings) -> Connections:
    """Create the connections. Nothing is sent yet. Raises `SettingsError` with the name of an unusable variable."""
    primary = provider_of(settings.openai_base_url)
    for spec in PROVIDERS:
        if spec.key_variable:
            _require_sendable(spec.key_variable, settings.key_of(spec.name))
        if spec.address_variable and (address := settings.address_of(spec.name)):
            require_web_address(spec.address_variable, address)
    # A model on this machine needs no key, but the SDK does.
    key = settings.openai_api_key or ("unused" if primary == "ollama" else "")
    main: Connection | None = None
    if key:
        variables = "OPENAI_BASE_URL or OPENAI_API_KEY"
        # The SDK takes longer to import than the rest of a command: only commands with a key wait for it.
        from rag.providers.openai_connection import OpenAIConnection

        main = OpenAIConnection(
            BY_NAME[primary], settings, key=key, address=settings.openai_base_url, variables=variables
        )
    other_connections = {
        spec.name: _factory(spec)(spec, settings)
        for spec in PROVIDERS
        if spec.factory and spec.name != "openai" and settings.has_provider(spec.name)
    }
    return Connections(primary=primary, at_primary=main, by_name=({primary: main} if main else {}) | other_connections)


def _factory(spec: ProviderSpec) -> Callable[[ProviderSpec, Settings], Connection]:
    module, _, name = spec.factory.partition(":")
    factory: Callable[[ProviderSpec, Settings], Connection] = getattr(
        importlib.import_module(f"rag.providers.{module}"), name
    )
    return factory


def provider_of(base_url: str) -> str:
    """Return the provider's name for this address, as used in the ledger and in embedder ids."""
    host, port = require_web_address("OPENAI_BASE_URL", base_url)
    for spec in PROVIDERS:
        if any(host == domain or host.endswith(f".{domain}") for domain in spec.hosts):
            return spec.name
    return "ollama" if port == 11434 or "ollama" in host else "openai"


def _require_sendable(name: str, key: str) -> None:
    if not all("!" <= character <= "~" for character in key):
        raise SettingsError(f"{name} holds characters that no key has, such as a space or a line break. Copy it again.")


@dataclass(frozen=True, kw_only=True)
class ModelChoice:
    """The model which a profile wants, and the model in use. `model` is "" if no provider is configured."""

    wanted_provider: str
    wanted_model: str
    provider: str = ""
    model: str = ""

    @property
    def is_elsewhere(self) -> bool:
        """Whether the model in use is from a different provider than the profile wants."""
        return bool(self.model) and self.provider != self.wanted_provider

    @property
    def missing(self) -> str:
        """Return the environment variable which would configure the profile's provider, or "" if this provider is in
        use.
        """
        return variable_of(self.wanted_provider) if self.provider != self.wanted_provider else ""


@dataclass(frozen=True, kw_only=True)
class EmbedderOption:
    """An embedder offered for a new collection. `missing` is the environment variable to set first, if any."""

    id: str
    provider: str
    model: str
    dimensions: int
    #: The variable to set first; "" if it can be chosen now.
    missing: str
    #: Compares texts by meaning, not only by words.
    has_meaning: bool


#: Longest wait for the answer to a probe.
PROBE_SECONDS = 5.0
NO_KEY = N_(
    "These documents need the search model {model}, but no key for {provider} is set. Paste the key on the page Set-up."
)
NOT_SET = N_("These documents need the search model {model} of {provider}, which is not set up. Set {variable}.")
ELSEWHERE = N_("These documents need the search model {model} of {provider}, but OPENAI_BASE_URL points to {primary}.")


@dataclass(frozen=True, kw_only=True)
class Probe:
    """A provider's response to a free call."""

    provider: str
    ms: int
    #: The reason for a missing answer, in a sentence; "" after an answer.
    error: str = ""


@dataclass(frozen=True, kw_only=True)
class ModelList:
    """The names of a provider's models for a task, if a provider is configured."""

    provider: str = ""
    names: tuple[str, ...] = ()
    #: A sentence with the reason for the failure.
    error: str = ""


class Providers:
    """The models which this installation may use. Thread-safe. Clients and their connections are shared."""

    def __init__(
        self, settings: Settings, *, meaning: MeaningEmbedder | None = None, with_meaning: bool = True
    ) -> None:
        self._settings = settings
        self._builtin = LexicalEmbedder()
        self._connections = connect(settings)
        #: Connections still in use by earlier calls.
        self._left: list[Connections] = []
        #: "openai", unless OPENAI_BASE_URL points to another provider with a known host.
        self.provider = self._connections.primary
        self._cross_encoder: Reranker | None = None
        self._embedders: dict[str, Embedder] = {self._builtin.id: self._builtin}
        #: Compares passages by meaning, beside words, in collections with the built-in embedder; `None` if not wanted
        #: or not installed.
        self.meaning: MeaningEmbedder | None = None
        if with_meaning and settings.builtin_embedder == "meaning" and is_installed():
            self.meaning = meaning or shared_embedder()

    def reconnect(self) -> None:
        """Reconnect with the current settings. Calls in progress finish on their old connections.

        Raises `SettingsError` for an unusable key or address. In this case, everything stays unchanged.
        """
        connections = connect(self._settings)
        self._left.append(self._connections)
        self._connections, self.provider = connections, connections.primary
        self._embedders = {self._builtin.id: self._builtin}

    def is_configured(self, provider: str) -> bool:
        """Whether this provider can be used. The built-in provider always can."""
        return provider == self._builtin.provider or provider in self._connections.by_name

    def probe(self) -> list[Probe]:
        """Test all configured providers which have a free call, concurrently, and return their responses."""
        connections = [connection for connection in self._connections.by_name.values() if connection.spec.probe]
        if not connections:
            return []
        with ThreadPoolExecutor(len(connections), thread_name_prefix="probe") as pool:
            return list(pool.map(_probed, connections))

    def models(self, capability: Capability) -> ModelList:
        """Ask the default provider for a task, with a free call, which models it offers. Returns the models or an
        error.
        """
        connection = self._connections.able(capability, "" if capability == "rerank" else self.provider)
        if connection is None:
            return ModelList()
        try:
            names = connection.models(capability, timeout_seconds=PROBE_SECONDS)
        except ProviderError as exc:
            return ModelList(provider=connection.spec.name, error=exc.message)
        return ModelList(provider=connection.spec.name, names=tuple(names))

    # Embedders

    def embedder_for(self, embedding_model_id: str) -> Embedder:
        """Return the embedder with this id, `provider/model@dimensions`.

        Raises `SettingsError` if its provider is not configured: a different embedder cannot replace it, because
        vectors from different embedders cannot be compared.
        """
        if embedding_model_id in self._embedders:
            return self._embedders[embedding_model_id]
        provider, model, dimensions = _parts_of(embedding_model_id)
        if provider == self._builtin.provider:
            raise SettingsError(f"There is no built-in embedder {embedding_model_id!r}; there is {self._builtin.id}.")
        if connection := self._connections.able("embed", provider):
            embedder = connection.embedder(model, dimensions)
        elif provider == "openai" and self._connections.at_primary is not None:
            raise SettingsError(ELSEWHERE.format(model=model, provider=provider, primary=self.provider))
        elif provider in ASKABLE:
            reason = NO_KEY if provider_spec(provider).key_variable else NOT_SET
            raise SettingsError(reason.format(model=model, provider=provider, variable=variable_of(provider)))
        else:
            raise SettingsError(f"There is no provider {provider!r}; there are {', '.join(ASKABLE)}.")
        self._embedders[embedding_model_id] = embedder
        return embedder

    def has_meaning(self, embedding_model_id: str) -> bool:
        """Whether searches in collections with this embedder compare meaning, not only words."""
        return embedding_model_id != self._builtin.id or self.meaning is not None

    def meaning_for(self, embedding_model_id: str) -> MeaningEmbedder | None:
        """Return the built-in embedding model if the collection's own embedder only compares words, else `None`."""
        return self.meaning if embedding_model_id == self._builtin.id else None

    def default_embedder_id(self, profile: Profile) -> str:
        """Return the embedder for a new collection: from the settings, else from the profile, else the built-in
        embedder.

        A provider which is not configured is skipped. If the profile has its own configured provider, the profile comes
        before EMBEDDING_MODEL: the profile `civil` keeps Ollama.
        """
        profile_model = profile.embedding.embedding_model
        provider = profile_model.partition("/")[0]
        requested = self._wanted_embedder_id()
        if requested and (provider == self.provider or not self.is_configured(provider)):
            return requested
        return profile_model if self.is_configured(provider) else self._builtin.id

    def embedder_options(self, profile: Profile) -> list[EmbedderOption]:
        """Return the embedders for a new collection: the default first, embedders from unconfigured providers last."""
        default = self.default_embedder_id(profile)
        offered = dict.fromkeys((default, profile.embedding.embedding_model, self._wanted_embedder_id(), *OFFERED))
        ids = [*(identifier for identifier in offered if identifier), self._builtin.id]
        options = [self._option(identifier) for identifier in dict.fromkeys(ids)]
        return sorted(options, key=lambda option: (option.id != default, bool(option.missing)))

    def _option(self, identifier: str) -> EmbedderOption:
        provider, model, dimensions = _parts_of(identifier)
        return EmbedderOption(
            id=identifier,
            provider=provider,
            model=model,
            dimensions=dimensions,
            missing="" if self.is_configured(provider) else variable_of(provider) or "OPENAI_API_KEY",
            has_meaning=self.has_meaning(identifier),
        )

    def _wanted_embedder_id(self) -> str:
        """Return the embedder's id from EMBEDDING_MODEL. Missing provider and dimensions are added.

        Returns "" if the provider is not configured.
        """
        requested = self._settings.embedding_model
        if not requested or requested == self._builtin.id:
            return requested
        if not self.is_configured(requested.partition("/")[0]) or "/" not in requested:
            if self._connections.at_primary is None:
                return ""
            requested = f"{self.provider}/{requested}"
        if EMBEDDER_ID.fullmatch(requested):
            return requested
        return f"{requested}@{NATIVE_DIMENSIONS.get(requested.split('/', 1)[1], DEFAULT_DIMENSIONS)}"

    # Language models

    def chat_choice(self, profile: Profile) -> ModelChoice:
        """Return the answering model which the profile wants, and the model in use (see `_choose`)."""
        return self._choose(
            profile,
            profile.answer.chat_provider,
            profile.answer.chat_model,
            self._settings.chat_model,
            "chat_model",
            DEFAULT.answer.chat_model,
        )

    def translation_choice(self, profile: Profile) -> ModelChoice:
        """Return the models wanted and used for translating and tagging, by default the answering model."""
        choice = self._choose(
            profile,
            profile.language.translation_provider,
            profile.language.translation_model,
            self._settings.translation_model,
            "translation_model",
            DEFAULT.language.translation_model,
        )
        if choice.model:
            return choice
        answering = self.chat_choice(profile)
        return ModelChoice(
            wanted_provider=profile.language.translation_provider,
            wanted_model=profile.language.translation_model,
            provider=answering.provider,
            model=answering.model,
        )

    def chat_model_for(self, profile: Profile) -> ChatModel | None:
        """Return the answering model, or `None` without a provider. Answers are then quoted, not written."""
        return self._affordable(profile, self.chat_choice(profile))

    def translation_model_for(self, profile: Profile) -> ChatModel | None:
        """Return the model for translating and tagging, or `None` without a provider."""
        return self._affordable(profile, self.translation_choice(profile))

    def _affordable(self, profile: Profile, choice: ModelChoice) -> ChatModel | None:
        """Return the chosen model, or `None` for a paid model if the person may not spend more."""
        return self._chat_model(choice) if profile.spends or choice.provider in FREE_PROVIDERS else None

    def attachment_model_for(self, profile: Profile) -> ChatModel | None:
        """Return the model which describes attachments: the profile's, if its provider is configured, else the tagging
        model.
        """
        choice = self.chat_choice(profile)
        if choice.model and choice.provider == profile.answer.chat_provider and profile.reading.attachment_model:
            return self._chat_model(replace(choice, model=profile.reading.attachment_model))
        return self.translation_model_for(profile)

    def reranker_for(self, profile: Profile) -> Reranker | None:
        """Return the local cross-encoder, else a provider's reranker, else `None` (not wanted or not configured)."""
        if not profile.ranking.reranking:
            return None
        if self._settings.cross_encoder:
            return self._local_reranker()
        connection = self._connections.able("rerank")
        if connection is None or not profile.spends:
            return None
        if _is_overridden(profile, "rerank_model"):
            return connection.reranker(profile.ranking.rerank_model)
        usual = connection.spec.models.get("rerank") or profile.ranking.rerank_model
        return connection.reranker(self._settings.rerank_model or usual)

    def recogniser(self) -> TextRecogniser | None:
        """Return the provider's reader for scanned pages, if configured."""
        connection = self._connections.able("ocr")
        return None if connection is None else connection.recogniser()

    def _local_reranker(self) -> Reranker:
        # Two threads may load it concurrently; the later result is kept.
        if self._cross_encoder is None:
            self._cross_encoder = cross_encoder(Path(self._settings.cross_encoder).expanduser())
        return self._cross_encoder

    def close(self) -> None:
        """Close the connections, and end the processes of the built-in embedding model."""
        for connections in (*self._left, self._connections):
            connections.close()
        if self.meaning is not None:
            self.meaning.close()

    def _choose(
        self, profile: Profile, provider: str, model: str, setting: str, field: str, fallback: str
    ) -> ModelChoice:
        """Choose the profile's model if its provider is configured, else a model of the main provider.

        The main provider is OpenAI, or the server at OPENAI_BASE_URL. For this provider, the first of these is used: a
        model chosen for the collection, `setting` (from the environment), the profile's model.
        """
        chosen, used = "", ""
        if self._connections.able("chat", provider):
            is_ours = provider == self.provider and not _is_overridden(profile, field)
            chosen, used = provider, (setting if is_ours else "") or model
        elif self._connections.at_primary is not None:
            chosen, used = self.provider, setting or (model if provider == "openai" else fallback)
        return ModelChoice(wanted_provider=provider, wanted_model=model, provider=chosen, model=used)

    def _chat_model(self, choice: ModelChoice) -> ChatModel | None:
        connection = self._connections.able("chat", choice.provider) if choice.provider else None
        return None if connection is None else connection.chat_model(choice.model)


def check_key(settings: Settings, provider: str, key: str) -> str:
    """Test a provider's key with a free call. Returns a sentence which says why the key is unusable, or "" if it works.

    A provider without a free call is not tested.
    """
    tried = replace(settings)
    tried.adopt(dict.fromkeys(KEY_VARIABLES, "") | {provider_spec(provider).key_variable: key})
    try:
        candidate = Providers(tried, with_meaning=False)
    except SettingsError as exc:
        return exc.message
    try:
        return next(
            (probe.error for probe in candidate.probe() if probe.provider in (provider, candidate.provider)), ""
        )
    finally:
        candidate.close()


def _parts_of(identifier: str) -> tuple[str, str, int]:
    parts = EMBEDDER_ID.fullmatch(identifier)
    if parts is None:
        raise SettingsError(f"{identifier!r} does not name an embedder: write provider/model@dimensions.")
    return parts["provider"], parts["model"], int(parts["dimensions"])


def _is_overridden(profile: Profile, field: str) -> bool:
    original = PROFILES.get(profile.name)
    return original is not None and bool(profile.value(field) != original.value(field))


def _probed(connection: Connection) -> Probe:
    started, error = time.perf_counter(), ""
    try:
        connection.probe(timeout_seconds=PROBE_SECONDS)
    except ProviderError as exc:
        error = exc.message
    return Probe(provider=connection.spec.name, ms=round((time.perf_counter() - started) * 1000), error=error)
