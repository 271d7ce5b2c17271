"""From a network to what a model is given: sampled neighbourhoods and packed tokens."""
