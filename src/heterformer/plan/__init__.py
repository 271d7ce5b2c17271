"""What training and embedding a network will need."""
