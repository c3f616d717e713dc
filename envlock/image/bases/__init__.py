"""Base images: the known ones, the one that fits a lockfile best, and what a registry says about
it.
"""
