"""Read the settings at startup: from the environment, then `.streamlit/secrets.toml`, then defaults.

An empty value means a missing value. Secrets are masked wherever settings are shown, and removed from logs and errors.
"""

from __future__ import annotations

import logging
import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path

from rag.errors import SettingsError
from rag.settings.providers import BY_NAME, KEY_VARIABLES, VARIABLES, Capability, providers_for


@dataclass(frozen=True, kw_only=True)
class Variable:
    """An integration's environment variable. Values are always text."""

    default: str = ""
    is_secret: bool = False


def read_variables(folder: Path) -> dict[str, Variable]:
    """Read the variables for all integrations below `folder`, by name."""
    return {
        name: Variable(**values)
        for path in sorted(folder.glob("*/*/settings.toml"))
        for name, values in tomllib.loads(path.read_text("utf-8")).items()
    }


INTEGRATION_VARIABLES = read_variables(Path(__file__).resolve().parent.parent / "integrations")
PROJECT = Path(__file__).resolve().parents[2]
ORIGIN = re.compile(r"https?://[a-z0-9.-]+(:[0-9]{1,5})?|https?://\[[0-9a-f:]+\](:[0-9]{1,5})?")
SECRETS_FILE = PROJECT / ".streamlit" / "secrets.toml"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """A process's settings.

    `ENVIRONMENT_NAMES` maps fields to environment variables. For all other fields, the variable is the field's name in
    capitals.
    """

    # Address and data.
    address: str = "127.0.0.1"
    port: int = 8501
    # Folder for the embedded Postgres, the originals and the generated secrets (RAG_DATA_DIR).
    data_dir: Path = PROJECT / ".data"
    # Any Postgres with pgvector 0.7 or newer. Empty: the embedded server in `data_dir`.
    database_url: str = field(default="", repr=False)
    # A role with the right to create tables, if DATABASE_URL's has none. Used only for migrations.
    migration_database_url: str = field(default="", repr=False)
    # Whether a pooler in transaction mode is in front (RAG_DATABASE_POOLED); assumed for ports 6543 and 6432.
    database_pooled: bool = False
    # The first administrator's tenant.
    tenant: str = "demo"
    # Public address behind a proxy, such as https://hr.example.com; https makes cookies Secure.
    public_url: str = ""

    # Supabase, beside DATABASE_URL. With the service key, originals are stored in its Storage.
    supabase_url: str = ""
    supabase_anon_key: str = field(default="", repr=False)
    supabase_service_role_key: str = field(default="", repr=False)
    supabase_bucket: str = "documents"
    supabase_timeout_seconds: float = 20.0
    # The service checking passwords: "builtin", the product's accounts, or "supabase" (RAG_SIGN_IN).
    sign_in: str = "builtin"

    # Sign-in at an OpenID Connect provider, beside the accounts. Mappings are written as "value=ours, value=ours".
    oidc_issuer: str = ""
    oidc_client_id: str = ""
    oidc_client_secret: str = field(default="", repr=False)
    oidc_name: str = "single sign-on"  # what the button says
    oidc_scopes: str = "openid email profile"
    oidc_tenants: str = ""  # Such as "example.com=demo": people with an address there belong to the tenant.
    oidc_groups_claim: str = "groups"
    oidc_roles: str = ""  # Such as "HR-Admins=admin, HR=manager"; empty: roles are assigned on the page People.
    oidc_default_role: str = "employee"  # For people without a mapped group; "none" refuses them.
    oidc_email_is_verified: bool = False  # Only the provider assigns addresses, like an organisation's Entra ID.
    oidc_session_hours: float = 12.0

    # Providers. Without a key the built-in embedder and the extractive answerer work. "meaning": passages in
    # collections with the built-in embedder are compared by words and by meaning, if the model is installed; "lexical":
    # only by words (RAG_BUILTIN_EMBEDDER).
    builtin_embedder: str = "meaning"
    openai_api_key: str = field(default="", repr=False)
    openai_base_url: str = "https://api.openai.com/v1"
    chat_model: str = ""  # empty: the profile's
    translation_model: str = ""
    embedding_model: str = ""
    openai_timeout_seconds: float = 60.0  # of every provider but Cohere
    gemini_api_key: str = field(default="", repr=False)
    gemini_base_url: str = "https://generativelanguage.googleapis.com/v1beta/openai/"
    openrouter_api_key: str = field(default="", repr=False)
    openrouter_base_url: str = "https://openrouter.ai/api/v1"
    ollama_url: str = ""  # for example http://localhost:11434; empty: no Ollama
    cohere_api_key: str = field(default="", repr=False)
    cohere_base_url: str = "https://api.cohere.com"
    rerank_model: str = ""
    # Text recognition for scanned pages. Without a key RapidOCR reads them, unless this is "none" (RAG_RECOGNITION);
    # Tesseract, if installed, reads the scripts unknown to RapidOCR.
    recognition: str = "builtin"
    upstage_api_key: str = field(default="", repr=False)
    upstage_base_url: str = "https://api.upstage.ai"
    upstage_timeout_seconds: float = 180.0  # A request with 50 scanned pages takes minutes.
    tesseract: str = "tesseract"  # The program; "none" ignores an installed program.
    # Invitations by e-mail: smtp://name:password@host:587, or smtps://; without it links are handed over by hand.
    smtp_url: str = field(default="", repr=False)
    mail_from: str = ""
    # Encrypts keys pasted on a page; empty: a file in the data folder.
    secret_key: str = field(default="", repr=False)
    # Provider variables from `rag/settings/providers.py` without a field here, by name.
    provider_variables: Mapping[str, str] = field(default_factory=dict, repr=False)
    # Variables of integrations, by name; `variable` adds defaults.
    integration_variables: Mapping[str, str] = field(default_factory=dict, repr=False)
    # Local folders which collections may sync from, separated like in PATH.
    sync_folders: str = ""
    # Hosts in the operator's network which collections may sync from, with ports, separated by commas; also without
    # https (RAG_SYNC_HOSTS). All other hosts must be public.
    sync_hosts: str = ""
    # Microsoft's national clouds have a different address (RAG_MICROSOFT_LOGIN_URL).
    microsoft_login_url: str = "https://login.microsoftonline.com"
    # Notice boards: the database with the table of posts (empty: the application's), allowed address prefixes for
    # attachments, separated by commas, and the secret in webhook events.
    posts_database_url: str = field(default="", repr=False)
    # A Supabase project whose REST address is read instead, with its key.
    posts_supabase_url: str = ""
    posts_supabase_key: str = field(default="", repr=False)
    attachment_urls: str = ""
    # Who may connect programs by OAuth, which then act for them: "admins", "everybody" or "none" (RAG_CONNECTED_APPS).
    connected_apps: str = "admins"
    webhook_secret: str = field(default="", repr=False)
    # The key Prometheus sends for /metrics; without it, only programs on this machine may read them (RAG_METRICS_KEY).
    metrics_key: str = field(default="", repr=False)
    cohere_timeout_seconds: float = 10.0
    # A cross-encoder as an ONNX file beside its tokenizer.json; the reranker instead of Cohere.
    cross_encoder: str = ""

    # Limits.
    maximum_upload_mb: int = 50
    maximum_pages: int = 5000
    extraction_timeout_seconds: float = 120.0
    extraction_memory_mb: int = 1024
    maximum_question_characters: int = 4000
    session_days: int = 14
    # Idle minutes after which a session ends; 0: never.
    session_idle_minutes: int = 4320
    # Keys, exports and deletions need a sign-in within these minutes; 0: any sign-in.
    recent_sign_in_minutes: int = 30
    # Limits per person or network address; 0: no limit.
    questions_per_minute: int = 30
    answers_at_once: int = 4
    key_answers_at_once: int = 30
    # Concurrent answers in this process, and waiting questions; 0: no limit.
    answers_under_way: int = 150
    answers_waiting: int = 100
    requests_per_minute: int = 600
    pages_at_once: int = 30
    upload_mb_per_minute: int = 2000
    wrong_sign_ins_per_address: int = 100
    # Sites whose pages may call the API with a key, such as https://intranet.example.com; separated by commas.
    cors_origins: str = ""

    # Work.
    worker: bool = True  # RAG_WORKER=false: another process works on the queue.
    samples: bool = True  # RAG_SAMPLES=false: start without the sample documents
    log_format: str = "text"  # "json": a JSON object per line, with the request's id (RAG_LOG_FORMAT).

    def __repr__(self) -> str:
        values = ", ".join(
            f"{f.name}={_masked(f.name, getattr(self, f.name))!r}" for f in fields(self) if f.name not in MAPPINGS
        )
        return f"Settings({values})"

    def variable(self, name: str) -> str:
        """Return the value or default for an integration's environment variable."""
        return self.integration_variables.get(name) or INTEGRATION_VARIABLES[name].default

    def adopt(self, values: Mapping[str, str]) -> None:
        """Set providers' variables by name while the product runs.

        An administrator enters the values on a page. The object is changed in place, because every part refers to the
        same object. All other settings stay unchanged after the start.
        """
        for name, value in values.items():
            if name.lower() in self.__dataclass_fields__:
                object.__setattr__(self, name.lower(), value)
            else:
                object.__setattr__(self, "provider_variables", {**self.provider_variables, name: value})

    def key_of(self, provider: str) -> str:
        """Return a provider's API key; "" if not set."""
        return self._provider_variable(BY_NAME[provider].key_variable)

    def address_of(self, provider: str) -> str:
        """Return a provider's API address: the configured address, else the default from `PROVIDERS`."""
        spec = BY_NAME[provider]
        return self._provider_variable(spec.address_variable) or spec.address

    def timeout_of(self, provider: str) -> float:
        """Return the timeout for a provider's requests in seconds, by default OpenAI's."""
        return float(getattr(self, f"{provider}_timeout_seconds", self.openai_timeout_seconds))

    def provider_for(self, capability: Capability) -> str:
        """Return the first configured provider with this capability, or ""."""
        return next((spec.name for spec in providers_for(capability) if self.has_provider(spec.name)), "")

    def has_provider(self, provider: str) -> bool:
        """Whether a provider is configured: by key or, if the provider needs no key, by address."""
        return bool(self._provider_variable(BY_NAME[provider].variable))

    def _provider_variable(self, name: str) -> str:
        return str(getattr(self, name.lower(), "")) or self.provider_variables.get(name, "")

    @property
    def own_address(self) -> str:
        """Return the product's address without a trailing slash: the public address, else `http://` with host and port.

        The listening address `0.0.0.0` becomes `localhost`, because browsers cannot open it.
        """
        host = "localhost" if self.address in ("0.0.0.0", "::") else self.address  # noqa: S104 - compared, not bound
        return self.public_url.rstrip("/") or f"http://{f'[{host}]' if ':' in host else host}:{self.port}"

    @property
    def maximum_upload_bytes(self) -> int:
        return self.maximum_upload_mb * 1024 * 1024

    @property
    def allowed_origins(self) -> frozenset[str]:
        return frozenset(origin.strip().rstrip("/") for origin in self.cors_origins.split(",") if origin.strip())

    @property
    def own_sync_hosts(self) -> frozenset[str]:
        return frozenset(host.strip().lower() for host in self.sync_hosts.split(",") if host.strip())


