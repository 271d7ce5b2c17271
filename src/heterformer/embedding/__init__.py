"""Vectors for whole networks."""
