"""What a folder must say to be a network."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from heterformer.errors import InputError
from heterformer.network.store import Network
from tests.networks import Tables


@pytest.fixture
def network(tables: Tables) -> Network:
    return tables.build()


@pytest.mark.parametrize("content", [None, "", "not JSON", "[]"])
def test_something_that_is_not_a_network(content: str | None, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "network.json").write_text(content)
    with pytest.raises(InputError) as caught:
        Network.open(tmp_path)
    assert str(caught.value) == (
        f"{tmp_path}: not a network, expected a folder that 'heterformer build' wrote."
    )


@pytest.mark.parametrize("path", ["nowhere", "papers.csv"])
def test_a_path_that_is_not_a_folder(path: str, tables: Tables) -> None:
    with pytest.raises(InputError, match="not a network, expected a folder"):
        Network.open(tables.folder / path)


@pytest.mark.parametrize("version", [0, 2, None])
def test_a_network_of_another_format_version(version: Any, network: Network) -> None:
    description = network.path / "network.json"
    description.write_text(json.dumps({**json.loads(description.read_text()), "format": version}))
    with pytest.raises(InputError) as caught:
        Network.open(network.path)
    found = f"network format {version!r}, this version reads 1; build it again."
    assert str(caught.value) == f"{network.path}: {found}"
