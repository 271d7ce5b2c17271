"""Several models on the same pairs, side by side."""
