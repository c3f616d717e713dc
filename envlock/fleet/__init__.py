"""Jobs of many ranks: what a rank says of itself, where ranks meet, and the verdict on all of them.

All but the launchers runs in the ranks, and all of it on Python 3.8 with the standard library: the
room knows only `runtime`, and is shipped into images beside it.
"""
