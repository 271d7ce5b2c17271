"""What agents are offered, by the official client: in this process, over HTTP, and by standard input."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters

import heterformer
from heterformer.serve.mcp_server import make_mcp
from tests.learning import tiny_network
from tests.serve.serving import SECONDS, served_run, server, service


async def called(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    content: dict[str, Any] = json.loads(result.content[0].text)  # type: ignore[union-attr]
    assert result.structured_content == content
    return content


async def refused(client: Client, tool: str, **arguments: Any) -> str:
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    sentence: str = result.content[0].text  # type: ignore[union-attr]
    assert str(served_run()) not in sentence
    return sentence


async def check_tools(client: Client) -> None:
    tools = (await client.list_tools()).tools
    assert {tool.name for tool in tools} == {"search", "node", "neighbors", "explain"}
    assert all(tool.description for tool in tools)
    answer = await called(
        client, "search", text="kernel", neighbors={"author": ["a5"]}, top=2, where="time > 1990"
    )
    (first, _) = answer["rankings"][0]["hits"]
    node = await called(client, "node", type="paper", id=first["id"])
    assert node["name"] == first["name"]
    total = sum(group["total"] for group in node["relations"])
    page = await called(client, "neighbors", type="paper", id=first["id"], limit=3, offset=1)
    assert page["total"] == total
    assert len(page["items"]) == min(3, total - 1)
    why = await called(client, "explain", node=first["id"], pair="a5")
    assert why["score"] is not None
    assert len(why["neighbors"]) <= 10


def test_tools_in_this_process() -> None:
    async def run() -> None:
        async with Client(make_mcp(service())) as client:
            await check_tools(client)
            close = await called(client, "explain", node="a5")
            assert close["closest"]
            assert "there is no paper with the id 'p7x'" in await refused(
                client, "node", type="paper", id="p7x"
            )
            sentence = await refused(client, "search", text="x", where="import os")
            assert "the filter, position 8: found 'os', expected" in sentence
            assert "there is no run 'x'" in await refused(
                client, "neighbors", type="paper", id="p7", model="x"
            )
            sentence = await refused(client, "search", text="x", top=10**6)
            assert sentence == "top: Input should be less than or equal to 50."
            assert await refused(client, "explain") == "node: Field required."
            sentence = await refused(client, "search", text="x", type="author")  # it is called types
            assert sentence.startswith("type: there is no such argument, only text, neighbors, like, ")
            instructions = client.instructions or ""
            assert f"paper ({tiny_network().schema.counts['paper']} nodes" in instructions
            assert str(served_run()) not in instructions

    anyio.run(run)


def test_over_http_beside_the_other_verbs() -> None:
    async def run(address: str) -> None:
        with anyio.fail_after(SECONDS):
            async with Client(f"{address}/mcp") as client:
                await check_tools(client)
                await refused(client, "search", text="x", where="import os")

    with server(flags=("--mcp-http",)) as running, running.client() as http:
        anyio.run(run, running.address)
        assert http.get("/health").status_code == 200
        foreign = http.post("/mcp", json={}, headers={"origin": "http://elsewhere.example"})
        assert foreign.status_code == 403
    assert all(json.loads(line)["message"] for line in running.log_text.splitlines())


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX pipes")
def test_by_standard_input() -> None:
    paths = os.pathsep.join([str(Path(heterformer.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    command = StdioServerParameters(
        command=sys.executable,
        args=["-m", "heterformer", "serve", str(served_run()), "--mcp", "--device", "cpu"],
        env=dict(os.environ) | {"PYTHONPATH": paths},
    )

    async def run() -> None:
        with anyio.fail_after(SECONDS):
            async with Client(command) as client:
                await check_tools(client)

    anyio.run(run)
