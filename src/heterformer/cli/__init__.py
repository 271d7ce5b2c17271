"""The command line: commands, their flags, and what goes wrong."""
