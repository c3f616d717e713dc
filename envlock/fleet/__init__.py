"""Jobs of many ranks: the statement of each rank, the place where ranks meet, and the verdict on
all of them.

Everything except the launchers runs in the ranks, and everything needs only Python 3.8 and its
standard library: this package imports only `runtime`, and is copied into images together with it.
"""
