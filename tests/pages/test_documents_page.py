from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg.types.json import Jsonb
from pypdf import PdfWriter
from streamlit.testing.v1 import AppTest

from rag.access.sessions import token_hash
from rag.ingestion.loaders.ocr import RECOGNISED
from rag.ingestion.reading import NOTHING_RECOGNISED
from rag.providers.builtin_embedders import MeaningEmbedder
from rag.samples import SAMPLES
from rag.samples.load import find_samples, load_samples
from rag.services import Services
from rag.storage.database import Database, queries
from rag.types import Account, Collection, DocumentFilters, DocumentStatus, Identity, Role, UploadOptions
from rag.ui import language as page_language
from rag.ui.document_upload import WaitingFile
from tests.patience import patient

PAGE = str(Path(__file__).resolve().parents[2] / "pages" / "documents.py")
ESTIMATE = {
    "pages": 12,
    "characters": 24_000,
    "tokens": 6_000,
    "chunks": 30,
    "parsing": "0",
    "chunking": "0",
    "embedding": "0.00012",
    "metadata": "0.0018",
    "total": "0.00192",
}
HOSTILE = "<img src=x onerror=alert(1)> $x^2$ :red[red] **bold** ![x](http://elsewhere/x)"

Add = Callable[..., UUID]


@pytest.fixture
def account(database: Database) -> Account:
    return add_account(database, Role.ADMIN)


def add_account(database: Database, role: Role) -> Account:
    with database.transaction("demo") as connection:
        row = connection.execute(
            "INSERT INTO accounts (tenant_id, email, name, role, password_hash) "
            "VALUES ('demo', %s, 'Admin', %s, '') RETURNING id, created_at",
            (f"{role}@example.com", role),
        ).fetchone()
    assert row is not None
    return Account(
        id=row[0],
        tenant_id="demo",
        email=f"{role}@example.com",
        name="Admin",
        role=role,
        user_group="",
        is_active=True,
        created_at=row[1],
        last_signed_in_at=None,
    )


def page_of(services: Services, account: Account) -> AppTest:
    page = AppTest.from_file(PAGE, default_timeout=patient(30))
    page.user = {"sid": token_hash(services.sessions.start(account))}
    return page


@pytest.fixture
def page(app_services: Services, account: Account) -> AppTest:
    """The page as an administrator sees it, before its first run."""
    return page_of(app_services, account)


@pytest.fixture
def add(database: Database, collection: Collection, account: Account) -> Add:
    """Adds a document in any state."""

    def added(title: str, status: str, **values: Any) -> UUID:
        row = {
            "step": "extract",
            "steps_done": 0,
            "steps_total": 0,
            "message": "",
            "page_count": 12,
            "empty_pages": [],
            "chunk_count": 0,
            "estimate": None,
            "costs": {},
            "processing_ms": 0,
            "generate_metadata": True,
            "file_name": f"{title}.pdf",
            "metadata": {},
        } | values
        with database.transaction("demo") as connection:
            found = connection.execute(
                "INSERT INTO documents (tenant_id, collection_id, title, file_name, file_size, sha256, status, step, "
                "steps_done, steps_total, message, page_count, empty_pages, chunk_count, estimate, costs, "
                "processing_ms, generate_metadata, added_by, owner_id, metadata) VALUES ('demo', %(collection_id)s, "
                "%(title)s, %(file_name)s, 1048576, %(sha256)s, %(status)s, %(step)s, %(steps_done)s, %(steps_total)s, "
                "%(message)s, %(page_count)s, %(empty_pages)s::integer[], %(chunk_count)s, %(estimate)s, %(costs)s, "
                "%(processing_ms)s, %(generate_metadata)s, %(added_by)s, %(added_by)s, %(metadata)s) "
                "RETURNING id",
                {
                    **row,
                    "collection_id": collection.id,
                    "title": title,
                    "sha256": f"{title} {row['file_name']}",
                    "status": status,
                    "estimate": Jsonb(row["estimate"]) if row["estimate"] else None,
                    "costs": Jsonb(row["costs"]),
                    "metadata": Jsonb(row["metadata"]),
                    "added_by": account.id,
                },
            ).fetchone()
        assert found is not None
        document_id: UUID = found[0]
        return document_id

    return added


def pdf(tmp_path: Path, *, password: str = "") -> bytes:
    """A PDF of one empty page."""
    writer = PdfWriter()
    writer.add_blank_page(200, 200)
    if password:
        writer.encrypt(password, algorithm="AES-256")
    path = tmp_path / "made.pdf"
    writer.write(path)
    return path.read_bytes()


def words(page: AppTest) -> str:
    """Everything the page says in Markdown, captions and alerts."""
    return "\n".join(
        str(getattr(e, "value", "")) for kind in ("markdown", "caption", "error", "info") for e in page.get(kind)
    )


# Who


@pytest.mark.parametrize("role", [Role.EMPLOYEE, Role.MANAGER])
def test_who_is_no_administrator_sees_no_document(
    app_services: Services, database: Database, add: Add, role: Role
) -> None:
    add("Salaries", "completed")

    shown = page_of(app_services, add_account(database, role)).run()

    assert shown.exception  # NotAllowed; its words are not shown to visitors
    assert not shown.dataframe
    assert not shown.file_uploader


# Empty and wrong


def test_an_empty_library_says_what_to_do(page: AppTest) -> None:
    page.run()

    assert not page.exception
    assert "No documents yet" in words(page)
    assert r"**0 documents** ready · 0 pages · 0 passages · \$0\.00 spent on processing" in words(page)


def test_how_many_passages_are_compared_by_meaning_is_shown_until_all_are(
    app_services: Services, database: Database, page: AppTest, add: Add, collection: Collection
) -> None:
    document_id = add("Handbook", "completed", chunk_count=3)
    with database.transaction("demo") as connection:
        for index in range(3):
            connection.execute(
                "INSERT INTO document_chunks (tenant_id, collection_id, document_id, content, chunk_index) "
                "VALUES ('demo', %s, %s, %s, %s)",
                (collection.id, document_id, f"passage {index}", index),
            )
        connection.execute(
            "INSERT INTO meaning_vectors (chunk_id, tenant_id, collection_id, document_id, language) "
            "SELECT id, tenant_id, collection_id, document_id, 'en' FROM document_chunks WHERE chunk_index = 0"
        )
        connection.execute(
            queries["enqueue_meaning"], {"tenant_id": "demo", "collection_id": collection.id, "wait_seconds": 0.0}
        )
    app_services.providers.meaning = None
    assert "Search by meaning:" not in words(page.run())
    app_services.providers.meaning = MeaningEmbedder()  # nothing asks it
    assert "Search by meaning: 1 of 3 passages" in words(page.run())
    with database.transaction("demo") as connection:
        connection.execute("DELETE FROM procrastinate_jobs")
    assert "Search by meaning:" not in words(page.run())


