"""Fine-tuning on labels, and how well it predicts those of other nodes."""
