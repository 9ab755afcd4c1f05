"""Draw test questions, evaluation runs, and two runs side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import partial
from typing import Any
from uuid import UUID

import streamlit as st

from rag.errors import NotFound, RagError
from rag.evaluation.golden import GoldenQuestion, golden_from_entry, golden_from_json, golden_to_jsonl, parse_golden
from rag.evaluation.metrics import FIGURES, TITLES
from rag.evaluation.runs import Result, Run, Source
from rag.language import LANGUAGES, N_, _, ngettext, number, translated
from rag.profiles import PROFILES, profile_by_name, profile_of
from rag.profiles.profile import Profile
from rag.records.chat_logs import ChatLogEntry
from rag.records.forecast import priced_chat_models
from rag.services import services
from rag.types import Collection, DocumentFilters, DocumentStatus, Identity, Role
from rag.ui import actions, lists
from rag.ui.analytics import DeltaColor, DrawDetails, Trend, draw_metric, grown, moved, signed
from rag.ui.charts import outcome_names
from rag.ui.formats import duration, money, percent
from rag.ui.question_details import draw_comparison
from rag.ui.text import plain
from rag.ui.widgets import (
    choose_collection,
    dialog,
    document_labels,
    name_labels,
    red,
    words_of,
)

PROBLEM = "analytics_quality_problem"
#: Figures in the list of runs; the rest are in a run's table.
LISTED = ("document_recall", "page_recall", "answered_right", "refused_right", "grounded", "total_ms", "cost")
#: Figures above the list, from the newest run.
HEADLINE_FIGURES = (
    "document_recall",
    "answered_right",
    "refused_right",
    "grounded",
    "grounded_by_model",
    "evidence",
    "citation_precision",
    "total_ms",
    "cost",
)
#: Figures that are no shares.
COUNTED = ("total_ms", "cost")
#: Explanations for figures with unclear names. For other figures the help is the full name, which a phone cuts off.
FIGURE_HELP: Mapping[str, str] = {
    "document_recall": N_("How often the expected document is among the first five passages found."),
    "citation_precision": N_("The share of the cited sources that come from the expected document and page."),
    "grounded": N_(
        "The share of the cited sources that support their sentence. Words, figures and dates are compared."
    ),
}
ABOUT_GOLDEN = N_(
    "Test questions have known answers. A test run asks all of them and checks the passages found and the answers. "
    "Start a test run before and after you change settings or documents."
)
COLLECTION_SETTINGS = "own"
MOST_DOCUMENTS = 200
SOURCES: dict[Source, str] = {
    "feedback": N_("Rated helpful"),
    "gaps": N_("Unanswered questions"),
    "documents": N_("A document"),
}
NOTHING_PROPOSED: dict[Source, str] = {
    "feedback": N_(
        "There is nothing to propose: no answer with a source was rated as helpful yet, or all such questions are test "
        "questions already."
    ),
    "gaps": N_(
        "There is nothing to propose: no unanswered question was answered later or dismissed, or all such questions "
        "are test questions already."
    ),
    "documents": N_("No questions about these documents yet. A model proposes some when it tags a document."),
}
VERDICTS = {
    "better": N_("better"),
    "worse": N_("worse"),
    "no difference": N_("no difference"),
    "too few questions": N_("too few questions"),
}


def draw_quality(identity: Identity, draw_details: DrawDetails) -> None:
    """Draw a collection's test questions, the metrics from evaluation runs, and a comparison between two runs."""
    collections = {collection.id: collection for collection in services().documents.collections(identity)}
    if not collections:
        st.caption(_("There is no collection yet."))
        return
    st.caption(_(ABOUT_GOLDEN))
    chosen: UUID | None = next(iter(collections))
    if len(collections) > 1:
        names = {collection.id: collection.name for collection in collections.values()}
        chosen = choose_collection(names, key="analytics_quality_collection", width=260)
    if chosen not in collections:
        return
    collection = collections[chosen]
    with st.container(key="analytics_quality_notes"):  # Keeps the parts below in place.
        actions.draw_problem(PROBLEM)
        actions.draw_undo("analytics", problem=PROBLEM)
    with st.container(border=True):
        golden = services().evaluations.golden(identity, collection.id)
        _draw_golden(identity, collection, golden)
    runs = services().evaluations.runs(identity, collection.id)
    with st.container(border=True):
        every = 2.0 if any(_is_running(run) for run in runs) else None
        st.fragment(_draw_runs, run_every=every)(identity, collection, draw_details)


