"""Whether a machine computes the bits of another, and whether runs of a program compute the same."""