def test_a_file_that_is_no_pdf_is_refused_beside_its_name_while_the_other_goes_on(
    page: AppTest, app_services: Services, tmp_path: Path
) -> None:
    page.run()
    page.file_uploader[0].upload("letter.pdf", b"Dear all", "application/pdf")
    page.file_uploader[0].upload("rules.pdf", pdf(tmp_path), "application/pdf").run()

    assert not page.exception
    assert r"letter\.pdf" in words(page)
    assert "not a PDF, despite its name" in words(page)
    assert [d.file_name for d in app_services.documents.list("demo")] == ["rules.pdf"]
    # The uploader was given a new key: it holds nothing any more.
    assert page.file_uploader[0].value == []


def test_a_document_that_is_ready_before_the_page_is_drawn_again_is_announced_too(
    page: AppTest, owner_conninfo: str, tmp_path: Path
) -> None:
    page.run()
    with psycopg.connect(owner_conninfo) as connection:
        connection.execute(
            """
            CREATE FUNCTION ready_at_once() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN NEW.status := 'completed'; NEW.step := 'publish'; RETURN NEW; END $$
            """
        )
        connection.execute(
            "CREATE TRIGGER ready_at_once BEFORE INSERT ON documents FOR EACH ROW EXECUTE FUNCTION ready_at_once()"
        )

    page.file_uploader[0].upload("rules.pdf", pdf(tmp_path), "application/pdf").run()

    assert not page.exception
    assert "**Rules** is ready" in words(page)
    next(b for b in page.button if str(b.key).startswith("documents_done_")).click().run()
    assert "is ready" not in words(page), "once announced and read, it is not announced again"


def test_the_samples_can_be_deleted_together_once_there_are_documents_of_ones_own(
    page: AppTest, add: Add, app_services: Services, collection: Collection
) -> None:
    handbook = SAMPLES[0]
    app_services.documents.ensure_first_collection("demo")
    load_samples(app_services, collection=collection, missing=[handbook])
    samples = find_samples(app_services, "demo")
    assert len(samples) == 11, "a document and the posts of the board"
    page.run()
    assert "invented company" not in words(page), "there is nothing else to answer from"

    own = add("Handbook of our own", "completed")
    page.run()
    assert "11 sample documents from an invented company are still here" in words(page)
    page.button(key="documents_samples_delete").click().run()

    assert not page.exception
    assert "invented company" not in words(page)
    assert find_samples(app_services, "demo") == []
    left = app_services.documents.find("demo", DocumentFilters(statuses=(DocumentStatus.COMPLETED,)))
    assert [document.id for document in left] == [own]
    names = [found.name for found in app_services.documents.collections("demo")]
    assert "Sample notice board" not in names, "nothing is asked in an empty collection of samples"
    page.button(key="documents_undo").click().run()
    assert sorted(find_samples(app_services, "demo")) == sorted(samples)
    assert "Sample notice board" in [found.name for found in app_services.documents.collections("demo")]


def test_what_people_add_themselves_stays_when_the_samples_are_deleted(
    page: AppTest, app_services: Services, collection: Collection, account: Account
) -> None:
    handbook, guide = SAMPLES[:2]
    app_services.documents.ensure_first_collection("demo")
    load_samples(app_services, collection=collection, missing=[handbook, guide])
    identity = app_services.sessions.find(app_services.sessions.start(account))
    assert identity is not None
    board = next(c for c in app_services.documents.collections("demo") if c.name == "Sample notice board")
    other = app_services.documents.create_collection(identity, "Of our own", "hr")

    def added(into: Collection, file: bytes, name: str, who: Identity | None = identity) -> UUID:
        done = app_services.pipeline.process_document(
            file=file,
            file_name=name,
            tenant_id="demo",
            collection=into,
            identity=who,
            options=UploadOptions(generate_metadata=False),
        )
        return done.document_id

    own = {
        added(other, handbook.read(), handbook.file_name),
        added(other, guide.read(), "from_the_command_line.pdf", who=None),
        added(board, b"Our notice of the day, which is long enough to be read.", "notice.txt"),
    }
    page.run()
    assert "12 sample documents from an invented company are still here" in words(page)
    newer = added(collection, SAMPLES[2].read(), guide.file_name)
    assert app_services.documents.get("demo", newer).version == 2
    page.run()
    assert "11 sample documents from an invented company are still here" in words(page)
    page.button(key="documents_samples_delete").click().run()

    assert not page.exception
    assert {document.id for document in app_services.documents.list("demo")} == own | {newer}


def test_files_up_to_the_limit_of_the_settings_are_taken(page: AppTest, app_services: Services) -> None:
    page.run()
    taken = page.file_uploader[0].proto.max_upload_size_mb
    assert taken * 2**20 == app_services.settings.maximum_upload_bytes


def test_a_refused_file_stays_listed_until_it_is_dismissed(
    page: AppTest, app_services: Services, account: Account
) -> None:
    page.run()
    page.file_uploader[0].upload("letter.pdf", b"Dear all", "application/pdf").run()
    again = page_of(app_services, account).run()
    assert r"letter\.pdf" in words(again), "it stays listed until somebody has seen it"
    next(b for b in again.button if str(b.key).startswith("documents_dismiss_")).click().run()

    assert not again.exception
    assert r"letter\.pdf" not in words(again)


def test_a_protected_pdf_asks_for_its_password_beside_it_until_it_is_right(
    page: AppTest, app_services: Services, tmp_path: Path
) -> None:
    page.run()
    page.file_uploader[0].upload("contract.pdf", pdf(tmp_path, password="open sesame"), "application/pdf").run()
    assert "protected by a password" in words(page)

    page.text_input[0].set_value("wrong")
    page.form_submit_button[0].click().run()
    assert "does not open the PDF" in words(page)
    assert app_services.documents.list("demo") == []

    page.text_input[0].set_value("open sesame")
    page.form_submit_button[0].click().run()
    assert not page.exception
    assert [d.file_name for d in app_services.documents.list("demo")] == ["contract.pdf"]
    assert "Unlocked" in words(page)
    page.session_state["frame_is_entered"] = True  # as the frame says of a page that was opened anew
    page.run()
    assert page.session_state["documents_locked"] == []


