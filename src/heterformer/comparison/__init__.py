"""Models side by side on the same pairs."""
