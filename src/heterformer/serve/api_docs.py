"""The page at /docs: the OpenAPI document as plain HTML, without scripts and without other servers."""

from __future__ import annotations

import base64
import hashlib
import json
from html import escape
from typing import Any

STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}"
    "pre{overflow:auto;border:1px solid #8886;padding:.6rem}"
    "code{font-size:14px}:root{color-scheme:light dark}"
)
_STYLE_DIGEST = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
POLICY = f"default-src 'none'; frame-ancestors 'none'; style-src 'sha256-{_STYLE_DIGEST}'"


def docs_page(document: dict[str, Any]) -> str:
    """Every verb with its parameters and the form of its body."""
    verbs = [
        _verb(path, method, operation, document)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]
    title = escape(f"{document['info']['title']} {document['info']['version']}")
    head = (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title><style>{STYLE}</style>'
    )
    viewport = '<meta name="viewport" content="width=device-width">'
    about = f"<p>{escape(document['info'].get('description', ''))}</p>"
    source = '<p>The same for programs: <a href="/openapi.json">openapi.json</a></p>'
    return f"{head}{viewport}<h1>{title}</h1>{about}{source}{''.join(verbs)}"


def _verb(path: str, method: str, operation: dict[str, Any], document: dict[str, Any]) -> str:
    parts = [f"<h2><code>{escape(method.upper())} {escape(path)}</code></h2>"]
    parts.append(f"<p>{escape(operation.get('description') or operation.get('summary', ''))}</p>")
    if parameters := operation.get("parameters"):
        items = (
            f"<li><code>{escape(p['name'])}</code> {escape(p.get('description', ''))}" for p in parameters
        )
        parts.append(f"<ul>{''.join(items)}</ul>")
    content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    if schema := content.get("schema"):
        name = schema.get("$ref", "").rpartition("/")[2]
        part = document["components"]["schemas"].get(name, schema)
        parts.append(f"<pre>{escape(json.dumps(part.get('properties', part), indent=1))}</pre>")
    return "".join(parts)
