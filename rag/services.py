"""The composition root: every part is created here and receives its dependencies.

Pages and routes call `services()`.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from typing import Any
from uuid import UUID

import psycopg

from rag.access.accounts import Accounts
from rag.access.api_keys import ApiKeys
from rag.access.connected_apps import ConnectedApps
from rag.access.identity import SingleSignOn
from rag.access.limits import Limits
from rag.access.sessions import Sessions
from rag.access.tenants import Tenants, all_tenants
from rag.answering.jobs import LiveAnswers
from rag.answering.logged_search import Searches
from rag.answering.model_trials import ModelTrials
from rag.answering.pipeline import Answerer
from rag.errors import AccessError, DatabaseUnavailable, InvalidInput, NotAllowed, NotFound
from rag.evaluation.judging import Judge
from rag.evaluation.previews import Previews
from rag.evaluation.runs import Evaluations
from rag.ingestion.document_jobs import JobControl, JobQueue
from rag.ingestion.loaders.values import ExtractionLimits
from rag.ingestion.pipeline import IngestionPipeline
from rag.ingestion.queue import Queue
from rag.ingestion.sources.folder import FolderSource, allowed_folder
from rag.ingestion.sources.runs import SourceEvents, SourceMaker, Syncs
from rag.ingestion.sources.sync import Source
from rag.language import N_
from rag.library.documents import DocumentLibrary
from rag.money.budgets import Budgets
from rag.money.ledger import Ledger
from rag.money.price_list import TenantPrices
from rag.monitoring.checks import Check
from rag.profiles import BOARD_PROFILES
from rag.profiles.legal.opinions import Opinions
from rag.profiles.legal.references import ReferenceDocuments
from rag.profiles.notices.sources import board_makers
from rag.profiles.notices.table import PostEvents
from rag.providers.builtin_embedders import LexicalEmbedder
from rag.providers.registry import Providers
from rag.records.analytics import Analytics
from rag.records.audit import AuditLog
from rag.records.chat_logs import ChatLogs
from rag.records.conversations import Conversations, Feedback
from rag.records.events import emit
from rag.records.gaps import Gaps, QuestionEmbedder, question_means
from rag.records.help_requests import HelpRequests
from rag.records.pdf_exports import PdfExports
from rag.records.privacy import Privacy, erase_again
from rag.retrieval.calibration import Calibrations
from rag.retrieval.retriever import Retriever
from rag.retrieval.vector_index import VectorIndexes
from rag.scheduled_work import ScheduledWork, WorkParts
from rag.settings import Settings, load_settings
from rag.storage.backup import AutomaticBackups
from rag.storage.database import Database, analyse_grown_tables, sealing_key
from rag.storage.embedded_postgres import EmbeddedServer, start_server
from rag.storage.erasures import REGISTER, ErasureRegister, read_register
from rag.storage.files import FileStore, Originals
from rag.storage.migrations import migrate
from rag.storage.provider_settings import ChosenModels, PastedKeys
from rag.types import Collection, Identity, Role

#: Shown on the console while the product starts.
log = logging.getLogger("rag.start")
#: Finds the integrations, whose jobs the queue runs. The core imports no integration.
INTEGRATIONS = "rag.integrations.registry"
#: The account behind calls made by programs on this machine.
PROGRAM = UUID(int=0)
#: Shown to a person whose question is answered without a model, by whose budget is spent.
BUDGET_OF = {
    "company": N_(
        "The company's budget for this month is spent. "
        "Until next month, search works without paid models, and answers quote the documents."
    ),
    "group": N_(
        "Your group's budget for this month is spent. "
        "Until next month, search works without paid models, and answers quote the documents."
    ),
    "widget": N_(
        "This assistant's budget for this month is spent. "
        "Until next month, search works without paid models, and answers quote the documents."
    ),
    "person": N_(
        "Your budget for this month is spent. "
        "Until next month, search works without paid models, and answers quote the documents."
    ),
}


#: Shown to a person whose budget requires agreement before more is spent.
ASKS = N_(
    "Most of this month's budget is spent. No model is called for you until you confirm that you want to continue."
)


@dataclass(frozen=True)
class Services:
    """Every part of the running product."""

    settings: Settings
    database: Database
    files: Originals
    providers: Providers
    #: Provider keys an administrator entered on a page.
    pasted_keys: PastedKeys
    #: Models an administrator chose on a page.
    chosen_models: ChosenModels
    model_trials: ModelTrials
    ledger: Ledger
    retriever: Retriever
    pipeline: IngestionPipeline
    queue: Queue
    syncs: Syncs
    documents: DocumentLibrary
    references: ReferenceDocuments
    answerer: Answerer
    searches: Searches
    opinions: Opinions
    answers: LiveAnswers
    conversations: Conversations
    feedback: Feedback
    help_requests: HelpRequests
    chat_logs: ChatLogs
    calibrations: Calibrations
    analytics: Analytics
    gaps: Gaps
    evaluations: Evaluations
    scheduled_work: ScheduledWork
    #: Missing without the integration.
    backups: AutomaticBackups | None
    #: Missing without the integration.
    pdf_exports: PdfExports | None
    #: Runs the checks of integrations, for `doctor`.
    checks: Callable[[Services], list[Check]]
    #: Updates the gauges of integrations, for `/metrics`.
    measure: Callable[[Services], None]
    previews: Previews
    accounts: Accounts
    sessions: Sessions
    tenants: Tenants
    audit: AuditLog
    prices: TenantPrices
    budgets: Budgets
    privacy: Privacy
    api_keys: ApiKeys
    connected_apps: ConnectedApps
    vector_indexes: VectorIndexes
    limits: Limits
    #: Connects to the database as the tables' owner; for an operator's commands.
    owner_conninfo: str = field(default="", repr=False)
    single_sign_on: SingleSignOn | None = None
    #: When this process began to use the built-in database and no other did, by the monotonic clock.
    alone_at: float | None = None
    #: Closed at the end, in this order.
    closers: tuple[Callable[[], Any], ...] = field(default=(), repr=False)

    def choose_collection(self, tenant_id: str, name: str | None) -> Collection:
        """Return the tenant's collection with this name or id.

        Without `name`, return the default collection, which is created if missing. Raises `InvalidInput` for an unknown
        collection, `NotFound` for an unknown tenant.
        """
        collection = self.documents.choose(tenant_id, name)
        if collection is None and not self.documents.collections(tenant_id):
            if tenant_id != self.settings.tenant:
                self.tenants.get(tenant_id)
            self.documents.ensure_first_collection(tenant_id)
            collection = self.documents.choose(tenant_id, name)
        if collection is None:
            names = ", ".join(collection.name for collection in self.documents.collections(tenant_id))
            raise InvalidInput(f"Tenant {tenant_id} has no collection {name!r}; it has: {names}.")
        return collection

    def require_tenant(self, tenant_id: str) -> None:
        """Check that a tenant exists. Raises `NotFound`. The settings' tenant is created if it is missing."""
        try:
            self.tenants.get(tenant_id)
        except NotFound:
            if tenant_id != self.settings.tenant:
                raise
            self.documents.ensure_first_collection(tenant_id)

    def close(self) -> None:
        """Stop everything running: answers first, then the worker, the pool and the embedded server. Idempotent."""
        for closer in self.closers:
            with contextlib.suppress(Exception):
                closer()


