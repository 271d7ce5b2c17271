"""For PyTorch Geometric: batches of links as ``HeteroData``, and models as encoders of their nodes."""
