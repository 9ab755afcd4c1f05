"""Manage collections: `collection`, `sync`, `reembed` and `calibrate`."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag.command_line import Commands, add_command, add_place, agreed
from rag.errors import InvalidInput, SettingsError
from rag.language import counted
from rag.settings import Settings

if TYPE_CHECKING:
    from rag.ingestion.reembedding import Reembedding
    from rag.ingestion.sources.sync import SyncReport
    from rag.library.bin import BinnedCollection
    from rag.retrieval.vector_index import VectorIndex
    from rag.services import Services
    from rag.types import Collection, Identity

#: With this share of wrong passages, similarity alone is no evidence.
MOST_MISTAKEN = 0.2
#: The source for `sync --github`.
GITHUB = "github"


def add_parsers(commands: Commands) -> None:
    parser = add_command(commands, "collection", "list, make, configure, delete or restore a collection")
    acts = parser.add_subparsers(dest="act", required=True, metavar="ACT")
    for act, text in (
        ("list", "all collections with their settings"),
        ("create", "make a collection"),
        ("set", "change a collection, or single settings of it"),
        ("delete", "move a collection to the bin with its documents and conversations, or delete it for good"),
        ("restore", "take a collection out of the bin with its documents"),
        ("index", "make an approximate index for a very large collection, and measure what it brings and loses"),
    ):
        command = acts.add_parser(act, help=text)
        if act != "list":
            command.add_argument("collection", metavar="NAME", help="its name" if act == "create" else "its name or id")
        if act == "create":
            command.add_argument("--profile", default="hr", help="hr when not given")
            command.add_argument("--model", default="", help="provider/model@dimensions; the profile's when not given")
            command.add_argument(
                "--as-source",
                action="store_true",
                help="with the settings that follow the profile's document exactly",
            )
        if act in ("create", "set"):
            command.add_argument("--language", default=None, help="of its documents, such as en")
        if act == "set":
            command.add_argument("values", nargs="*", metavar="SETTING=VALUE", help="such as top_k=20 reranking=false")
            command.add_argument("--name", default=None, help="its new name")
            command.add_argument("--group", action="append", dest="groups", help="may read it; may be given again")
            command.add_argument("--reset", action="append", default=[], metavar="SETTING", help="the profile's again")
        if act == "index":
            command.add_argument("--kind", choices=("hnsw", "ivfflat"), default="hnsw", help="hnsw when not given")
            instead = command.add_mutually_exclusive_group()
            instead.add_argument("--status", action="store_true", help="measure the existing index again")
            instead.add_argument("--drop", action="store_true", help="drop it; vectors are scanned again")
        if act == "delete":
            command.add_argument(
                "--for-good", action="store_true", help="at once, also out of the bin; needs --confirm"
            )
            command.add_argument("--confirm", default="", metavar="NAME", help="the collection's name once more")
        if act == "list":
            command.add_argument("--bin", action="store_true", help="those in the bin instead")
        command.add_argument("--tenant", default="", help="the tenant's id; RAG_TENANT when not given")
    parser.set_defaults(run=collection)
    parser = add_command(commands, "sync", "make a collection equal to its sources: posts, a folder, an account")
    add_place(parser)
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--folder", type=Path, default=None, help="the files of this folder")
    where.add_argument(
        "--github", default="", metavar="ACCOUNT[/NAME]", help="the repositories of this account, or one"
    )
    where.add_argument("--table", default="", help="the posts of this table")
    where.add_argument(
        "--source", default="", metavar="KIND", help="a source that the page offers, such as website or s3, with --set"
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="with --source: a setting of it, such as address=https://www.example.com/handbook/",
    )
    parser.add_argument(
        "--secret",
        action="append",
        default=[],
        metavar="NAME=FILE",
        help="with --source: a key of it, read from a file so that the list of processes does not show it",
    )
    parser.add_argument(
        "--column",
        action="append",
        default=[],
        metavar="FIELD=NAME",
        help="with --table: what a column is called there, such as title=subject or categories.table=boards",
    )
    parser.add_argument(
        "--every",
        type=interval,
        default=None,
        metavar="TIME",
        help="and again automatically from now on, such as every 30m, 6h or 1d; off stops that",
    )
    parser.add_argument("--allow-empty", action="store_true", help="accept that a source that lists nothing is empty")
    parser.set_defaults(run=sync)
    parser = add_command(commands, "reembed", "embed a collection again, with another model, beside the old vectors")
    add_place(parser, needs_collection=True)
    parser.add_argument("--model", default="", help="provider/model@dimensions; the profile's own when not given")
    parser.add_argument("--yes", action="store_true", help="do not ask before money is spent")
    parser.add_argument("--undo", action="store_true", help="go back to the previous model; free until the clean-up")
    parser.add_argument("--clean-up", action="store_true", help="remove the old vectors; then it cannot be undone")
    parser.set_defaults(run=reembed)
    parser = add_command(
        commands, "calibrate", "measure the similarity from which a collection's passages are evidence"
    )
    add_place(parser)
    parser.add_argument("--dry-run", action="store_true", help="only show what would be set")
    parser.set_defaults(run=calibrate)


def collection(arguments: argparse.Namespace, settings: Settings) -> int:
    """List collections, or create, change or delete one."""
    from rag.services import connect_services, program_of

    parts = connect_services(settings)
    library, identity = parts.documents, program_of(arguments.tenant or settings.tenant)
    try:
        parts.require_tenant(identity.tenant_id)
        if arguments.act == "create":
            language = arguments.language or ""
            created = library.create_collection(
                identity,
                arguments.collection,
                arguments.profile,
                embedding_model=arguments.model,
                language=language,
                is_as_source=arguments.as_source,
            )
            print(_describe(created))
        elif arguments.act == "list":
            if arguments.bin:
                deleted = library.bin.collections(identity)
                if not deleted:
                    print(f"There is no collection of {identity.tenant_id} in the bin.")
                for binned in deleted:
                    print(f"{binned.id}  deleted for good on {binned.kept_until:%Y-%m-%d}  {binned.name}")
                return 0
            listed = library.collections(identity)
            if not listed:
                print(f"{identity.tenant_id} has no collection yet. Make one: python -m rag collection create NAME")
            for each in listed:
                print(_describe(each))
        elif arguments.act == "restore":
            binned = _choose_binned(parts, identity, arguments.collection)
            problems = library.bin.take_collection_back(identity, binned.id)
            print("\n".join(problems) or f"{binned.name} is back.")
            return 1 if problems else 0
        elif arguments.act == "delete":
            return _delete(parts, identity, arguments)
        else:
            chosen = parts.choose_collection(identity.tenant_id, arguments.collection)
            if arguments.act == "index":
                return _index(parts, identity, chosen, arguments)
            changes = dict(_parse_setting(value) for value in arguments.values)
            if changes or arguments.reset:
                chosen = library.override_collection(identity, chosen.id, changes, resets=arguments.reset)
            if arguments.name is not None or arguments.language is not None or arguments.groups is not None:
                chosen = library.change_collection(
                    identity, chosen.id, name=arguments.name, language=arguments.language, groups=arguments.groups
                )
            print(_describe(chosen))
    finally:
        parts.close()
    return 0


def _delete(parts: Services, identity: Identity, arguments: argparse.Namespace) -> int:
    from rag.library.bin import BIN_DAYS

    library, name_or_id = parts.documents, arguments.collection
    if arguments.for_good:
        deleted = library.choose(identity.tenant_id, name_or_id) or _choose_binned(parts, identity, name_or_id)
        library.delete_collection(identity, deleted.id, confirmed_name=arguments.confirm)
        print(f"{deleted.name} is deleted for good.")
        return 0
    chosen = parts.choose_collection(identity.tenant_id, name_or_id)
    library.bin.put_collection(identity, chosen.id)
    print(f"{chosen.name} is in the bin, for {BIN_DAYS} days. `collection restore {chosen.id}` takes it back.")
    return 0


def _choose_binned(parts: Services, identity: Identity, name_or_id: str) -> BinnedCollection:
    """Return the collection in the bin with this name or id. Raises `InvalidInput`.

    If several have this name, the last deleted is returned.
    """
    for binned in parts.documents.bin.collections(identity):
        if name_or_id in (binned.name, str(binned.id)):
            return binned
    raise InvalidInput(
        f"There is no collection {name_or_id!r} in the bin. `collection list --bin` shows what is there."
    )


def _index(parts: Services, identity: Identity, chosen: Collection, arguments: argparse.Namespace) -> int:
    indexes = parts.vector_indexes
    if arguments.drop:
        had = indexes.drop(identity, chosen)
        print(f"The index of {chosen.name} is dropped." if had else f"{chosen.name} has no index.")
        return 0
    if arguments.status:
        if indexes.find(chosen) is None:
            print(f"{chosen.name} has no index; its vectors are scanned.")
            return 0
        index = indexes.measure(identity, chosen)
    else:
        print(f"Making the index of {chosen.name}. Searching and adding documents go on meanwhile.", flush=True)
        index = indexes.make(identity, chosen, arguments.kind)
    _print_index(chosen, index)
    return 0


def _print_index(chosen: Collection, index: VectorIndex) -> None:
    from rag.retrieval.hybrid_search import FUSED_CANDIDATES
    from rag.retrieval.vector_index import LEAST_RECALL

    measured = index.measurement
    if measured is None:
        return
    print(
        f"{chosen.name}: {index.kind} on {counted(index.passages, 'passage')} of "
        f"{counted(index.dimensions, 'dimension')}, made in {index.seconds:g} s, {index.bytes / 2**20:.1f} MB on disk"
    )
    questions = counted(measured.questions, "question that was asked", "questions that were asked")
    print(f"Measured by {questions} and {measured.passages} of its passages")
    print(f"{'':24}{'recall@10':>10}{f'recall@{FUSED_CANDIDATES}':>11}{'p50 ms':>9}{'p95 ms':>9}")
    for name, times in (("exact scan", measured.exact_ms), ("search without index", measured.scan_ms)):
        recall = f"{1:10.3f}{1:11.3f}" if name == "exact scan" else f"{'':21}"
        print(f"{name:24}{recall}{times.p50:9.2f}{times.p95:9.2f}")
    breadth = "ef_search" if index.kind == "hnsw" else "probes"
    for each in measured.tried:
        figures = f"{each.recall:10.3f}{each.recall_of_all:11.3f}{each.ms.p50:9.2f}{each.ms.p95:9.2f}"
        print(f"{f'index, {breadth} {each.breadth}':24}{figures}")
    if index.is_used:
        print(f"The search uses it, with {breadth} {index.breadth}.")
    elif not measured.finds_enough:
        print(
            f"The search does not use it: it finds {measured.chosen.recall:.3f} of the ten nearest, and "
            f"{LEAST_RECALL} are needed. Remove it with --drop, or try the other --kind."
        )
    else:
        print("The search does not use it: scanning is faster here. Remove it with --drop.")


def _describe(chosen: Collection) -> str:
    settings = "".join(f" {name}={json.dumps(value, ensure_ascii=False)}" for name, value in chosen.overrides.items())
    return f"{chosen.name}: {chosen.profile}, {chosen.language}, {chosen.embedding_model}{settings}"


def _parse_setting(text: str) -> tuple[str, Any]:
    """Parse SETTING=VALUE. A value which is not JSON is a text. Raises `InvalidInput`."""
    name, equals, value = text.partition("=")
    if not equals:
        raise InvalidInput(f"Settings are written SETTING=VALUE, such as top_k=20, not {text!r}.")
    try:
        return name, json.loads(value)
    except (ValueError, RecursionError):
        return name, value


def sync(arguments: argparse.Namespace, settings: Settings) -> int:
    """Sync a collection with its source, and process changed documents."""
    from rag.ingestion.document_jobs import JobTaken
    from rag.services import program_of, services
    from rag.types import DocumentStatus

    parts = services()
    tenant = arguments.tenant or settings.tenant
    try:
        parts.pipeline.control.stop_if_suspended(tenant)
        identity = program_of(tenant)
        # Posts belong on a notice board; files go to the collection asked by default.
        is_any = arguments.collection or arguments.folder is not None or arguments.github or arguments.source
        board = None if is_any else parts.syncs.default_collection(tenant)
        collection = board or parts.choose_collection(tenant, arguments.collection)
        try:
            report = _sync_source(parts, identity, collection, arguments)
        except JobTaken:
            raise InvalidInput("This collection is being synced by another process. Try again later.") from None
        failed = report.failed
        for document_id in report.documents:
            # A running application may process it already.
            with contextlib.suppress(JobTaken):
                parts.pipeline.run(tenant, document_id)
            document = parts.documents.get(tenant, document_id)
            failed += document.status is DocumentStatus.FAILED
            note = f": {document.message}" if document.message else ""
            print(f"{document.title}: {document.status}, {counted(document.chunk_count, 'passage')}{note}", flush=True)
        runs = parts.syncs.runs(tenant, collection.id, limit=1)
        sources = parts.syncs.sources(collection)
    finally:
        parts.close()
    counts = ("added", "updated", "unchanged", "removed", "failed")
    print(f"{collection.name}: " + ", ".join(f"{getattr(report, name)} {name}" for name in counts))
    if runs and (runs[0].cost is not None or not runs[0].is_priced):
        print(f"Cost: ${runs[0].cost:.4f}" if runs[0].is_priced else "Cost: partly unpriced")
    for problem in report.problems:
        print(f"  {problem}")
    for source in sources:
        if source.next_sync_at is not None and source.every_minutes is not None:
            print(
                f"Synced automatically ({source.kind}): every {counted(source.every_minutes, 'minute')}, next at "
                f"{source.next_sync_at:%Y-%m-%d %H:%M %Z}, wherever the application or a worker runs"
            )
    return 1 if failed else 0


def interval(text: str) -> int:
    """Parse 30m, 6h or 1d to minutes; `off` is 0."""
    units = {"m": 1, "h": 60, "d": 1440}
    if text == "off":
        return 0
    if text[-1:] not in units or not text[:-1].isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a time such as 30m, 6h or 1d, nor off")
    return int(text[:-1]) * units[text[-1]]


def _parse_mapping(table: str, columns: Sequence[str]) -> dict[str, Any]:
    mapping: dict[str, Any] = {"table": table}
    for entry in columns:
        field, equals, name = entry.partition("=")
        if not equals:
            raise InvalidInput(f"--column takes FIELD=NAME, such as title=subject, not {entry!r}.")
        group, _, column = field.rpartition(".")
        (mapping.setdefault(group, {}) if group else mapping)[column] = name
    return mapping


def _sync_source(
    parts: Services, identity: Identity, collection: Collection, arguments: argparse.Namespace
) -> SyncReport:
    """Sync a collection with a source.

    A folder need not be allowed in RAG_SYNC_FOLDERS, because the person at the terminal can read files anyway.
    """
    from rag.ingestion.loaders.values import ExtractionLimits
    from rag.ingestion.sources.folder import FolderSource
    from rag.ingestion.sources.sync import SyncWriter, sync_collection
    from rag.profiles.notices.table import PostsTable

    if arguments.folder is not None:
        path = arguments.folder.expanduser().resolve()
        source = FolderSource(path, ExtractionLimits.of(parts.settings))
        is_followed = False
        with contextlib.suppress(InvalidInput):  # only allowed folders are followed automatically
            parts.syncs.set_source(identity, collection, FolderSource.kind, {"path": str(path)})
            is_followed = True
        _set_schedule(parts, identity, collection, arguments.every, FolderSource.kind)
        if is_followed:  # Records a run, which the page shows.
            return parts.syncs.sync_now(identity, collection, allow_empty=arguments.allow_empty)
        writer = SyncWriter(parts.database, parts.files, collection, source.kind, queue=parts.queue)
        return sync_collection(writer, source, allow_empty=arguments.allow_empty)
    if arguments.table:
        parts.syncs.set_source(identity, collection, PostsTable.kind, _parse_mapping(arguments.table, arguments.column))
    if arguments.github:
        parts.syncs.set_source(identity, collection, GITHUB, {"owner": arguments.github})
    if arguments.source:
        settings, secrets = _parse_pairs("--set", arguments.set), _parse_pairs("--secret", arguments.secret)
        secrets = {name: _secret_in(Path(file)) for name, file in secrets.items()}
        parts.syncs.set_source(identity, collection, arguments.source, settings, secrets=secrets or None)
    kind = PostsTable.kind if arguments.table else GITHUB if arguments.github else arguments.source or None
    _set_schedule(parts, identity, collection, arguments.every, kind)
    return parts.syncs.sync_now(identity, collection, allow_empty=arguments.allow_empty)


def _parse_pairs(option: str, texts: Sequence[str]) -> dict[str, str]:
    pairs = [text.partition("=") for text in texts]
    if wrong := next((text for text, (_, equals, _) in zip(texts, pairs, strict=True) if not equals), None):
        raise InvalidInput(f"{option} takes NAME=VALUE, not {wrong!r}.")
    return {name: value for name, _, value in pairs}


def _secret_in(path: Path) -> str:
    try:
        return path.expanduser().read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as exc:
        raise InvalidInput(f"The key in {path} cannot be read.") from exc


def _set_schedule(
    parts: Services, identity: Identity, collection: Collection, every: int | None, kind: str | None
) -> None:
    """Set the minutes between automatic syncs. 0 stops automatic syncs, and `None` changes nothing."""
    if every is not None:
        parts.syncs.set_schedule(identity, collection, every or None, kind=kind)


def reembed(arguments: argparse.Namespace, settings: Settings) -> int:
    """Move a collection to a different embedding model: show the cost, ask, embed, and switch.

    If the command was killed, running it again continues the move.
    """
    from rag.ingestion.reembedding import Reembeddings
    from rag.profiles import profile_of
    from rag.services import program_of, services

    parts = services()
    tenant = arguments.tenant or settings.tenant
    try:
        collection, identity = parts.choose_collection(tenant, arguments.collection), program_of(tenant)
        moves = Reembeddings(parts.database, parts.providers)
        if arguments.clean_up:
            moves.clean_up(identity, collection.id)
            print("The vectors of earlier models are removed.")
            return 0
        profile = profile_of(collection)
        to_model = arguments.model or parts.providers.default_embedder_id(profile)
        if arguments.undo:
            to_model = _model_before(moves.find(tenant, collection_id=collection.id), collection.embedding_model)
        open_moves = [m for m in moves.find(tenant, collection_id=collection.id) if m.is_open]
        if open_moves and open_moves[0].to_model != to_model:
            raise SettingsError(
                f"This collection is being moved to {open_moves[0].to_model}. Name it with --model, or cancel it on "
                "the documents page."
            )
        move = open_moves[0] if open_moves else moves.estimate(identity, collection.id, to_model)
        print(f"{collection.name}: {move.from_model} to {move.to_model}, {cost_words(move)}")
        if move.status == "estimated" and not arguments.yes and not agreed():
            moves.cancel(identity, move.id)
            return 1
        moves.confirm(identity, move.id, enqueue=False)
        done = parts.pipeline.reembedding.run(tenant, move.id)
    finally:
        parts.close()
    if done.status != "switched":
        print(done.message, file=sys.stderr)
        return 1
    print("Done. Questions are answered with the new vectors; the old ones are kept until --clean-up.")
    return 0


def _model_before(moves: Sequence[Reembedding], model_now: str) -> str:
    """Return the model used before the last move to a different model.

    Raises `SettingsError` if the earlier vectors were deleted.
    """
    for move in moves:
        if move.can_be_undone and move.to_model == model_now:
            return move.from_model
    raise SettingsError("There is nothing to undo: no vectors of an earlier model are kept. Name one with --model.")


def cost_words(move: Reembedding) -> str:
    from rag.ingestion.reembedding import expected_range

    cost = "unpriced" if move.estimated_cost is None else f"about ${move.estimated_cost:.4f}"
    if move.estimated_cost:
        low, high = expected_range(move.estimated_cost)
        cost += f" (between ${low:.4f} and ${high:.4f})"
    return f"{counted(move.chunks_total, 'passage')}, {counted(move.estimated_tokens, 'token')}, {cost}"


def calibrate(arguments: argparse.Namespace, settings: Settings) -> int:
    from rag.services import services

    parts = services()
    try:
        collection = parts.choose_collection(arguments.tenant or settings.tenant, arguments.collection)
        result = parts.calibrations.measure(collection, keep=not arguments.dry_run)
    finally:
        parts.close()
    print(
        f"{collection.name}: {counted(result.passages, 'passage')} measured, embedded by {collection.embedding_model}"
    )
    print(f"{'similarity of a sentence with':32}{'lowest 5 %':>12}{'median':>9}{'highest 5 %':>13}")
    low, middle = result.related
    print(f"{'  the rest of its own passage':32}{low:12.3f}{middle:9.3f}")
    middle, high = result.unrelated
    print(f"{'  a passage from elsewhere':32}{'':12}{middle:9.3f}{high:13.3f}")
    done = "would be" if arguments.dry_run else "is now"
    print(f"The threshold {done} {result.threshold:.3f}; the embedder's own is {result.default:.3f}.")
    print(f"95 of 100 passages that belong to a sentence reach it, and {100 * result.mistaken:.0f} of 100 that do not.")
    if result.mistaken > MOST_MISTAKEN:
        print(
            "That is too many: on this text the model's similarities do not tell what belongs together. Take another "
            "model, or let the embedder's own threshold count (collection settings)."
        )
    return 0