def program_of(tenant_id: str) -> Identity:
    """Return the identity under which a program on this machine acts for a tenant: an administrator without
    an account.
    """
    return Identity(account_id=PROGRAM, tenant_id=tenant_id, email="", name="program", role=Role.ADMIN)


def assemble(
    settings: Settings, database: Database, embedded: EmbeddedServer | None = None, owner_conninfo: str = ""
) -> Services:
    """Create all parts of the product around an open database, and return them."""
    registry = import_module(INTEGRATIONS)
    database.recent_sign_in_minutes = settings.recent_sign_in_minutes
    sessions = Sessions(database, settings)
    files: Originals = FileStore(settings.data_dir / "files")
    accounts = None
    closers: list[Callable[[], Any]] = []
    if settings.supabase_service_role_key:
        files, accounts, closer = _at_supabase(settings, database, sessions)
        closers.append(closer)
    pasted_keys = PastedKeys(settings)
    pasted_keys.adopt()
    chosen_models = ChosenModels(settings)
    chosen_models.adopt()
    limits = Limits(settings)
    providers = Providers(settings)
    ledger = Ledger(database)
    chat_logs = ChatLogs(database)
    conversations = Conversations(database)
    retriever = Retriever(database, providers)
    budgets = Budgets(database)

    def stop_spending(identity: Identity) -> str:
        try:
            spent = budgets.spent_for(identity)
            is_spent = spent is None and budgets.is_widget_spent(identity)
        except DatabaseUnavailable:
            return ""  # An answer in progress is worth more than its cost.
        if is_spent:
            return BUDGET_OF["widget"]
        if spent is None:
            return ""
        return ASKS if spent.asks else BUDGET_OF[spent.scope]

    def has_budget(identity: Identity) -> bool:
        return budgets.may_hold(identity) or identity.is_widget

    answerer = Answerer(retriever, providers, chat_logs, settings, stop_spending=stop_spending, has_budget=has_budget)
    answers = LiveAnswers(answerer, conversations, database)
    searches = Searches(retriever, chat_logs, stop_spending=stop_spending)
    judge = Judge(providers, chat_logs, stop_spending=stop_spending)
    # Without keys and meaning, because these checks must be free.
    by_words = Providers(Settings(data_dir=settings.data_dir, builtin_embedder="lexical"), with_meaning=False)
    evaluations = Evaluations(database, answerer, judge, Retriever(database, by_words))
    pipeline = IngestionPipeline(database, files, providers, ledger, settings)
    queue = Queue(database, pipeline)
    syncs = make_syncs(
        files, pipeline.control, queue, settings, events=PostEvents(database),
        makers={**board_makers(settings, database), **registry.source_makers(settings)},
    )  # fmt: skip
    queue.on_sync = syncs.run
    queue.on_schedule = syncs.run_due
    documents = DocumentLibrary(database, files, providers, settings, queue)
    queue.on_empty_bin = documents.bin.empty
    documents.check_spending = budgets.check_company
    pipeline.why_to_ask = budgets.why_to_ask
    queue.outgoing = {name: partial(work, database, settings) for name, work in registry.jobs().items()}
    analytics = Analytics(database)
    gaps = Gaps(database, partial(question_embedder, providers), HelpRequests(database))
    chat_logs.on_gap = gaps.group_soon
    backups: AutomaticBackups | None = registry.automatic_backups(settings)
    register = ErasureRegister(settings.data_dir, backups.share_erasures if backups is not None else None)
    privacy = Privacy(database, owner_conninfo, register=register.note)
    tenants = Tenants(database, files, owner_conninfo)
    scheduled_work = ScheduledWork(
        database,
        settings,
        WorkParts(
            analytics=analytics,
            gaps=gaps,
            privacy=privacy,
            budgets=budgets,
            evaluations=evaluations,
            collections=documents.collections,
        ),
        tell=partial(emit, database),
    )
    if owner_conninfo:

        def active_tenants() -> list[str]:
            return [tenant.id for tenant in all_tenants(owner_conninfo) if tenant.suspended_at is None]

        def by_the_clock() -> None:
            scheduled_work.run(active_tenants())
            if analyse_grown_tables(owner_conninfo):
                log.debug("The tables of the search have grown and were analysed")

        queue.on_every_minute = by_the_clock
        queue.on_evaluations = lambda: scheduled_work.run_all_golden(active_tenants())
    if backups is not None and backups.is_on:
        queue.on_backups = backups.run_due
    closers[:0] = [
        evaluations.stop,
        gaps.close,
        answers.stop_all,
        queue.stop_worker,
        pipeline.close,
        providers.close,
        database.close,
    ]
    if embedded is not None:
        closers.append(embedded.stop)
    calibrations = Calibrations(database, providers, chat_logs)
    return Services(
        settings=settings,
        database=database,
        files=files,
        providers=providers,
        pasted_keys=pasted_keys,
        chosen_models=chosen_models,
        model_trials=ModelTrials(providers, chat_logs),
        ledger=ledger,
        retriever=retriever,
        pipeline=pipeline,
        queue=queue,
        syncs=syncs,
        documents=documents,
        references=ReferenceDocuments(database, files, providers, ledger, pipeline),
        answerer=answerer,
        searches=searches,
        opinions=Opinions(database, providers, searches, chat_logs, stop_spending=stop_spending),
        answers=answers,
        conversations=conversations,
        feedback=Feedback(database, on_gap=gaps.group_soon),
        help_requests=HelpRequests(database, on_gap=gaps.group_soon),
        chat_logs=chat_logs,
        calibrations=calibrations,
        vector_indexes=VectorIndexes(database, calibrations, owner_conninfo),
        analytics=analytics,
        evaluations=evaluations,
        previews=Previews(database, searches, providers),
        scheduled_work=scheduled_work,
        backups=backups,
        pdf_exports=registry.pdf_exports(),
        checks=registry.checks,
        measure=registry.measure,
        gaps=gaps,
        accounts=accounts or Accounts(database, sessions, settings),
        sessions=sessions,
        tenants=tenants,
        audit=AuditLog(database),
        prices=TenantPrices(database),
        budgets=budgets,
        privacy=privacy,
        owner_conninfo=owner_conninfo,
        api_keys=ApiKeys(database),
        connected_apps=ConnectedApps(database, settings, limits),
        limits=limits,
        single_sign_on=registry.single_sign_on(settings, database) if settings.oidc_issuer else None,
        alone_at=embedded.alone_at if embedded else None,
        closers=tuple(closers),
    )