def test_the_card_of_a_file_keeps_its_place_after_a_wrong_password(page: AppTest, tmp_path: Path) -> None:
    page.run()
    for number in range(3):
        content = pdf(tmp_path, password=f"open sesame {number}")
        page.file_uploader[0].upload(f"contract{number}.pdf", content, "application/pdf").run()
    before = [locked.name for locked in page.session_state["documents_locked"]]

    page.text_input[0].set_value("wrong")
    page.form_submit_button[0].click().run()
    assert [locked.name for locked in page.session_state["documents_locked"]] == before
    page.text_input[1].set_value("open sesame 1")
    page.form_submit_button[1].click().run()
    assert [locked.name for locked in page.session_state["documents_locked"]] == before
    assert [bool(field.disabled) for field in page.text_input if field.label == "Password of this PDF"] == [
        False, True, False
    ]  # fmt: skip


def test_a_copy_is_information_that_leads_to_the_stored_document(page: AppTest, tmp_path: Path) -> None:
    content = pdf(tmp_path)
    page.run()
    page.file_uploader[0].upload("rules.pdf", content, "application/pdf").run()
    for _ in range(2):  # once more is one line
        page.file_uploader[0].upload("copy.pdf", content, "application/pdf").run()

    assert not page.exception
    assert "1 file is in the library already" in words(page)
    assert r"copy\.pdf has the same content as “Rules”." in words(page)
    assert not page.error
    next(b for b in page.button if b.label == "Open it").click().run()
    assert "document" in page.query_params


def test_who_adds_a_document_owns_it_in_the_table_in_the_views_and_in_its_details(
    page: AppTest, account: Account, app_services: Services, tmp_path: Path
) -> None:
    page.run()
    page.file_uploader[0].upload("rules.pdf", pdf(tmp_path), "application/pdf").run()
    page.selectbox("documents_view").set_value("mine").run()
    assert not page.exception
    assert list(page.dataframe[0].value["Owner"]) == ["Admin"]
    (document,) = app_services.documents.find("demo", DocumentFilters())
    page.query_params["document"] = str(document.id)
    page.session_state[f"documents_tabs_{document.id}"] = "Details"
    page.run()
    assert not page.exception
    (owner,) = (box for box in page.selectbox if str(box.key).startswith("documents_form_owner_"))
    assert owner.value == document.owner_id == account.id


def test_documents_of_one_title_show_their_files_in_every_table(page: AppTest, add: Add) -> None:
    same = [add("Leave policy", "completed", file_name=f"leave_{year}.pdf") for year in (2025, 2026)]
    add("Parking", "completed")
    page.run()
    assert sorted(page.dataframe[0].value["Title"]) == [
        "Leave policy · leave_2025.pdf",
        "Leave policy · leave_2026.pdf",
        "Parking",
    ]
    page.session_state["documents_selected"] = same
    page.run().button("documents_bulk_delete").click().run()
    page.selectbox("documents_view").set_value("bin").run()
    assert sorted(page.dataframe[0].value["Title"]) == [f"Leave policy · leave_{year}.pdf" for year in (2025, 2026)]


def test_changes_of_a_document_are_kept_when_its_panel_is_closed_before_they_are_saved(
    page: AppTest, app_services: Services, add: Add
) -> None:
    document_id = add("Leave policy", "completed")
    page.query_params["document"] = str(document_id)
    page.session_state[f"documents_tabs_{document_id}"] = "Details"
    page.run()

    def title() -> Any:
        return next(field for field in page.text_input if field.label == "Title")

    title().set_value("Annual leave").run()
    assert "Not saved yet" in words(page)
    del page.query_params["document"]  # as the key Escape does
    page.run()
    assert "Your changes to “Leave policy” are not saved yet" in words(page)

    page.button(f"documents_unsaved_open_{document_id}").click().run()
    assert title().value == "Annual leave"
    page.button(f"documents_form_save_{document_id}").click().run()
    assert not page.exception
    assert app_services.documents.get("demo", document_id).title == "Annual leave"
    assert "Saved. “Valid from” and “Valid until” apply to this version" in words(page)
    assert "Not saved yet" not in words(page)

    title().set_value("Holidays").run()
    page.button(f"documents_form_discard_{document_id}").click().run()
    assert title().value == "Annual leave"
    assert app_services.documents.get("demo", document_id).title == "Annual leave"


def test_names_are_shown_as_text_whatever_they_contain(page: AppTest, add: Add) -> None:
    document_id = add(HOSTILE, "estimated", estimate=ESTIMATE)
    add(HOSTILE + "2", "failed", message=HOSTILE)
    add(HOSTILE + "3", "reading", steps_done=1, steps_total=3)
    page.query_params["document"] = str(document_id)

    page.run()

    assert not page.exception
    assert not [m for m in page.markdown if m.allow_html]
    said = words(page) + "".join(bar.text for bar in page.progress) + "".join(s.value for s in page.header)
    assert r"\<img src\=x" in said
    unescaped = re.sub(r"\\.", "", said)
    for harmful in ("<", "$", ":red[", "**bold", "!["):
        assert harmful not in unescaped


# From reading to ready


def test_reading_shows_the_page_it_is_at(page: AppTest, add: Add) -> None:
    add("Handbook", "reading", steps_done=11, steps_total=105)

    page.run()

    assert not page.exception
    assert page.progress[0].text == "**Handbook** · Reading page 12 of 105"
    assert page.progress[0].value == 10


def test_the_estimate_is_confirmed_for_one_document(page: AppTest, app_services: Services, add: Add) -> None:
    document_id = add("Handbook", "estimated", estimate=ESTIMATE | {"low": "0.0013", "high": "0.0025"})
    page.run()
    said = words(page)
    assert r"between \$0\.0013 and \$0\.0025" in said
    assert "12 pages · 24,000 characters · about 30 passages" in said
    assert r"Preparing for search \$0\.0001 · Metadata \$0\.0018 · **Total \$0\.0019**" in said

    page.button(f"documents_confirm_{document_id}").click().run()

    assert not page.exception
    assert app_services.documents.get("demo", document_id).status == "processing"
    assert "Waiting for its turn" in page.progress[0].text