ENVIRONMENT_NAMES = {
    "data_dir": "RAG_DATA_DIR",
    "address": "RAG_ADDRESS",
    "tenant": "RAG_TENANT",
    "public_url": "RAG_PUBLIC_URL",
    "builtin_embedder": "RAG_BUILTIN_EMBEDDER",
    "cross_encoder": "RAG_CROSS_ENCODER",
    "sync_folders": "RAG_SYNC_FOLDERS",
    "sync_hosts": "RAG_SYNC_HOSTS",
    "microsoft_login_url": "RAG_MICROSOFT_LOGIN_URL",
    "recognition": "RAG_RECOGNITION",
    "tesseract": "RAG_TESSERACT",
    "database_pooled": "RAG_DATABASE_POOLED",
    "sign_in": "RAG_SIGN_IN",
    "secret_key": "RAG_SECRET_KEY",
    "smtp_url": "RAG_SMTP_URL",
    "mail_from": "RAG_MAIL_FROM",
    "worker": "RAG_WORKER",
    "samples": "RAG_SAMPLES",
    "maximum_upload_mb": "RAG_MAXIMUM_UPLOAD_MB",
    "maximum_pages": "RAG_MAXIMUM_PAGES",
    "extraction_timeout_seconds": "RAG_EXTRACTION_TIMEOUT_SECONDS",
    "extraction_memory_mb": "RAG_EXTRACTION_MEMORY_MB",
    "maximum_question_characters": "RAG_MAXIMUM_QUESTION_CHARACTERS",
    "session_days": "RAG_SESSION_DAYS",
    "session_idle_minutes": "RAG_SESSION_IDLE_MINUTES",
    "recent_sign_in_minutes": "RAG_RECENT_SIGN_IN_MINUTES",
    "questions_per_minute": "RAG_QUESTIONS_PER_MINUTE",
    "answers_at_once": "RAG_ANSWERS_AT_ONCE",
    "key_answers_at_once": "RAG_KEY_ANSWERS_AT_ONCE",
    "answers_under_way": "RAG_ANSWERS_UNDER_WAY",
    "answers_waiting": "RAG_ANSWERS_WAITING",
    "requests_per_minute": "RAG_REQUESTS_PER_MINUTE",
    "pages_at_once": "RAG_PAGES_AT_ONCE",
    "upload_mb_per_minute": "RAG_UPLOAD_MB_PER_MINUTE",
    "wrong_sign_ins_per_address": "RAG_WRONG_SIGN_INS_PER_ADDRESS",
    "posts_database_url": "RAG_POSTS_DATABASE_URL",
    "posts_supabase_url": "RAG_POSTS_SUPABASE_URL",
    "posts_supabase_key": "RAG_POSTS_SUPABASE_KEY",
    "attachment_urls": "RAG_ATTACHMENT_URLS",
    "webhook_secret": "RAG_WEBHOOK_SECRET",
    "cors_origins": "RAG_CORS_ORIGINS",
    "metrics_key": "RAG_METRICS_KEY",
    "connected_apps": "RAG_CONNECTED_APPS",
    "log_format": "RAG_LOG_FORMAT",
}
#: Fields mapping variables by name.
MAPPINGS = ("provider_variables", "integration_variables")
#: Names for the same variables in other systems.
ALSO_CALLED = {"SUPABASE_URL": ("NEXT_PUBLIC_SUPABASE_URL",), "SUPABASE_ANON_KEY": ("NEXT_PUBLIC_SUPABASE_ANON_KEY",)}
#: Limits for a person, an address or a process, 0 or more.
LIMITS = (
    "questions_per_minute",
    "answers_at_once",
    "key_answers_at_once",
    "answers_under_way",
    "answers_waiting",
    "requests_per_minute",
    "pages_at_once",
    "upload_mb_per_minute",
    "wrong_sign_ins_per_address",
    "recent_sign_in_minutes",
)
SECRET_FIELDS = frozenset(
    {
        "database_url",
        "migration_database_url",
        "openai_api_key",
        "secret_key",
        "smtp_url",
        "cohere_api_key",
        "gemini_api_key",
        "openrouter_api_key",
        "upstage_api_key",
        "posts_database_url",
        "posts_supabase_key",
        "webhook_secret",
        "metrics_key",
        "supabase_anon_key",
        "supabase_service_role_key",
        "oidc_client_secret",
    }
)


