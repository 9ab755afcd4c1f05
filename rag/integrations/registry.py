"""Find the integrations in their folders, and combine their additions to the product."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag.command_line import Commands
from rag.errors import PackagesMissing
from rag.integrations.integration import Endpoint, Integration

if TYPE_CHECKING:
    from fastapi import APIRouter
    from starlette.routing import Route

    from rag.access.identity import SingleSignOn
    from rag.access.problems import Refusal
    from rag.ingestion.loaders.loader import Loader
    from rag.ingestion.sources.runs import SourceMaker
    from rag.monitoring.checks import Check
    from rag.providers import Reranker
    from rag.records.pdf_exports import PdfExports
    from rag.services import Services
    from rag.settings import Settings
    from rag.storage.backup import AutomaticBackups, Encryption
    from rag.storage.database import Database, ReadServers
    from rag.types import Collection, Identity
    from rag.ui.source_forms import SourceForm

FOLDER = Path(__file__).parent
TRACE_ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")


@cache
def integrations() -> tuple[Integration, ...]:
    """Return each folder's `INTEGRATION`, sorted by path."""
    folders = sorted(path.parent.relative_to(FOLDER) for path in FOLDER.glob("*/*/__init__.py"))
    return tuple(import_module(".".join(("rag.integrations", *folder.parts))).INTEGRATION for folder in folders)


def named(name: str) -> Any:
    """Import and return an object with a name like "module:name". Raises `PackagesMissing`."""
    module, _, inside = name.partition(":")
    try:
        return getattr(import_module(module), inside)
    except ModuleNotFoundError as exc:
        if (exc.name or "").partition(".")[0] == "rag":
            raise
        raise PackagesMissing from exc


def routes() -> list[Route]:
    return [route for integration in integrations() for route in routes_of(integration.all_routes)]


def routes_of(endpoints: Iterable[Endpoint]) -> list[Route]:
    """Convert endpoints to routes. A route's module is imported at the first request."""
    from starlette.routing import Route  # only for the server

    from rag.api.routing import Later

    return [
        Route(
            endpoint.path,
            Later(*endpoint.serves.split(":")),
            methods=endpoint.methods,
            name=endpoint.path,
            include_in_schema=False,
        )
        for endpoint in endpoints
    ]


def routers() -> list[APIRouter]:
    """Return the FastAPI routers which integrations add to our API."""
    return [integration.router() for integration in integrations() if integration.router is not None]


def refusals() -> Mapping[str, Refusal]:
    """Return functions which convert an error to a protocol's error format, by the protocol's path prefix."""
    return {prefix: named(write) for integration in integrations() for prefix, write in integration.refusals.items()}


def paths_for_other_sites() -> frozenset[str]:
    """Return the paths which are open without sign-in and accept requests from pages on other sites."""
    return frozenset().union(*(integration.other_sites for integration in integrations()))


def draw_outside(parts: Services, identity: Identity, collection: Collection) -> None:
    """Let each integration draw a list with the sites on which people outside the company can ask a collection."""
    for integration in integrations():
        if integration.draw_outside is not None:
            integration.draw_outside(parts, identity, collection)


def add_commands(commands: Commands) -> None:
    for integration in integrations():
        if integration.add_commands:
            named(integration.add_commands)(commands)


def jobs() -> Mapping[str, Callable[..., float | None]]:
    """Return job functions by name, from installed integrations."""
    return {
        name: partial(_run_named, work)
        for integration in integrations()
        if integration.jobs and integration.is_installed
        for name, work in integration.jobs.items()
    }


def _run_named(name: str, *arguments: Any, **more: Any) -> Any:
    return named(name)(*arguments, **more)


def check(settings: Settings) -> None:
    """Check all integrations' settings. Raises `SettingsError`."""
    for integration in integrations():
        if integration.check is not None:
            integration.check(settings)


def source_makers(settings: Settings) -> dict[str, SourceMaker]:
    """Return the functions which build sources, by the source's kind. Raises `SettingsError`."""
    check(settings)
    return {
        source.kind: partial(_run_named, source.makes, settings)
        for integration in integrations()
        for source in integration.sources
    }


def source_forms() -> dict[str, SourceForm]:
    """Return the forms for adding sources, by the source's kind, in the page's order."""
    from rag.ui.source_forms import FOLDER  # Streamlit, only for pages

    forms = [
        replace(named(source.form), is_installed=integration.is_installed)
        for integration in integrations()
        for source in integration.sources
    ]
    return {form.kind: form for form in (*sorted(forms, key=lambda form: form.order), FOLDER)}


def formats() -> tuple[Loader, ...]:
    """Return the file formats which integrations add to the core's."""
    return tuple(
        replace(loader, is_installed=integration.is_installed)
        for integration in integrations()
        if integration.formats
        for loader in named(integration.formats)
    )


