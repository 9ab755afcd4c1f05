"""The provider table. A new entry adds a provider to the settings, the prices and the pages.

A provider with OpenAI's API, Cohere's reranker or Upstage's parser needs only an entry here. A provider with a
different API also needs a `Connection` in `rag/providers`, named in the entry.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Capability = Literal["chat", "embed", "rerank", "ocr"]


@dataclass(frozen=True, kw_only=True)
class ProviderSpec:
    """A provider: capabilities, and how to configure, call and bill it."""

    #: Name in profiles, in embedder ids and in the ledger.
    name: str
    #: On pages and in messages.
    title: str
    capabilities: frozenset[Capability]
    #: The `Connection` class, `module:class` in `rag.providers`; empty if it runs in this process.
    factory: str = "openai_connection:OpenAIConnection"
    #: A free call exists for `doctor --probe`.
    probe: bool = True
    #: Environment variables for the key and the address; empty without any.
    key_variable: str = ""
    address_variable: str = ""
    #: Default address, unless the variable sets another.
    address: str = ""
    #: OPENAI_BASE_URL leads to this provider if its host is one of these or a subdomain.
    hosts: tuple[str, ...] = ()
    #: Name in genai-prices; empty if equal.
    price_id: str = ""
    #: Runs here or on the tenant's machine, without a bill.
    is_free: bool = False
    #: Embedders offered for a new collection, as model@dimensions.
    offered_embedders: tuple[str, ...] = ()
    #: Dimensions for embedding models named without them.
    dimensions: Mapping[str, int] = field(default_factory=dict)
    #: Least cosine similarity by the beginning of an embedding model's name. Taken from vendors' and users' published
    #: examples, not measured here. The values are low: ranking removes an extra passage, but a missing passage is lost.
    thresholds: Mapping[str, float] = field(default_factory=dict)
    #: Default model by task, if no setting chooses a model; for rerankers, if no profile does either.
    models: Mapping[Capability, str] = field(default_factory=dict)
    #: Name prefixes of embedding models able to shorten their vectors.
    shortenable_models: tuple[str, ...] = ()
    # Limits for an embedding request. OpenAI allows 2048 texts with 8192 tokens each; tokens are estimated, hence the
    # margin.
    maximum_texts: int = 2048
    maximum_text_tokens: int = 7000
    vector_encoding: Literal["base64", "float"] = "base64"

    @property
    def variable(self) -> str:
        """Return the environment variable to configure this provider; "" for the built-in provider."""
        return self.key_variable or self.address_variable


PROVIDERS: tuple[ProviderSpec, ...] = (
    ProviderSpec(
        name="openai",
        title="OpenAI",
        capabilities=frozenset({"chat", "embed"}),
        key_variable="OPENAI_API_KEY",
        address_variable="OPENAI_BASE_URL",
        offered_embedders=("text-embedding-3-small@1536", "text-embedding-3-large@3072"),
        dimensions={"text-embedding-3-large": 3072},
        thresholds={"text-embedding-3-": 0.25},
        shortenable_models=("text-embedding-3-",),
    ),
    ProviderSpec(
        name="gemini",
        title="Gemini",
        capabilities=frozenset({"chat", "embed"}),
        key_variable="GEMINI_API_KEY",
        address_variable="GEMINI_BASE_URL",
        hosts=("googleapis.com",),
        price_id="google",
        offered_embedders=("gemini-embedding-001@768", "gemini-embedding-001@1536", "gemini-embedding-001@3072"),
        dimensions={"gemini-embedding-001": 3072, "text-embedding-004": 768},
        thresholds={"gemini-embedding-": 0.5},
        shortenable_models=("gemini-embedding-",),
        maximum_texts=100,
        maximum_text_tokens=1750,
        vector_encoding="float",  # it refuses the SDK's default
    ),
    ProviderSpec(
        name="openrouter",
        title="OpenRouter",
        capabilities=frozenset({"chat", "embed"}),
        key_variable="OPENROUTER_API_KEY",
        address_variable="OPENROUTER_BASE_URL",
        hosts=("openrouter.ai",),
    ),
    ProviderSpec(
        name="ollama",
        title="Ollama",
        capabilities=frozenset({"chat", "embed"}),
        factory="ollama:OllamaConnection",
        address_variable="OLLAMA_URL",
        is_free=True,
        offered_embedders=("bge-m3@1024",),
        dimensions={"bge-m3": 1024, "nomic-embed-text": 768},
        thresholds={"bge-m3": 0.35},
    ),
    ProviderSpec(
        name="cohere",
        title="Cohere",
        capabilities=frozenset({"rerank"}),
        factory="cohere:CohereConnection",
        key_variable="COHERE_API_KEY",
        address_variable="COHERE_BASE_URL",
    ),
    ProviderSpec(
        name="upstage",
        title="Upstage",
        capabilities=frozenset({"ocr"}),
        factory="upstage:UpstageConnection",
        probe=False,
        models={"ocr": "document-parse"},
        key_variable="UPSTAGE_API_KEY",
        address_variable="UPSTAGE_BASE_URL",
    ),
    ProviderSpec(
        name="builtin", title="Built in", capabilities=frozenset({"embed"}), factory="", probe=False, is_free=True
    ),
)
BY_NAME: Mapping[str, ProviderSpec] = {spec.name: spec for spec in PROVIDERS}
#: Providers able to write answers, as named in profiles.
CHAT_PROVIDERS: tuple[str, ...] = tuple(spec.name for spec in PROVIDERS if "chat" in spec.capabilities)
FREE_PROVIDERS = frozenset(spec.name for spec in PROVIDERS if spec.is_free)
#: All environment variables for providers.
VARIABLES: tuple[str, ...] = tuple(
    variable for spec in PROVIDERS for variable in (spec.key_variable, spec.address_variable) if variable
)
KEY_VARIABLES = frozenset(spec.key_variable for spec in PROVIDERS if spec.key_variable)


def provider_spec(name: str) -> ProviderSpec:
    """Return the provider with this name. For an unknown name, return a provider with OpenAI's limits."""
    return BY_NAME.get(name) or ProviderSpec(name=name, title=name, capabilities=frozenset({"chat", "embed"}))


def provider_name(name: str) -> str:
    """Return a provider's title, for example "OpenAI" for `openai`."""
    return provider_spec(name).title


def variable_of(name: str) -> str:
    """Return the environment variable to configure a provider for answers or embeddings, or ""."""
    spec = BY_NAME.get(name)
    return spec.variable if spec is not None and spec.capabilities & {"chat", "embed"} else ""


def providers_for(capability: Capability) -> tuple[ProviderSpec, ...]:
    """Return the providers with a capability, preferred first."""
    return tuple(spec for spec in PROVIDERS if capability in spec.capabilities and spec.variable)


def titles_for(capability: Capability) -> str:
    """Return the titles for providers with a capability, joined for use in a sentence: "Cohere or Jina"."""
    return " or ".join(spec.title for spec in providers_for(capability))
