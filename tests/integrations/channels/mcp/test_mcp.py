"""The Model Context Protocol, spoken by the protocol's own client."""

from __future__ import annotations

import base64
import os
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

from rag.types import Role
from tests.api.callers import Api
from tests.forked import forked_python
from tests.patience import patient
from tests.standins.providers import ProviderStandin

QUESTION = "How many days of annual leave do employees have?"
ANSWER = "Employees have 25 days of annual leave [1]."


@asynccontextmanager
async def connected(api: Api, secret: str) -> AsyncIterator[Client]:
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {secret}"}, timeout=patient(20)) as http,
        Client(streamable_http_client(f"{api.url}/mcp", http_client=http)) as client,
    ):
        yield client


def run(api: Api, act: Callable[[Client], Coroutine[Any, Any, None]], *scopes: str) -> None:
    async def main() -> None:
        async with connected(api, api.key(*scopes)) as client:
            await act(client)

    anyio.run(main)


def test_tools_search_ask_list_and_open(api: Api, provider_standin: ProviderStandin) -> None:
    document = api.ready_document()
    provider_standin.reply(ANSWER)
    link = f"{api.url}/api/documents/{document.id}/file#page=1"

    async def act(client: Client) -> None:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert set(tools) == {"search", "ask", "list_documents", "open_page"}
        assert all(tool.annotations and tool.annotations.read_only_hint for tool in tools.values())
        found = (await client.call_tool("search", {"query": QUESTION, "limit": 2})).structured_content
        assert found["collection"] == api.collection.name
        assert found["passages"][0]["link"] == link
        assert len(found["passages"]) <= 2
        answer = (await client.call_tool("ask", {"question": QUESTION})).structured_content
        assert (answer["answer"], answer["outcome"]) == (ANSWER, "answered")
        assert [(source["number"], source["link"]) for source in answer["sources"]] == [(1, link)]
        listed = (await client.call_tool("list_documents", {"text": document.file_name})).structured_content
        assert [item["document_id"] for item in listed["documents"]] == [str(document.id)]
        opened = await client.call_tool("open_page", {"document_id": str(document.id), "picture": True})
        assert "25 days of paid leave" in opened.structured_content["text"]
        picture = opened.content[1]
        assert picture.type == "image"
        assert base64.b64decode(picture.data).startswith(b"\x89PNG")

    run(api, act)
    assert api.outcomes()[-1] == "answered"


def test_what_became_of_an_answer_reaches_the_program(api: Api, provider_standin: ProviderStandin) -> None:
    api.ready_document()
    provider_standin.reply(f"{ANSWER} Each of them gets 3 company cars [1].", finish_reason="length")

    async def act(client: Client) -> None:
        answer = (await client.call_tool("ask", {"question": QUESTION})).structured_content
        assert (answer["outcome"], answer["state"]) == ("perhaps", "cut")
        assert answer["notices"] == ["The answer reached its length limit and ends here."]
        assert answer["unsupported"] == ["Each of them gets 3 company cars"]

    run(api, act)


def test_documents_are_resources(api: Api) -> None:
    document = api.ready_document()

    async def act(client: Client) -> None:
        (resource,) = (await client.list_resources()).resources
        assert (resource.title, resource.uri) == (document.title, f"document://{document.id}")
        (contents,) = (await client.read_resource(resource.uri)).contents
        assert "[Page 1]" in str(contents)
        (template,) = (await client.list_resource_templates()).resource_templates
        assert template.uri_template == "document://{id}"
        with pytest.raises(MCPError, match="resources/list"):
            await client.read_resource("document://something")

    run(api, act, "documents:read")


@pytest.mark.parametrize(
    ("tool", "arguments", "sentence"),
    [
        ("search", {"query": "x", "limit": 99}, "limit"),
        ("search", {"query": "x", "topK": 5}, "topK"),
        ("ask", {"question": "   "}, "question"),
        ("ask", {"question": "x", "collection": "nowhere"}, "no such collection"),
        ("open_page", {"document_id": "7"}, "document_id"),
        ("open_page", {"document_id": "00000000-0000-4000-8000-000000000000"}, "does not exist"),
        ("list_documents", {"offset": -1}, "offset"),
    ],
)
def test_wrong_arguments_get_a_sentence(api: Api, tool: str, arguments: dict[str, Any], sentence: str) -> None:
    async def act(client: Client) -> None:
        refused = await client.call_tool(tool, arguments)
        assert refused.is_error
        assert sentence in str(refused.content[0])

    run(api, act)


def test_a_key_may_do_what_its_scopes_say(api: Api) -> None:
    async def act(client: Client) -> None:
        refused = await client.call_tool("ask", {"question": QUESTION})
        assert refused.is_error
        assert "scope chat" in str(refused.content[0])
        assert not (await client.call_tool("search", {"query": QUESTION})).is_error

    run(api, act, "search")


def test_nobody_comes_in_without_a_key_of_ours(api: Api) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    accepted = {"Accept": "application/json, text/event-stream"}
    for caller in (api.client(**accepted), api.client("rag_wrong", **accepted)):
        answer = caller.post("/mcp", json=body)
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"].startswith("Bearer resource_metadata=")
    elsewhere = api.client(Origin="https://evil.example.com", **accepted)
    elsewhere.cookies.set("hr_session", api.session(Role.ADMIN))
    assert elsewhere.post("/mcp", json=body).status_code == 403


def test_a_program_on_this_machine_speaks_by_standard_input_and_output(tmp_path: Path) -> None:
    """It has neither an account nor a key, and asks, searches and reads all the same."""
    environment = {"RAG_DATA_DIR": str(tmp_path / "data"), "RAG_BUILTIN_EMBEDDER": "lexical"}
    note = tmp_path / "parking.txt"
    note.write_text("Bicycles are parked in the cellar. Cars are parked on level two.")

    async def main() -> None:
        server = StdioServerParameters(command=sys.executable, args=["-m", "rag", "mcp"], env=environment)
        async with Client(stdio_client(server)) as client:
            assert client.server_info is not None
            assert client.server_info.name == "hr-assistant"
            listed = (await client.call_tool("list_documents", {})).structured_content
            assert listed["total"] == 0
        command = [*forked_python(), "-m", "rag", "ingest", str(note)]
        await anyio.run_process(command, env={**os.environ, **environment})
        async with Client(stdio_client(server)) as client:
            asked = (await client.call_tool("ask", {"question": "Where are cars parked?"})).structured_content
            # By words alone, a question of two words is never quite sure of its answer.
            assert asked["outcome"] == "perhaps"
            assert "level two" in asked["answer"]
            assert [source["title"] for source in asked["sources"]] != []
            found = (await client.call_tool("search", {"query": "cars"})).structured_content
            assert "level two" in found["passages"][0]["text"]
            page = {"document_id": found["passages"][0]["document_id"], "page": 1}
            assert "cellar" in (await client.call_tool("open_page", page)).structured_content["text"]

    anyio.run(main)


def test_no_line_is_held_open_for_nothing(api: Api) -> None:
    """Nothing is ever sent unasked, so a stream of it would only hold a connection."""
    caller = api.client(api.key("search"), Accept="text/event-stream")
    assert caller.get("/mcp").status_code == 405
    assert caller.delete("/mcp").status_code == 405
