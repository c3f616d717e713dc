"""What a machine computes, compared by its bits: repeated runs and their distances."""
