"""A heterogeneous text-rich network: its description, its build, its store and its splits."""
