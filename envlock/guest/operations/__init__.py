"""A program's own operations: what it runs, as types, attributes, dtypes and shapes, and each
computed again alone.
"""
