"""A server for runs: vectors, search, nodes and explanations over HTTP."""
