"""The eleven models that the paper compares Heterformer with, one file each; see ``models/registry.py``."""