def _is_running(run: Run) -> bool:
    return run.is_worked_on or services().evaluations.is_running(run.id)


def _draw_golden(identity: Identity, collection: Collection, golden: dict[UUID, GoldenQuestion]) -> None:
    evaluations, scheduled = services().evaluations, services().scheduled_work
    with st.container(horizontal=True, vertical_alignment="center"):
        st.header(_("Test questions"), anchor=False, width="stretch")
        if identity.may(Role.ADMIN):
            if st.button(_("Add a question"), icon=":material/add:", key="analytics_golden_add"):
                _add_golden(identity, collection)
            if st.button(_("Propose"), icon=":material/auto_awesome:", key="analytics_golden_propose"):
                _propose_golden(identity, collection)
            if st.button(_("From a file"), icon=":material/upload_file:", key="analytics_golden_file"):
                _upload_golden(identity, collection)
            if golden:
                actions.draw_export(
                    identity, _("Export"), partial(golden_to_jsonl, golden.values()), "golden_questions.jsonl",
                    key="analytics_golden_export", media_type="application/jsonl",
                )  # fmt: skip
            if golden and st.button(
                _("Start a test run"), icon=":material/play_arrow:", type="primary", key="analytics_golden_run"
            ):
                _start_run(identity, collection, list(golden.values()))
    if golden and identity.may(Role.ADMIN):
        st.toggle(
            _("Ask these questions every night"), scheduled.is_nightly(identity, collection.id),
            key=f"analytics_nightly_{collection.id}", on_change=_keep_nightly, args=(identity, collection),
            help=_("If a result gets worse, administrators get an e-mail, and webhooks inform other programs."),
        )  # fmt: skip
    if not golden:
        st.caption(
            _(
                "There are no test questions yet. Begin with ten questions that people often ask. Add to each question "
                "the document and page with the answer."
            )
        )
        return
    chosen = lists.choose_rows(
        list(golden),
        _question_columns(list(golden.values()))
        | {
            _("Expected words"): ["; ".join(question.evidence) for question in golden.values()],
            _("Tags"): [", ".join(question.tags) for question in golden.values()],
        },
        key="analytics_golden",
        of=str,
        alt=_("Test questions of this collection"),
    )
    if not chosen or not identity.may(Role.ADMIN):
        return
    words = ngettext("Remove {count} question", "Remove {count} questions", len(chosen))
    with st.container(horizontal=True):
        if len(chosen) == 1 and st.button(_("Change"), icon=":material/edit:", key="analytics_golden_change"):
            _change_golden(identity, collection, chosen[0], golden[chosen[0]])
        is_removed = st.button(red(words), icon=":material/delete:", key="analytics_golden_remove")
    if is_removed:
        actions.ask_to_remove(
            "analytics",
            ngettext("Remove {count} test question?", "Remove {count} test questions?", len(chosen)),
            _("Later test runs leave out these questions. The results of earlier test runs stay."),
            action=words,
            removed_sentence=ngettext(
                "{count} test question is removed.", "{count} test questions are removed.", len(chosen)
            ),
            take=partial(evaluations.remove_golden, identity, chosen),
            put_back=partial(evaluations.put_golden_back, identity),
            problem=PROBLEM,
            key="analytics_golden_remove",
        )


def _question_columns(questions: Sequence[GoldenQuestion]) -> dict[str, Any]:
    return {
        _("Question"): lists.texts((question.question for question in questions), 380),
        _("Document"): [
            question.document or ("–" if question.is_answerable else _("in no document")) for question in questions
        ],
        _("Pages"): [", ".join(map(str, question.pages)) for question in questions],
    }


