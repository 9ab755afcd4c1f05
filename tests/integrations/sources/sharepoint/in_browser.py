"""A library of a site, followed on a collection's page."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.browser.following import Place
from tests.integrations.sources.sharepoint.graph_standin import CLIENT, ROOT, SECRET, TENANT, GraphStandin


@contextmanager
def place(folder: Path) -> Iterator[Place]:
    folder.mkdir()
    with GraphStandin(folder) as graph:
        graph.write("HR/graph leave.md", b"# Graph leave\n\nTwenty-eight days a year.")
        graph.write("HR/graph travel.md", b"# Graph travel\n\nBy train, second class.")
        graph.permissions[ROOT] = [
            {"roles": ["read"], "grantedToV2": {"group": {"displayName": name}}} for name in ("HR", "Managers")
        ]
        yield Place(
            name="SharePoint or OneDrive",
            fields={
                "Address of the site, or e-mail address of the OneDrive's owner": (
                    "https://contoso.sharepoint.com/sites/HR"
                ),
                "Folder (leave empty for all folders)": "HR",
                "Directory (tenant) ID": TENANT,
                "Application (client) ID": CLIENT,
                "Client secret": SECRET,
            },
            wrong=("Client secret", "wrong"),
            grow=lambda: graph.write("HR/graph pay.md", b"# Graph pay\n\nOn the 25th of a month."),
            titles=("Graph leave", "Graph travel", "Graph pay"),
            groups=("HR", "Managers"),
            secrets=(SECRET,),
            hosts=(graph.host, graph.other_host),
            environment={"RAG_GRAPH_URL": graph.url, "RAG_MICROSOFT_LOGIN_URL": f"https://{graph.host}"},
            certificate=graph.certificate,
        )