def test_all_are_confirmed_at_once_for_their_total(page: AppTest, app_services: Services, add: Add) -> None:
    unpriced = ESTIMATE | {"metadata": None, "total": None}
    added = [add("A", "estimated", estimate=ESTIMATE), add("B", "estimated", estimate=unpriced)]
    page.run()
    button = page.button("documents_confirm_all")
    assert button.label == r"Process all 2 (\$0\.0019, plus items with no known price)"
    assert "Metadata price not known · **Total price not known**" in words(page)

    button.click().run()

    assert not page.exception
    assert {app_services.documents.get("demo", i).status for i in added} == {"processing"}


def test_a_discarded_estimate_removes_the_document(page: AppTest, app_services: Services, add: Add) -> None:
    document_id = add("Handbook", "estimated", estimate=ESTIMATE)
    page.run()
    page.button(f"documents_discard_{document_id}").click().run()

    assert not page.exception
    assert app_services.documents.list("demo") == []
    page.button(f"documents_undiscard_{document_id}").click().run()
    assert [d.id for d in app_services.documents.list("demo")] == [document_id]


def places_of_cards(page: AppTest) -> list[str]:
    """Return the keys of the first buttons of the cards of waiting files, from top to bottom."""
    return [str(b.key) for b in page.button if re.match("documents_confirm_[0-9a-f]{8}", str(b.key))]


@pytest.mark.parametrize("decision", ["confirm", "both", "discard"])
def test_cards_of_waiting_files_keep_their_places_until_the_page_is_left(
    page: AppTest, app_services: Services, add: Add, database: Database, decision: str
) -> None:
    for number in range(3):
        first = add(f"Rule {number}", "completed")
        second = add(f"Rule {number} of today", "estimated", estimate=ESTIMATE)
        with database.transaction("demo") as connection:
            connection.execute("UPDATE documents SET original_id = %s, version = 2 WHERE id = %s", (first, second))
    page.run()
    before = places_of_cards(page)
    decided = UUID(before[1].removeprefix("documents_confirm_"))

    page.button(f"documents_{decision}_{decided}").click().run()

    assert not page.exception
    waiting = app_services.documents.find("demo", DocumentFilters(statuses=(DocumentStatus.ESTIMATED,)))
    assert decided not in [document.id for document in waiting]
    assert places_of_cards(page) == before
    assert [page.button(key).disabled for key in before] == [False, True, False]
    page.session_state["frame_is_entered"] = True  # as the frame says of a page that was opened anew
    page.run()
    assert places_of_cards(page) == [before[0], before[2]]


def test_of_two_waiting_files_of_one_name_the_later_says_which_it_replaces(
    page: AppTest, add: Add, database: Database
) -> None:
    first, second = (add("Bikes", "estimated", estimate=ESTIMATE, file_name=name) for name in ("a.txt", "b.txt"))
    with database.transaction("demo") as connection:
        connection.execute("UPDATE documents SET original_id = %s, version = 2 WHERE id = %s", (first, second))
    page.run()

    assert not page.exception
    assert words(page).count("Replaces version 1 of Bikes") == 1
    assert "Answers do not use version 1 yet." in words(page)
    assert page.button("documents_confirm_all").label.startswith("Process all 2, replace 1 document ")
    keys = {button.key for button in page.button}
    assert f"documents_both_{second}" in keys
    assert f"documents_both_{first}" not in keys
    priced = [button for button in page.button if r"\$" in button.label]
    assert len(priced) == 4
    assert all(button.proto.wrap for button in priced), "on a phone the price stands in the next line"


def test_a_first_version_whose_later_one_answers_can_be_kept_beside_it(
    page: AppTest, app_services: Services, add: Add, database: Database
) -> None:
    first = add("Bikes", "estimated", estimate=ESTIMATE, file_name="a.txt")
    second = add("Bikes", "completed", file_name="b.txt")
    with database.transaction("demo") as connection:
        connection.execute("UPDATE documents SET original_id = %s, version = 2 WHERE id = %s", (first, second))
    page.run()
    page.button(f"documents_both_{first}").click().run()

    assert not page.exception
    kept = app_services.documents.get("demo", first)
    assert (kept.status, kept.title) == (DocumentStatus.PROCESSING, "Bikes (2)")
    assert kept.original_id != app_services.documents.get("demo", second).original_id


@pytest.mark.parametrize("replaces", [False, True])
def test_beside_a_decided_card_the_buttons_of_one_waiting_file_say_what_they_do_for_one(
    page: AppTest, add: Add, app_services: Services, database: Database, replaces: bool
) -> None:
    first = add("Bikes", "completed", file_name="a.txt")
    waiting = add("Bikes", "estimated", estimate=ESTIMATE, file_name="b.txt")
    decided = add("Cars", "estimated", estimate=ESTIMATE)
    if replaces:
        with database.transaction("demo") as connection:
            connection.execute("UPDATE documents SET original_id = %s, version = 2 WHERE id = %s", (first, waiting))
    page.run()
    page.button(f"documents_discard_{decided}").click().run()

    assert not page.exception
    words_of_one = "Replace the document" if replaces else "Process the file"
    assert page.button("documents_confirm_all").label == rf"{words_of_one} (\$0\.0019)"
    assert page.button("documents_discard_all").label == ":red[Remove all 1]"
    page.button("documents_discard_all").click().run()
    assert app_services.documents.find("demo", DocumentFilters(statuses=(DocumentStatus.ESTIMATED,))) == []


def test_what_another_administrator_has_confirmed_is_not_discarded(
    page: AppTest, app_services: Services, add: Add, database: Database
) -> None:
    document_id = add("Handbook", "estimated", estimate=ESTIMATE)
    page.run()
    with database.transaction("demo") as connection:
        connection.execute("UPDATE documents SET status = 'processing', step = 'chunk'")
    page.button(f"documents_discard_{document_id}").click().run()

    assert not page.exception
    assert [d.id for d in app_services.documents.list("demo")] == [document_id]


def test_a_document_deleted_meanwhile_is_a_sentence_and_not_an_error(
    page: AppTest, add: Add, database: Database
) -> None:
    document_id = add("Handbook", "estimated", estimate=ESTIMATE)
    page.run()
    with database.transaction("demo") as connection:
        connection.execute("DELETE FROM documents")
    page.button(f"documents_confirm_{document_id}").click().run()

    assert not page.exception
    assert "does not exist" in words(page)


