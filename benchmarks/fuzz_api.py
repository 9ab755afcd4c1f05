"""Throws bodies at every route of the running product and reads its log: `python -m benchmarks.fuzz_api`.

10,000 of them, nearly right or not at all. Passes when nothing is answered with 500 or more and no traceback is logged.
"""

from __future__ import annotations

import argparse
import collections
import random
import tempfile
from pathlib import Path
from uuid import uuid4

import httpx

from benchmarks.leak_calls import PARAMETER
from benchmarks.product import Product
from rag.server import API_ROUTES
from tests.api.bodies_at_random import random_body


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bodies", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    chance = random.Random(arguments.seed)
    routes = [(route.method, route.path) for route in API_ROUTES if route.method != "GET"]
    statuses: collections.Counter[int] = collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        product = Product(Path(folder))
        product.start()
        cookie = product.sign_in_admin()
        try:
            with httpx.Client(base_url=product.url, headers={"Cookie": cookie}, timeout=60) as caller:
                collection = caller.get("/api/collections").json()["collections"][0]["id"]
                known = {"collection_id": collection}
                for _ in range(arguments.bodies):
                    method, path = chance.choice(routes)
                    path = PARAMETER.sub(lambda m: known.get(m[1], str(uuid4())), path)
                    content, kind = random_body(chance)
                    answer = caller.request(method, path, content=content, headers={"Content-Type": kind})
                    statuses[answer.status_code] += 1
                    if answer.status_code >= 500:
                        print(method, path, kind, content[:200], answer.text[:300])
        finally:
            product.stop()
        logged = product.log()
    tracebacks = logged.count("Traceback (most recent call last)")
    print(
        f"{arguments.bodies:,} bodies to {len(routes)} routes: "
        + ", ".join(f"{s}: {n:,}" for s, n in sorted(statuses.items()))
    )
    print(f"  tracebacks in the log: {tracebacks}")
    return 1 if tracebacks or any(status >= 500 for status in statuses) else 0


if __name__ == "__main__":
    raise SystemExit(main())
