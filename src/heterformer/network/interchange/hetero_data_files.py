"""PyTorch Geometric's ``HeteroData`` on disk without pickle: a folder of safetensors and JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from heterformer.errors import InputError
from heterformer.files import new_folder, reading
from heterformer.network.columns import NODE_COLUMNS
from heterformer.network.interchange.hetero_data import (
    EDGE_COLUMNS,
    from_hetero_data,
    import_libraries,
    to_hetero_data,
)
from heterformer.network.store import Network

FORMAT = 1
VALUES, TENSORS = "hetero_data.json", "hetero_data.safetensors"
SPEC_KEYS = (
    *("name", "predict", "neighbors", "max_tokens", "test_batch_size", "missing"),
    *("weight", "time", "text_from", "attribute_kinds"),
)


def save_network(network: Network, folder: Path | str) -> None:
    """A network as ``HeteroData`` in a new folder, with all that ``open_network`` needs."""
    schema = network.schema
    spec: dict[str, Any] = {
        "name": network.name,
        "predict": schema.predict,
        "neighbors": dict(schema.neighbors),
        "max_tokens": schema.max_tokens,
        "test_batch_size": schema.test_batch_size,
    }
    columns = {column for names in network.edge_columns.values() for column in names}
    spec |= {column: EDGE_COLUMNS[column] for column in sorted(columns)}
    spec |= {"text_from": network.text_from} if network.text_from else {}
    spec |= {"attribute_kinds": network.attribute_kinds} if network.attribute_kinds else {}
    save_hetero_data(to_hetero_data(network), folder, spec)


def save_hetero_data(data: Any, folder: Path | str, spec: dict[str, Any] | None = None) -> None:
    """Write any ``HeteroData`` into a new folder: tensors as safetensors, other values as JSON.

    ``spec`` (some of ``SPEC_KEYS``) is what ``open_network`` builds with.
    """
    torch, _ = import_libraries()
    from safetensors.torch import save_file

    tensors: dict[str, Any] = {}
    stores = []
    for store in data.stores:
        values, names = {}, {}
        key = store._key  # a node type, the three names of an edge type, or None for the whole graph
        for name, value in store.items():
            place = f"the HeteroData's {key or 'graph'} attribute {name!r}"
            if isinstance(value, torch.Tensor):
                if value.layout != torch.strided:
                    raise InputError(f"{place} is a sparse tensor, expected a dense one or 'edge_index'.")
                names[name] = str(len(tensors))
                tensors[names[name]] = value.detach().cpu().contiguous().clone()
            else:
                values[name] = value
                try:
                    json.dumps(value)
                except (TypeError, ValueError):
                    kind = type(value).__name__
                    raise InputError(f"{place} is a {kind}, expected a tensor or a JSON value.") from None
        stores.append({"key": key, "values": values, "tensors": names})
    contents = {"format": FORMAT, "network": spec or {}, "stores": stores}
    with new_folder(Path(folder)) as partial:
        save_file(tensors, partial / TENSORS)
        text = json.dumps(contents, ensure_ascii=False)
        (partial / VALUES).write_text(text, encoding="utf-8")


def open_network(folder: Path | str, out: Path | str | None = None, **spec: Any) -> Network:
    """Build a network from a saved ``HeteroData`` whose node types have ``text`` (and ``id``, ``label``).

    ``spec`` overrides what was saved with it: some of ``SPEC_KEYS``.
    """
    folder = Path(folder)
    data, saved = load_hetero_data(folder)
    columns = {
        column.key: {t: data[t][column.key] for t in data.node_types if column.key in data[t]}
        for column in NODE_COLUMNS
        if not column.prefix
    }
    ids, texts = columns.pop("id"), columns.pop("text")
    if not texts:
        problem = "no node type has 'text', a list of strings"
        raise InputError(f"{folder}: {problem}; build with Network.from_hetero_data, which takes texts.")
    attributes = {t: data[t].attributes for t in data.node_types if "attributes" in data[t]}
    parts: dict[str, Any] = {"ids": ids, "columns": columns, "attributes": attributes}
    return from_hetero_data(data, texts, **parts, out=out, **{**saved, **spec})


def is_hetero_data(folder: Path) -> bool:
    """Whether a folder is one that ``save_hetero_data`` wrote."""
    return (folder / VALUES).is_file()


def load_hetero_data(folder: Path) -> tuple[Any, dict[str, Any]]:
    """The ``HeteroData`` that ``save_hetero_data`` wrote, and its ``spec``."""
    _, hetero_data = import_libraries()
    from safetensors.torch import load_file

    if not is_hetero_data(folder):
        raise InputError(f"{folder}: not a saved HeteroData, expected a folder with {VALUES} and {TENSORS}.")
    data = hetero_data()
    with reading(folder / VALUES):
        values = json.loads((folder / VALUES).read_text(encoding="utf-8"))
        if values["format"] != FORMAT:
            raise InputError(
                f"{folder}: HeteroData format {values['format']!r}, this version reads {FORMAT}."
            )
        stores, spec = values["stores"], dict(values["network"])
        if unknown := [name for name in spec if name not in SPEC_KEYS]:
            known = ", ".join(map(repr, SPEC_KEYS))
            raise InputError(f"{folder / VALUES}: network has {unknown[0]!r}, expected some of {known}.")
    with reading(folder / TENSORS):
        tensors = load_file(folder / TENSORS)
        for store in stores:
            key = store["key"]
            target = data if key is None else data[tuple(key) if isinstance(key, list) else key]
            for name, value in store["values"].items():
                target[name] = value
            for name, tensor in store["tensors"].items():
                target[name] = tensors[tensor]
    return data, spec