def test_a_document_that_waits_for_its_provider_says_so_and_why(page: AppTest, add: Add, database: Database) -> None:
    add("Handbook", "processing", step="embed", steps_done=40, steps_total=266, message="Waiting: the key was refused.")
    with database.transaction("demo") as connection:
        connection.execute("UPDATE documents SET is_waiting = true")
    page.run()
    assert "Waiting for the provider" in page.progress[0].text
    assert any("the key was refused" in str(caption.value) for caption in page.caption)
    (table,) = [frame.value for frame in page.dataframe if "Status" in frame.value]
    assert [list(status) for status in table["Status"]] == [["Waiting"]]


def test_progress_is_read_from_the_database_and_ends_with_the_costs(
    page: AppTest, add: Add, database: Database
) -> None:
    add("Handbook", "processing", step="embed", steps_done=40, steps_total=266)
    page.run()
    assert "Preparing passage 41 of 266 for the search" in page.progress[0].text
    assert ":green-badge[Split] :blue-badge[Prepare for search] :gray-badge[Metadata]" in words(page)

    with database.transaction("demo") as connection:
        connection.execute(
            "UPDATE documents SET status = 'completed', chunk_count = 266, processing_ms = 12840, costs = %s",
            (Jsonb({k: ESTIMATE[k] for k in ("parsing", "chunking", "embedding", "metadata", "total")}),),
        )
    page.run()

    assert not page.exception
    assert not page.progress
    said = words(page)
    assert "**Handbook** is ready" in said
    assert r"12 pages · 266 passages · processed in 12\.8 s" in said
    assert r"**Total \$0\.0019**" in said
    assert "12 pages · 266 passages" in said


def test_many_finished_documents_are_one_table_with_the_cost_of_each_step(
    page: AppTest, add: Add, database: Database
) -> None:
    for title in "ABCD":
        add(title, "processing", step="publish", steps_total=1)
    page.run()
    with database.transaction("demo") as connection:
        connection.execute(
            "UPDATE documents SET status = 'completed', costs = %s", (Jsonb({"metadata": None, "total": None}),)
        )
    page.run()

    assert not page.exception
    assert "**4 documents** are ready" in words(page)
    table = page.dataframe[0].value
    assert sorted(table["Title"]) == ["A", "B", "C", "D"]
    assert set(table["Metadata"]) == {"price not known"}
    page.button("documents_done_all").click().run()
    assert "are ready" not in words(page)


def test_a_failed_document_says_why_and_is_tried_again(page: AppTest, app_services: Services, add: Add) -> None:
    document_id = add("Handbook", "failed", step="embed", message="The request limit at the provider is used up.")
    page.run()
    assert "request limit at the provider is used up" in words(page)

    page.button(f"documents_retry_{document_id}").click().run()

    assert not page.exception
    assert app_services.documents.get("demo", document_id).status == "processing"


# The library


def test_the_table_shows_every_document_and_an_unknown_price_as_unpriced(page: AppTest, add: Add) -> None:
    add("Handbook", "completed", chunk_count=30, costs={"total": "0.00192"})
    add("Travel", "completed", chunk_count=10, costs={"total": None})
    add("Old scan", "needs_ocr")

    page.run()

    table = page.dataframe[0].value
    assert list(table["Title"]) == ["Old scan", "Travel", "Handbook"]
    assert [status[0] for status in table["Status"]] == ["Needs text recognition", "Ready", "Ready"]
    assert list(table["Cost"]) == ["–", "price not known", "$0.0019"]
    assert list(table["File name"]) == ["Old scan.pdf", "Travel.pdf", "Handbook.pdf"]
    assert list(table["Owner"]) == ["Admin"] * 3
    assert r"\$0\.0019 spent on processing · 1 document with no known price" in words(page)


def test_the_table_is_filtered_by_name_and_status(page: AppTest, add: Add) -> None:
    add("Handbook", "completed")
    add("Travel", "failed")
    page.run()

    page.text_input("documents_text").set_value("HAND").run()
    assert list(page.dataframe[0].value["Title"]) == ["Handbook"]

    page.text_input("documents_text").set_value("").run()
    page.pills("documents_wanted").set_value([DocumentStatus.FAILED]).run()
    assert list(page.dataframe[0].value["Title"]) == ["Travel"]

    page.text_input("documents_text").set_value("nothing").run()
    assert not page.dataframe
    assert "No document matches" in words(page)
    assert not page.exception


def test_an_opened_document_shows_its_pages_and_survives_a_refresh(
    page: AppTest, app_services: Services, account: Account, add: Add, database: Database
) -> None:
    document_id = add("Handbook", "completed", empty_pages=[2, 4, 5])
    with database.transaction("demo") as connection:
        connection.execute(
            "INSERT INTO document_pages (document_id, number, tenant_id, text, characters, method, warnings) VALUES "
            "(%(id)s, 1, 'demo', 'Annual leave is 25 days.', 24, 'text', '{\"Two columns\"}'), "
            "(%(id)s, 2, 'demo', '', 0, 'none', '{}')",
            {"id": document_id},
        )
    page.query_params["document"] = str(document_id)

    page.run()

    assert not page.exception
    assert any("Annual leave is 25 days." in str(getattr(html, "value", "")) for html in page.get("html"))
    assert "Two columns" in words(page)
    assert r"No text on pages 2, 4–5" in words(page)
    again = page_of(app_services, account)
    again.query_params["document"] = str(document_id)
    assert any("Annual leave is 25 days." in str(getattr(html, "value", "")) for html in again.run().get("html"))


def html_of(page: AppTest) -> str:
    return " ".join(str(getattr(html, "value", "")) for html in page.get("html"))


