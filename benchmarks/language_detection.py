"""Of how many questions the language is recognised, in percent: by the heuristic alone, and with the detector.

The latter also where the question's own language is likely beforehand, as that of its conversation or reader, and where
English is, as that of the collection.

    python -m benchmarks.language_detection --sets FOLDER

FOLDER holds one folder per set, named …_<language>, with queries.jsonl ("question").
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

from rag.text.language_detection import detect_language, detect_language_heuristic


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=Path, required=True)
    options = parser.parse_args()
    detect_language("Laden der Sprachen")  # loads the detector
    right = dict.fromkeys(("heuristic", "with detector", "own likely", "English likely"), 0)
    total = 0
    started = time.perf_counter()
    for folder in sorted(path for path in options.sets.iterdir() if path.is_dir()):
        language = folder.name.rsplit("_", 1)[1]
        lines = (folder / "queries.jsonl").read_text("utf-8").splitlines()
        questions = [json.loads(line)["question"] for line in lines if line.strip()]
        here = {
            "heuristic": sum(detect_language_heuristic(text) == language for text in questions),
            "with detector": sum(detect_language(text) == language for text in questions),
            "own likely": sum(detect_language(text, [language]) == language for text in questions),
            "English likely": sum(detect_language(text, ["en"]) == language for text in questions),
        }
        total += len(questions)
        right = {name: right[name] + here[name] for name in right}
        shown = "   ".join(f"{name} {100 * n / len(questions):5.1f}" for name, n in here.items())
        print(f"{folder.name:12} {len(questions):5} questions   {shown}", flush=True)
    shown = "   ".join(f"{name} {100 * n / total:5.2f}" for name, n in right.items())
    print(
        f"{'all':12} {total:5} questions   {shown}   {1000 * (time.perf_counter() - started) / total:.2f} ms a question"
    )


if __name__ == "__main__":
    main()
