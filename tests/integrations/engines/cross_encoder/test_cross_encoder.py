"""A reranker that runs here, with a model of a few numbers made for the test."""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rag.errors import ProviderAnswerInvalid, SettingsError
from rag.integrations.engines.cross_encoder.reranker import LocalCrossEncoder
from rag.profiles import HR
from rag.providers import Reranker
from rag.providers.registry import Providers
from rag.retrieval.retriever import Retriever
from rag.settings import Settings
from rag.storage.database import Database
from rag.types import Identity, Question
from tests.retrieval.shelf import Shelf

WORDS = ["[PAD]", "[UNK]", "vacation", "days", "parking", "desk"]


def write_model(folder: Path, outputs: int = 1) -> Path:
    """A model whose relevance is how many of a text's tokens are "vacation" or "days", in the passage more than 2."""
    onnx = importlib.import_module("onnx")
    helper, types = onnx.helper, onnx.TensorProto
    tokenizers = importlib.import_module("tokenizers")
    weights = np.zeros((len(WORDS), outputs), dtype=np.float32)
    weights[2:4, -1] = 1.0
    graph = helper.make_graph(
        [
            helper.make_node("Gather", ["weights", "input_ids"], ["looked_up"]),
            helper.make_node("ReduceSum", ["looked_up", "axis"], ["summed"], keepdims=0),
            helper.make_node("Sub", ["summed", "bias"], ["logits"]),
        ],
        "tiny",
        [helper.make_tensor_value_info("input_ids", types.INT64, ["texts", "tokens"])],
        [helper.make_tensor_value_info("logits", types.FLOAT, ["texts", outputs])],
        [
            helper.make_tensor("weights", types.FLOAT, weights.shape, weights.flatten()),
            helper.make_tensor("axis", types.INT64, [1], [1]),
            helper.make_tensor("bias", types.FLOAT, [outputs], [2.0] * outputs),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    path = folder / "tiny.onnx"
    onnx.save(model, str(path))
    vocabulary = {word: number for number, word in enumerate(WORDS)}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.normalizer = tokenizers.normalizers.Lowercase()
    tokenizer.save(str(folder / "tokenizer.json"))
    return path


def test_it_orders_by_relevance_between_0_and_1(tmp_path: Path) -> None:
    reranker: Reranker = LocalCrossEncoder(write_model(tmp_path))
    ranking = reranker.rank("vacation days", ["parking", "vacation days", "vacation", "desk"], limit=3)
    assert [index for index, _ in ranking.results] == [1, 2, 0]
    assert ranking.results[0][1] == pytest.approx(1 / (1 + np.exp(-2.0)), abs=1e-6)
    assert ranking.results[2][1] == pytest.approx(0.5, abs=1e-6)
    assert (ranking.usage.provider, ranking.usage.model, ranking.usage.search_units) == ("builtin", "tiny", 0)


def test_the_runtime_reports_to_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ORT_DISABLE_TELEMETRY", raising=False)
    LocalCrossEncoder(write_model(tmp_path))
    assert os.environ["ORT_DISABLE_TELEMETRY"] == "1"


def test_nothing_to_order_and_many_to_order(tmp_path: Path) -> None:
    reranker = LocalCrossEncoder(write_model(tmp_path))
    assert reranker.rank("vacation", [], limit=5).results == ()
    documents = ["desk"] * 39 + ["vacation days " * 400]
    assert reranker.rank("vacation", documents, limit=1).results[0][0] == 39


def test_two_outputs_are_irrelevant_and_relevant(tmp_path: Path) -> None:
    ranking = LocalCrossEncoder(write_model(tmp_path, outputs=2)).rank("days", ["desk", "vacation"], limit=2)
    assert [index for index, _ in ranking.results] == [1, 0]


def test_an_output_of_another_shape_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ProviderAnswerInvalid):
        LocalCrossEncoder(write_model(tmp_path, outputs=3)).rank("days", ["desk"], limit=1)


def test_what_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SettingsError, match=r"none\.onnx"):
        LocalCrossEncoder(tmp_path / "none.onnx")
    path = write_model(tmp_path)
    path.write_bytes(b"no model")
    with pytest.raises(SettingsError, match="cannot be read"):
        LocalCrossEncoder(path)
    (tmp_path / "tokenizer.json").unlink()
    with pytest.raises(SettingsError, match=r"tokenizer\.json"):
        LocalCrossEncoder(path)

    def without(package: str) -> Any:
        raise ImportError(package)

    monkeypatch.setattr("importlib.import_module", without)
    with pytest.raises(SettingsError, match="pip install onnxruntime tokenizers"):
        LocalCrossEncoder(path)


def test_it_takes_the_place_of_the_reranker_and_costs_nothing(
    tmp_path: Path, database: Database, shelf: Shelf, asker: Identity
) -> None:
    shelf.add("Guide", ["Parking days and parking.", "Vacation days, vacation days."])
    providers = Providers(Settings(cross_encoder=str(write_model(tmp_path))))
    found = Retriever(database, providers).retrieve_context(
        Question(text="vacation days", identity=asker, collection=shelf.collection), profile=HR
    )
    assert found.rag_details.reranking.model == "tiny"
    assert found.citations[0].first_page == 2
    assert found.cost == 0
    assert [c.cost for c in found.charges if c.operation == "reranking"] == [0]


def test_a_broken_one_leaves_the_found_order_and_says_so(
    tmp_path: Path, database: Database, shelf: Shelf, asker: Identity
) -> None:
    shelf.add("Guide", ["Vacation days, vacation days."])
    providers = Providers(Settings(cross_encoder=str(tmp_path / "none.onnx")))
    found = Retriever(database, providers).retrieve_context(
        Question(text="vacation days", identity=asker, collection=shelf.collection), profile=HR
    )
    assert "RAG_CROSS_ENCODER" in found.notices[0]
    assert found.citations
