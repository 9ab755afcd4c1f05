"""A folder of a cloud, followed on a collection's page."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.browser.following import Place
from tests.integrations.sources.webdav.cloud_standin import PASSWORD, USER, Cloud


@contextmanager
def place(folder: Path) -> Iterator[Place]:
    with Cloud(folder) as cloud:
        cloud.write("HR/cloud leave.md", "# Cloud leave\n\nTwenty-eight days a year.")
        cloud.write("HR/cloud travel.md", "# Cloud travel\n\nBy train, second class.")
        yield Place(
            name="Nextcloud or WebDAV",
            fields={
                "Address of the server": f"http://{cloud.host}",
                "Folder (leave empty for all folders)": "HR",
                "Name of the account": USER,
                "App password": PASSWORD,
            },
            wrong=("App password", "wrong"),
            grow=lambda: cloud.write("HR/cloud pay.md", "# Cloud pay\n\nOn the 25th of a month."),
            titles=("Cloud leave", "Cloud travel", "Cloud pay"),
            secrets=(PASSWORD,),
            hosts=(cloud.host,),
        )
