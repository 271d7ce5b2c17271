"""Why a node's vector is what it is: attention and the neighbours behind it."""
