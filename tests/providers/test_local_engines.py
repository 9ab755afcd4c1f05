"""What the core does around the engines on this machine, and without them."""

from __future__ import annotations

import signal
import subprocess
import sys
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rag.errors import PackagesMissing, ProviderUnavailable, SettingsError
from rag.ingestion.loaders.ocr import has_rapidocr
from rag.ingestion.loaders.sandbox import recognition_sandbox_of
from rag.ingestion.loaders.values import ExtractionLimits
from rag.integrations import registry
from rag.providers.builtin_embedders import MAXIMUM_CHARACTERS, MeaningEmbedder, is_installed, prepared
from rag.providers.local_engines import cross_encoder, worker_for
from rag.providers.registry import Providers
from rag.settings import PROJECT, Settings

#: Works for ten times its limit, which is set again for each task; then says so and works on without an end.
TASKS = """
import time
from rag.sandbox.child_process import lift_time_limit, limit_time

def work(seconds):
    started = time.process_time()
    while time.process_time() - started < seconds:
        pass

for _ in range(10):
    limit_time(1.0)
    work(0.1)
lift_time_limit()
work(0.2)
limit_time(0.2)
print("done", flush=True)
work(3600)
"""


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="Windows has no such timer")
def test_a_limit_of_processor_time_counts_from_its_task_and_ends_what_does_not_end() -> None:
    """By SIGPROF of a timer: what SIGXCPU is sent by counts the whole life of a process, on a clock nobody can read."""
    ended = subprocess.run(
        [sys.executable, "-c", TASKS],
        capture_output=True,
        text=True,
        cwd=PROJECT,
        check=False,
    )
    assert (ended.stdout, ended.returncode) == ("done\n", -signal.SIGPROF), ended.stderr[-500:]


def test_a_text_is_prepared_whatever_is_in_it() -> None:
    assert prepared("ﬁt\0\ud800") == "fit ?"
    assert len(prepared("\ufdfa" * 50_000)) == MAXIMUM_CHARACTERS
    assert unicodedata.is_normalized("NFKC", prepared("\ufdfa" * 50))


def test_without_the_package_words_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rag.providers.registry.is_installed", lambda: False)
    assert Providers(Settings()).meaning is None


@pytest.fixture
def without_engines(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As if the folders of the engines were deleted."""
    kept = tuple(one for one in registry.integrations() if not one.workers and not one.cross_encoder)
    monkeypatch.setattr(registry, "integrations", lambda: kept)
    worker_for.cache_clear()
    yield
    worker_for.cache_clear()


@pytest.mark.usefixtures("without_engines")
def test_without_its_folder_an_engine_is_not_installed() -> None:
    assert not is_installed()
    assert Providers(Settings()).meaning is None
    assert not has_rapidocr(Settings())


@pytest.mark.usefixtures("without_engines")
@pytest.mark.parametrize(
    ("start", "error"),
    [
        (lambda: MeaningEmbedder().embed(["leave"], purpose="query"), ProviderUnavailable),
        (lambda: recognition_sandbox_of(ExtractionLimits(maximum_pages=7)), PackagesMissing),
        (lambda: cross_encoder(Path("model.onnx")), SettingsError),
    ],
    ids=["meaning", "recognition", "cross_encoder"],
)
def test_an_engine_which_is_not_installed_says_how_to_install_it(
    start: Callable[[], object], error: type[Exception]
) -> None:
    with pytest.raises(error, match=r"pip install -r requirements-integrations\.txt"):
        start()
