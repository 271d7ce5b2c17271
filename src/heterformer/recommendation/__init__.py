"""Recommendation: what a user, or whoever has a few items, may be linked to."""
