"""Measure what a language adds to the vector of every question, for the grouping of gaps.

`python -m benchmarks.question_means` embeds question_means.txt with the built-in model and writes
rag/records/question_means.npz.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from rag.providers.builtin_embedders import MeaningEmbedder
from rag.records.gaps import MEANS

QUESTIONS = Path(__file__).with_name("question_means.txt")


def main() -> None:
    embedder = MeaningEmbedder(gives_way=False)
    means: dict[str, Any] = {}
    for line in QUESTIONS.read_text().splitlines():
        if not line.startswith("#"):
            language, questions = line.split("\t")
            texts = [question.strip() for question in questions.split("|")]
            means[language] = embedder.embed(texts, purpose="query").vectors.mean(axis=0).astype(np.float16)
    embedder.close()
    np.savez_compressed(MEANS, **means)


if __name__ == "__main__":
    main()
