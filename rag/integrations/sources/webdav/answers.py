"""Parse a WebDAV server's folder list in the sandbox."""

from __future__ import annotations

from webdav4.multistatus import MultiStatusResponse
from webdav4.urls import URL, join_url

from rag.ingestion.loaders.sandbox_tasks import ServerAnswer, serve_answers

#: The most entries in a folder's list.
MOST_LISTED = 50_000
LONGEST_ADDRESS = 2000
EMPTY_LIST = b'<d:multistatus xmlns:d="DAV:"><d:response><d:href>/</d:href></d:response></d:multistatus>'


def read_webdav_list(content: bytes, *, base: str, folder: str) -> ServerAnswer:
    """Parse a folder list. Each entry has the path below `base`, a kind, an ETag, a size and the modification time."""
    listed = MultiStatusResponse(content.decode("utf-8", "replace"))
    responses = dict(listed.responses)
    own_response = responses.pop(join_url(URL(base), folder).path, None)
    if own_response is None or own_response.properties.resource_type == "file":
        raise ValueError("This is no folder.")
    entries = []
    for response in list(responses.values())[:MOST_LISTED]:
        properties = response.properties
        entries.append(
            {
                "name": response.path_relative_to(URL(base)).strip("/")[:LONGEST_ADDRESS],
                "is_folder": properties.resource_type == "directory",
                "size": properties.content_length or 0,
                "changed": properties.modified.isoformat() if properties.modified else None,
                # A server without ETags provides time and size.
                "etag": (properties.etag or f"{properties.modified} {properties.content_length}")[:LONGEST_ADDRESS],
            }
        )
    return {"entries": entries}, b""


def load_libraries() -> None:
    """Parse an empty list, to load all libraries before the sandbox forbids opening files."""
    read_webdav_list(EMPTY_LIST, base="https://example.com/", folder="")


if __name__ == "__main__":
    serve_answers({"WebDAV list": read_webdav_list}, load_libraries)
