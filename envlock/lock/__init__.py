"""The lockfile: its models are the format, its writer is the only one."""
