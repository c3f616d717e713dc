"""What a process has loaded, named by role and owner, and compared with what a lockfile has."""
