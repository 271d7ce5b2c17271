"""``heterformer check``: whether a network, a run or vectors are still as they were written."""
