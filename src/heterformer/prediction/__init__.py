"""Classes or numbers of nodes by a model that has learnt from labels."""
