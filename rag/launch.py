"""Turn a fresh machine into the running product: create `.venv`, install the locked packages, continue inside.

Runs on any Python 3.11+ with nothing installed. `python3 -m rag.launch` serves, `install` only installs, `test` runs
the checks and the tests, `translations` updates the catalogues, `lock`, `audit` and `sbom` manage the packages, and
`release` writes the published files. Any other argument is a command for `python -m rag`.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import tomllib
import venv
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
ENVIRONMENT = PROJECT / ".venv"
#: The tools for managing packages have a separate environment, outside the product's.
TOOLS = PROJECT / ".tools"
#: Hand-written package lists, in locking order: each keeps the versions locked before it.
LISTS = ("requirements.in", "requirements-integrations.in", "tests/requirements.in", "benchmarks/requirements.in")
#: The product's lock files.
PRODUCT = ("requirements.txt", "requirements-integrations.txt")
TOOL_LIST = "tests/tools.in"
#: uv, which installs the locked packages in a tenth of pip's time.
INSTALLER = "deploy/installer.in"
#: `make audit` checks these locks: every package installed anywhere.
AUDITED = (*LISTS, TOOL_LIST, INSTALLER)
#: Every locked package has files for these.
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
#: The secret scan's false positives. The scan exits with 3 if only their line numbers changed.
SECRETS_KNOWN, LINES_MOVED = ".secrets.baseline", 3
NOT_SCANNED = 4
BINARIES = "bin"
PYTHON = ENVIRONMENT / BINARIES / "python"
#: The packages take 1.4 GB, the tests' 0.7 more; a download and the data folder need room beside them.
DISK_BYTES, TEST_DISK_BYTES = 3_000_000_000, 4_500_000_000
#: A small company's application and database use about 1 GB.
MEMORY_BYTES = 1_800_000_000
#: pip's settings by uv's names. uv ignores pip.conf and PIP_*.
UV_NAMES = {
    "index-url": "UV_DEFAULT_INDEX",
    "proxy": "ALL_PROXY",
    "cert": "SSL_CERT_FILE",
    "trusted-host": "UV_INSECURE_HOST",
}
#: Sections in pip's settings; later sections win.
PIP_SECTIONS = ("global", "install", ":env:")
NO_VENV = "Python's venv module is incomplete (Debian, Ubuntu: `sudo apt install python3-venv`)."


class SetUpFailed(Exception):
    """Setting up failed. The message is a sentence for the person who starts the product."""


def main(arguments: list[str]) -> int:
    if os.name == "nt":
        print("Windows is supported through WSL: run `wsl --install`, open Ubuntu, and start again in there.")
        return 1
    if sys.version_info < (3, 11):  # noqa: UP036 - this file also runs where the rest does not
        print(f"Python 3.11 or newer is needed; this is {sys.version.split()[0]}. Install one and start again.")
        return 1
    command = arguments[0] if arguments else "serve"
    try:
        if command in KEEPING:
            install([(PROJECT / TOOL_LIST).with_suffix(".txt")], TOOLS)
            os.chdir(PROJECT)
            return KEEPING[command]()
        # A deployment without integrations may delete their list.
        requirements = [path for name in PRODUCT if (path := PROJECT / name).is_file()]
        if command == "test":
            requirements.append(PROJECT / "tests" / "requirements.txt")
        missing = [path for path in requirements if not is_installed(path)]
        if missing:
            check_machine(command)
            install(missing)
    except SetUpFailed as exc:
        print(exc)
        return 1
    except KeyboardInterrupt:
        print("\nThe set-up was stopped. The next start continues it.")
        return 130
    except OSError as exc:
        print(f"The set-up did not finish: {exc}. Nothing is lost: start it again when that is solved.")
        return 1
    os.chdir(PROJECT)
    if command == "install":
        return 0
    if command == "test":
        return run_checks(arguments[1:])
    module = "rag.locales.catalogues" if command == "translations" else "rag"
    # Replace this process: signals then reach the server directly.
    return os.execv(PYTHON, [str(PYTHON), "-m", module, *(arguments or ["serve"])])  # noqa: S606


# Before anything is downloaded


def check_machine(command: str) -> None:
    """Raise SetUpFailed listing everything this machine lacks. Low memory is only a warning."""
    problems = []
    try:
        with tempfile.TemporaryFile(dir=PROJECT):
            pass
    except OSError:
        problems.append(f"The folder {PROJECT} is not writable: start as its owner, or copy it into your home folder.")
    if importlib.util.find_spec("ensurepip") is None:
        problems.append(NO_VENV)
    needed = TEST_DISK_BYTES if command == "test" else DISK_BYTES
    free = shutil.disk_usage(PROJECT).free
    if free < needed:
        problems.append(f"The disk has {free / 1e9:.1f} GB free; {needed / 1e9:.1f} GB are needed.")
    if command == "serve" and (address := taken_address()):
        problems.append(f"Another program uses {address}: stop it, or choose another port: `PORT=8502 make run`.")
    if problems:
        raise SetUpFailed("Before the start:\n" + "\n".join(f"- {problem}" for problem in problems))
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if memory < MEMORY_BYTES:
        say(f"This machine has {memory / 1e9:.1f} GB of memory; with less than 2 GB the product is slow")


def taken_address() -> str:
    """Return the product's listening address if a different program uses the address, else ""."""
    address, port = setting("RAG_ADDRESS", "127.0.0.1"), setting("PORT", "8501")
    if not port.isdecimal():
        return ""  # the product reports the port
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(address, int(port), type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(place)
    except OSError:
        return f"{address}:{port}"
    return ""


def setting(name: str, default: str) -> str:
    """Return a setting, read like the product does: from the environment, else `.streamlit/secrets.toml`, else the
    default.
    """
    try:
        secrets = tomllib.loads((PROJECT / ".streamlit" / "secrets.toml").read_text("utf-8"))
    except (OSError, ValueError):
        secrets = {}
    return os.environ.get(name, "") or str(secrets.get(name, "")) or default


# Installing


def is_installed(requirements: Path, environment: Path = ENVIRONMENT) -> bool:
    """Whether the environment was made from exactly this lock by this Python."""
    stamp = stamp_of(requirements, environment)
    return (environment / BINARIES / "python").exists() and stamp.exists() and stamp.read_text() == digest(requirements)


def stamp_of(requirements: Path, environment: Path) -> Path:
    return environment / f".{requirements.parent.name}-{requirements.stem}.sha256"


def digest(requirements: Path) -> str:
    return hashlib.sha256(requirements.read_bytes() + sys.version.encode()).hexdigest()


def install(requirements: list[Path], environment: Path = ENVIRONMENT) -> None:
    """Install the packages in these locks with uv, else with pip, and check each file's hash.

    The locks are complete: no dependency is resolved here, and newer releases are ignored.
    """
    missing = [path for path in requirements if not is_installed(path, environment)]
    if not missing:
        return
    python = environment / BINARIES / "python"
    if not is_made_by_this_python(environment):
        say(f"Making a Python environment in {environment.name}")
        try:
            venv.create(environment, with_pip=True, clear=True)
        except subprocess.CalledProcessError as exc:
            raise SetUpFailed(NO_VENV) from exc
    names = " and ".join(str(path.relative_to(PROJECT)) for path in missing)
    say(f"Installing {names} (once, from the package index: some 400 MB)")
    started = time.monotonic()
    used = "uv" if install_with_uv(python, missing) else install_with_pip(python, missing)
    say(f"Installed with {used} in {time.monotonic() - started:.0f} s")
    for path in missing:
        stamp_of(path, environment).write_text(digest(path))


def is_made_by_this_python(environment: Path) -> bool:
    """Whether the environment exists and has this Python's version.

    After a Python upgrade, a new environment is made.
    """
    packages = environment / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}"
    return packages.is_dir() and (environment / BINARIES / "python").exists()