def test_the_picture_of_a_page_shows_what_was_read_as_what_until_the_marks_are_switched_off(
    page: AppTest, add: Add, database: Database
) -> None:
    document_id = add("Handbook", "completed")
    place = '"left": 0.1, "top": 0.2, "right": 0.5, "bottom": 0.25'
    marks = f'[{{"kind": "table", {place}}}, {{"kind": "left out", {place}}}, {{"kind": "left out", {place}}}]'
    with database.transaction("demo") as connection:
        connection.execute(
            "INSERT INTO document_pages (document_id, number, tenant_id, text, characters, method, marks) VALUES "
            "(%(id)s, 1, 'demo', 'Leave', 5, 'text', %(marks)s), (%(id)s, 2, 'demo', 'Leave', 5, 'text', NULL), "
            "(%(id)s, 3, 'demo', 'Leave', 5, 'ocr', %(picture)s)",
            {"id": document_id, "marks": marks, "picture": f'[{{"kind": "picture", {place}}}]'},
        )
    page.query_params["document"] = str(document_id)

    shown = html_of(page.run())
    assert "left:10.00%;top:20.00%;width:40.00%;height:5.00%" in shown
    assert all(words in shown for words in ("Tables: 1", "Headings: 0", "Notes and form values: 0", "Left out: 2"))

    page.toggle("documents_shows_marks").set_value(False).run()
    assert "Tables: 1" not in html_of(page)
    assert "left:10.00%" not in html_of(page)

    page.toggle("documents_shows_marks").set_value(True)
    for number, words_shown in ((2, "read the file again"), (3, "comes from text recognition")):
        page.session_state[f"documents_page_{document_id}"] = number
        assert words_shown in words(page.run())
        assert "Tables:" not in html_of(page)
    assert not page.exception


def test_a_document_without_pictures_has_no_marks_to_show(page: AppTest, add: Add, database: Database) -> None:
    document_id = add("Handbook", "completed", file_name="handbook.html")
    with database.transaction("demo") as connection:
        connection.execute("UPDATE documents SET mime_type = 'text/html' WHERE id = %s", (document_id,))
        connection.execute(
            "INSERT INTO document_pages (document_id, number, tenant_id, text, characters, method) "
            "VALUES (%s, 1, 'demo', 'Leave', 5, 'text')",
            (document_id,),
        )
    page.query_params["document"] = str(document_id)
    page.run()
    assert "documents_shows_marks" not in {toggle.key for toggle in page.toggle}
    assert "marks" not in words(page)


@pytest.mark.parametrize("given", ["nonsense", "00000000-0000-0000-0000-000000000000", "' OR 1=1"])
def test_an_unknown_document_in_the_address_opens_nothing(page: AppTest, add: Add, given: str) -> None:
    add("Handbook", "completed")
    page.query_params["document"] = given
    page.run()

    assert not page.exception
    assert not page.get("dialog")
    assert "Click a document to open it" in words(page)


def test_a_document_is_opened_by_its_name_without_the_table(page: AppTest, add: Add) -> None:
    first, second = add("Handbook", "completed"), add(HOSTILE, "completed")
    page.run()
    (opener,) = [box for box in page.selectbox if box.label == "Open a document"]
    assert opener.value is None
    assert opener.options == [HOSTILE, "Handbook"]
    opener.select(first).run()
    assert not page.exception
    assert page.query_params["document"] in (str(first), [str(first)])
    (opener,) = [box for box in page.selectbox if box.label == "Open a document"]
    opener.select(second).run()
    assert page.query_params["document"] in (str(second), [str(second)])


def test_of_two_documents_with_one_title_the_opened_one_stays_open_and_is_deleted(
    page: AppTest, app_services: Services, add: Add
) -> None:
    first = add("Employee handbook", "completed", file_name="handbook_2025.pdf")
    second = add("Employee handbook", "completed", file_name="handbook_2026.pdf")
    page.query_params["document"] = str(first)
    page.run()
    (opener,) = [box for box in page.selectbox if box.label == "Open a document"]
    assert opener.options == ["Employee handbook · handbook_2026.pdf", "Employee handbook · handbook_2025.pdf"]

    page.button("documents_delete").click().run()
    assert not page.exception
    assert [document.id for document in app_services.documents.list("demo")] == [second]


def test_the_table_is_searched_and_ordered_as_a_whole(page: AppTest, add: Add) -> None:
    for number in range(53):
        add(f"Rule {number:03}", "completed", page_count=number)
    page.run()
    assert list(page.dataframe[0].value["Title"])[:2] == ["Rule 052", "Rule 051"]
    assert len(page.dataframe[0].value) == 53
    assert "53 documents" in words(page)

    page.selectbox("documents_sort").set_value("title").run()
    assert list(page.dataframe[0].value["Title"])[:2] == ["Rule 000", "Rule 001"]
    page.text_input("documents_text").set_value("rule 000").run()
    assert list(page.dataframe[0].value["Title"]) == ["Rule 000"]
    assert not page.exception


def test_what_is_done_with_the_selected_is_done_with_them_alone_and_undone(
    page: AppTest, app_services: Services, add: Add, account: Account
) -> None:
    rules = [add(f"Rule {number}", "completed") for number in range(3)]
    handbook = add("Handbook", "completed")
    library = app_services.documents
    who = Identity(account_id=account.id, tenant_id="demo", email=account.email, name=account.name, role=Role.ADMIN)
    with app_services.database.transaction("demo") as connection:
        connection.execute("UPDATE documents SET folder = 'Policies' WHERE id = %s", [handbook])
    page.run()
    page.session_state["documents_selected"] = rules
    page.run()
    page.multiselect("documents_bulk_tag_add").set_value(["Rules"])
    next(b for b in page.button if b.label == "Change 3 documents").click().run()
    assert not page.exception
    assert {d.title for d in library.list("demo") if d.tags == ["Rules"]} == {"Rule 0", "Rule 1", "Rule 2"}
    library.metadata.tag(who, rules[:1], add=["Old"])
    page.run()
    page.multiselect("documents_bulk_tag_add").set_value(["Old"])
    page.multiselect("documents_bulk_tag_remove").set_value(["Rules"])
    next(b for b in page.button if b.label == "Change 3 documents").click().run()
    assert {tuple(d.tags) for d in library.list("demo") if d.id in rules} == {("Old",)}
    page.button("documents_way_back_taken").click().run()
    assert not page.exception
    tags = {d.title: set(d.tags) for d in library.list("demo")}
    assert tags == {"Rule 0": {"Rules", "Old"}, "Rule 1": {"Rules"}, "Rule 2": {"Rules"}, "Handbook": set()}
    library.metadata.move(who, rules[:1], "Attic")
    page.run()
    page.selectbox("documents_bulk_folder").set_value("Policies")
    next(b for b in page.button if b.label == "Move 3 documents").click().run()
    page.button("documents_way_back_taken").click().run()
    assert {d.title: d.folder for d in library.list("demo")} == {
        "Rule 0": "Attic", "Rule 1": "", "Rule 2": "", "Handbook": "Policies"
    }  # fmt: skip
    page.selectbox("documents_bulk_folder").set_value("Policies")
    next(b for b in page.button if b.label == "Move 3 documents").click().run()
    page.session_state["documents_folder"] = "Policies"
    page.run()
    assert len(page.dataframe[0].value) == 4
    late = add("Rule made meanwhile", "completed")
    page.button("documents_bulk_delete").click().run()
    assert {d.id for d in library.list("demo")} == {handbook, late}
    assert "3 documents are in the bin" in words(page)
    page.button("documents_undo").click().run()
    assert {d.id for d in library.list("demo")} == {handbook, late, *rules}
    assert not page.error

    # A view keeps the filters under a name, for this person.
    page.text_input("documents_view_name").set_value("Policies only").run()
    page.button("documents_view_save").click().run()
    page.session_state["documents_folder"] = ""
    page.run()
    assert len(page.dataframe[0].value) == 5
    again = page_of(app_services, account).run()
    with app_services.database.transaction("demo") as connection:
        ((view,),) = connection.execute("SELECT id FROM saved_views").fetchall()
    again.selectbox("documents_view").set_value(str(view)).run()
    assert len(again.dataframe[0].value) == 4
    again.button(f"documents_view_drop_{view}").click().run()
    assert not library.metadata.views(who)
    again.button("documents_way_back_taken").click().run()
    assert [kept.name for kept in library.metadata.views(who)] == ["Policies only"]
    assert not again.exception


