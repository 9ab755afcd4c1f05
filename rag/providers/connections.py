"""Connect to the providers in the settings. Nothing is sent yet, and only their modules are imported."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rag.errors import SettingsError
from rag.providers import Connection
from rag.providers.addresses import require_web_address
from rag.settings import Settings
from rag.settings.providers import BY_NAME, PROVIDERS, Capability, ProviderSpec, providers_for


@dataclass(frozen=True)
class Connections:
    """The configured providers, by name."""

    #: The provider OPENAI_BASE_URL points to, configured or not.
    primary: str
    #: The connection to it; `None` without a key.
    at_primary: Connection | None
    by_name: Mapping[str, Connection]

    def able(self, capability: Capability, provider: str = "") -> Connection | None:
        """Return the connection to a capable provider, by default the preferred one; `None` without any."""
        names = [provider] if provider else [spec.name for spec in providers_for(capability)]
        found = [self.by_name[name] for name in names if name in self.by_name]
        return next((connection for connection in found if capability in connection.spec.capabilities), None)

    def close(self) -> None:
        for connection in {id(one): one for one in (*self.by_name.values(), self.at_primary) if one}.values():
            connection.close()


def connect(settings: Settings) -> Connections:
    """Create the connections; nothing is sent yet. Raises `SettingsError` naming the unusable variable."""
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
    others = {
        spec.name: _factory(spec)(spec, settings)
        for spec in PROVIDERS
        if spec.factory and spec.name != "openai" and settings.has_provider(spec.name)
    }
    return Connections(primary=primary, at_primary=main, by_name=({primary: main} if main else {}) | others)


def _factory(spec: ProviderSpec) -> Callable[[ProviderSpec, Settings], Connection]:
    module, _, name = spec.factory.partition(":")
    found: Callable[[ProviderSpec, Settings], Connection] = getattr(
        importlib.import_module(f"rag.providers.{module}"), name
    )
    return found


def provider_of(base_url: str) -> str:
    """Name the provider at this address, as in the ledger and in embedder ids."""
    host, port = require_web_address("OPENAI_BASE_URL", base_url)
    for spec in PROVIDERS:
        if any(host == known or host.endswith(f".{known}") for known in spec.hosts):
            return spec.name
    return "ollama" if port == 11434 or "ollama" in host else "openai"


def _require_sendable(name: str, key: str) -> None:
    if not all("!" <= character <= "~" for character in key):
        raise SettingsError(f"{name} holds characters that no key has, such as a space or a line break. Copy it again.")
