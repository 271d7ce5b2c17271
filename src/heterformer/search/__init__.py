"""Search in the vectors of a run."""
