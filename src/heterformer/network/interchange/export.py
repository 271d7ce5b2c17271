"""Write a network for other tools. One module per format does the writing."""

from __future__ import annotations

from pathlib import Path

from heterformer.errors import OptionError
from heterformer.files import check_new, new_file, new_folder
from heterformer.network.interchange.csv_folder import write_tables
from heterformer.network.interchange.formats import Format
from heterformer.network.interchange.graph_files import write_graphml, write_node_link
from heterformer.network.interchange.hetero_data_files import save_network
from heterformer.network.store import Network


def export_network(network: Network, out: Path | str, to: Format, safe: bool = False) -> None:
    """Write ``network`` to ``out``: a new file (graphml, networkx) or a new folder (csv, hetero-data).

    ``safe`` tables of CSV have an apostrophe before values that a spreadsheet would take for formulas.
    """
    out = Path(out)
    if safe and to != "csv":
        raise OptionError(None, "safe", f"applies to {{to}} csv only, but {{to}} is {to}.")
    check_new(out)
    match to:
        case "csv":
            with new_folder(out) as folder:
                write_tables(network, folder, safe)
        case "hetero-data":
            save_network(network, out)
        case "graphml" | "networkx":
            write = write_graphml if to == "graphml" else write_node_link
            with new_file(out) as partial, partial.open("w", encoding="utf-8", newline="\n") as file:
                write(network, file)
