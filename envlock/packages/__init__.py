"""The exact files that are installed: hashes of the wheels that they came from, deep verification,
and the wheelhouse.
"""