def workers() -> Mapping[str, str]:
    """Return the modules for confined processes, by engine, from installed integrations."""
    return {
        engine: module
        for integration in integrations()
        if integration.workers and integration.is_installed
        for engine, module in integration.workers.items()
    }


def cross_encoder(path: Path) -> Reranker:
    """Load a reranker from a model file. Raises `SettingsError`, `PackagesMissing`."""
    for integration in integrations():
        if integration.cross_encoder:
            reranker: Reranker = named(integration.cross_encoder)(path)
            return reranker
    raise PackagesMissing


def single_sign_on(settings: Settings, database: Database) -> SingleSignOn | None:
    """Return the configured sign-in provider, or `None`. Raises `SettingsError`, `PackagesMissing`."""
    for integration in integrations():
        if integration.single_sign_on:
            provider: SingleSignOn | None = named(integration.single_sign_on)(settings, database)
            return provider
    raise PackagesMissing


def automatic_backups(settings: Settings) -> AutomaticBackups | None:
    """Return the automatic backups, or `None` if no integration offers backups. Raises `SettingsError`."""
    backups = (named(integration.backups)(settings) for integration in integrations() if integration.backups)
    return next(backups, None)


def backup_encryption(recipients: str) -> Encryption | None:
    """Return a function which encrypts for public keys, if any. Raises `SettingsError`, `PackagesMissing`."""
    return _backup_function("encryption", recipients) if recipients else None


def backup_decryption(identity: Path | None) -> Encryption | None:
    """Return a function which decrypts with the private keys in a file, if given. Raises `PackagesMissing`."""
    return _backup_function("decryption", identity) if identity is not None else None


def _backup_function(hook: str, key: object) -> Encryption:
    for integration in integrations():
        if make := getattr(integration, hook):
            function: Encryption = named(make)(key)
            return function
    raise PackagesMissing


def pdf_exports() -> PdfExports | None:
    """Return the functions for writing PDFs, or `None` if no integration offers PDFs."""
    from rag.records.pdf_exports import PdfExports

    for integration in integrations():
        if integration.report_pdf:
            return PdfExports(
                is_installed=integration.is_installed,
                write_report=partial(_run_named, integration.report_pdf),
                write_conversation=partial(_run_named, integration.conversation_pdf),
            )
    return None


def start_tracing(environment: Mapping[str, str]) -> Callable[[], None]:
    """Send traces if the environment names an endpoint for OpenTelemetry. Return a function which stops this.

    Raises `PackagesMissing`.
    """
    senders = [integration.tracing for integration in integrations() if integration.tracing]
    if not senders or not any(environment.get(name) for name in TRACE_ENDPOINTS):
        return lambda: None
    stop: Callable[[], None] = named(senders[0])()
    return stop


def standbys(settings: Settings, database: Database) -> ReadServers:
    """Return the configured standbys, connected.

    If no standby is configured, the returned object sends all reads to the primary.
    """
    from rag.storage.database import PrimaryAlone

    servers = (
        named(integration.standbys)(settings, database) for integration in integrations() if integration.standbys
    )
    return next(filter(None, servers), PrimaryAlone())


def checks(parts: Services) -> list[Check]:
    """Run all integrations' checks for `doctor`, and return the results."""
    return [check for integration in integrations() if integration.checks for check in named(integration.checks)(parts)]


def measure(parts: Services) -> None:
    """Update all integrations' gauges for `/metrics`."""
    for integration in integrations():
        if integration.measure:
            named(integration.measure)(parts)


def warm_up() -> None:
    """Import installed integrations' slow modules."""
    for integration in integrations():
        if integration.warm_up is not None and integration.is_installed:
            integration.warm_up()


async def serve_stdio(parts: Services, identity: Identity) -> None:
    """Serve a program on this machine over standard input and output. Raises `PackagesMissing`."""
    serving = next((integration for integration in integrations() if integration.serve_stdio is not None), None)
    if serving is None or serving.serve_stdio is None or not serving.is_installed:
        raise PackagesMissing
    await serving.serve_stdio(parts, identity)


async def finish(seconds: float) -> None:
    """Let integrations send pending messages, each integration for at most `seconds`."""
    for integration in integrations():
        if integration.finish is not None:
            await integration.finish(seconds)


def public_methods() -> Mapping[str, frozenset[str]]:
    """Return the paths open without sign-in, each with the allowed HTTP methods, for the guard."""
    return {
        # A route for GET also answers HEAD.
        route.path: frozenset(route.methods) | ({"HEAD"} if "GET" in route.methods else frozenset())
        for integration in integrations()
        for route in integration.open_routes
    }
