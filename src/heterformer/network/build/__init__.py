"""From tables to a network folder."""