def _draw_runs(identity: Identity, collection: Collection, draw_details: DrawDetails) -> None:
    evaluations = services().evaluations
    runs = evaluations.runs(identity, collection.id)
    st.header(_("Test runs"), anchor=False)
    if not runs:
        st.caption(_("There has been no test run yet."))
        return
    for run in runs:
        if _is_running(run):
            st.progress(
                run.done / run.questions,
                _("{done} of {questions}", done=number(run.done), questions=number(run.questions)),
            )
        elif run.finished_at is None and identity.may(Role.ADMIN):
            remaining = number(run.questions - run.done)
            if trouble := evaluations.trouble(run.id):
                st.warning(plain(translated(trouble)), icon=":material/error:")
            if st.button(
                _("Continue with the remaining {left} questions", left=remaining), key=f"analytics_run_{run.id}"
            ):
                actions.attempt(PROBLEM, evaluations.go_on, identity, collection, run.id)
                st.rerun()
    _draw_newest(runs)
    chosen = lists.choose_rows(
        runs,
        {
            _("When"): lists.times((run.created_at for run in runs), 105, with_year=False),
            _("Settings"): [_with(run) for run in runs],
            _("Questions"): [f"{run.done} / {run.questions}" for run in runs],
            **{_(TITLES[name]): [_format_figure(name, run.figures.get(name)) for run in runs] for name in LISTED},
        },
        key="analytics_runs",
        alt=_("Test runs and their results"),
    )
    st.caption(_("Select one test run to see its questions. Select two test runs to compare them."))
    if len(chosen) == 1:
        _draw_results(identity, chosen[0], draw_details)
    elif len(chosen) == 2:
        later, earlier = chosen
        _draw_comparison(identity, earlier, later)


def _draw_newest(runs: Sequence[Run]) -> None:
    ended = [run for run in runs if run.finished_at is not None]
    if not ended:
        return
    newest, before = ended[0], ended[1] if len(ended) > 1 else None
    # Wide enough for the longest name of a figure.
    with st.grid(4, min_column_width=280):
        for name in HEADLINE_FIGURES:
            value = newest.figures.get(name)
            if value is None:
                continue
            old = before.figures.get(name) if before is not None else None
            history = [run.figures[name] for run in reversed(ended) if name in run.figures]
            color: DeltaColor = "normal" if FIGURES[name] else "inverse"
            change = (grown if name in COUNTED else moved)(value, old, color)
            help_text = _(FIGURE_HELP.get(name, TITLES[name]))
            draw_metric(_(TITLES[name]), _format_figure(name, value), change, trend=Trend(history), help_text=help_text)


def _draw_results(identity: Identity, run: Run, draw_details: DrawDetails) -> None:
    evaluations = services().evaluations
    golden, results = evaluations.questions(identity, run.id), evaluations.results(identity, run.id)
    figures = [name for name in FIGURES if any(name in result.figures for result in results)]
    chosen = lists.choose_row(
        results,
        {
            _("Question"): [golden[result.place].question for result in results],
            _("Outcome"): [outcome_names().get(result.outcome, result.outcome) for result in results],
            **{
                _(TITLES[name]): [_format_figure(name, result.figures.get(name)) for result in results]
                for name in figures
            },
            _("Answer"): [" ".join(result.answer.split()) for result in results],
        },
        key=f"analytics_results_{run.id}",
        of=lambda result: result.place,
        alt=_("Questions of this test run and their results"),
    )
    st.caption(_("Select a row (Shift + Space on the keyboard) to see everything about it."))
    if chosen is not None and chosen.chat_log_id is not None:
        with st.container(border=True):
            draw_details(chosen.chat_log_id)


def _draw_comparison(identity: Identity, earlier: Run, later: Run) -> None:
    try:
        compared = services().evaluations.compare(identity, earlier.id, later.id)
    except RagError as error:
        st.caption(plain(error.message))
        return
    lists.draw(
        {
            _("What was measured"): [_(TITLES[row.figure]) for row in compared],
            _("Earlier"): [_format_figure(row.figure, row.first) for row in compared],
            _("Later"): [_format_figure(row.figure, row.second) for row in compared],
            _("Difference"): [_difference(row.figure, row.difference) for row in compared],
            _("Likely range of the difference (95 %)"): [
                f"{_difference(row.figure, row.low)} … {_difference(row.figure, row.high)}" for row in compared
            ],
            _("Verdict"): [_(VERDICTS[row.verdict]) for row in compared],
            _("Questions"): [row.questions for row in compared],
        },
        key=f"analytics_compared_{earlier.id}_{later.id}",
        alt=_("Two test runs side by side"),
    )
    _draw_pairs(identity, earlier, later)
    st.caption(
        _("The test runs are compared question by question. A statistical method (paired bootstrap) shows whether a "
          "difference is real or chance.")
    )  # fmt: skip


