"""`python -m rag COMMAND`: the commands are in `rag/commands`.

Without the packages, a copied `python -m rag ...` continues in `.venv`. This is decided before every other import, on
Python 3.8 and newer: a system's Python may be older than the product needs.
"""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec

PROJECT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
#: The environment created by `make run` (`rag.launch`, which may need a newer Python than this).
PYTHON = os.path.join(PROJECT, ".venv", *(("Scripts", "python.exe") if os.name == "nt" else ("bin", "python")))
#: Packages whose presence shows the rest is installed too; the check imports nothing.
TELLING = ("psycopg", "pydantic", "openai", "streamlit")


def require_packages() -> None:
    """Return if the packages are installed. If not, restart with `.venv`'s Python, or exit with a sentence."""
    if sys.version_info >= (3, 11) and all(map(find_spec, TELLING)):
        return
    # If this is the environment's Python already, its packages are not installed yet.
    if os.path.exists(PYTHON) and os.path.abspath(sys.executable or "") != PYTHON:
        # Python 3.9 has no `sys.orig_argv`.
        command = getattr(sys, "orig_argv", ["", "-m", "rag", *sys.argv[1:]])
        os.execv(PYTHON, [PYTHON, *command[1:]])  # noqa: S606 - the same command
    if sys.version_info < (3, 11):  # noqa: UP036 - this file also runs on older ones
        sys.exit(f"Python 3.11 or newer is needed; this is {sys.version.split()[0]}. Install one and start again.")
    sys.exit("The packages are not installed yet: run `make run` first.")


if __name__ == "__main__":
    require_packages()

import argparse
import gc
import logging
import signal
from types import FrameType

from rag.commands import collections, documents, questions, records, service, tenants
from rag.errors import RagError
from rag.integrations import registry
from rag.settings import hide_secrets, load_settings

log = logging.getLogger("rag.start")
#: Garbage collector thresholds. With Python's 700, a fifth of the startup time is spent scanning objects created by
#: imports, without finding garbage. The server sets different values (`rag.server`).
COLLECT_AFTER = (50_000, 10, 10)
EPILOG = "COMMAND --help says more of each. Settings come from the environment; docs/configuration.md lists them."


def command_line() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m rag", description="HR Assistant: answers from your documents.", epilog=EPILOG
    )
    parser.add_argument("--version", action=ShowVersion, nargs=0, help="show the version, and end")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", title="commands")
    for module in (service, documents, collections, questions, records, tenants):
        module.add_parsers(commands)
    registry.add_commands(commands)
    return parser


class ShowVersion(argparse.Action):
    """The `--version` option: print the version and exit. The changelog is read only then."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from rag.launch import newest_release

        print(f"HR Assistant {newest_release()}")
        parser.exit()


def main() -> int:
    gc.set_threshold(*COLLECT_AFTER)
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s%(request)s")
    for handler in logging.getLogger().handlers:
        handler.addFilter(name_request)
    logging.getLogger("rag.api.requests").setLevel(logging.INFO)
    # Keep progress apart from the output, because other programs may read the output.
    progress = logging.StreamHandler(sys.stderr)
    progress.setFormatter(logging.Formatter("• %(message)s"))
    log.addHandler(progress)
    log.setLevel(logging.INFO)
    log.propagate = False
    arguments = command_line().parse_args()
    signal.signal(signal.SIGTERM, leave)
    try:
        settings = load_settings()
        if settings.log_format == "json":
            write_json(progress)
        hide_secrets(settings, [*logging.getLogger().handlers, progress])
        status = int(arguments.run(arguments, settings))
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        # The reader has gone, for example after `| head`. Without this, Python prints an error when closing the output.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except RagError as exc:
        print(exc.message, file=sys.stderr)
        return 1
    except OSError as exc:
        # A file or folder from the command line; all other errors are converted to `RagError` at their origin.
        if exc.filename is None:
            raise
        print(f"{exc.filename}: {exc.strerror}.", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def write_json(progress: logging.Handler) -> None:
    """Write every log line as a JSON object naming its request and trace."""
    from pythonjsonlogger.json import JsonFormatter

    fields = ["levelname", "name", "message", "request_id", "trace_id"]
    renamed = {"levelname": "level", "name": "logger"}
    formatter = JsonFormatter(fields, timestamp="time", rename_fields=renamed, json_ensure_ascii=False)
    for handler in (*logging.getLogger().handlers, progress):
        handler.setFormatter(formatter)


def name_request(record: logging.LogRecord) -> bool:
    """Set `%(request)s` in a log record to the request's id, if any. This is a logging filter, which returns True."""
    # At the first log line: most commands write none, and asking the server does not need OpenTelemetry.
    from rag.monitoring.tracing import request_id, trace_id

    named = request_id.get()
    record.request = f" [request {named}]" if named else ""
    record.request_id = named or None
    record.trace_id = trace_id()
    return True


def leave(number: int, frame: FrameType | None) -> None:
    """Exit cleanly on SIGTERM: the command stops everything it started, including the built-in database."""
    signal.signal(number, signal.SIG_IGN)
    raise SystemExit(128 + number)


if __name__ == "__main__":
    sys.exit(main())
