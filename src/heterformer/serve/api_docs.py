"""The page at /docs: the OpenAPI document as plain HTML, without scripts and without other servers."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}"
    "h2{margin-top:2rem}h3{margin-bottom:0}li{margin:.2rem 0}"
    "code{font-size:14px;overflow-wrap:anywhere}:root{color-scheme:light dark}"
)
_STYLE_DIGEST = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
POLICY = f"default-src 'none'; frame-ancestors 'none'; style-src 'sha256-{_STYLE_DIGEST}'"
JSON = "application/json"
Schema = Mapping[str, Any]


def docs_page(document: Schema) -> str:
    """Every verb with its parameters, the form of its body and that of its answer."""
    verbs = [
        _verb(path, method, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]
    forms = [_form(name, schema) for name, schema in sorted(document["components"]["schemas"].items())]
    title = escape(f"{document['info']['title']} {document['info']['version']}")
    head = (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title><style>{STYLE}</style>'
    )
    viewport = '<meta name="viewport" content="width=device-width">'
    about = f"<p>{escape(document['info'].get('description', ''))}</p>"
    source = '<p>The same for programs: <a href="/openapi.json">openapi.json</a></p>'
    problems = f"<p>Every error is a {_link('Problem')}.</p>"
    introduction = f"{head}{viewport}<h1>{title}</h1>{about}{source}{problems}"
    return f"{introduction}{''.join(verbs)}<h2>Forms</h2>{''.join(forms)}"


def _verb(path: str, method: str, operation: Schema) -> str:
    parts = [f"<h2><code>{escape(method.upper())} {escape(path)}</code></h2>"]
    parts.append(f"<p>{escape(operation.get('description') or operation.get('summary', ''))}</p>")
    parameters = operation.get("parameters", [])
    parts.append(_fields((p["name"], p["schema"] | p, p.get("required", False)) for p in parameters))
    if body := operation.get("requestBody"):
        parts.append(f"<p>Body: {_type(body['content'][JSON]['schema'])}</p>")
    for media, content in operation["responses"]["200"].get("content", {}).items():
        what = _type(content["schema"]) if media == JSON else f"<code>{escape(media)}</code>"
        parts.append(f"<p>Answer: {what}</p>")
    return "".join(parts)


def _form(name: str, schema: Schema) -> str:
    required = schema.get("required", ())
    fields = _fields((field, about, field in required) for field, about in schema["properties"].items())
    description = escape(schema.get("description", "").replace("``", ""))
    return f'<h3 id="{escape(name)}">{escape(name)}</h3><p>{description}</p>{fields}'


def _fields(fields: Iterable[tuple[str, Schema, bool]]) -> str:
    """A list of names, types, defaults and what they mean."""
    items = []
    for name, schema, is_required in fields:
        default = "" if is_required else f", {escape(json.dumps(schema.get('default')))} unless given"
        description = f" · {escape(schema['description'])}" if schema.get("description") else ""
        items.append(f"<li><code>{escape(name)}</code> {_type(schema)}{default}{description}")
    return f"<ul>{''.join(items)}</ul>" if items else ""


def _type(schema: Schema) -> str:
    """What a value is, in words."""
    if "$ref" in schema:
        return _link(schema["$ref"].rpartition("/")[2])
    if "anyOf" in schema:
        return " or ".join(map(_type, schema["anyOf"]))
    if "enum" in schema or "const" in schema:
        values = schema.get("enum", [schema.get("const")])
        return " or ".join(f"<code>{escape(json.dumps(value))}</code>" for value in values)
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    if schema.get("type") == "object":
        values = schema.get("additionalProperties")
        return f"object of {_type(values)} by name" if isinstance(values, Mapping) else "object"
    limits = ((word, schema.get(key)) for word, key in (("from", "minimum"), ("to", "maximum")))
    bounds = "".join(f" {word} {limit:,.0f}" for word, limit in limits if limit is not None)
    return escape(schema.get("type", "anything")) + bounds


def _link(name: str) -> str:
    return f'<a href="#{escape(name)}">{escape(name)}</a>'