def question_embedder(providers: Providers, embedding_model: str) -> QuestionEmbedder:
    """Return the embedder for comparing questions: the built-in embedding model, else the embedder by words."""
    meaning = providers.meaning
    if meaning is not None:
        # Without their language's contribution, questions asking the same are at 0.2 to 0.3, also across two languages;
        # 1 in 100 other questions is at 0.14 or more.
        return QuestionEmbedder(
            meaning.id, 0.15, lambda texts: meaning.embed(texts, purpose="query").vectors, question_means()
        )
    words = LexicalEmbedder()
    return QuestionEmbedder(words.id, 0.55, lambda texts: words.embed(texts, purpose="query").vectors)


def _at_supabase(
    settings: Settings, database: Database, sessions: Sessions
) -> tuple[Originals, Accounts | None, Callable[[], Any]]:
    # Imported here, because this takes half a second.
    from rag.access.supabase import SupabaseAccounts
    from rag.providers.supabase import SupabaseFiles, SupabaseProject

    project = SupabaseProject(settings)
    is_asked = settings.sign_in == "supabase"
    accounts = SupabaseAccounts(database, sessions, settings, project) if is_asked else None
    return SupabaseFiles(project, settings.supabase_bucket), accounts, project.close


def connect_services(settings: Settings) -> Services:
    """Start or reach the database, migrate its tables, and return the assembled parts.

    Raises `SettingsError` or `DatabaseUnavailable` with a sentence saying what to do.
    """
    registry = import_module(INTEGRATIONS)
    registry.check(settings)
    stop_tracing = registry.start_tracing(os.environ)
    embedded: EmbeddedServer | None = None
    if settings.database_url:
        application, owner = settings.database_url, settings.migration_database_url or settings.database_url
    else:
        embedded = start_server(settings.data_dir, on_start=partial(log.info, "Starting the built-in database"))
        application, owner = embedded.application, embedded.owner
    outage = embedded.outage if embedded else None
    database = Database(application, is_pooled=settings.database_pooled or None, outage=outage)
    try:
        applied = migrate(owner)
        if applied:
            log.info("Brought the tables up to date (%d migrations)", len(applied))
        erase_again(owner, read_register(settings.data_dir / REGISTER))
        database.key = sealing_key(owner)
        database.open()
        database.fetch_value(None, "drop_unused_indexes")  # Indexes a running search kept from being dropped.
        database.standbys = registry.standbys(settings, database)
    except DatabaseUnavailable as exc:
        if embedded is None:
            raise
        embedded.stop()
        # Sentences about DATABASE_URL do not fit here; sentences about tables and rows do.
        raise (database.unavailable() if isinstance(exc.__cause__, psycopg.OperationalError) else exc) from exc
    except BaseException:
        if embedded is not None:
            embedded.stop()
        raise
    assembled = assemble(settings, database, embedded, owner)
    return replace(assembled, closers=(*assembled.closers, stop_tracing))


