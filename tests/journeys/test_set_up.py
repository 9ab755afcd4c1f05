"""The way from a fresh machine to `.venv`, on a package index that offers a newer release of everything locked."""

from __future__ import annotations

import importlib.metadata
import re
import shutil
import socket
import subprocess
import sys
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

from rag.launch import PRODUCT, merged
from tests.patience import patient
from tests.standins import package_index

PROJECT = Path(__file__).resolve().parents[2]
#: Before 23.3, pip looked up packages with extras again; Debian 12 ships 23.0.1. Each with the hash of its wheel.
PIPS = {
    "23.0.1": "236bcb61156d76c4b8a05821b988c7b8c35bf0da28a4b614e8d6ab5212c25c6f",
    "23.2.1": "7ccf472345f20d35bdc9d1841ff5f313260c2c33fe417f48c30ac46cccabf5be",
    "26.3": "f3b60b20ffaadd4415ed7957212a38ac63fa4c5fa375bd0f4a797777940fad13",
}
NO_UV = f"uv==999 --hash=sha256:{'0' * 64}\n"


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str, str]]:
    """Address of the index, the lock of its packages and the lock of uv."""
    folder = tmp_path_factory.mktemp("index")
    # Integrations first, because their list locks pydantic with an extra.
    whole = folder / "whole.txt"
    whole.write_text(merged(*((PROJECT / name).read_text("utf-8") for name in reversed(PRODUCT))))
    lock = package_index.write_index(folder, whole)
    uv = package_index.repack_uv(folder)
    with package_index.served(folder) as address:
        yield address, lock, uv


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the pip that Python brings, made once: making one takes longer than copying it."""
    made = tmp_path_factory.mktemp("environment") / ".venv"
    venv.create(made, with_pip=True)
    return made


@pytest.fixture
def clone(tmp_path: Path, index: tuple[str, str, str]) -> Path:
    """A project with the launcher and the lock, in a folder that needs quoting."""
    project = tmp_path / "HR für alle"
    (project / "rag").mkdir(parents=True)
    (project / "deploy").mkdir()
    (project / "rag" / "__init__.py").touch()
    shutil.copy(PROJECT / "rag" / "launch.py", project / "rag")
    (project / "requirements.txt").write_text(index[1], "utf-8")
    (project / "deploy" / "installer.txt").write_text(index[2] or NO_UV, "utf-8")
    return project


@pytest.fixture
def prepared(clone: Path, environment: Path) -> Path:
    """A clone that has an environment without packages."""
    shutil.copytree(environment, clone / ".venv", symlinks=True)
    return clone


def launch(project: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the launcher with no setting of this machine's pip or uv."""
    environment = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(project),
        "PIP_CONFIG_FILE": "/dev/null",
        "PIP_NO_CACHE_DIR": "1",
        "UV_NO_CACHE": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        **variables,
    }
    command = [sys.executable, "-m", "rag.launch", *arguments]
    return subprocess.run(
        command, cwd=project, env=environment, capture_output=True, text=True, timeout=patient(120), check=False
    )


def installed(project: Path) -> set[str]:
    """Packages of the clone's environment beside pip and its kind, as `name==version`."""
    described = (project / ".venv").glob("lib/python3*/site-packages/*.dist-info")
    names = [re.fullmatch(r"(.+)-([^-]+)\.dist-info", path.name) for path in described]
    found = {f"{package_index.normal(name[1])}=={name[2]}" for name in names if name}
    return {line for line in found if line.split("==")[0] not in ("pip", "setuptools", "uv", "wheel")}


def locked(lock: str) -> set[str]:
    return {f"{package_index.normal(name)}=={version}" for name, _, version in package_index.PINNED.findall(lock)}


def put_pip(project: Path, version: str, wheels: Path) -> None:
    """Make the clone's environment with this pip. Skips the test if its wheel cannot be had."""
    if version == "23.0.1" and sys.version_info >= (3, 12):
        pytest.skip("pip 23.0.1 runs on Python 3.11 and earlier")
    wheels.mkdir()
    pinned = wheels / "pip.txt"
    pinned.write_text(f"pip=={version} --hash=sha256:{PIPS[version]}\n")
    fetch = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(wheels), "-r", str(pinned)]
    if subprocess.run(fetch, capture_output=True, timeout=patient(120), check=False).returncode != 0:
        pytest.skip(f"pip {version} cannot be downloaded here")
    wheel = next(wheels.glob("pip-*.whl"))
    venv.create(project / ".venv")
    python = str(project / ".venv" / "bin" / "python")
    # A wheel of pip runs as it is, and installs itself.
    subprocess.run(
        [python, f"{wheel}/pip", "install", "--quiet", "--no-index", "--no-deps", str(wheel)],
        check=True,
        capture_output=True,
        timeout=patient(120),
    )


