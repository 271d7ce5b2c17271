"""The forms of answers, which the OpenAPI document shows. What the library answers is its own dataclasses."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from heterformer.explanation.core import CloseNeighbor, Layer, ReadoutPart, VirtualToken
from heterformer.explanation.effects import KindEffect, NeighborEffect, WordEffect
from heterformer.maps.coloring import ColorKey
from heterformer.recommendation.core import Recommendations
from heterformer.search.searcher import NamedNode

Vector = list[float]
Direction = Literal["out", "in"]


class Answered(BaseModel):
    """An answer of ours: it has these fields and no others."""

    model_config = ConfigDict(extra="forbid", protected_namespaces=())


class Problem(Answered):
    """Every error: one sentence, and its kind."""

    error: str
    error_type: str


Responses = dict[int | str, dict[str, Any]]
STATUSES = (400, 401, 403, 404, 408, 413, 422, 429, 503)
PROBLEMS: Responses = {status: {"model": Problem} for status in STATUSES}
# For a verb whose own answer is not JSON: FastAPI documents a model in the form of that.
JSON_PROBLEMS: Responses = {
    status: {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Problem"}}}}
    for status in STATUSES
}


class OpenAIVector(Answered):
    """The vector of one text."""

    object: Literal["embedding"]
    index: int = Field(description="The place of the text in the request, from 0.")
    embedding: Vector | str = Field(description="Numbers, or the base64 of little-endian 32-bit floats.")


class OpenAIUsage(Answered):
    """Tokens that were read."""

    prompt_tokens: int
    total_tokens: int


class OpenAIAnswer(Answered):
    """OpenAI's form."""

    object: Literal["list"]
    model: str = Field(description="The run.")
    data: list[OpenAIVector]
    usage: OpenAIUsage


class NodeVector(Answered):
    """The vector of a new node."""

    id: str = Field(description="As it was sent.")
    vector: Vector


class NodeVectors(Answered):
    """Vectors of new nodes, in the order of the request."""

    model: str = Field(description="The run.")
    nodes: list[NodeVector]


class AllRecommendations(Answered):
    """A ranking for each user."""

    recommendations: list[Recommendations]


class NamedNodes(Answered):
    """Nodes by their names."""

    nodes: list[NamedNode]


class RelationCount(Answered):
    """How many neighbours a node has over a relation."""

    relation: str
    direction: Direction = Field(description="out: from the node; in: to it.")
    neighbor_type: str
    total: int


class NeighborItem(Answered):
    """A neighbour, once per edge."""

    node_type: str
    id: str
    name: str
    relation: str
    direction: Direction


class NeighborPage(Answered):
    """A page of neighbours."""

    total: int = Field(description="On all pages.")
    offset: int
    limit: int
    items: list[NeighborItem]


class NodePage(Answered):
    """A node: its columns, the number of its neighbours over each relation, and a page of them."""

    node_type: str
    id: str
    name: str
    text: str | None
    label: list[str]
    time: float | None
    attributes: dict[str, Any] = Field(description="Kept columns.")
    relations: list[RelationCount]
    neighbors: NeighborPage


class LeaveOneOutEffects(Answered):
    """What changes without each input."""

    node: NamedNode
    pair: NamedNode | None
    score: float | None = Field(description="The inner product of the two vectors.")
    kinds: list[KindEffect] = Field(description="The largest effect first.")
    neighbors: list[NeighborEffect] = Field(description="The largest effect first.")
    words: list[WordEffect] = Field(description="In the order of the text.")


class ExplainedNode(Answered):
    """An explanation. Attention is that of Heterformer's models; nodes without text have ``closest``."""

    run: str
    node: NamedNode
    leave_one_out: LeaveOneOutEffects | None
    warm_up: bool = False
    queries: Literal["cls", "all"] = Field(default="all", description="The tokens whose attention is shown.")
    tokens: list[str] = []
    layers: list[Layer] = []
    virtual_tokens: list[VirtualToken] = []
    readout: list[ReadoutPart] = []
    edges: int = Field(default=0, description="Of a node without text, those to nodes with text.")
    closest: list[CloseNeighbor] = Field(default=[], description="Of a node without text.")


class TypeInfo(Answered):
    """A node type."""

    nodes: int
    text: bool = Field(description="Whether its nodes have text.")
    columns: list[str] = Field(description="What a filter may name.")
    attributes: list[str] = Field(description="Kept columns.")
    labels: str | None = Field(description="single or multi, if there are any.")
    searchable: bool = Field(description="Whether its nodes have vectors.")
    recall: float | None = Field(description="Of an approximate index, once it was searched.")


class RelationInfo(Answered):
    """A relation between two node types."""

    name: str
    source: str = Field(alias="from")
    target: str = Field(alias="to")


class RunInfo(Answered):
    """A run that is served."""

    run: str
    model: str = Field(description="The kind of model.")
    network: str
    dimensions: int = Field(description="Numbers of a vector.")
    max_tokens: int = Field(description="Of a text that are read.")
    normalized: bool = Field(description="Whether vectors have length 1.")
    predict: str | dict[str, float] = Field(
        description="The predicted relation, or several with their shares."
    )
    types: dict[str, TypeInfo]
    relations: list[RelationInfo]


class Info(Answered):
    """The runs and the limits of requests."""

    version: str
    runs: list[RunInfo]
    limits: dict[str, float]


class Status(Answered):
    """That the server runs, or takes requests."""

    status: Literal["ok", "ready"]


class Reloaded(Answered):
    """Runs that were opened anew."""

    runs: list[str]
    seconds: float


class SharedNeighbors(Answered):
    """Neighbours of one type that both nodes have."""

    type: str
    total: int
    nodes: list[NamedNode] = Field(description="The first of them.")


class ComparedPair(Answered):
    """Two nodes side by side."""

    score: float = Field(description="The inner product of their vectors.")
    cosine: float
    above: float | None = Field(description="The share of nodes of the other's type that score lower.")
    linked: bool
    shared: list[SharedNeighbors]


class MapType(Answered):
    """Nodes of a type have the numbers from ``offset`` on."""

    type: str
    offset: int
    nodes: int


class MapRegion(Answered):
    """Where many nodes are, and the words that tell them from the rest."""

    x: int
    y: int
    words: list[str]
    nodes: int
    level: int = Field(description="0 is the coarsest.")


class MapAnswer(Answered):
    """The map of all nodes."""

    status: Literal["ready", "working", "failed"]
    error: str = ""
    nodes: int
    extent: int = Field(description="Coordinates are whole numbers up to this.")
    types: list[MapType]
    colors: list[str] = Field(description="What it can be coloured by.")
    regions: list[MapRegion]


class MapColors(Answered):
    """A colour for each node."""

    by: str
    kind: Literal["categories", "numbers"]
    keys: list[ColorKey]
    codes: str = Field(description="The base64 of a byte for each node, in the order of their numbers.")


class MapPlace(Answered):
    """Where a node is."""

    number: int
    x: int
    y: int


class MapPlaces(Answered):
    """Places in the order of the request; null for nodes that are not on the map."""

    places: list[MapPlace | None]
