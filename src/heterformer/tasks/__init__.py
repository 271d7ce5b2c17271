"""What vectors are worth: link prediction, and comparisons of models."""
