"""A bucket, followed on a collection's page."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.browser.following import Place
from tests.standins.bucket import ACCESS_KEY, SECRET_KEY, BucketStandin


@contextmanager
def place(folder: Path) -> Iterator[Place]:
    with BucketStandin() as bucket:
        files = bucket.files
        files["hr/bucket leave.md"] = b"# Bucket leave\n\nTwenty-eight days a year."
        files["hr/bucket travel.md"] = b"# Bucket travel\n\nBy train, second class."
        yield Place(
            name="S3-compatible storage",
            fields={
                "Address of the storage": bucket.url,
                "Bucket": "papers",
                "Folder in the bucket (leave empty for the whole bucket)": "hr",
                "Access key": ACCESS_KEY,
                "Secret key": SECRET_KEY,
            },
            wrong=("Access key", "nobody"),
            grow=lambda: files.update({"hr/bucket pay.md": b"# Bucket pay\n\nOn the 25th of a month."}),
            titles=("Bucket leave", "Bucket travel", "Bucket pay"),
            secrets=(SECRET_KEY,),
            hosts=(bucket.host,),
        )