def _draw_pairs(identity: Identity, earlier: Run, later: Run) -> None:
    evaluations = services().evaluations
    words = outcome_names()
    answers_by_run: list[dict[str, Result]] = []
    for run in (earlier, later):
        questions = evaluations.questions(identity, run.id)
        answers_by_run.append(
            {questions[result.place].question: result for result in evaluations.results(identity, run.id)}
        )
    both = [question for question in answers_by_run[0] if question in answers_by_run[1]]
    both.sort(key=lambda question: answers_by_run[0][question].outcome == answers_by_run[1][question].outcome)
    chosen = lists.choose_row(
        both,
        {
            _("Question"): lists.texts(both, 280),
            _("Earlier"): [words.get(answers_by_run[0][q].outcome, answers_by_run[0][q].outcome) for q in both],
            _("Later"): [words.get(answers_by_run[1][q].outcome, answers_by_run[1][q].outcome) for q in both],
            _("Answer in the earlier run"): [" ".join(answers_by_run[0][q].answer.split()) for q in both],
            _("Answer in the later run"): [" ".join(answers_by_run[1][q].answer.split()) for q in both],
        },
        key=f"analytics_pairs_{earlier.id}_{later.id}",
        of=str,
        alt=_("Answers of two test runs side by side"),
    )
    if chosen is None:
        st.caption(_("Select a row (Shift + Space on the keyboard) to see everything about it."))
        return
    entries = [_find_entry(identity, answers[chosen]) for answers in answers_by_run]
    if entries[0] is not None and entries[1] is not None:
        with st.container(border=True):
            st.header(plain(chosen), anchor=False)
            draw_comparison(entries[0], entries[1], (_("Earlier"), _("Later")))
    else:
        st.caption(_("This question is no longer there."))


def _find_entry(identity: Identity, result: Result) -> ChatLogEntry | None:
    try:
        return services().analytics.question(identity, result.chat_log_id) if result.chat_log_id else None
    except NotFound:
        return None


@dialog(N_("Start a test run"), icon=":material/play_arrow:")
def _start_run(identity: Identity, collection: Collection, golden: list[GoldenQuestion]) -> None:
    labels = name_labels(
        {COLLECTION_SETTINGS: _("The collection's settings")} | {p.name: p.title for p in PROFILES.values()}
    )
    chosen = st.multiselect(
        _("Settings"), list(labels), [COLLECTION_SETTINGS], format_func=labels.of, key="analytics_run_with",
        help=_("You can choose several models and compare their answers afterwards."),
    )  # fmt: skip
    profiles = [profile_of(collection) if name == COLLECTION_SETTINGS else profile_by_name(name) for name in chosen]
    models = _choose_models(profiles)
    runs = len(profiles) * len(models)
    _draw_cost_before(identity, collection, len(golden) * runs)
    is_judged = _draw_judge(identity, profiles, len(golden) * len(models))
    words = ngettext("Ask {count} question", "Ask {count} questions", len(golden) * runs)
    if st.button(words, type="primary", icon=":material/play_arrow:", disabled=not chosen, key="analytics_run_start"):
        for profile in profiles:
            for model in models:
                actions.attempt(
                    PROBLEM, services().evaluations.start, identity, collection, golden, profile, model=model,
                    is_judged=is_judged,
                )  # fmt: skip
        st.rerun()


def _choose_models(profiles: Sequence[Profile]) -> Sequence[str]:
    """Let the user choose the models which answer, and return the choice.

    The value ("",) means the model in each profile.
    """
    providers = services().providers
    if not profiles or any(providers.chat_model_for(profile) is None for profile in profiles):
        return ("",)
    provider = providers.chat_choice(profiles[0]).provider
    offered = [model for name, model in priced_chat_models() if name == provider]
    chosen = st.multiselect(
        _("Models that answer"), offered, accept_new_options=True, placeholder=_("as in the settings"),
        key="analytics_run_models", help=_("You can choose several models and compare their answers afterwards."),
    )  # fmt: skip
    return chosen or ("",)