def install_with_uv(python: Path, requirements: list[Path]) -> bool:
    """Install the packages with uv, which pip fetches.

    Returns whether this worked, because pip's index may not offer uv.
    """
    pinned = (PROJECT / INSTALLER).with_suffix(".txt")
    fetched = pip(python, pinned)
    if fetched.returncode != 0:
        say(f"uv cannot be had here ({last_line(fetched.stdout)}); pip takes one to three minutes")
        return False
    settings = uv_settings(python)
    if settings is None:
        return False
    command = [str(python.with_name("uv")), "pip", "install", "--python", str(python), "--require-hashes", "--no-deps"]
    for path in requirements:
        command += ["--requirement", str(path)]
    try:
        done = subprocess.run(  # noqa: S603
            command,
            env={**settings, **os.environ, "UV_PYTHON_DOWNLOADS": "never"},
            check=False,
            text=True,
            stderr=None if sys.stderr.isatty() else subprocess.PIPE,
        )
        failure = "" if done.returncode == 0 else last_line(done.stderr or "")
    except OSError as exc:  # On a disk which may hold no programs, or the wrong kind of machine.
        failure = str(exc)
    if failure:
        say(f"uv did not come through ({failure}); pip takes one to three minutes")
    return not failure


def uv_settings(python: Path) -> dict[str, str] | None:
    """Return pip's index, proxy and certificates under uv's names; `None` if pip may use no index."""
    command = [str(python), "-m", "pip", "config", "list"]
    listed = subprocess.run(command, capture_output=True, text=True, check=False).stdout  # noqa: S603
    lines = [line for line in re.findall(r"^([^.]+)\.([\w-]+)=(.+)$", listed, re.MULTILINE) if line[0] in PIP_SECTIONS]
    lines.sort(key=lambda line: PIP_SECTIONS.index(line[0]))
    settings = {name: str(ast.literal_eval(value)) for _, name, value in lines}
    if settings.get("no-index", "").lower() in ("1", "true", "yes", "on"):
        return None
    return {UV_NAMES[name]: value for name, value in settings.items() if name in UV_NAMES}


