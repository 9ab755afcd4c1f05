"""Draw golden questions, runs over them, and two runs side by side."""

from __future__ import annotations

from uuid import UUID

import pandas as pd
import streamlit as st

from rag.errors import RagError
from rag.evaluation.golden import GoldenQuestion, parse_golden
from rag.evaluation.metrics import FIGURES, TITLES
from rag.evaluation.runs import Run
from rag.language import N_, _, ngettext, number
from rag.services import services
from rag.types import Collection, Identity, Role
from rag.ui import actions
from rag.ui.formats import duration, money, percent
from rag.ui.text import plain
from rag.ui.widgets import choose_collection, dialog, red

PROBLEM = "analytics_quality_problem"
#: Figures in the list of runs; the others are in a run's own table.
LISTED = ("document_recall", "page_recall", "answered_right", "refused_right", "grounded", "total_ms", "cost")
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
    evaluations = services().evaluations
    with st.container(horizontal=True, vertical_alignment="center"):
        st.subheader(_("Golden questions"), anchor=False, width="stretch")
        if identity.may(Role.ADMIN):
            if st.button(_("Add a question"), icon=":material/add:", key="analytics_golden_add"):
                _add_golden(identity, collection)
            if st.button(_("From a file"), icon=":material/upload_file:", key="analytics_golden_file"):
                _upload_golden(identity, collection)
            if golden and st.button(
                _("Run them"), icon=":material/play_arrow:", type="primary", key="analytics_golden_run"
            ):
                actions.attempt(PROBLEM, evaluations.start, identity, collection, list(golden.values()))
                st.rerun()
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
        for row in rows:
            actions.attempt(PROBLEM, evaluations.remove_golden, identity, list(golden)[row])
        st.rerun()


def _draw_runs(identity: Identity, collection: Collection) -> None:
    evaluations = services().evaluations
    runs = evaluations.runs(identity, collection.id)
    st.subheader(_("Runs"), anchor=False)
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
        column_config={
            _("When"): st.column_config.DatetimeColumn(format="D MMM, HH:mm", timezone=st.context.timezone, width=105)
        },
        alt=_("Runs with their figures"),
    )
    st.caption(_("Select one run to see its questions, or two to compare them."))
    rows = sorted(row for row in table.selection.rows if row < len(runs))
    if len(rows) == 1:
        _draw_results(identity, runs[rows[0]])
    elif len(rows) == 2:
        _draw_comparison(identity, runs[rows[1]], runs[rows[0]])


def _draw_results(identity: Identity, run: Run) -> None:
    evaluations = services().evaluations
    golden, results = evaluations.questions(identity, run.id), evaluations.results(identity, run.id)
    st.dataframe(
        pd.DataFrame(
            {
                _("Question"): [golden[result.place].question for result in results],
                _("Outcome"): [result.outcome for result in results],
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
    st.caption(
        _("Compared question by question: the difference is told from chance by resampling the questions (paired "
          "bootstrap).")
    )  # fmt: skip


def _with(run: Run) -> str:
    changed = ", ".join(f"{name} = {value}" for name, value in run.overrides.items())
    return f"{run.profile} ({changed})" if changed else run.profile


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
