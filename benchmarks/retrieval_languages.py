"""How many questions find their paragraph among the first five, by language and with no key, beside bm25s.

    python -m benchmarks.retrieval_languages --sets FOLDER [--only xquad_en,jaquad_ja] [--every 3] [--meaning]
    python -m benchmarks.retrieval_languages --sets FOLDER --across

FOLDER holds the sets: files in SQuAD's form as they are published, named NAME.LANGUAGE.json (xquad.de.json), or a
folder each, named NAME_LANGUAGE, with corpus.jsonl ("id", "text") and queries.jsonl ("id", "question", "doc_id"). bm25s
gets the same tokens. Each set is asked as it is; with 30 % of the longer words mistyped; and with half of the words
that carry topic left out, as if others had been used for them. Both do nothing to scripts without spaces; of Korean a
letter within a syllable is mistyped.
Which words is drawn `--draws` times: with 600 questions a single draw differs from another by half a point and more.

`--meaning` asks the product in place of bm25s: by words alone, and with vectors of meaning, which take a quarter of a
second a paragraph.

`--across` asks the XQuAD questions of one language about the paragraphs of another, translated by a stand-in that knows
them: the same questions exist in every language under the same id.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import tempfile
import unicodedata
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import bm25s
import numpy as np
from pgvector import HalfVector

from benchmarks.database import temporary_database
from rag.ingestion.document_jobs import JobControl
from rag.ingestion.meaning import MeaningJob
from rag.profiles import HR
from rag.providers.builtin_embedders import LexicalEmbedder, MeaningEmbedder
from rag.providers.registry import Providers
from rag.retrieval.bm25.index import index_document, tokenize
from rag.retrieval.hybrid_search import SearchQuery, hybrid_search
from rag.retrieval.retriever import Retriever
from rag.retrieval.search_query import is_hangul, question_words
from rag.settings import Settings
from rag.storage.database import Database
from rag.types import Collection, Identity, Question, Role, Scope
from tests.standins.providers import ProviderStandin

TENANT = "languages"
FIRST = 5
#: First consonants, vowels and last consonants of syllables, as Unicode takes them apart.
KOREAN_LETTERS = [
    [chr(code) for code in codes] for codes in (range(0x1100, 0x1113), range(0x1161, 0x1176), range(0x11A8, 0x11C3))
]
EMBEDDER = LexicalEmbedder()
Row = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=Path, required=True)
    parser.add_argument("--only", default="", help="names of sets, separated by commas")
    parser.add_argument("--every", type=int, default=1, help="ask every so manieth question")
    parser.add_argument("--draws", type=int, default=3, help="times the words mistyped and left out are drawn again")
    parser.add_argument("--meaning", action="store_true", help="the product without and with vectors of meaning")
    parser.add_argument("--across", action="store_true")
    options = parser.parse_args()
    with temporary_database("retrieval-languages") as database:
        with database.transaction(TENANT) as connection:
            connection.execute("INSERT INTO tenants (id, name) VALUES (%s, 'Languages')", (TENANT,))
        (across if options.across else by_meaning if options.meaning else each_language)(database, options)


def each_language(database: Database, options: argparse.Namespace) -> None:
    for folder in folders_of(options):
        language = name_of(folder).rsplit("_", 1)[1]
        corpus, questions = read(folder, options.every)
        scope = Scope(tenant_id=TENANT, collection_ids=(fill(database, name_of(folder), language, corpus).id,))
        reference = bm25s.BM25(k1=1.5, b=0.75, method="lucene")
        reference.index([tokenize(row["text"], language) for row in corpus], show_progress=False)
        shown = []
        for name, put in wordings().items():
            theirs, ours = [], []
            for draw in range(options.draws if name != "as asked" else 1):
                random.seed(f"{name} {draw}")
                asked = [(put(row["question"], language), row["doc_id"]) for row in questions]
                theirs += [wanted in first_by_bm25s(reference, corpus, text, language) for text, wanted in asked]
                ours += [wanted in first_by_us(database, scope, corpus, text, language) for text, wanted in asked]
            shown.append(f"{name} {100 * statistics.mean(theirs):5.1f} {100 * statistics.mean(ours):5.1f}")
        print(f"{name_of(folder):12} recall@5, bm25s and ours:  {'   '.join(shown)}", flush=True)


def wordings() -> dict[str, Callable[[str, str], str]]:
    return {"as asked": lambda text, language: text, "mistyped": mistyped, "in other words": in_other_words}


def folders_of(options: argparse.Namespace) -> list[Path]:
    wanted = options.only.split(",") if options.only else None
    return [path for path in all_sets(options.sets) if wanted is None or name_of(path) in wanted]


def all_sets(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_dir() or path.suffix == ".json")


def name_of(path: Path) -> str:
    """Return NAME_LANGUAGE of a set."""
    return path.name if path.is_dir() else path.stem.replace(".", "_")


def by_meaning(database: Database, options: argparse.Namespace) -> None:
    meaning = MeaningEmbedder(gives_way=False)
    providers = {
        "words": Providers(Settings(builtin_embedder="lexical")),
        "meaning": Providers(Settings(), meaning=meaning),
    }
    asker = Identity(account_id=UUID(int=0), tenant_id=TENANT, email="", name="benchmark", role=Role.ADMIN)
    for folder in folders_of(options):
        language = name_of(folder).rsplit("_", 1)[1]
        corpus, questions = read(folder, options.every)
        collection = fill(database, name_of(folder), language, corpus)
        with tempfile.TemporaryDirectory() as data:
            work = MeaningJob(JobControl(database), meaning, Path(data))
            while not work.run(TENANT, collection.id):
                pass
        shown = []
        for name, put in wordings().items():
            found: dict[str, list[bool]] = {kind: [] for kind in providers}
            for draw in range(options.draws if name != "as asked" else 1):
                random.seed(f"{name} {draw}")
                for text, wanted in [(put(row["question"], language), row["doc_id"]) for row in questions]:
                    question = Question(text=text, identity=asker, collection=collection, language=language)
                    for kind, known in providers.items():
                        judged = Retriever(database, known).retrieve(question, profile=HR).scored
                        found[kind].append(wanted in [corpus[i.result.chunk_index]["id"] for i in judged[:FIRST]])
            shown.append(f"{name} " + " ".join(f"{100 * statistics.mean(found[kind]):5.1f}" for kind in providers))
        print(f"{name_of(folder):12} recall@5, words and meaning:  {'   '.join(shown)}", flush=True)
    for known in providers.values():
        known.close()


def across(database: Database, options: argparse.Namespace) -> None:
    sets = {
        name_of(path)[-2:]: read(path, options.every)
        for path in all_sets(options.sets)
        if name_of(path).startswith("xquad_")
    }
    by_language = {code: {row["id"]: row["question"] for row in rows} for code, (_, rows) in sets.items()}
    asker = Identity(account_id=UUID(int=0), tenant_id=TENANT, email="", name="benchmark", role=Role.ADMIN)
    with ProviderStandin() as standin:
        providers = Providers(Settings(openai_api_key="key", openai_base_url=standin.openai_url))
        retriever = Retriever(database, providers)
        for target in ("en", "de", "zh"):
            corpus, questions = sets[target]
            collection = fill(database, f"across {target}", target, corpus)
            same: float | None = None
            for source in (target, *(code for code in sets if code != target)):
                translations = {by_language[source][row["id"]].strip(): row["question"] for row in questions}
                standin.reply(partial(_translated, translations))
                found = []
                for row in questions:
                    text = by_language[source][row["id"]]
                    question = Question(text=text, identity=asker, collection=collection, language=source)
                    judged = retriever.retrieve(question, profile=HR.changed(reranking=False)).scored
                    found.append(row["doc_id"] in [corpus[i.result.chunk_index]["id"] for i in judged[:FIRST]])
                recall = statistics.mean(found)
                same = recall if same is None else same
                print(
                    f"{source} about {target}: recall@5 {100 * recall:5.1f} ({100 * (recall - same):+.1f})", flush=True
                )
        providers.close()


def _translated(known: dict[str, str], messages: Any) -> str:
    return known[_asked(messages)]


def _asked(messages: list[dict[str, Any]]) -> str:
    text = str(messages[-1]["content"])
    return text.removeprefix("<question>").removesuffix("</question>")


def mistyped(text: str, language: str) -> str:
    """A letter lost, doubled with its neighbour's place or replaced in 30 % of the words of five letters and more."""

    def typo(word: str) -> str:
        if is_hangul(word[:2]):
            return word if random.random() > 0.3 else _mistyped_korean(word)
        if len(word) < 5 or not word.isalpha() or random.random() > 0.3:
            return word
        i, kind = random.randrange(1, len(word) - 1), random.randrange(3)
        if kind == 0:
            return word[:i] + word[i + 1 :]
        if kind == 1:
            return word[:i] + word[i + 1] + word[i] + word[i + 2 :]
        return word[:i] + random.choice("aeiorst") + word[i + 1 :]

    return " ".join(map(typo, text.split()))


