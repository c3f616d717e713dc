"""The version of envlock, in a module that imports nothing, so that every room and every program
can read it.
"""

__version__ = "0.1.0"
