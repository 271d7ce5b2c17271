"""The process that serves."""

from __future__ import annotations

import pytest
from fastapi import FastAPI

from heterformer.serve.options import ServeOptions
from heterformer.serve.process import uvicorn_config


@pytest.mark.parametrize("timeout", [0.5, 30, 600])
def test_a_request_under_way_keeps_its_time_when_the_server_ends(timeout: float) -> None:
    options = ServeOptions(timeout=timeout)
    assert uvicorn_config(FastAPI(), options).timeout_graceful_shutdown == options.ending > timeout
