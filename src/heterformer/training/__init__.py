"""Warm-up of textless nodes, link-prediction training, checkpoints."""
