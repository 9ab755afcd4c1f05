"""Draw how collections change to other embedding models: cost, progress, and the button to undo."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import streamlit as st

from rag import language
from rag.errors import RagError
from rag.ingestion.reembedding import Reembedding, expected_range
from rag.language import _, ngettext
from rag.profiles import profile_of
from rag.providers.registry import EmbedderOption
from rag.services import services
from rag.settings.providers import provider_name
from rag.types import Collection, Identity
from rag.ui.actions import attempt
from rag.ui.collection_profile import embedder_line, embedder_name
from rag.ui.document_details import cost_range
from rag.ui.formats import count, money, thousands
from rag.ui.text import plain
from rag.ui.widgets import ask_to_confirm, name_labels, red


def better_models(collection: Collection) -> list[EmbedderOption]:
    """Return the paid models to which a collection with a built-in model could move.

    Returns [] if the collection's model is not built in.
    """
    return _models(collection, paid_only=True) if collection.embedding_model.startswith("builtin/") else []


def _models(collection: Collection, *, paid_only: bool = False) -> list[EmbedderOption]:
    return [
        option
        for option in services().providers.embedder_options(profile_of(collection))
        if not option.missing
        and option.id != collection.embedding_model
        and not (paid_only and option.provider == "builtin")
    ]


def draw_moves(identity: Identity, collections: Sequence[Collection], *, problem: str) -> None:
    """Draw each collection's model, and its move to another model, if any.

    A running move is redrawn every second. Errors go to `st.session_state[problem]`.
    """
    moves = services().documents.reembeddings.find(identity)
    for collection in collections:
        latest = _latest(moves, collection)
        is_running = latest is not None and latest.status == "running"
        # Separate fragments: a running move is read every second, without recomputing the others' costs.
        st.fragment(_draw, run_every="1s" if is_running else None)(identity, collection, problem, is_running)


def _latest(moves: Sequence[Reembedding], collection: Collection) -> Reembedding | None:
    candidates = (move for move in moves if move.collection_id == collection.id and move.status != "cancelled")
    return next(candidates, None)


def _draw(identity: Identity, collection: Collection, problem: str, was_running: bool) -> None:
    moves = services().documents.reembeddings.find(identity, collection_id=collection.id)
    latest = _latest(moves, collection)
    is_running = latest is not None and latest.status == "running"
    if st.session_state.pop("moves_changed", False) or is_running != was_running:
        st.rerun()  # The collection has a new model, the page has an error, or it follows a different move.
    with st.container(border=True, gap="small", key=f"moves_{collection.id}"):
        _draw_collection(identity, collection, latest, problem)


def _draw_collection(identity: Identity, collection: Collection, latest: Reembedding | None, problem: str) -> None:
    reembeddings = services().documents.reembeddings

    def act(action: Callable[[], object]) -> None:
        attempt(problem, action)
        st.session_state.moves_changed = True

    def undo(move: Reembedding) -> None:
        back = reembeddings.undo(identity, move)
        if back.estimated_cost == 0:
            reembeddings.confirm(identity, back.id)

    name, model = plain(collection.name), plain(embedder_name(collection.embedding_model))
    better = better_models(collection)
    if (latest is not None and latest.is_open) or not better:
        st.markdown(_("**{name}** is searched with {embedding_model}", name=name, embedding_model=model))
    else:
        words = _("**{name}** is searched with the built-in model. {options} would find more.",
                  name=name, options=plain(_("{model} by {provider}", model=better[0].model,
                                             provider=provider_name(better[0].provider))))  # fmt: skip
        st.markdown(words)
    if latest is not None and latest.is_open:
        _draw_open(
            latest,
            on_confirm=lambda: act(lambda: reembeddings.confirm(identity, latest.id)),
            on_cancel=lambda: act(lambda: reembeddings.cancel(identity, latest.id)),
        )
        return
    if latest is not None and latest.can_be_undone:
        st.caption(
            _(
                "Moved from {from_model}. The search data of the old model is kept until you remove it.",
                from_model=plain(embedder_name(latest.from_model)),
            )
        )
        with st.container(horizontal=True):
            st.button(
                _("Undo"),
                key=f"moves_undo_{latest.id}",
                icon=":material/undo:",
                help=_(
                    "Questions are answered with the previous model again. For passages that had already moved, "
                    "going back costs nothing."
                ),
                on_click=act,
                args=(lambda: undo(latest),),
            )
            if st.button(
                red(_("Remove the search data of the old model")),
                key=f"moves_clean_{latest.id}",
                icon=":material/cleaning_services:",
                type="tertiary",
                help=_("The search data of the old model takes up space. It is needed only to undo the move."),
            ):
                ask_to_confirm(
                    _("Remove the search data of the old model?"),
                    f"**{name}** :gray[{plain(embedder_name(latest.from_model))}]",
                    _("The move cannot be undone any more. Documents and answers stay as they are."),
                    action=_("Remove the search data of the old model"),
                    on_confirm=lambda: act(lambda: reembeddings.clean_up(identity, collection.id)),
                    key="moves_clean_sure",
                    icon=":material/cleaning_services:",
                )
    _draw_choice(identity, collection, act)


def _draw_choice(identity: Identity, collection: Collection, act: Callable[[Callable[[], object]], None]) -> None:
    options = {option.id: option for option in _models(collection)}
    if not options:
        st.caption(_("There is no other model: paste a key on the page Set-up first."))
        return
    reembeddings = services().documents.reembeddings
    labels = name_labels({identifier: embedder_line(option) for identifier, option in options.items()})
    model = st.selectbox(
        _("Move it to"),
        list(labels),
        format_func=labels.of,
        key=f"moves_model_{collection.id}",
        help=_("Questions are answered with the present model until all passages have moved."),
        width=560,
    )
    try:
        estimate = reembeddings.cost_of(identity, collection.id, str(model))
    except RagError as error:
        st.caption(plain(error.message))
        return

    def begin() -> None:
        move = reembeddings.estimate(identity, collection.id, str(model))
        # Ask again if documents added meanwhile raise the cost shown.
        if move.estimated_cost == estimate.cost or (
            estimate.cost is not None and move.estimated_cost is not None and move.estimated_cost < estimate.cost
        ):
            reembeddings.confirm(identity, move.id)

    price = (
        _("price not known")
        if estimate.cost is None
        else _("free of charge")
        if not estimate.cost
        else money(estimate.cost)
    )
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(
            _(
                "Move {passages} to the new model ({price})",
                passages=count(estimate.chunks, "passage"),
                price=plain(price),
            )
            if estimate.chunks
            else _("Use this model"),
            key=f"moves_begin_{collection.id}",
            icon=":material/move_up:",
            type="primary" if better_models(collection) else "secondary",
            on_click=act,
            args=(begin,),
        )
        facts = cost_range(*expected_range(estimate.cost))
        facts.append(_("Answers continue during the move, and you can undo the move with one click."))
        st.caption(" · ".join(facts), width="content")


def _draw_open(move: Reembedding, *, on_confirm: Callable[[], None], on_cancel: Callable[[], None]) -> None:
    words = _(
        "To {to_model}: {chunks_total}, about {estimated_cost}",
        to_model=plain(embedder_name(move.to_model)),
        chunks_total=count(move.chunks_total, "passage"),
        estimated_cost=plain(money(move.estimated_cost)),
    )
    st.markdown(" · ".join([words, *cost_range(*expected_range(move.estimated_cost))]))
    if move.status == "running":
        part = move.chunks_done / move.chunks_total if move.chunks_total else 1.0
        st.progress(
            min(part, 1.0),
            text=_(
                "{chunks_done} of {chunks_total} passages are moved to the new model",
                chunks_done=thousands(move.chunks_done),
                chunks_total=thousands(move.chunks_total),
            ),
        )
    if move.message:
        st.caption(f":red[{plain(language.translated(move.message))}]")
    with st.container(horizontal=True):
        if move.status != "running":
            words = _(
                "Move {passages} to the new model ({price})",
                passages=count(move.chunks_total - move.chunks_done, "passage"),
                price=plain(money(move.estimated_cost)),
            )
            st.button(
                _("Try again") if move.status == "failed" else words,
                key=f"moves_confirm_{move.id}",
                type="primary",
                icon=":material/check:",
                on_click=on_confirm,
            )
        if not move.chunks_done:
            st.button(_("Cancel"), key=f"moves_cancel_{move.id}", type="tertiary", on_click=on_cancel)
        elif st.button(
            red(_("Cancel the move")),
            key=f"moves_stop_{move.id}",
            type="tertiary",
            icon=":material/close:",
            help=_("The search data made so far is removed. No search has used it."),
        ):
            ask_to_confirm(
                _("Cancel the move?"),
                ngettext(
                    "The new search data of {count} passage is removed, although it was paid for.",
                    "The new search data of {count} passages is removed, although it was paid for.",
                    move.chunks_done,
                ),
                _("Questions are still answered with the present model."),
                action=_("Cancel the move"),
                on_confirm=on_cancel,
                key="moves_stop_sure",
                icon=":material/close:",
                keeps=_("Continue the move"),
            )
