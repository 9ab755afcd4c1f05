"""Which collection is asked where none is named: one rule for pages, API, commands and package."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest

import rag
from rag.errors import InvalidInput, NotFound
from rag.samples.load import BOARD, load_board, prepare_tenant
from rag.services import Services
from rag.types import Collection, Identity, Question, Role, UploadOptions, Who
from tests.conftest import fast_folder
from tests.forked import forked_python
from tests.patience import patient

PROJECT = Path(__file__).resolve().parents[2]
RULE = b"The harbour rule\n\nEvery boat in the harbour pays twelve crowns of mooring fee each night.\n"
Command = Callable[..., "subprocess.CompletedProcess[str]"]


def made(parts: Services, name: str, profile: str = "hr", *, is_filled: bool = True) -> Collection:
    collection = parts.documents.ensure_collection("demo", name, profile, "builtin/lexical@1536", "en")
    if is_filled:
        parts.pipeline.process_document(
            file=RULE,
            file_name="harbour.txt",
            tenant_id="demo",
            collection=collection,
            options=UploadOptions(generate_metadata=False),
        )
    return collection


def account(parts: Services, role: Role = Role.EMPLOYEE, group: str = "") -> Identity:
    email = f"{uuid4().hex}@example.com"
    with parts.database.transaction("demo") as connection:
        row = connection.execute(
            "INSERT INTO accounts (tenant_id, email, role, user_group, password_hash) "
            "VALUES ('demo', %s, %s, %s, '!') RETURNING id",
            (email, role.value, group),
        ).fetchone()
    assert row is not None
    return Identity(account_id=row[0], tenant_id="demo", email=email, name="One", role=role, user_group=group)


def chosen(parts: Services, who: Who, wanted: str | None = None, *, in_chat: bool = False) -> str:
    found = parts.documents.choose(who, wanted, in_chat=in_chat)
    return found.name if found else ""


def test_documents_decide_then_the_profile_then_the_age(app_services: Services, collection: Collection) -> None:
    someone = account(app_services)
    assert chosen(app_services, someone) == collection.name
    board = made(app_services, "Board", "notices")
    assert chosen(app_services, someone) == board.name, "the only one with documents"
    made(app_services, "Rules")
    made(app_services, "Later rules")
    assert chosen(app_services, someone) == chosen(app_services, "demo") == "Rules", (
        "older than the other, and not empty"
    )
    assert app_services.documents.choose("other") is None


def test_the_chat_asks_what_somebody_asked_last_and_every_other_way_the_same_as_ever(
    app_services: Services, collection: Collection
) -> None:
    rules, board = made(app_services, "Rules"), made(app_services, "Board", "notices")
    one, other = account(app_services), account(app_services)
    app_services.documents.note_last(one, board)
    assert chosen(app_services, one, in_chat=True) == board.name
    assert chosen(app_services, one) == chosen(app_services, other, in_chat=True) == rules.name
    assert chosen(app_services, "demo") == rules.name
    assert chosen(app_services, one, rules.name) == chosen(app_services, one, str(rules.id)) == rules.name
    assert chosen(app_services, one, "Nothing") == ""
    app_services.documents.delete_collection(account(app_services, Role.ADMIN), board.id, confirmed_name="Board")
    assert chosen(app_services, one, in_chat=True) == rules.name


def test_a_key_asks_the_collection_it_was_made_for_whatever_it_asked_before(app_services: Services) -> None:
    rules, board = made(app_services, "Rules"), made(app_services, "Board", "notices")
    admin = account(app_services, Role.ADMIN)
    for wanted, expected in ((None, rules), (board.id, board), (uuid4(), rules)):
        key, _ = app_services.api_keys.create(admin, "Intranet", ["search"], collection_id=wanted)
        assert key.default_collection_id == (wanted if wanted == board.id else None)
        program = Identity(account_id=key.id, tenant_id="demo", email="key:Intranet", name="I", role=Role.EMPLOYEE)
        for asked in (board, rules):
            app_services.documents.note_last(program, asked)
            for in_chat in (False, True):
                assert chosen(app_services, program, in_chat=in_chat) == expected.name


def test_what_somebody_may_not_read_is_neither_chosen_nor_kept(app_services: Services) -> None:
    rules, closed = made(app_services, "Rules"), made(app_services, "Minutes")
    one, admin = account(app_services, group="Sales"), account(app_services, Role.ADMIN)
    app_services.documents.note_last(one, closed)
    assert chosen(app_services, one, in_chat=True) == closed.name
    app_services.documents.change_collection(admin, closed.id, groups=["Council"])
    assert chosen(app_services, one, in_chat=True) == rules.name
    app_services.documents.note_last(one, closed)  # not theirs to ask any more
    app_services.documents.change_collection(admin, rules.id, groups=["Sales"])
    councillor = account(app_services, group="Council")
    assert chosen(app_services, councillor) == closed.name


def test_asking_keeps_the_collection_without_a_line_in_the_audit_log(app_services: Services) -> None:
    made(app_services, "Rules")
    board, someone = made(app_services, "Board", "notices"), account(app_services)
    live = app_services.answers.ask(Question(text="What is the mooring fee?", identity=someone, collection=board))
    for _ in live.tail():
        pass
    assert chosen(app_services, someone, in_chat=True) == board.name
    with app_services.database.transaction("demo") as connection:
        assert connection.execute("SELECT action, target FROM audit_log").fetchall() == []


def test_the_package_asks_and_fills_the_same_collection(app_services: Services, collection: Collection) -> None:
    made(app_services, "Board", "notices")
    rules = made(app_services, "Rules")
    found = rag.retrieve_context(query="How much is the mooring fee?", tenant_id="demo")
    assert {result.collection_id for result in found.results} == {rules.id}
    result = rag.process_document(file=b"Lunch is at noon.", file_name="lunch.txt", tenant_id="demo")
    assert app_services.documents.get("demo", result.document_id).collection_id == rules.id
    with pytest.raises(InvalidInput, match="no collection 'Nothing'; it has: HR documents, Board, Rules"):
        rag.retrieve_context(query="fee", tenant_id="demo", collection="Nothing")
    with pytest.raises(NotFound, match="There is no tenant nobody"):
        rag.retrieve_context(query="fee", tenant_id="nobody")


def test_the_package_cuts_as_the_collection_says(app_services: Services, collection: Collection) -> None:
    admin = account(app_services, Role.ADMIN)
    own = {"chunking_method": "sentences", "pdf_type": "digital"}
    collection = app_services.documents.override_collection(admin, collection.id, own)
    text = " ".join(
        f"Rule {number} of the harbour is kept by everybody who moors a boat there." for number in range(40)
    )
    ids = [
        rag.process_document(file=text.encode(), file_name="a.txt", tenant_id="demo").document_id,
        app_services.documents.upload(admin, collection, "b.txt", f"{text} Always.".encode()).id,
        rag.process_document(file=text[:900].encode(), file_name="c.txt", tenant_id="demo", chunking_method="fixed")
        .document_id,
    ]  # fmt: skip
    documents = [app_services.documents.get("demo", document_id) for document_id in ids]
    assert [d.chunking_method for d in documents] == ["sentences", "sentences", "fixed"]
    assert {d.pdf_type for d in documents} == {"digital"}


def test_samples_do_not_join_documents_that_are_there(app_services: Services, collection: Collection) -> None:
    rag.process_document(file=RULE, file_name="harbour.txt", tenant_id="demo", generate_metadata=False)
    prepare_tenant(app_services)
    assert [d.file_name for d in app_services.documents.list("demo")] == ["harbour.txt"]


def test_a_board_is_synced_by_default_and_the_sample_after_all_others(
    app_services: Services, collection: Collection
) -> None:
    assert app_services.syncs.default_collection("demo") is None
    load_board(app_services)
    sample = app_services.syncs.default_collection("demo")
    assert sample is not None
    assert sample.name == BOARD
    made(app_services, "Notices", "notices", is_filled=False)
    board = app_services.syncs.default_collection("demo")
    assert board is not None
    assert board.name == "Notices"


# On an empty data folder


@pytest.fixture
def command() -> Iterator[Command]:
    """Runs `python -m rag …` on an empty data folder with the built-in database."""
    with tempfile.TemporaryDirectory(prefix="hr-first-", dir=fast_folder(), ignore_cleanup_errors=True) as folder:
        environment = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        environment |= {"RAG_DATA_DIR": f"{folder}/data", "LANG": "C.UTF-8"}

        def run(*arguments: str) -> subprocess.CompletedProcess[str]:
            return subprocess.run(
                [*forked_python(), "-m", "rag", *arguments],
                cwd=PROJECT, env=environment, capture_output=True, text=True, timeout=patient(120), check=False,
            )  # fmt: skip

        yield run


def test_the_first_command_makes_what_it_needs_or_says_what_is_missing(command: Command, tmp_path: Path) -> None:
    backup = command("backup", str(tmp_path / "backup.tar"))
    assert (backup.returncode, backup.stdout) == (1, "")
    assert backup.stderr.startswith("There is nothing to back up: ")
    assert "There is no tenant yet. Make one" in command("tenant", "list").stdout
    (tmp_path / "harbour.txt").write_bytes(RULE)
    ingested = command("ingest", str(tmp_path / "harbour.txt"))
    assert ingested.returncode == 0, ingested.stderr
    assert "harbour.txt: 1 passage," in ingested.stdout
    asked = command("ask", "How much is the mooring fee?")
    assert "twelve crowns of mooring fee" in asked.stdout
    assert "[1] Harbour, page 1" in asked.stdout


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("search", "leave"), "HR documents has no documents that can be searched yet. Add some: python -m rag ingest"),
        (("sync",), "“HR documents” has no source to sync with"),
        (("ingest", __file__, "--tenant", "nobody"), "There is no tenant nobody."),
    ],
)
def test_another_first_command_says_what_to_do(command: Command, arguments: tuple[str, ...], sentence: str) -> None:
    done = command(*arguments)
    assert done.returncode == 1
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr
