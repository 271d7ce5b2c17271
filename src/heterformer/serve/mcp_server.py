"""The server's verbs for agents: a server of the Model Context Protocol, over standard input or HTTP."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import Annotated, Any, Literal

import anyio
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.transport_security import TransportSecuritySettings
from pydantic import Field, ValidationError
from starlette.routing import BaseRoute

from heterformer import __version__
from heterformer.search.options import MAX_LINK_WEIGHT
from heterformer.serve.errors import RequestError, validation_sentence
from heterformer.serve.nodes import Page
from heterformer.serve.schemas import LINK_WEIGHT
from heterformer.serve.service import Service

PATH = "/mcp"
MOST = 50  # results or neighbours in an answer: an agent reads all of it
EFFECTS = 10  # neighbours and words of an explanation
Model = Annotated[str, Field(description="The run to ask; the first one unless given.")]
Type = Annotated[str, Field(description="A node type.")]
Top = Annotated[int, Field(ge=1, le=MOST)]


class StrictServer(MCPServer[Any]):
    """Tells an agent what is wrong with its arguments in one sentence; one that no tool has is wrong too."""

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> Any:
        for tool in await self.list_tools():
            if tool.name == name:
                _check_names(arguments, tool.input_schema["properties"])
        try:
            return await super().call_tool(name, arguments, context)
        except ToolError as error:
            if not isinstance(error.__cause__, ValidationError):
                raise
            raise ToolError(validation_sentence(error.__cause__.errors()[0])) from None


def _check_names(arguments: Iterable[str], known: Iterable[str]) -> None:
    for name in arguments:
        if name not in known:
            raise ToolError(f"{name[:100]}: there is no such argument, only {', '.join(known)}.")


def make_mcp(service: Service) -> MCPServer:
    """Tools to search, to look at a node and its neighbours, and to ask why."""
    server = StrictServer("heterformer", version=__version__, instructions=_instructions(service))

    def search(
        text: Annotated[str, Field(description="What to search for.")] = "",
        neighbors: Annotated[
            dict[str, list[str]] | None,
            Field(description="Neighbours of the query, ids or names by node type."),
        ] = None,
        like: Annotated[str, Field(description="Instead of a text: a node's id or name.")] = "",
        like_type: Type = "",
        types: Annotated[list[str] | None, Field(description="The node types to rank.")] = None,
        where: Annotated[str, Field(description="A filter: time >= 2015 and label == 'nlp'.")] = "",
        top: Top = 10,
        exclude_known: bool = False,
        link_weight: Annotated[float, Field(ge=0, le=MAX_LINK_WEIGHT, description=LINK_WEIGHT)] = 0,
        model: Model = "",
    ) -> dict[str, Any]:
        """Rank nodes by a text, alone or with neighbours, or by another node."""
        near = [f"{t}={name}" for t, names in (neighbors or {}).items() for name in names]
        with _refusals():
            answer = service.search(
                model,
                text=text,
                neighbors=near,
                like=like,
                like_type=like_type,
                types=types or (),
                where=where,
                top=top,
                exclude_known=exclude_known,
                link_weight=link_weight,
            )
        return asdict(answer)

    def node(type: Type, id: str, model: Model = "") -> dict[str, Any]:
        """A node's text, labels, time and attributes, and how many neighbours it has over each relation."""
        with _refusals():
            page = service.node(model, type, id, Page(limit=0))
        del page["neighbors"]
        return page

    def neighbors(
        type: Type,
        id: str,
        relation: str = "",
        direction: Annotated[
            Literal["", "out", "in"], Field(description="out: from the node; in: to it.")
        ] = "",
        neighbor_type: Type = "",
        offset: Annotated[int, Field(ge=0, le=1 << 40)] = 0,
        limit: Top = 20,
        model: Model = "",
    ) -> dict[str, Any]:
        """The neighbours of a node, page by page, of all kinds or over one relation."""
        page = Page(neighbor_type, relation, direction, offset, limit)
        with _refusals():
            return dict(service.node(model, type, id, page)["neighbors"])

    def explain(
        node: Annotated[str, Field(description="The id or name of a node with text.")],
        type: Type = "",
        pair: Annotated[str, Field(description="Another node: explain the score of the two.")] = "",
        pair_type: Type = "",
        model: Model = "",
    ) -> dict[str, Any]:
        """What changes in a node's vector, or in its score with another, without each neighbour and word."""
        with _refusals():
            return _briefly(service.explain(model, node, type, pair=pair, pair_type=pair_type))

    for tool in (search, node, neighbors, explain):
        server.add_tool(tool)
    return server


@contextmanager
def _refusals() -> Iterator[None]:
    """What the service refuses is a sentence for the agent."""
    try:
        yield
    except RequestError as error:
        raise ToolError(str(error)) from None


def _briefly(explanation: Mapping[str, Any]) -> dict[str, Any]:
    """The effects alone, the largest of them; of a node without text the closest neighbours."""
    effects = explanation["leave_one_out"]
    if effects is None:
        return {"node": explanation["node"], "closest": explanation["closest"][:EFFECTS]}
    by_size = sorted(effects["words"], key=_size, reverse=True)
    return {**effects, "neighbors": effects["neighbors"][:EFFECTS], "words": by_size[:EFFECTS]}


def _size(effect: Mapping[str, Any]) -> float:
    score = effect["score_change"]
    return float(effect["change"] if score is None else abs(score))


def _instructions(service: Service) -> str:
    """What there is to search in: runs, node types and their columns."""
    lines = ["Search and explain nodes of heterogeneous text-rich networks by trained vectors."]
    for run in service.info()["runs"]:
        types = ", ".join(
            f"{name} ({about['nodes']:,} nodes; columns {', '.join(about['columns'])})"
            for name, about in run["types"].items()
        )
        relations = ", ".join(f"{r['name']}: {r['from']} to {r['to']}" for r in run["relations"])
        lines.append(f"Run {run['run']}: {types}. Relations: {relations}.")
    return "\n".join(lines)


def mcp_routes(server: MCPServer) -> Sequence[BaseRoute]:
    """The protocol over HTTP at ``PATH``. Any worker answers any request: there are no sessions.

    Names and origins are checked by the middleware of the whole server.
    """
    security = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    app = server.streamable_http_app(
        streamable_http_path=PATH, json_response=True, stateless_http=True, transport_security=security
    )
    return app.routes


def serve_stdio(service: Service) -> None:
    """Speak the protocol on standard input and output until the client ends."""
    try:
        anyio.run(make_mcp(service).run_stdio_async)
    finally:
        service.close()
