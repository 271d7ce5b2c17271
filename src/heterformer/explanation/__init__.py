"""Why a vector is what it is: attention and neighbours."""