def test_uv_installs_what_is_locked_from_the_index_that_pip_is_set_to(
    clone: Path, index: tuple[str, str, str], tmp_path: Path
) -> None:
    if not index[2]:
        pytest.skip("this environment was made without uv")
    (tmp_path / "pip.conf").write_text(f"[global]\nindex-url = {index[0]}\n")
    done = launch(clone, "install", PIP_CONFIG_FILE=str(tmp_path / "pip.conf"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Installed with uv" in done.stdout
    assert installed(clone) == locked(index[1])
    again = launch(clone, "install", PIP_INDEX_URL="http://127.0.0.1:9/")
    assert (again.returncode, again.stdout) == (0, "")


def with_extras(lock: str) -> str:
    """Keep what is locked with an extra, and the packages that ask for it: the cases of pip before 23.3."""
    lines = {package_index.normal(package_index.PINNED.findall(line)[0][0]): line for line in lock.splitlines(True)}
    extras = {name for name, line in lines.items() if "[" in line}
    asking = {
        name
        for name in lines
        for asked in importlib.metadata.requires(name) or []
        if "extra ==" not in asked and package_index.normal(re.split(r"[^\w.-]", asked)[0]) in extras
    }
    return "".join(lines[name] for name in sorted(extras | asking))


@pytest.mark.parametrize("version", PIPS)
def test_every_pip_installs_what_is_locked_where_there_is_no_uv(
    clone: Path, index: tuple[str, str, str], tmp_path: Path, version: str
) -> None:
    (clone / "deploy" / "installer.txt").write_text(NO_UV)
    lock = with_extras(index[1])
    (clone / "requirements.txt").write_text(lock, "utf-8")
    put_pip(clone, version, tmp_path / "wheels")
    done = launch(clone, "install", PIP_INDEX_URL=index[0])
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"Installed with pip {version}" in done.stdout
    assert "uv cannot be had here" in done.stdout
    assert installed(clone) == locked(lock) > {"pydantic==" + importlib.metadata.version("pydantic")}


def test_pip_takes_over_where_uv_reaches_no_index(prepared: Path, index: tuple[str, str, str], tmp_path: Path) -> None:
    """Wheels in a folder, as on a machine without network: pip is told of them, uv is not."""
    lines = index[1].splitlines(keepends=True)[:3]
    (prepared / "requirements.txt").write_text("".join(lines))
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    package_index.write_index(tmp_path / "index", prepared / "requirements.txt")
    for wheel in (tmp_path / "index").glob("*/*.whl"):
        shutil.copy(wheel, wheels)
    done = launch(prepared, "install", PIP_NO_INDEX="1", PIP_FIND_LINKS=str(wheels))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Installed with pip" in done.stdout
    assert installed(prepared) == locked("".join(lines))


def test_a_file_with_another_hash_is_not_installed(prepared: Path, index: tuple[str, str, str]) -> None:
    (prepared / "requirements.txt").write_text(re.sub(r"sha256:\w{8}", "sha256:00000000", index[1].splitlines()[0]))
    done = launch(prepared, "install", PIP_INDEX_URL=index[0])
    assert done.returncode == 1
    assert "could not be installed" in done.stdout
    assert not installed(prepared)
    assert "Traceback" not in done.stdout + done.stderr


def test_what_is_missing_is_said_before_anything_is_downloaded(clone: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        done = launch(clone, "serve", PORT=str(port), PIP_INDEX_URL="http://127.0.0.1:9/")
    assert done.returncode == 1
    assert f"Another program uses 127.0.0.1:{port}" in done.stdout
    assert not (clone / ".venv").exists()


def test_a_port_in_secrets_toml_is_the_one_that_is_tried(clone: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        (clone / ".streamlit").mkdir()
        (clone / ".streamlit" / "secrets.toml").write_text(f"PORT = {port}\n")
        done = launch(clone, "serve", PIP_INDEX_URL="http://127.0.0.1:9/")
    assert f"Another program uses 127.0.0.1:{port}" in done.stdout


def test_a_lock_that_changed_is_installed_into_the_same_environment(
    prepared: Path, index: tuple[str, str, str]
) -> None:
    lines = index[1].splitlines(keepends=True)
    for count in (1, 2):
        (prepared / "requirements.txt").write_text("".join(lines[:count]))
        assert launch(prepared, "install", PIP_INDEX_URL=index[0]).returncode == 0
        assert installed(prepared) == locked("".join(lines[:count]))


def test_packages_of_integrations_are_installed_where_their_list_is(
    prepared: Path, index: tuple[str, str, str]
) -> None:
    core, of_integrations = index[1].splitlines(keepends=True)[:2]
    (prepared / "requirements.txt").write_text(core)
    assert launch(prepared, "install", PIP_INDEX_URL=index[0]).returncode == 0
    assert installed(prepared) == locked(core)
    (prepared / "requirements-integrations.txt").write_text(of_integrations)
    assert launch(prepared, "install", PIP_INDEX_URL=index[0]).returncode == 0
    assert installed(prepared) == locked(core + of_integrations)
