"""Networks for other tools, and from them."""
