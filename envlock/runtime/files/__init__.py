"""Deep verification: whether what lies on the disk is what the RECORDs say, and what lies beside it."""
