"""A program's own operations: those that it runs, as types, attributes, dtypes and shapes, and each
computed again on its own.
"""
