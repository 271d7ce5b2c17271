"""The page at /docs."""

from __future__ import annotations

import re

import pytest

from heterformer.serve.api_docs import docs_page
from heterformer.serve.app import make_app
from heterformer.serve.metrics import Metrics
from tests.serve.serving import service


@pytest.fixture(scope="module")
def page() -> str:
    return docs_page(make_app(service(), Metrics()).openapi())


def test_every_verb_says_what_it_takes_and_what_it_answers(page: str) -> None:
    (search,) = re.findall(r"POST /search</code></h2>(.*?)<h2>", page)
    assert 'Body: <a href="#Search">Search</a>' in search
    assert 'Answer: <a href="#Answer">Answer</a>' in search
    assert page.count("Answer: ") == page.count("<h2>") - 1
    (points,) = re.findall(r"GET /map/points</code></h2>(.*?)<h2>", page)
    assert "Answer: <code>application/octet-stream</code>" in points
    assert "<li><code>offset</code> integer from 0 to 1,099,511,627,776, 0 unless given" in points


def test_links_lead_to_forms(page: str) -> None:
    names = set(re.findall(r'href="#(\w+)"', page))
    assert len(names) > 20
    assert names <= set(re.findall(r'id="(\w+)"', page))


def test_forms_have_their_fields_in_words(page: str) -> None:
    (form,) = re.findall(r'id="Search">(.*?)<h3', page)
    assert "<code>top</code> integer from 1 to 1,000, 10 unless given" in form
    assert "<code>neighbors</code> object of list of string by name, {} unless given" in form
    (form,) = re.findall(r'id="NodePage">(.*?)<h3', page)
    assert "<code>text</code> string or null" in form
    assert '<code>relations</code> list of <a href="#RelationCount">' in form


def test_names_are_text() -> None:
    hostile = "<script>"
    schema = {"properties": {hostile: {"type": hostile, "default": hostile, "description": hostile}}}
    document = {
        "info": {"title": hostile, "version": hostile},
        "paths": {hostile: {"get": {"description": hostile, "responses": {"200": {}}}}},
        "components": {"schemas": {hostile: schema}},
    }
    assert hostile not in docs_page(document)