def install_with_pip(python: Path, requirements: list[Path]) -> str:
    for path in requirements:
        done = pip(python, path)
        if done.returncode != 0:
            print("\n".join(done.stdout.splitlines()[-15:]))
            raise SetUpFailed(
                f"The packages could not be installed. Check the network connection, then start again; "
                f"a package index of your company is set in pip.conf or PIP_INDEX_URL.{newer_python()}"
            )
    return f"pip {pip_version(python)}"


def newer_python() -> str:
    """Return a sentence if this Python is newer than the lock, else ""."""
    if sys.version_info[:2] <= tuple(map(int, PYTHONS[-1].split("."))):
        return ""
    return (
        f" Some packages may have no files for Python {sys.version_info.major}.{sys.version_info.minor} yet: "
        f"`make run PYTHON=python{PYTHONS[-1]}` takes an older one."
    )


def pip(python: Path, requirements: Path) -> subprocess.CompletedProcess[str]:
    # Without `--no-deps`, pip before 23.3 looks up packages with extras and stops at a release newer than the lock.
    command = [
        str(python), "-m", "pip", "install", "--disable-pip-version-check", "--require-hashes", "--no-deps",
        "--requirement", str(requirements),
    ]  # fmt: skip
    return subprocess.run(  # noqa: S603
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )


def pip_version(python: Path) -> str:
    command = [str(python), "-m", "pip", "--version"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[1]  # noqa: S603


def last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:200] if lines else "no reason given"


