"""The one door to torch_geometric, which is an optional dependency and takes seconds to import."""

from __future__ import annotations

from heterformer.errors import InputError

try:
    import torch_geometric.backend
    from torch_geometric.nn import GATConv, HANConv, HeteroLinear, HGTConv, RGCNConv, SAGEConv
except ModuleNotFoundError as error:
    raise InputError(
        "graph baselines need torch_geometric: pip install 'heterformer[pyg]', or choose another model"
    ) from error

# Products of pyg-lib, if that is installed: RGCN's would take the mean over all edge types together instead
# of over each, and HGT's are chosen by a stopwatch, so that two runs could differ.
torch_geometric.backend.use_segment_matmul = False

__all__ = ["GATConv", "HANConv", "HGTConv", "HeteroLinear", "RGCNConv", "SAGEConv"]
