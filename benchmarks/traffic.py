"""The running product with two months of traffic, to look at its pages of figures: `python -m benchmarks.traffic`.

Starts the product in a folder of its own without any key, and fills it: people of five groups, questions in six
languages with how they ended, what they cost and how they were rated, questions that the documents do not answer in
several wordings, people who wait for an answer, test questions with three runs over them, and budgets. Prints the
address and how to sign in, and serves until Ctrl-C.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from threading import Event

from benchmarks.product import PASSWORD, TENANT, Product
from rag.evaluation.golden import read_golden
from rag.profiles import profile_by_name
from rag.services import Services, connect_services, program_of
from rag.settings import Settings
from tests.question_month import write_month

ADMIN = "admin@benchmark.example"
HERE = Path(__file__).parent
PEOPLE = tuple(
    (f"Person {place}", f"person{place}@benchmark.example", "manager" if place % 9 == 0 else "employee", group)
    for place, group in enumerate(("Sales", "Engineering", "Operations", "Finance", "Mill") * 8)
)
#: What the sample documents do not answer, each asked in several wordings and languages.
MISSING = (
    (
        "Is there a parking space for visitors?",
        "Where can guests park?",
        "Wo können Besucher parken?",
        "방문객 주차 공간이 있나요?",
    ),
    ("When does the canteen open on Fridays?", "What are the canteen's hours?", "Wann öffnet die Kantine?"),
    (
        "May I bring my dog to the office?",
        "Puis-je amener mon chien au bureau ?",
        "¿Puedo llevar a mi perro a la oficina?",
    ),
    ("How do I get a company phone?", "Who gives me a work mobile?", "Hoe krijg ik een zakelijke telefoon?"),
    ("Does the company pay for a language course?", "Can I take Korean lessons at work?"),
    ("Is there a gym subsidy?", "Do we get money for sports clubs?", "헬스장 지원금이 있나요?"),
    ("Can I lease a bicycle through the company?", "Gibt es ein Jobrad?"),
    ("Who won the match yesterday?",),
)
OFTEN = (14, 9, 7, 6, 4, 4, 3, 2)
FILL = """
UPDATE chat_logs SET account_id = (%(people)s::uuid[])[1 + abs(hashtext(id::text)) %% %(count)s]
WHERE kind = 'question' AND account_id IS NULL
"""
REPLACE = "UPDATE chat_logs SET question = %s, language = %s WHERE id = %s"
MIX = """
UPDATE chat_logs SET outcome = CASE abs(hashtext('o' || id::text)) % 20 WHEN 0 THEN 'refused' WHEN 1 THEN 'small_talk'
    WHEN 2 THEN 'perhaps' WHEN 3 THEN 'perhaps' ELSE outcome END
WHERE outcome = 'answered'
"""
ASK = """
INSERT INTO help_requests (tenant_id, collection_id, chat_log_id, account_id, question, reason, comment, created_at)
SELECT tenant_id, collection_id, id, account_id, question, 'unanswered', 'It would help to know before Friday.',
       created_at
FROM chat_logs WHERE outcome = 'no_context' AND account_id IS NOT NULL ORDER BY created_at DESC LIMIT 3
"""

ASIDE = """
UPDATE chat_logs SET rag_details = rag_details || '{"evidence": {"outcome": "none", "probability": 0.0089}}'
WHERE question = 'Who won the match yesterday?'
"""
KEEP = """
INSERT INTO prompts (chat_log_id, tenant_id, messages, passages)
SELECT l.id, l.tenant_id, jsonb_build_array(
           jsonb_build_object('role', 'system', 'content', 'Answer from the passages alone, and name them.'),
           jsonb_build_object('role', 'user', 'content', 'The question:' || chr(10) || l.question)),
       jsonb_agg(jsonb_build_object(
           'number', r.place, 'chunkId', c.id, 'documentId', d.id, 'title', d.title, 'firstPage', c.first_page,
           'lastPage', c.last_page, 'section', c.section, 'text', c.content, 'unsupported', '[]'::jsonb,
           'state', CASE WHEN r.place > 2 THEN 'not named' WHEN hashtext(l.id::text) % 9 = 0 THEN 'not held'
                    ELSE 'held' END) ORDER BY r.place)
FROM chat_logs l
CROSS JOIN LATERAL jsonb_array_elements(l.rag_details #> '{search,rawResults}') WITH ORDINALITY AS r(found, place)
JOIN document_chunks c ON c.id = (r.found ->> 'chunkId')::uuid
JOIN documents d ON d.id = c.document_id
WHERE l.outcome IN ('answered', 'perhaps') AND r.place <= 5
GROUP BY l.id
"""


def language_of(text: str) -> str:
    """The language of one of `MISSING`."""
    first = text.split()[0]
    if any("가" <= letter <= "힣" for letter in text):
        return "ko"
    return {"Wo": "de", "Wann": "de", "Gibt": "de", "Puis-je": "fr", "¿Puedo": "es", "Hoe": "nl"}.get(first, "en")


def fill(parts: Services) -> None:
    """Write the traffic, gaps, budgets and runs of the demonstration tenant."""
    chance = random.Random(11)
    collection = parts.choose_collection(TENANT, None)
    written = write_month(parts.database, TENANT, collection.id, until=datetime.now(UTC).date())
    with parts.database.transaction(TENANT) as connection:
        people = [row[0] for row in connection.execute("SELECT id FROM accounts")]
        connection.execute(FILL, {"people": people, "count": len(people)})
        unanswered = connection.execute(
            "SELECT id FROM chat_logs WHERE outcome = 'no_context' AND id = ANY (%s) ORDER BY created_at", (written,)
        ).fetchall()
        for (chat_log_id,) in unanswered:
            wording = chance.choice(chance.choices(MISSING, OFTEN)[0])
            connection.execute(REPLACE, (wording, language_of(wording), chat_log_id))
        connection.execute(MIX)
        connection.execute(ASK)
        connection.execute(KEEP)
        connection.execute(ASIDE)
    admin = program_of(TENANT)
    golden = read_golden(HERE / "natural_questions.jsonl")
    parts.evaluations.add_golden(admin, collection, golden)
    for profile in ("legal", "hr", "hr"):
        run = parts.evaluations.begin(collection, profile_by_name(profile), golden)
        parts.evaluations.work(collection, run, admin)
    with parts.database.transaction(TENANT) as connection:
        connection.execute(
            "INSERT INTO budgets (tenant_id, scope, user_group, amount) VALUES (%(t)s, 'company', '', 12), "
            "(%(t)s, 'group', 'Sales', 0.8), (%(t)s, 'group', 'Finance', 2)",
            {"t": TENANT},
        )


@contextmanager
def product_with_traffic(folder: Path, **variables: str) -> Iterator[tuple[Product, str]]:
    """The product with its traffic, and the administrator's cookie."""
    product = Product(folder, **variables)
    product.start()
    try:
        cookie = product.sign_in_admin()
        product.add_people(PEOPLE)
        parts = connect_services(Settings(tenant=TENANT, data_dir=folder))
        try:
            fill(parts)
        finally:
            parts.close()
        yield product, cookie
    finally:
        product.stop()


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--data", type=Path, default=None, help="keep everything in this folder")
    wanted = arguments.parse_args()
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name,
        product_with_traffic(wanted.data or Path(name)) as (product, _),
    ):
        how = f"Sign in as {ADMIN} with the password {PASSWORD}. Ctrl-C stops."
        print(f"{product.url}/analytics\n{how}", flush=True)
        with suppress(KeyboardInterrupt):
            Event().wait()


if __name__ == "__main__":
    main()
