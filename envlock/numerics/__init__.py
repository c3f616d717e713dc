"""What a machine computes, told by its bits: repeated runs and their distances."""
