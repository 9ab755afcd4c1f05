"""The child process started by `rag.ingestion.isolated_run`, which processes a single document."""

from __future__ import annotations

import os
import pickle
import sys
import threading
from typing import BinaryIO

from rag.ingestion.isolated_run import DocumentTask
from rag.ingestion.pipeline import IngestionPipeline
from rag.money.ledger import Ledger
from rag.providers.registry import Providers
from rag.settings import Settings
from rag.storage.database import Database
from rag.storage.files import FileStore, Originals


def serve(files: Originals | None = None) -> None:
    """Run the task read from stdin, and write `None` or the error to stdout. If stdin closes, exit immediately."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    tasks = sys.stdin.buffer
    try:
        task: DocumentTask = pickle.load(tasks)  # noqa: S301 - from the process that started this one
    except EOFError:  # the parent process is already gone
        return
    threading.Thread(target=end_with, args=(tasks,), daemon=True).start()
    error: BaseException | None = None
    try:
        work(task, files or originals(task.settings))
    except BaseException as exc:
        error = exc.with_traceback(None)
    answers.write(pickle.dumps(error))
    answers.flush()
    os._exit(0)


def work(task: DocumentTask, files: Originals) -> None:
    """Process the task's document, with separate database connections."""
    database = Database(task.conninfo, task.database_key, maximum_connections=10, is_pooled=task.is_pooled)
    database.open()
    pipeline = IngestionPipeline(database, files, Providers(task.settings), Ledger(database), task.settings)
    try:
        pipeline.run_claimed(task.tenant_id, task.document_id)
    finally:
        pipeline.close()


def originals(settings: Settings) -> Originals:
    """Return the file store which the application uses."""
    if not settings.supabase_service_role_key:
        return FileStore(settings.data_dir / "files")
    # This import takes an eighth of a second and is needed only here.
    from rag.providers.supabase import SupabaseFiles, SupabaseProject

    return SupabaseFiles(SupabaseProject(settings), settings.supabase_bucket)


def end_with(parent: BinaryIO) -> None:
    """Wait until the pipe from the parent process closes, then exit."""
    parent.read(1)
    os._exit(1)


if __name__ == "__main__":
    serve()
