"""Text-only students of trained models, for queries, new items and machines without the network."""
