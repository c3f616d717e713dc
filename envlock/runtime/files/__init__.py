"""Deep verification: whether the files on the disk are what the RECORDs say, and unowned files."""
