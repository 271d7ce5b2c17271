"""The verbs of the server as a FastAPI application. Whatever they do, the service does."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, nullcontext
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from anyio.to_thread import current_default_thread_limiter
from fastapi import FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from numpy.typing import NDArray
from starlette.exceptions import HTTPException

from heterformer import __version__
from heterformer.search.searcher import Answer
from heterformer.serve.answers import (
    JSON_PROBLEMS,
    PROBLEMS,
    AllRecommendations,
    ExplainedNode,
    Info,
    NamedNodes,
    NodePage,
    NodeVectors,
    OpenAIAnswer,
    Reloaded,
    Status,
    Vector,
)
from heterformer.serve.api_docs import POLICY, docs_page
from heterformer.serve.deadline import Deadline
from heterformer.serve.errors import (
    InvalidError,
    RequestError,
    TooLargeError,
    UnavailableError,
    validation_sentence,
)
from heterformer.serve.explorer import add_explorer
from heterformer.serve.metrics import Metrics
from heterformer.serve.middleware import RequestMiddleware, problem
from heterformer.serve.new_nodes import NewNode
from heterformer.serve.nodes import Page
from heterformer.serve.schemas import (
    MOST,
    Explain,
    NewNodes,
    OpenAIEmbeddings,
    Recommend,
    Search,
    TEIEmbed,
    Texts,
)
from heterformer.serve.service import Service, TextEmbeddings

if TYPE_CHECKING:
    from mcp.server import MCPServer

THREADS = 64  # that wait for vectors or rank; the model has one of its own
ABOUT = "Vectors, search, nodes and explanations of a trained run."

KINDS = {404: "not_found", 405: "method_not_allowed", 400: "invalid_request"}
Offset = Annotated[int, Query(ge=0, le=1 << 40, description="Neighbours to leave out before the first.")]
Limit = Annotated[int, Query(ge=0, le=MOST, description="Neighbours at most.")]


def make_app(
    service: Service,
    metrics: Metrics,
    stopping: Callable[[], bool] = lambda: False,
    reloaded: Callable[[], None] = lambda: None,
) -> FastAPI:
    """The application. ``stopping`` says whether the server is about to end.

    ``reloaded`` is called after the runs were opened anew, for other processes that serve them.
    """

    agents = _mcp(service) if service.options.mcp_http else None

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        current_default_thread_limiter().total_tokens = THREADS
        async with agents.session_manager.run() if agents else nullcontext():
            yield

    app = FastAPI(
        title="Heterformer",
        version=__version__,
        description=ABOUT,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        responses=PROBLEMS,
    )
    app.add_middleware(RequestMiddleware, options=service.options, metrics=metrics)
    _add_errors(app)
    _add_vectors(app, service)
    _add_nodes(app, service)
    _add_operations(app, service, metrics, stopping, reloaded)
    add_explorer(app, service)
    if agents:
        from heterformer.serve.mcp_server import mcp_routes

        app.router.routes.extend(mcp_routes(agents))
    return app


def _mcp(service: Service) -> MCPServer:
    from heterformer.serve.mcp_server import make_mcp

    return make_mcp(service)


def _add_errors(app: FastAPI) -> None:
    async def refused(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, RequestError)
        headers = {"retry-after": "1"} if error.status == 429 else {}
        return JSONResponse(problem(str(error), error.error_type), error.status, headers)

    async def invalid(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, RequestValidationError)
        return JSONResponse(problem(validation_sentence(error.errors()[0]), InvalidError.error_type), 422)

    async def other(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, HTTPException)
        sentence = (
            f"{request.method} {request.url.path}: {str(error.detail).lower()}; /docs lists what there is."
        )
        kind = KINDS.get(error.status_code, "http")
        return JSONResponse(problem(sentence, kind), error.status_code, error.headers)

    app.add_exception_handler(RequestError, refused)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(HTTPException, other)


def _add_vectors(app: FastAPI, service: Service) -> None:
    @app.post("/v1/embeddings", response_model=OpenAIAnswer)
    def openai_embeddings(request: Request, form: OpenAIEmbeddings) -> JSONResponse:
        """Vectors of texts, in OpenAI's form."""
        embedded = service.embed(form.model, _listed(form.input), deadline=_deadline(request))
        vectors = _first_dimensions(embedded, form.dimensions, renormalize=embedded.is_normalized)
        data = [
            {"object": "embedding", "index": i, "embedding": _openai_vector(vector, form.encoding_format)}
            for i, vector in enumerate(vectors)
        ]
        read = sum(min(tokens, embedded.max_tokens) for tokens in embedded.tokens)
        usage = {"prompt_tokens": read, "total_tokens": read}
        return JSONResponse({"object": "list", "model": embedded.run, "data": data, "usage": usage})

    @app.post("/embed", response_model=list[Vector])
    def tei_embed(request: Request, form: TEIEmbed) -> JSONResponse:
        """Vectors of texts, in the form of Text Embeddings Inference."""
        embedded = service.embed(form.model, _listed(form.inputs), deadline=_deadline(request))
        longest = max(embedded.tokens, default=0)
        if not form.truncate and longest > embedded.max_tokens:
            limit = f"the model reads {embedded.max_tokens}; set truncate to true"
            raise TooLargeError(f"a text has {longest} tokens, {limit}.")
        vectors = _first_dimensions(embedded, form.dimensions, renormalize=form.normalize)
        return JSONResponse(vectors.tolist())

    @app.post("/nodes", response_model=NodeVectors)
    def embed_nodes(request: Request, form: NewNodes) -> JSONResponse:
        """Vectors of nodes that the network does not have; it stays as it is."""
        nodes = [NewNode(node.text, node.neighbors, node.type) for node in form.nodes]
        embedded = service.embed_nodes(form.model, nodes, deadline=_deadline(request))
        pairs = zip(form.nodes, embedded.vectors.tolist(), strict=True)
        return JSONResponse({"model": embedded.run, "nodes": [{"id": n.id, "vector": v} for n, v in pairs]})

    @app.post("/search", response_model=Answer)
    def search(request: Request, form: Search) -> JSONResponse:
        """Nodes ranked by a text, alone or with neighbours, or by another node."""
        query = form.model_dump(exclude={"model", "neighbors"})
        query["neighbors"] = [f"{t}={name}" for t, names in form.neighbors.items() for name in names]
        return JSONResponse(asdict(service.search(form.model, **query, deadline=_deadline(request))))

    @app.post("/recommend", response_model=AllRecommendations)
    def recommend(request: Request, form: Recommend) -> JSONResponse:
        """What to recommend to users, or to somebody who has some items: for each a ranking of nodes."""
        query = form.model_dump(exclude={"model", "users"})
        answers = service.recommend(form.model, _listed(form.users), **query, deadline=_deadline(request))
        return JSONResponse({"recommendations": [asdict(answer) for answer in answers]})


