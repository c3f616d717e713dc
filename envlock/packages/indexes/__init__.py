"""The package indexes: which there are, what they offer, and their files, in parts or whole."""