def environment_name(field_name: str) -> str:
    return ENVIRONMENT_NAMES.get(field_name, field_name.upper())


def environment_names() -> set[str]:
    """List the environment variables for all settings, including providers' and integrations'."""
    names = {environment_name(item.name) for item in fields(Settings) if item.name not in MAPPINGS}
    return {*names, *VARIABLES, *INTEGRATION_VARIABLES}


def load_settings(environment: Mapping[str, str] | None = None, secrets_file: Path | None = SECRETS_FILE) -> Settings:
    """Read the settings. Raises `SettingsError` naming the variable with an invalid value."""
    environment = os.environ if environment is None else environment
    stored = _read_secrets(secrets_file)
    values: dict[str, object] = {}
    for item in fields(Settings):
        if item.name in MAPPINGS:
            continue
        name = environment_name(item.name)
        raw = next((place[key] for key in (name, *ALSO_CALLED.get(name, ())) for place in (environment, stored)
                    if place.get(key)), "")  # fmt: skip
        if raw != "":
            values[item.name] = _convert(name, str(raw), type(getattr(_DEFAULTS, item.name)))
    unusual = [name for name in VARIABLES if name.lower() not in Settings.__dataclass_fields__]
    for mapping, names in (("provider_variables", unusual), ("integration_variables", INTEGRATION_VARIABLES)):
        read = {name: str(environment.get(name) or stored.get(name) or "").strip() for name in names}
        values[mapping] = {name: value for name, value in read.items() if value}
    settings = Settings(**values)  # type: ignore[arg-type]
    if not 0 < settings.port < 65536:
        raise SettingsError(f"PORT is {settings.port}, but a port is a number from 1 to 65535.")
    if settings.public_url and not ORIGIN.fullmatch(settings.public_url.rstrip("/").lower()):
        raise SettingsError(
            f"RAG_PUBLIC_URL is {settings.public_url!r}; it looks like https://hr.example.com, without a path: "
            "behind a proxy, the product needs a host name of its own."
        )
    for origin in settings.allowed_origins:
        if not ORIGIN.fullmatch(origin):
            raise SettingsError(
                f"RAG_CORS_ORIGINS names {origin!r}; an origin looks like https://intranet.example.com."
            )
    if settings.builtin_embedder not in ("meaning", "lexical"):
        raise SettingsError(
            f"RAG_BUILTIN_EMBEDDER is {settings.builtin_embedder!r}, but it has to be meaning or lexical."
        )
    if settings.recognition not in ("builtin", "none"):
        raise SettingsError(f"RAG_RECOGNITION is {settings.recognition!r}, but it has to be builtin or none.")
    for name in LIMITS:
        if getattr(settings, name) < 0:
            raise SettingsError(f"{environment_name(name)} is {getattr(settings, name)}; 0 means no limit.")
    _require_whole_supabase(settings)
    return settings


