"""Throws texts at everything that parses in the application's process: `python -m benchmarks.fuzz --minutes 60`.

Before a release. The targets are in `tests/security/parsers.py`. Passes when none raises anything but its refusals, and
none takes two seconds of processor time for the longest text it is given. Damaged files of each format go through the
sandbox in between: each is read or refused, in little time of the application itself. Whatever is found belongs into
`FOUND` there; until then Hypothesis keeps it in `.hypothesis` and tries it first.
"""

from __future__ import annotations

import argparse
import faulthandler
import io
import random
import time
import zipfile
from contextlib import closing, suppress
from pathlib import Path

from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings
from hypothesis import strategies as st

from rag.errors import RagError
from rag.ingestion.loaders.format_table import file_formats
from rag.ingestion.loaders.sandbox import Sandbox
from rag.ingestion.loaders.values import ExtractionLimits
from rag.settings import Settings as Environment
from tests.ingestion.test_loaders import sample_files
from tests.security.parsers import TARGETS
from tests.security.target import MOST_SECONDS, Target

#: Of a round; so many texts of the longest length are tried after them.
TEXTS, LONG_TEXTS = 400, 20
SETTINGS = settings(deadline=None, verbosity=Verbosity.normal, suppress_health_check=list(HealthCheck))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--target", choices=TARGETS, action="append")
    arguments = parser.parse_args()
    faulthandler.dump_traceback_later(120 + 60 * arguments.minutes)
    wanted = {name: TARGETS[name] for name in arguments.target or TARGETS}
    until, rounds, slowest = time.monotonic() + 60 * arguments.minutes, 0, dict.fromkeys(wanted, 0.0)
    failed: set[str] = set()
    files, slowest_file = 0, 0.0
    while time.monotonic() < until and len(failed) < len(wanted):
        for name, target in wanted.items():
            if name not in failed and time.monotonic() < until:
                try:
                    slowest[name] = max(slowest[name], round_of(target, arguments.seed + rounds))
                except Exception as exc:  # what was found
                    failed.add(name)
                    print(f"{name}: {type(exc).__name__}: {exc}", *getattr(exc, "__notes__", ()), sep="\n  ")
        if not arguments.target:
            files, slowest_file = damaged_files(arguments.seed + rounds, files, slowest_file)
        rounds += 1
    print(f"{rounds:,} rounds of {TEXTS + LONG_TEXTS} texts for each of {len(wanted)} targets, seed {arguments.seed}")
    for name, seconds in sorted(slowest.items(), key=lambda pair: -pair[1]):
        print(f"  {name}: {'failed' if name in failed else f'{seconds:.2f} s'} for {wanted[name].longest:,} characters")
    print(f"  {files:,} damaged files: {slowest_file:.2f} s of the application's processor time at most")
    return 1 if failed or slowest_file > MOST_SECONDS else 0


def damaged_files(number: int, files: int, slowest: float) -> tuple[int, float]:
    """Read a damaged file of each format in the sandbox; return how many there were and the longest time.

    Raises what is no refusal.
    """
    chance, samples = random.Random(number), sample_files()
    with closing(Sandbox(ExtractionLimits.of(Environment()))) as sandbox:
        for loader in file_formats().loaders:
            content = damaged(samples.get(loader.kind, b"Kind,Days\nPaid leave,25\n"), chance)
            began = time.thread_time()
            try:
                with suppress(RagError):
                    sandbox.check(content, file_name=f"a{loader.endings[0]}")
                    sandbox.load(content, file_name=f"a{loader.endings[0]}")
            except Exception:
                Path("damaged-file").write_bytes(content)
                raise
            files, slowest = files + 1, max(slowest, time.thread_time() - began)
    return files, slowest


def damaged(content: bytes, chance: random.Random) -> bytes:
    """Return a file with a few bytes, parts or members changed; members of an archive are changed inside it."""
    if content.startswith(b"PK") and chance.random() < 0.8:
        packed = io.BytesIO()
        with (
            zipfile.ZipFile(io.BytesIO(content)) as before,
            zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as after,
        ):
            members = before.infolist()
            chosen = chance.choice(members).filename
            for member in members:
                inner = before.read(member)
                after.writestr(member, damaged(inner, chance) if member.filename == chosen else inner)
        return packed.getvalue()
    changed = bytearray(content)
    for _ in range(chance.randint(1, 6)):
        place = chance.randrange(len(changed) + 1)
        match chance.randrange(4):
            case 0:
                changed[place : place + 1] = bytes([chance.randrange(256)])
            case 1:
                del changed[place : place + chance.randint(1, 60)]
            case 2:
                changed[place:place] = changed[place : place + 80] * chance.choice((1, 20, 2000))
            case _:
                changed[place:place] = chance.choice((b"<", b"-1", b"99999999999", b"\x00" * 4, b"\xff" * 4, b"&a;"))
    return bytes(changed)


def round_of(target: Target, number: int) -> float:
    """Try a target, and return the longest that it took for a long text. Raises what it should not have raised."""
    slowest = 0.0

    @seed(number)
    @settings(SETTINGS, max_examples=TEXTS)
    @given(target.texts)
    def any_text(text: str) -> None:
        target.run(text)

    @seed(number)
    @settings(SETTINGS, max_examples=LONG_TEXTS, phases=[Phase.reuse, Phase.generate])
    @given(target.texts, target.texts, st.sampled_from(["", '"', ")", "\n", "x"]))
    def long_text(start: str, piece: str, end: str) -> None:
        nonlocal slowest
        seconds = target.seconds_of_longest(start, piece or "a", end)
        slowest = max(slowest, seconds)
        assert seconds < MOST_SECONDS, f"{seconds:.1f} s: {start[:200]!r}, then {piece!r} again and again, then {end!r}"

    any_text()
    long_text()
    return slowest


if __name__ == "__main__":
    raise SystemExit(main())
