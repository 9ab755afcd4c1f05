"""Preview changed settings before they are saved: presets, and searches for recent questions with both settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import streamlit as st

from rag.errors import InvalidInput
from rag.evaluation.previews import MAXIMUM_QUESTIONS, Preview, Previews, SearchOutcome
from rag.language import N_, _, listed, ngettext
from rag.profiles.profile import SETTINGS, Profile
from rag.types import Citation, Collection, Identity
from rag.ui.formats import money
from rag.ui.text import plain

#: Profile parts which decide which passages are found; from the other parts, only these settings do.
SEARCHED_BY = ("search", "understanding", "ranking", "language")
ALSO = ("context_tokens", "context_characters")
VERDICTS = {
    "answered": N_(":green-badge[Answered]"),
    "perhaps": N_(":orange-badge[Perhaps answered]"),
    "none": N_(":gray-badge[Not in the documents]"),
}
SNIPPET_CHARACTERS = 110


@dataclass(frozen=True, kw_only=True)
class Preset:
    """Settings which serve a common purpose, to apply together."""

    name: str
    title: str
    effect: str
    icon: str
    values: Callable[[Profile], Mapping[str, Any]]


PRESETS = (
    Preset(
        name="thorough",
        title=N_("Thorough"),
        effect=N_(
            "Answers are written from twice as many passages: better for questions whose answer is spread over several "
            "documents. With a language model, each answer costs about twice as much."
        ),
        icon=":material/menu_book:",
        values=lambda profile: {
            "top_k": min(2 * profile.search.top_k, 50),
            "context_tokens": min(2 * profile.answer.context_tokens, 200_000),
        },
    ),
    Preset(
        name="brief",
        title=N_("Brief"),
        effect=N_(
            "Answers are written from fewer passages: quicker and cheaper, but a question whose answer is spread "
            "over several places may be answered only in part."
        ),
        icon=":material/bolt:",
        values=lambda profile: {
            "top_k": max(profile.search.top_k // 2 + 1, 1),
            "context_tokens": max(profile.answer.context_tokens // 2, 200),
            "rerank_top_n": min(profile.ranking.rerank_top_n, max(profile.search.top_k // 2 + 1, 1)),
        },
    ),
    Preset(
        name="words",
        title=N_("Search more by words"),
        effect=N_(
            "The words of a question count more than its meaning: better for numbers, names and paragraphs that are "
            "cited exactly."
        ),
        icon=":material/match_word:",
        values=lambda profile: {
            "search_type": "hybrid",
            "fusion": "weighted",
            "vector_weight": 0.3,
            "keyword_weight": 0.7,
        },
    ),
    Preset(
        name="meaning",
        title=N_("Search more by meaning"),
        effect=N_(
            "The meaning of a question counts more than its words: better where people ask in other words than the "
            "documents use."
        ),
        icon=":material/lightbulb:",
        values=lambda profile: {
            "search_type": "hybrid",
            "fusion": "weighted",
            "vector_weight": 0.85,
            "keyword_weight": 0.15,
        },
    ),
    Preset(
        name="newest",
        title=N_("Newest first"),
        effect=N_("Recent documents come before older ones that say the same: better for notices that replace others."),
        icon=":material/event_upcoming:",
        values=lambda profile: {
            "recency_boost": True,
            "recency_steps": profile.ranking.recency_steps or ((30, 1.3), (90, 1.2), (365, 1.1)),
        },
    ),
)


def changes_of(preset: Preset, profile: Profile, collection: Collection) -> dict[str, Any]:
    """Return the settings which a preset would change in the collection, with the new values.

    The result is empty if nothing changes, or if the new values contradict other settings.
    """
    now = profile.with_overrides(collection.overrides)
    values = preset.values(profile)
    changes = {name: value for name, value in values.items() if now.value(name) != value}
    try:
        profile.with_overrides({**collection.overrides, **changes})
    except InvalidInput:
        return {}
    return changes


def draw_presets(collection: Collection, profile: Profile, *, on_open: Callable[[str], None]) -> None:
    """Draw each preset with its effect, and mark the presets in use with a badge.

    Presets without effect are left out.
    """
    now = profile.with_overrides(collection.overrides)
    with st.container(border=True, gap="small", key="collections_presets"):
        st.markdown(_("**Adjust this collection to a purpose**"))
        st.caption(
            _(
                "Each purpose changes several settings at once. You see the changes and can try them before "
                "they are saved."
            )
        )
        for preset in PRESETS:
            is_on = all(now.value(name) == value for name, value in preset.values(profile).items())
            changes = changes_of(preset, profile, collection)
            if not is_on and not changes:
                continue
            with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
                st.markdown(
                    f"{preset.icon} **{plain(_(preset.title))}**  \n:small[:gray[{plain(_(preset.effect))}]]", width=620
                )
                if is_on:
                    st.badge(_("In use"), icon=":material/check:", color="green")
                else:
                    st.button(
                        _("Choose"),
                        key=f"collections_preset_{preset.name}",
                        on_click=on_open,
                        args=(preset.name,),
                    )


def is_previewed(names: Sequence[str]) -> bool:
    """Whether any of these settings affects which passages a search finds."""
    return any(SETTINGS[name].part in SEARCHED_BY or name in ALSO for name in names)


def draw_preview(
    previews: Previews, identity: Identity, collection: Collection, before: Profile, changes: Mapping[str, Any]
) -> None:
    """Draw the questions to try, the cost, and the passages found for each question before and after `changes`.

    `before` is the profile with the collection's current settings.
    """
    if not is_previewed(list(changes)):
        if not all(SETTINGS[name].new_documents_only for name in changes):
            st.caption(_("This changes how answers are worded, not which passages are found."))
        return
    try:
        after = before.with_overrides({n: v for n, v in changes.items() if not SETTINGS[n].locked})
    except InvalidInput as error:
        st.caption(plain(error.message))
        return
    state, key = st.session_state, f"collections_try_{collection.id}"
    with st.expander(_("Try it first"), icon=":material/science:", key=f"{key}_box", on_change="rerun") as box:
        if not box.open:
            return
        state.setdefault(f"{key}_questions", "\n".join(previews.recent_questions(identity, collection.id)))
        st.text_area(
            _("Questions, one per line"),
            key=f"{key}_questions",
            height=140,
            help=_("These are the most recent questions. You can change them; the first ten are tried."),
            placeholder=_("How many days of leave do I have?"),
        )
        questions = [line.strip() for line in state[f"{key}_questions"].splitlines() if line.strip()]
        questions = questions[:MAXIMUM_QUESTIONS]
        is_paid = _ask_for_models(previews, collection, before, after, len(questions), key)
        can_try = bool(questions) and (is_paid or not previews.needs_paid_calls(collection))
        if st.button(_("Compare"), key=f"{key}_compare", icon=":material/compare_arrows:", disabled=not can_try):
            with st.spinner(_("Searching with both…")):
                comparisons = previews.compare(identity, collection, before, after, questions, with_paid_models=is_paid)
            state[f"{key}_found"] = (dict(changes), comparisons)
        tried, comparisons = state.get(f"{key}_found", (None, []))
        if tried == dict(changes):
            _draw_comparisons(comparisons)


def _ask_for_models(
    previews: Previews, collection: Collection, before: Profile, after: Profile, questions: int, key: str
) -> bool:
    """Draw a checkbox for using paid models, with the cost, and return whether the user ticked the box.

    Returns `False` if no paid models are configured.
    """
    estimate = previews.estimate(collection, before, after, questions=questions)
    if estimate == 0:
        st.caption(_("This costs nothing: only the search runs, and no model is called."))
        return False
    is_paid = st.checkbox(
        _("Also use the paid models of the search (at most about {cost})", cost=money(estimate)),
        key=f"{key}_paid",
        help=_("Questions are translated and results are sorted a second time, as in the chat. No answer is written."),
    )
    if not is_paid and previews.needs_paid_calls(collection):
        st.caption(_("This collection is searched with a provider's model. Without that model, nothing can be tried."))
    elif not is_paid:
        st.caption(
            _(
                "Without these models, trying costs nothing, but questions are not translated and results are not "
                "sorted a second time."
            )
        )
    return is_paid


def _draw_comparisons(comparisons: Sequence[Preview]) -> None:
    changed = [preview for preview in comparisons if not preview.is_same]
    if changed:
        st.markdown(
            ngettext(
                "**{count} question has different results.**",
                "**{count} questions have different results.**",
                len(changed),
            )
        )
    else:
        st.success(_("All questions find the same passages in the same order."), icon=":material/equal:")
    if any(preview.cost is None or preview.cost for preview in comparisons):
        costs = [preview.cost for preview in comparisons if preview.cost is not None]
        st.caption(_("The trial cost {cost}.", cost=money(sum(costs) if len(costs) == len(comparisons) else None)))
    for preview in [*changed, *(preview for preview in comparisons if preview.is_same)]:
        with st.container(border=True, gap="xsmall"):
            st.markdown(f"**{plain(preview.question)}**")
            st.markdown(_verdicts(preview))
            _draw_difference(preview)


def _verdicts(preview: Preview) -> str:
    before, after = _(VERDICTS[preview.before.verdict]), _(VERDICTS[preview.after.verdict])
    return after if before == after else f"{before} :material/arrow_forward: {after}"


def _draw_difference(preview: Preview) -> None:
    problem = preview.before.problem or preview.after.problem
    if problem:
        st.caption(plain(problem))
        return
    added, removed = preview.after.without(preview.before), preview.before.without(preview.after)
    lines = [f":green[:material/add_circle:] {_line(passage)}" for passage in added]
    lines += [f":red[:material/do_not_disturb_on:] {_line(passage)}" for passage in removed]
    if lines:
        st.markdown("  \n".join(lines))
        remaining = len(preview.after.passages) - len(added)
        if remaining:
            st.caption(
                ngettext("{count} passage is found as before.", "{count} passages are found as before.", remaining)
            )
    elif preview.is_same:
        st.caption(_places(preview.after) or _("As before, no passage was found."))
    else:
        st.caption(_("The same passages, in a different order: {places}", places=_places(preview.after)))


def _places(outcome: SearchOutcome) -> str:
    return plain(listed(dict.fromkeys(_place(passage) for passage in outcome.passages)))


def _place(passage: Citation) -> str:
    return _("{title}, page {page}", title=passage.title, page=passage.first_page)


def _line(passage: Citation) -> str:
    text = " ".join(passage.passage.split())
    short = text if len(text) <= SNIPPET_CHARACTERS else f"{text[: SNIPPET_CHARACTERS - 1]}…"
    return f"{plain(_place(passage))} :small[:gray[{plain(short)}]]"


def preset_by_name(name: str) -> Preset | None:
    return next((preset for preset in PRESETS if preset.name == name), None)


#: Saves several settings together.
Save = Callable[[UUID, dict[str, Any]], None]