def run_checks(arguments: list[str]) -> int:
    """Check format, lint and types, and run the tests. Return the exit code of the first failure.

    All checks are run, even after a failure. Types are checked while the tests run.
    """
    results = []
    for check in (["ruff", "format", "--check", "."], ["ruff", "check", "."]):
        say(" ".join(check[:2]))
        results.append(subprocess.call([str(PYTHON), "-m", *check]))  # noqa: S603
    say("mypy, beside pytest")
    # Tests wait for their servers and processes half the time: use a few more workers than processors.
    tests = ["pytest", "-n", str((os.cpu_count() or 1) + 1), "--dist", "worksteal", *arguments]
    # They start many processes: without compiled modules, each would compile the product again.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    types = subprocess.Popen(  # noqa: S603
        [str(PYTHON), "-m", "mypy"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    with types:
        is_tested = subprocess.call([str(PYTHON), "-m", *tests], env=environment)  # noqa: S603
        say(f"mypy\n{types.communicate()[0].rstrip()}")
    results += [types.returncode, is_tested]
    return next((code for code in results if code), 0)


# Packages


def lock() -> int:
    """Lock the requirement lists with all dependencies.

    A version locked before changes only if a list requires this.
    """
    locked: list[str] = []
    for source in (*LISTS, TOOL_LIST, INSTALLER):
        target = str(Path(source).with_suffix(".txt"))
        say(f"Locking {source}")
        constraints = (
            [] if source in (TOOL_LIST, INSTALLER) else [item for path in locked for item in ("--constraints", path)]
        )
        command = [
            "uv", "pip", "compile", "--quiet", "--universal", "--python-version", "3.11", "--generate-hashes",
            "--no-emit-index-url", "--no-strip-extras", "--custom-compile-command", "make lock", *constraints,
            "--output-file", target, source,
        ]  # fmt: skip
        if code := tool(*command):
            return code
        locked.append(target)
    return files_for_every_python()


def files_for_every_python() -> int:
    """Check that every product package has a wheel for this system and each Python in `PYTHONS`.

    Returns the exit code.
    """
    for version in PYTHONS:
        say(f"Looking for the files of Python {version}")
        with tempfile.TemporaryDirectory() as folder:
            command = [
                "uv", "pip", "install", "--dry-run", "--quiet", "--no-deps", "--require-hashes", "--only-binary",
                ":all:", "--python-version", version, "--target", folder,
            ]  # fmt: skip
            for path in PRODUCT:
                if code := tool(*command, "--requirement", path):
                    return code
    return 0


def audit() -> int:
    """Check locked packages for known vulnerabilities and the repository for secrets."""
    codes = []
    for source in AUDITED:
        target = str(Path(source).with_suffix(".txt"))
        say(f"pip-audit {target}")
        codes.append(tool("pip-audit", "--disable-pip", "--require-hashes", "--requirement", target))
    codes.append(scan_for_secrets())
    return next((code for code in codes if code), 0)


def scan_for_secrets() -> int:
    """Look for secrets under version control, apart from known false alarms."""
    say("detect-secrets")
    try:
        listed = subprocess.run(["git", "ls-files", "-z"], capture_output=True, text=True, check=True)  # noqa: S607
    except (OSError, subprocess.CalledProcessError):
        say("Not looked for secrets: this is no git repository, or git is not installed.")
        return NOT_SCANNED
    files = [path for path in listed.stdout.split("\0") if path and Path(path).is_file()]
    code = tool("detect-secrets-hook", "--baseline", SECRETS_KNOWN, *files)
    return 0 if code == LINES_MOVED else code


def newest_release() -> str:
    """Return the newest release's version from CHANGELOG.md; "unreleased" before the first."""
    changes = PROJECT / "CHANGELOG.md"
    text = changes.read_text("utf-8") if changes.is_file() else ""
    match = re.search(r"^## \[(\d[^\]]*)\]", text, re.MULTILINE)
    return match[1] if match else "unreleased"


def merged(*locks: str) -> str:
    """Merge several locks. A package which is in several locks appears a single time in the result."""
    entries: dict[str, str] = {}
    for lock in locks:
        for entry in re.findall(r"^[A-Za-z0-9].*\n(?:[ \t].*\n)*", lock, re.MULTILINE):
            entries.setdefault(re.sub(r"\[.*?\]|[\s;].*", "", entry, flags=re.DOTALL), entry)
    return "".join(entries.values())


def write_sbom() -> int:
    """Write the packages in CHANGELOG.md's newest release as CycloneDX, from the lock."""
    path = PROJECT / "dist" / f"hr-assistant-{newest_release()}.cdx.json"
    path.parent.mkdir(exist_ok=True)
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as requirements:
        requirements.write(merged(*(Path(name).read_text("utf-8") for name in PRODUCT)))
        requirements.flush()
        code = tool(
            "cyclonedx-py", "requirements", requirements.name, "--output-reproducible", "--output-file", str(path)
        )
    if code == 0:
        say(f"Wrote {path.relative_to(PROJECT)}")
    return code


def release() -> int:
    """Write the newest version's published files into `dist/`: source, SBOM, provenance and checksums."""
    # Nothing else needs it.
    from rag.release import NoReleaseError, write_release

    if code := write_sbom():
        return code
    try:
        files = write_release(PROJECT, newest_release(), PROJECT / "dist")
    except NoReleaseError as error:
        say(str(error))
        return 1
    for path in files:
        say(f"Wrote {path.relative_to(PROJECT)}")
    return 0


def tool(name: str, *arguments: str) -> int:
    """Run a development tool, and return its exit code."""
    return subprocess.call([str(TOOLS / BINARIES / name), *arguments])  # noqa: S603


def say(sentence: str) -> None:
    print(f"• {sentence}", flush=True)


KEEPING = {"lock": lock, "audit": audit, "secrets": scan_for_secrets, "sbom": write_sbom, "release": release}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
