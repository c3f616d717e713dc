"""The lockfile: its models define the format, and only its writer writes it."""
