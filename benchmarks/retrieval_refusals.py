"""How many questions are answered that the documents answer, and how many that they do not: with no key, in percent.

    python benchmarks/retrieval_refusals.py --sets FOLDER [--questions 200]

FOLDER holds one folder per set, as `retrieval_languages.py` takes them. The paragraphs of a set are parted in two
halves, each asked questions of its own half and of the other: the same subjects' neighbours, the hardest strangers
there are. A question counts as answered when `retrieve_context` cites anything. The samples are asked everyday
questions they have nothing on.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from uuid import UUID

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "retrieval"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from retrieval_languages import EMBEDDER, TENANT, Row, fill, read
from shelf import Shelf

from rag.database import Database
from rag.embedded import start_server
from rag.migrations import migrate
from rag.profiles import HR
from rag.providers.registry import Providers
from rag.retrieval.context import Retriever
from rag.samples import SAMPLES
from rag.settings import Settings
from rag.types import Collection, Identity, Question, Role

EVERYDAY = """
What is the capital of France?
Who won the world cup in 1998?
Do you sell pizza?
Write a poem about the sea
How do I bake an apple pie?
What is the weather like tomorrow?
Who painted the Mona Lisa?
How tall is Mount Everest?
What is the boiling point of water?
How do I fix a flat tyre on my bicycle?
Which team won the Super Bowl last year?
Tell me a joke about cats
How many planets are in the solar system?
How do I train a puppy?
Best restaurants in Rome
What is the plot of Hamlet?
How does photosynthesis work?
Who invented the telephone?
How do I install Linux on my laptop?
When did the second world war end?
What is the price of gold today?
Can you recommend a good film?
How do I tie a tie?
What is the population of Japan?
How do I grow tomatoes on a balcony?
Which airline flies to Iceland?
What time does the supermarket close?
How do I change my phone's wallpaper?
Is there life on Mars?
Hoe bak ik een appeltaart?
Wat is de hoofdstad van Frankrijk?
Hoe laat gaat de zon onder?
Wie schilderde de Nachtwacht?
Hoe leer ik gitaar spelen?
Welke film draait er vanavond?
Hoe verwijder ik een vlek uit een tapijt?
오늘 날씨 어때요?
프랑스의 수도는 어디인가요?
김치찌개는 어떻게 끓이나요?
강아지를 어떻게 훈련하나요?
모나리자는 누가 그렸나요?
비트코인 가격이 얼마예요?
재미있는 영화 추천해 주세요
기타를 배우고 싶어요
""".strip().splitlines()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=Path, required=True)
    parser.add_argument("--questions", type=int, default=200, help="of each set")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="retrieval-refusals-") as folder:
        server = start_server(Path(folder))
        try:
            migrate(server.owner)
            database = Database(server.application)
            database.open()
            try:
                with database.transaction(TENANT) as connection:
                    connection.execute("INSERT INTO tenants (id, name) VALUES (%s, 'Languages')", (TENANT,))
                retriever = Retriever(database, Providers(Settings()))
                for path in sorted(path for path in options.sets.iterdir() if path.is_dir()):
                    measure_set(database, retriever, path, options.questions)
                measure_samples(database, retriever)
            finally:
                database.close()
        finally:
            server.stop()


def measure_set(database: Database, retriever: Retriever, path: Path, wanted: int) -> None:
    corpus, questions = read(path, 1)
    random.Random(5).shuffle(questions)
    language = path.name.rsplit("_", 1)[1]
    half = len(corpus) // 2
    parts = (corpus[:half], corpus[half:])
    shelves = [fill(database, f"{path.name} {n}", language, part) for n, part in enumerate(parts)]
    own: list[bool] = []
    strange: list[bool] = []
    for row in questions[:wanted]:
        home = 0 if any(paragraph["id"] == row["doc_id"] for paragraph in parts[0]) else 1
        own.append(is_answered(retriever, shelves[home], row, language))
        strange.append(is_answered(retriever, shelves[1 - home], row, language))
    print(f"{path.name:12} answered {share(own)} of its own, {share(strange)} of the other half's", flush=True)


def measure_samples(database: Database, retriever: Retriever) -> None:
    shelf = Shelf(database, fill(database, "samples", "en", []), EMBEDDER)
    for sample in SAMPLES:
        shelf.add_pdf(sample.read(), title=sample.title, file_name=sample.file_name, language=sample.language)
    answered = [is_answered(retriever, shelf.collection, {"question": text}, None) for text in EVERYDAY]
    print(f"{'samples':12} answered {sum(answered)} of {len(EVERYDAY)} everyday questions")


def is_answered(retriever: Retriever, collection: Collection, row: Row, language: str | None) -> bool:
    asker = Identity(account_id=UUID(int=0), tenant_id=TENANT, email="", name="benchmark", role=Role.ADMIN)
    question = Question(text=row["question"], identity=asker, collection=collection)
    return bool(retriever.retrieve_context(question, profile=HR, language=language).citations)


def share(answers: Sequence[bool]) -> str:
    return f"{100 * sum(answers) / len(answers):5.1f} %"


if __name__ == "__main__":
    main()
