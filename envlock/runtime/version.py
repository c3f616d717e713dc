"""The version of envlock, where every room and every program can read it: it imports nothing."""

__version__ = "0.1.0"
