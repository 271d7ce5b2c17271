"""What vectors are worth: link prediction."""
