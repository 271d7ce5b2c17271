"""What vectors are worth: link prediction, classification, clustering."""