class ServicesOfProcess:
    """Creates the services at the first call, and returns the same services at every call.

    It does not use Streamlit's cache: commands and workers start a sixth faster without importing Streamlit.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._made: Services | None = None

    def __call__(self) -> Services:
        if self._made is not None:
            return self._made
        with self._lock:
            if self._made is None:
                self._made = connect_services(load_settings())
            return self._made

    def clear(self) -> None:
        """Forget closed services: the next call creates new ones."""
        self._made = None


services = ServicesOfProcess()


def current_identity() -> Identity:
    """Return the page's user, verified again at each run. If the session has ended, the run ends."""
    import streamlit as st

    session_id = st.user.get("sid", "")
    identity = services().sessions.find_by_id(str(session_id)) if session_id else None
    if identity is None:
        raise AccessError("You are signed out. Reload the page to sign in.")
    return identity


def require(role: Role) -> Identity:
    """Return this page's user if their role is `role` or higher. The first line on every page.

    Raises `NotAllowed`, `AccessError`.
    """
    identity = current_identity()
    if not identity.may(role):
        raise NotAllowed
    return identity


def make_syncs(
    files: Originals,
    control: JobControl,
    queue: JobQueue,
    settings: Settings,
    *,
    events: SourceEvents,
    makers: Mapping[str, SourceMaker],
) -> Syncs:
    """Return the syncs for folders on the server, and for the kinds of sources in `makers`.

    By default, notice boards use `events`, which reports changes.
    """

    def folder(collection: Collection, stored: Mapping[str, Any]) -> Source:
        return FolderSource(allowed_folder(str(stored.get("path", "")), settings), ExtractionLimits.of(settings))

    return Syncs(
        files,
        control,
        queue,
        events,
        makers={FolderSource.kind: folder, **makers},
        usual=dict.fromkeys(BOARD_PROFILES, events.kind),
    )
