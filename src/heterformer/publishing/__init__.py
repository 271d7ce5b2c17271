"""Trained models on the Hugging Face Hub."""