def _draw_cost_before(identity: Identity, collection: Collection, questions: int) -> None:
    ended = (run for run in services().evaluations.runs(identity, collection.id) if run.finished_at is not None)
    cost = next((run.figures["cost"] for run in ended if "cost" in run.figures), 0)
    if cost and questions:
        st.caption(
            _("About {cost}, if each question costs as much as in the latest run.", cost=plain(money(cost * questions)))
        )


def _draw_judge(identity: Identity, profiles: Sequence[Profile], questions: int) -> bool:
    judge = services().evaluations.judge
    models = [judge.model(profile) for profile in profiles]
    if not models or not all(models):
        st.caption(_("With the key of a provider, a model can also check whether the sources support the answers."))
        return False
    costs = [judge.estimate(identity.tenant_id, profile, questions) for profile in profiles]
    known_costs = [cost for cost in costs if cost is not None]
    total = sum(known_costs, Decimal(0)) if len(known_costs) == len(costs) else None
    return st.toggle(
        _("Let a model check the answers ({cost})", cost=plain(money(total))), key="analytics_run_judge",
        help=_("{model} checks whether the sources support each sentence. This adds the cost of one small call to each "
               "answer.", model=plain(models[0])),
    )  # fmt: skip


@dialog(N_("Propose test questions"), width="large", icon=":material/auto_awesome:")
def _propose_golden(identity: Identity, collection: Collection) -> None:
    evaluations = services().evaluations
    source = st.segmented_control(
        _("From"), list(SOURCES), default="feedback", required=True, format_func=words_of(SOURCES),
        key="analytics_propose_from",
    )  # fmt: skip
    ready = DocumentFilters(statuses=(DocumentStatus.COMPLETED,), collection_id=collection.id)
    titles = document_labels(services().documents.names(identity, ready, limit=MOST_DOCUMENTS))
    document = st.selectbox(
        _("Document"), list(titles), index=None, format_func=titles.of, placeholder=_("All documents"),
        key="analytics_propose_document",
    )  # fmt: skip
    proposals = evaluations.proposals(identity, collection.id, source or "feedback", document)
    if not proposals:
        st.caption(_(NOTHING_PROPOSED[source or "feedback"]))
        return
    chosen = lists.choose_rows(
        proposals,
        _question_columns(proposals),
        key="analytics_proposed",
        of=lambda proposal: proposal.question,
        alt=_("Proposed test questions"),
    )
    words = ngettext("Add {count} question", "Add {count} questions", len(chosen))
    if st.button(words, type="primary", disabled=not chosen, key="analytics_propose_add"):
        actions.finish(evaluations.add_golden, identity, collection, chosen)


def _keep_nightly(identity: Identity, collection: Collection) -> None:
    is_nightly = bool(st.session_state[f"analytics_nightly_{collection.id}"])
    actions.attempt(PROBLEM, services().scheduled_work.set_nightly, identity, collection.id, is_nightly)


def _with(run: Run) -> str:
    changed = ", ".join(f"{name} = {value}" for name, value in run.overrides.items())
    title = PROFILES[run.profile].title if run.profile in PROFILES else run.profile
    settings = f"{title} ({changed})" if changed else title
    return _("{settings}, run at night", settings=settings) if run.is_nightly else settings


def _difference(name: str, value: float) -> str:
    if name == "total_ms":
        return signed(value, duration(abs(value)))
    return signed(
        value, money(abs(value)) if name == "cost" else _("{change} points", change=number(abs(value) * 100, 1))
    )


def _format_figure(name: str, value: float | None) -> str:
    if value is None:
        return "–"
    if name == "total_ms":
        return duration(value)
    return money(value) if name == "cost" else percent(value)


@dialog(N_("Add a test question"), icon=":material/add:")
def _add_golden(identity: Identity, collection: Collection) -> None:
    _draw_form(identity, collection, GoldenQuestion(question=""), None)


