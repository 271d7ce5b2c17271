"""Training, validation and test pairs without leaks."""
