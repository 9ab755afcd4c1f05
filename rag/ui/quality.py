"""Draw golden questions, runs over them, and two runs side by side."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from uuid import UUID

import pandas as pd
import streamlit as st

from rag.errors import RagError
from rag.evaluation.golden import GoldenQuestion, parse_golden
from rag.evaluation.metrics import FIGURES, TITLES
from rag.evaluation.runs import Run, Source
from rag.language import N_, _, ngettext, number
from rag.profile import Profile
from rag.profiles import PROFILES, profile_by_name, profile_of
from rag.services import services
from rag.types import Collection, DocumentFilters, DocumentStatus, Identity, Role
from rag.ui import actions
from rag.ui.analytics import Change, draw_metric, grown, moved
from rag.ui.charts import outcome_names
from rag.ui.formats import duration, money, percent
from rag.ui.text import plain
from rag.ui.widgets import (
    ask_to_confirm,
    choose_collection,
    dialog,
    document_labels,
    name_labels,
    red,
    time_column,
    words_of,
)

PROBLEM = "analytics_quality_problem"
#: Figures in the list of runs; the others are in a run's own table.
LISTED = ("document_recall", "page_recall", "answered_right", "refused_right", "grounded", "total_ms", "cost")
#: Figures above the list, of the newest run.
SHOWN = (
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
OWN = "own"
MOST_DOCUMENTS = 200
SOURCES: dict[Source, str] = {"feedback": N_("Rated helpful"), "gaps": N_("Gaps"), "documents": N_("A document")}
NOTHING_PROPOSED: dict[Source, str] = {
    "feedback": N_("No question with a source was rated as helpful yet, or all are golden questions already."),
    "gaps": N_("No gap is solved or dismissed yet, or all are golden questions already."),
    "documents": N_("No questions were read from these documents: that happens when they are tagged by a model."),
}
VERDICTS = {
    "better": N_("better"),
    "worse": N_("worse"),
    "no difference": N_("no difference"),
    "too few questions": N_("too few questions"),
}


def draw_quality(identity: Identity) -> None:
    """Draw the golden questions of a collection, what runs over them measured, and how two runs differ."""
    collections = {collection.id: collection for collection in services().documents.collections(identity)}
    if not collections:
        st.caption(_("There is no collection yet."))
        return
    st.caption(
        _("Golden questions have known answers: each run asks them all and measures what was found and said. Run them "
          "before and after a change of settings or documents.")
    )  # fmt: skip
    chosen: UUID | None = next(iter(collections))
    if len(collections) > 1:
        names = {collection.id: collection.name for collection in collections.values()}
        chosen = choose_collection(names, key="analytics_quality_collection", width=260)
    if chosen not in collections:
        return
    collection = collections[chosen]
    if st.session_state.get(PROBLEM):
        st.error(plain(st.session_state[PROBLEM]), icon=":material/error:")
    with st.container(border=True):
        golden = services().evaluations.golden(identity, collection.id)
        _draw_golden(identity, collection, golden)
    runs = services().evaluations.runs(identity, collection.id)
    with st.container(border=True):
        every = 2.0 if any(services().evaluations.is_running(run.id) for run in runs) else None
        st.fragment(_draw_runs, run_every=every)(identity, collection)


def _draw_golden(identity: Identity, collection: Collection, golden: dict[UUID, GoldenQuestion]) -> None:
    evaluations, scheduled = services().evaluations, services().scheduled_work
    with st.container(horizontal=True, vertical_alignment="center"):
        st.header(_("Golden questions"), anchor=False, width="stretch")
        if identity.may(Role.ADMIN):
            if st.button(_("Add a question"), icon=":material/add:", key="analytics_golden_add"):
                _add_golden(identity, collection)
            if st.button(_("Propose"), icon=":material/auto_awesome:", key="analytics_golden_propose"):
                _propose_golden(identity, collection)
            if st.button(_("From a file"), icon=":material/upload_file:", key="analytics_golden_file"):
                _upload_golden(identity, collection)
            if golden and st.button(
                _("Run them"), icon=":material/play_arrow:", type="primary", key="analytics_golden_run"
            ):
                _start_run(identity, collection, list(golden.values()))
    if golden and identity.may(Role.ADMIN):
        st.toggle(
            _("Ask them every night"), scheduled.is_nightly(identity, collection.id),
            key=f"analytics_nightly_{collection.id}", on_change=_keep_nightly, args=(identity, collection),
            help=_("When a figure falls, administrators are told by e-mail, and other programs by webhook."),
        )  # fmt: skip
    if not golden:
        st.caption(
            _("None yet. Begin with ten questions that people ask often, and the document and page that answer each.")
        )
        return
    table = st.dataframe(
        pd.DataFrame(
            {
                _("Question"): [one.question for one in golden.values()],
                _("Document"): [
                    one.document or ("–" if one.is_answerable else _("in none")) for one in golden.values()
                ],
                _("Pages"): [", ".join(map(str, one.pages)) for one in golden.values()],
                _("Expected words"): ["; ".join(one.evidence) for one in golden.values()],
                _("Tags"): [", ".join(one.tags) for one in golden.values()],
            }
        ),
        key=f"analytics_golden_{hash(tuple(golden))}",
        on_select="rerun",
        selection_mode="multi-row",
        hide_index=True,
        height="content" if len(golden) <= 8 else 300,
        column_config={_("Question"): st.column_config.TextColumn(width=380)},
        alt=_("Golden questions of this collection"),
    )
    rows = [row for row in table.selection.rows if row < len(golden)]
    words = ngettext("Remove {count} question", "Remove {count} questions", len(rows))
    if (
        rows
        and identity.may(Role.ADMIN)
        and st.button(red(words), icon=":material/delete:", key="analytics_golden_remove")
    ):
        chosen = [list(golden)[row] for row in rows]

        def remove() -> None:
            for golden_id in chosen:
                actions.attempt(PROBLEM, evaluations.remove_golden, identity, golden_id)

        ask_to_confirm(
            ngettext("Remove {count} golden question?", "Remove {count} golden questions?", len(rows)),
            [_("Later runs leave them out, for good. What earlier runs measured stays.")],
            does=words,
            on_confirm=remove,
            key="analytics_golden_remove",
        )


def _draw_runs(identity: Identity, collection: Collection) -> None:
    evaluations = services().evaluations
    runs = evaluations.runs(identity, collection.id)
    st.header(_("Runs"), anchor=False)
    if not runs:
        st.caption(_("No run yet."))
        return
    for run in runs:
        if evaluations.is_running(run.id):
            st.progress(
                run.done / run.questions,
                _("{done} of {questions}", done=number(run.done), questions=number(run.questions)),
            )
        elif run.finished_at is None and identity.may(Role.ADMIN):
            left = number(run.questions - run.done)
            if st.button(_("Go on with {left} questions", left=left), key=f"analytics_run_{run.id}"):
                actions.attempt(PROBLEM, evaluations.go_on, identity, collection, run.id)
                st.rerun()
    _draw_newest(runs)
    table = st.dataframe(
        pd.DataFrame(
            {
                _("When"): [run.created_at for run in runs],
                _("With"): [_with(run) for run in runs],
                _("Questions"): [f"{run.done} / {run.questions}" for run in runs],
            }
            | {_(TITLES[name]): [_written(name, run.figures.get(name)) for run in runs] for name in LISTED}
        ),
        key=f"analytics_runs_{hash(tuple(run.id for run in runs))}",
        on_select="rerun",
        selection_mode="multi-row",
        hide_index=True,
        height="content" if len(runs) <= 8 else 300,
        column_config={_("When"): time_column(with_year=False, width=105)},
        alt=_("Runs with their figures"),
    )
    st.caption(_("Select one run to see its questions, or two to compare them."))
    rows = sorted(row for row in table.selection.rows if row < len(runs))
    if len(rows) == 1:
        _draw_results(identity, runs[rows[0]])
    elif len(rows) == 2:
        _draw_comparison(identity, runs[rows[1]], runs[rows[0]])


def _draw_newest(runs: Sequence[Run]) -> None:
    """Draw the figures of the newest whole run against the one before it, each with its history."""
    ended = [run for run in runs if run.finished_at is not None]
    if not ended:
        return
    newest, before = ended[0], ended[1] if len(ended) > 1 else None
    with st.grid(4, min_column_width=150):
        for name in SHOWN:
            value = newest.figures.get(name)
            if value is None:
                continue
            old = before.figures.get(name) if before is not None else None
            history = [run.figures[name] for run in reversed(ended) if name in run.figures]
            change = Change(None) if old is None else grown(value, old) if name in COUNTED else moved(value, old)
            draw_metric(
                _(TITLES[name]), _written(name, value), change, "normal" if FIGURES[name] else "inverse",
                trend=history, help_text=_(TITLES[name]),
            )  # fmt: skip


def _draw_results(identity: Identity, run: Run) -> None:
    evaluations = services().evaluations
    golden, results = evaluations.questions(identity, run.id), evaluations.results(identity, run.id)
    st.dataframe(
        pd.DataFrame(
            {
                _("Question"): [golden[result.place].question for result in results],
                _("Outcome"): [outcome_names().get(result.outcome, result.outcome) for result in results],
            }
            | {
                _(TITLES[name]): [_written(name, result.figures.get(name)) for result in results]
                for name in FIGURES
                if any(name in result.figures for result in results)
            }
            | {_("Answer"): [" ".join(result.answer.split()) for result in results]}
        ),
        hide_index=True,
        key=f"analytics_results_{run.id}",
        alt=_("Questions of this run with their figures"),
    )


def _draw_comparison(identity: Identity, earlier: Run, later: Run) -> None:
    try:
        compared = services().evaluations.compare(identity, earlier.id, later.id)
    except RagError as error:
        st.caption(plain(error.message))
        return
    st.dataframe(
        pd.DataFrame(
            {
                _("Figure"): [_(TITLES[row.figure]) for row in compared],
                _("Earlier"): [_written(row.figure, row.first) for row in compared],
                _("Later"): [_written(row.figure, row.second) for row in compared],
                _("Difference"): [f"{row.difference:+.3f}" for row in compared],
                _("95 % of it"): [f"{row.low:+.3f} … {row.high:+.3f}" for row in compared],
                _("Verdict"): [_(VERDICTS[row.verdict]) for row in compared],
                _("Questions"): [row.questions for row in compared],
            }
        ),
        hide_index=True,
        key=f"analytics_compared_{earlier.id}_{later.id}",
        alt=_("Two runs side by side"),
    )
    _draw_pairs(identity, earlier, later)
    st.caption(
        _("Compared question by question: the difference is told from chance by resampling the questions (paired "
          "bootstrap).")
    )  # fmt: skip


def _draw_pairs(identity: Identity, earlier: Run, later: Run) -> None:
    """Draw what both runs said to each question, those that ended differently first."""
    evaluations = services().evaluations
    words = outcome_names()
    told = []
    for run in (earlier, later):
        questions = evaluations.questions(identity, run.id)
        told.append({questions[result.place].question: result for result in evaluations.results(identity, run.id)})
    both = [question for question in told[0] if question in told[1]]
    both.sort(key=lambda question: told[0][question].outcome == told[1][question].outcome)
    st.dataframe(
        pd.DataFrame(
            {
                _("Question"): both,
                _("Earlier"): [words.get(told[0][q].outcome, told[0][q].outcome) for q in both],
                _("Later"): [words.get(told[1][q].outcome, told[1][q].outcome) for q in both],
                _("Answer, earlier"): [" ".join(told[0][q].answer.split()) for q in both],
                _("Answer, later"): [" ".join(told[1][q].answer.split()) for q in both],
            }
        ),
        hide_index=True,
        height="content" if len(both) <= 8 else 300,
        key=f"analytics_pairs_{earlier.id}_{later.id}",
        column_config={_("Question"): st.column_config.TextColumn(width=280)},
        alt=_("Answers of two runs side by side"),
    )


@dialog(N_("Run them"), icon=":material/play_arrow:")
def _start_run(identity: Identity, collection: Collection, golden: list[GoldenQuestion]) -> None:
    labels = name_labels({OWN: _("The collection's settings")} | {p.name: p.title for p in PROFILES.values()})
    chosen = st.multiselect(
        _("With"), list(labels), [OWN], format_func=labels.of, key="analytics_run_with",
        help=_("Several can be compared afterwards."),
    )  # fmt: skip
    profiles = [profile_of(collection) if name == OWN else profile_by_name(name) for name in chosen]
    is_judged = _draw_judge(identity, profiles, len(golden))
    words = ngettext("Ask {count} question", "Ask {count} questions", len(golden) * len(chosen))
    if st.button(words, type="primary", icon=":material/play_arrow:", disabled=not chosen, key="analytics_run_start"):
        for profile in profiles:
            actions.attempt(
                PROBLEM, services().evaluations.start, identity, collection, golden, profile, is_judged=is_judged
            )
        st.rerun()


def _draw_judge(identity: Identity, profiles: Sequence[Profile], questions: int) -> bool:
    """Draw whether a model checks the answers as well, with what that costs; return whether it does."""
    judge = services().evaluations.judge
    models = [judge.model(profile) for profile in profiles]
    if not models or not all(models):
        st.caption(
            _("With the key of a provider, a model can check as well whether answers follow from their sources.")
        )
        return False
    costs = [judge.estimate(identity.tenant_id, profile, questions) for profile in profiles]
    known = [cost for cost in costs if cost is not None]
    total = sum(known, Decimal(0)) if len(known) == len(costs) else None
    return st.toggle(
        _("Have a model check the answers ({cost})", cost=plain(money(total))), key="analytics_run_judge",
        help=_("{model} says of each sentence whether it follows from the sources named: one small call an answer, "
               "beside what the answers cost.", model=plain(models[0])),
    )  # fmt: skip


@dialog(N_("Propose golden questions"), width="large", icon=":material/auto_awesome:")
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
    found = evaluations.proposals(identity, collection.id, source or "feedback", document)
    if not found:
        st.caption(_(NOTHING_PROPOSED[source or "feedback"]))
        return
    chosen = st.dataframe(
        pd.DataFrame(
            {
                _("Question"): [one.question for one in found],
                _("Document"): [one.document or ("–" if one.is_answerable else _("in none")) for one in found],
                _("Pages"): [", ".join(map(str, one.pages)) for one in found],
            }
        ),
        hide_index=True,
        height="content" if len(found) <= 8 else 300,
        key=f"analytics_proposed_{hash(tuple(one.question for one in found))}",
        on_select="rerun",
        selection_mode="multi-row",
        column_config={_("Question"): st.column_config.TextColumn(width=380)},
        alt=_("Proposed golden questions"),
    )
    rows = [row for row in chosen.selection.rows if row < len(found)]
    words = ngettext("Add {count} question", "Add {count} questions", len(rows))
    if st.button(words, type="primary", disabled=not rows, key="analytics_propose_add"):
        try:
            evaluations.add_golden(identity, collection, [found[row] for row in rows])
        except RagError as error:
            actions.draw_error(error)
        else:
            st.rerun()


def _keep_nightly(identity: Identity, collection: Collection) -> None:
    wanted = bool(st.session_state[f"analytics_nightly_{collection.id}"])
    actions.attempt(PROBLEM, services().scheduled_work.set_nightly, identity, collection.id, wanted)


def _with(run: Run) -> str:
    changed = ", ".join(f"{name} = {value}" for name, value in run.overrides.items())
    title = PROFILES[run.profile].title if run.profile in PROFILES else run.profile
    return f"{title} ({changed})" if changed else title


def _written(name: str, value: float | None) -> str:
    if value is None:
        return "–"
    if name == "total_ms":
        return duration(value)
    return money(value) if name == "cost" else percent(value)


@dialog(N_("Add a golden question"), icon=":material/add:")
def _add_golden(identity: Identity, collection: Collection) -> None:
    with st.form("analytics_golden_form", border=False):
        question = st.text_input(_("Question"), max_chars=500)
        is_answerable = st.toggle(_("The documents answer it"), value=True)
        document = st.text_input(_("Document"), help=_("Title or file name."))
        pages = st.text_input(_("Pages"), placeholder="3; 4", help=_("Any of them answers; empty for any page."))
        evidence = st.text_input(
            _("Expected words"), placeholder=_("25 days; five weeks"), help=_("Each is to be in the answer.")
        )
        tags = st.text_input(_("Tags"))
        sent = st.form_submit_button(_("Add"), type="primary")
    if sent:
        row = pd.DataFrame(
            [{"question": question, "document": document, "pages": pages, "evidence": evidence, "tags": tags,
              "answerable": "yes" if is_answerable else "no"}]
        ).to_csv(index=False)  # fmt: skip
        _add(identity, collection, row, is_csv=True)


@dialog(N_("Golden questions from a file"), icon=":material/upload_file:")
def _upload_golden(identity: Identity, collection: Collection) -> None:
    st.caption(
        _("CSV with a header line, or one JSON object a line: question, document, page, answer, evidence, language, "
          "tags, answerable. Several values are parted by semicolons.")
    )  # fmt: skip
    file = st.file_uploader(_("File"), type=["csv", "jsonl"], key="analytics_golden_upload")
    if file is not None and st.button(_("Add"), type="primary", key="analytics_golden_take"):
        _add(identity, collection, file.getvalue().decode("utf-8-sig", "replace"), is_csv=file.name.endswith(".csv"))


def _add(identity: Identity, collection: Collection, text: str, *, is_csv: bool) -> None:
    try:
        services().evaluations.add_golden(identity, collection, parse_golden(text, is_csv=is_csv))
    except RagError as error:
        actions.draw_error(error)
    else:
        st.rerun()
