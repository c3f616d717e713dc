"""Jobs of many ranks: the statement of each rank, the place where ranks meet, and the verdict on
all of them.

Everything except the launchers runs in the ranks, and all of it on Python 3.8 with the standard
library: this package imports only `runtime`, and is copied into images together with it.
"""
