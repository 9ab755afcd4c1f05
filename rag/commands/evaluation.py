"""Measure answers with golden questions: `eval`."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from rag.command_line import Commands, add_command, add_place, no_documents
from rag.errors import InvalidInput
from rag.settings import Settings

if TYPE_CHECKING:
    from rag.evaluation.runs import Run

#: The exit status if a metric is below the required value.
TOO_LOW = 3


def add_parsers(commands: Commands) -> None:
    command = add_command(
        commands, "eval", "measure answers against golden questions",
        more="FILE is CSV with a header line or one JSON object a line: question, document, page, answer, evidence, "
        "language, tags, answerable. Exit status: 0; 1 for an error; "
        f"{TOO_LOW} where a figure is below what --at-least asks for. docs/evaluation.md says what the figures mean.",
    )  # fmt: skip
    command.add_argument(
        "file", type=Path, metavar="FILE", nargs="?", help="without it, the collection's own questions"
    )
    add_place(command)
    command.add_argument(
        "--profile", action="append", default=[], help="a profile to answer with, as it is; several are compared"
    )
    command.add_argument("--model", action="append", default=[], help="a model that answers; several are compared")
    command.add_argument(
        "--judge", action="store_true", help="have a model check as well whether answers follow from their sources"
    )
    command.add_argument("--resume", default="", metavar="RUN", help="go on with an interrupted run")
    command.add_argument(
        "--at-least", action="append", default=[], metavar="FIGURE=VALUE", help="such as page_recall=0.8, of each run"
    )
    command.add_argument("--json", action="store_true", help="print one JSON object")
    command.set_defaults(run=evaluate)


def evaluate(arguments: argparse.Namespace, settings: Settings) -> int:
    from uuid import UUID

    from rag.evaluation.golden import read_golden
    from rag.evaluation.metrics import FIGURES
    from rag.profiles import profile_by_name, profile_of
    from rag.services import program_of, services

    least = _least(arguments.at_least, list(FIGURES))
    golden = read_golden(arguments.file) if arguments.file else None
    parts = services()
    tenant = arguments.tenant or settings.tenant
    try:
        evaluations = parts.evaluations
        collection = parts.choose_collection(tenant, arguments.collection)
        if not parts.documents.contents(tenant)[collection.id].ready:
            raise no_documents(collection.tenant_id, collection.name)
        if arguments.resume:
            try:
                begun = [UUID(arguments.resume)]
            except ValueError as exc:
                raise InvalidInput(f"{arguments.resume!r} is not the id of a run.") from exc
        else:
            questions = golden if golden is not None else list(evaluations.golden(tenant, collection.id).values())
            profiles = [profile_by_name(name) for name in arguments.profile] or [profile_of(collection)]
            if arguments.judge:
                costs = [evaluations.judge.estimate(tenant, profile, len(questions)) for profile in profiles]
                known = [cost * max(1, len(arguments.model)) for cost in costs if cost is not None]
                about = f"about ${sum(known):.4f}" if len(known) == len(costs) else "an amount that is not known"
                print(f"Checking the answers costs {about}, beside the answers themselves.", file=sys.stderr)
            begun = [
                evaluations.begin(collection, profile, questions, model=model, is_judged=arguments.judge)
                for profile in profiles
                for model in arguments.model or [""]
            ]
        runs = []
        for run_id in begun:
            print(f"Run {run_id}", file=sys.stderr)
            runs.append(evaluations.work(collection, run_id, program_of(tenant), on_progress=_show_progress))
        compared = [evaluations.compare(tenant, runs[0].id, other.id) for other in runs[1:]]
    finally:
        parts.close()
    if arguments.json:
        print(
            json.dumps(
                {
                    "runs": [
                        {
                            "id": str(run.id), "collection": run.collection, "profile": run.profile,
                            "model": run.model, "questions": run.questions, "figures": run.figures,
                        }
                        for run in runs
                    ],
                    "comparisons": [
                        [vars(row) | {"verdict": row.verdict} for row in rows] for rows in compared
                    ],
                },
                indent=2,
                ensure_ascii=False,
            )
        )  # fmt: skip
    else:
        _show(runs)
        for run, rows in zip(runs[1:], compared, strict=True):
            print(f"\n{_label(run)} against {_label(runs[0])}, with 95 % of the difference:")
            for row in rows:
                print(
                    f"  {_title(row.figure):40} {row.first:10.3f} {row.second:10.3f}  "
                    f"{row.difference:+.3f} [{row.low:+.3f}, {row.high:+.3f}]  {row.verdict}"
                )
    return _too_low(runs, least)


def _least(wanted: list[str], known: list[str]) -> dict[str, float]:
    found = {}
    for text in wanted:
        name, _, value = text.partition("=")
        try:
            found[name] = float(value)
        except ValueError as exc:
            raise InvalidInput(f"Write {text!r} as FIGURE=VALUE, such as page_recall=0.8.") from exc
        if name not in known:
            raise InvalidInput(f"There is no figure {name!r}; choose one of {', '.join(known)}.")
    return found


def _too_low(runs: list[Run], least: dict[str, float]) -> int:
    """Print metrics below their minimum, and return the exit status. A missing metric counts as too low."""
    status = 0
    for run in runs:
        for name, value in least.items():
            got = run.figures.get(name)
            if got is None or got < value:
                status = TOO_LOW
                shown = "not measured" if got is None else f"{got:.3f}"
                print(f"{_label(run)}: {_title(name)} is {shown}, below {value:g}", file=sys.stderr)
    return status


def _show_progress(done: int, questions: int) -> None:
    if sys.stderr.isatty() or done == questions:
        print(f"\r{done} of {questions}", end="\n" if done == questions else "", file=sys.stderr, flush=True)


def _show(runs: list[Run]) -> None:
    from rag.evaluation.metrics import FIGURES

    print(" " * 42 + "  ".join(f"{_label(run)[:22]:>22}" for run in runs))
    for name in FIGURES:
        values = [run.figures.get(name) for run in runs]
        if any(value is not None for value in values):
            cells = ("–" if value is None else f"{value:.4g}" if name in ("cost", "total_ms") else f"{value:.3f}"
                     for value in values)  # fmt: skip
            print(f"{_title(name):42}" + "  ".join(f"{cell:>22}" for cell in cells))


def _title(figure: str) -> str:
    from rag.evaluation.metrics import TITLES

    return TITLES[figure]


def _label(run: Run) -> str:
    return f"{run.profile} {run.overrides['chat_model']}" if "chat_model" in run.overrides else run.profile