def _require_whole_supabase(settings: Settings) -> None:
    """Check that the Supabase settings are complete, and that settings with fixed choices have an allowed value.

    Raises `SettingsError`.
    """
    if settings.connected_apps not in ("admins", "everybody", "none"):
        connected = settings.connected_apps
        raise SettingsError(f"RAG_CONNECTED_APPS is {connected!r}, but it has to be admins, everybody or none.")
    if settings.log_format not in ("text", "json"):
        raise SettingsError(f"RAG_LOG_FORMAT is {settings.log_format!r}, but it has to be text or json.")
    if settings.sign_in not in ("builtin", "supabase"):
        raise SettingsError(f"RAG_SIGN_IN is {settings.sign_in!r}, but it has to be builtin or supabase.")
    if settings.supabase_url and not settings.database_url:
        raise SettingsError(
            "SUPABASE_URL is set, but DATABASE_URL is not. Supabase's web interfaces alone are not enough: searches, "
            "the queue and row-level security need the project's Postgres. Set DATABASE_URL to its connection string "
            "(Supabase: Connect, Transaction pooler), or unset SUPABASE_URL to use the built-in database."
        )
    if settings.sign_in == "supabase":
        for name in ("supabase_url", "supabase_anon_key", "supabase_service_role_key"):
            if not getattr(settings, name):
                raise SettingsError(f"RAG_SIGN_IN is supabase, so {environment_name(name)} has to be set.")
    if settings.supabase_service_role_key and not settings.supabase_url:
        raise SettingsError("SUPABASE_SERVICE_ROLE_KEY is set, but SUPABASE_URL is not.")


