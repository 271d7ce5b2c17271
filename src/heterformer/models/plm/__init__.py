"""The PLM on packed texts: layers, attention and readout."""
