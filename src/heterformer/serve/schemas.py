"""The forms of requests. What is in them is checked here; how much of it, by the service."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from heterformer.search.options import MAX_LINK_WEIGHT

Texts = str | list[str]
MOST = 1000  # results or neighbours in an answer
LINK_WEIGHT = "How much a node's links count: 0 for what is closest, 1 for what a link is most likely to."
Model = Annotated[str, Field(description="The run to ask, by its folder's name; the first one unless given.")]


class Body(BaseModel):
    """The body of a request, with texts that are Unicode: JSON can spell half a letter."""

    model_config = ConfigDict(protected_namespaces=())

    @model_validator(mode="before")
    @classmethod
    def _check_unicode(cls, values: Any) -> Any:
        if isinstance(values, bytes):
            raise ValueError("expected JSON, sent with the header 'Content-Type: application/json'")
        try:
            json.dumps(values, ensure_ascii=False).encode()
        except (UnicodeEncodeError, RecursionError):
            raise ValueError("a text is not valid Unicode, or the JSON is nested too deeply") from None
        return values


class StrictBody(Body):
    """The body of a request in a form of our own: a field that it does not have is an error."""

    model_config = ConfigDict(extra="forbid")


class OpenAIEmbeddings(Body):
    """OpenAI's form. Fields that have no meaning here are ignored, as clients send some of their own."""

    input: Texts = Field(description="A text or a list of texts.")
    model: Model = ""
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: int | None = Field(default=None, ge=1, description="Only the first numbers of each vector.")


class TEIEmbed(Body):
    """The form of Text Embeddings Inference."""

    inputs: Texts = Field(description="A text or a list of texts.")
    model: Model = ""
    normalize: bool = Field(default=True, description="Bring vectors to length 1.")
    truncate: bool = Field(default=True, description="Cut texts that are too long; else they are refused.")
    dimensions: int | None = Field(default=None, ge=1, description="Only the first numbers of each vector.")


class Search(StrictBody):
    """A text, with or without neighbours, or a node to search with."""

    model: Model = ""
    text: str = ""
    neighbors: dict[str, list[str]] = Field(default={}, description="Ids or names by node type.")
    like: str = Field(default="", description="Instead of a text: the id or name of a node.")
    like_type: str = ""
    types: list[str] = Field(default=[], max_length=MOST, description="The node types to rank.")
    where: str = Field(default="", description="A filter: year >= 2015 and venue == 'ACL'.")
    top: int = Field(default=10, ge=1, le=MOST)
    exclude_known: bool = False
    link_weight: float = Field(default=0, ge=0, le=MAX_LINK_WEIGHT, description=LINK_WEIGHT)
    index: Literal["auto", "exact", "approximate"] = "auto"


class Recommend(StrictBody):
    """Users, or the items of one who is not in the network, and what to recommend."""

    model: Model = ""
    users: Texts = Field(default=[], description="The id or name of a user, or several.")
    likes: list[str] = Field(default=[], description="Instead: items of somebody new.")
    type: str = Field(default="", description="The node type to recommend.")
    top: int = Field(default=10, ge=1, le=MOST)
    exclude_known: bool = Field(default=True, description="Leave out what a user is linked to already.")
    link_weight: Annotated[float, Field(ge=0, le=MAX_LINK_WEIGHT)] | Literal["auto"] = Field(
        default="auto", description=f"{LINK_WEIGHT} auto: as far as training has not corrected for them."
    )
    where: str = Field(default="", description="A filter: year >= 2015 and venue == 'ACL'.")


class NewNode(StrictBody):
    """A node that the network does not have."""

    id: str = Field(default="", description="Comes back with the vector.")
    type: str = Field(default="", description="Its node type; without one, that which texts are read as.")
    text: str | None = Field(default=None, description="Of a type without text: none.")
    neighbors: dict[str, list[str]] = Field(
        default={}, description="Ids or names by node type; of a node without text, some with text."
    )


class NewNodes(StrictBody):
    """Nodes to embed; the network stays as it is."""

    model: Model = ""
    nodes: list[NewNode]


class Explain(StrictBody):
    """A node whose vector to explain, or, with another one, the score of the two."""

    model: Model = ""
    node: str = Field(min_length=1, description="Its id or name.")
    type: str = ""
    pair: str = Field(default="", description="Another node's id or name: effects on the score of the two.")
    pair_type: str = ""
    queries: Literal["auto", "cls", "all"] = "auto"
    leave_one_out: bool = Field(default=True, description="What changes without each neighbour and word.")


class NodeKey(StrictBody):
    """A node by its type and id."""

    type: str
    id: str

    @property
    def key(self) -> tuple[str, str]:
        return self.type, self.id


class Pair(StrictBody):
    """Two nodes to compare."""

    model: Model = ""
    one: NodeKey
    other: NodeKey


class PlacesRequest(StrictBody):
    """Nodes to find on the map."""

    model: Model = ""
    nodes: list[NodeKey] = Field(max_length=MOST)