def _read_secrets(path: Path | None) -> dict[str, object]:
    if path is None or not path.is_file():
        return {}
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as exc:
        raise SettingsError(f"{path.name} in .streamlit is not valid TOML: {exc}.") from exc


def _convert(name: str, raw: str, kind: type) -> object:
    try:
        if kind is bool:
            return {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}[raw.lower()]
        if issubclass(kind, Path):
            return Path(raw).expanduser().absolute()
        return int(raw) if kind is int else float(raw) if kind is float else raw.strip()
    except (KeyError, ValueError) as exc:
        expected = {bool: "true or false", int: "a whole number", float: "a number"}.get(kind, "something else")
        raise SettingsError(f"{name} is {raw!r}, but it has to be {expected}.") from exc


def _masked(name: str, value: object) -> object:
    return "***" if name in SECRET_FIELDS and value else value


_DEFAULTS = Settings()


# Secrets in logs and error messages

HIDDEN = "***"
#: user:password@ in addresses, and password=… in connection strings, quoted or not.
IN_ADDRESS = re.compile(r"(?<=//)[^/@\s]+@(?=[^\s]*)")
IN_PAIRS = re.compile(r"\b(password|pwd|apikey|api_key|token|secret)\s*=\s*('(?:[^'\\]|\\.)*'|[^\s&]+)", re.IGNORECASE)
#: Shorter values are not real secrets, and masking them would hide half the words in a sentence.
SHORTEST_SECRET = 6


