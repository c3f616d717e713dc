"""`envlock bisect`: which differences between two lockfiles moved the bits."""
