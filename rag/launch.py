"""From a fresh machine to the running product: makes `.venv`, installs the locked packages, continues inside it.

Runs on any Python 3.11+ with nothing installed: `python3 -m rag.launch` serves, `test` runs the checks and the tests,
`translations` after the catalogues, `lock`, `audit` and `sbom` after the packages, anything else is a command of
`python -m rag`.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import venv
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
ENVIRONMENT = PROJECT / ".venv"
#: What looks after the packages has an environment of its own, so that none of it is in the product's.
TOOLS = PROJECT / ".tools"
#: Lists of packages that people write, in the order in which they are locked: each keeps to the versions before it.
LISTS = ("requirements.in", "tests/requirements.in", "benchmarks/requirements.in")
TOOL_LIST = "tests/tools.in"
#: What looks like a secret and is none. The scan exits with the number when it only noted new line numbers there.
SECRETS_KNOWN, LINES_MOVED = ".secrets.baseline", 3
BINARIES = "Scripts" if os.name == "nt" else "bin"
PYTHON = ENVIRONMENT / BINARIES / ("python.exe" if os.name == "nt" else "python")


def main(arguments: list[str]) -> int:
    if sys.version_info < (3, 11):  # noqa: UP036 - this file also runs where the rest does not
        print(f"Python 3.11 or newer is needed; this is {sys.version.split()[0]}. Install one and start again.")
        return 1
    testing = arguments[:1] == ["test"]
    keeping = {"lock": lock, "audit": audit, "sbom": write_sbom}.get(" ".join(arguments[:1]))
    requirements = [PROJECT / "requirements.txt"]
    if testing:
        requirements.append(PROJECT / "tests" / "requirements.txt")
    try:
        if keeping is not None:
            install((PROJECT / TOOL_LIST).with_suffix(".txt"), TOOLS)
            os.chdir(PROJECT)
            return keeping()
        for path in requirements:
            install(path)
    except (OSError, subprocess.CalledProcessError) as exc:
        print(f"The set-up did not finish: {exc}")
        print("Check the network connection and the free disk space, then start again; what is there already is kept.")
        return 1
    os.chdir(PROJECT)
    if testing:
        return run_checks(arguments[1:])
    module = "rag.locales.catalogues" if arguments[:1] == ["translations"] else "rag"
    command = [str(PYTHON), "-m", module, *(arguments or ["serve"])]
    if os.name != "nt":
        os.execv(PYTHON, command)  # noqa: S606 - signals reach the server itself
    return subprocess.call(command)  # noqa: S603


def install(requirements: Path, environment: Path = ENVIRONMENT) -> None:
    """Install the requirements, each file of them by its hash, unless exactly these are installed already."""
    python = environment / PYTHON.relative_to(ENVIRONMENT)
    stamp = environment / f".{requirements.parent.name}-{requirements.stem}.sha256"
    digest = hashlib.sha256(requirements.read_bytes() + sys.version.encode()).hexdigest()
    if python.exists() and stamp.exists() and stamp.read_text() == digest:
        return
    if not python.exists():
        say(f"Making a Python environment in {environment.name}")
        try:
            venv.create(environment, with_pip=True, clear=True)
        except subprocess.CalledProcessError as exc:
            raise OSError("Python's venv module is incomplete here (Debian: apt install python3-venv).") from exc
    say(f"Installing {requirements.relative_to(PROJECT)} (first start only, about a minute)")
    # The list is whole. Without `--no-deps` pip looks for packages with extras itself, and stops at the first release
    # that is newer than the lock.
    command = [
        str(python), "-m", "pip", "install", "--disable-pip-version-check", "--require-hashes", "--no-deps",
        "--requirement", str(requirements),
    ]  # fmt: skip
    lines = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:  # noqa: S603
        assert process.stdout is not None  # noqa: S101
        for line in process.stdout:
            lines.append(line)
            if line.startswith("Collecting ") and sys.stdout.isatty():
                print(f"\r  {line.split()[1]:<60.60}", end="", flush=True)
    if sys.stdout.isatty():
        print("\r" + " " * 62 + "\r", end="")
    if process.returncode != 0:
        print("".join(lines[-15:]))
        raise subprocess.CalledProcessError(process.returncode, "pip install")
    stamp.write_text(digest)


def run_checks(arguments: list[str]) -> int:
    """Format, lint, types, tests: all run, and the first that fails decides. Types are checked beside the tests."""
    results = []
    for check in (["ruff", "format", "--check", "."], ["ruff", "check", "."]):
        say(" ".join(check[:2]))
        results.append(subprocess.call([str(PYTHON), "-m", *check]))  # noqa: S603
    say("mypy, beside pytest")
    # Tests wait for servers and processes of their own half of the time: a few more than there are processors.
    tests = ["pytest", "-n", str((os.cpu_count() or 1) + 1), "--dist", "worksteal", *arguments]
    # Their processes are many: without its compiled modules, each would compile the product again.
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
    """Write the lists again with everything they need in turn; a version that is locked stays unless a list says so."""
    locked: list[str] = []
    for source in (*LISTS, TOOL_LIST):
        target = str(Path(source).with_suffix(".txt"))
        say(f"Locking {source}")
        kept = [] if source == TOOL_LIST else [item for path in locked for item in ("--constraints", path)]
        command = [
            "uv", "pip", "compile", "--quiet", "--universal", "--python-version", "3.11", "--generate-hashes",
            "--no-emit-index-url", "--custom-compile-command", "make lock", *kept, "--output-file", target, source,
        ]  # fmt: skip
        if code := tool(*command):
            return code
        locked.append(target)
    return 0


def audit() -> int:
    """Look for known vulnerabilities of locked packages and for secrets under version control."""
    codes = []
    for source in (*LISTS, TOOL_LIST):
        target = str(Path(source).with_suffix(".txt"))
        say(f"pip-audit {target}")
        codes.append(tool("pip-audit", "--disable-pip", "--require-hashes", "--requirement", target))
    say("detect-secrets")
    listed = subprocess.run(["git", "ls-files", "-z"], capture_output=True, text=True, check=True)  # noqa: S607
    files = [path for path in listed.stdout.split("\0") if path and Path(path).is_file()]
    code = tool("detect-secrets-hook", "--baseline", SECRETS_KNOWN, *files)
    codes.append(0 if code == LINES_MOVED else code)
    return next((code for code in codes if code), 0)


def write_sbom() -> int:
    """Write which packages the newest release in CHANGELOG.md consists of, as CycloneDX, from the lock."""
    found = re.search(r"^## \[(\d[^\]]*)\]", (PROJECT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    path = PROJECT / "dist" / f"hr-assistant-{found[1] if found else 'unreleased'}.cdx.json"
    path.parent.mkdir(exist_ok=True)
    code = tool("cyclonedx-py", "requirements", "requirements.txt", "--output-reproducible", "--output-file", str(path))
    if code == 0:
        say(f"Wrote {path.relative_to(PROJECT)}")
    return code


def tool(name: str, *arguments: str) -> int:
    """Run one of the tools."""
    return subprocess.call([str(TOOLS / BINARIES / name), *arguments])  # noqa: S603


def say(sentence: str) -> None:
    print(f"• {sentence}", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