@dialog(N_("Change a test question"), icon=":material/edit:")
def _change_golden(identity: Identity, collection: Collection, golden_id: UUID, golden: GoldenQuestion) -> None:
    _draw_form(identity, collection, golden, golden_id)


@dialog(N_("Add a test question"), icon=":material/add:")
def add_golden_from(identity: Identity, collection: Collection, entry: ChatLogEntry) -> None:
    """Draw a form for a new test question, filled from a logged question and answer."""
    st.caption(_("Remove what the answer should not say, and add the words that every right answer contains."))
    _draw_form(identity, collection, golden_from_entry(entry), None)


def _draw_form(identity: Identity, collection: Collection, golden: GoldenQuestion, golden_id: UUID | None) -> None:
    ready = DocumentFilters(statuses=(DocumentStatus.COMPLETED,), collection_id=collection.id)
    names = services().documents.names(identity, ready, limit=MOST_DOCUMENTS)
    files = {golden.document: golden.document} if golden.document else {}
    titles = name_labels(files | {entry.file_name: entry.title for entry in names})
    key = f"analytics_golden_form_{golden_id or 'new'}_{hash(golden)}"
    with st.form(key, border=False):
        question = st.text_input(_("Question"), golden.question)
        is_answerable = st.toggle(_("The documents answer this question"), value=golden.is_answerable)
        with st.container(horizontal=True, vertical_alignment="bottom"):
            if len(names) < MOST_DOCUMENTS:
                document = st.selectbox(
                    _("Document"), list(titles), index=0 if golden.document else None, format_func=titles.of,
                    placeholder=_("Choose a document"),
                )  # fmt: skip
            else:
                document = st.text_input(_("Document"), golden.document, help=_("Title or file name."))
            pages = st.text_input(
                _("Pages"), "; ".join(map(str, golden.pages)), placeholder="3; 4", width=120,
                help=_("An answer from any of these pages counts as right. Leave this empty if every page counts as "
                       "right."),
            )  # fmt: skip
        answer = st.text_area(_("Expected answer"), golden.answer, height=100)
        evidence = st.text_input(
            _("Expected words"), "; ".join(golden.evidence), placeholder=_("25 days; five weeks"),
            help=_("The answer has to contain all of these words."),
        )  # fmt: skip
        with st.container(horizontal=True, vertical_alignment="bottom"):
            language = st.selectbox(
                _("Language"), list(LANGUAGES), format_func=LANGUAGES.__getitem__, width=200,
                index=list(LANGUAGES).index(golden.language) if golden.language in LANGUAGES else None,
            )  # fmt: skip
            tags = st.text_input(_("Tags"), "; ".join(golden.tags))
        sent = st.form_submit_button(_("Save") if golden_id else _("Add"), type="primary")
    if not sent:
        return
    # A language missing from the interface cannot be chosen here and stays unchanged.
    other_language = golden.language if golden.language not in LANGUAGES else ""
    row = {
        "question": question, "document": document or "", "pages": pages, "answer": answer, "evidence": evidence,
        "language": language or other_language, "tags": tags, "is_answerable": is_answerable,
        "asked_as": golden.asked_as,
    }  # fmt: skip

    def keep() -> None:
        golden_question = golden_from_json(row)
        if golden_id is None:
            services().evaluations.add_golden(identity, collection, [golden_question])
        else:
            services().evaluations.change_golden(identity, collection, golden_id, golden_question)

    actions.finish(keep)


@dialog(N_("Test questions from a file"), icon=":material/upload_file:")
def _upload_golden(identity: Identity, collection: Collection) -> None:
    st.caption(
        _("A CSV file with a header line, or a file with one JSON object per line. The fields: question, document, "
          "page, answer, evidence, language, tags, answerable. Separate several values with semicolons.")
    )  # fmt: skip
    file = st.file_uploader(_("File"), type=["csv", "jsonl"], key="analytics_golden_upload")
    if file is not None and st.button(_("Add"), type="primary", key="analytics_golden_take"):
        text = file.getvalue().decode("utf-8-sig", "replace")
        is_csv = file.name.endswith(".csv")
        actions.finish(
            lambda: services().evaluations.add_golden(identity, collection, parse_golden(text, is_csv=is_csv))
        )