def test_the_bin_gives_back_and_asks_before_it_deletes_for_good(
    page: AppTest, app_services: Services, add: Add
) -> None:
    kept, gone = add("Kept", "completed"), add("Gone", "completed")
    page.run()
    page.session_state["documents_selected"] = [kept, gone]
    page.run()
    page.button("documents_bulk_delete").click().run()
    page.selectbox("documents_view").set_value("bin").run()
    table = page.dataframe[0]
    assert set(table.value["Title"]) == {"Kept", "Gone"}
    page.session_state[str(table.key)] = {"selection": {"rows": [list(table.value["Title"]).index("Gone")]}}
    page.run()
    page.button("documents_bin_delete").click().run()
    assert "**Gone**" in words(page)
    page.button("documents_bin_sure_confirmed").click().run()
    assert not page.exception
    (left,) = app_services.documents.bin.list("demo")
    assert left.id == kept


def test_a_button_opens_the_bin_while_something_is_in_it_and_what_is_restored_is_said(
    page: AppTest, app_services: Services, add: Add
) -> None:
    add("Kept", "completed")
    page.session_state["documents_selected"] = [add("Gone", "completed")]
    page.run()
    assert "documents_open_bin" not in [button.key for button in page.button]
    page.button("documents_bulk_delete").click().run()
    assert page.button("documents_open_bin").label == "Bin (1)"
    page.button("documents_open_bin").click().run()
    assert list(page.dataframe[0].value["Title"]) == ["Gone"]
    page.session_state[str(page.dataframe[0].key)] = {"selection": {"rows": [0]}}
    page.run().button("documents_bin_restore").click().run()
    assert not page.exception
    assert [toast.value for toast in page.toast] == ["Restoring 1 document"]
    assert app_services.documents.bin.count("demo") == 0
    page.button("documents_leave_bin").click().run()
    assert set(page.dataframe[0].value["Title"]) == {"Kept", "Gone"}


def test_many_estimates_get_some_cards_and_are_confirmed_for_the_total_that_was_shown(
    page: AppTest, app_services: Services, add: Add
) -> None:
    for number in range(25):
        add(f"Rule {number:02}", "estimated", estimate=ESTIMATE)
    page.run()
    assert len([b for b in page.button if str(b.key).startswith("documents_confirm_")]) == 1 + 20
    assert "5 more documents wait" in words(page)
    everything = page.button("documents_confirm_all")
    assert everything.label == r"Process all 25 (\$0\.0480)"
    late = add("Estimated after the total was shown", "estimated", estimate=ESTIMATE)
    everything.click().run()
    assert not page.exception
    waiting = [d.id for d in app_services.documents.list("demo") if d.status is DocumentStatus.ESTIMATED]
    assert waiting == [late]


def test_what_is_estimated_between_the_total_and_the_cards_is_in_neither(app_services: Services, add: Add) -> None:
    def drawn(*given: object) -> None:

        from rag.ui.document_upload import EstimateActions, draw_estimates

        parts: Any = given
        cards, figures, library, confirmed = parts

        ignored = [lambda *_: None] * 4
        draw_estimates(cards, figures, library, EstimateActions(lambda _: None, confirmed.append, *ignored))

    library = app_services.documents
    for number in range(2):
        add(f"Rule {number}", "estimated", estimate=ESTIMATE)
    figures = library.figures("demo")
    add("Late", "estimated", estimate=ESTIMATE)
    cards = [WaitingFile(document) for document in reversed(library.list("demo"))]
    confirmed: list[Any] = []
    page = AppTest.from_function(drawn, default_timeout=patient(30), args=(cards, figures, library, confirmed)).run()
    assert not page.exception
    everything = page.button("documents_confirm_all")
    assert everything.label.startswith("Process all 2 ")
    assert "Late" not in words(page)
    everything.click().run()
    assert [until < cards[-1].document.updated_at for until in confirmed] == [True]


def test_tagging_again_is_followed_until_its_sentence_is_gone(page: AppTest, add: Add, database: Database) -> None:
    sentence = "It could not be tagged: the model’s answer was not usable."
    document = add("Leave policy", "completed", message=sentence)
    with database.transaction("demo") as connection:
        connection.execute("UPDATE documents SET pending_steps = '{tag}' WHERE id = %s", [document])
    page.query_params["document"] = str(document)
    page.run()
    assert not page.exception
    assert "could not be tagged" in words(page)
    # The page looks again by itself, which AppTest does not: what a fragment is redrawn by is in its own message.
    assert page.session_state["documents_interval"] == "1s"
    with database.transaction("demo") as connection:
        connection.execute("UPDATE documents SET pending_steps = '{}', message = '' WHERE id = %s", [document])
    page.run()
    assert "could not be tagged" not in words(page)
    assert page.session_state["documents_interval"] is None


