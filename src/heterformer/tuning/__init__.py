"""Search for training options by validation, with Optuna."""
