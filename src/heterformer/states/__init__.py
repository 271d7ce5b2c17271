"""Text states on disk: computed once, read row by row."""
