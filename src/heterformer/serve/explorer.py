"""The explorer: one page and its modules, all from this package, and the data that only it asks for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Annotated

from fastapi import FastAPI, Query
from fastapi.responses import JSONResponse, Response

from heterformer.search.searcher import NamedNode
from heterformer.serve.answers import JSON_PROBLEMS, ComparedPair, MapAnswer, MapColors, MapPlaces
from heterformer.serve.schemas import Pair, PlacesRequest
from heterformer.serve.service import Service

PREFIX = "/static/"
MEDIA = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
# Nothing from elsewhere, no inline script or style, no code made of strings.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {"content-security-policy": POLICY, "cache-control": "no-cache"}
MOST_POINTS = 500_000  # in an answer


class BytesResponse(Response):
    """Numbers as they are in memory."""

    media_type = "application/octet-stream"


def is_static(path: str) -> bool:
    """Whether a path is a file of the page, which tells nothing of any run and needs no key."""
    return path == "/" or path.startswith(PREFIX)


def add_explorer(app: FastAPI, service: Service) -> None:
    """The page at /, its files, and its data."""
    assets = dict(_assets(files("heterformer.serve") / "static"))

    def asset(name: str) -> Response:
        if name not in assets:
            return JSONResponse({"error": f"there is no file {name!r}.", "error_type": "not_found"}, 404)
        file = assets[name]
        return Response(file.read_bytes(), media_type=MEDIA[_suffix(file)], headers=HEADERS)

    @app.get("/", include_in_schema=False)
    def page() -> Response:
        return asset("index.html")

    @app.get(f"{PREFIX}{{name:path}}", include_in_schema=False)
    def static(name: str) -> Response:
        return asset(name)

    _add_map(app, service)

    @app.post("/pair", response_model=ComparedPair)
    def pair(form: Pair) -> JSONResponse:
        """Two nodes side by side: how alike their vectors are, and the neighbours that both have."""
        return JSONResponse(service.pair(form.model, form.one.key, form.other.key))


def _add_map(app: FastAPI, service: Service) -> None:
    @app.get("/map", response_model=MapAnswer)
    def describe(model: str = "") -> JSONResponse:
        """The map of all nodes: regions, and what it can be coloured by. It is made when first asked for."""
        with service.map_data(model) as data:
            return JSONResponse(data.describe())

    @app.get("/map/points", response_class=BytesResponse, responses=JSON_PROBLEMS)
    def points(
        offset: Annotated[int, Query(ge=0, le=1 << 40)] = 0,
        limit: Annotated[int, Query(ge=1, le=MOST_POINTS)] = MOST_POINTS,
        box: Annotated[list[int], Query(description="Only points within left, bottom, right, top.")] = [],  # noqa: B006
        model: str = "",
    ) -> Response:
        """Points in random order, 8 bytes each: the node's number (32 bits), x and y (16 bits each)."""
        with service.map_data(model) as data:
            return BytesResponse(data.points(offset, limit, box))

    @app.get("/map/colors", response_model=MapColors)
    def colors(by: str = "type", model: str = "") -> JSONResponse:
        """A colour for each node by its type, label or another column: a legend, and a byte for each."""
        with service.map_data(model) as data:
            return JSONResponse(data.colors(by))

    @app.get("/map/nodes/{number}", response_model=NamedNode)
    def node(number: int, model: str = "") -> JSONResponse:
        """The node of a number."""
        with service.map_data(model) as data:
            return JSONResponse(asdict(data.node(number)))

    @app.post("/map/places", response_model=MapPlaces)
    def places(form: PlacesRequest) -> JSONResponse:
        """Where nodes are on the map, by type and id."""
        with service.map_data(form.model) as data:
            return JSONResponse({"places": data.find([node.key for node in form.nodes])})


def _assets(folder: Traversable, prefix: str = "") -> Iterator[tuple[str, Traversable]]:
    """The files by their names below ``folder``: no other name is ever looked up."""
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _assets(entry, f"{prefix}{entry.name}/")
        elif _suffix(entry) in MEDIA:
            yield prefix + entry.name, entry


def _suffix(file: Traversable) -> str:
    return file.name[file.name.rfind(".") :]