def _add_nodes(app: FastAPI, service: Service) -> None:
    @app.get("/nodes", response_model=NamedNodes)
    def nodes_named(
        q: Annotated[
            str, Query(min_length=1, max_length=200, description="What names begin with or contain.")
        ],
        type: Annotated[str, Query(description="Nodes of this type only.")] = "",
        limit: Annotated[int, Query(ge=1, le=MOST)] = 10,
        model: str = "",
    ) -> JSONResponse:
        """Nodes by the letters of their names."""
        return JSONResponse({"nodes": service.nodes_named(model, q, type, limit)})

    @app.get("/nodes/{node_type}/{node_id:path}", response_model=NodePage)
    def node(
        node_type: str,
        node_id: str,
        neighbor_type: Annotated[str, Query(description="Neighbours of this type only.")] = "",
        relation: Annotated[str, Query(description="Neighbours over this relation only.")] = "",
        direction: Annotated[
            Literal["", "out", "in"], Query(description="out: from the node; in: to it.")
        ] = "",
        offset: Offset = 0,
        limit: Limit = 50,
        model: str = "",
    ) -> JSONResponse:
        """A node: its columns, the number of its neighbours over each relation, and a page of them."""
        page = Page(neighbor_type, relation, direction, offset, limit)
        return JSONResponse(service.node(model, node_type, node_id, page))

    @app.post("/explain", response_model=ExplainedNode)
    def explain(request: Request, form: Explain) -> JSONResponse:
        """Why a node's vector, or the score of two, is what it is.

        Attention and neighbours' shares, and what changes without each neighbour, kind of neighbour and word.
        """
        answer = service.explain(
            form.model,
            form.node,
            form.type,
            pair=form.pair,
            pair_type=form.pair_type,
            queries=form.queries,
            effects=form.leave_one_out,
            deadline=_deadline(request),
        )
        return JSONResponse(answer)


def _add_operations(
    app: FastAPI,
    service: Service,
    metrics: Metrics,
    stopping: Callable[[], bool],
    reloaded: Callable[[], None],
) -> None:
    @app.get("/info", response_model=Info)
    def info() -> JSONResponse:
        """The runs, their types and columns, and the limits of requests."""
        return JSONResponse(service.info())

    @app.get("/health", response_model=Status)
    async def health() -> JSONResponse:
        """Whether the server runs."""
        return JSONResponse({"status": "ok"})

    @app.get("/ready", response_model=Status)
    async def ready() -> JSONResponse:
        """Whether it takes requests: not while it stops."""
        if stopping():
            raise UnavailableError("the server is stopping.")
        return JSONResponse({"status": "ready"})

    @app.get("/metrics", response_class=PlainTextResponse, responses=JSON_PROBLEMS)
    async def prometheus() -> Response:
        """Counters for Prometheus."""
        metrics.waiting.set(service.batches.waiting)
        return Response(metrics.page(), media_type="text/plain; version=0.0.4")

    @app.post("/admin/reload", response_model=Reloaded)
    def reload() -> JSONResponse:
        """Take runs and vectors that were made anew; requests under way are not disturbed."""
        try:
            runs = service.reload()
        except RequestError:
            metrics.reloads.labels("failed").inc()
            raise
        metrics.reloads.labels("done").inc()
        reloaded()
        return JSONResponse(runs)

    @app.get("/docs", include_in_schema=False)
    async def docs() -> HTMLResponse:
        return HTMLResponse(docs_page(app.openapi()), headers={"content-security-policy": POLICY})


def _deadline(request: Request) -> Deadline:
    deadline = request.state.deadline
    assert isinstance(deadline, Deadline)
    return deadline


def _listed(texts: Texts) -> list[str]:
    return [texts] if isinstance(texts, str) else texts


def _first_dimensions(
    embedded: TextEmbeddings, dimensions: int | None, renormalize: bool
) -> NDArray[np.float32]:
    """The first numbers of each vector, of length 1 if asked for."""
    width = embedded.vectors.shape[1]
    if dimensions is not None and dimensions > width:
        raise InvalidError(f"dimensions is {dimensions}, the model's vectors have {width} numbers.")
    vectors = embedded.vectors[:, : dimensions or width]
    if not renormalize:
        return vectors
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return (vectors / np.where(lengths > 0, lengths, 1)).astype(np.float32)


def _openai_vector(vector: NDArray[np.float32], encoding: str) -> list[float] | str:
    if encoding == "base64":
        return base64.b64encode(vector.astype("<f4").tobytes()).decode()
    return [float(number) for number in vector]