def without_passwords(text: str) -> str:
    """Return a text with masked users and passwords in addresses, and masked values like `password=…`."""
    return IN_PAIRS.sub(rf"\1={HIDDEN}", IN_ADDRESS.sub(f"{HIDDEN}@", text))


def first_line(error: BaseException) -> str:
    """Return the first line of a driver's error message, with passwords masked."""
    return without_passwords((str(error).strip().splitlines() or ["no reason given"])[0])


class SecretsFilter(logging.Filter):
    """A logging filter to mask secrets in messages and tracebacks."""

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        values = {str(getattr(settings, name)) for name in SECRET_FIELDS}
        values |= {value for name, value in settings.provider_variables.items() if name in KEY_VARIABLES}
        values |= {settings.variable(name) for name, variable in INTEGRATION_VARIABLES.items() if variable.is_secret}
        self._secrets = sorted((v for v in values if len(v) >= SHORTEST_SECRET), key=len, reverse=True)

    def filter(self, record: logging.LogRecord) -> bool:
        if record.exc_info and not record.exc_text:
            record.exc_text = logging.Formatter().formatException(record.exc_info)
        if record.exc_text:
            record.exc_text = self.clean(record.exc_text)
        message = record.getMessage()
        cleaned = self.clean(message)
        if cleaned != message:
            record.msg, record.args = cleaned, None
        return True

    def clean(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, HIDDEN)
        return without_passwords(text)


def hide_secrets(settings: Settings, handlers: list[logging.Handler] | None = None) -> None:
    """Mask the settings' secrets in the output from these log handlers; by default, from the root logger's handlers."""
    for handler in logging.getLogger().handlers if handlers is None else handlers:
        handler.addFilter(SecretsFilter(settings))
