"""Describe an integration to the product in a single value."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fastapi import APIRouter

    from rag.services import Services
    from rag.settings import Settings
    from rag.types import Collection, Identity


@dataclass(frozen=True)
class Endpoint:
    """A path with HTTP methods. The module with the path's function or application is imported at the first request."""

    path: str
    #: "module:name".
    serves: str
    methods: tuple[str, ...]


@dataclass(frozen=True)
class SourceKind:
    """A source type for collections. The `kind` is stored in tables and never changes."""

    kind: str
    #: A function for making the source: it receives the product's settings, the collection and the stored settings.
    makes: str
    #: The form on the page Collections, a `SourceForm`.
    form: str


@dataclass(frozen=True, kw_only=True)
class Integration:
    """An integration's description for the product.

    Every command imports the modules with these descriptions. They must therefore not import packages. Functions are
    named "module:name".
    """

    #: The folder name.
    name: str
    title: str
    #: Names from `requirements-integrations.in`.
    packages: tuple[str, ...] = ()
    #: For people with a session and programs with an API key.
    routes: tuple[Endpoint, ...] = ()
    #: For everybody: the endpoint checks the caller.
    open_routes: tuple[Endpoint, ...] = ()
    #: Returns routes for our API, with their descriptions.
    router: Callable[[], APIRouter] | None = None
    #: Functions for writing errors, by path prefix, if the protocol is not ours.
    refusals: Mapping[str, str] = field(default_factory=dict)
    #: Open paths for posts from other sites, without cookies: the endpoint checks the site.
    other_sites: frozenset[str] = frozenset()
    #: Draws a section on the page Other programs, for administrators.
    draw: Callable[[Services, Identity, Sequence[Collection]], None] | None = None
    #: On a personal collection's page, tells who outside the company may ask.
    draw_outside: Callable[[Services, Identity, Collection], None] | None = None
    #: A function for adding commands to the command line.
    add_commands: str = ""
    #: Functions for the queue, by job name. A function receives the database, the settings and the
    #: arguments, and returns the seconds until the next try, or None.
    jobs: Mapping[str, str] = field(default_factory=dict)
    sources: tuple[SourceKind, ...] = ()
    #: The name for a tuple with file formats (`Loader`).
    formats: str = ""
    #: Modules for confined processes, by engine: "meaning" embeds texts, "recognition" reads scans.
    workers: Mapping[str, str] = field(default_factory=dict)
    #: A function for loading a reranker, from the path.
    cross_encoder: str = ""
    #: Raises `SettingsError` at the start for contradictory settings.
    check: Callable[[Settings], None] | None = None
    #: A function for signing in elsewhere, a `SingleSignOn`, from the settings and the database.
    single_sign_on: str = ""
    #: A function for making automatic backups, an `AutomaticBackups`, from the settings.
    backups: str = ""
    #: Functions for encrypting a backup for public keys, and decrypting a backup with the private keys in a file.
    encryption: str = ""
    decryption: str = ""
    #: Functions for writing a report and a conversation to PDF, with the signatures in `PdfExports`.
    report_pdf: str = ""
    conversation_pdf: str = ""
    #: A function for sending traces. Returns a function which sends the remaining traces and stops.
    tracing: str = ""
    #: Connects to standbys: receives the settings and the database, returns `ReadServers` if there are any.
    standbys: str = ""
    #: A function for checking the services in `doctor`; returns `Check`s.
    checks: str = ""
    #: A function for updating gauges before each scrape, from the services.
    measure: str = ""
    #: Imports slow modules beside the start.
    warm_up: Callable[[], object] | None = None
    #: Serves a program on this machine by standard input and output.
    serve_stdio: Callable[[Services, Identity], Awaitable[None]] | None = None
    #: Sends the last messages within these seconds, before the server ends.
    finish: Callable[[float], Awaitable[None]] | None = None

    @property
    def all_routes(self) -> tuple[Endpoint, ...]:
        return (*self.routes, *self.open_routes)

    @property
    def is_installed(self) -> bool:
        """Whether all required packages are installed."""
        from importlib.metadata import PackageNotFoundError, version  # slow, not needed in workers

        try:
            return all(map(version, self.packages))
        except PackageNotFoundError:
            return False
