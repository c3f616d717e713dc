"""Base images: which there are, which fits a lock, and what a registry says of it."""