def test_another_tenants_documents_are_not_listed(page: AppTest, database: Database) -> None:
    with database.transaction("other") as connection:
        connection.execute(
            "WITH c AS (INSERT INTO collections (tenant_id, name, embedding_model) VALUES ('other', 'x', 'y') "
            "RETURNING id) INSERT INTO documents (tenant_id, collection_id, title, file_name, sha256, status) "
            "SELECT 'other', id, 'Canary', 'canary.pdf', 'x', 'completed' FROM c"
        )
    page.run()

    assert not page.exception
    assert "No documents yet" in words(page)
    assert "Canary" not in words(page)


def test_an_earlier_version_is_listed_opened_and_restored(page: AppTest, add: Add, database: Database) -> None:
    first, second = add("Leave policy 2025", "superseded"), add("Leave policy", "completed")
    with database.transaction("demo") as connection:
        connection.execute("UPDATE documents SET original_id = %s, version = 2 WHERE id = %s", (first, second))
    page.query_params["document"] = str(second)
    page.session_state[f"documents_tabs_{second}"] = "Versions"
    page.run()
    assert not page.exception
    texts = " ".join(str(m.value) for m in page.markdown)
    assert "Version 2" in texts
    assert "Version 1" in texts
    assert "Earlier version" in texts
    page.button(key=f"documents_open_version_{first}").click().run()
    assert page.query_params["document"] in (str(first), [str(first)])
    assert r"Leave policy 2025\.pdf" in words(page)


def test_a_step_that_has_nothing_to_do_says_so(page: AppTest, add: Add) -> None:
    document = add("Leave policy", "completed")
    page.query_params["document"] = str(document)
    page.run()
    page.button(key=f"documents_again_Tag_True_{document}").click().run()
    assert not page.exception
    assert any("language model" in str(error.value) for error in page.error)


def test_a_failed_document_says_what_helps(page: AppTest, add: Add) -> None:
    add("Broken", "failed", step="embed", message="The provider cannot be reached at the moment.")
    page.run()
    assert any("not paid for twice" in str(caption.value) for caption in page.caption)


def test_what_reading_found_is_said_in_the_readers_language(
    running: Services, signed_in: Callable[[Role], tuple[AppTest, Identity]], add: Add, database: Database
) -> None:
    page, reader = signed_in(Role.ADMIN)
    page.run().switch_page("documents.py")
    add("Scan", "failed", message=NOTHING_RECOGNISED)
    document = add("Rules", "completed", page_count=1)
    with database.transaction("demo") as connection:
        connection.execute(
            "INSERT INTO document_pages (tenant_id, document_id, number, text, characters, method, warnings) "
            "VALUES ('demo', %s, 1, 'Rules', 5, 'ocr', %s)",
            (document, [RECOGNISED.format(engine="Tesseract")]),
        )
    page.query_params["document"] = str(document)
    running.sessions.set_language("demo", reader.account_id, "ko")
    page.run()
    assert not page.exception
    said = words(page)
    assert "Text recognition" not in said
    assert "text recognition" not in said
    assert "Tesseract" in said


def test_the_moves_stay_in_sight_when_the_last_of_them_has_ended(
    page: AppTest, add: Add, database: Database, collection: Collection
) -> None:
    add("Rules", "completed")
    with database.transaction("demo") as connection:
        connection.execute(
            "INSERT INTO reembeddings (tenant_id, collection_id, from_model, to_model, status, chunks_total) "
            "VALUES ('demo', %s, 'builtin/lexical@1536', 'openai/text-embedding-3-small@1536', 'running', 802)",
            [collection.id],
        )
    page.run()
    assert "0 of 802 passages are moved to the new model" in "".join(bar.text for bar in page.progress)
    with database.transaction("demo") as connection:
        connection.execute("UPDATE reembeddings SET chunks_done = 500")
    page.run()
    assert "500 of 802 passages are moved to the new model" in "".join(bar.text for bar in page.progress)
    with database.transaction("demo") as connection:
        connection.execute("UPDATE reembeddings SET status = 'switched', chunks_done = 802, switched_at = now()")
    page.run()
    assert not page.exception
    assert "is searched with" in words(page)


def test_what_comes_and_goes_moves_no_part_that_is_drawn_by_itself(page: AppTest, add: Add) -> None:
    """Streamlit knows such a part by its place, and passes over a click in one that was moved while it came in."""
    add("Leave policy", "completed")
    page.run()
    before = place_of_table(page)
    page.session_state.documents_notice = "Something failed."
    page.session_state.documents_way_back = ("The tags of 1 document were changed.", lambda: None)
    add("Broken", "failed", message="The file is damaged.")
    page.run()
    assert any("Something failed" in error.value for error in page.error)
    assert page.button(key="documents_way_back_taken")
    assert place_of_table(page) == before


def place_of_table(page: AppTest) -> list[int]:
    """Return where on the page the part is that holds the table of documents: its number among those before it."""
    return [number for number, part in page.main.children.items() if list(getattr(part, "dataframe", ()))]


def test_deleted_documents_that_are_taken_back_come_in_another_table(page: AppTest, add: Add) -> None:
    """The browser keeps by a table's key which rows are ticked, where it has not heard yet that they were gone."""
    both = [add("Leave policy", "completed"), add("Travel policy", "completed")]
    page.session_state.documents_selected = both
    page.run()
    before = page.session_state.documents_table_drawn[0]
    page.button("documents_bulk_delete").click().run()
    assert not page.dataframe
    page.button("documents_undo").click().run()
    assert page.session_state.documents_table_drawn == (f"documents_table_{number_of(before) + 1}", [])


def number_of(key: str) -> int:
    return int(key.rsplit("_", 1)[1])


@pytest.mark.parametrize(
    ("language", "remark"),
    [("de", "Seite 2: 1 Kommentar wurde nicht gelesen."), ("ar", "الصفحة 2: لم يُقرأ: تعليقات (1).")],
)
def test_the_remarks_above_a_documents_tabs_are_in_its_readers_language(
    page: AppTest, add: Add, language: str, remark: str
) -> None:
    document_id = add("Handbook", "completed", message="Page 2: 1 comment was not read.")
    page.session_state[page_language.KEY] = language
    page.query_params["document"] = str(document_id)
    page.run()
    assert not page.exception
    assert remark in words(page).replace("\\", "")
    assert "comment" not in words(page)
