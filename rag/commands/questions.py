"""Search, ask and evaluate on the command line: `search`, `ask`, and `eval` with test questions."""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rag.command_line import Commands, add_command, add_place, no_documents
from rag.commands.running_server import Output, Terminal, run_in_server
from rag.errors import InvalidInput
from rag.language import LANGUAGES, counted
from rag.settings import Settings

if TYPE_CHECKING:
    from threading import Event

    from rag.evaluation.runs import Run
    from rag.profiles.profile import Options
    from rag.services import Services
    from rag.types import Collection, MessageState, Outcome, Question
#: The third exit status for `ask`, beside 0 and 1.
INCOMPLETE = 3
MORE = {
    "search": "Notices, such as that a reranker did not answer, go to standard error.",
    "ask": "Notices, such as why an answer is not whole, go to standard error. Exit status: 0 for a whole "
    "answer, also where it says that the documents do not answer the question; 1 where it failed or was refused; "
    f"{INCOMPLETE} where it was cut, such as at the model's length limit, or stopped.",
}


def add_parsers(commands: Commands) -> None:
    for name, text in (("search", "show the passages a question finds"), ("ask", "answer a question")):
        command = add_command(commands, name, text, more=MORE[name])
        command.add_argument("question")
        add_place(command)
        command.add_argument(
            "--all-collections",
            action="store_true",
            help="ask in all others with documents too; this one's profile answers",
        )
        command.add_argument("--top-k", type=int, default=None, help="passages wanted")
        command.add_argument("--threshold", type=float, default=None, help="least similarity, 0 to 1")
        command.add_argument(
            "--strict",
            action=argparse.BooleanOptionalAction,
            default=None,
            dest="strict_threshold",
            help="leave out every passage that is not above the threshold",
        )
        command.add_argument(
            "--only-evidence",
            action=argparse.BooleanOptionalAction,
            default=None,
            help="use only passages that are evidence for the question",
        )
        command.add_argument("--search-type", choices=("vector", "hybrid"), default=None, help="or with keywords too")
        command.add_argument("--rerank", action=argparse.BooleanOptionalAction, default=None)
        command.add_argument("--group", default="", help="as people of this group: their place's documents come first")
        command.set_defaults(run=run)
        if name == "search":
            command.add_argument("--profile", default="", help="search as this profile does, not the collection's own")
            command.add_argument("--language", default=None, help="of the question, such as en; detected otherwise")
            command.add_argument("--explain", action="store_true", help="show every step and every score")
        else:
            command.add_argument(
                "--language", choices=list(LANGUAGES), default=None, help="of the answer; the question's when not given"
            )
    command = add_command(
        commands, "eval", "measure answers against test questions",
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


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    """Run the command in the running server for this data folder.

    If no server runs or the server's settings differ, run the command in this process.
    """
    arguments.tenant = arguments.tenant or settings.tenant
    arguments.reader_languages = terminal_languages()
    output = Terminal()
    status = run_in_server(arguments, settings, output)
    if status is not None:
        return status

    from threading import Event

    from rag.services import services

    parts = services()
    try:
        work = search_passages if arguments.command == "search" else ask_question
        return work(parts, arguments, output, Event())
    finally:
        parts.close()


def search_passages(parts: Services, arguments: argparse.Namespace, output: Output, cancel: Event) -> int:
    """Search and print the hits. `cancel` is ignored, because a search is short."""
    from rag.profiles import profile_by_name, profile_of
    from rag.retrieval.explain import explained, shortened

    collection = parts.choose_collection(arguments.tenant, arguments.collection)
    # Another profile is searched unchanged: the overrides belong to the collection's profile.
    profile = profile_by_name(arguments.profile) if arguments.profile else profile_of(collection)
    _require_documents(parts, collection)
    question = _question(arguments, collection, parts)
    options = _options(arguments)
    retrieval = parts.searches.search(
        replace(question, language=arguments.language), profile=profile, options=options, for_model=False
    )
    profile = options.applied_to(profile)
    response = retrieval.response
    lines = [*explained(retrieval, profile=profile, collection=collection), ""] if arguments.explain else []
    scores = {result.chunk_id: result.score for result in response.results}
    for citation in response.citations or response.nearest:
        lines += shortened(citation, scores.get(citation.chunk_id, citation.score))
    if (cut := response.rag_details.search.below_threshold) is not None:
        were = counted(cut, "passage was cut: it is", "passages were cut: they are")
        lines.append(f"{were} not above the threshold.")
    if not response.citations and response.nearest:
        lines.append("The documents do not answer this; above are the nearest passages.")
    elif not response.citations:
        lines.append("The documents do not answer this, and no passage comes near it.")
    output.out("\n".join(lines) + "\n")
    say(response.notices, output)
    return 0


def ask_question(parts: Services, arguments: argparse.Namespace, output: Output, cancel: Event) -> int:
    """Answer a question, and print the answer while it arrives. Stops when `cancel` is set."""
    from rag.answering.pipeline import DoneEvent, TextEvent
    from rag.ingestion.loaders.format_table import has_rows
    from rag.profiles import profile_of
    from rag.retrieval.known_by import with_folder

    collection = parts.choose_collection(arguments.tenant, arguments.collection)
    profile = _options(arguments).applied_to(profile_of(collection))
    if arguments.language:
        profile = profile.changed(answer_language=arguments.language)
    if "follow_ups" not in profile.api_extras:
        profile = profile.changed(follow_ups=0)
    _require_documents(parts, collection)
    question = _question(arguments, collection, parts)
    status, unmarked = 1, WithoutBold()
    for event in parts.answerer.answer(question, profile=profile, cancel=cancel, chat_log_id=None):
        if isinstance(event, TextEvent):
            output.out(unmarked.next(f"\n\n{event.text}" if event.starts_over else event.text))
        elif isinstance(event, DoneEvent):
            output.out(f"{unmarked.held}\n")
            for citation in event.citations:
                place = f", {citation.collection}" if citation.collection else ""
                where = citation.section if has_rows(citation.file_name) else f"page {citation.first_page}"
                title = with_folder(citation.title, citation.folder)
                output.out(f"[{citation.number}] {title}, {where}{place}\n")
            if event.follow_ups:
                output.out("\n".join(["\nSuggested questions:", *event.follow_ups, ""]))
            doubts = dict.fromkeys(claim for citation in event.citations for claim in citation.unsupported)
            say(
                [
                    *(f"Check this sentence, because its source does not support it: “{claim}”" for claim in doubts),
                    *event.notices,
                ],
                output,
            )
            status = exit_status(event.outcome, event.state)
    return status


class WithoutBold:
    """Removes Markdown's asterisks for bold text from a streamed answer, because a terminal would show them."""

    def __init__(self) -> None:
        #: An asterisk at the end of the last piece, perhaps half a mark.
        self.held = ""

    def next(self, piece: str) -> str:
        text = (self.held + piece).replace("**", "")
        self.held = "*" if text.endswith("*") else ""
        return text.removesuffix(self.held)


def say(notices: Sequence[str], output: Output) -> None:
    """Print notices to standard error, separate from the answer."""
    for notice in notices:
        output.err(f"{notice}\n")


def exit_status(outcome: Outcome, state: MessageState) -> int:
    """Return the exit status for an answer: 0 only if it is complete."""
    if outcome in ("failed", "refused"):
        return 1
    return 0 if state == "complete" else INCOMPLETE


def terminal_languages() -> list[str]:
    """Return the languages set for the terminal; empty if there are none."""
    variables = (os.environ.get(name, "") for name in ("LC_ALL", "LC_MESSAGES", "LANG"))
    language = next(filter(None, variables), "").partition(".")[0]
    return [language] if re.fullmatch("[a-z]{2,3}(_.+)?", language) else []


def _options(arguments: argparse.Namespace) -> Options:
    from rag.profiles.profile import Options

    return Options(
        top_k=arguments.top_k,
        similarity_threshold=arguments.threshold,
        strict_threshold=arguments.strict_threshold,
        only_evidence=arguments.only_evidence,
        search_type=arguments.search_type,
        reranking=arguments.rerank,
    )


def _question(arguments: argparse.Namespace, collection: Collection, parts: Services) -> Question:
    from rag.services import program_of
    from rag.types import Question

    return Question(
        text=arguments.question,
        identity=replace(program_of(collection.tenant_id), user_group=arguments.group.strip()),
        collection=collection,
        others=parts.documents.others_to_ask(collection.tenant_id, collection) if arguments.all_collections else (),
        reader_languages=arguments.reader_languages,
    )


def _require_documents(parts: Services, collection: Collection) -> None:
    if not parts.documents.contents(collection.tenant_id)[collection.id].ready:
        raise no_documents(collection.tenant_id, collection.name)


#: The exit status if a metric is below the required value.
TOO_LOW = 3


def evaluate(arguments: argparse.Namespace, settings: Settings) -> int:
    from uuid import UUID

    from rag.evaluation.golden import read_golden
    from rag.evaluation.metrics import FIGURES
    from rag.profiles import profile_by_name, profile_of
    from rag.services import program_of, services

    least = _parse_minimums(arguments.at_least, list(FIGURES))
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
                known_costs = [cost * max(1, len(arguments.model)) for cost in costs if cost is not None]
                about = (
                    f"about ${sum(known_costs):.4f}"
                    if len(known_costs) == len(costs)
                    else "an amount that is not known"
                )
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
    return _report_too_low(runs, least)


def _parse_minimums(texts: list[str], figures: list[str]) -> dict[str, float]:
    minimums = {}
    for text in texts:
        name, _, value = text.partition("=")
        try:
            minimums[name] = float(value)
        except ValueError as exc:
            raise InvalidInput(f"Write {text!r} as FIGURE=VALUE, such as page_recall=0.8.") from exc
        if name not in figures:
            raise InvalidInput(f"There is no figure {name!r}; choose one of {', '.join(figures)}.")
    return minimums


def _report_too_low(runs: list[Run], least: dict[str, float]) -> int:
    """Print the metrics below their minimum, and return the exit status. A missing metric counts as too low."""
    status = 0
    for run in runs:
        for name, value in least.items():
            got = run.figures.get(name)
            if got is None or got < value:
                status = TOO_LOW
                measured = "not measured" if got is None else f"{got:.3f}"
                print(f"{_label(run)}: {_title(name)} is {measured}, below {value:g}", file=sys.stderr)
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
