"""Maps of a network by its vectors."""
