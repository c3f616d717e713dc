"""The package indexes: the configured ones, their pages, and their files, in parts or whole."""
