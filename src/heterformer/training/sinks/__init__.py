"""Where the metrics of a run go besides its own file: one module per tool, imported when it is asked for."""
