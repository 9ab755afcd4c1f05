"""From a fresh machine to the running product: makes `.venv`, installs what is pinned, goes on inside it.

Runs on any Python 3.11+ with nothing installed: `python3 -m rag.launch` serves, `python3 -m rag.launch test` runs the
checks and the tests, anything else is a command of `python -m rag`.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import venv
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
ENVIRONMENT = PROJECT / ".venv"
PYTHON = ENVIRONMENT / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def main(arguments: list[str]) -> int:
    if sys.version_info < (3, 11):  # noqa: UP036 - this file also runs where the rest does not
        print(f"Python 3.11 or newer is needed; this is {sys.version.split()[0]}. Install one and start again.")
        return 1
    testing = arguments[:1] == ["test"]
    requirements = [PROJECT / "requirements.txt"]
    if testing:
        requirements.append(PROJECT / "tests" / "requirements.txt")
    try:
        for path in requirements:
            install(path)
    except (OSError, subprocess.CalledProcessError) as exc:
        print(f"The set-up did not finish: {exc}")
        print("Check the network connection and the free disk space, then start again; what is there is kept.")
        return 1
    os.chdir(PROJECT)
    if testing:
        return run_checks(arguments[1:])
    command = [str(PYTHON), "-m", "rag", *(arguments or ["serve"])]
    if os.name != "nt":
        os.execv(PYTHON, command)  # noqa: S606 - signals reach the server itself
    return subprocess.call(command)  # noqa: S603


def install(requirements: Path) -> None:
    """Install the requirements unless exactly these are installed already."""
    stamp = ENVIRONMENT / f".{requirements.parent.name}-{requirements.stem}.sha256"
    digest = hashlib.sha256(requirements.read_bytes() + sys.version.encode()).hexdigest()
    if PYTHON.exists() and stamp.exists() and stamp.read_text() == digest:
        return
    if not PYTHON.exists():
        say("Making a Python environment in .venv")
        try:
            venv.create(ENVIRONMENT, with_pip=True, clear=True)
        except subprocess.CalledProcessError as exc:
            raise OSError("Python's venv module is incomplete here (Debian: apt install python3-venv).") from exc
    say(f"Installing {requirements.relative_to(PROJECT)} (first start only, about a minute)")
    command = [str(PYTHON), "-m", "pip", "install", "--disable-pip-version-check", "--requirement", str(requirements)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)  # noqa: S603
    assert process.stdout is not None  # noqa: S101
    lines = []
    for line in process.stdout:
        lines.append(line)
        if line.startswith("Collecting ") and sys.stdout.isatty():
            print(f"\r  {line.split()[1]:<60.60}", end="", flush=True)
    if sys.stdout.isatty():
        print("\r" + " " * 62 + "\r", end="")
    if process.wait() != 0:
        print("".join(lines[-15:]))
        raise subprocess.CalledProcessError(process.returncode, "pip install")
    stamp.write_text(digest)


def run_checks(arguments: list[str]) -> int:
    """Format, lint, types, tests: all run, and the first that fails decides."""
    checks = [
        ["ruff", "format", "--check", "."],
        ["ruff", "check", "."],
        ["mypy"],
        # Tests wait for servers and processes of their own half of the time: a few more than there are processors.
        ["pytest", "-n", str((os.cpu_count() or 1) + 1), "--dist", "worksteal", *arguments],
    ]
    results = []
    for check in checks:
        say(" ".join(check[:2]))
        results.append(subprocess.call([str(PYTHON), "-m", *check]))  # noqa: S603
    return next((code for code in results if code), 0)


def say(sentence: str) -> None:
    print(f"• {sentence}", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
