"""`python -m rag reembed`: a collection moved to another embedding model from the command line."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from rag.commands import Commands, add_command, add_place, agreed
from rag.errors import SettingsError
from rag.ingestion.reembedding import Reembedding, Reembeddings
from rag.profiles import profile_of
from rag.settings import Settings


def add_parsers(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = add_command(commands, "reembed", "embed a collection again, with another model, beside the old vectors")
    add_place(parser, needs_collection=True)
    parser.add_argument("--model", default="", help="provider/model@dimensions; the profile's own when not given")
    parser.add_argument("--yes", action="store_true", help="do not ask before money is spent")
    parser.add_argument("--undo", action="store_true", help="go back to the model before; free until the clean-up")
    parser.add_argument("--clean-up", action="store_true", help="remove the old vectors; then it cannot be undone")
    parser.set_defaults(run=reembed)


def reembed(arguments: argparse.Namespace, settings: Settings) -> int:
    """Show the cost, ask, work, switch. Run again after a kill, it goes on where it was."""
    from rag.public import _collection, _program
    from rag.services import services

    parts = services()
    tenant = arguments.tenant or settings.tenant
    try:
        collection, identity = _collection(tenant, arguments.collection), _program(tenant)
        moves = Reembeddings(parts.database, parts.providers)
        if arguments.clean_up:
            moves.clean_up(identity, collection.id)
            print("The vectors of earlier models are removed.")
            return 0
        profile = profile_of(collection)
        wanted = arguments.model or parts.providers.default_embedder_id(profile)
        if arguments.undo:
            wanted = _model_before(moves.find(tenant, collection_id=collection.id), collection.embedding_model)
        open_moves = [m for m in moves.find(tenant, collection_id=collection.id) if m.is_open]
        if open_moves and open_moves[0].to_model != wanted:
            raise SettingsError(
                f"This collection is being moved to {open_moves[0].to_model}. Name it with --model, or cancel it on "
                "the documents page."
            )
        move = open_moves[0] if open_moves else moves.estimate(identity, collection.id, wanted)
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
    """The model that the collection had before its last switch. Raises `SettingsError` when its vectors are gone."""
    for move in moves:
        if move.can_be_undone and move.to_model == model_now:
            return move.from_model
    raise SettingsError("There is nothing to undo: no vectors of an earlier model are kept. Name one with --model.")


def cost_words(move: Reembedding) -> str:
    cost = "unpriced" if move.estimated_cost is None else f"about ${move.estimated_cost:.4f}"
    return f"{move.chunks_total:,} passages, {move.estimated_tokens:,} tokens, {cost}"
