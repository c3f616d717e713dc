"""Each command as a function that takes values and returns a typed result: the functions of the
Python API.
"""
