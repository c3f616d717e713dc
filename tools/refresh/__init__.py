"""The tables of envlock/data, asked from their sources again: `make refresh`, docs/contributing/tensorflow-version.md."""
