"""Networks that we know how to build."""
