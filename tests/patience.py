"""How long tests wait: the time a quiet machine needs, times how much slower this one is.

A deadline costs nothing while the thing it waits for happens, so the factor is generous: load comes and goes while the
tests run, and the speed is measured once.
"""

from __future__ import annotations

import functools
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable

#: Holds the factor for the workers of a run and the processes that tests start; set it to try another one.
VARIABLE = "PATIENCE"
#: What the work below takes on a machine of two processors of 2024 with nothing else to do.
QUIET_SECONDS = 0.12
#: For load that comes after the measurement.
MARGIN = 8.0
#: A machine that slept while it was measured would have tests wait for hours.
MOST = 60.0
ROUNDS = 3


@functools.cache
def factor() -> float:
    """Return the factor of this run; the first process that asks measures it and hands it on."""
    if VARIABLE not in os.environ:
        os.environ[VARIABLE] = f"{factor_of(max(measure() for _ in range(ROUNDS))):.2f}"
    return float(os.environ[VARIABLE])


def factor_of(seconds: float) -> float:
    """Return the factor for a machine on which the work takes so long."""
    return min(MOST, max(1.0, seconds / QUIET_SECONDS) * MARGIN)


def measure() -> float:
    """Return the seconds for a piece of Python and the start of a process, under the load of the moment."""
    began = time.perf_counter()
    words = {number: str(number) for number in range(100_000)}
    sorted(words.values())
    subprocess.run([sys.executable, "-c", "import json, logging, socket"], check=True)
    return time.perf_counter() - began


def patient(duration: float) -> float:
    """Return a duration for this machine, in the unit of the one for a quiet machine."""
    return duration * factor()


def grows_evenly(work: Callable[[int], object], short: int, long: int, *, slack: float, attempts: int = 8) -> bool:
    """Say whether the long input takes about as much more processor time than the short one as it is longer.

    `slack` is how many times more than that is fine: below it lies linear growth, above it the square. The least of
    several attempts counts, on both sides: whatever else the machine does can only add to a time.
    """
    least = {short: math.inf, long: math.inf}
    for _ in range(attempts):
        for size in least:
            began = time.process_time()
            work(size)
            least[size] = min(least[size], time.process_time() - began)
        if least[long] < slack * long / short * least[short]:
            return True
    return False
