"""The address of the public package index, apart from the client that asks indexes, which takes long to load."""

PUBLIC_INDEX = "https://pypi.org/simple/"
"""Source: https://docs.pypi.org/api/; `pypi_simple.PYPI_SIMPLE_ENDPOINT` is the same."""