def _mistyped_korean(word: str) -> str:
    """Another letter of its kind in one of the first syllables, or that syllable's last consonant lost."""
    letters = list(unicodedata.normalize("NFD", word))
    i = random.randrange(max(1, 2 * len(letters) // 3))
    kind = next((kind for kind in KOREAN_LETTERS if letters[i] in kind), None)
    if kind is None:
        return word
    letters[i] = random.choice(("", *kind) if kind is KOREAN_LETTERS[2] else kind)
    return unicodedata.normalize("NFC", "".join(letters))


def in_other_words(text: str, language: str) -> str:
    """The question with half of its topic words left out, as if other words had been used for them."""
    topic = [word.text for word in question_words(text, language, language) if not word.is_pair]
    left_out = set(random.sample(topic, len(topic) // 2))
    kept = [word for word in text.split() if word.strip(".,;:?!¿¡\"'()").lower() not in left_out]
    return " ".join(kept) or text


def first_by_bm25s(reference: Any, corpus: list[Row], text: str, language: str) -> list[str]:
    terms = [term for term in dict.fromkeys(tokenize(text, language)) if term in reference.vocab_dict]
    if not terms:
        return []
    return [corpus[i]["id"] for i in np.argsort(-reference.get_scores(terms), kind="stable")[:FIRST]]


def first_by_us(database: Database, scope: Scope, corpus: list[Row], text: str, language: str) -> list[str]:
    vector = EMBEDDER.embed([text], purpose="query").vectors[0]
    query = SearchQuery(text=text, language=language, vector=vector, embedding_model=EMBEDDER.id)
    return [corpus[r.chunk_index]["id"] for r in hybrid_search(database, query, scope=scope, limit=FIRST)]


def read(folder: Path, every: int) -> tuple[list[Row], list[Row]]:
    """Return the paragraphs of a set, and every so manieth question."""
    if folder.suffix == ".json":
        corpus, questions = squad(json.loads(folder.read_text("utf-8")))
        return corpus, questions[::every]
    corpus, questions = (
        [json.loads(line) for line in (folder / name).read_text("utf-8").splitlines() if line.strip()]
        for name in ("corpus.jsonl", "queries.jsonl")
    )
    return corpus, questions[::every]


def squad(published: Row) -> tuple[list[Row], list[Row]]:
    """Return the paragraphs and questions of a file in SQuAD's form."""
    corpus: list[Row] = []
    questions: list[Row] = []
    for article in published["data"]:
        for number, paragraph in enumerate(article["paragraphs"]):
            doc_id = f"{article.get('title', '')}#{number}"
            corpus.append({"id": doc_id, "text": paragraph["context"]})
            questions += [{"id": q["id"], "question": q["question"], "doc_id": doc_id} for q in paragraph["qas"]]
    return corpus, questions


def fill(database: Database, name: str, language: str, corpus: list[Row]) -> Collection:
    """The paragraphs as one document without a title."""
    vectors = EMBEDDER.embed([row["text"] for row in corpus], purpose="document").vectors
    with database.transaction(TENANT) as connection:
        row = connection.execute(
            "INSERT INTO collections (tenant_id, name, embedding_model, language) VALUES (%s, %s, %s, %s) RETURNING id",
            (TENANT, name, EMBEDDER.id, language),
        ).fetchone()
        assert row is not None
        document = connection.execute(
            "INSERT INTO documents (tenant_id, collection_id, title, file_name, sha256, status, language) "
            "VALUES (%s, %s, '', %s, %s, 'completed', %s) RETURNING id",
            (TENANT, row[0], name, name, language),
        ).fetchone()
        assert document is not None
        connection.cursor().executemany(
            "INSERT INTO document_chunks (tenant_id, collection_id, document_id, content, embedding, embedding_model, "
            "chunk_index) VALUES (%s, %s, %s, %s, %s, %s, %s)",
            [
                (TENANT, row[0], document[0], paragraph["text"], HalfVector(vector), EMBEDDER.id, number)
                for number, (paragraph, vector) in enumerate(zip(corpus, vectors, strict=True))
            ],
        )
        index_document(connection, tenant_id=TENANT, collection_id=row[0], document_id=document[0])
    return Collection(
        id=row[0], tenant_id=TENANT, name=name, profile="hr", embedding_model=EMBEDDER.id, language=language,
        overrides={}, created_at=datetime.now(UTC),
    )  # fmt: skip


if __name__ == "__main__":
    main()
